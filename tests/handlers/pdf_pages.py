"""Write PDF pages of words at places, and of rules, for tests."""

from collections.abc import Sequence

from fetchstash.demo.pdf import stream, write_objects

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
