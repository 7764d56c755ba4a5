"""Ask the person at the client whether a private host that was refused may be fetched."""

import secrets
from collections.abc import Mapping
from typing import Any

import anyio
import mcp_types as types
from mcp.server import ServerRequestContext

from fetchstash.fetch import join_host_port
from fetchstash.server._asking import Answers, asked

_SECONDS = 120
"""Within which a person must answer; hosts give up on a call soon after that."""
_ANSWERING_HOSTS = ("codex-mcp-client",)
"""Clients that may accept a form with nobody there: Codex 0.169 does, with approvals bypassed."""


class Person:
    """Whoever sits at the client. Is asked once about each host and port, while the process runs.

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
        self,
        ctx: ServerRequestContext[Any, Any],
        answers: Answers,
        refusal: Mapping[str, Any],
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
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"host": field},
        "required": ["host"],
    }
    params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
    return types.ElicitRequest(params=params)


def _typed(answer: types.ElicitResult | None) -> str:
    """Return what a person typed, "" for a no and for a form that was accepted empty."""
    if answer is None or answer.action != "accept":
        return ""
    return str((answer.content or {}).get("host") or "").strip().rstrip(".").lower()
