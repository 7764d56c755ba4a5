"""Walk through the tools of the real server, and print it for 80 columns."""

import json
import os
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp import Client

from fetchstash.cli.demo import site as content
from fetchstash.cli.demo.driver import Answer, ask, started
from fetchstash.cli.demo.site import Site
from fetchstash.text.tokens import TokenCount

COLUMNS = 80
HEAD_ROWS, TAIL_ROWS = 13, 5
Write = Callable[[str], None]


def to_stdout(line: str) -> None:
    """Print a line, with "?" for characters that the terminal's encoding lacks."""
    encoding = sys.stdout.encoding or "utf-8"
    print(line.encode(encoding, "replace").decode(encoding), flush=True)  # noqa: T201 - a program's output


class Screen:
    """Writes lines to ``write``.

    Styles them only if stdout is a terminal that is not dumb and NO_COLOR (no-color.org) is unset.
    """

    def __init__(self, write: Write | None = None) -> None:
        self._write = write or to_stdout
        self._styled = (
            write is None
            and sys.stdout.isatty()
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM") != "dumb"
        )

    def title(self, text: str) -> None:
        """Print the title of a step."""
        self._write("")
        self._write(self._style(text, "1"))

    def prose(self, text: str) -> None:
        """Print a sentence."""
        for row in textwrap.wrap(text, COLUMNS - 1) or [""]:
            self._write(row)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Show a call as a model makes it."""
        for row in call_rows(tool, arguments):
            self._write(self._style(row, "36"))

    def result(self, text: str) -> None:
        """Show the beginning and the end of a result."""
        for row in result_rows(text):
            self._write(self._style(row, "2"))

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Show a table: the first row is its header, the first column is text."""
        for number, row in enumerate(table_rows(rows)):
            self._write(row if number else self._style(row, "1"))

    def _style(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._styled else text


def call_rows(tool: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return ``tool(name=value, …)``, one argument a row if one row is too short for all."""
    written = [
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()
    ]
    whole = f"{tool}({', '.join(written)})"
    if len(whole) < COLUMNS:
        return [whole]
    rows = [
        row
        for argument in written
        for row in textwrap.wrap(argument + ",", COLUMNS - 5, break_on_hyphens=False)
    ]
    return [f"{tool}(", *(f"    {row}" for row in rows), ")"]


def result_rows(text: str) -> list[str]:
    """Return the first and the last rows of ``text``; a line takes three rows at most."""
    rows = [row for line in text.splitlines() for row in _wrapped(line)]
    left_out = len(rows) - HEAD_ROWS - TAIL_ROWS
    if left_out > 1:
        rows[HEAD_ROWS:-TAIL_ROWS] = [f"[... {left_out} more rows ...]"]
    return [f"| {row}".rstrip() for row in rows]


def _wrapped(line: str) -> list[str]:
    wrapper = textwrap.TextWrapper(
        COLUMNS - 3, max_lines=3, placeholder=" …", break_on_hyphens=False
    )
    return wrapper.wrap(line) or [""]


def table_rows(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return ``rows`` in columns: the first aligned left, the others right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]

    def line(row: Sequence[str]) -> str:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        return "  ".join(cells).rstrip()

    return [line(row) for row in rows]


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
