"""Lists that a page, a site or another server makes never hold the event loop."""

import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any

import anyio
import pytest
from mcp import Client

from tests.loop_turns import counted_turns
from tests.loopback import Site
from tests.server.conftest import Connect

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:ping is removed"),
]

MANY = 100_000
MOST_CALLS = 100_000
"""Functions that one turn of the loop may call: 20 ms of Python, on a slow machine 100."""


@dataclass(frozen=True)
class Hostile:
    """What a site answers, with MANY items somewhere, and the calls that come across them.

    ``says`` stands in the answers: the attack arrived where it was to.
    """

    name: str
    put: Callable[[Site], object]
    calls: tuple[tuple[str, Mapping[str, Any]], ...]
    says: str = ""
    is_refused: bool = False
    """Whether the calls are answered at once, so that a ping may come after them."""


def lines(template: str, count: int = MANY) -> str:
    """Return many lines, each with its number."""
    return "".join(template.format(n) for n in range(count))


def page(body: str, title: str = "Start") -> str:
    return f"<title>{title}</title><main><h1>{title}</h1><p>Words enough to read.</p>{body}</main>"


def sitemap(rows: str, kind: str = "urlset") -> str:
    return f'<?xml version="1.0"?><{kind}>{rows}</{kind}>'


def sitemaps_of_another_site(site: Site) -> None:
    """Put thirty lists of sitemaps, whose addresses only look like those of the site."""
    put_start(site)
    rows = "".join(f"<loc>{site.url(f'/s{n}.xml')}</loc>" for n in range(30))
    site.put("/sitemap.xml", sitemap(rows, "sitemapindex"), "application/xml")
    for n in range(30):
        rows = lines(f"<loc>http://x.example/{site.port}/127.0.0.1:{site.port}/{{}}</loc>", 10_000)
        site.put(f"/s{n}.xml", sitemap(rows, "sitemapindex"), "application/xml")


def put_start(site: Site) -> None:
    site.put("/docs/", page(""))


def put_sitemap(site: Site) -> None:
    put_start(site)
    rows = lines(f"<url><loc>{site.url('/docs/{}')}</loc></url>")
    site.put("/sitemap.xml", sitemap(rows), "application/xml")


def put_llms_txt(site: Site) -> None:
    put_start(site)
    site.put("/llms.txt", "# Docs\n\n" + lines("[a](/docs/{})\n"), "text/plain")


def put_headers(site: Site) -> None:
    """Put a page with as many header fields as 64 KiB hold."""

    def write(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/html")
        for n in range(800):
            request.send_header("Link", f'</p{n}>; rel="next"; title="a, b; c"')
        for n in range(300):
            request.send_header("Set-Cookie", f"a{n}=b")
        request.end_headers()
        request.wfile.write(page("").encode())

    site.put("/docs/", script=write)


def put_feed(site: Site) -> None:
    items = lines("<item><title>t{}</title></item>")
    feed = f'<rss version="2.0"><channel><title>Feed</title>{items}</channel></rss>'
    site.put("/docs/", feed, "application/rss+xml")


def put_robots(site: Site) -> None:
    put_start(site)
    agents, paths = lines("User-agent: a{}\n", 9_000), lines("Disallow: /x{}*y\n", 20_000)
    rules = f"{agents}User-agent: *\n{paths}"
    site.put("/robots.txt", rules, "text/plain")


def put_columns(site: Site) -> None:
    site.put("/docs/", f"{lines('c{},')}\n{lines('{},')}\n", "text/csv")


def put_rows(site: Site) -> None:
    site.put("/docs/", lines('{{"a":{0}}}\n'), "application/x-ndjson")


def put_archive(site: Site) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for n in range(MANY):
            archive.writestr(f"m{n}.txt", f"member {n}")
    site.put("/docs/", file.getvalue(), "application/zip")


def part(path: str) -> tuple[str, dict[str, str]]:
    return "artifact_slice", {"path": path}


FETCH: tuple[str, dict[str, str]] = ("fetch_content", {"url": "/docs/"})
INFO: tuple[str, dict[str, str]] = ("artifact_info", {})
VALUE = '"k{0}":{{"b":[{0}]}},'
SITE_CALL = (("fetch_site", {"url": "/docs/"}),)
# The second call reads the index that the first one wrote.
AND_AGAIN = (*SITE_CALL, *SITE_CALL)
CUT = "the site names more than the 10,000 addresses that are kept"
CASES = (
    Hostile(
        "links of a page",
        lambda site: site.put("/docs/", page(lines("<a href=p{}>"))),
        AND_AGAIN,
        CUT,
    ),
    Hostile(
        "links of Markdown",
        lambda site: site.put("/docs/", "# Start\n" + lines("[a](p{})\n"), "text/markdown"),
        SITE_CALL,
        CUT,
    ),
    Hostile("a sitemap", put_sitemap, AND_AGAIN, CUT),
    Hostile("sitemaps of sitemaps", sitemaps_of_another_site, SITE_CALL, "1 page by links"),
    Hostile("llms.txt", put_llms_txt, AND_AGAIN, CUT),
    Hostile(
        "an outline",
        lambda site: site.put("/docs/", "# T\n" + lines("## h{}\n\nword\n"), "text/markdown"),
        (FETCH, INFO, part("h1777"), part("nothing")),
        "h1777",
    ),
    Hostile(
        "facts of a page",
        lambda site: site.put(
            "/docs/",
            "<head>"
            + lines('<meta property="og:t{0}" content="c"><link rel=alternate href=m{0}>', 50_000)
            + f"</head>{page('')}",
        ),
        (FETCH, INFO),
        "Words enough to read.",
    ),
    Hostile(
        "values of a JSON",
        lambda site: site.put("/docs/", f'{{{lines(VALUE)}"z":1}}', "application/json"),
        (FETCH, INFO, part("/k77777/b"), part("/none")),
        "the object before it has 100,001 other keys",
    ),
    Hostile(
        "matches",
        lambda site: site.put("/docs/", lines("word {}\n"), "text/plain"),
        (FETCH, ("artifact_grep", {"pattern": "word", "max_matches": 1_000, "maxChars": 100_000})),
        "matches 1 to 1000 of 100000",
    ),
    Hostile("items of a feed", put_feed, (FETCH, INFO), "RSS feed"),
    Hostile("header fields", put_headers, (FETCH, FETCH), "Words enough to read."),
    Hostile("rules of robots.txt", put_robots, (FETCH, FETCH), "Words enough to read."),
    Hostile("columns", put_columns, (FETCH, INFO, part("c5x")), "numbers from 1 to 100001"),
    Hostile("rows", put_rows, (FETCH, INFO, part("/77777/a")), "77777"),
    Hostile(
        "members of an archive", put_archive, (FETCH, INFO, part("m77777.txt")), "member 77777"
    ),
    Hostile(
        "arguments",
        put_start,
        (
            ("fetch_content", {"urls": ["https://a.example/"] * MANY}),
            ("fetch_content", {"urls": " https://a.example/" * MANY}),
            ("artifact_grep", {"artifact_refs": ["art_x"] * MANY, "pattern": "x"}),
            ("fetch_content", {f"x{n}": n for n in range(MANY)}),
        ),
        "fetch_content is called with 100,000 arguments.",
        is_refused=True,
    ),
    Hostile(
        "parts of a URL",
        put_start,
        (
            ("fetch_content", {"url": f"https://{'a.' * 4_000}example/"}),
            ("fetch_content", {"url": f"https://github.example/{'../' * 2_600}a"}),
        ),
        "The URL's host is too long for a host name.",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_ping_is_answered_while_a_list_of_100_000_is_read(
    case: Hostile, site: Site, connect: Connect
) -> None:
    case.put(site)
    site.put("/warm/", page(""))
    settings = {
        "fetch__respect_robots": "/robots.txt" in site.pages,
        "ingest__site": True,
        "ingest__site_rate": 0,
        "ingest__site_pages": 3,
    }
    answers: list[str] = []
    pinged: list[int] = []
    async with connect(mode="legacy", **settings) as client:

        async def ping() -> None:
            await client.send_ping()  # pyright: ignore[reportDeprecated]
            pinged.append(len(answers))

        await answer(client, site, "fetch_site", {"url": "/warm/"})  # what is imported once
        with counted_turns() as turns:
            for call in case.calls:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(ping)
                    answers.append(await answer(client, site, *call))
    assert case.says in "\n".join(answers)
    assert turns.most < MOST_CALLS, str(turns)
    assert len(pinged) == len(case.calls)
    if not case.is_refused:
        assert pinged == list(range(len(case.calls)))  # each before the answer to the call


async def answer(client: Client, site: Site, tool: str, arguments: Mapping[str, Any]) -> str:
    """Return what a tool answers. A URL that begins with "/" is a path of the site.

    A reading of an artifact without a name is of the page.
    """
    values = dict(arguments)
    if str(values.get("url", "")).startswith("/"):
        values["url"] = site.url(values["url"])
    if tool.startswith("artifact_") and "artifact_refs" not in values:
        values["artifact_ref"] = site.url("/docs/")
    result = await client.call_tool(tool, values)
    return result.content[0].text  # type: ignore[union-attr]
