"""One server behind the gateway: its connection, its protocol era, its restarts.

A server is opened in the host's era where it can be: 2026-07-28, where each request carries what a
client is, or the earlier revisions, which begin with ``initialize``.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import mcp_types as types
from anyio.abc import TaskStatus
from mcp.shared.dispatcher import CallOptions, DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import encode_header_value, mcp_param_headers, x_mcp_header_map
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from fetchstash.config import WrappedServer
from fetchstash.errors import ServerFailed, TimedOut
from fetchstash.gateway._framing import Spooled
from fetchstash.gateway._json import as_object, meta_of
from fetchstash.gateway._process import Streams, say

START_SECONDS = 60.0
"""How long a server may take to answer the first request."""

RESTARTS = 5
"""Starts that may fail, or end within ``STEADY_SECONDS``, one after another."""

STEADY_SECONDS = 60.0
FIRST_PAUSE_SECONDS = 0.5

ENVELOPE = (
    types.PROTOCOL_VERSION_META_KEY,
    types.CLIENT_INFO_META_KEY,
    types.CLIENT_CAPABILITIES_META_KEY,
    types.LOG_LEVEL_META_KEY,
)
_NAME_HEADERS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

Open = Callable[[], AbstractAsyncContextManager[Streams]]
Params = Mapping[str, Any]
FromServer = Callable[["Upstream", str, Params | None], Awaitable[dict[str, Any]]]
Notified = Callable[["Upstream", str, Params | None], Awaitable[None]]

_log = logging.getLogger("fetchstash.gateway")


@dataclass(frozen=True, slots=True)
class Hello:
    """What the host says of itself, and in which era: ``modern`` is 2026-07-28."""

    modern: bool
    version: str
    client_info: Mapping[str, Any]
    capabilities: Mapping[str, Any]

    def envelope(self) -> dict[str, Any]:
        """Return the ``_meta`` of a request to a server of the 2026 era."""
        version = self.version if self.modern else LATEST_MODERN_VERSION
        return {
            types.PROTOCOL_VERSION_META_KEY: version,
            types.CLIENT_INFO_META_KEY: dict(self.client_info),
            types.CLIENT_CAPABILITIES_META_KEY: dict(self.capabilities),
        }

    def initialize(self) -> dict[str, Any]:
        """Return the parameters of ``initialize`` for a server of an earlier era."""
        version = LATEST_HANDSHAKE_VERSION if self.modern else self.version
        return {
            "protocolVersion": version,
            "capabilities": dict(self.capabilities),
            "clientInfo": dict(self.client_info),
        }


@dataclass
class Upstream:
    """A server, started when the host has said who it is, and again when it ends.

    ``on_request`` answers what the server asks of the host, ``on_notify`` takes its notifications.
    """

    server: WrappedServer
    open: Open
    on_request: FromServer
    on_notify: Notified
    modern: bool = False
    about: dict[str, Any] = field(default_factory=dict[str, Any])
    """The result of ``initialize`` or ``server/discover``."""

    log_level: str | None = None
    """The level that the host asked for, passed on to a server of the 2026 era."""

    _dispatcher: JSONRPCDispatcher[TransportContext] | None = None
    _failure: ServerFailed | None = None
    _changed: anyio.Event = field(default_factory=anyio.Event)
    _schemas: dict[str, Any] = field(default_factory=dict[str, Any])
    _calls: dict[Any, anyio.CancelScope] = field(default_factory=dict[Any, anyio.CancelScope])

    @property
    def name(self) -> str:
        """The server's name in the settings."""
        return self.server.name

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the server said it can do."""
        return as_object(self.about.get("capabilities"))

    async def run(self, hello: Hello) -> None:
        """Keep the server running for as long as this task does."""
        failures, why = 0, ""
        while failures <= RESTARTS:
            started = anyio.current_time()
            why = await self._serve(hello)
            self._dispatcher = None
            if anyio.current_time() - started > STEADY_SECONDS:
                failures = 0
            failures += 1
            pause = FIRST_PAUSE_SECONDS * 2 ** (failures - 1)
            again = (
                f"it is started again in {pause:g} s" if failures <= RESTARTS else "it stays off"
            )
            say(self.server, f"fetchstash: {why}; {again}.")
            if failures <= RESTARTS:
                await anyio.sleep(pause)
        what = f"The server {self.name} is not there: {why}."
        self._failure = ServerFailed(what, "Correct it, and start the gateway again.")
        self._changed.set()

    async def ready(self, seconds: float = START_SECONDS) -> None:
        """Wait until the server answers. Raises ServerFailed."""
        with anyio.move_on_after(seconds):
            while self._dispatcher is None:
                if self._failure is not None:
                    raise self._failure
                self._changed = anyio.Event()
                await self._changed.wait()
            return
        what = f"The server {self.name} did not answer within {seconds:g} s."
        raise ServerFailed(what, "Try again, or look at its messages on stderr.")

    async def request(self, method: str, params: Params | None) -> dict[str, Any]:
        """Ask the server. Raises MCPError with its own error, ServerFailed, TimedOut."""
        await self.ready()
        dispatcher = cast("JSONRPCDispatcher[TransportContext]", self._dispatcher)
        scope = anyio.CancelScope()
        token = _progress_token(params)
        if method != "subscriptions/listen":
            scope.deadline = anyio.current_time() + self.server.timeout
        self._calls[token] = scope
        try:
            with scope:
                return await self._ask(dispatcher, method, params)
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED:
                if self._dispatcher is dispatcher:
                    self._dispatcher = None  # the next call waits until it is there again
                what = f"The server {self.name} ended in the middle of the call."
                raise ServerFailed(what, "It is started again: try once more.") from None
            raise
        finally:
            self._calls.pop(token, None)
        what = f"The server {self.name} was silent for {self.server.timeout:g} s."
        raise TimedOut(what, "Try again, or ask for less.")

    async def notify(self, method: str, params: Params | None) -> None:
        """Send a notification, if the server is there."""
        if self._dispatcher is not None and not self.modern:
            await self._dispatcher.notify(method, params, self._options(method, params))

    def learn_schemas(self, tools: list[dict[str, Any]]) -> None:
        """Remember which arguments a server of the 2026 era wants in headers, too."""
        self._schemas = {
            tool["name"]: x_mcp_header_map(tool.get("inputSchema"))
            for tool in tools
            if isinstance(tool.get("name"), str)
        }

    async def _serve(self, hello: Hello) -> str:
        """Connect and stay connected; return why that ended."""
        try:
            async with self.open() as (received, to_send), anyio.create_task_group() as tasks:
                dispatcher = JSONRPCDispatcher[TransportContext](received, to_send)
                ended = anyio.Event()
                await tasks.start(self._drive, dispatcher, ended)
                with anyio.fail_after(START_SECONDS):
                    await self._open_conversation(dispatcher, hello)
                self._dispatcher = dispatcher
                self._changed.set()
                await ended.wait()
                tasks.cancel_scope.cancel()
        except ServerFailed as error:
            return f"{error.what.rstrip('.')}"
        except TimeoutError:
            return f"it did not answer within {START_SECONDS:g} s"
        except MCPError as error:
            if error.code != types.CONNECTION_CLOSED:
                return f"it refused the connection ({error.error.message})"
        except OSError as error:
            return f"the connection failed ({error})"
        return "it ended"

    async def _drive(
        self,
        dispatcher: JSONRPCDispatcher[TransportContext],
        ended: anyio.Event,
        *,
        task_status: TaskStatus[None],
    ) -> None:
        async def on_request(
            _: DispatchContext[TransportContext], method: str, params: Params | None
        ) -> dict[str, Any]:
            return await self.on_request(self, method, params)

        async def on_notify(
            _: DispatchContext[TransportContext], method: str, params: Params | None
        ) -> None:
            if holds_spooled(params):
                drop_spooled(params)
                return
            if method == "notifications/progress" and params:
                # A call that reports progress is not silent.
                scope = self._calls.get(params.get("progressToken"))
                if scope is not None:
                    scope.deadline = anyio.current_time() + self.server.timeout
            await self.on_notify(self, method, params)

        try:
            await dispatcher.run(on_request, on_notify, task_status=task_status)
        finally:
            ended.set()

    async def _open_conversation(
        self, dispatcher: JSONRPCDispatcher[TransportContext], hello: Hello
    ) -> None:
        """Open the conversation in the host's era, else in the other."""
        for modern in (hello.modern, not hello.modern):
            try:
                if modern:
                    await self._discover(dispatcher, hello)
                else:
                    await self._initialize(dispatcher, hello)
            except MCPError as error:
                if error.code == types.CONNECTION_CLOSED or modern is not hello.modern:
                    raise
                continue
            return

    async def _discover(
        self, dispatcher: JSONRPCDispatcher[TransportContext], hello: Hello
    ) -> None:
        self.modern, self._hello = True, hello
        params = {"_meta": hello.envelope()}
        options = self._options("server/discover", params)
        options["cancel_on_abandon"] = False
        result = await dispatcher.send_raw_request("server/discover", params, options)
        versions = result.get("supportedVersions")
        if not isinstance(versions, list) or LATEST_MODERN_VERSION not in versions:
            raise MCPError(types.METHOD_NOT_FOUND, "It shares no version of the 2026 era.")
        self.about = result

    async def _initialize(
        self, dispatcher: JSONRPCDispatcher[TransportContext], hello: Hello
    ) -> None:
        self.modern, self._hello = False, hello
        options: CallOptions = {"cancel_on_abandon": False}
        self.about = await dispatcher.send_raw_request("initialize", hello.initialize(), options)
        await dispatcher.notify(
            "notifications/initialized", None, self._options("notifications/initialized", None)
        )

    async def _ask(
        self, dispatcher: JSONRPCDispatcher[TransportContext], method: str, params: Params | None
    ) -> dict[str, Any]:
        own, theirs = as_object(params), meta_of(params)
        meta = {name: value for name, value in theirs.items() if name not in ENVELOPE}
        if self.modern:
            meta |= self._hello.envelope()
            level = theirs.get(types.LOG_LEVEL_META_KEY) or self.log_level
            if level:
                meta[types.LOG_LEVEL_META_KEY] = level
        own.pop("_meta", None)
        if meta:
            own["_meta"] = meta
        return await dispatcher.send_raw_request(method, own or None, self._options(method, own))

    def _options(self, method: str, params: Params | None) -> CallOptions:
        """Return the headers that a server over HTTP wants (basic/transports)."""
        if not self.server.url:
            return {}
        if not self.modern:
            version = self.about.get("protocolVersion", LATEST_HANDSHAKE_VERSION)
            return {"headers": {"mcp-protocol-version": str(version)}}
        headers = {"mcp-protocol-version": LATEST_MODERN_VERSION, "mcp-method": method}
        name = (params or {}).get(_NAME_HEADERS.get(method, ""))
        if isinstance(name, str):
            headers["mcp-name"] = encode_header_value(name)
            if method == "tools/call" and name in self._schemas:
                arguments = as_object((params or {}).get("arguments"))
                headers |= mcp_param_headers(self._schemas[name], arguments)
        return {"headers": headers}


def _progress_token(params: Params | None) -> object:
    """Return the token under which a call's progress comes, or an object of its own."""
    token = meta_of(params).get("progressToken")
    return token if isinstance(token, str | int) else object()


def holds_spooled(value: Any) -> bool:
    """Return whether a value that was too long to hold stands in a JSON value."""
    if isinstance(value, Spooled):
        return True
    if isinstance(value, Mapping):
        return any(map(holds_spooled, cast("Mapping[str, Any]", value).values()))
    return isinstance(value, list) and any(map(holds_spooled, cast("Sequence[Any]", value)))


def drop_spooled(value: Any) -> None:
    """Remove the files of the spooled values in a JSON value."""
    if isinstance(value, Spooled):
        with suppress(OSError):
            value.path.unlink(missing_ok=True)
    elif isinstance(value, Mapping):
        for item in cast("Mapping[str, Any]", value).values():
            drop_spooled(item)
    elif isinstance(value, list):
        for item in cast("Sequence[Any]", value):
            drop_spooled(item)
