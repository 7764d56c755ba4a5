"""One server behind the gateway: its connection, its protocol era, its restarts.

A server is opened in the host's era where it can be: 2026-07-28, where each request carries what a
client is, or the earlier revisions, which begin with ``initialize``.
"""

import hashlib
import json
import logging
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, cast

import anyio
from anyio import sleep
from anyio.abc import TaskStatus

from fetchstash.config import WrappedServer
from fetchstash.errors import FetchstashError, ServerFailed, TimedOut
from fetchstash.gateway._process import say, without_secrets
from fetchstash.gateway._protocol import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    LOG_LEVEL_KEY,
    METHOD_NOT_FOUND,
    PROTOCOL_VERSION_KEY,
    meta_of,
)
from fetchstash.gateway._rpc import (
    Connection,
    ConnectionEnded,
    Params,
    Peer,
    RequestId,
    RpcError,
    drop_our_meta,
    read_back,
    walked,
)
from fetchstash.text.untyped import as_array, as_object

START_SECONDS = 60.0
"""How long a server may take to answer the first request."""

DISCOVER_SECONDS = 10.0
"""How long a server may be silent about ``server/discover``; then it is of an earlier era."""

NOTIFICATIONS = 64
"""Notifications that a server has not taken yet; more are dropped."""

RESTARTS = 5
"""Starts that may fail, one after another, before the server is off for ``OFF_SECONDS``.

One that answered the first request is no failed start, however soon the server ended: a call may
have ended it.
"""

OFF_SECONDS = 300.0
"""How long a server is off whose starts fail, before it is started once more."""

MAX_ENDINGS = 100
"""Calls that ended a server and are remembered."""

PATIENCE = 3
"""Starts that may fail before a host's first request waits no longer for the server."""

STEADY_SECONDS = 60.0
"""A server that ran for so long is started again after the shortest pause."""

FIRST_PAUSE_SECONDS = 0.5
LAST_PAUSE_SECONDS = 8.0

FOR_MODELS = ("tools/call", "prompts/get", "resources/read")
"""The requests whose results are made short; they may also say that input is required."""

ENVELOPE = (PROTOCOL_VERSION_KEY, CLIENT_INFO_KEY, CLIENT_CAPABILITIES_KEY, LOG_LEVEL_KEY)

Open = Callable[[], AbstractAsyncContextManager[Connection]]

_log = logging.getLogger("fetchstash.gateway")


@dataclass(frozen=True, slots=True)
class HostInfo:
    """The host's name and capabilities, and its era: ``modern`` is 2026-07-28."""

    modern: bool
    version: str
    client_info: Mapping[str, Any]
    capabilities: Mapping[str, Any]

    def envelope(self) -> dict[str, Any]:
        """Return the ``_meta`` of a request to a server of the 2026 era."""
        version = self.version if self.modern else LATEST_MODERN_VERSION
        return {
            PROTOCOL_VERSION_KEY: version,
            CLIENT_INFO_KEY: dict(self.client_info),
            CLIENT_CAPABILITIES_KEY: dict(self.capabilities),
        }

    def initialize(self) -> dict[str, Any]:
        """Return the parameters of ``initialize`` for a server of an earlier era."""
        version = LATEST_HANDSHAKE_VERSION if self.modern else self.version
        return {
            "protocolVersion": version,
            "capabilities": dict(self.capabilities),
            "clientInfo": dict(self.client_info),
        }


class HostSide(Protocol):
    """Takes what a server sends to the host."""

    async def on_request(
        self, upstream: "Upstream", method: str, params: Params | None
    ) -> dict[str, Any]:
        """Answer a request of the server."""
        ...

    async def on_notify(self, upstream: "Upstream", method: str, params: Params | None) -> None:
        """Pass on a notification of the server."""
        ...


@dataclass
class Upstream:
    """A wrapped server: started once the host has introduced itself, restarted when it ends.

    ``for_host``, which the gateway sets, takes what the server sends to the host.
    """

    server: WrappedServer
    open: Open
    modern: bool = False
    is_own: bool = False
    """Whether it is fetchstash itself, whose ``_meta`` a host may believe."""

    about: dict[str, Any] = field(default_factory=dict[str, Any])
    """The result of ``initialize`` or ``server/discover``."""

    known: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Results by method that are known before the server runs."""

    on_wait: Callable[[], None] = lambda: None
    """Called when somebody waits for the server."""

    log_level: str | None = None
    """The level that the host asked for, passed on to a server of the 2026 era."""

    for_host: HostSide = field(init=False)
    _peer: Peer | None = None
    _failure: ServerFailed | None = None
    _is_startable: bool = True
    _has_answered: bool = False
    """Whether the last start was answered."""

    _is_late: bool = False
    _began: float = field(default_factory=anyio.current_time)
    _first_era: bool | None = None
    _untaken: int = 0
    _subscribed: dict[str, Params] = field(default_factory=dict[str, Params])
    _changed: anyio.Event = field(default_factory=anyio.Event)
    _endings: dict[str, int] = field(default_factory=dict[str, int])
    """How often the server ended in the middle of a call, by the call."""

    _calls: dict[object, anyio.CancelScope] = field(default_factory=dict[object, anyio.CancelScope])

    @property
    def name(self) -> str:
        """The server's name in the settings."""
        return self.server.name

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The capabilities that the server declared."""
        return as_object(self.about.get("capabilities"))

    async def run(self, host: HostInfo) -> None:
        """Keep the server running for as long as this task does."""
        ends = failures = 0
        while True:
            self._began = anyio.current_time()
            why = await self._serve(host)
            answered, self._peer, self._is_late = self._has_answered, None, True
            if answered or anyio.current_time() - self._began > STEADY_SECONDS:
                failures = 0
            ends = 1 if anyio.current_time() - self._began > STEADY_SECONDS else ends + 1
            failures += not answered
            self._is_startable = self._is_startable and (failures < PATIENCE or bool(self.about))
            pause = min(FIRST_PAUSE_SECONDS * 2 ** min(ends - 1, RESTARTS), LAST_PAUSE_SECONDS)
            verb = "tried" if self.server.url else "started"
            if is_off := failures > RESTARTS:
                pause = OFF_SECONDS
                what = f"The server {self.name} is not there: {without_secrets(self.server, why)}."
                advice = f"It is {verb} again every {OFF_SECONDS / 60:g} minutes: go on without it."
                self._failure = ServerFailed(what, advice)
            say(self.server, f"fetchstash: {why}; it is {verb} again in {pause:g} s.")
            self._changed.set()
            if not is_off:
                self._began = anyio.current_time()
            await sleep(pause)

    async def answers(self, seconds: float) -> bool:
        """Return whether the server answers within ``seconds`` of its start.

        It is waited for, unless it cannot be started. One that answers later tells the host that
        its lists changed.
        """
        with anyio.CancelScope(deadline=self._began + seconds):
            while self._peer is None and self._is_startable and self._failure is None:
                await self._change()
        self._is_late = self._is_late or self._peer is None
        return self._peer is not None

    async def ready(self) -> Peer:
        """Wait until the server answers. Raises ServerFailed."""
        self.on_wait()
        with anyio.move_on_after(START_SECONDS):
            while self._peer is None:
                if self._failure is not None:
                    raise self._failure
                await self._change()
            return self._peer
        what = f"The server {self.name} did not answer within {START_SECONDS:g} s."
        raise ServerFailed(what, "Try again, or look at its messages on stderr.")

    async def back(self) -> None:
        """Wait until the server answers, however long it is off."""
        while self._peer is None:
            await self._change()

    async def _change(self) -> None:
        """Wait until the server comes or goes."""
        if self._changed.is_set():
            self._changed = anyio.Event()
        await self._changed.wait()

    async def request(self, method: str, params: Params | None) -> dict[str, Any]:
        """Ask the server. Raises RpcError with its own error, ServerFailed, TimedOut."""
        if method in self.known:
            return self.known[method]
        peer = await self.ready()
        if method in ("resources/subscribe", "resources/unsubscribe"):
            uri = (params or {}).get("uri")
            self._subscribed.pop(str(uri), None)
            if method == "resources/subscribe":
                self._subscribed[str(uri)] = {"uri": uri}
        level = meta_of(params).get(LOG_LEVEL_KEY)
        if isinstance(level, str) and level != self.log_level and not self.modern:
            self.log_level = level
            await self._set_log_level(peer)
        scope = anyio.CancelScope()
        token = meta_of(params).get("progressToken")
        token = token if isinstance(token, str | int) else object()
        if method != "subscriptions/listen":
            scope.deadline = anyio.current_time() + self.server.timeout
        self._calls[token] = scope
        try:
            with scope:
                result = await peer.request(method, self._in_its_era(params))
                if self._endings:
                    self._endings.pop(_key(method, params), None)
                return await walked(partial(self._believed, method), result)
        except ConnectionEnded:
            if self._peer is peer:
                self._peer = None  # the next call waits until it is there again
            raise self._ended_in(method, params) from None
        finally:
            self._calls.pop(token, None)
        what = f"The server {self.name} was silent for {self.server.timeout:g} s."
        raise TimedOut(what, "Try again, or ask for less.")

    def _believed(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        """Return a result without fields reserved to fetchstash; of one for models, files stay."""
        if not self.is_own:
            drop_our_meta(result)
        return result if method in FOR_MODELS else read_back(result)

    def _ended_in(self, method: str, params: Params | None) -> ServerFailed:
        """Return the error for a call during which the server ended, and count how often it did."""
        key = _key(method, params)
        times = self._endings.pop(key, 0) + 1
        self._endings[key] = times
        if len(self._endings) > MAX_ENDINGS:
            del self._endings[next(iter(self._endings))]
        what = f"The server {self.name} ended in the middle of the call."
        if times == 1:
            return ServerFailed(what, "It is started again: try once more.")
        if times > 2:
            what = f"The server {self.name} ended in this same call for the {_ordinal(times)} time."
        advice = "It is started again. Do not repeat the call: ask for less, or for something else."
        return ServerFailed(what, advice)

    async def notify(self, method: str, params: Params | None) -> None:
        """Send a notification, if the server is there. The 2026 era has none but cancellations."""
        if self._peer is None or self.modern or self._untaken >= NOTIFICATIONS:
            return
        self._untaken += 1
        try:
            await self._peer.notify(method, params)
        finally:
            self._untaken -= 1

    async def _ask_again(self, peer: Peer) -> None:
        """Repeat to a restarted server what the host had asked for, and what ended with it."""
        for params in tuple(self._subscribed.values()):
            with suppress(RpcError, ConnectionEnded):
                await peer.request("resources/subscribe", params)
        await self._set_log_level(peer)

    async def _set_log_level(self, peer: Peer) -> None:
        if self.log_level and "logging" in self.capabilities:
            with suppress(RpcError, ConnectionEnded), anyio.move_on_after(self.server.timeout):
                await peer.request("logging/setLevel", {"level": self.log_level})

    async def _serve(self, host: HostInfo) -> str:
        """Connect and stay connected; return why that ended."""
        try:
            self._has_answered = False
            async with self.open() as connection:
                self._is_startable = True
                return await self._converse(Peer(self.name, connection), host)
        except FetchstashError as error:
            self._is_startable = False
            return error.what.rstrip(".")
        except Exception as error:  # noqa: BLE001 - no server may end the session of the others
            _log.debug("%s failed", self.name, exc_info=True)
            return f"the connection failed ({_cause(error)})"

    async def _converse(self, peer: Peer, host: HostInfo) -> str:
        """Open the conversation and go on until the server ends; return why that ended."""
        why = "it ended"
        async with anyio.create_task_group() as tasks:
            ended = anyio.Event()
            await tasks.start(self._drive, peer, ended)
            try:
                with anyio.fail_after(START_SECONDS):
                    await self._open_conversation(peer, host)
            except ConnectionEnded:
                self._first_era = not self.modern  # some end at a request that they do not know
            except TimeoutError:
                why = f"it did not answer within {START_SECONDS:g} s"
            except RpcError as error:
                why = f"it refused the connection ({error.message})"
            else:
                self._peer, self._failure, self._has_answered = peer, None, True
                if not self.modern:
                    tasks.start_soon(self._ask_again, peer)
                self._changed.set()
                for name in ("tools", "prompts", "resources"):
                    # A host that was answered without it, or before it ended, asks again.
                    if self._is_late and name in self.capabilities:
                        changed = f"notifications/{name}/list_changed"
                        await self.for_host.on_notify(self, changed, None)
                self._is_late = False
                await ended.wait()
            tasks.cancel_scope.cancel()
        return why

    async def _drive(
        self, peer: Peer, ended: anyio.Event, *, task_status: TaskStatus[None]
    ) -> None:
        async def on_request(_: RequestId, method: str, params: Params | None) -> dict[str, Any]:
            return await self.for_host.on_request(self, method, params)

        async def on_notify(method: str, params: Params | None) -> None:
            if method == "notifications/progress":
                token = (params or {}).get("progressToken")
                scope = self._calls.get(token) if isinstance(token, str | int) else None
                if scope is None:
                    return  # the call has ended, or is another server's
                # A call that reports progress is not silent.
                scope.deadline = anyio.current_time() + self.server.timeout
            await self.for_host.on_notify(self, method, params)

        try:
            await peer.run(on_request, on_notify, task_status=task_status)
        finally:
            ended.set()

    async def _open_conversation(self, peer: Peer, host: HostInfo) -> None:
        """Open the conversation in the host's era, else in the other.

        A server of an earlier era may also be silent about a method that it does not know, or end
        (basic/versioning): then the next start begins with the other era.
        """
        self._host = host
        first = host.modern if self._first_era is None else self._first_era
        discover, initialize = {"_meta": host.envelope()}, host.initialize()
        no_version = RpcError(METHOD_NOT_FOUND, "It shares no version of the 2026 era.")
        for modern in (first, not first):
            self.modern = modern
            seconds = DISCOVER_SECONDS if modern and first else math.inf
            with anyio.move_on_after(seconds):
                try:
                    if modern:
                        about = await peer.request("server/discover", discover, is_opening=True)
                        if LATEST_MODERN_VERSION not in as_array(about.get("supportedVersions")):
                            raise no_version
                    else:
                        about = await peer.request("initialize", initialize, is_opening=True)
                        await peer.notify("notifications/initialized", None)
                    self.about = about
                except RpcError:
                    if modern is not first:
                        raise
                    continue
                return

    def _in_its_era(self, params: Params | None) -> Params | None:
        """Return parameters with the ``_meta`` fields that the server's era requires."""
        own, theirs = dict(as_object(params)), meta_of(params)
        meta = {name: value for name, value in theirs.items() if name not in ENVELOPE}
        if self.modern:
            meta |= self._host.envelope()
            level = theirs.get(LOG_LEVEL_KEY) or self.log_level
            if level:
                meta[LOG_LEVEL_KEY] = level
        own.pop("_meta", None)
        if meta:
            own["_meta"] = meta
        return own or None


def _key(method: str, params: Params | None) -> str:
    """Return the identity of a call: its method and its parameters without ``_meta``."""
    own = {name: value for name, value in (params or {}).items() if name != "_meta"}
    text = json.dumps([method, own], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _ordinal(number: int) -> str:
    return {3: "third", 4: "fourth", 5: "fifth"}.get(number, f"{number}th")


def _cause(error: BaseException) -> str:
    """Return the innermost exception of nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return str(error) or type(error).__name__
