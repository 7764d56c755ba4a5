"""Look-up by URL in a bucket: only keyed hashes of URLs are there (RFC 2104).

Two replicas may make a key at the same moment, and there is no compare-and-swap to stop them. So
every key counts: an artifact is put under the smallest key and looked up under all. A process that
does not know of a smaller key yet finds less, for KNOWN_SECONDS at most: it fetches a document once
more than it must, and nothing is lost.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterator

from fetchstash.store._bucket import URLS, Bucket
from fetchstash.store._bucket_record import KEYS
from fetchstash.store._limits import ALL_RUNS

KNOWN_SECONDS = 60
_LATEST = 10**16
"""Microseconds since 1970 of the year 2286. What is left until then puts the newest key first."""


class UrlEntries:
    """The entries under ``urls``."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._keys: list[bytes] = []
        self._known_until = 0.0

    def add(self, url: str, run: str, ref: str, created_at: float) -> str:
        """Write that a URL was put as an artifact of a run, and return the key of the entry."""
        left = _LATEST - int(created_at * 1e6)
        key = f"{self._folders(url)[0]}/{left:016}-{_run_hash(run)}-{ref}"
        self._bucket.write(key, b"")
        return key

    def refs(self, url: str, run: str) -> Iterator[str]:
        """Go through a run's artifacts of a URL, newest first. Some may be gone."""
        keys = [item.key for folder in self._folders(url) for item in self._bucket.list(folder)]
        for name in sorted(key.rpartition("/")[2] for key in keys):
            _, run_hash, ref = name.split("-", 2)
            if run == ALL_RUNS or run_hash == _run_hash(run):
                yield ref

    def _folders(self, url: str) -> list[str]:
        data = url.encode("utf-8", "surrogatepass")
        hashes = [hmac.new(key, data, hashlib.sha256).hexdigest() for key in self._all_keys()]
        return [f"{URLS}/{digest}" for digest in hashes]

    def _all_keys(self) -> list[bytes]:
        """Return the keys, the smallest first; the first one is made."""
        if time.monotonic() >= self._known_until:
            keys = self._listed()
            if not keys:
                self._bucket.write(f"{KEYS}/{secrets.token_hex(16)}", secrets.token_bytes(32))
                keys = self._listed()
            self._keys, self._known_until = keys, time.monotonic() + KNOWN_SECONDS
        return self._keys

    def _listed(self) -> list[bytes]:
        keys = [self._bucket.read(item.key) for item in self._bucket.list(KEYS)]
        return [key for key in keys if key]


def _run_hash(run: str) -> str:
    return hashlib.sha256(run.encode("utf-8", "surrogatepass")).hexdigest()[:12]
