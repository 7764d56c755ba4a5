"""The JSON API of the view. Content leaves it as text or as a picture only."""

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from mimetypes import guess_extension
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from fetchstash.errors import BadArgument, FetchstashError, TooLarge
from fetchstash.render import error_line
from fetchstash.server.ui._plot import Calls, Totals, origins, plot, totals
from fetchstash.server.ui._text import (
    LINE_CHARS,
    MAX_CHARS,
    Person,
    at_pointer,
    hit,
    level,
    line_window,
    parsed,
)
from fetchstash.server.ui._timeline import costs, entries, page
from fetchstash.stash import Stash, lines_of
from fetchstash.store import ALL_RUNS, ArtifactStore, Facts, open_store, project_of
from fetchstash.text.facts import PAGE_VERDICTS
from fetchstash.text.untyped import as_object

PAGE = 500
"""Artifacts of one answer."""
CALLS = 200
"""Calls of one answer."""
BLOCK = 200
"""Lines that the page asks for at a time; the first come with the artifact."""
_HITS = 30
_COSTS = 100
_PIECE_CHARS = 100_000
_EVENT_SECONDS = 0.5
_CHUNK = 2**18
_MAX_BODY = 4_096
"""Bytes of a change: it names an artifact."""
_MAX_TRACED = 2**20
"""Bytes of a text to trace: its characters, escaped."""

Answer = Awaitable[Any]


class Json(JSONResponse):
    """JSON in ASCII: a value of a document may hold a lone surrogate, which UTF-8 has not."""

    def render(self, content: Any) -> bytes:
        """Return the bytes."""
        return json.dumps(content, separators=(",", ":")).encode()


class Api:
    """The answers, over a Stash that sees all runs. ``run`` is shown first."""

    def __init__(self, stash: Stash, run: str, person: Person) -> None:
        self._stash = stash
        self._run = run
        self._person = person
        self._calls = Calls(stash.settings)
        self._stores: dict[str, ArtifactStore] = {ALL_RUNS: stash.store}
        self._tree: tuple[str, Any] = ("", None)
        self._listing = anyio.Lock()
        self._listed: tuple[object, list[Facts]] = (None, [])
        self._totals: tuple[str, Totals] | None = None
        self.ended = anyio.Event()

    async def aclose(self) -> None:
        """Close the stores that were opened for the runs."""
        for run, store in self._stores.items():
            if run != ALL_RUNS:
                await store.aclose()

    @property
    def routes(self) -> list[Route]:
        """The routes, beneath ``api/``."""
        reads: Mapping[str, Callable[[Request], Answer]] = {
            "runs": self._runs,
            "list": self._list,
            "artifact": self._artifact,
            "lines": self._lines,
            "piece": self._piece,
            "part": self._part,
            "grep": self._grep,
            "search": self._search,
            "timeline": self._timeline,
            "timeline.html": self._timeline_page,
            "tree": self._level,
            "stats": self._stats,
            "picture": self._picture,
            "plot.svg": self._plot,
            "download": self._download,
            "events": self._events,
        }
        changes: Mapping[str, Callable[[Request], Answer]] = {
            "trace": self._trace,
            "pin": self._pin,
            "delete": self._delete,
            "open": self._open,
        }
        return [
            *(Route(f"/{name}", self._answered(work)) for name, work in reads.items()),
            *(
                Route(f"/{name}", self._answered(work), methods=["POST"])
                for name, work in changes.items()
            ),
        ]

    def _answered(
        self, work: Callable[[Request], Answer]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                value = await work(request)
            except FetchstashError as error:
                line = error_line(error, self._person.word)
                too_large = isinstance(error, TooLarge)  # the rest of it is not read
                status, headers = (413, {"connection": "close"}) if too_large else (400, None)
                return Json({"code": error.code, "line": line}, status, headers)
            return value if isinstance(value, Response) else Json(value)

        return answer

    # --- lists ------------------------------------------------------------------------------------

    async def _stash_of(self, run: str) -> Stash:
        """Return the Stash as one run sees it."""
        if run not in self._stores:
            if run not in {known.name for known in await self._stash.store.runs()}:
                raise BadArgument("There is no such run.", "Load the page again.")
            limits = replace(self._stash.settings.store, run=run)
            self._stores[run] = await open_store(limits)
        documents = replace(self._stash.documents, store=self._stores[run])
        return replace(self._stash, store=documents.store, documents=documents)

    async def _runs(self, _: Request) -> dict[str, Any]:
        projects = await self._calls.projects()
        runs = [
            {
                "name": run.name,
                "project": project_of(run.name) or projects.get(run.name, ""),
                "artifacts": run.artifacts,
                "newest": run.newest.timestamp(),
            }
            for run in await self._stash.store.runs()
        ]
        own = self._run if any(run["name"] == self._run for run in runs) else ALL_RUNS
        return {"runs": runs, "run": own, "can_open": self._person.open_copy is not None}

    async def _list(self, request: Request) -> dict[str, Any]:
        stash = await self._stash_of(request.query_params.get("run", ALL_RUNS))
        limit = min(_number(request, "limit", PAGE), PAGE)
        page = await stash.list(limit=limit, offset=_number(request, "offset", 0))
        return {"total": page.total, "items": await self._rows(list(page))}

    async def _rows(self, artifacts: Sequence[Facts]) -> list[dict[str, Any]]:
        """Return the list entries of artifacts."""
        places = origins(artifacts, await self._calls.of_run(ALL_RUNS))
        return [row(facts, places[facts.artifact_ref]) for facts in artifacts]

    async def _stats(self, request: Request) -> dict[str, Any]:
        run, facts, calls = await self._run_of(request)
        sums = await anyio.to_thread.run_sync(totals, facts, calls)
        self._totals = run, sums
        return asdict(sums)

    async def _plot(self, request: Request) -> Response:
        """Draw the sums that the page was given last."""
        if self._totals is None or self._totals[0] != request.query_params.get("run", ALL_RUNS):
            await self._stats(request)
        assert self._totals
        width = min(max(_number(request, "width", 760), 300), 1_600)
        return Response(plot(self._totals[1], width), media_type="image/svg+xml")

    async def _run_of(self, request: Request) -> tuple[str, list[Facts], list[dict[str, Any]]]:
        """Return a run with its artifacts, listed anew if any changed, and its calls."""
        run = request.query_params.get("run", ALL_RUNS)
        stash = await self._stash_of(run)
        async with self._listing:  # the page asks for sums and calls at once
            state = (run, *await _state(stash.store, run))
            if state != self._listed[0]:
                self._listed = state, list((await stash.list(limit=100_000)).facts)
            facts = self._listed[1]
        return run, facts, await self._calls.of_run(run)

    async def _timeline(self, request: Request) -> dict[str, Any]:
        """Return calls, newest first, and the total cost of all."""
        _, facts, calls = await self._run_of(request)
        artifacts = {kept.artifact_ref: kept for kept in facts}
        end = max(len(calls) - _number(request, "offset", 0), 0)
        shown = calls[max(end - min(_number(request, "limit", CALLS), CALLS), 0) : end]
        sums = await anyio.to_thread.run_sync(costs, calls, artifacts)
        return {
            "total": len(calls),
            **{name: sum(call.get(name) or 0 for call in calls) for name in ("tokens", "ms")},
            "items": entries(shown, artifacts)[::-1],
            "costs": {by: rows[:_COSTS] for by, rows in sums.items()},
        }

    async def _timeline_page(self, request: Request) -> Response:
        run, facts, calls = await self._run_of(request)
        artifacts = {kept.artifact_ref: kept for kept in facts}

        def made() -> str:
            name = "all projects" if run == ALL_RUNS else run
            return page(name, entries(calls, artifacts), costs(calls, artifacts))

        return _attachment([(await anyio.to_thread.run_sync(made)).encode()], "timeline.html")

    async def _events(self, request: Request) -> Response:
        """Send an event for each artifact that comes, goes or changes, and for each logged call."""
        run = request.query_params.get("run", ALL_RUNS)
        store = (await self._stash_of(run)).store

        async def events() -> AsyncGenerator[str]:
            known = None
            yield "retry: 1000\n\n"
            while not self.ended.is_set():
                state = (*await _state(store, run), self._calls.state())
                if state != known:
                    yield f"data: {json.dumps(state)}\n\n"
                    known = state
                with anyio.move_on_after(_EVENT_SECONDS):
                    await self.ended.wait()

        return StreamingResponse(events(), media_type="text/event-stream")

    # --- one artifact -----------------------------------------------------------------------------

    async def _artifact(self, request: Request) -> dict[str, Any]:
        facts, reader = await self._stash.store.open_artifact(_text(request, "ref"))
        calls = await self._calls.of_artifact(facts.artifact_ref)
        [shown] = await self._rows([facts])
        data: dict[str, Any] = {"facts": facts.to_json(), "row": shown, "calls": calls}
        data["verdict"] = PAGE_VERDICTS.get(facts.page_verdict, "")
        if reader is None:
            return data
        try:
            for call in calls:
                found = [await lines_of(reader, span) for span in call["spans"]]
                call["lines"] = [lines for lines in found if lines]
            data["lines"] = reader.lines
            data["block"] = await line_window(reader, 1, BLOCK)
            data["tables"] = [asdict(table) for table in reader.ranges.tables]
            data["pages"] = [await reader.line_of_char(at) for at in reader.ranges.pages]
        finally:
            await reader.aclose()
        return data

    async def _lines(self, request: Request) -> dict[str, Any]:
        async with self._stash.documents.text(_text(request, "ref")) as reader:
            return await line_window(reader, _number(request, "start", 1), _number(request, "n", 1))

    async def _piece(self, request: Request) -> dict[str, Any]:
        """Return the next characters of a line that was cut."""
        start = _number(request, "start", 0)
        end = min(_number(request, "end", 0), start + 5 * LINE_CHARS)
        async with self._stash.documents.text(_text(request, "ref")) as reader:
            return {"text": await reader.read_chars(start, end), "end": end}

    async def _part(self, request: Request) -> dict[str, Any]:
        """Return the text at a path: an archive's member, a JSON value, links."""
        path = _text(request, "path")
        part = await self._stash.slice(_text(request, "ref"), path=path, max_chars=_PIECE_CHARS)
        return {"text": part.text, "whole": part.is_whole and part.cut_at is None}

    async def _level(self, request: Request) -> dict[str, Any]:
        facts = await self._facts(request)
        pointer = request.query_params.get("path", "")
        if self._tree[0] != facts.sha256:
            if (facts.extracted_chars or 0) > MAX_CHARS:
                raise BadArgument("This document is too large for a tree.", "Read its text.")
            text = (await self._stash.read(facts.artifact_ref)).text
            self._tree = (facts.sha256, await anyio.to_thread.run_sync(parsed, text))
        return level(at_pointer(self._tree[1], pointer), pointer, _number(request, "start", 0))

    async def _grep(self, request: Request) -> dict[str, Any]:
        asked = request.query_params
        matches = await self._stash.grep(
            _text(request, "pattern"),
            [_text(request, "ref")],
            literal=asked.get("literal") == "1",
            ignore_case=asked.get("ignore_case") == "1",
            context=0,
            max_matches=200,
            offset=_number(request, "offset", 0),
        )
        found = [{"line": match.line, "text": match.text[:400]} for match in matches]
        return {"total": matches.total, "stopped": matches.stopped, "matches": found}

    async def _search(self, request: Request) -> dict[str, Any]:
        stash = await self._stash_of(request.query_params.get("run", ALL_RUNS))
        refs = [ref] if (ref := request.query_params.get("ref", "")) else []
        query = _text(request, "query")
        found = await stash.search(query, refs, max_results=_HITS)
        rows = await self._rows([found.facts[passage.artifact_ref] for passage in found])
        hits = [{"row": shown, **hit(query, at)} for shown, at in zip(rows, found, strict=True)]
        return {"pending": found.pending, "searched": found.searched, "passages": hits}

    async def _picture(self, request: Request) -> Response:
        page = _number(request, "page", 0) or None
        path = request.query_params.get("path", "")
        picture = await self._stash.picture(_text(request, "ref"), page, path=path)
        return Response(picture.data, media_type=picture.media_type)

    async def _download(self, request: Request) -> Response:
        facts = await self._facts(request)
        raw = request.query_params.get("raw") == "1"
        if not raw:
            async with self._stash.documents.text(facts.artifact_ref):
                pass  # an artifact without text is an error, not an empty file
        body = self._bytes_of(facts) if raw else self._text_of(facts)
        return _attachment(body, _file_name(facts, raw=raw))

    async def _bytes_of(self, facts: Facts) -> AsyncGenerator[bytes]:
        async with (
            self._stash.raw(facts.artifact_ref) as path,
            await anyio.open_file(path, "rb") as file,
        ):
            while chunk := await file.read(_CHUNK):
                yield chunk

    async def _text_of(self, facts: Facts) -> AsyncGenerator[bytes]:
        async with self._stash.documents.text(facts.artifact_ref) as reader:
            for start in range(0, reader.chars, _CHUNK):
                yield (await reader.read_chars(start, start + _CHUNK)).encode()

    # --- changes ----------------------------------------------------------------------------------

    async def _trace(self, request: Request) -> dict[str, Any]:
        """Return the origins of a text's sentences. A POST, because the text may be long."""
        asked = await _body(request, "text", _MAX_TRACED)
        traced = await (await self._stash_of(str(asked.get("run", ALL_RUNS)))).trace(asked["text"])
        return {
            "origins": [origin.to_json() for origin in traced],
            "searched": traced.searched,
            "pending": traced.pending,
            "is_logged": traced.is_logged,
        }

    async def _pin(self, request: Request) -> dict[str, Any]:
        asked = await _body(request)
        await self._stash.pin(asked["ref"], pinned=asked.get("pinned") is True)
        return {"row": (await self._rows([await self._stash.store.get(asked["ref"])]))[0]}

    async def _delete(self, request: Request) -> dict[str, Any]:
        await self._stash.delete((await _body(request))["ref"])
        return {}

    async def _open(self, request: Request) -> dict[str, Any]:
        facts = await self._stash.store.get((await _body(request))["ref"])
        open_copy = self._person.open_copy
        if open_copy is None:
            raise BadArgument("No program is opened from here.", "Download the file.")
        async with self._stash.raw(facts.artifact_ref) as path:
            await anyio.to_thread.run_sync(open_copy, facts, path)
        return {}

    async def _facts(self, request: Request) -> Facts:
        return await self._stash.store.get(_text(request, "ref"))


async def _state(store: ArtifactStore, run: str) -> tuple[int, str, int]:
    """Return a value that changes with each artifact or text: the count, the newest, all bytes."""
    page, usage = await store.list(limit=1), await store.usage(own=run != ALL_RUNS)
    return page.total, page.facts[0].artifact_ref if page.facts else "", usage.bytes


def row(facts: Facts, origin: str) -> dict[str, Any]:
    """Return what a list shows of an artifact."""
    return {
        "ref": facts.artifact_ref,
        "title": facts.title or facts.name or facts.final_url or facts.artifact_ref,
        "url": facts.final_url,
        "host": origin,
        "kind": facts.content_kind,
        "word": facts.word or facts.content_kind,
        "size": facts.size_bytes,
        "chars": facts.extracted_chars,
        "tokens": facts.text_tokens,
        "created": facts.created_at.timestamp() if facts.created_at else 0,
        "pinned": facts.pinned,
        "failed": bool(facts.extraction_error or facts.incomplete),
    }


def _file_name(facts: Facts, *, raw: bool) -> str:
    """Return a name for a download, of letters, digits, dots, "_" and "-", with an extension."""
    name = re.sub(r"[^\w.-]+", "_", facts.name or facts.title).strip("._") or "artifact"
    path = PurePath(name)
    extension = path.suffix[:16] or (guess_extension(facts.media_type) or "" if raw else "")
    name = path.stem[:80] + extension
    return name if raw or extension == ".txt" else f"{name}.txt"


def _text(request: Request, name: str) -> str:
    value = request.query_params.get(name, "")
    if not value:
        raise BadArgument(f"{name} is missing.", "Load the page again.")
    return value


def _number(request: Request, name: str, default: int) -> int:
    value = request.query_params.get(name, "")
    if not re.fullmatch(r"\d{0,12}", value, re.ASCII):
        raise BadArgument(f"{name} is no number.", "Load the page again.")
    return int(value) if value else default


def _attachment(body: AsyncGenerator[bytes] | list[bytes], name: str) -> Response:
    """Return a file that no browser shows."""
    disposition = f"attachment; filename*=UTF-8''{quote(name)}"
    return StreamingResponse(
        body, media_type="application/octet-stream", headers={"content-disposition": disposition}
    )


async def _body(request: Request, name: str = "ref", most: int = _MAX_BODY) -> dict[str, Any]:
    """Return the JSON object of a change, which names an artifact, or has a text."""
    if request.headers.get("content-type") != "application/json":
        raise BadArgument("The request is no JSON.", "Load the page again.")
    body = b""
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > most:
                raise TooLarge(f"A change has at most {most:,} bytes.", "Load the page again.")
        value = json.loads(body)
    except (ValueError, RecursionError, ClientDisconnect):
        value = None
    asked = as_object(value)
    if not isinstance(asked.get(name), str):
        raise BadArgument(f"The request has no {name}.", "Load the page again.")
    return asked
