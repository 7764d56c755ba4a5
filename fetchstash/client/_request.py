"""The parts of a request besides its messages."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """The parts of a request that adapters know besides its messages; each field may be left out.

    ``model`` and ``endpoint`` name the model or deployment and the address that serves it.
    ``fixed`` is the rest that fills the window and cannot shrink, as plain data: the system prompt
    and the tools. ``window`` is what the SDK or framework itself says of the model, in tokens.
    ``output`` is the output that the request asks for, in tokens: most providers reserve it.
    ``kept_by_provider`` names what leads to earlier messages that the provider keeps and the
    request does not have, such as ``previous_response_id``.
    """

    model: str = ""
    endpoint: str = ""
    fixed: Any = None
    window: int | None = None
    output: int | None = None
    kept_by_provider: str = ""


NOTHING_KNOWN = RequestInfo()
"""A request of which only the messages are known."""
