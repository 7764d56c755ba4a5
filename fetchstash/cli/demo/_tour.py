"""Start the real server as a host does, walk through its tools, and print it for 80 columns."""

import asyncio
import json
import os
import shutil
import sys
import sysconfig
import tempfile
import textwrap
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, cast

import anyio
from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from fetchstash.cli._progress import Meter
from fetchstash.cli._terminal import Column, Screen, screen_of, table
from fetchstash.cli.demo import site as content
from fetchstash.cli.demo.site import Site
from fetchstash.errors import Internal
from fetchstash.text import tokens
from fetchstash.text.tokens import TokenCount

__all__ = ["Answer", "ask", "command", "started"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a call: its text, the tokens of the text, the facts of its artifacts."""

    text: str
    tokens: int
    facts: tuple[dict[str, Any], ...]
    is_error: bool

    @property
    def ref(self) -> str:
        """The artifact's reference, "" if the call failed."""
        return str(self.facts[0]["artifact_ref"]) if self.facts else ""

    @property
    def whole(self) -> TokenCount:
        """The tokens of the whole documents."""
        exact = all(facts.get("text_tokens_exact", True) for facts in self.facts)
        return TokenCount(sum(facts.get("text_tokens") or 0 for facts in self.facts), exact)


def command() -> str:
    """Return the path of the command beside this Python. Raises Internal if it is missing."""
    path = shutil.which("fetchstash", path=sysconfig.get_path("scripts"))
    if path is None:
        raise Internal(
            "The command fetchstash is not installed beside this Python.",
            "Install the package there.",
        )
    return path


@asynccontextmanager
async def started(site: Site, *flags: str, mode: str = "auto") -> AsyncGenerator[Client]:
    """Start the server as a host does; it may fetch from ``site`` and keeps a temporary store.

    ``mode`` is the protocol era, as mcp's Client names it.
    """
    temporary = tempfile.TemporaryDirectory(prefix="fetchstash-demo-", ignore_cleanup_errors=True)
    with temporary as folder:
        # The null device is an empty settings file, in place of the user's own.
        options = {
            "--config": os.devnull,
            "--folder": str(Path(folder, "store")),
            "--allow-host": f"127.0.0.1:{site.port}",
        }
        arguments = ["serve", "--ephemeral", *chain.from_iterable(options.items()), *flags]
        server = StdioServerParameters(command=command(), args=arguments, cwd=folder)
        async with Client(server, mode=mode) as client:
            yield client


async def ask(client: Client, tool: str, **arguments: Any) -> Answer:
    """Call a tool and count the tokens of its answer."""
    result = await client.call_tool(tool, arguments)
    text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
    counted = await asyncio.to_thread(tokens.count, text)
    facts = cast("list[dict[str, Any]]", (result.meta or {}).get("fetchstash/artifact", []))
    return Answer(text, counted.tokens, tuple(facts), bool(result.is_error))


COLUMNS = 80
HEAD_ROWS, TAIL_ROWS = 8, 2


def run() -> int:
    """Print each call as a model sees it, with its tokens; return the exit code.

    At the end, also after Ctrl-C (KeyboardInterrupt), stops the server and the site and removes
    what they kept. Raises Internal if the command ``fetchstash`` is not installed.
    """
    return anyio.run(_tour)


def print_rows(rows: Iterable[str], style: str = "") -> None:
    """Print rows in a style; characters that the terminal's encoding lacks become "?"."""
    screen, encoding = screen_of(), sys.stdout.encoding or "utf-8"
    for row in rows:
        shown = screen.style(row, style) if style else row
        print(shown.encode(encoding, "replace").decode(encoding), flush=True)  # noqa: T201 - a program's output


def _print_title(text: str) -> None:
    print_rows([""])
    print_rows([text], "title")


def _print_sentence(text: str) -> None:
    print_rows(textwrap.wrap(text, COLUMNS - 1))


def call_rows(tool: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return ``tool(name=value, …)``, one argument a row if one row is too short for all."""
    written = [
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()
    ]
    whole = f"{tool}({', '.join(written)})"
    if len(whole) < COLUMNS:
        return [whole]
    wrapper = textwrap.TextWrapper(COLUMNS - 5, break_on_hyphens=False)
    rows = [row for argument in written for row in wrapper.wrap(argument + ",")]
    return [f"{tool}(", *(f"    {row}" for row in rows), ")"]


def result_rows(text: str) -> list[str]:
    """Return the first and the last rows of ``text``; a line takes three rows at most."""
    wrapper = textwrap.TextWrapper(
        COLUMNS - 3, max_lines=3, placeholder=" …", break_on_hyphens=False
    )
    rows = [row for line in text.splitlines() for row in wrapper.wrap(line) or [""]]
    left_out = len(rows) - HEAD_ROWS - TAIL_ROWS
    if left_out > 1:
        rows[HEAD_ROWS:-TAIL_ROWS] = [f"[... {left_out} more rows ...]"]
    return [f"| {row}".rstrip() for row in rows]


class _Tour:
    """Makes calls, shows each, and counts the tokens of its result and of its documents."""

    def __init__(self, client: Client, site: Site) -> None:
        self._client, self._site = client, site
        self.failed = False
        self.costs: list[tuple[str, int, TokenCount]] = []
        self.documents: dict[str, int] = {}

    async def step(self, title: str, tool: str, **arguments: Any) -> Answer:
        """Make one call and show it."""
        _print_title(f"{len(self.costs) + 1}. {title}")
        print_rows(call_rows(tool, arguments), "call")
        with Meter(title):
            answer = await ask(self._client, tool, **arguments)
        print_rows(result_rows(answer.text), "dim")
        whole = f"; the whole has {answer.whole:,}" if answer.whole.tokens else ""
        _print_sentence(f"{answer.tokens:,} tokens{whole}")
        self.costs.append((title, answer.tokens, answer.whole))
        for facts in answer.facts:
            self.documents[facts["artifact_ref"]] = facts.get("text_tokens") or 0
        self.failed |= answer.is_error
        return answer

    async def fetch(self, title: str, path: str, **arguments: Any) -> str:
        """Fetch a page of the site, of which little is shown; return its reference."""
        url = self._site.url(path)
        return (await self.step(title, "fetch_content", url=url, **arguments, maxChars=1_000)).ref


def _share(cost: int, whole: int) -> str:
    """Return the share of a document that a call showed, "whole" if it showed all of it."""
    return f"{cost / whole:.2%}" if cost < whole else "whole"


async def _tour() -> int:
    _print_sentence(
        "A small web site on this machine, and the fetchstash server, started as a host starts it. "
        "Nothing leaves this machine."
    )
    async with AsyncExitStack() as stack:
        with Meter("Making the site, starting the server"):
            site = await stack.enter_async_context(Site())
            client = await stack.enter_async_context(started(site))
        tour = _Tour(client, site)
        await _read_each(tour, site)
    _print_title("What went into the context, in tokens (o200k)")
    columns = [Column("call"), *(Column(name, right=True) for name in ("result", "whole", "share"))]
    rows = [
        (title, f"{cost:,}", f"{whole:,}", _share(cost, whole.tokens))
        for title, cost, whole in tour.costs
    ]
    heading, *lines = table(Screen(is_terminal=False), columns, rows)
    print_rows([heading], "title")
    print_rows([*lines, ""])
    spent = sum(cost for _, cost, _ in tour.costs)
    exact = all(whole.exact for _, _, whole in tour.costs)
    documents = TokenCount(sum(tour.documents.values()), exact)
    _print_sentence(
        f"All {len(tour.costs)} calls together: {spent:,} tokens. "
        f"The {len(tour.documents)} documents that they reached have {documents:,}."
    )
    from fetchstash.cli.hosts._register import start_command  # noqa: PLC0415 - only at the end

    program = start_command()[:-1]
    name = "scripts/run" if Path(program[0]).parent.name == "scripts" else "fetchstash"
    _print_sentence(f"Next: `{name} register` adds it to the hosts on this machine.")
    return int(tour.failed)


async def _read_each(tour: _Tour, site: Site) -> None:
    """Fetch, search, read on and slice, in each kind of document."""
    await tour.step("A page that fits comes whole", "fetch_content", url=site.url(content.ARTICLE))

    ref = await tour.fetch("A page of 2 MB comes as a preview", content.HANDBOOK)
    pattern: dict[str, Any] = {"pattern": content.FERRY.pattern}
    await tour.step("One passage in it", "artifact_grep", artifact_ref=ref, **pattern)
    place: dict[str, Any] = {"offset": 1_000, "maxChars": 1_000}
    await tour.step("Reading on", "get_search_content", artifact_ref=ref, **place)
    focus = "bicycles on the night ferry"
    await tour.fetch("Or say what you look for", content.HANDBOOK, focus=focus)

    ref = await tour.fetch("A PDF that says it is HTML", content.MISLABELLED)
    page = content.NEEDLE_PAGE
    place = {"unit": "pages", "start": page, "end": page}
    await tour.step(f"Its page {page}", "artifact_slice", artifact_ref=ref, **place)

    ref = await tour.fetch("5 MB of JSON show their shape", content.STATIONS_JSON)
    pattern = {"pattern": content.ROCK.pattern, "context": 0}
    record = f"One record of {content.STATIONS:,}"
    await tour.step(record, "artifact_grep", artifact_ref=ref, **pattern)
    path = f"/stations/{content.NEEDLE_STATION}"
    await tour.step("The same by its JSON pointer", "artifact_slice", artifact_ref=ref, path=path)

    ref = await tour.fetch(f"A table of {content.CSV_ROWS:,} rows", content.READINGS)
    row = content.NEEDLE_ROW
    place = {"unit": "rows", "start": row, "end": row}
    await tour.step(f"Its row {row:,}", "artifact_slice", artifact_ref=ref, **place)

    paths = (content.ARTICLE, content.HANDBOOK, content.REPORT, content.STATIONS_JSON)
    urls = [site.url(path) for path in paths]
    await tour.step("Four at once, in one budget", "fetch_content", urls=urls, maxChars=3_000)
