"""What the service answers itself, as JSON-RPC has errors: one line."""

import json
from collections.abc import Mapping

from mcp_types import INVALID_REQUEST, RequestId
from starlette.responses import Response

from fetchstash.errors import FetchstashError
from fetchstash.service import _request


def reply(
    status: int,
    error: FetchstashError,
    *,
    request: RequestId | None = None,
    number: int = INVALID_REQUEST,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a JSON-RPC error of one line, and log its code with the request that is answered.

    ``request`` is the id of its message.
    """
    if record := _request.current():
        record.code = error.code
    problem = {"code": number, "message": error.line(), "data": {"code": error.code}}
    body = json.dumps({"jsonrpc": "2.0", "id": request, "error": problem})
    return Response(body, status, headers, "application/json")
