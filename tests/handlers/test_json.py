"""JSON: its layout and spelling, its shape, and values by pointer or path."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from fetchstash.errors import BadArgument, FetchstashError, NoText, OutOfRange
from fetchstash.handlers import ExtractLimits, Hints, PartText
from fetchstash.handlers._data._json import preview
from fetchstash.handlers._data._json_values import WIDTH, find_keys, has_long_lines, lay_out
from fetchstash.text import PreviewLimits, tokens
from tests.handlers.conftest import Read, Save
from tests.handlers.parts import handler_named, text_part

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=60,
)


@pytest.mark.long
@given(values, st.sampled_from([None, 1, 4]), st.booleans())
def test_laying_out_changes_no_value(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert json.loads("".join(lay_out(text))) == value


@given(st.text(alphabet='{}[]",:\\ \n1ax'))
def test_laying_out_keeps_all_of_a_text_that_is_no_json(text: str) -> None:
    assert "".join("".join(lay_out(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("length", "on_one_line"), [(WIDTH - 1, True), (WIDTH, True), (WIDTH + 1, False)]
)
def test_a_value_stands_on_one_line_if_it_fits(length: int, *, on_one_line: bool) -> None:
    record = '{"a":"' + "x" * (length - 8) + '"}'
    assert len(record) == length
    lines = "".join(lay_out(f"[{record},{record}]")).splitlines()
    assert (lines[1] == f"  {record},") is on_one_line


@pytest.mark.parametrize("comma", [",", ", ", ",\n"])
def test_a_long_array_has_a_line_for_each_item_to_its_end(comma: str) -> None:
    items = [f"{number}.125" for number in range(30_000)]
    lines = "".join(lay_out(f"[{comma.join(items)}]")).splitlines()
    assert lines == ["[", *(f"  {item}," for item in items[:-1]), f"  {items[-1]}", "]"]


def test_a_short_value_stands_on_one_line_wherever_a_batch_ends() -> None:
    records = ['{"a":[1,2,3],"b":{"c":4}}'] * 9_000
    lines = "".join(lay_out(f"[{','.join(records)}]")).splitlines()
    assert lines[1:-1] == [*(f"  {record}," for record in records[:-1]), f"  {records[-1]}"]


def test_small_values_stand_on_one_line_however_deep_they_are_nested() -> None:
    record = '{"a":[[[[[{"b":{"c":[[]]}}]]]]]}'
    assert f"  {record},\n" in "".join(lay_out(f"[{record},{record},{'1,' * 200}1]"))


def test_numbers_and_strings_keep_their_spelling() -> None:
    text = (
        '{"a":1.10,"b":1E5,"c":-0,"d":123456789012345678901234567890,"e":"\\u00e9\\/","f":['
        + "1.0," * 60
        + "2.50]}"
    )
    laid_out = "".join(lay_out(text))
    assert '"a": 1.10,' in laid_out
    for spelling in ('"b": 1E5,', '"c": -0,', f"{'1234567890' * 3},", '"\\u00e9\\/"', "  2.50\n"):
        assert spelling in laid_out


@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_deep_nesting_costs_no_stack_and_little_space(depth: int) -> None:
    laid_out = "".join(lay_out("[" * depth + "]" * depth))
    assert len(laid_out) < depth * 2 * 25


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        "[" * 1_000_000,
        '{"a":' * 300_000,
        "[" + ",".join(["[" * 900 + "]" * 900] * 600) + "]",
        "[" + "[],{}," * 200_000 + "1]",
    ],
    ids=["brackets", "objects", "many that are deep", "many that are empty"],
)
def test_brackets_without_values_grow_to_four_times_their_length_at_the_most(text: str) -> None:
    laid_out = "".join(lay_out(text))
    assert len(laid_out) < 4 * len(text)
    assert "".join(laid_out.split()) == text
    assert max(map(len, laid_out.split("\n"))) <= 2 * WIDTH


def test_a_document_of_short_lines_is_kept_unchanged(read: Read) -> None:
    source = '{\n    "b" : 1.10,\n\n  "a": [ 1,2 ]\n}\n'
    found, text = read("json", source.encode())
    assert text == source
    assert not has_long_lines(text)
    assert found.facts.structure_info == "object of 2 keys: b, a"


def test_the_outline_names_the_keys_and_their_lines(save: Save) -> None:
    value = {
        "meta": {"v": 1},
        "items": [{"id": i, "note": "x" * 20} for i in range(9_000)],
        "ta\u0301il": "x",
    }
    found = handler_named("json").extract(
        save(json.dumps(value).encode()), Hints(), ExtractLimits()
    )
    text = ""
    headings: list[tuple[str, int]] = []
    for part in found.parts or ():
        headings += [(h.title, h.start + text.count("\n")) for h in part.headings]
        text += part.text
    assert [title for title, _ in headings] == ["meta", "items", "ta\u0301il"]
    for title, line in headings:
        assert text.split("\n")[line - 1].lstrip().startswith(json.dumps(title))
    assert json.loads(text) == value


@pytest.mark.parametrize(
    "text",
    [
        '["' + '\\"' * 100_000 + '"]',
        '["' + "\\\\" * 100_000 + '"]',
        "[" + '"a",' * 100_000 + '"b"]',
        '{"a":["b' + '\\"' * 100_000,
        "[{" * 1_000,
        '{"a":' + '["b"' * 1_000,
    ],
)
def test_json_of_many_pieces_is_laid_out_without_loss(text: str) -> None:
    assert "".join("".join(lay_out(text)).split()) == text
    find_keys(text, 100)


def test_keys_are_found_in_text_that_is_kept() -> None:
    text = json.dumps({"a": 1, "b": [1, [2, [3, [4, [5]]]]], "c": {"d": "}"}}, indent=1)
    keys = find_keys(text, 100)
    assert [key for key, _ in keys] == ['"a"', '"b"', '"c"']
    assert [text.split("\n")[line - 1].strip()[:3] for _, line in keys] == ['"a"', '"b"', '"c"']


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/items/1/name", '"two"\n', id="a pointer"),
        pytest.param("/a~1b", "1\n", id="a pointer with a slash in a key"),
        pytest.param("/m~0n", "8\n", id="a pointer with a tilde in a key"),
        pytest.param("/", '"empty"\n', id="the empty key"),
        pytest.param(
            "items",
            '[{"name": "one", "n": 1.10}, {"name": "two", "n": 2}]\n',
            id="a key of the outline",
        ),
        pytest.param("$.items[0]", '{"name": "one", "n": 1.10}\n', id="a path to one value"),
        pytest.param("$.items[*].name", '["one", "two"]\n', id="a path to several values"),
        pytest.param("$.items[?@.n > 1.5].name", '["two"]\n', id="a path with a filter"),
        pytest.param("$..n", "[1.10, 2]\n", id="descendants"),
    ],
)
def test_a_part_is_found_by_pointer_or_path(save: Save, path: str, expected: str) -> None:
    source = save(
        b'{"items": [{"name": "one", "n": 1.10}, {"name": "two", "n": 2}], "a/b": 1, "m~n": 8, "": "empty"}'
    )
    assert text_part("json", source, path).text == expected


@pytest.mark.parametrize(
    ("path", "error"),
    [
        pytest.param("/items/1", OutOfRange, id="past the end"),
        pytest.param("/items/01", OutOfRange, id="an index with a leading zero"),
        pytest.param("/items/-1", OutOfRange, id="a negative index"),
        pytest.param("/none", OutOfRange, id="a key that is not there"),
        pytest.param("/items/0/0", OutOfRange, id="a step into a number"),
        pytest.param("$.none", OutOfRange, id="a path that matches nothing"),
        pytest.param("$.a[", BadArgument, id="a broken path"),
    ],
)
def test_a_missing_part_gives_one_clear_line(save: Save, path: str, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        text_part("json", save(b'{"items": [1]}'), path)
    assert "\n" not in str(raised.value)


def test_lines_of_a_part_are_counted_inside_of_it(save: Save) -> None:
    source = save(json.dumps({"items": [{"id": i, "t": "x" * 50} for i in range(100)]}).encode())
    found = text_part("json", source, "/items", start=78, end=79)
    assert found == PartText(
        "".join(f'  {{"id": {i}, "t": "{"x" * 50}"}},\n' for i in (76, 77)), 102
    )


def test_invalid_json_is_kept_and_has_no_paths(read: Read, save: Save) -> None:
    source = '{\n  // a comment\n  "a": 1, "b": "' + "x" * 300 + '",\n}\n'
    found, text = read("json", source.encode())
    assert (text, found.facts.structure_info) == (source, "")
    assert found.facts.extraction_error.startswith("This is not valid JSON: it is kept")
    with pytest.raises(NoText):
        text_part("json", save(source.encode()), "/a")


@pytest.mark.long
@given(values)
def test_a_preview_costs_at_most_300_tokens(value: Any) -> None:
    shown = preview(value, PreviewLimits())
    assert tokens.count(f"{shown.text}\n{shown.sample}").tokens <= 300
    assert not shown.sample or json.loads(shown.sample) is not Ellipsis


def test_a_preview_is_the_shape_and_a_valid_sample() -> None:
    rng = random.Random(1)
    value = {
        "total": 3_000,
        "items": [
            {"id": i, "tag": rng.choice(["a", None]), "geo": {"lat": 1.5}} for i in range(3_000)
        ],
    }
    shown = preview(value, PreviewLimits())
    assert shown.text.startswith(
        "object\n  total: integer\n  items: array of 3,000 objects\n    id: integer\n"
    )
    assert "\n    geo: object\n      lat: number" in shown.text
    sample = json.loads(shown.sample)
    assert sample["total"] == 3_000
    assert sample["items"][-1].endswith("more")


def test_json_lines_are_kept_one_a_line(read: Read) -> None:
    found, text = read("jsonl", b'{"a": 1}\n\n{"a": 2, "b": "x"}\r\n{"a": null}')
    assert text == '{"a": 1}\n{"a": 2, "b": "x"}\n{"a": null}\n'
    assert (found.facts.rows, found.facts.structure_info) == (3, "3 records: a")
    assert found.preview.text.startswith("3 records, objects\n  a: integer | null\n  b?: string")


def test_a_preview_of_json_lines_counts_all_records(read: Read) -> None:
    found, _ = read(
        "jsonl", b"".join(b'{"id": %d, "words": "%s"}\n' % (n, b"word " * 9) for n in range(3_000))
    )
    *shown, more = json.loads(found.preview.sample)
    assert [record["id"] for record in shown] == list(range(len(shown)))
    assert more == f"… {3_000 - len(shown):,} more"
    assert (found.preview.rows_shown, found.preview.total_rows) == (len(shown), 3_000)


def test_a_record_of_json_lines_is_found_by_its_index(save: Save) -> None:
    source = save(b'{"a": 1}\n{"a": 2}\nbroken\n')
    assert text_part("jsonl", source, "/1/a").text == "2\n"
    assert text_part("jsonl", source, "$[*].a").text == "[1, 2]\n"


@pytest.mark.parametrize("text", ['"words"', "42", "null", "[]"])
def test_a_document_of_one_value_is_read(read: Read, text: str) -> None:
    assert read("json", text.encode())[1].strip() == text


# --- Values of XML, YAML and TOML by path, their spelling, and hostile documents.

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
    return text_part("yaml", source, path, hints=hints).text


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
        ("~", None),
        ("null", None),
        ("", None),
        ("True", True),
        ("false", False),
        ("yes", "yes"),
        ("12", 12),
        ("-3.5e2", -350.0),
        ("0x1F", "0x1F"),
        (".inf", ".inf"),
        ("12:30", "12:30"),
        ("2026-11-21", "2026-11-21"),
        ("'12'", "12"),
        ("!!str 12", "12"),
        ("!!int 12", 12),
        ("!custom 12", "12"),
    ],
)
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
    assert text_part("xml", save(CATALOGUE), path).text == matches


def test_an_element_that_is_one_long_line_comes_on_lines(save: Save) -> None:
    source = save(b"<r><list>" + b"<item>some words</item>" * 20 + b"</list></r>")
    assert text_part("xml", source, "/r/list").text.count("\n") == 21


def test_the_label_decides_the_charset(save: Save) -> None:
    source = save("<r><a>Łódź</a></r>".encode("iso-8859-2"))
    hints = Hints(charset="iso-8859-2")
    assert text_part("xml", source, "/r/a/text()", hints=hints).text == "Łódź\n"


def test_a_feed_has_paths_of_elements_too(save: Save) -> None:
    feed = (
        b"<rss><channel><item><title>A</title></item><item><title>B</title></item></channel></rss>"
    )
    assert text_part("feed", save(feed), "//item[2]/title/text()").text == "B\n"


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
        text_part("xml", save(data), path)


def test_no_picture_is_made_of_an_svg(save: Save) -> None:
    with pytest.raises(BadArgument, match="not rendered"):
        text_part("xml", save(b"<svg/>"), render="image")
