"""Write PDF pages of words at places, and of rules, for tests."""

# ruff: noqa: E501 - an object on one line reads better than in pieces

from collections.abc import Sequence

from fetchstash.cli.demo.pdf import stream, write_objects

FONTS = (b"Helvetica", b"Courier")


def text(x: float, y: float, words: str, *, font: int = 1) -> bytes:
    """Return the operators that show ``words`` at ten points; font 2 is of fixed width."""
    shown = words.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return f"BT /F{font} 10 Tf {x} {y} Td ({shown}) Tj ET\n".encode()


def line(x0: float, y0: float, x1: float, y1: float) -> bytes:
    """Return the operators that draw a line."""
    return f"{x0} {y0} m {x1} {y1} l S\n".encode()


def grid(xs: Sequence[float], ys: Sequence[float]) -> bytes:
    """Return the operators that draw a whole grid."""
    across = b"".join(line(xs[0], y, xs[-1], y) for y in ys)
    return across + b"".join(line(x, ys[0], x, ys[-1]) for x in xs)


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
    return write_objects([
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R 7 0 R] /Count 2 /MediaBox [0 0 595 842] >>",
        b"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 8 0 R >> >> /Contents 9 0 R >>",
        b"<< /Type /Font /Subtype /Type0 /BaseFont /F /Encoding /Identity-H /DescendantFonts [5 0 R] >>",
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /F %s /DW 500 /FontDescriptor 6 0 R >>" % system,
        descriptor,
        b"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 4 0 R >> >> /Contents 10 0 R >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        stream(b"BT /F1 10 Tf 60 780 Td (%s) Tj ET" % SENTENCE.encode()),
        stream(shown.encode()),
    ])  # fmt: skip
