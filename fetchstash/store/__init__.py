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

__all__ = [
    "REF_PREFIX",
    "ArtifactStore",
    "Facts",
    "GrepQuery",
    "Line",
    "Listing",
    "Matches",
    "Passage",
    "Removed",
    "StoreLimits",
    "TextReader",
]
