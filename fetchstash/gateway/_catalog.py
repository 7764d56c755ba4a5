"""The combined catalogue of all wrapped servers: names, lists, and change notices.

Before 2026-07-28 a server tells of changes unasked, and of a resource after
``resources/subscribe``. Since then all of it comes on the stream of a ``subscriptions/listen``
request (SEP-2575).
"""

import json
import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from fetchstash import __version__
from fetchstash.config import ARTIFACT_TOOLS
from fetchstash.errors import BadArgument, FetchstashError, did_you_mean
from fetchstash.gateway._lean import TOOL_SCHEMA, is_for_page_alone, short
from fetchstash.gateway._process import say
from fetchstash.gateway._protocol import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    SERVER_INFO_KEY,
    SUBSCRIPTION_ID_KEY,
    meta_of,
)
from fetchstash.gateway._rpc import Params, Peer, RequestId, RpcError, walked
from fetchstash.gateway._upstream import Upstream
from fetchstash.text import clip
from fetchstash.text.untyped import as_array, as_object, as_objects

PAGES, ENTRIES, LIST_CHARS = 1_000, 10_000, 8 * 2**20
"""What one list of a server may have: pages, entries, characters of JSON. The rest is cut."""

AT_A_TIME = 100
"""Entries that are looked at before the loop goes on."""

READY_SECONDS = 20.0
"""How long the host's first request waits for a server; then its tools follow later."""

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
T = TypeVar("T")
_CAPABILITIES = {"resourceTemplates": "resources"}
_KEYS = {"resources": "uri", "resourceTemplates": "uriTemplate"}
"""What tells the entries of a list apart; of tools and prompts it is their name."""


class Shortened(Enum):
    """Which parts of a tool's long results may be replaced by previews.

    The page of an MCP App reads ``structuredContent``, which a host that shows pages keeps from
    its model, and calls tools that no model sees (SEP-1865).
    """

    NOTHING = "nothing"
    TEXT = "text"
    ALL = "all"


def _feeds_page(tool: Mapping[str, Any]) -> bool:
    """Return whether the page of an MCP App is shown with a tool's results."""
    meta = meta_of(tool)
    return bool(as_object(meta.get("ui")).get("resourceUri") or meta.get("ui/resourceUri"))


class Catalog:
    """The wrapped servers and their lists. ``own`` is fetchstash itself, run like one of them."""

    def __init__(
        self, servers: Sequence[Upstream], own: Upstream, *, with_fetch: bool, lean: bool
    ) -> None:
        self._servers = tuple(servers)
        self._lean = lean
        self._whole: dict[str, dict[str, Any]] = {}
        self.own = own
        self._with_fetch = with_fetch
        self._routes: dict[str, dict[str, tuple[Upstream, str]]] = {}
        self._left_out: dict[str, Mapping[tuple[str, str], Upstream]] = {}
        self._shortened: dict[tuple[str, str], Shortened] = {}
        self._schemas: dict[tuple[str, str], dict[str, Any]] = {}
        self.host_shows_apps = False

    @property
    def all(self) -> tuple[Upstream, ...]:
        """The servers and, last, fetchstash itself."""
        return (*self._servers, self.own)

    def forget(self) -> None:
        """Ask for every list again when it is needed next."""
        self._routes.clear()

    async def here(self) -> list[Upstream]:
        """Return the servers that answer; waits as long as a host may be kept waiting."""

        async def wait(upstream: Upstream) -> None:
            if await upstream.answers(READY_SECONDS):
                here.append(upstream)

        here = [self.own]  # which starts when it is needed
        async with anyio.create_task_group() as tasks:
            for upstream in self._servers:
                tasks.start_soon(wait, upstream)
        return [upstream for upstream in self.all if upstream in here]

    async def listed(self, method: str, params: Params) -> dict[str, Any]:
        """Return one list of all servers together; names that two servers share get prefixes."""
        field = LISTS[method]
        key = _KEYS.get(field, "name")
        entries: list[tuple[Upstream, dict[str, Any]]] = []
        owners: dict[str, set[str]] = {}
        for upstream, items in await self.all_of(method, field, params):
            async for item in _in_turns(items):
                if method != "tools/list" or self._offers(upstream, item):
                    entries.append((upstream, item))
                    owners.setdefault(str(item.get(key)), set()).add(upstream.name)
        routes: dict[str, tuple[Upstream, str]] = {}
        shown: list[dict[str, Any]] = []
        left_out: dict[tuple[str, str], Upstream] = {}
        all_whole: dict[str, dict[str, Any]] = {}
        async for upstream, item in _in_turns(entries):
            name = str(item.get(key))
            exposed = name
            if key == "name" and len(owners[name]) > 1 and upstream is not self.own:
                exposed = upstream.server.own_prefix + name
            if exposed in routes:
                if routes[exposed][0] is not upstream:
                    left_out[upstream.name, exposed] = upstream
                continue
            routes[exposed] = (upstream, name)
            entry = {**item, key: exposed}
            if method == "tools/list":
                self._schemas[upstream.name, name] = as_object(item.get("inputSchema"))
                shortened = self._shortened[upstream.name, name] = self._decide(upstream, item)
                if shortened is Shortened.ALL:
                    entry.pop("outputSchema", None)  # a preview has no schema
                if self._lean and upstream is not self.own and not is_for_page_alone(item):
                    entry, whole = short(entry), entry
                    if entry != whole:
                        all_whole[exposed] = item
            shown.append(entry)
        self._routes[field] = routes
        if field == "tools":
            self._whole = all_whole
        before, self._left_out[field] = self._left_out.get(field, {}), left_out
        advice = "; give the servers other prefixes" if field in ("tools", "prompts") else ""
        for (_, exposed), upstream in left_out.items():
            if (upstream.name, exposed) not in before:  # it is said once
                what = f"another server has {clip(exposed, 120)!r}, too, so this one is left out"
                say(upstream.server, f"fetchstash: {what}{advice}.")
        return {field: shown}

    def _offers(self, upstream: Upstream, tool: Mapping[str, Any]) -> bool:
        name = str(tool.get("name"))
        if upstream is not self.own:
            return upstream.server.offers(name)
        return self._lean if name == TOOL_SCHEMA else self._with_fetch or name in ARTIFACT_TOOLS

    def whole(self, exposed: str) -> dict[str, Any] | None:
        """Return a tool that is listed short as its server lists it, None for any other."""
        return self._whole.get(exposed)

    def schema(self, upstream: Upstream, tool: str) -> dict[str, Any]:
        """Return the whole schema of a listed tool's arguments."""
        return self._schemas.get((upstream.name, tool), {})

    def shortened(self, upstream: Upstream, tool: str) -> Shortened:
        """Return which parts of a listed tool's long results may be replaced by previews."""
        return self._shortened.get((upstream.name, tool), Shortened.ALL)

    def _decide(self, upstream: Upstream, tool: Mapping[str, Any]) -> Shortened:
        is_left = upstream is self.own or tool.get("name") in upstream.server.leave_alone
        if is_left or is_for_page_alone(tool):
            return Shortened.NOTHING
        is_page = self.host_shows_apps and _feeds_page(tool)
        return Shortened.TEXT if is_page else Shortened.ALL

    async def all_of(
        self, method: str, field: str, params: Params
    ) -> list[tuple[Upstream, list[dict[str, Any]]]]:
        """Return each server's items of a list; fetchstash itself offers no prompts."""
        meta = {"_meta": params["_meta"]} if "_meta" in params else {}
        capability = _CAPABILITIES.get(field, field)
        found: list[tuple[Upstream, list[dict[str, Any]]]] = []
        for upstream in await self.here():
            is_ours = upstream is self.own and method == "prompts/list"
            if capability in upstream.capabilities and not is_ours:
                found.append((upstream, await self._all_pages(upstream, method, field, meta)))
        return found

    async def _all_pages(
        self, upstream: Upstream, method: str, field: str, params: Params
    ) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        cursor: Any = None
        chars = 0
        try:
            for number in range(PAGES):
                page = {**params, **({} if cursor is None else {"cursor": cursor})}
                result = await upstream.request(method, page or None)
                items += await walked(as_objects, result.get(field))
                chars += await walked(_chars, result.get(field))
                before, cursor = cursor, result.get("nextCursor")
                if len(items) > ENTRIES or (chars > LIST_CHARS and cursor is not None):
                    bounds = f"{ENTRIES:,} entries or {LIST_CHARS >> 20} MiB"
                    say(upstream.server, f"fetchstash: {method} has over {bounds}; it is cut.")
                    return items[:ENTRIES]
                if cursor is None:
                    break
                if cursor == before or number == PAGES - 1:
                    say(upstream.server, f"fetchstash: {method} does not end; it is cut.")
                    break
        except (RpcError, FetchstashError) as error:
            say(upstream.server, f"fetchstash: {method} failed ({error}).")
        return items

    async def route(self, method: str, exposed: str, kind: str) -> tuple[Upstream, str]:
        """Return the server of a tool or prompt, and its name there. Raises BadArgument."""
        if exposed not in self._routes.get(LISTS[method], {}):
            self._routes.pop(LISTS[method], None)
        routes = await self._routes_of(method)
        if exposed not in routes:
            near = await anyio.to_thread.run_sync(did_you_mean, exposed, routes)
            advice = near or f"Ask for {method}."
            raise BadArgument(f"There is no {kind} {clip(exposed, 60)!r}.", advice)
        return routes[exposed]

    async def _routes_of(self, method: str) -> Mapping[str, tuple[Upstream, str]]:
        """Return the server of each name in a list. The lists may change at any time."""
        if LISTS[method] not in self._routes:
            await self.listed(method, {})
        return self._routes[LISTS[method]]

    async def owner(self, uri: str) -> Upstream:
        """Return the server of a resource: by its list, by a template, else the first server."""
        if uri.startswith(("fetchstash://", "ui://fetchstash/")):
            return self.own
        resources = await self._routes_of("resources/list")
        if uri in resources:
            return resources[uri][0]
        templates = await self._routes_of("resources/templates/list")
        async for template, (upstream, _) in _in_turns(tuple(templates.items())):
            if _fits(uri, template):
                return upstream
        with_resources = [up for up in await self.here() if "resources" in up.capabilities]
        return next((up for up in with_resources if up is not self.own), self.own)

    def only(self, method: str) -> Upstream:
        """Return the server for a method unknown to us: the only one there is."""
        if len(self._servers) != 1:
            raise RpcError(METHOD_NOT_FOUND, f"There is no method {clip(method, 60)!r}.")
        return self._servers[0]

    def server_info(self, here: Sequence[Upstream]) -> dict[str, Any]:
        """Return the one server's own name where there is one, else ours."""
        if len(self._servers) == 1 and self._servers[0] in here:
            about = self._servers[0].about
            modern = meta_of(about).get(SERVER_INFO_KEY)
            if info := as_object(about.get("serverInfo") or modern):
                return info
        return {"name": "fetchstash", "title": "fetchstash gateway", "version": __version__}

    def instructions(self, here: Sequence[Upstream]) -> dict[str, str]:
        """Return the servers' own instructions, and how to read shortened results."""
        theirs = [
            text if len(self._servers) == 1 else f"{up.name}: {text}"
            for up in self._servers
            if up in here and isinstance(text := up.about.get("instructions"), str) and text
        ]
        ours = (
            "A long result comes as a preview with an artifact_ref: find the place with "
            "artifact_grep or artifact_search, and read just that with artifact_slice or "
            "get_search_content. To hand a text that you have not read to another tool, write "
            '{"artifact_ref": "art_…"} (and "path" for a part) in the place of its argument.'
        )
        return {"instructions": "\n\n".join([*theirs, ours])}


async def _in_turns(items: Sequence[T]) -> AsyncGenerator[T]:
    """Yield items; the loop goes on between some of them."""
    for number, item in enumerate(items):
        if number % AT_A_TIME == AT_A_TIME - 1:
            await checkpoint()
        yield item


def _chars(value: Any) -> int:
    return len(json.dumps(value, default=str))


def merged(capabilities: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the capabilities that any of the servers has.

    Any list may change: a server comes late, or is started again.
    """
    together: dict[str, Any] = {}
    for offered in capabilities:
        for name, value in offered.items():
            more = {key: item for key, item in as_object(value).items() if item is not False}
            together[name] = {**together.get(name, {}), **more}
    for name in ("tools", "prompts", "resources"):
        if name in together:
            together[name]["listChanged"] = True
    return together


def _fits(uri: str, template: str) -> bool:
    """Return whether a URI fits a template (RFC 6570): an expression is any characters."""
    first, *rest = re.split(r"\{[^{}]*\}", template)
    if not rest:
        return uri == template
    if not uri.startswith(first) or not uri.endswith(rest[-1]):
        return False
    place, end = len(first), len(uri) - len(rest[-1])
    for part in rest[:-1]:
        place = uri.find(part, place, end)
        if place < 0:
            return False
        place += len(part)
    return place <= end


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
        """The ``_meta`` of each notification on this stream."""
        return {SUBSCRIPTION_ID_KEY: self.request_id}

    @property
    def uris(self) -> list[str]:
        """The resources whose changes the host asked for."""
        return list(map(str, as_array(self.wanted.get("resourceSubscriptions"))))

    def wants(self, method: str, params: Params) -> bool:
        """Return whether the host asked for this notification."""
        if method == UPDATED:
            # The address told may be one below that of the subscription.
            return str(params.get("uri")).startswith(tuple(self.uris))
        return self.wanted.get(_FILTERS[method]) is True


@dataclass
class Subscriptions:
    """The host's subscriptions, and the ones that we hold open at the servers for them."""

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
        """Notify the host of a change on each stream that asked for it."""
        for stream in tuple(self._streams):
            if stream.wants(method, params or {}):
                meta = {**meta_of(without_subscription(params)), **stream.meta}
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
            self.tasks.start_soon(self._listen, upstream, wanted, scope)

    def release(self, upstream: Upstream, uri: str) -> None:
        """Listen to a resource no longer."""
        if scope := self._held.pop((upstream.name, uri), None):
            scope.cancel()

    async def _listen(
        self, upstream: Upstream, wanted: Params, scope: anyio.CancelScope | None = None
    ) -> None:
        """Keep a stream open at a server; open it anew when the server ends it or is restarted."""
        # RpcError: it has no subscriptions.
        with scope or anyio.CancelScope(), suppress(RpcError):
            while True:
                try:
                    await upstream.request("subscriptions/listen", {"notifications": dict(wanted)})
                    await anyio.sleep(AGAIN_SECONDS)
                except FetchstashError:
                    await upstream.back()

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
    with suppress(RpcError, FetchstashError):
        await upstream.request(method, {"uri": uri})


def without_subscription(params: Params | None) -> dict[str, Any] | None:
    """Return the parameters of a notification without the id of our own stream."""
    own, meta = dict(as_object(params)), dict(meta_of(params))
    own.pop("_meta", None)
    meta.pop(SUBSCRIPTION_ID_KEY, None)
    return ({**own, "_meta": meta} if meta else own) or None
