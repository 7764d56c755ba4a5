"""What nobody reads: facts only. No byte of it is ever decoded as text."""

from pathlib import Path

from fetchstash.handlers._contract import ContentKind, Extracted, ExtractLimits, Hints


class BinaryHandler:
    """The last in line: takes everything, and knows that there is no text."""

    name = "binary"

    def can_handle(self, kind: ContentKind, media_type: str) -> bool:  # noqa: ARG002 - it takes everything
        """Return True."""
        return True

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - nothing is read
        """Return no text."""
        return Extracted(parts=None)
