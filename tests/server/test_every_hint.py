"""Each call that an error prints works: a sweep over documents, paths, units and ranges."""

import io
import itertools
import json
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client

from tests.loopback import Site
from tests.server.conftest import Connect
from tests.server.test_next_calls import next_calls
from tests.server.test_tools import REPORT, call, ref_in

pytestmark = [pytest.mark.anyio, pytest.mark.in_process, pytest.mark.long]

PATHS = (
    *("", "x", "2", "-1", "1:3", "#x", "//x", "Gate A", "gate b", "page 2", "Sheet1"),
    *("stations", "stations.9", "stations[2]", "/stations/2", "stations.*.name", "$..name", "name"),
    *("sum(height)", "count by name", "from t", "where height > 1", ".stations | length"),
    *("links", "images", "left_out", "outline", "metadata", "headers", "quoted", "comments"),
    *("a.txt", "b/c.txt"),
)
UNITS = ("", "lines", "chars", "bytes", "pages", "rows")
RANGES: tuple[dict[str, int], ...] = ({}, {"start": 0}, {"start": 2, "end": 1}, {"start": 99_999})
PATTERNS = ("(?<=a)b", "LAMP", "zzz", "[", "*", "lamp|zz", "a{99999}", r"\bone\b  two")


def archive() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as members:
        members.writestr("a.txt", "hello\n")
        members.writestr("b/c.csv", "name,height\nA,1\n")
    return packed.getvalue()


PAGE = """
<html><body><h1>Gates</h1><p>Use a lamp at night, and the rope by day, always.</p>
<h2>Gate A</h2><p>It opens to the <a href="/north">north</a>.</p>
<table><tr><th>name<th>height<tr><td>A<td>1</table></body></html>
"""
DOCUMENTS: dict[str, tuple[str | bytes, str]] = {
    "JSON": (json.dumps({"stations": [{"name": f"P{n}", "height": n} for n in range(6)]}), "json"),
    "page": (PAGE, "html"),
    "rows": ("name,height\nA,1\nB,2\n", "csv"),
    "bytes": (bytes(range(256)), "bin"),
    "PDF": (REPORT, "pdf"),
    "ZIP": (archive(), "zip"),
    "text": ("one\ntwo\nthree\n", "txt"),
    "YAML": ("stations:\n- name: A\n  height: 1\n", "yaml"),
    "XML": ("<r><x>1</x><x>2</x></r>", "xml"),
}
MEDIA_TYPES = {
    "json": "application/json",
    "html": "text/html",
    "csv": "text/csv",
    "txt": "text/plain",
    "pdf": "application/pdf",
    "zip": "application/zip",
    "yaml": "application/yaml",
    "xml": "application/xml",
    "bin": "application/octet-stream",
}


def asked(ref: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield calls of each tool that reads, most of which are mistakes for any one document."""
    for path, unit, (number, span) in itertools.product(PATHS, UNITS, enumerate(RANGES)):
        if number == (len(path) + len(unit)) % len(RANGES) or not path:
            named = {"path": path, "unit": unit}
            given = {name: value for name, value in named.items() if value}
            yield "artifact_slice", {"artifact_ref": ref, **given, **span}
    for path in PATHS:
        yield "artifact_slice", {"artifact_ref": ref, "path": path, "render": "image"}
    for pattern in PATTERNS:
        yield "artifact_grep", {"artifact_ref": ref, "pattern": pattern}
    for offset in (9_999_999, -1):
        yield "get_search_content", {"artifact_ref": ref, "offset": offset}


async def answered(client: Client, tool: str, arguments: dict[str, Any]) -> tuple[bool, str]:
    """Return whether a call failed, and its text ("" of a picture)."""
    result: Any = await client.call_tool(tool, arguments)
    return result.is_error, getattr(result.content[0], "text", "")


@pytest.mark.parametrize("name", DOCUMENTS)
async def test_every_call_that_an_error_prints_works(
    name: str, site: Site, connect: Connect
) -> None:
    body, ending = DOCUMENTS[name]
    url = site.put(f"/document.{ending}", body, MEDIA_TYPES[ending])
    wrong: dict[str, str] = {}
    followed = 0
    async with connect() as client:
        ref = ref_in(await call(client, "fetch_content", url=url))
        for tool, arguments in asked(ref):
            failed, text = await answered(client, tool, arguments)
            if not failed and tool != "artifact_grep":
                continue
            line = text.partition("\n")[0] if failed else text
            assert "[internal]" not in line, (tool, arguments)
            hints = next_calls(line)
            question = re.search(r"Did you mean (.+?)\?", line)
            if question and not {"unit", "start"} & set(arguments):
                hints.append((tool, {**arguments, "path": question[1].strip("'")}))
            for better, right in hints:
                if "…" not in str(right):
                    followed += 1
                    failed, again = await answered(client, better, right)
                    if failed or ": matches 0 of" in again:
                        wrong[line] = f"{better}({right}): {again[:200]}"
    assert wrong == {}
    assert followed >= 5
