"""Read a server's messages, one JSON text a line, without holding a large one in memory.

A line up to ``LINE_BYTES`` is parsed as it is. In a longer one each string over ``VALUE_BYTES`` and
the whole ``structuredContent`` go to files as they arrive, and a ``Spooled`` stands in their place.
"""

import codecs
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import anyio.to_thread

from fetchstash.config import mapped
from fetchstash.gateway._protocol import as_value
from fetchstash.gateway._rpc import Spooled, StandIns, drop_spooled

LINE_BYTES = 2**20
VALUE_BYTES = 2**16
SKELETON_BYTES = 6 * 2**20
"""What may be left of a long message when its large values are taken out."""

RESULT_DEPTH = 2
"""How many brackets are open where the members of ``result`` stand."""

T = TypeVar("T")
_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
# The end of a piece that may be half of an escape, or the first half of a surrogate pair.
_HALF_ESCAPE = re.compile(
    r"(?:\\u[dD][89abAB][0-9a-fA-F]{2})?\\(?:u[0-9a-fA-F]{0,3})?\Z|\\u[dD][89abAB][0-9a-fA-F]{2}\Z"
)
_REQUEST_ID = re.compile(rb'"id"\s*:\s*(\d{1,15}|"[\w-]{1,100}")')
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


class UnreadableMessage(Exception):
    """A line that is no JSON object, or that has more values than can be held.

    ``request_id`` is that of the call it answers, where ``line`` shows it.
    """

    def __init__(self, what: str, line: bytes | bytearray = b"") -> None:
        super().__init__(what)
        self.request_id: int | str | None = None
        is_answer = line.startswith(b"{") and b'"method"' not in line
        if is_answer and (number := _REQUEST_ID.search(line)):
            self.request_id = json.loads(number.group(1))


class MessageReader:
    """Turns the bytes of a server into messages.

    ``spool`` gives the folder for large values; whoever takes a message owns its files. ``limit``
    bounds the bytes of one message: a longer one is read to its end and reported as unreadable.
    """

    def __init__(self, spool: Callable[[], Path], limit: int) -> None:
        self._spool = spool
        self._limit = limit
        self._line = bytearray()
        self._long: _LongMessage | None = None

    def feed(self, data: bytes) -> Iterator[dict[str, Any] | UnreadableMessage]:
        """Yield the messages that ``data`` completes."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            if end > start or self._line or self._long:
                self.add(data[start:end])
                yield from self.finish()
            start = end + 1
        self.add(data[start:])

    def messages(self, data: bytes) -> list[dict[str, Any] | UnreadableMessage]:
        """Return the messages that ``data`` completes."""
        return list(self.feed(data))

    async def beside_loop(self, work: Callable[[], T]) -> T:
        """Run work of this reader; in a thread while it reads a long message."""
        if self._long is None and len(self._line) <= VALUE_BYTES:
            return work()
        return await anyio.to_thread.run_sync(work)

    def finish(self) -> Iterator[dict[str, Any] | UnreadableMessage]:
        """Yield the message that ends here, if there is one."""
        try:
            if self._long is not None:
                yield self._long.finish()
            elif self._line and not self._line.isspace():
                yield parsed(self._line)
        except UnreadableMessage as error:
            yield error
        finally:
            self._line.clear()
            self._long = None

    def discard(self) -> None:
        """Remove the files of a message that never ended."""
        if self._long is not None:
            self._long.discard()
            self._long = None

    def add(self, data: bytes) -> None:
        """Take bytes of one message; ``finish`` ends it."""
        if self._long is None:
            self._line += data
            if len(self._line) <= LINE_BYTES:
                return
            self._long = _LongMessage(self._spool, self._limit)
            line, self._line = self._line, bytearray()
            for start in range(0, len(line), VALUE_BYTES):  # several copies of each are made
                self._long.feed(bytes(line[start : start + VALUE_BYTES]))
            return
        self._long.feed(data)


def parsed(line: bytes | bytearray) -> dict[str, Any]:
    """Return a JSON object; a lone surrogate in it becomes U+FFFD. Raises UnreadableMessage."""
    try:
        message = as_value(line.decode("utf-8", "replace"))
        if _SURROGATE_ESCAPE.search(line):
            message = mapped(message, _without_lone_surrogates, names=True)
    except (ValueError, RecursionError) as error:
        raise UnreadableMessage(f"a line that is no JSON ({error})", line) from None
    if not isinstance(message, dict):
        raise UnreadableMessage("a line that is no JSON object")
    return cast("dict[str, Any]", message)


def _without_lone_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


class Unescaper:
    """Reads the inside of a JSON string, a piece at a time (RFC 8259, section 7)."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Return the text of a piece. Raises UnreadableMessage for a wrong escape."""
        escaped = self._rest + self._decode(data, final=final)
        half = None if final else _HALF_ESCAPE.search(escaped, max(0, len(escaped) - 12))
        cut = half.start() if half else len(escaped)
        if (cut - len(escaped[:cut].rstrip("\\"))) % 2:
            cut = len(escaped)  # the backslash is the second of a pair
        self._rest = escaped[cut:]
        try:
            text: str = json.loads(f'"{escaped[:cut]}"', strict=False)
        except ValueError as error:
            raise UnreadableMessage(f"a string with a wrong escape ({error})") from None
        return str(_without_lone_surrogates(text))


class _Sink:
    """The text of one string: in memory while it is short, then in a file."""

    def __init__(self, spool: Callable[[], Path]) -> None:
        self._spool = spool
        self._raw = bytearray()
        self._file: BinaryIO | None = None
        self._chars = 0

    def feed(self, data: bytes) -> None:
        """Add bytes of the string, escapes as they stand."""
        if self._file is None:
            self._raw += data
            if len(self._raw) <= VALUE_BYTES:
                return
            self._file, self._unescaper = _new_file(self._spool()), Unescaper()
            data = bytes(self._raw)
            self._raw.clear()
        self._write(self._file, self._unescaper.feed(data))

    def finish(self) -> "bytes | Spooled":
        """Return the string as JSON, or its file."""
        if self._file is None:
            return b'"' + bytes(self._raw) + b'"'
        self._write(self._file, self._unescaper.feed(b"", final=True))
        self._file.close()
        return Spooled(Path(self._file.name), self._chars)

    def discard(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()
            Path(self._file.name).unlink(missing_ok=True)

    def _write(self, file: BinaryIO, text: str) -> None:
        self._chars += len(text)
        file.write(text.encode())


def _new_file(folder: Path) -> BinaryIO:
    # Closed by whoever finishes or discards the value; 0600.
    return cast("BinaryIO", tempfile.NamedTemporaryFile(prefix="result-", dir=folder, delete=False))


class _LongMessage:
    """One long line, parsed as it arrives."""

    def __init__(self, spool: Callable[[], Path], limit: int) -> None:
        self._spool = spool
        self._left = limit
        self._skeleton = bytearray()
        self._stand_ins = StandIns()
        self._depth = 0
        self._string: _Sink | None = None
        self._half = b""
        self._key = b""
        self._json: BinaryIO | None = None
        self._json_bytes = 0
        self._in_string = False
        self._error: UnreadableMessage | None = None

    def feed(self, data: bytes) -> None:
        """Parse further. After an error the rest of the line is ignored."""
        if self._error is None:
            self._left -= len(data)
            try:
                self._walk(self._half + data)
            except UnreadableMessage as error:
                self._error = error
                self.discard()

    def finish(self) -> dict[str, Any]:
        """Return the message. Raises UnreadableMessage, and then leaves no file."""
        try:
            if self._string or self._json or self._depth:
                self._error = self._error or UnreadableMessage("a message that ends in the middle")
            if self._error is not None:
                raise self._error
            return self._stand_ins.filled(parsed(bytes(self._skeleton)))
        except UnreadableMessage as error:
            self.discard()
            raise UnreadableMessage(str(error), bytes(self._skeleton)) from None

    def discard(self) -> None:
        """Remove the files of the values."""
        drop_spooled(self._stand_ins.values)
        self._stand_ins.values.clear()
        if self._string is not None:
            self._string.discard()
            self._string = None
        if self._json is not None:
            self._json.close()
            Path(self._json.name).unlink(missing_ok=True)
            self._json = None

    def _walk(self, data: bytes) -> None:
        if self._left < 0:
            raise UnreadableMessage("a message over the limit of one document")
        self._half = b""
        position = 0
        while position < len(data):
            if self._json is not None:
                position = self._walk_json(data, position)
            elif self._string is not None:
                position = self._walk_string(data, position)
            else:
                position = self._walk_structure(data, position)

    def _walk_structure(self, data: bytes, position: int) -> int:
        """Copy the bytes between two strings; return where the next string begins."""
        end = data.find(b'"', position)
        piece = data[position:] if end < 0 else data[position:end]
        here = piece.lstrip()
        if self._key == b'"structuredContent"' and self._depth == RESULT_DEPTH and here[:1] == b":":
            value = here[1:].lstrip()
            if value[:1] in {b"{", b"["}:
                self._key = b""
                self._skeleton += b":"
                self._json = _new_file(self._spool())
                self._json_bytes = 0
                return position + len(piece) - len(value)
            if not value and end < 0:  # the value comes with the next piece
                self._half = b":"
                return len(data)
        if here:
            self._key = b""
        self._depth += _opened(piece)
        self._append(piece)
        if end < 0:
            return len(data)
        self._string = _Sink(self._spool)
        return end + 1

    def _walk_string(self, data: bytes, position: int) -> int:
        sink = cast("_Sink", self._string)
        match = cast("re.Match[bytes]", _STRING.match(data, position))
        sink.feed(match.group())
        end = match.end()
        if end == len(data) or data[end : end + 1] == b"\\":
            self._half = data[end:]  # nothing, or the backslash of an escape
            return len(data)
        self._string = None
        value = sink.finish()
        if isinstance(value, Spooled):
            self._append(f'"{self._stand_ins.name(value)}"'.encode())
        else:
            self._key = value
            self._append(value)
        return end + 1

    def _walk_json(self, data: bytes, position: int) -> int:
        """Copy structuredContent to its file; return where it ends."""
        file = cast("BinaryIO", self._json)
        piece = data[position:]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece, self._half = piece[:-1], b"\\"
        brackets, in_string = _brackets(piece, in_string=self._in_string)
        depth = self._depth
        for bracket in brackets:
            depth += 1 if bracket in b"{[" else -1
            if depth == RESULT_DEPTH:
                break
        else:
            self._depth, self._in_string = depth, in_string
            self._json_bytes += file.write(piece)
            return len(data)
        end = self._end_of_json(piece)
        self._half, self._in_string, self._json = b"", False, None
        self._json_bytes += file.write(piece[:end])
        file.close()
        value = Spooled(Path(file.name), self._json_bytes, is_json=True)
        self._append(f'"{self._stand_ins.name(value)}"'.encode())
        return position + end

    def _end_of_json(self, piece: bytes) -> int:
        """Return the offset behind the bracket that closes structuredContent."""
        start = cast("re.Match[bytes]", _STRING.match(piece)).end() + 1 if self._in_string else 0
        for token in _TOKEN.finditer(piece, start):
            if token.group()[:1] != b'"':
                self._depth += _opened(token.group())
                if self._depth == RESULT_DEPTH:
                    return token.end()
        raise UnreadableMessage("brackets that do not match")

    def _append(self, data: bytes) -> None:
        self._skeleton += data
        if len(self._skeleton) > SKELETON_BYTES:
            raise UnreadableMessage("a message of too many values")


def _opened(piece: bytes) -> int:
    """Return how many more brackets open than close."""
    count = piece.count
    return count(b"{") + count(b"[") - count(b"}") - count(b"]")


def _brackets(piece: bytes, *, in_string: bool) -> tuple[bytes, bool]:
    """Return the brackets outside of strings, and whether the piece ends inside of one.

    Escapes go first, so that each quotation mark that is left begins or ends a string.
    """
    parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
    outside = b"".join(parts[1 if in_string else 0 :: 2])
    return outside.translate(None, _NO_BRACKETS), in_string ^ (len(parts) % 2 == 0)
