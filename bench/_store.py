"""What the benchmarks of the store measure on: one large text, or very many artifacts."""

import hashlib
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fetchstash.store import Facts, _rows
from fetchstash.store._blobs import Blob, Kind
from fetchstash.store._catalog import transaction
from fetchstash.store._contract import new_ref
from fetchstash.store._limits import DEFAULT_RUN
from fetchstash.store._place import Place
from fetchstash.store._text import StrideIndex
from fetchstash.text.ranges import Ranges

WORDS = (
    "system", "time", "value", "data", "user", "request", "server", "result", "memory", "order",
    "page", "1984", "42", "naïve", "well-known", "12-34", "2026-x", "数据",
)  # fmt: skip
TITLES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa")
NEEDLE = "the quarterly needle of 2026-11-21 is aaaa\n"


def write_text(path: Path, megabytes: int, *, longest: int = 30, needles: float = 0) -> None:
    """Write numbered blocks of lines of 1 to ``longest`` words, and a needle after some of them."""
    chance = random.Random(1)
    block = ""
    while len(block) < 2**20:
        block += " ".join(chance.choices(WORDS, k=chance.randint(1, longest))) + "\n"
        if chance.random() < needles:
            block += NEEDLE
    encoded = block.encode()[: 2**20].rsplit(b"\n", 1)[0] + b"\n"
    with path.open("wb") as file:
        for number in range(megabytes):
            file.write(b"block %d\n" % number + encoded)


def fill(folder: Path, count: int) -> list[str]:
    """Write ``count`` artifacts of some 500 bytes into a new store; return their references."""
    place = Place(folder)
    now = datetime.now(UTC)
    refs: list[str] = []
    with place.catalog.locked() as db, transaction(db):
        for n in range(count):
            line = f"{TITLES[n % 10]} {TITLES[n // 10 % 10]} number {n}\n"
            blobs = [
                _blob(place, "raw", f"<p>{line}</p>".encode()),
                _blob(place, "text", (line * 16).encode()),
            ]
            facts = Facts(artifact_ref=new_ref(), content_kind="html", media_type="text/html")
            expires = now + timedelta(days=7)
            facts = replace(facts, word="HTML page", created_at=now, expires_at=expires)
            record = _rows.new_record(DEFAULT_RUN, facts, Ranges(), None, blobs)
            for blob in blobs:
                _rows.insert_blob(db, blob)
            _rows.insert(db, record)
            place.sidecars.write(record)
            refs.append(facts.artifact_ref)
    place.catalog.close()
    place.close()
    return refs


def _blob(place: Place, kind: Kind, data: bytes) -> Blob:
    sha256 = hashlib.sha256(data).hexdigest()
    path = place.blobs.path(kind, sha256)
    path.write_bytes(data)
    index = StrideIndex.of(data) if kind == "text" else None
    return Blob(kind, sha256, len(data), path.stat().st_mtime_ns, index)
