"""Write a PDF of plain prose (ISO 32000-1) for the demonstration and the tests."""

import textwrap
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# A4 in points, and Courier, one of the standard 14 fonts (ISO 32000-1, sections 14.11.2 and
# 9.6.2.2): each character is 0.6 of the size wide, so that lines are broken without a table of
# widths.
_WIDTH, _HEIGHT = 595, 842
_MARGIN = 64
_SIZE, _LEADING = 10, 13
_COLUMNS = int((_WIDTH - 2 * _MARGIN) / (0.6 * _SIZE))
_LINES = (_HEIGHT - 2 * _MARGIN) // _LEADING


@dataclass(frozen=True, slots=True)
class Bookmark:
    """An entry of the outline that opens ``page`` (from 1). ``level`` 1 is the outermost."""

    title: str
    page: int
    level: int = 1


def make_pdf(pages: Sequence[str], title: str, bookmarks: Sequence[Bookmark] = ()) -> bytes:
    """Return a PDF 1.7 file with one page for each text of ``pages``.

    Empty lines separate paragraphs, which are wrapped to the page's width; characters outside
    Windows-1252 become "?". Raises ValueError for a text longer than its page and for bookmarks
    that skip a level or point to no page.
    """
    first_page = 5  # after the catalog, the page tree, the font and the document information
    page_ids = [first_page + 2 * index for index in range(len(pages))]
    outline_id = first_page + 2 * len(pages)
    catalog = f"<< /Type /Catalog /Pages 2 0 R /Lang (en) /Outlines {outline_id} 0 R >>"
    kids = " ".join(f"{number} 0 R" for number in page_ids)
    box = f"[0 0 {_WIDTH} {_HEIGHT}]"
    objects = [
        catalog.encode(),
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} /MediaBox {box} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>",
        b"<< /Title " + _text_string(title) + b" /Producer (fetchstash) >>",
    ]
    for number, text in zip(page_ids, pages, strict=True):
        resources = "/Resources << /Font << /F1 3 0 R >> >>"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R {resources} /Contents {number + 1} 0 R >>".encode()
        )
        objects.append(stream(_page_content(text)))
    objects += _outline(bookmarks, outline_id, page_ids)
    return write_objects(objects, info=4)


def write_objects(objects: Iterable[bytes], *, info: int | None = None) -> bytes:
    """Return a file of ``objects`` with its cross-reference table and trailer (section 7.5).

    Objects are numbered from 1; the first is the catalog. ``info`` is the number of the document
    information dictionary.
    """
    # The comment of four high bytes marks the file as binary (section 7.5.2).
    body = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    entries = [b"0000000000 65535 f \n"]
    for number, content in enumerate(objects, start=1):
        entries.append(f"{len(body):010} 00000 n \n".encode())
        body += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    table_at = len(body)
    trailer = f"<< /Size {len(entries)} /Root 1 0 R{f' /Info {info} 0 R' if info else ''} >>"
    body += f"xref\n0 {len(entries)}\n".encode() + b"".join(entries)
    body += f"trailer\n{trailer}\nstartxref\n{table_at}\n%%EOF\n".encode()
    return bytes(body)


def stream(content: bytes, entries: str = "") -> bytes:
    """Return a deflated stream object of ``content`` with these ``entries`` (section 7.3.8)."""
    packed = zlib.compress(content, 9)
    head = f"<< {entries} /Filter /FlateDecode /Length {len(packed)} >>\nstream\n"
    return head.encode() + packed + b"\nendstream"


def _page_content(text: str) -> bytes:
    lines: list[str] = []
    for paragraph in text.split("\n"):
        lines += textwrap.wrap(paragraph, _COLUMNS) or [""]
    if len(lines) > _LINES:
        page = f"A page holds {_LINES} lines of {_COLUMNS} characters"
        raise ValueError(f"{page}; this text has {len(lines)}.")
    start = f"BT /F1 {_SIZE} Tf {_LEADING} TL {_MARGIN} {_HEIGHT - _MARGIN - _SIZE} Td\n".encode()
    shown = (_literal(line.encode("cp1252", "replace")) + b" Tj T*\n" for line in lines)
    return start + b"".join(shown) + b"ET"


def _literal(raw: bytes) -> bytes:
    """Return a literal string object (ISO 32000-1, section 7.3.4.2)."""
    return b"(" + raw.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)") + b")"


def _text_string(text: str) -> bytes:
    """Return a text string object: UTF-16 with its byte order mark (section 7.9.2.2)."""
    return b"<" + ("\ufeff" + text).encode("utf-16-be").hex().encode() + b">"


def _outline(bookmarks: Sequence[Bookmark], root_id: int, page_ids: Sequence[int]) -> list[bytes]:
    """Return the outline dictionary and its items, linked in both directions (section 12.3.3)."""
    children: dict[int, list[int]] = {root_id: []}
    parents: list[int] = []
    open_items = [root_id]
    for number, bookmark in enumerate(bookmarks, start=root_id + 1):
        if not 1 <= bookmark.level <= len(open_items) or not 1 <= bookmark.page <= len(page_ids):
            raise ValueError(f"The bookmark {bookmark.title!r} skips a level or points to no page.")
        del open_items[bookmark.level :]
        parents.append(open_items[-1])
        children[open_items[-1]].append(number)
        children[number] = []
        open_items.append(number)
    items = [f"<< /Type /Outlines{_family(children[root_id])} >>".encode()]
    for number, (bookmark, parent) in enumerate(
        zip(bookmarks, parents, strict=True), start=root_id + 1
    ):
        siblings = children[parent]
        place = siblings.index(number)
        links = f" /Prev {siblings[place - 1]} 0 R" if place else ""
        links += f" /Next {siblings[place + 1]} 0 R" if place + 1 < len(siblings) else ""
        target = f" /Parent {parent} 0 R /Dest [{page_ids[bookmark.page - 1]} 0 R /Fit]"
        items.append(
            b"<< /Title "
            + _text_string(bookmark.title)
            + f"{target}{links}{_family(children[number])} >>".encode()
        )
    return items


def _family(children: Sequence[int]) -> str:
    return (
        f" /First {children[0]} 0 R /Last {children[-1]} 0 R /Count {len(children)}"
        if children
        else ""
    )
