"""The connection to the host: our stdin and stdout."""

import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress

from fetchstash.errors import TooLarge
from fetchstash.gateway._framing import UnreadableMessage, parsed
from fetchstash.gateway._protocol import INTERNAL_ERROR, INVALID_REQUEST, as_line
from fetchstash.gateway._rpc import Connection, ConnectionEnded, Message, RpcError, read_back
from fetchstash.server import LineWriter, claim_streams, read_lines

_log = logging.getLogger("fetchstash.gateway")


def host_connection() -> Connection:
    """Return the connection to the host, which takes stdin and stdout for itself."""
    sys.stdout.flush()
    stdin, stdout = claim_streams()
    writer = LineWriter(stdout)

    async def send(message: Message) -> None:
        line = _line(message)
        try:
            await writer.write(line)
        except OSError:
            raise ConnectionEnded from None

    return _messages(stdin), send


async def _messages(stdin: int) -> AsyncGenerator[Message]:
    """Yield what the host sends. What is no message is passed over."""
    async for line in read_lines(stdin):
        try:
            if line.strip():
                yield parsed(line)
        except UnreadableMessage as error:
            _log.warning("The host sent %s.", error)


def _line(message: Message) -> bytes:
    """Return a message for the host. Of a result that nobody made short only an error is left."""
    with suppress(TypeError):  # a value stands in a file
        return as_line(message)
    try:
        return as_line(read_back(message))
    except TooLarge:
        if "method" in message:
            raise RpcError(INVALID_REQUEST, "The request is too long.") from None
        error = RpcError(INTERNAL_ERROR, "The answer is too long. Ask for less.")
        return as_line({"jsonrpc": "2.0", "id": message["id"], "error": error.as_object})
