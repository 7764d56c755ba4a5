"""Answer a call of a tool, with progress."""

import logging
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import anyio
import mcp_types as types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from fetchstash import __version__
from fetchstash.errors import FetchstashError, Internal, Refused, StoreError
from fetchstash.render import Host, View, as_tool, error_view
from fetchstash.server._lazy import Context, InputNeeded
from fetchstash.server._resources import Announcer
from fetchstash.server.tools import Reports, ToolSpec, answer, tool_named
from fetchstash.stash import with_views
from fetchstash.system import telemetry
from fetchstash.text import counted

_SECONDS = 0.1
_UNITS = ((2**30, "GB"), (2**20, "MB"), (2**10, "KB"), (1, "bytes"))

Send = Callable[[float, float | None, str], None]


def reports_to(send: Send) -> Reports:
    """Return the receivers of a call's progress; ``send`` takes progress, total and message.

    Pages count on from the bytes, because one call has one progress.
    """
    before, sent_at, last = 0, 0.0, 0

    def report(progress: int, total: int | None, message: str) -> None:
        nonlocal last
        if progress > last:
            last = progress
            send(progress, total, message)

    def received(done: int, total: int | None) -> None:
        nonlocal before
        before = done
        report(done, total, f"received {amount(done, total)}")

    def read(done: int, total: int | None) -> None:
        nonlocal sent_at
        now = time.monotonic()
        if now - sent_at >= _SECONDS or done == total:
            sent_at = now
            of = f" of {total}" if total else ""
            report(before + done, before + total if total else None, f"reading page {done}{of}")

    def fetched(noun: str, done: int, total: int | None) -> None:
        report(done, total, f"fetched {done} of {counted(total or 0, noun)}")

    return Reports(received, read, partial(fetched, "URL"), partial(fetched, "page"))


def amount(done: int, total: int | None) -> str:
    """Return bytes in the unit of the whole: "3.4 of 16 MB", "812 KB"."""
    scale, unit = next(pair for pair in _UNITS if (total or done) >= pair[0] or pair[0] == 1)
    of = f" of {_number(total / scale)}" if total else ""
    return f"{_number(done / scale)}{of} {unit}"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


_IDENTITY = {types.SERVER_INFO_META_KEY: {"name": "fetchstash", "version": __version__}}
"""Of each result in the 2026 era. The SDK would put the icon into it, too."""

_log = logging.getLogger("fetchstash.server")


async def answer_call(
    tools: Mapping[str, ToolSpec],
    announcer: Announcer | None,
    ctx: Context,
    params: types.CallToolRequestParams,
) -> dict[str, Any] | types.InputRequiredResult:
    """Answer a call: report progress if asked for, and announce new artifacts."""
    if ctx.request and "progress_token" not in (ctx.meta or {}):  # in memory none is needed
        return await _answer(tools, announcer, ctx, params, Reports())
    async with anyio.create_task_group() as tasks:

        def send(progress: float, total: float | None, message: str) -> None:
            tasks.start_soon(ctx.session.report_progress, progress, total, message)

        return await _answer(tools, announcer, ctx, params, reports_to(send))
    raise AssertionError  # a task group passes every exception on; type checkers cannot know


async def _answer(
    tools: Mapping[str, ToolSpec],
    announcer: Announcer | None,
    ctx: Context,
    params: types.CallToolRequestParams,
    reports: Reports,
) -> dict[str, Any] | types.InputRequiredResult:
    """Run a tool; where a private host is refused, ask the person and run it again.

    Every failure becomes one line, with its facts for ``_meta``.
    """
    opener, answers = ctx.lifespan_context, params.input_responses
    host, meta = opener.host(ctx), dict[str, Any]()
    try:
        tool = tool_named(params.name, tools, params.arguments)
        stash = with_views(await opener.get(ctx, answers), host.limits)
        run = partial(answer, stash, host, tool, params.arguments or {}, reports)
        try:
            view = await run()
        except Refused as refused:
            if not await opener.person_allows(ctx, answers, [refused.details]):
                raise
            view = await run()
        else:
            failures = [cast("Mapping[str, Any]", r["error"]) for r in view.records if "error" in r]
            if await opener.person_allows(ctx, answers, failures):
                view = await run()
    except InputNeeded as needed:
        return needed.result
    except FetchstashError as caught:
        telemetry.count("refusals", code=caught.code)
        if isinstance(caught, StoreError):
            _log.warning("%s: %s", params.name, caught.line(as_tool))
        view, meta = _failure(host, caught)
    except Exception:  # noqa: BLE001 - a fault of ours must not end the server
        _log.exception("%s failed", params.name)
        what = "Something went wrong inside fetchstash."
        view, meta = _failure(host, Internal(what, "Try again; the server's log has the details."))
    called = tools.get(params.name)
    if announcer and called and called.keeps:
        await announcer.fetched(ctx, view.facts)
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        meta |= _IDENTITY
    return _result(view, meta, structured=opener.settings.views.structured)


def _failure(host: Host, error: FetchstashError) -> tuple[View, dict[str, Any]]:
    details = host.shown(error).details
    return error_view(host, error), {"fetchstash/error": {"code": error.code, **details}}


def _result(view: View, meta: dict[str, Any], *, structured: bool) -> dict[str, Any]:
    """Return a result as JSON: the SDK would validate an object of its own type twice."""
    # The SDK dies of a lone surrogate. Stored text has none; an error may quote what the model
    # sent.
    data = view.text.encode("utf-8", "replace")
    telemetry.count("bytes_out", len(data))
    text = data.decode("utf-8")
    pictures = [
        {"type": "image", "data": b64encode(picture).decode("ascii"), "mimeType": media_type}
        for picture, media_type in view.pictures
    ]
    is_structured = structured and not view.is_error
    return {
        "resultType": "complete",
        "content": [{"type": "text", "text": text}, *pictures],
        **({"structuredContent": {"result": text}} if is_structured else {}),
        "isError": view.is_error,
        "_meta": {"fetchstash/artifact": list(view.facts), **meta},
    }
