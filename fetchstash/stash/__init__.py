"""Stash and Artifact, the library's front door: the one place where fetch, handlers and store meet.

Methods return values; ``render`` makes of them what a model or a person is shown.
"""

from fetchstash.stash._artifact import Artifact, StoredDocument
from fetchstash.stash._bodies import grep_body, passages_body
from fetchstash.stash._excerpt import Excerpt, Shown, shown_of
from fetchstash.stash._facts import described, tokens_of
from fetchstash.stash._files import replacing
from fetchstash.stash._open import open_stash
from fetchstash.stash._stash import Stash, with_views
from fetchstash.stash._sync import SyncArtifact, SyncStash, open_stash_sync
from fetchstash.stash._values import (
    ArtifactMatches,
    CacheUse,
    Failure,
    Listing,
    Match,
    Matches,
    Passages,
    Picture,
    Slice,
    Unread,
)

__all__ = [
    "Artifact",
    "ArtifactMatches",
    "CacheUse",
    "Excerpt",
    "Failure",
    "Listing",
    "Match",
    "Matches",
    "Passages",
    "Picture",
    "Shown",
    "Slice",
    "Stash",
    "StoredDocument",
    "SyncArtifact",
    "SyncStash",
    "Unread",
    "described",
    "grep_body",
    "open_stash",
    "open_stash_sync",
    "passages_body",
    "replacing",
    "shown_of",
    "tokens_of",
    "with_views",
]
