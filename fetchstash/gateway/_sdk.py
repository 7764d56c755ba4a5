"""Between our messages, which are data, and those of the SDK."""

from collections.abc import Mapping

from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import jsonrpc_message_adapter

from fetchstash.gateway._rpc import Message


def to_sdk(message: Message, headers: Mapping[str, str] | None = None) -> SessionMessage:
    """Return a message for the SDK, which sends ``headers`` with it over HTTP."""
    parsed = jsonrpc_message_adapter.validate_python(message, by_name=False)
    return SessionMessage(parsed, ClientMessageMetadata(headers=dict(headers)) if headers else None)


def from_sdk(item: SessionMessage) -> Message:
    """Return a message of the SDK as data."""
    return item.message.model_dump(mode="json", by_alias=True, exclude_unset=True)
