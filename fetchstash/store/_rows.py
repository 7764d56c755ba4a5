"""The rows of the catalogue: one function for each query, inside the caller's transaction."""

import hashlib
import hmac
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, TypeVar

from fetchstash.errors import Call, ExpiredRef, StoreError, UnknownRef
from fetchstash.store._blobs import KINDS, Blob, Kind
from fetchstash.store._clock import read_now
from fetchstash.store._contract import Facts, is_ref
from fetchstash.store._disk import REPAIR, not_stored
from fetchstash.store._limits import ALL_RUNS, DEFAULT_RUN, REF_PREFIX, View
from fetchstash.store._schema import Db
from fetchstash.store._text import StrideIndex
from fetchstash.text import clip
from fetchstash.text.hygiene import clean_line
from fetchstash.text.ranges import Ranges
from fetchstash.text.urls import key_of

T = TypeVar("T")

MAX_EXPIRED = 100_000
"""References of removed artifacts that are remembered, as "expired" is not "unknown"."""

_SELECT = (
    "SELECT id, ref, raw, text, pinned, created_at, expires_at, facts, size, modified_ns"
    " FROM artifact LEFT JOIN blob ON kind = 'text' AND sha256 = text"
)


@dataclass(frozen=True, slots=True)
class Row:
    """An artifact as the catalogue has it: its blobs, and its facts as JSON.

    ``size`` and ``modified_ns`` are of the file of its text.
    """

    id: int
    ref: str
    raw: str
    text: str | None
    pinned: int
    created_at: float
    expires_at: float
    data: str
    size: int | None
    modified_ns: int | None

    @property
    def seems_over(self) -> bool:
        """Whether its date has passed by this machine's clock, which may be wrong."""
        return not self.pinned and self.expires_at <= time.time()

    @property
    def text_blob(self) -> Blob | None:
        """The artifact's text, None if it has none. Raises StoreError if its record is lost."""
        if self.text is None:
            return None
        if self.size is None or self.modified_ns is None:
            raise _lost_record()
        return Blob("text", self.text, self.size, self.modified_ns)

    def facts(self, path: str | None = None) -> Facts:
        """Return the facts, with the path of a file. Raises StoreError where they are damaged."""
        own: dict[str, Any] = {
            "artifact_ref": self.ref,
            "path": path,
            "pinned": bool(self.pinned),
            "created_at": datetime.fromtimestamp(self.created_at, UTC),
            "expires_at": datetime.fromtimestamp(self.expires_at, UTC),
        }
        return _read(self.data, partial(Facts.from_json, **own), self.ref)


def find(db: Db, ref_or_url: str, view: View, *, expired: bool = False) -> Row:
    """Return the artifact of a reference, or the view's newest under a URL.

    One whose date has passed is found only by its reference and if ``expired``, until clean-up
    removes it. Raises UnknownRef or ExpiredRef.
    """
    ref_or_url = ref_or_url.strip()
    if not ref_or_url.startswith(REF_PREFIX):
        return _find_by_url(db, key_of(ref_or_url), view)
    if is_ref(ref_or_url):
        # What was kept before a tenant had persons opens for each of them by its reference.
        condition, names = in_run(view.refs, DEFAULT_RUN)
        query = f"{_SELECT} WHERE ref = ? AND {condition}"
        values = db.execute(query, (ref_or_url, *names)).fetchone()
        row = Row(*values) if values else None
        if row and (expired or not _is_over(db, row)):
            return row
        gone = "SELECT 1 FROM expired WHERE ref = ?"
        if row or db.execute(gone, (ref_or_url,)).fetchone():
            what = f"The artifact {ref_or_url} is no longer kept."
            raise ExpiredRef(what, "Fetch its document again.")
    what = f"There is no artifact {clip(clean_line(ref_or_url), 40)}."
    raise UnknownRef(what, "Check the reference, or list what there is with {}.", Call("list"))


def _find_by_url(db: Db, url: str, view: View) -> Row:
    condition, names = in_run(view.lists)
    hashes = [_hash(key, url) for key in url_keys(db)]
    named = f"url_hash IN ({', '.join('?' * len(hashes))}) AND {condition}"
    newest = f"{_SELECT} WHERE {named} {{}} ORDER BY id DESC LIMIT 1"
    values = db.execute(newest.format(""), (*hashes, *names)).fetchone()
    if values and _is_over(db, Row(*values)):  # an older one may be pinned
        current = newest.format(f"AND {CURRENT}")
        values = db.execute(current, (*hashes, *names, read_now(db))).fetchone()
    if not values:
        raise not_stored(url)
    return Row(*values)


def _is_over(db: Db, row: Row) -> bool:
    """Return whether the date of an artifact has passed by the store's clock, too."""
    return row.seems_over and row.expires_at <= read_now(db)


CURRENT = "(pinned = 1 OR expires_at > ?)"
"""The condition that an artifact has not expired at a time."""


def newest(db: Db, run: str, limit: int, offset: int, now: float) -> Iterator[Row]:
    """Go through a run's artifacts that have not expired, the last fetched first.

    A fetch that a kept copy answers counts; a read does not, or what @2 names would change each
    time that it is read.
    """
    condition, names = in_run(run)
    query = f"{_SELECT} WHERE {condition} AND {CURRENT} ORDER BY fetched DESC LIMIT ? OFFSET ?"
    page = db.execute(query, (*names, now, limit, offset))
    yield from (Row(*values) for values in page)


def kept(db: Db, run: str, now: float) -> tuple[int, int]:
    """Return how many artifacts of a run have not expired, pinned ones too, and their bytes."""
    condition, names = in_run(run)
    over = f"FROM artifact WHERE {condition} AND pinned = 0 AND expires_at <= ?"
    artifacts, size = db.execute(
        "SELECT coalesce(sum(artifacts), 0)"  # noqa: S608 - ours
        f" - (SELECT count(*) {over}), coalesce(sum(bytes), 0)"
        f" - (SELECT coalesce(sum(bytes), 0) {over}) FROM kept WHERE {condition}",
        (*names, now, *names, now, *names),
    ).fetchone()
    return int(artifacts), int(size)


def in_run(*runs: str) -> tuple[str, tuple[str, ...]]:
    """Return the condition that an artifact is of one of these runs, and its values."""
    if ALL_RUNS in runs:
        return "TRUE", ()
    return f"run IN ({', '.join('?' * len(runs))})", runs


def new_record(
    run: str, facts: Facts, ranges: Ranges, url_hash: bytes | None, blobs: Sequence[Blob]
) -> dict[str, Any]:
    """Return the row of a new artifact as ``record`` does. ``blobs`` are its raw bytes and text."""
    assert facts.created_at is not None
    assert facts.expires_at is not None
    return {
        "ref": facts.artifact_ref,
        "run": run,
        "url_hash": url_hash.hex() if url_hash else None,
        "raw": blobs[0].sha256,
        "text": blobs[1].sha256 if len(blobs) > 1 else None,
        "bytes": sum(blob.size for blob in blobs),
        "pinned": 0,
        "created_at": facts.created_at.timestamp(),
        "expires_at": facts.expires_at.timestamp(),
        "facts": _stored(facts),
        "ranges": ranges.to_json(),
    }


def insert(db: Db, record: dict[str, Any]) -> None:
    """Add an artifact, as the one that was used last."""
    url_hash = bytes.fromhex(record["url_hash"]) if record["url_hash"] else None
    written = {"facts": _dump(record["facts"]), "ranges": _dump(record["ranges"])}
    _insert(db, *(record | {"url_hash": url_hash} | written).values())


def _insert(db: Db, *values: object) -> None:
    db.execute(
        "INSERT INTO artifact (ref, run, url_hash, raw, text, bytes, pinned, created_at,"
        " expires_at, facts, ranges, used) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
        " (SELECT coalesce(max(used), 0) + 1 FROM artifact))",
        values,
    )


def insert_blob(db: Db, blob: Blob) -> None:
    """Record a blob, in place of an earlier record of it."""
    row = (blob.kind, blob.sha256, blob.size, blob.modified_ns, *_strides(blob))
    db.execute(
        "INSERT INTO blob VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, sha256) DO UPDATE SET"
        " size = excluded.size, modified_ns = excluded.modified_ns, chars = excluded.chars,"
        " lines = excluded.lines, strides = excluded.strides",
        row,
    )


def _strides(blob: Blob) -> tuple[int, int, bytes] | tuple[None, None, None]:
    index = blob.index
    return (index.chars, index.lines, index.pack()) if index else (None, None, None)


def blob(db: Db, kind: Kind, sha256: str) -> Blob:
    """Return a blob that an artifact names, without its index. Raises StoreError if it is lost."""
    values = db.execute(
        "SELECT size, modified_ns FROM blob WHERE kind = ? AND sha256 = ?", (kind, sha256)
    ).fetchone()
    if not values:
        raise _lost_record()
    return Blob(kind, sha256, *values)


def _lost_record() -> StoreError:
    return StoreError("The catalogue lacks the record of a file.", "{}.", REPAIR)


def blobs(db: Db, row: Row) -> list[Blob]:
    """Return the blobs of an artifact. Raises StoreError if the record of one is lost."""
    text = [blob(db, "text", row.text)] if row.text else []
    return [blob(db, "raw", row.raw), *text]


def index(db: Db, sha256: str) -> StrideIndex:
    """Return the index of a text whose blob has a record. Raises StoreError where it is damaged."""
    values = db.execute(
        "SELECT size, chars, lines, strides FROM blob WHERE kind = 'text' AND sha256 = ?", (sha256,)
    ).fetchone()
    try:
        return StrideIndex.unpack(*values)
    except (TypeError, ValueError) as error:
        raise StoreError("The catalogue's record of a text is damaged.", "{}.", REPAIR) from error


def is_recorded(db: Db, blob: Blob) -> bool:
    """Return whether the record of a blob is right. The time of its file may differ."""
    values = db.execute(
        "SELECT size, chars, lines, strides FROM blob WHERE kind = ? AND sha256 = ?",
        (blob.kind, blob.sha256),
    ).fetchone()
    return bool(values == (blob.size, *_strides(blob)))


def ranges(db: Db, row: Row) -> Ranges:
    """Return the recorded ranges of an artifact. Raises StoreError where they are damaged."""
    (data,) = db.execute("SELECT ranges FROM artifact WHERE id = ?", (row.id,)).fetchone()
    return _read(data, Ranges.from_json, row.ref)


def use(db: Db, ref: str) -> None:
    """Make an artifact the one that was used last."""
    db.execute(
        "UPDATE artifact SET used = (SELECT max(used) + 1 FROM artifact) WHERE ref = ?", (ref,)
    )


def fetch_again(db: Db, ref: str) -> None:
    """Make an artifact the one that was used and fetched last."""
    use(db, ref)
    db.execute("UPDATE artifact SET fetched = used WHERE ref = ?", (ref,))


def renew(db: Db, row: Row, facts: Facts, expires_at: float) -> Row:
    """Replace the caller's facts and the date until which the artifact is kept; return the row."""
    data = _dump(_stored(facts))
    changed = "UPDATE artifact SET facts = ?, expires_at = ? WHERE id = ?"
    db.execute(changed, (data, expires_at, row.id))
    return replace(row, data=data, expires_at=expires_at)


def replace_text(
    db: Db, row: Row, facts: Facts, ranges: Ranges, text: Blob
) -> list[tuple[Kind, str]]:
    """Set another text; return the blob of the earlier one if no artifact names it any more."""
    earlier = blob(db, "text", row.text).size if row.text else 0
    db.execute(
        "UPDATE artifact SET text = ?, bytes = bytes + ?, facts = ?, ranges = ? WHERE id = ?",
        (text.sha256, text.size - earlier, _dump(_stored(facts)), _dump(ranges.to_json()), row.id),
    )
    if not row.pinned:  # no trigger counts it
        db.execute("UPDATE total SET bytes = bytes + ?", (text.size - earlier,))
    _forget_words(db, row.text)
    if not row.text or naming(db, "text", row.text):
        return []
    db.execute("DELETE FROM blob WHERE kind = 'text' AND sha256 = ?", (row.text,))
    return [("text", row.text)]


def pin(db: Db, row: Row, *, pinned: bool) -> None:
    """Set or lift an artifact's pin."""
    db.execute("UPDATE artifact SET pinned = ? WHERE id = ?", (int(pinned), row.id))


def is_of(db: Db, ref: str, run: str) -> bool:
    """Return whether an artifact is of a run."""
    query = "SELECT 1 FROM artifact WHERE ref = ? AND run = ?"
    return db.execute(query, (ref, run)).fetchone() is not None


def refs(db: Db, run: str = ALL_RUNS, before: float = math.inf) -> list[str]:
    """Return the references of a run that were put before a time, in the order of their puts."""
    condition, names = in_run(run)
    which = f"{condition} AND created_at < ?"
    query = f"SELECT ref FROM artifact WHERE {which} ORDER BY id"  # noqa: S608 - ours
    return [ref for (ref,) in db.execute(query, (*names, before))]


def texts(db: Db, run: str, now: float) -> list[tuple[str, str, int]]:
    """Return the texts of a run, newest first: reference, SHA-256, size in bytes."""
    condition, names = in_run(run)
    joined = "artifact JOIN blob ON kind = 'text' AND sha256 = text"
    which = f"{condition} AND {CURRENT}"
    query = f"SELECT ref, text, size FROM {joined} WHERE {which} ORDER BY id DESC"  # noqa: S608 - ours
    return db.execute(query, (*names, now)).fetchall()


def run_state(db: Db, run: str, now: float) -> tuple[int, str]:
    """Return a value that changes when an artifact comes, goes or expires: count, and newest."""
    condition, names = in_run(run)
    query = f"SELECT ref FROM artifact WHERE {condition} ORDER BY id DESC LIMIT 1"  # noqa: S608 - ours
    (ref,) = db.execute(query, names).fetchone() or ("",)
    return kept(db, run, now)[0], ref


def runs(db: Db, run: str, now: float) -> list[tuple[str, int, float]]:
    """Return each run, or this one, with its count and the time of the newest, newest first."""
    condition, names = in_run(run)
    newest = "FROM artifact WHERE run = kept.run ORDER BY id DESC LIMIT 1"
    over = "FROM artifact WHERE run = kept.run AND pinned = 0 AND expires_at <= ?"
    query = (
        f"SELECT run, artifacts - (SELECT count(*) {over}), (SELECT created_at {newest})"  # noqa: S608 - ours
        f" FROM kept WHERE {condition} ORDER BY (SELECT id {newest}) DESC"
    )
    return [row for row in db.execute(query, (now, *names)).fetchall() if row[1]]


def forget(db: Db, ref: str, *, expired: bool) -> list[tuple[Kind, str]]:
    """Delete the row of an artifact, and return the blobs that no other artifact shares.

    ``expired``: remember that it was here.
    """
    deleted = db.execute(
        "DELETE FROM artifact WHERE ref = ? RETURNING raw, text", (ref,)
    ).fetchall()
    if expired and deleted:
        db.execute("INSERT INTO expired (ref) VALUES (?) ON CONFLICT DO NOTHING", (ref,))
        # By the number and not by count(*), which would go through them all at each removal.
        db.execute(
            "DELETE FROM expired WHERE id <= (SELECT max(id) FROM expired) - ?", (MAX_EXPIRED,)
        )
    blobs = [pair for row in deleted for pair in zip(KINDS, row, strict=True) if pair[1]]
    named = "SELECT 1 FROM artifact WHERE {} = ? LIMIT 1"  # one may be named by thousands
    unshared: list[tuple[Kind, str]] = [
        (kind, sha256)
        for kind, sha256 in blobs
        if not db.execute(named.format(kind), (sha256,)).fetchone()
    ]
    for blob in unshared:
        db.execute("DELETE FROM blob WHERE kind = ? AND sha256 = ?", blob)
    for row in deleted:
        _forget_words(db, row[1])
    return unshared


def _forget_words(db: Db, text: str | None) -> None:
    """Delete the words of a text for the runs of which no artifact has it any more.

    In a folder they are in search.db, which clean-up drops.
    """
    if text and db.dialect.is_shared:
        here = "SELECT 1 FROM artifact WHERE text = words.sha256 AND run = words.run"
        db.execute(f"DELETE FROM words WHERE sha256 = ? AND NOT EXISTS ({here})", (text,))  # noqa: S608


def known(db: Db) -> dict[tuple[Kind, str], str]:
    """Return all blobs that artifacts name, each with the reference of one that does."""
    rows = db.execute(
        "SELECT 'raw', raw, ref FROM artifact"
        " UNION ALL SELECT 'text', text, ref FROM artifact WHERE text IS NOT NULL"
    )
    return {(kind, sha256): ref for kind, sha256, ref in rows}


def damaged(db: Db) -> list[str]:
    """Return the references of the artifacts whose facts or ranges cannot be read."""
    refs: list[str] = []
    for row in (Row(*values) for values in db.execute(_SELECT)):
        try:
            row.facts()
            ranges(db, row)
        except StoreError:
            refs.append(row.ref)
    return refs


_RECORD = (
    "ref",
    "run",
    "url_hash",
    "raw",
    "text",
    "bytes",
    "pinned",
    "created_at",
    "expires_at",
    "facts",
    "ranges",
)


def record(db: Db, ref: str) -> dict[str, Any]:
    """Return the row of an artifact as JSON data."""
    select = f"SELECT {', '.join(_RECORD)} FROM artifact WHERE ref = ?"  # noqa: S608 - our names
    data = dict(zip(_RECORD, db.execute(select, (ref,)).fetchone(), strict=True))
    url_hash = data["url_hash"]
    return {
        **data,
        "url_hash": url_hash.hex() if url_hash else None,
        "facts": json.loads(data["facts"]),
        "ranges": json.loads(data["ranges"]),
    }


def restore(db: Db, data: dict[str, Any]) -> None:
    """Insert the row of an artifact from its record. Raises ValueError for what is no record."""
    try:
        facts, ranges = Facts.from_json(data["facts"]), Ranges.from_json(data["ranges"])
        url_hash = bytes.fromhex(data["url_hash"]) if data["url_hash"] else None
        times = float(data["created_at"]), float(data["expires_at"])
        names = str(data["ref"]), str(data["run"]), url_hash, str(data["raw"]), data["text"]
        size, pinned = int(data["bytes"]), int(bool(data["pinned"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(str(error)) from error
    db.execute("DELETE FROM artifact WHERE ref = ?", (data["ref"],))
    written = _dump(_stored(facts)), _dump(ranges.to_json())
    _insert(db, *names, size, pinned, *times, *written)


def url_keys(db: Db) -> list[bytes]:
    """Return the keys with which URLs are hashed: that of puts, and those of copied stores."""
    # No LIKE: psycopg takes % for a parameter.
    query = "SELECT value FROM setting WHERE name >= 'url_key' AND name < 'url_kez' ORDER BY name"
    return [bytes(key) for (key,) in db.execute(query).fetchall()]


def add_url_key(db: Db, key: bytes) -> None:
    """Keep the key of a store whose artifacts are copied into this one."""
    if key not in url_keys(db):
        name = f"url_key {hashlib.sha256(key).hexdigest()[:16]}"
        db.execute("INSERT INTO setting VALUES (?, ?) ON CONFLICT DO NOTHING", (name, key))


def set_url_key(db: Db, key: bytes) -> None:
    """Set the key with which URLs are hashed."""
    db.execute("UPDATE setting SET value = ? WHERE name = 'url_key'", (key,))


def naming(db: Db, kind: Kind, sha256: str) -> list[str]:
    """Return the references of the artifacts that name a blob."""
    query = f"SELECT ref FROM artifact WHERE {kind} = ?"  # noqa: S608 - raw or text
    return [ref for (ref,) in db.execute(query, (sha256,))]


def url_hash(db: Db, url: str) -> bytes:
    """Return the hash of all spellings of a URL. It is keyed: a secret in it could be guessed."""
    return _hash(url_keys(db)[0], key_of(url))


def _hash(key: bytes, url: str) -> bytes:
    return hmac.digest(key, url.encode("utf-8", "surrogatepass"), "sha256")


def _stored(facts: Facts) -> dict[str, Any]:
    """Return facts as JSON data, without those that have their default."""
    return {name: value for name, value in facts.to_json().items() if value != _defaults()[name]}


@cache
def _defaults() -> dict[str, Any]:
    return Facts().to_json()


def _dump(data: dict[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False)
    return text.encode("utf-8", "ignore").decode("utf-8")  # a lone surrogate goes no further


def _read(data: str, read: Callable[[dict[str, Any]], T], ref: str) -> T:
    try:
        return read(json.loads(data))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        what = f"The catalogue's record of the artifact {ref} is damaged."
        raise StoreError(what, "Fetch its document again, or {}.", REPAIR) from error
