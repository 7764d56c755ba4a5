"""The Stash of a server, opened by the first call; and questions to the person at the host.

In the handshake era the server sends a request of its own. In the 2026 era the call ends with the
question (``InputRequiredResult``), and the client sends the call again with the answer.
"""

import gc
import secrets
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

import anyio
import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from fetchstash.config import Settings
from fetchstash.store import AUTO_RUN, project_run, with_run
from fetchstash.text.urls import join_host_port

if TYPE_CHECKING:
    from fetchstash.fetch import HttpFetcher
    from fetchstash.render import Host
    from fetchstash.stash import Stash

Answers = Mapping[str, types.InputResponse] | None
"""What the client answered with this call, by the key of each question."""

R = TypeVar("R", types.ListRootsResult, types.ElicitResult)


class InputNeeded(Exception):
    """The call must end with this question; the client sends it again with the answer."""

    def __init__(self, key: str, request: types.InputRequest) -> None:
        super().__init__(key)
        self.result = types.InputRequiredResult(input_requests={key: request})


async def asked(
    ctx: ServerRequestContext[Any, Any],
    answers: Answers,
    key: str,
    request: types.ListRootsRequest | types.ElicitRequest,
    kind: type[R],
    *,
    seconds: float,
) -> R | None:
    """Return the client's answer, None if it gives none. Raises InputNeeded in the 2026 era."""
    if ctx.session.protocol_version in MODERN_PROTOCOL_VERSIONS:
        if ctx.method != "tools/call":
            return None
        answer = (answers or {}).get(key)
        if answer is None:
            raise InputNeeded(key, request)
        return answer if isinstance(answer, kind) else None
    try:
        return await ctx.session.send_request(
            request,
            kind,
            request_read_timeout_seconds=seconds,
            metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
        )
    except (MCPError, ValidationError):
        return None


_SECONDS = 120
"""Within which a person must answer; hosts give up on a call soon after that."""
_ANSWERING_HOSTS = ("codex-mcp-client",)
"""Clients that may accept a form with nobody there: Codex 0.169 does, with approvals bypassed."""


class Person:
    """The client's user, who is asked once for each host and port while the process runs.

    A model cannot answer: its arguments are of the tool, and a key is sent to the client alone. A
    client that accepts forms by itself sends them empty or with their defaults: a yes is the host's
    name, which a person must type.
    """

    def __init__(self, *, may_be_asked: bool) -> None:
        self._may_be_asked = may_be_asked
        self._decisions: dict[tuple[str, int], bool] = {}
        self._keys: dict[tuple[str, int], str] = {}
        self._lock = anyio.Lock()

    async def allows(
        self, ctx: ServerRequestContext[Any, Any], answers: Answers, refusal: Mapping[str, Any]
    ) -> bool:
        """Return whether the person allows the host of a refusal. Raises InputNeeded."""
        what = refusal.get("private")
        if not (what and self._may_be_asked and _can_be_asked(ctx)):
            return False
        place = refusal["host"], refusal["port"]
        async with self._lock:
            if place not in self._decisions:
                key = self._keys.setdefault(place, f"allow-{secrets.token_hex(16)}")
                answer = await asked(
                    ctx, answers, key, _question(*place, what), types.ElicitResult, seconds=_SECONDS
                )
                typed = _typed(answer)
                names = {place[0], f"[{place[0]}]", join_host_port(*place)}
                if typed and typed not in names:  # mistyped: the next call asks again
                    return False
                self._decisions[place] = typed in names
            return self._decisions[place]


def _can_be_asked(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the client declares forms; one that names no mode has them (2025-06-18)."""
    client, capabilities = ctx.session.client_params, ctx.session.client_capabilities
    if client and client.client_info.name.startswith(_ANSWERING_HOSTS):
        return False
    elicitation = capabilities.elicitation if capabilities else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _question(host: str, port: int, what: str) -> types.ElicitRequest:
    place = join_host_port(host, port)
    message = (
        f"May fetchstash fetch from {place}, for this session? {host} {what}. "
        f"Type {host} to allow it."
    )
    # No default, no enum and no constant: whatever fills those in is no person.
    field = {"type": "string", "title": "Host", "description": "The name of the host to allow."}
    schema: dict[str, Any] = {"type": "object", "properties": {"host": field}, "required": ["host"]}
    params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
    return types.ElicitRequest(params=params)


def _typed(answer: types.ElicitResult | None) -> str:
    """Return the text that a person typed; "" for a refusal and for an empty form."""
    if answer is None or answer.action != "accept":
        return ""
    return str((answer.content or {}).get("host") or "").strip().rstrip(".").lower()


Context = ServerRequestContext["StashSource", Any]

_ROOTS_SECONDS = 2
"""Within which a client must list its roots: it is a program, nobody is asked."""


class StashSource(Protocol):
    """Where a server takes the Stash of each request from."""

    @property
    def settings(self) -> Settings:
        """The settings that the list of tools is made by."""
        ...

    def may_delete(self, ctx: Context) -> bool:
        """Return whether the one who asks is offered the tool that deletes."""
        ...

    def host(self, ctx: Context) -> "Host":
        """Return the host that asks."""
        ...

    async def get(self, ctx: Context, answers: Answers = None) -> "Stash":
        """Return the Stash of a request. Raises InputNeeded."""
        ...

    async def person_allows(
        self, ctx: Context, answers: Answers, refusals: Iterable[Mapping[str, Any]]
    ) -> bool:
        """Return whether the person at the client allowed what was refused. Raises InputNeeded."""
        ...

    def forget_roots(self) -> None:
        """Ask the client for its roots again with its next call."""
        ...

    async def aclose(self) -> None:
        """Close what was opened."""
        ...


class LazyStash:
    """The Stash of a server, opened by the first call, so that a host sees the tools sooner.

    ``local``: the server's clients share our file system, and are shown paths. ``owns_process``:
    the process does nothing else.
    """

    def __init__(
        self, settings: Settings, *, local: bool = True, owns_process: bool = False
    ) -> None:
        self.settings = settings
        self._local = local
        self._to_freeze = owns_process
        self._stack = AsyncExitStack()
        self._lock = anyio.Lock()
        self._stashes: dict[str, Stash] = {}
        self._run_of_roots: str | None = None  # "" where the client lists none
        self._fetcher: HttpFetcher | None = None
        self._person = Person(may_be_asked=settings.fetch.ask and local)

    def may_delete(self, ctx: Context) -> bool:  # noqa: ARG002 - there is one client
        """Return ``tenant.delete``."""
        return self.settings.tenant.delete

    def host(self, ctx: Context) -> "Host":
        """Return the host that asks: each request names its client, in either era."""
        from fetchstash.render import Host  # noqa: PLC0415 - heavy

        client = ctx.session.client_params
        views = self.settings.views_for(client.client_info.name if client else "")
        return Host(views, self._local, self.settings.context)

    async def get(self, ctx: Context, answers: Answers = None) -> "Stash":
        """Return the Stash of the client's project, opened if need be.

        After a failure the next call tries again. Raises InputNeeded.
        """
        from fetchstash.stash import open_stash  # noqa: PLC0415 - heavy

        async with self._lock:
            run = await self._run(ctx, answers)
            if run not in self._stashes:
                store = replace(self.settings.store, run=run)
                opened = open_stash(replace(self.settings, store=store), fetcher=self._fetching())
                self._stashes[run] = await self._stack.enter_async_context(opened)
            elif self._to_freeze:
                # The first call imported the rest. Modules stay, and a full collection of them
                # would stop the loop for 0.1 s.
                gc.freeze()
                self._to_freeze = False
            return self._stashes[run]

    async def person_allows(
        self, ctx: Context, answers: Answers, refusals: Iterable[Mapping[str, Any]]
    ) -> bool:
        """Return whether the person allowed one of the hosts that were refused just now.

        ``refusals`` are the details of the errors. Raises InputNeeded.
        """
        allowed = False
        for refusal in refusals:
            if await self._person.allows(ctx, answers, refusal):
                self._fetching().grant(refusal["host"], refusal["port"])
                allowed = True
        return allowed

    def _fetching(self) -> "HttpFetcher":
        """Return the fetcher that all projects share: a person's permission holds in each."""
        if self._fetcher is None:
            from fetchstash.fetch import HttpFetcher  # noqa: PLC0415 - heavy

            self._fetcher = HttpFetcher(self.settings.fetch)
            self._stack.push_async_callback(self._fetcher.aclose)
        return self._fetcher

    def forget_roots(self) -> None:
        """Ask for the roots again at the next call, because the client announced a change."""
        self._run_of_roots = None

    async def aclose(self) -> None:
        """Close all stashes and the fetcher."""
        await self._stack.aclose()

    async def _run(self, ctx: Context, answers: Answers) -> str:
        """Return the run of the client's project: its first root, else the working folder."""
        store, capabilities = self.settings.store, ctx.session.client_capabilities
        has_roots = capabilities is not None and capabilities.roots is not None
        if store.run == AUTO_RUN and not store.ephemeral and self._local and has_roots:
            if self._run_of_roots is None:
                request, kind = types.ListRootsRequest(), types.ListRootsResult
                listed = await asked(ctx, answers, "roots", request, kind, seconds=_ROOTS_SECONDS)
                folders = [_folder(str(root.uri)) for root in (listed.roots if listed else ())]
                self._run_of_roots = next((project_run(f) for f in folders if f), "")
            if self._run_of_roots:
                return self._run_of_roots
        return with_run(store).run


def _folder(uri: str) -> Path | None:
    """Return the folder of a file URI (RFC 8089), None for any other URI."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path:
        return None
    return Path(url2pathname(parts.path))
