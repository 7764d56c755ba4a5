"""Web archives (WARC, ISO 28500): the responses that they hold, each read as a document."""

import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from fetchstash.handlers._archive import ArchiveReason
from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._shared._parts import MemberParts, Streamed
from fetchstash.handlers._shared._xml import counted

_MAX_RECORDS = 100_000
_MAX_HEADER = 64 * 1024
_MAX_BODY = 64 * 1024 * 1024
_ROWS_A_PART = 1_000


@dataclass(frozen=True, slots=True)
class _Record:
    """A response or resource: where its content stands in the file, and how it is coded."""

    address: str
    status: str
    media_type: str
    start: int
    size: int
    codings: str


class WarcHandler(Streamed, MemberParts):
    """Lists the responses of a web archive; the path of one is its number or its address."""

    name = "warc"

    def read(self, source: Path, extracted: Extracted) -> Iterator[Part]:
        """Yield a row for each response. Raises NoText if there is none."""
        count = 0
        title: str | None = "responses"
        rows = ["| number | address | status | type | bytes |\n| --- | --- | --- | --- | --- |\n"]
        for count, record in enumerate(_records(source), start=1):
            cells = (count, record.address, record.status, record.media_type, record.size)
            rows.append(f"| {' | '.join(map(str, cells))} |\n")
            if len(rows) > _ROWS_A_PART:
                yield Part("".join(rows), table=title, columns=5, rows=_ROWS_A_PART)
                rows, title = [], None
        if not count:
            raise ArchiveReason.WARC_EMPTY.error()
        held = len(rows) - (title is not None)
        yield Part("".join(rows), table=title, columns=5, rows=held)
        extracted.learn(members=count, structure_info=counted(count, "response"))

    @contextmanager
    def open_member(self, source: Path, name: str) -> Generator[Iterable[bytes]]:
        """Give the content of a response. Raises OutOfRange if there is no such one."""
        for number, record in enumerate(_records(source), start=1):
            if name in {str(number), record.address}:
                with source.open("rb") as file:
                    file.seek(record.start)
                    data = file.read(min(record.size, _MAX_BODY))
                yield [_decoded(data, record.codings)]
                return
        raise ArchiveReason.NO_MEMBER.error(name=name)


def _records(source: Path) -> Iterator[_Record]:
    with source.open("rb") as file:
        for _ in range(_MAX_RECORDS):
            line = file.readline(_MAX_HEADER)
            while line in {b"\r\n", b"\n"}:
                line = file.readline(_MAX_HEADER)
            if not line.startswith(b"WARC/"):
                return
            header = _header(file)
            length = header.get("content-length", "")
            if not length.isdecimal():
                return
            start = file.tell()
            end = start + int(length)
            if header.get("warc-type") in {"response", "resource"}:
                yield _record(file, header, end)
            file.seek(end)


def _record(file: BinaryIO, header: dict[str, str], end: int) -> _Record:
    address = header.get("warc-target-uri", "").strip("<>").replace("|", "%7C")
    status, media_type, codings = "", header.get("content-type", ""), ""
    if media_type.startswith("application/http"):
        status = file.readline(_MAX_HEADER).decode("latin-1").partition(" ")[2][:3]
        answer = _header(file)
        media_type = answer.get("content-type", "")
        codings = f"{answer.get('transfer-encoding', '')} {answer.get('content-encoding', '')}"
    start = file.tell()
    plain = media_type.partition(";")[0].strip()[:100].replace("|", "")
    return _Record(address[:2_000], status, plain, start, max(end - start, 0), codings.lower())


def _header(file: BinaryIO) -> dict[str, str]:
    """Return the fields up to an empty line, by their names in lower case."""
    fields: dict[str, str] = {}
    size = 0
    while (line := file.readline(_MAX_HEADER)) not in {b"", b"\r\n", b"\n"} and size < _MAX_HEADER:
        size += len(line)
        name, _, value = line.decode("utf-8", "replace").partition(":")
        fields.setdefault(name.strip().lower(), value.strip())
    return fields


def _decoded(data: bytes, codings: str) -> bytes:
    """Return content without its transfer and content codings (RFC 9112, 7.1; RFC 9110, 8.4)."""
    if "chunked" in codings:
        data = b"".join(_chunks(data))
    if "gzip" in codings or "deflate" in codings:
        with suppress(zlib.error):
            return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(data, _MAX_BODY)
    return data


def _chunks(data: bytes) -> Iterator[bytes]:
    at = 0
    while (end := data.find(b"\r\n", at)) >= 0:
        size = data[at:end].partition(b";")[0].strip()
        try:
            length = int(size, 16)
        except ValueError:
            length = -1
        if length < 0:  # not coded in chunks after all
            yield data[at:]
            return
        if not length:
            return
        yield data[end + 2 : end + 2 + length]
        at = end + 2 + length + 2
