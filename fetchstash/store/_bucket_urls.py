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

from fetchstash.store._bucket import Bucket
from fetchstash.store._bucket_record import KEYS, URLS
from fetchstash.store._contract import REF_PREFIX

KNOWN_SECONDS = 60
_LATEST = 10**16
"""Microseconds since 1970 of the year 2286. What is left until then puts the newest key first."""


class UrlHashes:
    """The entries under ``urls``."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._keys: list[bytes] = []
        self._known_until = 0.0

    def add(self, url: str, ref: str, created_at: float) -> None:
        """Write that a URL was put as an artifact."""
        left = _LATEST - int(created_at * 1e6)
        self._bucket.write(f"{self._folders(url)[0]}/{left:016}-{ref}", b"")

    def refs(self, url: str) -> Iterator[str]:
        """Go through the artifacts of a URL, newest first. Some may be gone."""
        items = [item.key for folder in self._folders(url) for item in self._bucket.list(folder)]
        for key in sorted(items, key=lambda key: key.rpartition("/")[2]):
            _, _, ref = key.rpartition("-")
            if ref.startswith(REF_PREFIX):
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
