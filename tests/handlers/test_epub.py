"""EPUB: chapters in reading order as Markdown; locked books are reported."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import pytest

from fetchstash.errors import NoText
from fetchstash.handlers import route_file
from tests.handlers.conftest import Pack, Read, Save

CONTAINER = '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
PACKAGE = """<package xmlns:dc="dc"><metadata><dc:title>The Book</dc:title><dc:creator>Ada</dc:creator><dc:language>en</dc:language>
<dc:date>2026-05-01</dc:date></metadata>
<manifest><item id="b" href="two.xhtml"/><item id="a" href="chapter%20one.xhtml"/>
<item id="gone" href="gone.xhtml"/></manifest>
<spine><itemref idref="a"/><itemref idref="b"/>
<itemref idref="a"/><itemref idref="gone"/><itemref idref="unknown"/></spine></package>"""
ONE = '<!DOCTYPE html><html><body><h1>One</h1><p>First&nbsp;text.</p><p style="display:none">hidden order</p></body></html>'
TWO = "<html><body><h1>Two</h1><ul><li>a</li><li>b</li></ul></body></html>"
BOOK = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": CONTAINER,
    "OPS/book.opf": PACKAGE,
    "OPS/two.xhtml": TWO,
    "OPS/chapter one.xhtml": ONE,
}


def locked(algorithm: str) -> dict[str, str]:
    method = f'<e:EncryptionMethod Algorithm="{algorithm}"/>'
    return {
        "META-INF/encryption.xml": f'<encryption xmlns:e="e"><e:EncryptedData>{method}</e:EncryptedData></encryption>'
    }


def test_chapters_come_in_reading_order_each_once_without_hidden_text(
    read: Read, pack: Pack
) -> None:
    extracted, text = read("epub", pack(BOOK))
    assert "".join(text.split()) == "#OneFirsttext.#Two-a-b"
    assert extracted.facts.hidden_removed == 1
    assert (
        extracted.facts.title,
        extracted.facts.author,
        extracted.facts.language,
        extracted.facts.published,
    ) == ("The Book", "Ada", "en", "2026-05-01")


def test_a_book_whose_fonts_alone_are_obfuscated_is_read(read: Read, pack: Pack) -> None:
    obfuscated = locked("http://www.idpf.org/2008/embedding")
    assert "# One" in read("epub", pack(BOOK | obfuscated))[1]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"META-INF/container.xml": "<container/>"}, "the container holds no book"),
        (locked("http://www.w3.org/2001/04/xmlenc#aes256-cbc"), "locked by rights management"),
        ({"OPS/book.opf": "<package>"}, "its XML is damaged"),
        ({"OPS/book.opf": "<package/>"}, "the book holds no text"),
    ],
    ids=["no package", "rights management", "open end", "no chapters"],
)
def test_a_file_that_is_no_book_gives_one_clear_line(
    read: Read, pack: Pack, changed: dict[str, str], reason: str
) -> None:
    with pytest.raises(NoText, match=reason):
        read("epub", pack(BOOK | changed))


@pytest.mark.parametrize("names", [list(BOOK), list(BOOK)[::-1]], ids=["compressed", "late"])
def test_a_book_is_recognised_wherever_its_type_is(
    save: Save, pack: Pack, names: list[str]
) -> None:
    source = save(pack({name: BOOK[name] for name in names}))
    assert route_file(source, {}, "").media_type == "application/epub+zip"
