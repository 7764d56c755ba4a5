"""A research session: sixty calls over three sites, and what each of them costs.

``pytest -s`` prints a line for each call with the tokens of its answer.
"""

import json
import sys
from string import Template
from typing import Any

import pytest
from mcp import Client

from fetchstash.text.tokens import estimate
from tests.loopback import Site
from tests.server.conftest import Connect
from tests.server.test_tools import ref_in

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

MOST_TOKENS = 1_600
"""Of an answer that was not asked for whole."""
TOPICS = ("tariff", "gauge", "mooring", "pilot", "lamp", "ferry", "dredging", "berth", "tow", "ice")


def article(topic: str, number: int) -> str:
    paragraphs = [
        f"<p>Section {n} of the {topic} rules: whoever keeps the {topic} writes down the day, the "
        f"wind and the height of the water, and signs with the hour.</p>"
        for n in range(30)
    ]
    paragraphs.insert(20, f"<p>The {topic} of the north pier costs {number}4 kroner a night.</p>")
    others = "".join(f'<li><a href="/docs/{other}">{other}</a></li>' for other in TOPICS)
    return (
        f"<html><head><title>Rules of the {topic}</title></head><body><nav><ul>{others}</ul></nav>"
        f"<main><h1>Rules of the {topic}</h1>{''.join(paragraphs)}"
        f"<h2 id='forms'>Forms of the {topic}</h2><p>Form {number} is green.</p></main></body>"
    )


def sites(site: Site) -> dict[str, str]:
    for number, topic in enumerate(TOPICS):
        site.put(f"/docs/{topic}", article(topic, number))
    site.put("/docs/", f"<h1>Docs</h1>{''.join(f'<a href={t}>{t}</a> ' for t in TOPICS)}")
    stations = [{"name": f"Pier {n}", "height": n % 7, "lit": n % 2 == 0} for n in range(1_000)]
    rows = "".join(f"Pier {n},{n % 7},{2000 + n % 20}\n" for n in range(500))
    log = "".join(f"{n // 60:02}:{n % 60:02} line {n} the barge passed\n" for n in range(2_000))
    return {
        "DOCS": site.url("/docs/"),
        "JSON": site.put("/api/a.json", json.dumps({"stations": stations}), "application/json"),
        "ROWS": site.put("/data/a.csv", f"name,height,year\n{rows}", "text/csv"),
        "LOG": site.put("/data/log.txt", log, "text/plain"),
        **{topic.upper(): site.url(f"/docs/{topic}") for topic in TOPICS},
    }


ALL = [f"${topic.upper()}" for topic in TOPICS]
CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("fetch_content", {"urls": ALL, "focus": "mooring of the north pier a night"}, "24 kroner"),
    ("fetch_content", {"urls": ALL, "focus": "albatross"}, "No passage has a word"),
    ("fetch_content", {"url": "$TARIFF", "focus": "kroner a night"}, "04 kroner"),
    ("fetch_content", {"url": "<$TARIFF>", "focus": "green form"}, "Form 0 is green"),
    ("fetch_content", {"url": "[rules]($GAUGE)", "focus": "kroner"}, "14 kroner"),
    ("fetch_content", {"url": "$GAUGE.", "focus": "kroner"}, "Fetched without the '.'"),
    ("fetch_content", {"url": "$GAUGE)", "focus": "kroner"}, "Fetched without the ')'"),
    ("fetch_content", {"url": '"$LAMP",', "focus": "kroner"}, "44 kroner"),
    ("fetch_content", {"url": "$LAMP $ICE", "focus": "kroner"}, "94 kroner"),
    ("fetch_content", {"urls": '["$LAMP", "$ICE"]', "focus": "kroner"}, "94 kroner"),
    ("fetch_content", {"url": ["$ICE"], "focus": "kroner", "maxChars": "2000"}, "94 kroner"),
    ("fetch_content", {"url": "$ICE#forms", "maxChars": 2_000}, "Form 9 is green"),
    ("fetch_content", {"url": "$JSON"}, "array of 1,000 objects"),
    ("fetch_content", {"url": "$ROWS", "maxChars": 2_000}, "name"),
    ("fetch_content", {"url": "$LOG#L1200-L1210", "maxChars": 9_000}, "line 1199 the barge"),
    ("fetch_content", {"url": "$LOG#:~:text=line%20700%20the", "maxChars": 9_000}, "line 700"),
    ("fetch_content", {"url": "$LOG#t=10:15", "maxChars": 9_000}, "line 615"),
    ("fetch", {"url": "$LOG"}, "Try fetch_content("),
    ("fetch_site", {"url": "$DOCS", "max_pages": 4}, "To go on"),
    ("fetch_site", {"url": "$DOCS", "max_pages": 4}, "To go on"),
    ("fetch_site", {"url": "$DOCS", "max_pages": 4}, "pages 11"),
    ("artifact_grep", {"artifact_ref": "$REF_DOCS_SITE", "pattern": "kroner"}, "in 10 of 11 pages"),
    ("artifact_search", {"artifact_refs": ["$REF_DOCS_SITE"], "query": "tow night"}, "84 kroner"),
    ("artifact_grep", {"artifact_ref": "$TARIFF", "pattern": "kroner"}, "matches 1 to 1 of 1"),
    ("artifact_grep", {"artifact_ref": "$TARIFF", "pattern": "KRONER"}, "ignoring case"),
    ("artifact_grep", {"artifact_ref": "$TARIFF", "pattern": "/kroner/i"}, "without the slashes"),
    ("artifact_grep", {"artifact_ref": "$TARIFF", "pattern": r"oere\|kroner"}, "with | in place"),
    ("artifact_grep", {"artifact_ref": "$TARIFF", "pattern": "night kroner"}, "in any order"),
    ("artifact_grep", {"artifact_ref": "$TARIFF", "pattern": "north  pier"}, "any signs between"),
    ("artifact_grep", {"artifact_ref": "$TARIFF", "pattern": "(?<=costs )04"}, "in RE2's terms"),
    ("artifact_grep", {"artifact_ref": "$TARIFF", "pattern": "north*pier"}, "with .* in place"),
    ("artifact_grep", {"artifact_ref": "$TARIFF", "pattern": "albatross"}, "matches 0 of 0"),
    ("artifact_grep", {"artifact_refs": '["$TARIFF","$GAUGE"]', "pattern": "green"}, "Form 1"),
    ("artifact_grep", {"artifact_ref": ["$TARIFF"], "pattern": "green"}, "Form 0"),
    ("artifact_grep", {"artifact_ref": "[$REF_TARIFF]", "pattern": "green"}, "Form 0"),
    ("artifact_grep", {"artifact_ref": "$BEGIN_TARIFF", "pattern": "green"}, "Form 0"),
    ("artifact_grep", {"artifact_ref": "$TARIFF", "query": "green"}, 'pattern="green"'),
    ("grep", {"artifact_ref": "$TARIFF", "pattern": "green"}, "Try artifact_grep("),
    ("artifact_search", {"query": "pilot of the north pier"}, "34 kroner"),
    ("artifact_search", {"query": "dredging kroner", "artifact_refs": "$DREDGING"}, "64 kroner"),
    ("artifact_search", {"query": "albatross"}, "No passage"),
    ("artifact_slice", {"artifact_ref": "$JSON", "path": "stations.5"}, '"Pier 5"'),
    ("artifact_slice", {"artifact_ref": "$JSON", "path": "stations/5/name"}, '"Pier 5"'),
    ("artifact_slice", {"artifact_ref": "$JSON", "path": ".stations[5]"}, '"Pier 5"'),
    ("artifact_slice", {"artifact_ref": "$JSON", "path": "$.stations[5]"}, '"Pier 5"'),
    ("artifact_slice", {"artifact_ref": "$JSON", "path": "stations[1:3].name"}, "Pier 2"),
    ("artifact_slice", {"artifact_ref": "$JSON", "path": "stations.9000"}, "[out_of_range]"),
    ("artifact_slice", {"artifact_ref": "$JSON", "path": "count where lit = true"}, "500"),
    ("artifact_slice", {"artifact_ref": "$ROWS", "path": "mean(height) by year top 2"}, "height"),
    ("artifact_slice", {"artifact_ref": "$ROWS", "path": "sum(heigth)"}, "height"),
    (
        "artifact_slice",
        {"artifact_ref": "$ROWS", "unit": "rows", "start": "5", "end": "6"},
        "Pier 4",
    ),
    ("artifact_slice", {"artifact_ref": "$LOG", "start": 3, "end": 4}, "line 3 the barge"),
    ("artifact_slice", {"artifact_ref": "$LOG", "pages": "3"}, 'unit="pages"'),
    (
        "artifact_slice",
        {"artifact_ref": "$ICE", "path": "Rules of the ice", "end": 9},
        "keeps the ice",
    ),
    ("artifact_slice", {"artifact_ref": "$ICE", "path": "left_out"}, "dredging"),
    ("artifact_slice", {"artifact_ref": "$ICE", "path": "lnks"}, "Did you mean links?"),
    ("get_search_content", {"artifact_ref": "$LOG", "offset": 60_000, "maxChars": 800}, "barge"),
    ("get_search_content", {"artifact_ref": "$LOG", "offset": 9_000_000}, "[out_of_range]"),
    ("artifact_info", {"artifact_ref": "$JSON"}, "stations"),
    ("artifact_info", {}, "Rules of the ice"),
]


async def test_sixty_calls_are_each_answered_in_few_tokens(connect: Connect, site: Site) -> None:
    places = sites(site)
    total = 0
    async with connect(ingest__site=True, ingest__site_rate=0) as client:
        assert len(CALLS) == 60
        refs: dict[str, str] = {}
        for number, (tool, arguments, words) in enumerate(CALLS, start=1):
            text = await answered(client, tool, real(arguments, places | refs))
            assert words in text, (tool, arguments, text)
            cost = estimate(text)
            total += cost
            sys.stdout.write(f"{number:2} {cost:5} {tool} {json.dumps(arguments)[:90]}\n")
            assert cost <= MOST_TOKENS, (tool, arguments)
            if tool == "fetch_site":
                refs["REF_DOCS_SITE"] = ref_in(text)
            if number == 3:
                refs |= {"REF_TARIFF": ref_in(text), "BEGIN_TARIFF": ref_in(text)[:10]}
    sys.stdout.write(f"{total:8} in all\n")
    assert total < 30_000


async def answered(client: Client, tool: str, arguments: dict[str, Any]) -> str:
    result: Any = await client.call_tool(tool, arguments)
    text: str = result.content[0].text
    assert text.count("\n") == 0 or not result.is_error or "untrusted" in text
    return text


def real(value: Any, places: dict[str, str]) -> Any:
    """Return arguments with the URLs and references that stand for these names."""
    if isinstance(value, dict):
        named: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return {name: real(item, places) for name, item in named.items()}
    if isinstance(value, list):
        items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return [real(item, places) for item in items]
    return Template(value).safe_substitute(places) if isinstance(value, str) else value
