"""The session id of the handshake era. It opens nothing, and no replica keeps anything for it.

It holds the client's name, because only the first request of that era says it and the limits of its
host depend on it, and a nonce, because the requests of a client are numbered from 1 again.
"""

import base64
import json
import secrets
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers

SESSION_HEADER = "mcp-session-id"
_NAME_CHARS = 64
_MAX_CHARS = 1_024


def new_session(message: Mapping[str, Any]) -> str:
    """Return an id for the client of an ``initialize``; ``client_in`` reads its name out of it."""
    match message:
        case {"params": {"clientInfo": {"name": str(name)}}}:
            pass
        case _:
            name = ""
    data = json.dumps([secrets.token_hex(12), name[:_NAME_CHARS]]).encode()
    return base64.urlsafe_b64encode(data).decode("ascii")


def client_in(headers: Headers) -> str:
    """Return the name of a client by its session id, "" if it is none of ours."""
    session = headers.get(SESSION_HEADER, "")
    if len(session) > _MAX_CHARS:
        return ""
    try:
        _, name = json.loads(base64.urlsafe_b64decode(session))
    except (ValueError, TypeError, RecursionError):
        return ""
    return name[:_NAME_CHARS] if isinstance(name, str) else ""
