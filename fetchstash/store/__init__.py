"""Artifacts, kept and read back. Knows disks; knows no network and no format."""

from fetchstash.store._contract import (
    REF_PREFIX,
    ArtifactStore,
    Facts,
    GrepQuery,
    Line,
    Listing,
    Matches,
    Passage,
    Removed,
    StoreLimits,
    TextReader,
)
from fetchstash.store._local import LocalStore, open_store

__all__ = [
    "REF_PREFIX",
    "ArtifactStore",
    "Facts",
    "GrepQuery",
    "Line",
    "Listing",
    "LocalStore",
    "Matches",
    "Passage",
    "Removed",
    "StoreLimits",
    "TextReader",
    "open_store",
]
