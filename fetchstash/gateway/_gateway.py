"""The gateway: one MCP server towards the host, in front of any number of others."""

import json
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from fetchstash.config import ARTIFACT_TOOLS, Settings
from fetchstash.errors import BadArgument, FetchstashError, ServerFailed
from fetchstash.gateway._arguments import Filling, holds_reference
from fetchstash.gateway._catalog import (
    LISTS,
    Catalog,
    Shortened,
    Subscriptions,
    merged,
    without_subscription,
)
from fetchstash.gateway._eras import PendingCalls, answered, signed, with_signed_questions
from fetchstash.gateway._lean import TOOL_SCHEMA, described, faults
from fetchstash.gateway._protocol import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    HANDSHAKE_VERSIONS,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_VERSIONS,
    PROTOCOL_VERSION_KEY,
    SERVER_INFO_KEY,
    UI_EXTENSION,
    UNSUPPORTED_PROTOCOL_VERSION,
    meta_of,
)
from fetchstash.gateway._rpc import Params, Peer, RequestId, RpcError, drop_our_meta, walked
from fetchstash.gateway._upstream import FOR_MODELS, HostInfo, Upstream
from fetchstash.text import clip
from fetchstash.text.untyped import as_object

if TYPE_CHECKING:
    from fetchstash.server.tools import LoggedCall
    from fetchstash.stash import Stash

UNKNOWN = {"name": "unknown", "version": "0"}
"""A client that does not say its name."""

UNREAD = 3
"""Previews of which none was read on, after which a host may hide the tools that read them."""

TASKS = 1_000
"""Tasks of servers whose calls are remembered."""

_UNREAD_LINE = (
    f"[{UNREAD} previews so far, and none was read on. Where the host hides tools, its person has "
    f"to allow {', '.join(ARTIFACT_TOOLS)}.]"
)

Handler = Callable[[str, Params], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class _Asked:
    """The target of a host's request: a tool, a prompt or the URI of a resource."""

    upstream: Upstream
    name: str
    arguments: Mapping[str, Any]
    shortened: Shortened = Shortened.ALL
    passed_on: Sequence[str] = ()
    started: float = field(default_factory=time.monotonic)

    def logged(self, settings: Settings) -> "LoggedCall":
        """Return it for the log of calls."""
        from fetchstash.server.tools import LoggedCall  # noqa: PLC0415 - heavy

        server = self.upstream.name
        call = settings, self.name, self.arguments, server, self.started, self.passed_on
        return LoggedCall(*call)


class Gateway:
    """Relays a host's requests to the servers behind it, and shortens long results.

    ``own`` is fetchstash itself, run like one of the servers; its results are never replaced.
    ``on_listed`` is called when the host has a list, to open what later calls need.
    """

    _tasks: anyio.abc.TaskGroup
    _pending: PendingCalls
    _subscriptions: Subscriptions

    def __init__(
        self,
        host: Peer,
        settings: Settings,
        stash: "Callable[[], Awaitable[Stash]]",
        upstreams: Sequence[Upstream],
        own: Upstream,
        *,
        with_fetch: bool,
        on_listed: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._host = host
        self._settings = settings
        self._stash = stash
        lean = settings.wrap.lean
        self._catalog = Catalog(upstreams, own, with_fetch=with_fetch, lean=lean)
        for upstream in self._catalog.all:
            upstream.for_host = self
        self._host_info: HostInfo | None = None
        self._on_listed = on_listed
        self._last_token = 0
        self._tasks_by_id: dict[str, _Asked] = {}
        self._unread = 0
        """Previews shown so far, as long as none was read on."""
        self._asked: dict[str, tuple[Upstream, str | int]] = {}
        """What servers asked of the host: whose it is and its own token, by the token we sent."""

        self._handlers: Mapping[str, Handler] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "tools/call": self._call_tool,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "resources/read": self._read_resource,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._subscribe,
            "logging/setLevel": self._set_level,
            "tasks/list": self._list_tasks,
            **dict.fromkeys(("tasks/get", "tasks/result", "tasks/cancel"), self._ask_of_task),
        }

    @property
    def _modern(self) -> bool:
        """Whether the host is of the 2026 era."""
        return self._host_info is not None and self._host_info.modern

    async def run(self) -> None:
        """Serve until the host closes the connection."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            self._pending = PendingCalls(tasks)
            self._subscriptions = Subscriptions(self._host, tasks)
            await self._host.run(self._on_host_request, self._on_host_notify, self._on_answered)
            tasks.cancel_scope.cancel()

    # --- from the host ----------------------------------------------------------------------------

    async def _on_host_request(
        self, request_id: RequestId, method: str, params: Params | None
    ) -> dict[str, Any]:
        own = dict(params or {})
        if method != "initialize":
            self._note_modern_host(own)
            if self._host_info is None and method != "ping":
                raise RpcError(INVALID_PARAMS, "The first request must be initialize.")
        try:
            if method == "ping":
                return {}
            if method in LISTS:
                listed = await self._catalog.listed(method, own)
                # A list of the 2026 era says how long it holds; it may change at any time.
                holds = {"ttlMs": 0, "cacheScope": "private"} if self._modern else {}
                return {**listed, **self._complete_type(), **holds}
            if method == "subscriptions/listen":
                here = await self._catalog.here()
                return await self._subscriptions.serve(request_id, own, here)
            if method in self._handlers:
                return await self._handlers[method](method, own)
            return await self._ask(self._catalog.only(method), method, own)
        except FetchstashError as error:
            raise RpcError(INTERNAL_ERROR, _line(error)) from None

    def _on_answered(self, method: str) -> None:
        if method in LISTS:
            self._tasks.start_soon(self._on_listed)

    async def _on_host_notify(self, method: str, params: Params | None) -> None:
        token = (params or {}).get("progressToken")
        if method == "notifications/progress":
            if isinstance(token, str) and token in self._asked:  # of what a server asked
                upstream, theirs = self._asked[token]
                ours = {**(params or {}), "progressToken": theirs}
                self._tasks.start_soon(upstream.notify, method, ours)
        elif method not in ("notifications/initialized", "notifications/cancelled"):
            for upstream in self._catalog.all:
                # A server that does not read must not keep us from reading.
                self._tasks.start_soon(upstream.notify, method, params)

    def _note_modern_host(self, params: Params) -> None:
        """Record a host of the 2026 era at its first request, which names it."""
        meta = meta_of(params)
        version = meta.get(PROTOCOL_VERSION_KEY)
        if self._host_info is not None or not isinstance(version, str):
            return
        if version not in MODERN_VERSIONS:
            data = {"supported": list(MODERN_VERSIONS), "requested": version}
            what = f"The protocol version {clip(version, 40)!r} is not known."
            raise RpcError(UNSUPPORTED_PROTOCOL_VERSION, what, data)
        info = as_object(meta.get(CLIENT_INFO_KEY)) or UNKNOWN
        self._connect(HostInfo(True, version, info, as_object(meta.get(CLIENT_CAPABILITIES_KEY))))

    def _connect(self, host: HostInfo) -> None:
        """Record the host's name, and start the servers.

        A host that found us too slow for ``server/discover`` goes on with ``initialize``.
        """
        is_first, self._host_info = self._host_info is None, host
        extensions = as_object(host.capabilities.get("extensions"))
        self._catalog.host_shows_apps = UI_EXTENSION in extensions
        for upstream in self._catalog.all if is_first else ():
            self._tasks.start_soon(upstream.run, host)

    async def _initialize(self, _: str, params: Params) -> dict[str, Any]:
        version = params.get("protocolVersion")
        if version not in HANDSHAKE_VERSIONS:
            version = LATEST_HANDSHAKE_VERSION
        info = as_object(params.get("clientInfo")) or UNKNOWN
        self._connect(HostInfo(False, version, info, as_object(params.get("capabilities"))))
        here = await self._catalog.here()
        versions = {str(up.about.get("protocolVersion")) for up in here if not up.modern}
        capabilities = merged(up.capabilities for up in here)
        for upstream in here:
            # A server of the 2026 era tells of changes on a stream that we hold open.
            if upstream.modern and upstream is not self._catalog.own:
                self._subscriptions.hold(upstream)
        return {
            "protocolVersion": min({version, *versions.intersection(HANDSHAKE_VERSIONS)}),
            "capabilities": capabilities,
            "serverInfo": self._catalog.server_info(here),
            **self._catalog.instructions(here),
        }

    async def _discover(self, _: str, __: Params) -> dict[str, Any]:
        here = await self._catalog.here()
        return {
            "supportedVersions": [LATEST_MODERN_VERSION],
            "capabilities": merged(up.capabilities for up in here),
            "ttlMs": 0,
            "cacheScope": "private",
            "resultType": "complete",
            "_meta": {SERVER_INFO_KEY: self._catalog.server_info(here)},
            **self._catalog.instructions(here),
        }

    # --- calls ------------------------------------------------------------------------------------

    async def _call_tool(self, method: str, params: Params) -> dict[str, Any]:
        exposed = str(params.get("name"))
        try:
            upstream, name = await self._catalog.route("tools/list", exposed, "tool")
            written, passed_on = as_object(params.get("arguments")), list[str]()
            if upstream is not self._catalog.own and holds_reference(written):
                schema = self._catalog.schema(upstream, name)
                filling = Filling(self._stash, upstream.server, name, schema)
                params = {**params, "arguments": await filling.filled(written)}
                passed_on = [ref for ref, _ in filling.passed]
            if whole := self._catalog.whole(exposed):
                schema = as_object(whole.get("inputSchema"))
                if fault := next(faults(schema, as_object(params.get("arguments"))), ""):
                    error = BadArgument(f"{fault}.", "Call it as its whole schema says.")
                    return self._failed(error, described(whole, exposed))
            if upstream is self._catalog.own and name == TOOL_SCHEMA:
                return await self._describe(as_object(params.get("arguments")))
            if upstream is self._catalog.own:
                self._unread = -sys.maxsize
            shortened = self._catalog.shortened(upstream, name)
            asked = _Asked(upstream, name, written, shortened, passed_on)
            result = await self._result(method, asked, {**params, "name": name})
            if task_id := as_object(result.get("task")).get("taskId") or result.get("taskId"):
                self._note_task(str(task_id), asked)
            return await self._shortened(method, asked, result)
        except FetchstashError as error:
            return self._failed(error)

    def _note_task(self, task_id: str, asked: _Asked) -> None:
        """Record the server of a task. Raises ServerFailed for a task of another server."""
        if not self._is_task_of(task_id, asked.upstream):
            what = f"{asked.upstream.name} answered with a task of another server."
            raise ServerFailed(what, "Go on without it.")
        self._tasks_by_id[task_id] = asked
        if len(self._tasks_by_id) > TASKS:
            del self._tasks_by_id[next(iter(self._tasks_by_id))]

    def _is_task_of(self, task_id: str, upstream: Upstream) -> bool:
        known = self._tasks_by_id.get(task_id)
        return known is None or known.upstream is upstream

    def _failed(self, error: FetchstashError, *texts: str) -> dict[str, Any]:
        """Return the result of a failed call: an error line, then the server's own texts."""
        meta = {"fetchstash/error": {"code": error.code}}
        content = [{"type": "text", "text": text} for text in (_line(error), *texts)]
        return {"content": content, "isError": True, "_meta": meta, **self._complete_type()}

    async def _describe(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Answer ``tool_schema``. Raises BadArgument."""
        name = str(arguments.get("name"))
        await self._catalog.route("tools/list", name, "tool")
        tool = self._catalog.whole(name)
        if tool is None:
            raise BadArgument(f"{clip(name, 60)} is listed whole.", "Call it as it is listed.")
        content = [{"type": "text", "text": described(tool, name)}]
        return {"content": content, **self._complete_type()}

    async def _result(self, method: str, asked: _Asked, params: Params) -> dict[str, Any]:
        """Forward a request whose result a model reads. Log failures; shorten long errors, too."""
        try:
            return await self._ask(asked.upstream, method, params)
        except BaseException as error:
            if method == "tools/call" and isinstance(error, RpcError):
                text = error.message + ("" if error.data is None else f"\n{json.dumps(error.data)}")
                is_long = len(text) > asked.upstream.server.threshold
                if is_long and asked.shortened is not Shortened.NOTHING:
                    content = [{"type": "text", "text": text}]
                    return {"content": content, "isError": True, **self._complete_type()}
            if asked.upstream is not self._catalog.own:
                asked.logged(self._settings).failed(error)
            raise

    async def _ask_of_task(self, method: str, params: Params) -> dict[str, Any]:
        """Ask the server of a task for its state or result, which may come with the state."""
        task_id = str(params.get("taskId"))
        asked = self._tasks_by_id.get(task_id)
        if asked is None:
            asked = _Asked(self._catalog.only(method), "task", {})
        if method == "tasks/result":
            result = await self._result(method, asked, params)
            return await self._shortened("tools/call", asked, result)
        result = await self._ask(asked.upstream, method, params)
        if "content" in (inner := as_object(result.get("result"))):
            return {**result, "result": await self._shortened("tools/call", asked, inner)}
        return result

    async def _list_tasks(self, method: str, params: Params) -> dict[str, Any]:
        """List the tasks of all servers, each its own cursor's pages to their end."""
        tasks: list[dict[str, Any]] = []
        for upstream, found in await self._catalog.all_of(method, "tasks", params):
            for item in found:
                task_id = str(item.get("taskId"))
                if self._is_task_of(task_id, upstream):
                    self._tasks_by_id.setdefault(task_id, _Asked(upstream, "task", {}))
                    tasks.append(item)
        return {"tasks": tasks, **self._complete_type()}

    async def _get_prompt(self, method: str, params: Params) -> dict[str, Any]:
        exposed = str(params.get("name"))
        upstream, name = await self._catalog.route("prompts/list", exposed, "prompt")
        asked = _Asked(upstream, name, as_object(params.get("arguments")))
        result = await self._result(method, asked, {**params, "name": name})
        return await self._shortened(method, asked, result)

    async def _read_resource(self, method: str, params: Params) -> dict[str, Any]:
        uri = str(params.get("uri"))
        upstream = await self._catalog.owner(uri)
        # The page of an MCP App: the host shows it, and no model reads it.
        if uri.startswith("ui://") or upstream.server.leave_resources:
            return await self._ask(upstream, method, params)
        asked = _Asked(upstream, uri, {})
        return await self._shortened(method, asked, await self._result(method, asked, params))

    async def _shortened(
        self, method: str, asked: _Asked, result: dict[str, Any]
    ) -> dict[str, Any]:
        """Return a result, logged and made as short for the host's model as its tool's are."""
        upstream = asked.upstream
        if upstream is self._catalog.own or result.get("resultType") == "input_required":
            return result
        logged = asked.logged(self._settings)
        if asked.shortened is Shortened.NOTHING:
            logged.passed(0, failed=result.get("isError") is True)  # no model is shown it
            return result
        from fetchstash.gateway._results import Call, bounded  # noqa: PLC0415 - heavy
        from fetchstash.render import Host  # noqa: PLC0415 - as above

        assert self._host_info
        views = self._settings.views_for(str(self._host_info.client_info.get("name")))
        host = Host(views, True, self._settings.context)
        keeps = asked.shortened is Shortened.TEXT
        call = Call(host, upstream.server, asked.name, asked.arguments, logged, keeps)
        short = await bounded(method, self._stash, call, result)
        if method == "tools/call" and short is not result:
            self._unread += 1
            if self._unread == UNREAD:
                short["content"].append({"type": "text", "text": _UNREAD_LINE})
        return short

    async def _subscribe(self, method: str, params: Params) -> dict[str, Any]:
        uri = str(params.get("uri"))
        upstream = await self._catalog.owner(uri)
        if not upstream.modern:
            return await upstream.request(method, params)
        if method == "resources/subscribe":
            self._subscriptions.hold(upstream, uri)
        else:
            self._subscriptions.release(upstream, uri)
        return {}

    async def _complete(self, method: str, params: Params) -> dict[str, Any]:
        ref = as_object(params.get("ref"))
        if ref.get("type") == "ref/prompt":
            exposed = str(ref.get("name"))
            upstream, name = await self._catalog.route("prompts/list", exposed, "prompt")
            params = {**params, "ref": {**ref, "name": name}}
        else:
            upstream = await self._catalog.owner(str(ref.get("uri")))
        return await self._ask(upstream, method, params)

    async def _set_level(self, method: str, params: Params) -> dict[str, Any]:
        for upstream in self._catalog.all:
            upstream.log_level = str(params.get("level"))
        for upstream in await self._catalog.here():
            if not upstream.modern and "logging" in upstream.capabilities:
                await upstream.request(method, params)
        return {}

    async def _ask(self, upstream: Upstream, method: str, params: Params) -> dict[str, Any]:
        """Send a request to a server, in the host's era or across the two."""
        await upstream.ready()  # its era is known from then on
        if upstream.modern and not self._modern:
            return await answered(upstream, method, params, self._host.request)
        if self._modern and not upstream.modern:
            ask = self._pending.call if method in FOR_MODELS else Upstream.request
            return {**self._complete_type(), **await ask(upstream, method, params)}
        result = await upstream.request(method, params)
        return await walked(partial(with_signed_questions, upstream), result)

    def _complete_type(self) -> dict[str, Any]:
        """Return the ``resultType`` of a result for a host of the 2026 era."""
        return {"resultType": "complete"} if self._modern else {}

    # --- from a server ----------------------------------------------------------------------------

    async def on_request(
        self, upstream: Upstream, method: str, params: Params | None
    ) -> dict[str, Any]:
        """Answer a server's question: by the host, its model, or the person."""
        if method == "ping":
            return {}
        params = await walked(partial(signed, upstream, method), params)
        if self._modern:
            return await self._pending.ask(upstream, method, params)
        token = meta_of(params).get("progressToken")
        if not isinstance(token, str | int):
            return await self._host.request(method, params)
        # Two servers may have chosen the same token.
        self._last_token += 1
        ours = f"{upstream.name}:{self._last_token}"
        self._asked[ours] = (upstream, token)
        try:
            meta = {**meta_of(params), "progressToken": ours}
            return await self._host.request(method, {**(params or {}), "_meta": meta})
        finally:
            del self._asked[ours]

    async def on_notify(self, upstream: Upstream, method: str, params: Params | None) -> None:
        """Pass on a server's notification."""
        if method.endswith("/list_changed"):
            self._catalog.forget()
        if params is not None and upstream is not self._catalog.own:
            params = dict(params)
            await walked(drop_our_meta, params)
        if method == "notifications/tasks/status" and not self._is_task_of(
            str((params or {}).get("taskId")), upstream
        ):
            return
        if method in ("notifications/cancelled", "notifications/subscriptions/acknowledged"):
            return  # the request that we passed on is cancelled with it; the other is of our stream
        is_asked_for = not self._modern or upstream.modern or upstream.log_level
        if method == "notifications/message" and not is_asked_for:
            return  # a host of the 2026 era says so (server/utilities/logging)
        if self._modern and self._subscriptions.carries(method):
            await self._subscriptions.tell(method, params)
        else:
            await self._host.notify(method, without_subscription(params))


def _line(error: FetchstashError) -> str:
    """Return an error as the one line for a model."""
    from fetchstash.render import error_line  # noqa: PLC0415 - heavy

    return error_line(error)
