"""An artifact: its facts, and methods to read it."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fetchstash.config import Settings
from fetchstash.stash._facts import Excerpt, shown_of, tokens_of
from fetchstash.stash._values import CacheUse, Matches, Passages, Picture, Slice, Unread, summary
from fetchstash.store import Facts
from fetchstash.text.ranges import Heading, Unit
from fetchstash.text.tokens import TokenCount

if TYPE_CHECKING:
    from fetchstash.stash._stash import Stash


@dataclass(frozen=True, slots=True, repr=False)
class StoredDocument:
    """The facts of a fetched document or file.

    ``cache`` says that a stored copy answered; ``image`` is a fetched image as a picture;
    ``unread`` are pages without text; ``note`` says how the URL was understood, where that is not
    as it was written.
    """

    facts: Facts
    settings: Settings = field(compare=False)
    excerpt: Excerpt = field(default_factory=Excerpt)
    cache: CacheUse | None = None
    image: Picture | None = None
    unread: Unread | None = None
    note: str = ""

    def __str__(self) -> str:
        return summary(self.facts)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    @property
    def ref(self) -> str:
        """The reference, "art_…"."""
        return self.facts.artifact_ref

    @property
    def outline(self) -> Sequence[Heading]:
        """The headings, or a PDF's bookmarks."""
        return self.facts.outline

    @property
    def size(self) -> int:
        """The size of the document as it came, in bytes."""
        return self.facts.size_bytes

    @property
    def tokens(self) -> TokenCount:
        """The size of the whole text in o200k tokens."""
        return tokens_of(self.facts)

    @property
    def preview(self) -> str:
        """The text as a model would be shown it: whole if it fits, else a preview.

        "" where there is no text. ``fetchstash.as_shown`` adds the frame: facts, notices, a fence
        and the next calls.
        """
        if self.facts.extracted_chars is None:
            return ""
        views, previews = self.settings.views, self.settings.context
        return shown_of(self.excerpt, self.facts, views, previews, self.excerpt.limit).body


@dataclass(frozen=True, slots=True, repr=False)
class Artifact(StoredDocument):
    """A document in the store of ``stash``, and ways to read it.

    Every method may raise UnknownRef or ExpiredRef once the artifact is gone, and StoreError.
    """

    stash: "Stash" = field(kw_only=True, compare=False)

    async def text(self) -> str:
        """Return the whole text. Raises NoText where there is none."""
        return (await self.read()).text

    async def read(self, offset: int = 0, max_chars: int | None = None) -> Slice:
        """Return the text from character ``offset`` on. Raises NoText or OutOfRange."""
        return await self.stash.read(self.ref, offset, max_chars=max_chars)

    async def slice(
        self,
        *,
        path: str = "",
        unit: Unit = "lines",
        start: int | None = None,
        end: int | None = None,
        max_chars: int | None = None,
    ) -> Slice:
        """Return exactly a part of the text, or of the part that ``path`` points to.

        Lines, pages and rows count from 1, end included; chars and bytes from 0, end excluded.
        ``max_chars`` cuts at the last whole unit that fits. Raises NoText, OutOfRange or
        BadArgument.
        """
        return await self.stash.slice(
            self.ref, path=path, unit=unit, start=start, end=end, max_chars=max_chars
        )

    async def grep(
        self,
        pattern: str,
        *,
        literal: bool = False,
        ignore_case: bool = False,
        context: int = 2,
        max_matches: int = 30,
        offset: int = 0,
    ) -> Matches:
        """Return the lines that match, as ``Stash.grep`` does. Raises BadPattern or NoText."""
        return await self.stash.grep(
            pattern,
            [self.ref],
            literal=literal,
            ignore_case=ignore_case,
            context=context,
            max_matches=max_matches,
            offset=offset,
        )

    async def search(self, query: str, *, max_results: int = 8) -> Passages:
        """Return the passages that match the words of ``query`` best."""
        return await self.stash.search(query, [self.ref], max_results=max_results)

    async def picture(self, page: int | None = None, *, path: str = "") -> Picture:
        """Return page ``page`` (from 1), or an image, as a picture. Raises BadArgument, NoText."""
        return await self.stash.picture(self.ref, page, path=path)

    def raw(self) -> AbstractAsyncContextManager[Path]:
        """Yield a file with the document's own bytes, valid while the context is open."""
        return self.stash.raw(self.ref)
