"""The layout of a bucket, and the record of one artifact in it. Pure.

blobs/WEEK/SHA256        the bytes, raw or text, under the ISO week in which they were written
records/REF.json         facts, ranges, and where the bytes are: written last, and whole
records/REF.deleted      an empty object: this artifact was deleted, and must not come back
urls/HASH/TIME-RUN-REF     an empty object: this URL was put as that artifact
pinned/REF/record.json   the record of a pinned artifact, and its bytes beside it
keys/NAME                keys that hash URLs (_bucket_urls.py)
service/KEY              small values of a team's service (_objects.py)

Lifecycle rules remove what is under blobs, records and urls by its age (_lifecycle.py). Bytes are
shared within their week alone, and their rule is a week longer than that of records: so bytes never
go before a record that names them, without a lock or a count of names.
"""

import base64
import json
import re
import sys
import zlib
from array import array
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from typing import Any

from fetchstash.errors import StoreError
from fetchstash.store._bucket import BLOBS, RECORDS
from fetchstash.store._contract import REF_PREFIX, Facts
from fetchstash.store._text import StrideIndex
from fetchstash.text.ranges import Ranges

PINNED, KEYS = "pinned", "keys"
VERSION = 1
"""Of records. What is added to them later needs a default; only what changes needs a new one."""

_RECORD_SUFFIX = ".json"
_DAMAGE = (
    ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError,
    zlib.error,
)  # fmt: skip
_SHA256, _WEEK = re.compile("[0-9a-f]{64}"), re.compile(r"\d{4}-W\d\d")
_PINNED_RECORD = "record.json"


class UnreadableRecord(StoreError):
    """A record that is damaged, or that this version does not read."""


class NewerRecord(UnreadableRecord):
    """A record that a newer version wrote, which this one must leave as it is."""


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """Bytes in the bucket: their hash, size, the week under which they are, a text's index."""

    sha256: str
    size: int
    week: str
    index: StrideIndex | None = None

    @property
    def key(self) -> str:
        """The key of the bytes."""
        return f"{BLOBS}/{self.week}/{self.sha256}"

    def pinned_key(self, ref: str) -> str:
        """Return the key of the copy that a pinned artifact has."""
        return f"{PINNED}/{ref}/{self.sha256}"


@dataclass(frozen=True, slots=True)
class Record:
    """One artifact. Times are in seconds since 1970; ``url_entry`` is a key, "" without a URL."""

    ref: str
    run: str
    raw: StoredBlob
    text: StoredBlob | None
    created_at: float
    expires_at: float
    pinned: bool
    url_entry: str
    document: Facts
    ranges: Ranges

    @property
    def blobs(self) -> tuple[StoredBlob, ...]:
        """The raw bytes, and the text if there is one."""
        return (self.raw, self.text) if self.text else (self.raw,)

    @property
    def size(self) -> int:
        """The bytes of both."""
        return sum(blob.size for blob in self.blobs)

    def is_live(self, now: float) -> bool:
        """Return whether it is kept at ``now``."""
        return self.pinned or self.expires_at > now

    def facts(self) -> Facts:
        """Return the facts, the store's own filled in."""
        return filled_in(self.document, self.ref, self.created_at, self.expires_at, self.pinned)

    def pack(self) -> bytes:
        """Return the record as JSON."""
        data = {
            "version": VERSION,
            "run": self.run,
            "raw": _pack_blob(self.raw),
            "text": _pack_blob(self.text) if self.text else None,
            "created_at": self.created_at,
            "expires_at": self.expires_at,
            "pinned": self.pinned,
            "url_entry": self.url_entry,
            "facts": self.document.to_json(),
            "ranges": self.ranges.to_json(),
        }
        return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def unpack(cls, packed: bytes, ref: str) -> "Record":
        """Read what ``pack`` made. Raises NewerRecord, and UnreadableRecord on anything else."""
        try:
            data = json.loads(packed)
            _refuse_newer(data["version"], ref)
            record = cls(
                ref=ref,
                run=_words(data["run"]),
                raw=_unpack_blob(data["raw"]),
                text=_unpack_blob(data["text"]) if data["text"] else None,
                created_at=float(data["created_at"]),
                expires_at=float(data["expires_at"]),
                pinned=bool(data["pinned"]),
                url_entry=_words(data["url_entry"]),
                document=Facts.from_json(data["facts"]),
                ranges=Ranges.from_json(data["ranges"]),
            )
            record.facts()  # times that are no times would fail a whole list
        except _DAMAGE as error:
            what = f"The record of the artifact {ref} is damaged."
            raise UnreadableRecord(what, "Fetch its document again.") from error
        return record


def _refuse_newer(version: int, ref: str) -> None:
    if version > VERSION:
        what = f"The artifact {ref} was stored by a newer version of fetchstash."
        raise NewerRecord(what, "Upgrade this one.")


def filled_in(
    document: Facts, ref: str, created_at: float, expires_at: float, pinned: bool
) -> Facts:
    """Return facts with what the record says beside them. Times are in seconds since 1970."""
    return replace(
        document,
        artifact_ref=ref,
        pinned=pinned,
        created_at=datetime.fromtimestamp(created_at, UTC),
        expires_at=datetime.fromtimestamp(expires_at, UTC),
    )


def record_key(ref: str) -> str:
    """Return the key of the record of an artifact."""
    return f"{RECORDS}/{ref}{_RECORD_SUFFIX}"


def deleted_key(ref: str) -> str:
    """Return the key of what says that an artifact was deleted."""
    return f"{RECORDS}/{ref}.deleted"


def pinned_record_key(ref: str) -> str:
    """Return the key of the record of a pinned artifact."""
    return f"{PINNED}/{ref}/{_PINNED_RECORD}"


def ref_of_key(key: str) -> str | None:
    """Return the artifact whose record is under ``key``, None for any other object."""
    folder, _, name = key.partition("/")
    if folder == RECORDS:
        ref, suffix = name.removesuffix(_RECORD_SUFFIX), _RECORD_SUFFIX
    else:
        ref, suffix = name.removesuffix(f"/{_PINNED_RECORD}"), f"/{_PINNED_RECORD}"
    return ref if ref.startswith(REF_PREFIX) and f"{ref}{suffix}" == name else None


def week_of(now: float) -> str:
    """Return the ISO 8601 week of a time, such as 2026-W47."""
    year, week, _ = datetime.fromtimestamp(now, UTC).isocalendar()
    return f"{year}-W{week:02}"


def _pack_blob(blob: StoredBlob) -> dict[str, Any]:
    data: dict[str, Any] = {"sha256": blob.sha256, "size": blob.size, "week": blob.week}
    if blob.index:
        columns = (blob.index.chars_before, blob.index.feeds_before)
        strides = [_pack_column(column) for column in columns]
        data |= {"chars": blob.index.chars, "lines": blob.index.lines, "strides": strides}
    return data


def _unpack_blob(data: dict[str, Any]) -> StoredBlob:
    index = None
    if "strides" in data:
        columns = b"".join(_unpack_column(column).tobytes() for column in data["strides"])
        index = StrideIndex.unpack(data["size"], data["chars"], data["lines"], columns)
    sha256, size, week = data["sha256"], data["size"], data["week"]
    if not (_SHA256.fullmatch(sha256) and _WEEK.fullmatch(week)) or type(size) is not int:
        raise ValueError(sha256)
    return StoredBlob(sha256, size, week, index)


def _words(value: object) -> str:
    """Return a string of a record. Raises TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError
    return value


def _pack_column(column: "array[int]") -> str:
    """Return the steps between the counts, compressed: of 1 GB of plain text some 30 KB."""
    steps = array("I", (after - before for before, after in pairwise(column)))
    return base64.b64encode(zlib.compress(_little_endian(steps).tobytes())).decode()


def _unpack_column(packed: str) -> "array[int]":
    steps = array("I")
    steps.frombytes(zlib.decompress(base64.b64decode(packed)))
    return array("Q", accumulate(_little_endian(steps), initial=0))


def _little_endian(values: "array[int]") -> "array[int]":
    """Swap the bytes where this machine has the other order."""
    if sys.byteorder == "big":
        values.byteswap()
    return values
