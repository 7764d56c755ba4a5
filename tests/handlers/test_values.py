"""Values of XML, YAML and TOML by path, their spelling, and hostile documents."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import json
from pathlib import Path
from typing import Any

import pytest

from fetchstash.errors import BadArgument, FetchstashError, NoText, OutOfRange
from fetchstash.handlers import Hints, PartRequest
from tests.handlers.conftest import Save
from tests.handlers.parts import text_part

COMPOSE = """\
x-base: &base {restart: always, ports: [80, 443]}
services:
  web:
    <<: *base
    image: "nginx:1.10"
    version: 1.10
    ports: [8080]
  db:
    <<: [*base, {restart: never, image: postgres}]
    environment:
      COUNTRY: no
      ZIP: 01234
      NOTE: |
        first
        second
"""


def part(source: Path, path: str, media_type: str = "application/yaml") -> str:
    hints = Hints(media_type=media_type)
    return text_part("yaml", PartRequest(source=source, path=path, hints=hints)).text


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/services/web/image", "nginx:1.10"),
        ("/services/web/version", 1.10),
        ("/services/web/restart", "always"),
        ("/services/web/ports", [8080]),
        ("/services/db/restart", "always"),
        ("/services/db/image", "postgres"),
        ("/services/db/environment/COUNTRY", "no"),
        ("/services/db/environment/ZIP", "01234"),
        ("/services/db/environment/NOTE", "first\nsecond\n"),
        ("$.services[*].restart", ["always", "always"]),
    ],
)
def test_a_path_names_a_value(save: Save, path: str, expected: Any) -> None:
    assert json.loads(part(save(COMPOSE.encode()), path)) == expected


def test_numbers_keep_their_spelling(save: Save) -> None:
    assert part(save(COMPOSE.encode()), "/services/web/version") == "1.10\n"


def test_several_documents_are_a_list(save: Save) -> None:
    assert part(save(b"kind: Pod\n---\nkind: Service\n"), "/1/kind") == '"Service"\n'


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("~", None), ("null", None), ("", None), ("True", True), ("false", False), ("yes", "yes"),
        ("12", 12), ("-3.5e2", -350.0), ("0x1F", "0x1F"), (".inf", ".inf"), ("12:30", "12:30"),
        ("2026-11-21", "2026-11-21"), ("'12'", "12"), ("!!str 12", "12"), ("!!int 12", 12),
        ("!custom 12", "12"),
    ],
)  # fmt: skip
def test_scalars_are_what_the_core_schema_says_or_their_own_text(
    save: Save, scalar: str, value: Any
) -> None:
    assert json.loads(part(save(f"a: {scalar}\n".encode()), "/a")) == value


def test_keys_that_are_no_text_are_written_out(save: Save) -> None:
    source = save(b"1: a\n? [x, y]\n: b\nnull: c\n")
    assert json.loads(part(source, "$")) == {"1": "a", '["x", "y"]': "b", "null": "c"}


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefg", "bcdefgh", strict=True)
)
MERGES = "a: &a {k: 1}\n" + "".join(
    f"{new}: &{new} {{<<: [{', '.join([f'*{old}'] * 10)}]}}\n"
    for old, new in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [1", "not valid YAML"),
        ("a: *missing\n", "missing or holds itself"),
        ("a: &a [*a]\n", "missing or holds itself"),
        ("a: " + "[" * 100_000, "nested deeper than 500"),
        (LAUGHS, "more than 1,000,000 values"),
        (MERGES, "more than 1,000,000 values"),
    ],
    ids=["cut", "no anchor", "in itself", "deep", "billion laughs", "merge keys"],
)
def test_an_unreadable_file_gives_one_line(save: Save, text: str, reason: str) -> None:
    with pytest.raises(NoText, match=reason):
        part(save(text.encode()), "/a")


@pytest.mark.parametrize(("path", "error"), [("/b", OutOfRange), ("$[", BadArgument)])
def test_a_path_that_finds_nothing_says_so(save: Save, path: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        part(save(b"a: 1\n"), path)


def test_toml_has_paths_as_well(save: Save) -> None:
    source = save(
        b'[tool.x]\nversion = 1.10\nday = 2026-11-21\nat = [07:30:00]\n\n[[tool.x.items]]\nname = "a"\n'
    )
    assert part(source, "/tool/x", "application/toml") == (
        '{"version": 1.10, "day": "2026-11-21", "at": ["07:30:00"], "items": [{"name": "a"}]}\n'
    )
    with pytest.raises(NoText, match="not valid TOML"):
        part(save(b"a = "), "/a", "application/toml")


def test_ini_has_none(save: Save) -> None:
    with pytest.raises(NoText, match="INI has sections"):
        part(save(b"[a]\nb=1\n"), "/a", "text/x-ini")


CATALOGUE = """\
<?xml version="1.0" encoding="iso-8859-1"?>
<c:catalogue xmlns:c="urn:c" xmlns:xlink="urn:x">
  <c:book id="b1" xlink:href="/1"><c:title>Één</c:title><c:price>5</c:price></c:book>
  <c:book id="b2"><c:title>Two <em>and</em> a half</c:title></c:book>
  <note>a:b</note>
</c:catalogue>
""".encode("latin-1")


def part_of_xml_values(source: Path, path: str) -> str:
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
    assert part_of_xml_values(save(CATALOGUE), path) == matches


def test_an_element_that_is_one_long_line_comes_on_lines(save: Save) -> None:
    source = save(b"<r><list>" + b"<item>some words</item>" * 20 + b"</list></r>")
    assert part_of_xml_values(source, "/r/list").count("\n") == 21


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
        part_of_xml_values(save(data), path)


def test_no_picture_is_made_of_an_svg(save: Save) -> None:
    with pytest.raises(BadArgument, match="not rendered"):
        text_part("xml", PartRequest(source=save(b"<svg/>"), render="image"))
