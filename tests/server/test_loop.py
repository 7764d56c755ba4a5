"""Lists that a page, a site or another server makes never hold the event loop."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_ping_is_answered_while_a_list_of_100_000_is_read(
    case: Hostile, site: Site, connect: Connect
) -> None:
    case.put(site)
    site.put("/warm/", page(""))
    settings = {"ingest__site": True, "ingest__site_rate": 0, "ingest__site_pages": 3}
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
    assert pinged == list(range(len(case.calls)))  # each before the answer to the call


async def answer(client: Client, site: Site, tool: str, arguments: Mapping[str, Any]) -> str:
    """Return what a tool answers. A value that begins with "/" is a path of the site."""
    values = {
        name: site.url(value) if str(value).startswith("/") else value
        for name, value in arguments.items()
    }
    result = await client.call_tool(tool, values)
    return result.content[0].text  # type: ignore[union-attr]
