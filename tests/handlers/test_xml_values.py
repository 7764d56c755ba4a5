"""Elements, attributes and texts of XML by path."""

from pathlib import Path

import pytest

from fetchstash.errors import BadArgument, FetchstashError, NoText, OutOfRange
from fetchstash.handlers import Hints, PartRequest
from tests.handlers.conftest import Save
from tests.handlers.parts import text_part

CATALOGUE = """\
<?xml version="1.0" encoding="iso-8859-1"?>
<c:catalogue xmlns:c="urn:c" xmlns:xlink="urn:x">
  <c:book id="b1" xlink:href="/1"><c:title>Één</c:title><c:price>5</c:price></c:book>
  <c:book id="b2"><c:title>Two <em>and</em> a half</c:title></c:book>
  <note>a:b</note>
</c:catalogue>
""".encode("latin-1")


def part(source: Path, path: str) -> str:
    return text_part("xml", PartRequest(source=source, path=path)).text


@pytest.mark.parametrize(
    ("path", "matches"),
    [
        ("/catalogue/book[1]/title", "<title>Één</title>\n"),
        ("/c:catalogue/c:book[2]/c:title", "<title>Two <em>and</em> a half</title>\n"),
        ("//title/text()", "Één\nTwo and a half\n"),
        ("//book/@id", "b1\nb2\n"),
        ("/catalogue/book[1]/@xlink:href", "/1\n"),
        ("//book[@id='b2']/title", "<title>Two <em>and</em> a half</title>\n"),
        ("//book[price]/@id", "b1\n"),
        ("/catalogue/*/price/text()", "5\n"),
        ("/catalogue/note[.='a:b']", "<note>a:b</note>\n"),
        ("//book[1]", '<book id="b1" href="/1"><title>Één</title><price>5</price></book>\n'),
    ],
)
def test_a_path_names_elements_attributes_and_texts(save: Save, path: str, matches: str) -> None:
    assert part(save(CATALOGUE), path) == matches


def test_an_element_that_is_one_long_line_comes_on_lines(save: Save) -> None:
    source = save(b"<r><list>" + b"<item>some words</item>" * 20 + b"</list></r>")
    assert part(source, "/r/list").count("\n") == 21


def test_the_label_decides_the_charset(save: Save) -> None:
    source = save("<r><a>Łódź</a></r>".encode("iso-8859-2"))
    hints = Hints(charset="iso-8859-2")
    part_text = text_part("xml", PartRequest(source=source, path="/r/a/text()", hints=hints))
    assert part_text.text == "Łódź\n"


def test_a_feed_has_paths_of_elements_too(save: Save) -> None:
    feed = (
        b"<rss><channel><item><title>A</title></item><item><title>B</title></item></channel></rss>"
    )
    part_text = text_part("feed", PartRequest(source=save(feed), path="//item[2]/title/text()"))
    assert part_text.text == "B\n"


@pytest.mark.parametrize(
    ("data", "path", "error", "words"),
    [
        (CATALOGUE, "/catalogue/film", OutOfRange, "nothing at '/catalogue/film'"),
        (CATALOGUE, "//book/@isbn", OutOfRange, "nothing at"),
        (CATALOGUE, "//book[", BadArgument, "no path to elements"),
        (CATALOGUE, "//book[@id=", BadArgument, "no path to elements"),
        (b"<a><b></a>", "/a", NoText, "damaged at line 1"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "/a", NoText, "declares entities"),
        (b"<a>" * 2_000 + b"</a>" * 2_000, "//a", NoText, "nested deeper than 1,000"),
    ],
    ids=["no element", "no attribute", "no path", "cut path", "damaged", "entities", "deep"],
)
def test_a_path_without_a_match_gives_one_clear_line(
    save: Save, data: bytes, path: str, error: type[FetchstashError], words: str
) -> None:
    with pytest.raises(error, match=words):
        part(save(data), path)


def test_no_picture_is_made_of_an_svg(save: Save) -> None:
    with pytest.raises(BadArgument, match="not rendered"):
        text_part("xml", PartRequest(source=save(b"<svg/>"), render="image"))
