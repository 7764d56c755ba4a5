"""The peers: their locked versions, how each is installed, started and asked."""

import ast
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compare._cases import Case
from scripts.drive.tools import ROOT, debian, node_locks, node_tool, python_locks, python_tool

DRIVERS = Path(__file__).with_name("peers")
CALLS = 10
"""At most so many calls of a tool may be made for an answer."""

Call = tuple[str, dict[str, Any]]
Talk = Callable[[Case, Sequence[str]], Call | None]
"""Return the next call for a case after these answers, or None if nothing can follow."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A server or library: its tool of requirements/tools.toml, its command, its rule of calls."""

    name: str
    tool: str
    command: tuple[str, ...]
    """``{env}`` is its environment, ``{python}`` ours, ``{chromium}`` the machine's browser, and
    ``{path}`` PATH with a Node of version 22 or newer in front."""
    talk: Talk
    role: str = "web"
    package: str = ""
    """Its package, if that is not called like the tool."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    planted: bool = False
    opening: int = 1
    """How many calls open a page: all there are where something other than a page comes."""


def fetch_tool(tool: str, argument: str = "url", **more: Any) -> Talk:
    """Return the rule that fetches once."""
    return lambda case, answers: None if answers else (tool, {argument: case.url, **more})


def _ours(case: Case, answers: Sequence[str]) -> Call | None:
    """Fetch; then search for the question; then make the calls that the answers name."""
    if not answers:
        return "fetch_content", {"url": case.url}
    if "artifact_ref=" not in answers[0]:
        return None
    calls: list[Call] = [("artifact_search", {"query": case.ask})]
    if grep := case.page.get("grep"):
        calls.append(("artifact_grep", {"pattern": grep, "artifact_ref": case.url}))
    calls += [call for answer in answers for call in named_calls(answer)]
    unique = {json.dumps(call): call for call in calls}
    rest = list(unique.values())[len(answers) - 1 :]
    return rest[0] if rest else None


def named_calls(text: str) -> Iterator[Call]:
    """Yield the calls of tools that an answer of ours spells out as ``tool(name=value)``."""
    for match in re.finditer(r"\b((?:artifact|get|fetch)_\w+)\(([^()]*)\)", text):
        try:
            call = ast.parse(f"f({match[2]})", mode="eval").body
            assert isinstance(call, ast.Call)
            values = {word.arg or "": ast.literal_eval(word.value) for word in call.keywords}
        except (SyntaxError, ValueError):
            continue
        yield match[1], values


def _paged(tool: str, pattern: str) -> Talk:
    """Return the rule that fetches, then reads on from the index that the last answer names."""

    def talk(case: Case, answers: Sequence[str]) -> Call | None:
        if not answers:
            return tool, {"url": case.url}
        index = re.search(pattern, answers[-1])
        return (tool, {"url": case.url, "start_index": int(index[1])}) if index else None

    return talk


def _context_mode(case: Case, answers: Sequence[str]) -> Call | None:
    if not answers:
        return "ctx_fetch_and_index", {"url": case.url, "source": case.name}
    queries = [case.ask] if len(answers) == 1 else [word for word in case.ask.split() if word[3:]]
    return None if len(answers) > 2 else ("ctx_search", {"queries": queries, "source": case.name})


def _pi(case: Case, answers: Sequence[str]) -> Call | None:
    """Fetch; then find the question's words in what it stored; then read on by its offset."""
    if not answers:
        return "fetch_content", {"url": case.url}
    stored = re.search(r'responseId:? ?"?([\w-]{6,})', answers[0])
    if not stored:
        return None
    select = {"responseId": stored[1], "urlIndex": 0}
    if len(answers) == 1:
        words = [word for word in case.ask.split() if len(word) > 3][:10]
        return "get_search_content", select | {"findText": words}
    offset = re.search(r"offset:? ?(\d+)", answers[-1])
    return ("get_search_content", select | {"offset": int(offset[1])}) if offset else None


def _wrapped(case: Case, answers: Sequence[str]) -> Call | None:
    """Call the server's tool; then look for the question as with our own."""
    return _ours(case, answers) if answers else ("fetch", {"url": case.url})


def _jmunch(case: Case, answers: Sequence[str]) -> Call | None:
    """Call the server's tool; then search its handle for the word that is looked for."""
    if not answers:
        return "fetch", {"url": case.url}
    handle = re.search(r'"handle": ?"([^"]+)"', answers[0])
    queries = (case.page["grep"], case.ask)
    if not handle or len(answers) > len(queries):
        return None
    return "jmunch_search", {"handle": handle[1], "query": queries[len(answers) - 1]}


def _governor(case: Case, answers: Sequence[str]) -> Call | None:
    """Call the server's tool; then read what was left out, slice by slice."""
    if not answers:
        return "fetch", {"url": case.url}
    left = re.search(r'"artifact_id\W+(\w+)', answers[0])
    slice_ = {"offset": 20_000 * (len(answers) - 1), "limit": 20_000}
    return ("governor_fetch_slice", {"artifact_id": left[1], **slice_}) if left else None


def _playwright(case: Case, answers: Sequence[str]) -> Call | None:
    """Open the page, whose snapshot goes to a file; then ask for the snapshot itself."""
    calls: tuple[Call, ...] = (("browser_navigate", {"url": case.url}), ("browser_snapshot", {}))
    return calls[len(answers)] if len(answers) < len(calls) else None


PLANTED = ("{python}", "-P", str(DRIVERS / "planted.py"))
_SERVERS_AND_LIBRARIES = (
    Peer("fetchstash", "", ("{ours}", "serve"), _ours),
    Peer(
        "mcp-server-fetch",
        "mcp-server-fetch",
        ("{env}/bin/mcp-server-fetch", "--ignore-robots-txt"),
        _paged("fetch", r"start_index of (\d+)"),
        # With node on its path it would ask npm for its simplifier while it answers.
        environment={"PATH": "{env}/bin"},
    ),
    Peer(
        "duckduckgo-mcp",
        "duckduckgo-mcp",
        ("{env}/bin/duckduckgo-mcp-server", "--fetch-rpm", "10000", "--fetch-host-rpm", "10000"),
        _paged("fetch_content", r"start_index=(\d+)"),
        package="duckduckgo-mcp-server",
    ),
    Peer(
        "pi-web-access", "pi-web-access", ("node", str(DRIVERS / "pi-web-access.mjs"), "{env}"), _pi
    ),
    Peer(
        "context-mode",
        "context-mode",
        ("{env}/node_modules/.bin/context-mode",),
        _context_mode,
        environment={"PATH": "{path}"},
    ),
    Peer(
        "fetcher-mcp",
        "fetcher-mcp",
        ("{env}/node_modules/.bin/fetcher-mcp",),
        fetch_tool("fetch_url"),
        environment={"PLAYWRIGHT_BROWSERS_PATH": "{env}/browsers"},
    ),
    Peer(
        "Playwright MCP",
        "playwright-mcp",
        (
            *("{env}/node_modules/.bin/playwright-mcp", "--headless", "--isolated"),
            *("--no-sandbox", "--executable-path", "{chromium}"),
        ),
        _playwright,
        opening=2,
    ),
    Peer("planted: leaks", "", (*PLANTED, "leak"), fetch_tool("fetch"), planted=True),
    Peer("planted: floods", "", (*PLANTED, "flood"), fetch_tool("fetch"), planted=True),
    Peer("planted: lies", "", (*PLANTED, "lie"), fetch_tool("fetch"), planted=True),
    *(
        Peer(
            name,
            name,
            ("{env}/bin/python", str(DRIVERS / "extract.py"), name),
            fetch_tool("extract"),
            role="extract",
        )
        for name in ("trafilatura", "markitdown", "html2text")
    ),
)


RAW = (*PLANTED, "raw")
JMUNCH = f'{{{{"upstream": {{{{"command": "{{python}}", "args": ["-P", "{RAW[2]}", "raw"]}}}}}}}}'
PEERS = (
    *_SERVERS_AND_LIBRARIES,
    Peer("fetchstash wrap", "", ("{ours}", "wrap", "--", *RAW), _wrapped, role="results"),
    Peer(
        "jmunch-mcp",
        "jmunch-mcp",
        ("sh", "-c", f"echo '{JMUNCH}' > j.json && exec {{env}}/bin/jmunch-mcp --config j.json"),
        _jmunch,
        role="results",
    ),
    Peer(
        "tool-result-size-governor",
        "tool-result-size-governor",
        ("{env}/bin/tool-result-governor-proxy", "--", *RAW),
        _governor,
        role="results",
    ),
    *(
        Peer(
            name,
            "langchain",
            ("{env}/bin/python", str(DRIVERS / "overflow.py"), word),
            fetch_tool("converse"),
            role="overflow",
            environment={"PYTHONPATH": str(ROOT)},
        )
        for name, word in (
            ("fetchstash's client", "fetchstash"),
            ("LangChain, context editing", "langchain-edits"),
            ("LangChain, summarization", "langchain-summary"),
        )
    ),
)


def install(peer: Peer) -> Path | None:
    """Return the environment of a peer, made from its lock if need be; None if it cannot be had.

    What cannot be had is said on a line of its own.
    """
    browser = "{chromium}" in " ".join(peer.command) or "browsers" in str(peer.environment)
    if browser and not debian("chromium", "chromium"):
        return None
    if not peer.tool:
        return ROOT
    if peer.tool in python_locks():
        programs = python_tool(peer.tool)
        return programs.parent if programs else None
    os.environ["NPM_CONFIG_IGNORE_SCRIPTS"] = "true"  # some would download browsers
    folder = node_tool(peer.tool)
    if folder and peer.name == "fetcher-mcp":
        _place_browser(folder)
    return folder


def _place_browser(folder: Path) -> None:
    """Put the machine's Chromium where Playwright looks for its own, which is not downloaded."""
    chromium = shutil.which("chromium") or ""
    listed = folder / "node_modules" / "playwright-core" / "browsers.json"
    programs = {
        "chromium": ("chrome-linux64/chrome", "chrome-linux/chrome"),
        "chromium-headless-shell": (
            "chrome-headless-shell-linux64/chrome-headless-shell",
            "chrome-linux/headless_shell",
        ),
    }
    for browser in json.loads(listed.read_text(encoding="utf-8"))["browsers"]:
        for program in programs.get(browser["name"], ()):
            kind = browser["name"].replace("-", "_")
            home = folder / "browsers" / f"{kind}-{browser['revision']}"
            (home / program).parent.mkdir(parents=True, exist_ok=True)
            (home / program).unlink(missing_ok=True)
            (home / program).symlink_to(chromium)
            (home / "INSTALLATION_COMPLETE").touch()


def version(peer: Peer) -> str:
    """Return the package of a peer and the version that its lock names."""
    if lock := python_locks().get(peer.tool):
        package = peer.package or peer.tool
        match = re.search(rf"(?m)^{re.escape(package)}==(\S+)", lock)
        return f"{package} {match[1]}" if match else package
    packages = node_locks()[peer.tool]["packages"]
    (package,) = packages[""]["dependencies"]
    return f"{package} {packages[f'node_modules/{package}']['version']}"
