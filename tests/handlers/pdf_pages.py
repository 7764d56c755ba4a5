"""Write PDFs for tests: objects as they are, and pages of words at places and of rules."""

# ruff: noqa: E501 - an object on one line reads better than in pieces

import zlib
from collections.abc import Iterable, Sequence

FONTS = (b"Helvetica", b"Courier", b"Helvetica-Bold")


def write_objects(objects: Iterable[bytes]) -> bytes:
    """Return a file of ``objects`` with its cross-reference table and trailer (section 7.5).

    Objects are numbered from 1; the first is the catalog.
    """
    # The comment of four high bytes marks the file as binary (section 7.5.2).
    body = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    entries = [b"0000000000 65535 f \n"]
    for number, content in enumerate(objects, start=1):
        entries.append(f"{len(body):010} 00000 n \n".encode())
        body += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    table_at = len(body)
    trailer = f"<< /Size {len(entries)} /Root 1 0 R >>"
    body += f"xref\n0 {len(entries)}\n".encode() + b"".join(entries)
    body += f"trailer\n{trailer}\nstartxref\n{table_at}\n%%EOF\n".encode()
    return bytes(body)


def stream(content: bytes, entries: str = "") -> bytes:
    """Return a deflated stream object of ``content`` with these ``entries`` (section 7.3.8)."""
    packed = zlib.compress(content, 9)
    head = f"<< {entries} /Filter /FlateDecode /Length {len(packed)} >>\nstream\n"
    return head.encode() + packed + b"\nendstream"


def text(x: float, y: float, words: str, *, font: int = 1, size: float = 10) -> bytes:
    """Return the operators that show ``words``; font 2 is of fixed width, font 3 is bold."""
    shown = words.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return f"BT /F{font} {size} Tf {x} {y} Td ({shown}) Tj ET\n".encode("cp1252")


def line(x0: float, y0: float, x1: float, y1: float) -> bytes:
    """Return the operators that draw a line."""
    return f"{x0} {y0} m {x1} {y1} l S\n".encode()


def grid(xs: Sequence[float], ys: Sequence[float]) -> bytes:
    """Return the operators that draw a whole grid."""
    across = b"".join(line(xs[0], y, xs[-1], y) for y in ys)
    return across + b"".join(line(x, ys[0], x, ys[-1]) for x in xs)


def lines(top: float, *rows: str, left: float = 60, leading: float = 13, font: int = 1) -> bytes:
    """Return the operators that show lines of text, one under the other."""
    places = enumerate(rows)
    return b"".join(text(left, top - leading * n, row, font=font) for n, row in places)


def pages(*contents: bytes, rotate: int = 0, width: int = 595, height: int = 842) -> bytes:
    """Return a PDF with a page for each content stream."""
    first = 3 + len(FONTS)
    kids = " ".join(f"{first + 2 * index} 0 R" for index in range(len(contents)))
    box = f"/MediaBox [0 0 {width} {height}] /Rotate {rotate}"
    named = " ".join(f"/F{number} {number + 2} 0 R" for number in range(1, len(FONTS) + 1))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(contents)} {box} >>".encode(),
        *(
            b"<< /Type /Font /Subtype /Type1 /BaseFont /%s /Encoding /WinAnsiEncoding >>" % font
            for font in FONTS
        ),
    ]
    for index, content in enumerate(contents):
        page = f"/Resources << /Font << {named} >> >> /Contents {first + 2 * index + 1} 0 R"
        objects += [f"<< /Type /Page /Parent 2 0 R {page} >>".encode(), stream(content)]
    return write_objects(objects)


def form(content: bytes, *fields: tuple[str, str, tuple[int, int, int, int]]) -> bytes:
    """Return a page with a form: of each field the name, its entries, and where it stands."""
    refs = " ".join(f"{6 + number} 0 R" for number in range(len(fields)))
    page = f"/Annots [{refs}] /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R"
    return write_objects(
        [
            f"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [{refs}] >> >>".encode(),
            b"<< /Type /Pages /Kids [4 0 R] /Count 1 /MediaBox [0 0 595 842] >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
            f"<< /Type /Page /Parent 2 0 R {page} >>".encode(),
            stream(content),
            *(
                f"<< /Type /Annot /Subtype /Widget /T ({name}) {entries}"
                f" /Rect [{' '.join(map(str, place))}] >>".encode()
                for name, entries, place in fields
            ),
        ]
    )


SENTENCE = "The wardens open the lower gate at the mark, and the reservoir fills slowly in spring. "


def unmapped(text: str, shift: int = 29) -> bytes:
    """Return a plain page, and one whose glyph numbers no table maps back to characters."""
    lines = [text[at : at + 60] for at in range(0, len(text), 60)]
    shown = "".join(
        f"BT /F1 10 Tf 60 {780 - 14 * n} Td <{''.join(f'{ord(c) - shift:04X}' for c in line)}> Tj ET\n"
        for n, line in enumerate(lines)
    )
    descriptor = (
        b"<< /Type /FontDescriptor /FontName /F /Flags 4 /FontBBox [0 0 1000 1000] /ItalicAngle 0"
        b" /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >>"
    )
    system = b"/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >>"
    return write_objects(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R 7 0 R] /Count 2 /MediaBox [0 0 595 842] >>",
            b"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 8 0 R >> >> /Contents 9 0 R >>",
            b"<< /Type /Font /Subtype /Type0 /BaseFont /F /Encoding /Identity-H /DescendantFonts [5 0 R] >>",
            b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /F %s /DW 500 /FontDescriptor 6 0 R >>"
            % system,
            descriptor,
            b"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 4 0 R >> >> /Contents 10 0 R >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
            stream(b"BT /F1 10 Tf 60 780 Td (%s) Tj ET" % SENTENCE.encode()),
            stream(shown.encode()),
        ]
    )
