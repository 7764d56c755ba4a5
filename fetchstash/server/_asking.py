"""Ask the client something in the middle of a call, in the way of its protocol era.

In the handshake era the server sends a request of its own. In the 2026 era the call ends with the
question (``InputRequiredResult``), and the client sends the call again with the answer.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

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
