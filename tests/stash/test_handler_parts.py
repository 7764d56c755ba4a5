"""Parts that the handler reads in its worker: values, elements, links, members, EXIF."""

import io
import json
import tarfile
from pathlib import Path

import pytest
from PIL import Image

from fetchstash.errors import OutOfRange
from fetchstash.render import as_shown
from fetchstash.stash import Stash
from fetchstash.text import tokens
from tests.loopback import Site
from tests.stash.conftest import Put

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def photo() -> bytes:
    exif = Image.Exif()
    exif[0x0110] = "Testcam 3000"
    out = io.BytesIO()
    Image.new("RGB", (8, 8)).save(out, "JPEG", exif=exif)
    return out.getvalue()


def archive() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("docs/a.txt")
        info.size = 6
        tar.addfile(info, io.BytesIO(b"alpha\n"))
    return out.getvalue()


PAGE = b"<title>t</title><p>Some words, and <a href=/b>a link</a>.</p>"
FEED = b"<rss><item><title>T</title></item></rss>"
SVG = b"<svg><text>words</text></svg>"
PARTS = {
    "JSON": (b'{"a": {"b": 1.10}}', "json", "application/json", "/a/b", "1.10\n"),
    "YAML": (b"a:\n  b: no\n", "yaml", "application/yaml", "$.a.b", '"no"\n'),
    "TOML": (b"[a]\nb = 2026-11-21\n", "text", "application/toml", "/a/b", '"2026-11-21"\n'),
    "XML": (b"<r><a b='1'/><a b='2'/></r>", "xml", "application/xml", "/r/a[2]/@b", "2\n"),
    "feed": (FEED, "xml", "application/rss+xml", "//item/title/text()", "T\n"),
    "SVG": (SVG, "image", "image/svg+xml", "/svg/text/text()", "words\n"),
    "CSV": (b"a,b\n1,2\n3,4\n", "csv", "text/csv", "b", "b\n2\n4\n"),
    "links": (PAGE, "html", "text/html", "links", "- [a link](https://example.org/b)\n"),
    "member": (archive(), "archive", "application/x-tar", "docs/a.txt", "alpha\n"),
    "EXIF": (photo(), "image", "image/jpeg", "exif", "Model: Testcam 3000\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", PARTS)
async def test_a_path_names_a_part_of_its_own(case: str, stash: Stash, put: Put) -> None:
    raw, kind, media_type, path, expected = PARTS[case]
    ref = await put(
        None,
        raw=raw,
        content_kind=kind,
        media_type=media_type,
        final_url="https://example.org/docs/page",
    )
    assert (await stash.slice(ref, path=path)).text == expected


async def test_the_label_says_how_a_part_is_decoded(stash: Stash, put: Put) -> None:
    raw = '{"town": "Łódź"}'.encode("iso-8859-2")
    ref = await put(
        None, raw=raw, content_kind="json", media_type="application/json", charset="iso-8859-2"
    )
    assert (await stash.slice(ref, path="/town")).text == '"Łódź"\n'


async def test_a_part_that_is_too_long_for_the_worker_says_that_it_goes_on(
    stash: Stash, put: Put
) -> None:
    raw = json.dumps({"a": ["x" * 98] * 10_200, "b": 1}).encode()
    ref = await put(None, raw=raw, content_kind="json", media_type="application/json")
    whole = await stash.slice(ref, path="/a", max_chars=1_000)
    assert (
        "[What this path names goes on behind its first 1000000 chars. "
        "Name a narrower path for the rest.]" in as_shown(whole)
    )
    assert whole.cut_at == 1_000_000
    assert "goes on behind" not in as_shown(await stash.slice(ref, path="/a/10199"))


async def test_rows_count_inside_the_columns_that_a_path_names(
    stash: Stash, tmp_path: Path
) -> None:
    rows = "".join(f"{n},name{n},{n * n}\n" for n in range(1, 101))
    (tmp_path / "table.csv").write_text(f"id,name,square\n{rows}")
    table = await stash.add_file(tmp_path / "table.csv")
    part = await table.slice(path="id,square", unit="rows", start=7, end=8)
    assert (part.text, part.start, part.end, part.count) == ("7,49\n8,64\n", 7, 8, 100)
    part, pieces = await table.slice(path="square", unit="rows", max_chars=200), list[str]()
    while part.next:
        pieces.append(part.text)
        arguments = {name: part.next.arguments[name] for name in ("path", "unit", "start", "end")}
        part = await table.slice(**arguments, max_chars=200)
    assert "".join([*pieces, part.text]) == "".join(f"{n * n}\n" for n in range(1, 101))
    with pytest.raises(OutOfRange, match="There are 100 rows"):
        await table.slice(path="id", unit="rows", start=101)


async def test_rows_behind_what_a_worker_reads_of_columns_lead_to_the_whole_rows(
    stash: Stash, tmp_path: Path
) -> None:
    rows = "".join(f"{n},{'x' * 90}\n" for n in range(1, 12_001))
    (tmp_path / "table.csv").write_text(f"id,text\n{rows}")
    table = await stash.add_file(tmp_path / "table.csv")
    with pytest.raises(OutOfRange, match=r"Only the first \d+ rows .* can be read") as beyond:
        await table.slice(path="text,id", unit="rows", start=11_999, end=11_999)
    (call,) = beyond.value.calls
    arguments = {name: call.arguments[name] for name in ("unit", "start", "end")}
    assert (await table.slice(**arguments)).text.startswith("11999,xxx")


async def test_the_json_of_a_search_engine_is_short_as_a_preview_and_lists_what_it_found(
    site: Site, stash: Stash
) -> None:
    # The fields of SearXNG's answers (format=json), with words of our own.
    results = [
        {
            "url": f"https://harbour{n}.example/gauge.html",
            "title": f"Tide gauge {n}",
            "content": f"Reading {n}: the gauge at the mole is read every hour.",
            "publishedDate": None,
            "engine": "brave",
            "template": "default.html",
            "parsed_url": ["https", f"harbour{n}.example", "/gauge.html", "", "", ""],
            "engines": ["brave", "duckduckgo"],
            "positions": [n, n + 1],
            "score": 3.0 / n,
            "category": "general",
        }
        for n in range(1, 21)
    ]
    lists = ("answers", "corrections", "infoboxes", "suggestions", "unresponsive_engines")
    answer = {"query": "tide gauge", "number_of_results": 0, "results": results}
    body = json.dumps({**answer, **{name: list[str]() for name in lists}})
    url = site.put("/search?q=tide+gauge&format=json", body, "application/json")
    found = await stash.fetch(url, max_chars=1_000)
    assert "results: array of 20 objects\n    url: string\n    title: string" in found.preview
    assert tokens.estimate(found.preview) <= 200
    listed = await found.slice(path="$.results[*]['title','url']")
    assert json.loads(listed.text)[:2] == ["Tide gauge 1", "https://harbour1.example/gauge.html"]
    assert listed.count == 42
