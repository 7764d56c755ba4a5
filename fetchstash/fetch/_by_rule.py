"""Fetch a document that a rule leads to: one part, or several that become one answer."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import anyio
import anyio.to_thread

from fetchstash.errors import FetchFailed, FetchstashError
from fetchstash.fetch._contract import Cached, Fetched, Fetcher, Progress
from fetchstash.fetch._mask import mask_url
from fetchstash.fetch._responses import pager
from fetchstash.fetch._rules import Match
from fetchstash.system.processes import new_file

_FIND_BYTES = 4 * 2**20
_TAIL_BYTES = 2_000
_COPY_BYTES = 2**20
_MAX_TEXT_BYTES = 8 * 2**20
"""Of a part that is no JSON and becomes a JSON string."""
_WEB_PAGES = frozenset({"text/html", "application/xhtml+xml"})


async def fetch_match(
    fetcher: Fetcher,
    match: Match,
    folder: Path,
    *,
    cached: Cached | None,
    progress: Progress | None,
    until: float,
) -> Fetched:
    """Fetch the document that a rule points to, by ``until`` on the loop's clock; see Fetcher.

    The first part must come, the others may. The result has the ``rule`` and the URL that was asked
    for. Raises what the fetcher raises, and FetchFailed for a web page instead of the document.
    """

    async def part(address: str, known: Cached | None = None) -> Fetched:
        seconds = max(until - anyio.current_time(), 0)
        return await fetcher.fetch(
            address, folder, cached=known, progress=progress, seconds=seconds
        )

    rule = match.rule
    parts: list[Fetched | None] = []
    try:
        # Validators of the first of several parts would say nothing of the others.
        first = await part(match.first, cached if len(rule.parts) == 1 else None)
        parts.append(first)
        if _kind(first) in _WEB_PAGES and not rule.is_page:  # a form to sign in
            raise FetchFailed("A web page came instead of the document.", "Fetch the page.")
        known = replace(first, url=match.url, masked_url=mask_url(match.url), rule=rule.name)
        if not rule.shape or first.path is None:
            parts.clear()
            return known
        found = await anyio.to_thread.run_sync(_find, rule.finds, first.path) if rule.finds else {}
        for address in match.others(found):
            try:
                parts.append(await part(address) if address else None)
            except FetchstashError:
                parts.append(None)  # the answer says that it is missing
        return await anyio.to_thread.run_sync(_joined, match, known, parts, folder)
    finally:
        for spooled in parts:
            if spooled and spooled.path:
                spooled.path.unlink(missing_ok=True)


def _find(pattern: str, source: Path) -> dict[str, str]:
    """Return the rule's pattern match in the first document, with JSON escapes resolved."""
    with source.open("rb") as file:
        text = file.read(_FIND_BYTES).decode("utf-8", "replace")
    match = re.search(pattern, text.replace("\\u0026", "&").replace("\\/", "/"))
    return match.groupdict() if match else {}


def _joined(
    match: Match, fetched: Fetched, parts: Sequence[Fetched | None], folder: Path
) -> Fetched:
    """Return ``fetched`` with all parts in one new file. Blocking."""
    rule, path = match.rule, new_file(folder, "rule-")
    request = json.dumps({"url": fetched.masked_url, "page": match.page}).encode()
    digest = hashlib.sha256()
    has_more = False
    try:
        with path.open("wb") as file:

            def write(data: bytes) -> None:
                file.write(data)
                digest.update(data)

            if rule.is_page and (page := parts[0]):
                _copy(page, write)
            write(_DATA[0] if rule.is_page else b"")
            write(b"[" + request)
            for part in parts[1:] if rule.is_page else parts:
                write(b",\n")
                has_more |= _write_value(part, write, as_text=rule.is_page)
            write(b"]\n")
            write(_DATA[1] if rule.is_page else b"")
            size = file.tell()
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    headers = {name: v for name, v in fetched.headers.items() if name not in {"link", "etag"}}
    headers["content-type"] = f"{rule.media_type}; charset=utf-8"
    if has_more and (following := match.next_url()):
        headers["link"] = f'<{following}>; rel="next"'
    name = unquote(match.page_url.rstrip("/").rpartition("/")[2])
    return replace(
        fetched, path=path, headers=headers, size_bytes=size, sha256=digest.hexdigest(), name=name
    )


# A page keeps its own bytes; what else came for it is a script of data behind them.
_DATA = b'\n<script type="application/json" id="fetched">', b"</script>"


def _kind(fetched: Fetched) -> str:
    return fetched.headers.get("content-type", "").partition(";")[0].strip().lower()


def _copy(part: Fetched, write: Callable[[bytes], None]) -> bytes:
    """Write a part as it is; return its end."""
    tail = b""
    if part.path:
        with part.path.open("rb") as file:
            while data := file.read(_COPY_BYTES):
                write(data)
                tail = (tail + data)[-_TAIL_BYTES:]
    return tail


def _write_value(part: Fetched | None, write: Callable[[bytes], None], *, as_text: bool) -> bool:
    """Write a part as a value of JSON, or its text as a string; return whether it has a next page.

    A part that is no JSON becomes a string anyway.
    """
    if part is None or part.path is None:
        write(b"null")
        return False
    if as_text or "json" not in _kind(part):
        with part.path.open("rb") as file:
            text = file.read(_MAX_TEXT_BYTES).decode("utf-8", "replace")
        write(json.dumps(text).replace("</", "<\\/").encode())  # "</" would end a script
        return False
    tail = _copy(part, write)
    # Stack Exchange says it in the answer, the others in a header (RFC 8288).
    return bool(pager(part.headers).next_url) or re.search(rb'"has_more":\s?true', tail) is not None
