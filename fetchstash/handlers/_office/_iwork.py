"""iWork documents (Pages, Numbers, Keynote): the text of their preview as PDF, or its picture.

Their own form, IWA, is a snapshot of Apple's objects that no kept library reads.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from fetchstash.handlers._contract import Extracted, Hints, Part, PartRequest, PartText, Picture
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._pdf._handler import PdfHandler
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._shared._member import read_member
from fetchstash.handlers._shared._zip import Zip

_MAX_MEMBERS = 20_000
_MAX_PREVIEW = 256 * 1024 * 1024
_PDFS = ("QuickLook/Preview.pdf", "preview.pdf", "Preview.pdf")
_PICTURES = ("preview.jpg", "QuickLook/Thumbnail.jpg", "preview-web.jpg", "QuickLook/Thumbnail.png")


class IWorkHandler:
    """Reads the preview that an iWork document brings."""

    name = "iwork"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return the text of the preview. Reading the parts raises NoText if there is none."""
        extracted = Extracted(parts=None)
        extracted.parts = _read(source, hints, limits, extracted)
        return extracted

    def part(self, request: PartRequest) -> PartText | Picture:
        """Return a page of the preview, or the document's small picture, as a picture."""
        with Zip(request.source) as container:
            entries = {e.name: e for e in islice(container.entries(), _MAX_MEMBERS)}
            name = next((name for name in (*_PDFS, *_PICTURES) if name in entries), "")
            if not name or request.render != "image" or request.path:
                raise Reason.IWORK_NO_PART.error()
            unit = request.unit if name in _PDFS else "lines"
            pieces = container.chunks(entries[name], _MAX_PREVIEW)
            return read_member(pieces, name, replace(request, unit=unit))


def _read(
    source: Path, hints: Hints, limits: ExtractLimits, extracted: Extracted
) -> Iterator[Part]:
    with tempfile.TemporaryDirectory(prefix="preview-") as folder, Zip(source) as container:
        entries = container.find(_PDFS)
        if not entries:
            raise Reason.IWORK_NO_TEXT.error()
        preview = Path(folder) / "preview.pdf"
        with preview.open("wb") as file:
            file.writelines(container.chunks(next(iter(entries.values())), _MAX_PREVIEW))
        shown = PdfHandler().extract(preview, hints, limits)
        yield from shown.parts or ()
        extracted.facts = shown.facts
