"""One value under each spelling of its path; fragments that name lines, pages, times and words."""

import json

import pytest

from fetchstash.errors import FetchstashError
from fetchstash.render import as_shown
from fetchstash.stash import Stash
from tests.loopback import Site

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]
STATIONS = {
    "stations": [{"name": f"Pier {n}", "tags": ["a", f"b{n}"]} for n in range(400)],
    "count": {"total": 7},
}


@pytest.mark.parametrize(
    "path",
    [
        "/stations/5",
        "$.stations[5]",
        "$['stations'][5]",
        ".stations[5]",
        "stations[5]",
        "stations.5",
        "$.stations.5",
        ".stations.5",
        "stations/5",
        '.["stations"][5]',
    ],
)
@pytest.mark.parametrize("file", ["a.json", "a.yaml"])
async def test_a_value_has_one_answer_under_each_spelling(
    path: str, file: str, stash: Stash, site: Site
) -> None:
    ref = (await stash.fetch(site.put(f"/{file}", json.dumps(STATIONS), None))).ref
    assert json.loads((await stash.slice(ref, path=path)).text) == STATIONS["stations"][5]  # type: ignore[index]
    name = f"{path}/name" if "/" in path else f"{path}.name"
    assert (await stash.slice(ref, path=name)).text.strip() == '"Pier 5"'


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".stations[].name", [f"Pier {n}" for n in range(400)]),
        ("stations[*].tags[1]", [f"b{n}" for n in range(400)]),
        ("stations.*.tags.1", [f"b{n}" for n in range(400)]),
        (".stations[-1].name", ["Pier 399"]),
        ("stations[1:3].name", ["Pier 1", "Pier 2"]),
        ("count.total", 7),
        (".", STATIONS),
        ("$..total", [7]),
        (".stations | length", 400),
        (".count|length", 1),
        ("stations.0.name | length", 6),
        ("$.stations[?@.name == 'Pier 7'] | length", 1),
        ("stations | length", 400),
        ("stations.length", 400),
        ("#/stations/5/name", "Pier 5"),
        ("stations[5][name]", "Pier 5"),
        ('.stations[] | select(.name == "Pier 7") | .tags[1]', ["b7"]),
        ('.stations | map(select(.tags[1] == "b7" or .name == "Pier 9")) | length', 2),
        (
            '.stations[] | select(.name | endswith("39")) | .name',
            [f"Pier {n}39" for n in ("", 1, 2, 3)],
        ),
        ('.stations[] | select(.tags and .name != "Pier 0") | .name | length', 399),
        (".stations | map(.name) | first", "Pier 0"),
        ("[.stations[].name] | last", "Pier 399"),
        (".stations[0] | keys", ["name", "tags"]),
        (".count | .total", 7),
        ("[.count.total?] | add", 7),
        (".. | .total?", [7]),
        ("..total", [7]),
        ('."count"."total"', 7),
    ],
)
async def test_a_path_of_jq_is_read_as_it_is_meant(
    path: str, value: object, stash: Stash, site: Site
) -> None:
    ref = (await stash.fetch(site.put("/a.json", json.dumps(STATIONS), None))).ref
    found = json.loads((await stash.slice(ref, path=path)).text)
    assert value in (found, [found])


@pytest.mark.parametrize(
    "path",
    [
        "stations.400",
        ".nothing[3]",
        "stations[",
        "$.stations[x",
        ".count.total | length",
        "| length",
        "stations[*].nothing",
        ".stations[] | select(.nothing)",
        ".stations | group_by(.name)",
        ".stations | map({name})",
        ".stations[] | .name | ascii_downcase",
        ".stations | unique",
        ".stations[] | select(",
        "| |",
    ],
)
async def test_a_path_to_nothing_is_one_line(path: str, stash: Stash, site: Site) -> None:
    ref = (await stash.fetch(site.put("/a.json", json.dumps(STATIONS), None))).ref
    with pytest.raises(FetchstashError) as raised:
        await stash.slice(ref, path=path)
    assert raised.value.code in ("out_of_range", "bad_argument")
    assert "Did you mean $" not in str(raised.value)


@pytest.mark.parametrize("aggregate", ["sum", "mean", "Average", "max"])
@pytest.mark.parametrize("file", ["a.json", "a.jsonl", "a.yaml", "a.csv"])
async def test_an_aggregate_alone_is_answered_with_the_columns_that_are_there(
    aggregate: str, file: str, stash: Stash, site: Site
) -> None:
    records = [{"height": n, "place": f"p{n % 3}"} for n in range(40)]
    rows = "".join(f"{record['height']},{record['place']}\n" for record in records)
    text = {
        "a.jsonl": "".join(f"{json.dumps(record)}\n" for record in records),
        "a.csv": f"height,place\n{rows}",
    }.get(file, json.dumps(records))
    ref = (await stash.fetch(site.put(f"/{file}", text, None))).ref
    with pytest.raises(FetchstashError) as raised:
        await stash.slice(ref, path=aggregate)
    assert "Columns: height, place\nFor example: sum(height) by place" in raised.value.excerpt


async def test_a_value_of_that_name_is_no_aggregate(stash: Stash, site: Site) -> None:
    ref = (await stash.fetch(site.put("/a.json", '{"sum": {"a": 5}, "max": 3}', None))).ref
    assert json.loads((await stash.slice(ref, path="sum")).text) == {"a": 5}
    assert json.loads((await stash.slice(ref, path="max")).text) == 3
    ref = (await stash.fetch(site.put("/b.json", '{\n"sum": 1,\n"b": 2\n}', None))).ref
    assert (await stash.slice(ref, path="sum")).text == '"sum": 1,\n'
    ref = (await stash.fetch(site.put("/a.csv", "max,b\n7,8\n", "text/csv"))).ref
    assert "7" in (await stash.slice(ref, path="max")).text


LINES = "".join(f"line {n} of the log\n" for n in range(1, 3_001))
LONG_LINES = "".join(
    f"Page {n}. The gauge stands at {n} m. {'word ' * 700}\n" for n in range(1, 40)
)
BROKEN = (
    "some words\n" * 399 + "A quick brown fox\njumps over the lazy dog\n" + "more words\n" * 400
)
SPOKEN = "".join(f"- {n // 60}:{n % 60:02} words at {n}\n" for n in range(0, 3_000, 5))


@pytest.mark.parametrize(
    ("text", "fragment", "shown"),
    [
        (LINES, "L1200-L1210", "-- lines 1200 to 1210\n1200:line 1200 of the log\n"),
        (LINES, "L1200", "-- line 1200\n1200:line 1200 of the log\n"),
        (LINES, "L12C3-L14C7", "-- lines 12 to 14\n12:line 12 of"),
        (LINES, ":~:text=line%202000%20of", "2000:line 2000 of the log"),
        (LINES, ":~:text=of-,line%20700,line%20709,-of", "709:line 709"),
        (SPOKEN, "t=125", "2:05 words at 125"),
        (SPOKEN, "t=2m7s", "2:05 words at 125"),
        (SPOKEN, "t=2:06", "2:05 words at 125"),
        (LINES, "n1200", "-- line 1200\n1200:line 1200 of the log\n"),
        (LINES, "line-1200", "-- line 1200\n"),
        (LINES, "lines-12:14", "-- lines 12 to 14\n"),
        (LINES, "line=1199,1202", "-- lines 1200 to 1202\n"),
        (LONG_LINES, ":~:text=the%20gauge%20stands%20at%2012", "The gauge stands at 12 m."),
        (LONG_LINES, "L13-L14", "-- line 13\n13:Page 13. The gauge stands at 13 m."),
        (BROKEN, ":~:text=quick%20brown%20fox%20jumps%20over%20the", "400:A quick brown fox\n"),
    ],
)
async def test_a_fragment_of_a_text_shows_what_it_names(
    text: str, fragment: str, shown: str, stash: Stash, site: Site
) -> None:
    url = site.put("/a.txt", text, "text/plain")
    seen = as_shown(await stash.fetch(f"{url}#{fragment}", max_chars=5_000), 5_000)
    assert shown in seen
    assert "fragment of the URL" not in seen


async def test_a_fragment_that_names_nothing_is_told(stash: Stash, site: Site) -> None:
    url = site.put("/a.txt", LINES, "text/plain")
    for fragment in ("L99999", "page=2", "t=7", "nowhere", ":~:text=no%20such%20words"):
        seen = as_shown(await stash.fetch(f"{url}#{fragment}", max_chars=5_000), 5_000)
        assert "[The fragment of the URL names nothing that is here.]" in seen, fragment
    for fragment in ("", "top", "!/route", "L3"):
        seen = as_shown(await stash.fetch(f"{url}#{fragment}", max_chars=5_000), 5_000)
        assert "fragment of the URL" not in seen, fragment


async def test_a_fragment_is_a_heading_of_markdown_a_pointer_of_json_and_rows_of_a_table(
    stash: Stash, site: Site
) -> None:
    parts = "".join(f"## Part {n}: The Way!\n\n{'Words. ' * 40}\n\n" for n in range(60))
    stations = json.dumps(STATIONS)
    rows = "name,h\n" + "".join(f"P{n},{n}\n" for n in range(2_000))
    cases = [
        (parts, "text/markdown", "part-7-the-way", "## Part 7: The Way!\n", True),
        (stations, "application/json", "/stations/5/name", '\n"Pier 5"\n', True),
        (stations, "application/json", "/stations/5/nam", "fragment of the URL names no", False),
        (rows, "text/csv", "row=4-5", "-- lines 4 to 5\n4:P2,2\n5:P3,3\n", True),
    ]
    for text, media_type, fragment, shown, found in cases:
        url = site.put(f"/{media_type}", text, media_type)
        seen = as_shown(await stash.fetch(f"{url}#{fragment}", max_chars=2_000), 2_000)
        assert shown in seen, fragment
        assert found != ("names nothing" in seen), fragment


async def test_a_page_without_the_id_shows_its_heading_of_that_name(
    stash: Stash, site: Site
) -> None:
    parts = "".join(f"<h2>Part {n}</h2><p>{'Some words here. ' * 40}</p>" for n in range(30))
    url = site.put("/a.html", f"<main><h1>Whole</h1>{parts}<h2 id='part-9'>Ninth</h2></main>")
    assert "## Part 7\n" in as_shown(await stash.fetch(f"{url}#part-7", max_chars=2_000), 2_000)
    assert "## Ninth\n" in as_shown(await stash.fetch(f"{url}#part-9", max_chars=2_000), 2_000)


async def test_a_fragment_that_names_a_page_shows_that(stash: Stash, site: Site) -> None:
    from fetchstash.cli.demo.site import make_pdf

    pages = [f"Page {n} speaks of gauge {n}. " * 60 for n in range(1, 31)]
    url = site.put("/a.pdf", make_pdf(pages, title="Gauges"), "application/pdf")
    seen = as_shown(await stash.fetch(f"{url}#page=12", max_chars=5_000), 5_000)
    assert "gauge 12" in seen
    assert "gauge 1." not in seen
    assert "gauge 12" not in as_shown(await stash.fetch(f"{url}#page=99", max_chars=5_000), 5_000)
