"""Carry changes across the eras: lists that changed, resources that were updated.

Before 2026-07-28 a server tells of changes unasked, and of a resource after
``resources/subscribe``. Since then all of it comes on the stream of a ``subscriptions/listen``
request (SEP-2575).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import TaskGroup

from fetchstash.errors import FetchstashError
from fetchstash.gateway._json import as_list, as_object, meta_of
from fetchstash.gateway._protocol import INTERNAL_ERROR, SUBSCRIPTION_ID_KEY
from fetchstash.gateway._rpc import Params, Peer, RequestId, RpcError
from fetchstash.gateway._upstream import Upstream

STREAMS = 64
"""Streams that one host may have open."""

AGAIN_SECONDS = 1.0
"""The pause before a stream that a server has ended is opened anew."""

UPDATED = "notifications/resources/updated"
_FILTERS = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}


@dataclass(frozen=True)
class _Stream:
    """A stream that the host has open."""

    request_id: RequestId
    wanted: Mapping[str, Any]

    @property
    def meta(self) -> dict[str, Any]:
        """What each notification on this stream says of itself."""
        return {SUBSCRIPTION_ID_KEY: self.request_id}

    @property
    def uris(self) -> list[str]:
        """The resources whose changes the host asked for."""
        return list(map(str, as_list(self.wanted.get("resourceSubscriptions"))))

    def wants(self, method: str, params: Params) -> bool:
        """Return whether the host asked for this notification."""
        if method == UPDATED:
            # The address told may be one below that of the subscription.
            return str(params.get("uri")).startswith(tuple(self.uris))
        return self.wanted.get(_FILTERS[method]) is True


@dataclass
class Subscriptions:
    """What the host listens to, and what we hold open at the servers for it."""

    host: Peer
    tasks: TaskGroup
    _streams: list[_Stream] = field(default_factory=list[_Stream])
    _held: dict[tuple[str, str], anyio.CancelScope] = field(
        default_factory=dict[tuple[str, str], anyio.CancelScope]
    )

    @staticmethod
    def carries(method: str) -> bool:
        """Return whether a notification goes over these streams in the 2026 era."""
        return method == UPDATED or method in _FILTERS

    async def serve(
        self, request_id: RequestId, params: Params, servers: Sequence[Upstream]
    ) -> dict[str, Any]:
        """Serve one ``subscriptions/listen`` of the host, until it ends it."""
        wanted = as_object(params.get("notifications"))
        if len(self._streams) >= STREAMS:
            raise RpcError(INTERNAL_ERROR, "Too many subscriptions are open.")
        stream = _Stream(request_id, wanted)
        self._streams.append(stream)
        try:
            acknowledged = {"notifications": dict(wanted), "_meta": stream.meta}
            await self.host.notify("notifications/subscriptions/acknowledged", acknowledged)
            async with anyio.create_task_group() as tasks:
                for upstream in servers:
                    if upstream.modern:
                        tasks.start_soon(self._listen, upstream, wanted)
                    else:
                        tasks.start_soon(self._subscribe, upstream, stream)
                await anyio.sleep_forever()
        finally:
            self._streams.remove(stream)
        raise AssertionError  # sleep_forever ends by cancellation alone

    async def tell(self, method: str, params: Params | None) -> None:
        """Tell the host of a change, on each stream that asked for it."""
        for stream in tuple(self._streams):
            if stream.wants(method, params or {}):
                meta = {**meta_of(_without_id(params)), **stream.meta}
                await self.host.notify(method, {**(params or {}), "_meta": meta})

    def hold(self, upstream: Upstream, uri: str = "") -> None:
        """Listen to a server of the 2026 era for a host of an earlier one.

        Without ``uri`` to its lists, else to that resource.
        """
        key = (upstream.name, uri)
        if key not in self._held:
            wanted: dict[str, Any] = (
                {"resourceSubscriptions": [uri]} if uri else dict.fromkeys(_FILTERS.values(), True)
            )
            scope = self._held[key] = anyio.CancelScope()
            self.tasks.start_soon(self._hold, upstream, wanted, scope)

    def release(self, upstream: Upstream, uri: str) -> None:
        """Listen to a resource no longer."""
        if scope := self._held.pop((upstream.name, uri), None):
            scope.cancel()

    async def _hold(self, upstream: Upstream, wanted: Params, scope: anyio.CancelScope) -> None:
        with scope:
            await self._listen(upstream, wanted)

    async def _listen(self, upstream: Upstream, wanted: Params) -> None:
        """Keep a stream open at a server; open it anew when the server ends it or is restarted."""
        while True:
            try:
                await upstream.request("subscriptions/listen", {"notifications": dict(wanted)})
                await anyio.sleep(AGAIN_SECONDS)
            except RpcError:
                return  # it has no subscriptions
            except FetchstashError:
                try:
                    await upstream.ready()
                except FetchstashError:
                    return

    async def _subscribe(self, upstream: Upstream, stream: _Stream) -> None:
        try:
            for uri in stream.uris:
                await _quietly(upstream, "resources/subscribe", uri)
            await anyio.sleep_forever()
        finally:
            # A host that wants other resources opens a new stream before it ends the old one.
            others = [uri for other in self._streams if other is not stream for uri in other.uris]
            with anyio.move_on_after(1, shield=True):
                for uri in set(stream.uris).difference(others):
                    await _quietly(upstream, "resources/unsubscribe", uri)


async def _quietly(upstream: Upstream, method: str, uri: str) -> None:
    """Ask a server that may have no such resource."""
    try:
        await upstream.request(method, {"uri": uri})
    except (RpcError, FetchstashError):
        return


def _without_id(params: Params | None) -> dict[str, Any]:
    """Return the parameters of a notification without the id of our own stream."""
    own, meta = as_object(params), meta_of(params)
    own.pop("_meta", None)
    meta.pop(SUBSCRIPTION_ID_KEY, None)
    return {**own, "_meta": meta} if meta else own


def without_subscription(params: Params | None) -> dict[str, Any] | None:
    """Return the parameters of a notification as a host of an earlier era expects them."""
    return _without_id(params) or None
