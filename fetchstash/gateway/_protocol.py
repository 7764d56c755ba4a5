"""The method names of MCP that the gateway reads; a test compares them with the SDK's.

``mcp_types`` takes longer to import than a quick server takes to start.
"""

import json
from collections.abc import Mapping
from typing import Any

from fetchstash.text.untyped import as_object

INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32600, -32601, -32602, -32603
REQUEST_TIMEOUT, UNSUPPORTED_PROTOCOL_VERSION = -32001, -32022

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions that begin with ``initialize``, oldest first."""

MODERN_VERSIONS = ("2026-07-28",)
"""The revisions in which each request says what its client is."""

LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION = HANDSHAKE_VERSIONS[-1], MODERN_VERSIONS[-1]

_META = "io.modelcontextprotocol/"
PROTOCOL_VERSION_KEY = f"{_META}protocolVersion"
CLIENT_INFO_KEY = f"{_META}clientInfo"
CLIENT_CAPABILITIES_KEY = f"{_META}clientCapabilities"
LOG_LEVEL_KEY = f"{_META}logLevel"
SERVER_INFO_KEY = f"{_META}serverInfo"
SUBSCRIPTION_ID_KEY = f"{_META}subscriptionId"
UI_EXTENSION = f"{_META}ui"


# JSON has no NaN and no Infinity (RFC 8259, section 6); null is what JSON.stringify makes of them.
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)


def as_value(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError, RecursionError."""
    return _DECODER.decode(text)


def meta_of(message: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the ``_meta`` of parameters or of a result."""
    return as_object((message or {}).get("_meta"))


_to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def as_line(message: Mapping[str, Any]) -> bytes:
    """Return a message as a line of JSON, written as servers do: no blanks, characters as they are.

    Raises TypeError for a value that stands in a file.
    """
    try:
        text = _to_json(message)
    except ValueError:  # a number such as 1e999, which Python reads as infinite
        text = _to_json(as_value(json.dumps(message)))
    return text.encode("utf-8", "replace") + b"\n"
