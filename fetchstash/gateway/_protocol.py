"""The words of MCP that the gateway reads; a test compares them with the SDK's.

``mcp_types`` takes longer to import than a quick server takes to start.
"""

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
