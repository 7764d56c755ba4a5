"""Text of a PDF that is seen stays; ``HIDDEN`` is what nobody sees.

That it is left out and counted is in the table of all formats: test_unseen_text.py.
"""

import pytest

from tests.handlers.conftest import Read
from tests.handlers.pdf_pages import pages, stream, text, write_objects

SEEN = text(60, 760, "The gates are seen.")
WHITE, BLACK = b"1 1 1 rg\n", b"0 0 0 rg\n"


def box(x: float, y: float, width: float, height: float, colour: bytes = BLACK) -> bytes:
    return colour + f"{x} {y} {width} {height} re f\n".encode() + BLACK


SECRET = text(60, 700, "TWILIGHT")


def picture(x: int, y: int, wide: int, high: int) -> bytes:
    """Return a picture of one white pixel, as large as a box."""
    place = f"q {wide} 0 0 {high} {x} {y} cm\n".encode()
    return place + b"BI /W 1 /H 1 /CS /G /BPC 8 ID \xff EI Q\n"


HIDDEN = {
    "white": WHITE + SECRET + BLACK,
    "white on a white box": box(50, 680, 300, 40, WHITE) + WHITE + SECRET + BLACK,
    "nearly white": b".99 .99 .99 rg\n" + SECRET + BLACK,
    "transparent": b"/Faint gs\n" + SECRET + b"/Plain gs\n",
    "under a black box": SECRET + box(50, 690, 300, 30),
    "under a white box": SECRET + box(50, 690, 300, 30, WHITE),
    "under a picture": SECRET + picture(50, 690, 300, 30),
    "in a layer that is off": b"/OC /Off BDC\n" + SECRET + b"EMC\n",
    "white and on its side": WHITE
    + b"q 0 1 -1 0 30 300 cm\n"
    + text(0, 0, "TWILIGHT")
    + b"Q\n"
    + BLACK,
    "white within a form": b"/Form Do\n",
    "in a form whose layer is off": b"/Layered Do\n",
    "a member of layers that are off": b"/OC /AllOff BDC\n" + SECRET + b"EMC\n",
    "not a member of a layer that is on": b"/OC /NotOn BDC\n" + SECRET + b"EMC\n",
}
VISIBLE = {
    "black": SECRET,
    "white on black": box(50, 690, 300, 30) + WHITE + SECRET + BLACK,
    "grey": b".6 .6 .6 rg\n" + SECRET + BLACK,
    "on a grey box": box(50, 690, 300, 30, b".9 .9 .9 rg\n") + SECRET,
    "marked through a faint box": SECRET + b"/Half gs\n" + box(50, 690, 300, 30) + b"/Plain gs\n",
    "under a scan of the page": SECRET + picture(0, 0, 595, 842),
    "beside a black box": SECRET + box(200, 690, 300, 30),
    "struck through": SECRET + box(50, 702, 300, 1),
    "without ink, as a scan's layer": b"3 Tr\n" + SECRET + b"0 Tr\n",
    "in a layer that is on": b"/OC /On BDC\n" + SECRET + b"EMC\n",
    "in a form whose layer is on": b"/LayeredOn Do\n",
    "a member of a layer that is on": b"/OC /AnyOn BDC\n" + SECRET + b"EMC\n",
}


def document(content: bytes) -> bytes:
    """Return a page with states of transparency, two layers and a form."""
    states = (
        "/ExtGState << /Faint << /ca 0 /CA 0 >> /Half << /ca .4 >> /Plain << /ca 1 /CA 1 >> >>"
        " /Properties << /Off 6 0 R /On 7 0 R /AllOff 9 0 R /AnyOn 10 0 R /NotOn 11 0 R >>"
        " /XObject << /Form 8 0 R /Layered 12 0 R /LayeredOn 13 0 R >>"
    )
    fonts = "/Font << /F1 3 0 R >>"
    resources = f"<< {fonts} {states} >>"
    form = f"/Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources << {fonts} >>"
    return write_objects(
        [
            b"<< /Type /Catalog /Pages 2 0 R /OCProperties %s >>"
            % b"<< /OCGs [6 0 R 7 0 R] /D << /OFF [6 0 R] >> >>",
            b"<< /Type /Pages /Kids [4 0 R] /Count 1 /MediaBox [0 0 595 842] >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
            f"<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Resources {resources} >>".encode(),
            stream(SEEN + content),
            b"<< /Type /OCG /Name (Notes) >>",
            b"<< /Type /OCG /Name (Plan) >>",
            stream(WHITE + SECRET, form),
            b"<< /Type /OCMD /OCGs [6 0 R] >>",
            b"<< /Type /OCMD /OCGs [6 0 R 7 0 R] /P /AnyOn >>",
            b"<< /Type /OCMD /OCGs [7 0 R] /P /AllOff >>",
            stream(SECRET, f"{form} /OC 6 0 R"),
            stream(SECRET, f"{form} /OC 7 0 R"),
        ]
    )


@pytest.mark.whole
@pytest.mark.parametrize("content", list(VISIBLE.values()), ids=list(VISIBLE))
def test_text_that_is_seen_stays(read: Read, content: bytes) -> None:
    extracted, shown = read("pdf", document(content))
    assert "TWILIGHT" in shown
    assert extracted.facts.hidden_removed == 0


def test_a_page_of_hidden_text_alone_is_no_text(read: Read) -> None:
    extracted, shown = read("pdf", pages(SEEN, WHITE + SECRET))
    assert "TWILIGHT" not in shown
    assert "[Page 2]\n" in shown
    assert extracted.facts.hidden_removed == 1
