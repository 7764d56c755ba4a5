"""Stash and Artifact, the library's front door: here fetch, handlers and store meet.

Methods return values; ``render`` makes of them what a model or a person is shown.
"""

from fetchstash.stash._artifact import Artifact, StoredDocument
from fetchstash.stash._documents import ROOM_FOR_A_BODY, replacing
from fetchstash.stash._facts import Excerpt, Shown, described, fits, shown_of, tokens_of
from fetchstash.stash._index import LINKS_BESIDE, parent_of
from fetchstash.stash._intake import NEXT
from fetchstash.stash._open import SyncArtifact, SyncStash, open_stash, open_stash_sync, with_parts
from fetchstash.stash._refs import whole_refs
from fetchstash.stash._stash import Stash, with_views
from fetchstash.stash._trace import Origin, ShownBy, Trace, lines_of, log_of, logged_calls
from fetchstash.stash._values import (
    ArtifactMatches,
    CacheUse,
    Deleted,
    Failure,
    Listing,
    Match,
    Matches,
    Passages,
    Picture,
    Slice,
    Unread,
    grep_body,
    passages_body,
)

__all__ = [
    "LINKS_BESIDE",
    "NEXT",
    "ROOM_FOR_A_BODY",
    "Artifact",
    "ArtifactMatches",
    "CacheUse",
    "Deleted",
    "Excerpt",
    "Failure",
    "Listing",
    "Match",
    "Matches",
    "Origin",
    "Passages",
    "Picture",
    "Shown",
    "ShownBy",
    "Slice",
    "Stash",
    "StoredDocument",
    "SyncArtifact",
    "SyncStash",
    "Trace",
    "Unread",
    "described",
    "fits",
    "grep_body",
    "lines_of",
    "log_of",
    "logged_calls",
    "open_stash",
    "open_stash_sync",
    "parent_of",
    "passages_body",
    "replacing",
    "shown_of",
    "tokens_of",
    "whole_refs",
    "with_parts",
    "with_views",
]
