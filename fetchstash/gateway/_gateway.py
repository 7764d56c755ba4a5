"""The gateway: one MCP server towards the host, in front of any number of others."""

import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import anyio

from fetchstash.config import Settings
from fetchstash.errors import FetchstashError
from fetchstash.gateway._catalog import LISTS, Catalog, Subscriptions, merged, without_subscription
from fetchstash.gateway._eras import Parked, answered, signed, with_signed_questions
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
    UNSUPPORTED_PROTOCOL_VERSION,
    as_object,
    meta_of,
)
from fetchstash.gateway._rpc import Params, Peer, RequestId, RpcError
from fetchstash.gateway._upstream import FOR_MODELS, Hello, Upstream
from fetchstash.text import clip

if TYPE_CHECKING:
    from fetchstash.render import Host
    from fetchstash.stash import Stash

UNKNOWN = {"name": "unknown", "version": "0"}
"""A client that does not say its name."""

_log = logging.getLogger("fetchstash.gateway")

Handler = Callable[[RequestId, Params], Awaitable[dict[str, Any]]]


class Gateway:
    """Answers a host with what the servers behind it answer, long results made short.

    ``own`` is fetchstash itself, run like one of the servers; its results are never replaced.
    ``listed`` is called when the host has a list, to open what later calls need.
    """

    _tasks: anyio.abc.TaskGroup
    _parked: Parked
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
        listed: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._host = host
        self._settings = settings
        self._stash = stash
        self._catalog = Catalog(upstreams, own, with_fetch=with_fetch)
        self._hello: Hello | None = None
        self._listed = listed
        self._last_token = 0
        self._asked: dict[str, tuple[Upstream, str | int]] = {}
        """What servers asked of the host: whose it is and its own token, by the token we sent."""

        self._handlers: Mapping[str, Handler] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": self._ping,
            "tools/call": self._call_tool,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "resources/read": self._read_resource,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "logging/setLevel": self._set_level,
            "subscriptions/listen": self._listen,
        }

    @property
    def _reader(self) -> "Host":
        """Whom previews are made for."""
        from fetchstash.render import Host  # noqa: PLC0415 - heavy: where a result comes

        name = str(cast("Hello", self._hello).client_info.get("name"))
        return Host(self._settings.views_for(name), True, self._settings.context)

    async def run(self) -> None:
        """Serve until the host closes the connection."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            self._parked = Parked(tasks)
            self._subscriptions = Subscriptions(self._host, tasks)
            await self._host.run(self._on_request, self._on_notify, self._on_answered)
            tasks.cancel_scope.cancel()

    # --- from the host ----------------------------------------------------------------------------

    async def _on_request(
        self, request_id: RequestId, method: str, params: Params | None
    ) -> dict[str, Any]:
        own = dict(params or {})
        if method != "initialize" and self._greet(own) is None and method != "ping":
            raise RpcError(INVALID_PARAMS, "The first request must be initialize.")
        try:
            if method in LISTS:
                return {**await self._catalog.listed(method, own), **self._cacheable()}
            if method in self._handlers:
                return await self._handlers[method](request_id, own)
            return await self._ask(self._catalog.only(method), method, own)
        except FetchstashError as error:
            raise RpcError(INTERNAL_ERROR, _line(error)) from None

    def _on_answered(self, method: str) -> None:
        if method in LISTS:
            self._tasks.start_soon(self._listed)

    async def _on_notify(self, method: str, params: Params | None) -> None:
        if method == "notifications/progress":
            self._pass_progress_on(params or {})
        elif method not in ("notifications/initialized", "notifications/cancelled"):
            for upstream in self._catalog.all:
                # A server that does not read must not keep us from reading.
                self._tasks.start_soon(upstream.notify, method, params)

    def _greet(self, params: Params) -> Hello | None:
        """Return what the host is, from the first request of the 2026 era if from no other."""
        meta = meta_of(params)
        version = meta.get(PROTOCOL_VERSION_KEY)
        if self._hello is None and isinstance(version, str):
            if version not in MODERN_VERSIONS:
                data = {"supported": list(MODERN_VERSIONS), "requested": version}
                what = f"The protocol version {clip(version, 40)!r} is not known."
                raise RpcError(UNSUPPORTED_PROTOCOL_VERSION, what, data)
            self._connect(
                Hello(
                    True,
                    version,
                    as_object(meta.get(CLIENT_INFO_KEY)) or UNKNOWN,
                    as_object(meta.get(CLIENT_CAPABILITIES_KEY)),
                )
            )
        return self._hello

    def _connect(self, hello: Hello) -> None:
        """Note what the host is, and start the servers.

        A host that found us too slow for ``server/discover`` goes on with ``initialize``.
        """
        is_first, self._hello = self._hello is None, hello
        for upstream in self._catalog.all if is_first else ():
            self._tasks.start_soon(upstream.run, hello)

    async def _initialize(self, _: RequestId, params: Params) -> dict[str, Any]:
        version = params.get("protocolVersion")
        if version not in HANDSHAKE_VERSIONS:
            version = LATEST_HANDSHAKE_VERSION
        info = as_object(params.get("clientInfo")) or UNKNOWN
        self._connect(Hello(False, version, info, as_object(params.get("capabilities"))))
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

    async def _discover(self, _: RequestId, __: Params) -> dict[str, Any]:
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

    async def _ping(self, _: RequestId, __: Params) -> dict[str, Any]:
        return {}

    # --- calls ------------------------------------------------------------------------------------

    async def _call_tool(self, _: RequestId, params: Params) -> dict[str, Any]:
        exposed = str(params.get("name"))
        try:
            upstream, name = await self._catalog.route("tools/list", exposed, "tool")
            alone = name in upstream.server.leave_alone or upstream is self._catalog.own
            try:
                result = await self._ask(upstream, "tools/call", {**params, "name": name})
            except RpcError as error:
                text = error.message + ("" if error.data is None else f"\n{json.dumps(error.data)}")
                if alone or len(text) <= upstream.server.threshold:
                    raise
                content = [{"type": "text", "text": text}]
                result = {"content": content, "isError": True, **self._complete_type()}
            if alone or result.get("resultType") == "input_required":
                return result
            from fetchstash.gateway._results import bounded_call  # noqa: PLC0415 - heavy

            return await bounded_call(self._stash, self._reader, upstream.server, exposed, result)
        except FetchstashError as error:
            text = _line(error)
            meta = {"fetchstash/error": {"code": error.code}}
            content = [{"type": "text", "text": text}]
            return {"content": content, "isError": True, "_meta": meta, **self._complete_type()}

    async def _get_prompt(self, _: RequestId, params: Params) -> dict[str, Any]:
        exposed = str(params.get("name"))
        upstream, name = await self._catalog.route("prompts/list", exposed, "prompt")
        result = await self._ask(upstream, "prompts/get", {**params, "name": name})
        if upstream is self._catalog.own or result.get("resultType") == "input_required":
            return result
        from fetchstash.gateway._results import bounded_prompt  # noqa: PLC0415 - heavy

        return await bounded_prompt(self._stash, self._reader, upstream.server, exposed, result)

    async def _read_resource(self, _: RequestId, params: Params) -> dict[str, Any]:
        uri = str(params.get("uri"))
        upstream = await self._catalog.owner(uri)
        result = await self._ask(upstream, "resources/read", params)
        is_page = uri.startswith("ui://")  # of an MCP App: the host shows it, no model reads it
        if is_page or upstream is self._catalog.own or result.get("resultType") == "input_required":
            return result
        from fetchstash.gateway._results import bounded_read  # noqa: PLC0415 - heavy

        return await bounded_read(self._stash, self._reader, upstream.server, uri, result)

    async def _subscribe(self, _: RequestId, params: Params) -> dict[str, Any]:
        uri = str(params.get("uri"))
        upstream = await self._catalog.owner(uri)
        if not upstream.modern:
            return await upstream.request("resources/subscribe", params)
        self._subscriptions.hold(upstream, uri)
        return {}

    async def _unsubscribe(self, _: RequestId, params: Params) -> dict[str, Any]:
        uri = str(params.get("uri"))
        upstream = await self._catalog.owner(uri)
        if not upstream.modern:
            return await upstream.request("resources/unsubscribe", params)
        self._subscriptions.release(upstream, uri)
        return {}

    async def _complete(self, _: RequestId, params: Params) -> dict[str, Any]:
        ref = as_object(params.get("ref"))
        if ref.get("type") == "ref/prompt":
            exposed = str(ref.get("name"))
            upstream, name = await self._catalog.route("prompts/list", exposed, "prompt")
            params = {**params, "ref": {**ref, "name": name}}
        else:
            upstream = await self._catalog.owner(str(ref.get("uri")))
        return await self._ask(upstream, "completion/complete", params)

    async def _set_level(self, _: RequestId, params: Params) -> dict[str, Any]:
        for upstream in self._catalog.all:
            upstream.log_level = str(params.get("level"))
        for upstream in await self._catalog.here():
            if not upstream.modern and "logging" in upstream.capabilities:
                await upstream.request("logging/setLevel", params)
        return {}

    async def _listen(self, request_id: RequestId, params: Params) -> dict[str, Any]:
        return await self._subscriptions.serve(request_id, params, await self._catalog.here())

    async def _ask(self, upstream: Upstream, method: str, params: Params) -> dict[str, Any]:
        """Ask a server, in the host's era or across the two."""
        await upstream.ready()  # its era is known from then on
        modern_host = cast("Hello", self._hello).modern
        if upstream.modern and not modern_host:
            return await answered(upstream, method, params, self._host.request)
        if modern_host and not upstream.modern:
            if method in FOR_MODELS:
                result = await self._parked.call(upstream, method, params)
            else:
                result = await upstream.request(method, params)
            return {**self._complete_type(), **result}
        return with_signed_questions(upstream, await upstream.request(method, params))

    def _cacheable(self) -> dict[str, Any]:
        """Return what a list of the 2026 era says of its life: it may change at any time."""
        modern = cast("Hello", self._hello).modern
        return {**self._complete_type(), "ttlMs": 0, "cacheScope": "private"} if modern else {}

    def _complete_type(self) -> dict[str, Any]:
        """Return what a result of the 2026 era says of itself."""
        return {"resultType": "complete"} if cast("Hello", self._hello).modern else {}

    # --- from a server ----------------------------------------------------------------------------

    async def on_request(
        self, upstream: Upstream, method: str, params: Params | None
    ) -> dict[str, Any]:
        """Answer what a server asks: of the host, of its model, or of the person."""
        if method == "ping":
            return {}
        params = signed(upstream, method, params)
        if cast("Hello", self._hello).modern:
            return await self._parked.ask(upstream, method, params)
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

    def _pass_progress_on(self, params: Params) -> None:
        """Tell a server how far the host is with what it asked for."""
        token = params.get("progressToken")
        if isinstance(token, str) and token in self._asked:
            upstream, theirs = self._asked[token]
            ours = {**params, "progressToken": theirs}
            self._tasks.start_soon(upstream.notify, "notifications/progress", ours)

    async def on_notify(self, upstream: Upstream, method: str, params: Params | None) -> None:
        """Pass on what a server tells."""
        if method.endswith("/list_changed"):
            self._catalog.forget()
        if method in ("notifications/cancelled", "notifications/subscriptions/acknowledged"):
            return  # the request that we passed on is cancelled with it; the other is of our stream
        modern = cast("Hello", self._hello).modern
        is_asked_for = not modern or upstream.modern or upstream.log_level
        if method == "notifications/message" and not is_asked_for:
            return  # a host of the 2026 era says so (server/utilities/logging)
        if modern and self._subscriptions.carries(method):
            await self._subscriptions.tell(method, params)
        else:
            await self._host.notify(method, without_subscription(params))


def _line(error: FetchstashError) -> str:
    """Return an error in one line, as a model is told."""
    from fetchstash.render import error_line  # noqa: PLC0415 - heavy

    return error_line(error)
