"""What stands in compound files and has no text here: Office before 2007, and documents under a password. Each is named."""

from pathlib import Path

from fetchstash.errors import NoText
from fetchstash.handlers._compound import CompoundFile
from fetchstash.handlers._contract import ContentKind, Extracted, ExtractLimits, Hints

_MAX_BYTES = 128 * 1024 * 1024
_OLD = {"application/msword", "application/vnd.ms-powerpoint"}
_OTHER = "application/x-ole-storage"
_KEPT = "Its bytes are kept."


class OldOfficeHandler:
    """Says of a document why it is not read."""

    name = "old_office"

    def can_handle(self, kind: ContentKind, media_type: str) -> bool:
        """Return whether this is a compound file of Office."""
        return (kind == "office_doc" and media_type in _OLD) or media_type == _OTHER

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - the streams say it
        """Raise NoText with the reason; return no text for a container of something else."""
        with source.open("rb") as file:
            streams = CompoundFile(file.read(_MAX_BYTES)).streams
        if ("EncryptedPackage",) in streams:  # [MS-OFFCRYPTO], section 2.3.4.4
            raise NoText("the document is encrypted and opens only with its password", _KEPT)
        if ("WordDocument",) in streams:
            raise NoText("documents of Word before 2007 are not read", "Save it as DOCX.")
        if ("PowerPoint Document",) in streams:
            raise NoText("presentations of PowerPoint before 2007 are not read", "Save it as PPTX.")
        return Extracted(parts=None)
