"""A search over the texts of a run: by reading them, or by the index where they are many."""

import math
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fetchstash.errors import ExpiredRef, StoreError, UnknownRef
from fetchstash.store._contract import SearchResult
from fetchstash.store._index import OpenText, SearchIndex
from fetchstash.store._rank import Deadline, rank_texts
from fetchstash.store._text import StoredText

INDEX_BYTES, INDEX_TEXTS = 8 * 2**20, 1_000
"""A run with more text, or more texts, is searched by an index, any other by reading all of it."""

_TOO_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_INTERRUPT")
_LOST = (ExpiredRef, UnknownRef, StoreError)


@dataclass(frozen=True, slots=True)
class RunTexts:
    """The texts of a run in one state: the newest artifact of each by SHA-256, newest first."""

    state: tuple[int, str] = (0, "")
    refs: Mapping[str, str] = field(default_factory=dict[str, str])
    bytes: int = 0

    @property
    def are_many(self) -> bool:
        """Return whether an index is worth its while."""
        return self.bytes > INDEX_BYTES or len(self.refs) > INDEX_TEXTS


def search_run(
    index: SearchIndex,
    query: str,
    texts: RunTexts,
    open_text: OpenText,
    max_results: int,
    cancelled: Callable[[], bool],
) -> SearchResult:
    """Rank passages over the texts of a run.

    Few texts are read to their end, whatever the clock says: INDEX_BYTES bound the work.
    """
    if texts.are_many:
        try:
            return index.search(query, texts.refs, open_text, max_results, cancelled)
        except sqlite3.Error as error:  # no FTS5 here, or a damaged index
            if error.sqlite_errorname in _TOO_BUSY:
                return SearchResult((), len(texts.refs))
            index.drop()
        except _LOST:
            pass
    expired = Deadline(cancelled, None if texts.are_many else math.inf)
    return rank_texts(query, list(texts.refs.values()), _if_kept(open_text), max_results, expired)


def _if_kept(open_text: OpenText) -> Callable[[str], StoredText | None]:
    """Return what opens a text, or returns None for one that is gone by now or altered."""

    def opened(ref: str) -> StoredText | None:
        try:
            return open_text(ref)
        except _LOST:
            return None

    return opened
