"""Plain text."""

from pathlib import Path

from fetchstash.handlers._contract import ContentKind, Extracted, ExtractLimits, Hints, Part


class TextHandler:
    """Text that has no structure of its own."""

    name = "text"

    def can_handle(self, kind: ContentKind, media_type: str) -> bool:  # noqa: ARG002
        """Return whether this is plain text."""
        return kind == "text"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002
        """Read it."""
        return Extracted(parts=[Part(source.read_text("utf-8", "replace"))])
