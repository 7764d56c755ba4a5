"""Artifacts, kept and read back. Knows disks; knows no network and no format."""

from fetchstash.store._contract import (
    REF_PREFIX,
    ArtifactStore,
    Facts,
    Finding,
    GrepQuery,
    Line,
    Listing,
    Matches,
    Passage,
    Removed,
    StoreLimits,
    TextReader,
)
from fetchstash.store._health import check_store, repair_store
from fetchstash.store._local import LocalStore, open_store

__all__ = [
    "REF_PREFIX",
    "ArtifactStore",
    "Facts",
    "Finding",
    "GrepQuery",
    "Line",
    "Listing",
    "LocalStore",
    "Matches",
    "Passage",
    "Removed",
    "StoreLimits",
    "TextReader",
    "check_store",
    "open_store",
    "repair_store",
]
