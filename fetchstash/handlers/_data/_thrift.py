"""Reading Thrift's compact protocol: structs as dicts by field number."""

from typing import Any

from fetchstash.errors import FetchstashError
from fetchstash.handlers._reasons import Reason

_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(
    13
)
_MAX_DEPTH = 32

Struct = dict[int, Any]


class CompactReader:
    """Reads a struct from bytes (thrift-compact-protocol.md).

    Raises NoText if the data break off, have an unknown type or too many levels.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def struct(self, depth: int = 0) -> Struct:
        """Read a struct."""
        fields: Struct = {}
        number = 0
        while (head := self._byte()) != _STOP:
            delta, kind = head >> 4, head & 0x0F
            number = number + delta if delta else self._signed()
            # The type of a boolean field is its value.
            fields[number] = kind == _TRUE if kind in {_TRUE, _FALSE} else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise _damaged()
        if kind in {_TRUE, _FALSE, _BYTE}:  # of booleans, those in lists
            return self._byte()
        if kind in {_I16, _I32, _I64}:
            return self._signed()
        if kind == _DOUBLE:
            return self._take(8)
        if kind == _BINARY:
            return self._take(self._unsigned())
        if kind in {_LIST, _SET}:
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._unsigned()
            return [self._value(head & 0x0F, depth + 1) for _ in range(self._bounded(count))]
        if kind == _MAP:
            count = self._unsigned()
            kinds = self._byte() if count else 0
            return [
                (self._value(kinds >> 4, depth + 1), self._value(kinds & 15, depth + 1))
                for _ in range(self._bounded(count))
            ]
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise _damaged()

    def _element(self, kind: int, depth: int) -> Any:
        return self._value(kind, depth)

    def _bounded(self, count: int) -> int:
        """Return a number of elements, each of which takes at least one byte."""
        if count > len(self._data) - self._place:
            raise _damaged()
        return count

    def _byte(self) -> int:
        return self._take(1)[0]

    def _take(self, size: int) -> bytes:
        taken = self._data[self._place : self._place + size]
        if len(taken) < size:
            raise _damaged()
        self._place += size
        return taken

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise _damaged()

    def _signed(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)


def _damaged() -> FetchstashError:
    return Reason.PARQUET_METADATA.error()
