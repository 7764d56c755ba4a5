"""Walk through the tools of the real server, and compare each call with its whole document."""

from dataclasses import dataclass, field
from typing import Any

from mcp import Client

from fetchstash.cli.demo import content
from fetchstash.cli.demo._screen import Screen
from fetchstash.cli.demo.driver import Answer, ask, started
from fetchstash.cli.demo.site import Site
from fetchstash.text.tokens import TokenCount


@dataclass(slots=True)
class _Tour:
    client: Client
    screen: Screen
    steps: int = 0
    failed: bool = False
    costs: list[tuple[str, int, TokenCount]] = field(default_factory=list[Any])
    reached: dict[str, int] = field(default_factory=dict[str, int])

    async def step(self, title: str, tool: str, **arguments: Any) -> Answer:
        """Make one call and show it."""
        self.steps += 1
        self.screen.title(f"{self.steps}. {title}")
        self.screen.call(tool, arguments)
        answer = await ask(self.client, tool, **arguments)
        self.screen.result(answer.text)
        whole = f"; the whole has {answer.whole:,}" if answer.whole.tokens else ""
        self.screen.prose(f"{answer.tokens:,} tokens{whole}")
        self.costs.append((title, answer.tokens, answer.whole))
        for facts in answer.facts:
            self.reached[facts["artifact_ref"]] = facts.get("text_tokens") or 0
        self.failed |= answer.is_error
        return answer


async def tour(screen: Screen) -> bool:
    """Show every way to read a document; return whether every call succeeded."""
    screen.prose(
        "A small web site on this machine, and the fetchstash server, started as a host starts it. "
        "Nothing leaves this machine."
    )
    async with Site() as site, started(site) as client:
        walk = _Tour(client, screen)
        await _reach(walk, site)
    _sum_up(walk)
    return not walk.failed


async def _reach(walk: _Tour, site: Site) -> None:
    """Fetch, search, read on and slice, in each kind of document."""
    await walk.step("A page that fits comes whole", "fetch_content", url=site.url(content.ARTICLE))

    handbook = site.url(content.HANDBOOK)
    page = await walk.step(
        "A page of 2 MB comes as a preview", "fetch_content", url=handbook, maxChars=1_000
    )
    await walk.step(
        "One passage in it", "artifact_grep", artifact_ref=page.ref, pattern=content.FERRY.pattern
    )
    await walk.step(
        "Reading on", "get_search_content", artifact_ref=page.ref, offset=1_000, maxChars=1_000
    )
    await walk.step(
        "Or say what you look for",
        "fetch_content",
        url=handbook,
        focus="bicycles on the night ferry",
        maxChars=1_000,
    )

    report = await walk.step(
        "A PDF that says it is HTML",
        "fetch_content",
        url=site.url(content.MISLABELLED),
        maxChars=1_000,
    )
    page_30 = {"unit": "pages", "start": content.NEEDLE_PAGE, "end": content.NEEDLE_PAGE}
    await walk.step(
        f"Its page {content.NEEDLE_PAGE}", "artifact_slice", artifact_ref=report.ref, **page_30
    )

    stations = await walk.step(
        "5 MB of JSON show their shape",
        "fetch_content",
        url=site.url(content.STATIONS_JSON),
        maxChars=1_000,
    )
    pattern = {"pattern": content.ROCK.pattern, "context": 0}
    await walk.step(
        f"One record of {content.STATIONS:,}", "artifact_grep", artifact_ref=stations.ref, **pattern
    )
    value = f"/stations/{content.NEEDLE_STATION}"
    await walk.step(
        "The same by its JSON pointer", "artifact_slice", artifact_ref=stations.ref, path=value
    )

    table = site.url(content.READINGS)
    readings = await walk.step(
        f"A table of {content.CSV_ROWS:,} rows", "fetch_content", url=table, maxChars=1_000
    )
    row = {"unit": "rows", "start": content.NEEDLE_ROW, "end": content.NEEDLE_ROW}
    await walk.step(
        f"Its row {content.NEEDLE_ROW:,}", "artifact_slice", artifact_ref=readings.ref, **row
    )

    paths = (content.ARTICLE, content.HANDBOOK, content.REPORT, content.STATIONS_JSON)
    urls = [site.url(path) for path in paths]
    await walk.step("Four at once, in one budget", "fetch_content", urls=urls, maxChars=3_000)


def _sum_up(walk: _Tour) -> None:
    walk.screen.title("What went into the context, in tokens (o200k)")
    rows = [
        (title, f"{cost:,}", f"{whole:,}", f"{cost / max(whole.tokens, 1):.2%}")
        for title, cost, whole in walk.costs
    ]
    walk.screen.table([("call", "result", "whole", "share"), *rows])
    spent = sum(cost for _, cost, _ in walk.costs)
    reached = TokenCount(sum(walk.reached.values()), all(whole.exact for _, _, whole in walk.costs))
    walk.screen.prose("")
    documents = f"The {len(walk.reached)} documents that they reached have {reached:,}."
    walk.screen.prose(f"All {walk.steps} calls together: {spent:,} tokens. {documents}")
