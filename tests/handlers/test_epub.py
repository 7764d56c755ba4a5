"""EPUB: chapters in reading order as Markdown; locked books are reported."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import pytest

from fetchstash.handlers import route_file
from tests.handlers.conftest import Read, Save, check_facts, unreadable
from tests.handlers.hostile.documents import packed

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


def test_chapters_come_in_reading_order_each_once_without_hidden_text(read: Read) -> None:
    extracted, text = read("epub", packed(BOOK))
    assert "".join(text.split()) == "#OneFirsttext.#Two-a-b"
    assert extracted.facts.hidden_removed == 1
    check_facts(extracted, title="The Book", author="Ada", language="en", published="2026-05-01")


def test_a_book_whose_fonts_alone_are_obfuscated_is_read(read: Read) -> None:
    obfuscated = locked("http://www.idpf.org/2008/embedding")
    assert "# One" in read("epub", packed(BOOK | obfuscated))[1]


test_a_file_that_is_no_book_gives_one_clear_line = unreadable("epub", {
    "no package": (packed(BOOK | {"META-INF/container.xml": "<container/>"}), "the container holds no book"),
    "rights management": (packed(BOOK | locked("http://www.w3.org/2001/04/xmlenc#aes256-cbc")), "locked by rights management"),
    "open end": (packed(BOOK | {"OPS/book.opf": "<package>"}), "its XML is damaged"),
    "no chapters": (packed(BOOK | {"OPS/book.opf": "<package/>"}), "the book holds no text"),
})  # fmt: skip


@pytest.mark.parametrize("names", [list(BOOK), list(BOOK)[::-1]], ids=["compressed", "late"])
def test_a_book_is_recognised_wherever_its_type_is(save: Save, names: list[str]) -> None:
    source = save(packed({name: BOOK[name] for name in names}))
    assert route_file(source, {}, "").media_type == "application/epub+zip"
