"""Office documents in compound files: Word and PowerPoint before 2007, and encrypted ones."""

from collections.abc import Iterator
from pathlib import Path

from fetchstash.handlers._contract import Extracted, Hints, Part
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._office import OLD_POWERPOINT, OLD_WORD, _doc, _ppt
from fetchstash.handlers._office._ole_properties import describe
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._shared._compound import CompoundFile

_MAX_BYTES = 128 * 1024 * 1024
# The stream of PowerPoint 4 and 95; those of 97 may keep it beside their own.
_POWERPOINT_95 = ("PP40",)


class OldOfficeHandler:
    """Reads documents and presentations of Office 97 to 2003."""

    name = "old_office"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - the file is enough
        """Return the document (other containers: no text). Raises NoText if it cannot be read."""
        with source.open("rb") as file:
            data = file.read(_MAX_BYTES)
        if data.startswith(OLD_WORD):
            raise Reason.OLD_WORD.error()
        if data.startswith(OLD_POWERPOINT):
            raise Reason.OLD_SLIDES.error()
        container = CompoundFile(data)
        if ("EncryptedPackage",) in container.streams:  # [MS-OFFCRYPTO], section 2.3.4.4
            raise Reason.ENCRYPTED.error()
        extracted = Extracted(parts=None)
        extracted.parts = _parts(container, extracted)
        return extracted


def _parts(container: CompoundFile, extracted: Extracted) -> Iterator[Part] | None:
    describe(container, extracted)
    if ("WordDocument",) in container.streams:
        return _doc.read(container, extracted)
    if ("PowerPoint Document",) in container.streams:
        return _ppt.read(container, extracted)
    if _POWERPOINT_95 in container.streams:
        raise Reason.OLD_SLIDES.error()
    return None
