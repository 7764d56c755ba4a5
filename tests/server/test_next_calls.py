"""Every dead end offers its next call."""

import json
import re
from typing import Any

import pytest
from mcp import Client
from PIL import Image

from fetchstash.cli.demo.site import make_pdf
from tests.loopback import Site
from tests.scanned import scan as scanned
from tests.server.conftest import Connect
from tests.server.test_tools import ERAS, REPORT, call, fail, ref_in

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

OTHER_NAMES: list[tuple[str, dict[str, Any], str]] = [
    ("artifact_slice", {"artifact_ref": "REF", "pages": "5"}, 'unit="pages", start=5, end=5'),
    ("artifact_slice", {"artifact_ref": "REF", "pages": "5-7"}, 'unit="pages", start=5, end=7'),
    ("artifact_slice", {"artifact_ref": "REF", "page": 5}, 'unit="pages", start=5, end=5'),
    ("artifact_slice", {"artifact_ref": "REF", "line_range": [5, 9]}, "start=5, end=9"),
    ("artifact_slice", {"artifact_ref": "REF", "start_line": "5"}, 'unit="lines", start=5'),
    ("artifact_slice", {"ref": "REF", "offset": 20, "limit": 10}, "start=20, end=29"),
    ("get_search_content", {"artifact_ref": "REF", "pages": "5"}, 'unit="pages", start=5, end=5'),
    ("get_search_content", {"url": "URL", "start_index": "9", "max_length": 900}, "offset=9"),
    ("get_search_content", {"url": "URL", "max_length": 50}, "maxChars=200"),
    ("fetch_content", {"uri": "URL"}, 'fetch_content(url="URL")'),
    ("fetch_content", {"url": "URL", "prompt": "page 7"}, 'focus="page 7"'),
    ("fetch_content", {"url": "URL", "pages": "5"}, 'unit="pages", start=5, end=5'),
    ("artifact_grep", {"query": "is 210", "artifact_ref": "REF"}, 'pattern="is 210"'),
    ("artifact_grep", {"regex": "7", "ref": "REF", "limit": "2"}, "max_matches=2"),
    ("artifact_search", {"q": "number", "artifact_ref": "REF"}, 'artifact_refs=["REF"]'),
    ("artifact_info", {"id": "REF"}, 'artifact_info(artifact_ref="REF")'),
    ("artifact_info", {"limit": 3}, "artifact_info()"),
    ("fetch_content", {"url": "URL", "raw": True}, 'fetch_content(url="URL")'),
]
"""A tool, arguments as other servers name them, and what the call has that is offered instead."""


def next_calls(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of a result, on lines of their own or in a notice."""
    calls = re.findall(
        r'(artifact_\w+|fetch_content|get_search_content)\(((?:[^()"]|"[^"]*")*)\)', text
    )
    words = {"true": True, "false": False}
    return [(tool, eval(f"dict({arguments})", words)) for tool, arguments in calls]


def next_call(text: str) -> tuple[str, dict[str, Any]]:
    """Return the last call of a result."""
    return next_calls(text)[-1]


async def fetched_report(client: Client, site: Site) -> tuple[str, str]:
    url = site.put("/report.pdf", REPORT, "application/pdf")
    return ref_in(await call(client, "fetch_content", url=url)), url


@pytest.mark.parametrize("mode", ERAS)
async def test_arguments_by_other_names_get_the_call_that_was_meant_and_it_works(
    mode: str, site: Site, connect: Connect
) -> None:
    async with connect(mode=mode) as client:
        ref, url = await fetched_report(client, site)

        def real(text: Any) -> Any:
            if isinstance(text, str):
                return text.replace("REF", ref).replace("URL", url)
            return text

        for tool, arguments, words in OTHER_NAMES:
            line = await fail(client, tool, **{k: real(v) for k, v in arguments.items()})
            assert line.startswith(f"[bad_argument] {tool} has no argument ")
            assert real(words) in line
            better, right = next_call(line)
            await call(client, better, **right)


MISTAKES: list[tuple[str, dict[str, Any]]] = [
    ("artifact_slice", {"artifact_ref": "JSON", "path": "stations.9"}),
    ("artifact_slice", {"artifact_ref": "JSON", "path": "statoins"}),
    ("artifact_slice", {"artifact_ref": "JSON", "path": "/stations/x"}),
    ("artifact_slice", {"artifact_ref": "JSON", "path": "sum(heigth)"}),
    ("artifact_slice", {"artifact_ref": "JSON", "unit": "pages"}),
    ("artifact_slice", {"artifact_ref": "PAGE", "path": "lnks"}),
    ("artifact_slice", {"artifact_ref": "PAGE", "path": "Gate"}),
    ("artifact_slice", {"artifact_ref": "PAGE", "path": "#nowhere"}),
    ("artifact_slice", {"artifact_ref": "PAGE", "unit": "rows"}),
    ("artifact_slice", {"artifact_ref": "PAGE", "path": "images/1"}),
    ("artifact_slice", {"artifact_ref": "PAGE", "path": "links", "render": "image"}),
    ("artifact_slice", {"artifact_ref": "ROWS", "path": "nam"}),
    ("artifact_slice", {"artifact_ref": "ROWS", "path": "sum(nmae)"}),
    ("artifact_slice", {"artifact_ref": "ROWS", "unit": "pages", "start": 2}),
    ("artifact_slice", {"artifact_ref": "ROWS", "path": "name", "unit": "pages"}),
    ("artifact_slice", {"artifact_ref": "ROWS", "unit": "bytes", "path": "name"}),
    ("artifact_slice", {"artifact_ref": "BYTES"}),
    ("artifact_grep", {"artifact_ref": "BYTES", "pattern": "x"}),
    ("artifact_grep", {"artifact_ref": "PAGE", "pattern": "(?<=a )lamp"}),
    ("artifact_grep", {"artifact_ref": "PAGE", "pattern": "LAMP"}),
    ("artifact_greb", {"artifact_ref": "PAGE", "pattern": "lamp"}),
    ("artifact_grep", {"artifact_ref": "PAGE", "patern": "lamp"}),
    ("get_search_content", {"artifact_ref": "http://127.0.0.1:9/never"}),
    ("get_search_content", {"artifact_ref": "nothing"}),
    ("fetch_content", {"url": "REF"}),
]


async def test_every_hint_of_a_mistake_works_in_its_own_words(site: Site, connect: Connect) -> None:
    stations = [{"name": f"Pier {n}", "height": n} for n in range(6)]
    page = (
        "<html><body><h1>Gates</h1><p>Use a lamp at night, and the rope by day.</p>"
        '<h2>Gate A</h2><p>It opens to the <a href="/north">north</a>.</p></body></html>'
    )
    urls = {
        "JSON": site.put("/a.json", json.dumps({"stations": stations}), "application/json"),
        "PAGE": site.put("/gates", page),
        "ROWS": site.put("/a.csv", "name,height\nA,1\nB,2\n", "text/csv"),
        "BYTES": site.put("/b", bytes(range(256)), "application/octet-stream"),
    }
    followed = 0
    async with connect() as client:
        words = {
            name: ref_in(await call(client, "fetch_content", url=url)) for name, url in urls.items()
        }
        words["REF"] = words["PAGE"]
        for tool, arguments in MISTAKES:
            given = {name: words.get(value, value) for name, value in arguments.items()}
            result: Any = await client.call_tool(tool, given)
            text = result.content[0].text
            line = text.partition("\n")[0] if result.is_error else text
            hints = next_calls(line)
            if question := re.search(r"Did you mean (.+)\?", line):
                wrong = next((n for n in given if f"'{n}'" in line), "")
                named = {question[1] if n == wrong else n: v for n, v in given.items()}
                named |= {} if wrong or tool in line else {"path": question[1]}
                hints.append((question[1] if f"tool '{tool}'" in line else tool, named))
            for better, right in hints:
                if "…" in str(right) or "/never" in str(right):
                    continue
                followed += 1
                again: Any = await client.call_tool(better, right)
                assert not again.is_error, (line, again.content[0].text)
                assert ": matches 0 of" not in again.content[0].text, line
    assert followed >= len(MISTAKES) // 2


async def test_a_scanned_pdf_offers_the_picture_of_its_page_or_ocr(
    site: Site, connect: Connect
) -> None:
    scan = scanned([Image.new("L", (60, 80), 255)])
    async with connect() as client:
        url = site.put("/scan.pdf", scan, "application/pdf")
        fetched = await call(client, "fetch_content", url=url)
        for text in (fetched, await fail(client, "artifact_grep", artifact_ref=url, pattern="x")):
            tool, arguments = next_call(text)
            assert tool == "artifact_slice"
            assert arguments.get("render") == "image" or arguments["unit"] == "pages"
            result: Any = await client.call_tool(tool, arguments)
            assert not result.is_error, text


async def test_reading_what_has_no_text_or_was_not_fetched_offers_the_call(
    site: Site, connect: Connect
) -> None:
    async with connect() as client:
        url = site.put("/page.txt", "some words", "text/plain")
        line = await fail(client, "get_search_content", artifact_ref=url)
        assert line.startswith("[unknown_ref] Nothing is stored under this URL. Fetch it first: ")
        tool, arguments = next_call(line)
        await call(client, tool, **arguments)
        url = site.put("/b", bytes(range(256)), "application/octet-stream")
        await call(client, "fetch_content", url=url)
        readings: list[tuple[str, dict[str, Any]]] = [
            ("artifact_grep", {"pattern": "x"}),
            ("get_search_content", {}),
            ("artifact_slice", {"start": 1}),
        ]
        for reader, more in readings:
            line = await fail(client, reader, artifact_ref=url, **more)
            assert line.startswith("[no_text] ")
            tool, arguments = next_call(line)
            assert "00000000  00 01" in await call(client, tool, **arguments)


async def test_a_mistaken_call_is_answered_with_one_that_works(
    site: Site, connect: Connect
) -> None:
    async with connect() as client:
        url = site.put("/page.txt", "a line\nf(x) = 1\n", "text/plain")
        ref = ref_in(await call(client, "fetch_content", url=url))
        line = await fail(client, "fetch_content", url=ref)
        assert line.startswith(f"[bad_argument] {ref} is a reference, not a URL. ")
        tool, arguments = next_call(line)
        assert "a line" in await call(client, tool, **arguments)
        line = await fail(client, "artifact_grep", artifact_ref=ref, pattern="f(x")
        tool, arguments = next_call(line)
        assert arguments == {"artifact_ref": ref, "pattern": "f(x", "literal": True}
        await call(client, tool, **arguments)
        line = await fail(client, "get_search_content", artifact_ref="page.txt")
        assert line == (
            "[unknown_ref] 'page.txt' is neither a reference nor a URL. artifact_info() lists what "
            "is stored."
        )


async def test_pages_as_pictures_come_one_by_one_each_with_the_call_for_the_next(
    site: Site, connect: Connect
) -> None:
    url = site.put(
        "/report.pdf", make_pdf(["one", "two", "three", "four"], title="Four"), "application/pdf"
    )
    async with connect() as client:
        ref = ref_in(await call(client, "fetch_content", url=url))
        first = await call(client, "artifact_slice", artifact_ref=ref, render="image")
        assert first.startswith(f"[{ref}: page 1 as a picture, ")
        assert next_calls(first) == []
        pages: list[str] = []
        arguments: dict[str, Any] = {"artifact_ref": ref, "unit": "pages", "start": 2, "end": 9}
        arguments["render"] = "image"
        while arguments:
            text = await call(client, "artifact_slice", **arguments)
            pages.append(text.partition(" as a picture")[0][-1])
            assert len(pages) < 9, "it goes on for ever"
            arguments = next_call(text)[1] if next_calls(text) else {}
        assert pages == ["2", "3", "4"]
