"""PDF: headings, paragraphs and tables page by page, and pages as pictures.

pdfium reads; pypdf reads files that pdfium cannot open or finds no text in. Files are hostile, so
this runs in the worker alone.
"""

import logging
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fetchstash.errors import NoText
from fetchstash.handlers._contract import Part, PartRequest, PartText, Picture
from fetchstash.handlers._parts import LEFT_OUT, Beside, Reading, Streamed, bounded, part_text
from fetchstash.handlers._pdf import PdfReason, mend
from fetchstash.handlers._pdf._forms import Field, has_field, has_form, read_fields, read_notes
from fetchstash.handlers._pdf._headings import Bookmark, Page
from fetchstash.handlers._pdf._hidden import has_layered_forms
from fetchstash.handlers._pdf._objects import PageImages, are_in, listed, objects_of, shown
from fetchstash.handlers._pdf._pages import Block, PageReader, PageWriter, page_parts
from fetchstash.handlers._pdf._tags import is_tagged
from fetchstash.handlers._reasons import Cause, Reason
from fetchstash.text.ranges import Heading

if TYPE_CHECKING:
    from PIL import Image
    from pypdf import PdfReader
    from pypdfium2 import PdfDocument, PdfPage

# A document without text for pdfium is called scanned after so many pages without text for pypdf,
# which is 18 times slower.
_PYPDF_TRIES = 3
_MAX_BOOKMARKS = 2_000
# Four times 72 dpi: a larger scale shows no more of a small page.
_MAX_SCALE = 4.0
_NO_TITLE = re.compile(
    r"(untitled|microsoft word - .*|.*\.(docx?|pptx?|xlsx?|indd|tex|dvi|qxd|pdf))?",
    re.IGNORECASE | re.DOTALL,
)
_DATE = re.compile(r"(?:D:)?(\d{4})(\d{2})(\d{2})")

# The objects of a file that was cut short (see _repaired).
_OBJECT = re.compile(rb"(?<!\d)(\d{1,10})[ \t\r\n]{1,4}\d{1,5}[ \t\r\n]{1,4}obj\b")
_PAGE = re.compile(rb"/Type[ \t\r\n]{0,4}/Page(?![A-Za-z])")
_OBJECT_STREAM = re.compile(rb"/Type[ \t\r\n]{0,4}/ObjStm(?![A-Za-z])")
_STREAM = re.compile(rb"stream\r?\n")
_FIRST, _COUNT = re.compile(rb"/First\s{1,4}(\d{1,10})"), re.compile(rb"/N\s{1,4}(\d{1,10})")
_LINEARIZED = re.compile(rb"/Linearized\b.{0,200}?/N\s{1,4}(\d{1,7})", re.DOTALL)
_MAX_REPAIRED = 128 * 2**20
_MAX_BLANK = 100
_MAX_DICTIONARY = 16 * 1024
_MAX_UNPACKED = 64 * 2**20
_MAX_PAGES = 100_000


class PdfHandler(Streamed):
    """Reads PDF files. The text of each page begins with ``[Page 12]``, to place matches."""

    name = "pdf"

    def read(self, source: Path, extracted: Reading) -> Iterator[Part]:
        """Yield the pages. Raises NoText if the file cannot be read."""
        from pypdfium2 import PdfiumError  # noqa: PLC0415 - a heavy import

        fallback = _Pypdf(source)
        try:
            document = _open(source)
        except PdfiumError:
            yield from _read_damaged(source, extracted, fallback)
            return
        with document:
            yield from _read_document(document, extracted, fallback, Beside())

    def part(self, request: PartRequest) -> PartText | Picture:
        """Return page ``start`` (from 1) as a picture (``end`` is ignored), or a part by path.

        The paths are the pictures of pages, and what the text leaves out.
        """
        name, _, wanted = request.path.partition("/")
        if request.path == LEFT_OUT and request.render == "text":
            return part_text(_left_out(request), request)
        if name == "images" and (request.render == "image") == bool(wanted):
            with _opened(request.source) as document:
                if wanted:
                    return shown(document, wanted, request.limits)
                return part_text(listed(document, request.limits), request)
        if request.render != "image" or request.unit != "pages" or request.path:
            raise PdfReason.PDF_PAGES.error()
        preview = request.limits.preview
        number = 1 if request.start is None else request.start
        picture = _rendered(request.source, number, preview.max_image_edge_px, _MAX_SCALE)
        return bounded(picture, preview, photo=False)

    def raster(self, source: Path, page: int, edge: int) -> "Image.Image":
        """Return page ``page`` (from 1) for OCR."""
        return _rendered(source, page, edge)


def _left_out(request: PartRequest) -> str:
    """Return the running heads and page numbers of a document."""
    beside = Beside()
    extracted = Reading(None, limits=request.limits)
    with _opened(request.source) as document, suppress(NoText):
        for _ in _read_document(document, extracted, _Pypdf(request.source), beside):
            pass
    return beside.left_out()


def _rendered(source: Path, number: int, edge: int, most: float = math.inf) -> "Image.Image":
    """Return a page, with the fields of its forms, some ``edge`` pixels long. Raises OutOfRange.

    ``most`` bounds the enlargement.
    """
    with _opened(source) as document:
        if not 1 <= number <= len(document):
            raise PdfReason.NO_PAGE.error(number=number, count=len(document))
        if has_form(document):
            document.init_forms()
        with closing(document[number - 1]) as page:
            scale = min(edge / max(*page.get_size(), 1.0), most)
            with closing(page.render(scale=scale, rev_byteorder=True)) as bitmap:
                return bitmap.to_pil().copy()


def _read_document(
    document: "PdfDocument", extracted: Reading, fallback: "_Pypdf", beside: Beside
) -> Iterator[Part]:
    pages = len(document)
    title = document.get_metadata_value("Title").strip()
    dates = map(_DATE.match, map(document.get_metadata_value, ("CreationDate", "ModDate")))
    published, modified = ("-".join(date.groups()) if date else "" for date in dates)
    extracted.learn(
        pages=pages,
        title="" if _NO_TITLE.fullmatch(title) else title,
        author=document.get_metadata_value("Author").strip(),
        published=published,
        modified=modified,
        outline=tuple(_outline(document)),
    )
    count = _bounded_count(pages, extracted)
    bookmarks: dict[int, list[Bookmark]] = {}
    for heading in extracted.facts.outline:
        bookmarks.setdefault(heading.start, []).append(Bookmark(heading.title, heading.level))
    writer = PageWriter(bookmarks, beside)
    parts = page_parts(writer.finished(_pages(document, count, fallback, extracted)), extracted)
    first = next(parts, None)
    if first is None and any(fallback.texts(min(count, _PYPDF_TRIES))):
        parts = page_parts(_plain_pages(fallback.texts(count)), extracted)
        first = next(parts, None)
    if first is None:
        reason = _why_no_text(document)
        extracted.learn(pages_without_text=0 if reason is PdfReason.PDF_BLANK else count)
        raise reason.error(count=pages)
    extracted.learn(outline=())  # headings go with their parts
    yield first
    yield from parts
    beside.learn(extracted)


def _read_damaged(source: Path, extracted: Reading, fallback: "_Pypdf") -> Iterator[Part]:
    """Read a file that pdfium does not open: by pypdf, else the complete pages of a cut file."""
    if pages := fallback.page_count():
        extracted.learn(pages=pages)
        texts = fallback.texts(_bounded_count(pages, extracted))
        yield from page_parts(_plain_pages(texts), extracted)
        return
    document, notice = _recovered(source)
    with document:
        try:
            yield from _read_document(document, extracted, fallback, Beside())
        except NoText:
            raise PdfReason.PDF_NO_PAGE.error(why=_damage(source)) from None
    extracted.learn(extraction_truncated=True)
    extracted.fail(notice)


def _recovered(source: Path) -> tuple["PdfDocument", Cause]:
    """Open a file that was cut short; return it with a notice of its pages.

    Raises NoText if no page is complete.
    """
    from pypdfium2 import PdfDocument, PdfiumError  # noqa: PLC0415 - a heavy import

    damage = _damage(source)
    if damage != PdfReason.PDF_NONE and source.stat().st_size <= _MAX_REPAIRED:
        data = source.read_bytes()
        whole, pages = _repaired(data)
        # A linearized file states the number of its pages (ISO 32000-1, annex F.3.3).
        header = _LINEARIZED.search(data, 0, 2_048)
        notice = PdfReason.PDF_RECOVERED.cause(why=damage, pages=pages)
        if stated := int(header[1]) if header else 0:
            notice = PdfReason.PDF_RECOVERED_OF.cause(why=damage, pages=pages, stated=stated)
        with suppress(PdfiumError):
            if pages:
                return PdfDocument(whole), notice
    raise PdfReason.PDF_NO_PAGE.error(why=damage)


def _opened(source: Path) -> "PdfDocument":
    """Open a document, repaired if it was cut short."""
    from pypdfium2 import PdfiumError  # noqa: PLC0415 - a heavy import

    try:
        return _open(source)
    except PdfiumError:
        return _recovered(source)[0]


def _open(source: Path) -> "PdfDocument":
    """Open ``source`` without a password. Raises NoText if it needs one, else PdfiumError."""
    from pypdfium2 import PdfDocument, PdfiumError, raw  # noqa: PLC0415 - a heavy import

    if not source.stat().st_size:
        raise Reason.EMPTY_FILE.error()
    try:
        return PdfDocument(source)
    except PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            raise Reason.ENCRYPTED.error() from None
        if error.err_code == raw.FPDF_ERR_SECURITY:
            raise PdfReason.PDF_CIPHER.error() from None
        raise


def _pages(
    document: "PdfDocument", count: int, fallback: "_Pypdf", extracted: Reading
) -> Iterator[Page]:
    """Yield the content of each page. One page is open at a time."""
    from pypdfium2 import PdfiumError  # noqa: PLC0415 - a heavy import

    filled = has_form(document)
    images, reader = (
        PageImages() if are_in(fallback.source) else None,
        PageReader(
            fallback.layers_off,
            layered_forms=has_layered_forms(fallback.source),
            tagged=is_tagged(document),
        ),
    )

    def read(index: int) -> Page:
        with closing(document[index]) as page:
            if not filled or not has_field(page):
                return _page(page, index + 1, images, reader)
        document.init_forms()  # only when needed: it makes each page slower
        with closing(document[index]) as page:
            fields = list(read_fields(document, page))
            return _page(page, index + 1, images, reader, fields)

    for index in range(count):
        try:
            yield read(index)
        except PdfiumError:
            yield _plain_page(index + 1, fallback.text(index))
    extracted.learn(hidden_removed=reader.hidden)


def _plain_page(number: int, text: str) -> Page:
    return Page(number, [text] if text else [])


def _plain_pages(texts: Iterator[str]) -> Iterator[tuple[int, Sequence[Block] | None]]:
    for number, text in enumerate(texts, start=1):
        yield number, [text] if text else []


def _page(
    page: "PdfPage",
    number: int,
    images: PageImages | None,
    reader: PageReader,
    fields: Sequence[Field] = (),
) -> Page:
    """Return the content of a page; after its text, if any, come notes and pictures."""
    items = objects_of(page)
    with closing(page.get_textpage()) as text_page:
        found = reader.read(page, items, text_page, number, fields)
    if found.blocks:  # else OCR looks at the page
        found.blocks += read_notes(page)
    else:
        found.is_blank = _is_empty(page)
    if images and not found.is_blank:
        found.marks = images.marks(items)
    return found


def _is_empty(page: "PdfPage") -> bool:
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    return not (any(page.get_objects(max_depth=1)) or raw.FPDFPage_GetAnnotCount(page))


def _bounded_count(pages: int, extracted: Reading) -> int:
    limit = extracted.limits.pdf_max_pages
    if pages > limit:
        extracted.learn(extraction_truncated=True)
        extracted.fail(PdfReason.PDF_PAGE_LIMIT.cause(limit=limit, pages=pages))
    return min(pages, limit)


def _outline(document: "PdfDocument") -> Iterator[Heading]:
    for number, bookmark in enumerate(document.get_toc()):
        if number == _MAX_BOOKMARKS:
            return
        target = bookmark.get_dest()
        index = target.get_index() if target else None
        if index is not None:
            yield Heading(bookmark.get_title(), bookmark.level + 1, "pages", index + 1)


def _why_no_text(document: "PdfDocument") -> PdfReason:
    """Return the reason, by the first page that is not blank: a cover may be."""
    from pypdfium2 import PdfiumError, raw  # noqa: PLC0415 - a heavy import

    try:
        for number in range(min(len(document), _MAX_BLANK)):
            with closing(document[number]) as page:
                if any(page.get_objects([raw.FPDF_PAGEOBJ_IMAGE], max_depth=3)):
                    return PdfReason.PDF_SCANNED
                if not _is_empty(page):
                    return PdfReason.PDF_DRAWN
    except PdfiumError:
        return PdfReason.PDF_UNREADABLE
    return PdfReason.PDF_BLANK


def _damage(source: Path) -> PdfReason:
    """Return the damage of a file that no library opens: a whole one ends with a marker."""
    with source.open("rb") as file:
        head = file.read(1024)
        file.seek(max(source.stat().st_size - 1024, 0))
        has_end = b"%%EOF" in file.read()
    if b"%PDF-" not in head:
        return PdfReason.PDF_NONE
    return PdfReason.PDF_DAMAGED if has_end else PdfReason.PDF_CUT


class _Pypdf:
    """The second reader, opened when needed. Pages that it cannot read have no text."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self._reader: PdfReader | None = None

    def page_count(self) -> int:
        try:
            return len(self._open().pages)
        except Exception:  # noqa: BLE001 - any error of a parser that was handed garbage
            return 0

    def texts(self, count: int) -> Iterator[str]:
        return map(self.text, range(count))

    def text(self, index: int) -> str:
        try:
            return mend(self._open().pages[index].extract_text())
        except Exception:  # noqa: BLE001 - as above
            return ""

    @cache  # noqa: B019 - it lives as long as a document is read
    def layers_off(self) -> frozenset[str]:
        """Return the names of the layers that are off when the document is opened."""
        try:
            layers: Any = self._open().root_object["/OCProperties"]
            state = layers["/D"]
            off = layers["/OCGs"] if state.get("/BaseState") == "/OFF" else state.get("/OFF", [])
            on = {str(layer.get_object().get("/Name")) for layer in state.get("/ON", [])}
            return frozenset(str(layer.get_object().get("/Name")) for layer in off) - on
        except Exception:  # noqa: BLE001 - as above
            return frozenset()

    def _open(self) -> "PdfReader":
        if self._reader is None:
            from pypdf import PdfReader  # noqa: PLC0415 - a heavy import

            logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns of each fault
            self._reader = PdfReader(self.source)
            if self._reader.is_encrypted:
                self._reader.decrypt("")
        return self._reader


def _repaired(data: bytes) -> tuple[bytes, int]:
    """Return a PDF of the complete pages in a file that was cut short, and their number.

    The end of a PDF has the table of objects and the root (ISO 32000-1, section 7.5); without it no
    library finds the pages. Here objects are found by their headers, and a page tree, a root and a
    trailer are appended. Objects in compressed streams (section 7.5.7) are written out.
    """
    objects = list(_OBJECT.finditer(data))
    ends = [*(start.start() for start in objects[1:]), len(data)]
    pages: dict[int, None] = {}
    unpacked: list[bytes] = []
    room = _MAX_UNPACKED
    highest = 0
    for start, end in zip(objects, ends, strict=False):
        number = int(start[1])
        highest = max(highest, number)
        head = data[start.end() : min(end, start.end() + _MAX_DICTIONARY)]
        dictionary, stream, _ = head.partition(b"stream")
        if not stream and _PAGE.search(dictionary) and b"endobj" in head:
            pages[number] = None
        elif stream and _OBJECT_STREAM.search(dictionary):
            for inner, content in _within(data[start.end() : end], dictionary, room):
                highest = max(highest, inner)
                room -= len(content)
                unpacked.append(b"%d 0 obj\n%s\nendobj\n" % (inner, content))
                if _PAGE.search(content):
                    pages[inner] = None
    kids = list(pages)[:_MAX_PAGES]
    root, tree = highest + 1, highest + 2
    ending = (
        b"\n%b%d 0 obj\n<< /Type /Catalog /Pages %d 0 R >>\nendobj\n"
        b"%d 0 obj\n<< /Type /Pages /MediaBox [0 0 612 792] /Count %d /Kids [%b] >>\nendobj\n"
        b"trailer\n<< /Root %d 0 R /Size %d >>\nstartxref\n0\n%%%%EOF\n"
    ) % (
        *(b"".join(unpacked), root, tree, tree, len(kids)),
        *(b" ".join(b"%d 0 R" % kid for kid in kids), root, tree + 1),
    )
    # An object that was cut would swallow the objects behind it.
    return data[: data.rfind(b"endobj") + len(b"endobj")] + ending, len(kids)


def _within(content: bytes, dictionary: bytes, room: int) -> Iterator[tuple[int, bytes]]:
    """Yield the objects of an object stream, whose head lists numbers and places."""
    begin = _STREAM.search(content)
    first, count = _FIRST.search(dictionary), _COUNT.search(dictionary)
    if not begin or not first or not count or b"/FlateDecode" not in dictionary:
        return
    try:
        inner = zlib.decompressobj().decompress(content[begin.end() :], max(room, 1))
        numbers = [int(word) for word in inner[: int(first[1])].split()[: 2 * int(count[1])]]
    except (zlib.error, ValueError):
        return
    places = [int(first[1]) + place for place in numbers[1::2]]
    for number, (start, end) in zip(numbers[::2], pairwise([*places, len(inner)]), strict=False):
        yield number, inner[start:end]
