"""Read stored documents: texts, excerpts, and the parts and pictures that their handlers make."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

import anyio.to_thread

from fetchstash import handlers
from fetchstash.config import Settings
from fetchstash.errors import BadArgument, Call, FetchstashError
from fetchstash.handlers import Extractor, PartRequest, PartText, Render
from fetchstash.stash._bodies import passages_body
from fetchstash.stash._excerpt import Excerpt
from fetchstash.stash._facts import decision_of, described, hints_of
from fetchstash.stash._values import Picture
from fetchstash.store import (
    ArtifactStore,
    Facts,
    GrepQuery,
    SearchResult,
    TextReader,
    count_matches,
)
from fetchstash.text.ranges import Preview, Unit

FOCUS_PASSAGES = 8
FOCUS_LINES = 20
"""Lines around the best passage that a preview suggests to read."""
PICTURES = "images/"
"""Begins the paths of a document's pictures; a web page answers with their addresses."""


@dataclass(frozen=True, slots=True)
class Documents:
    """The stored documents, opened for reading and handed to their handlers again."""

    settings: Settings
    store: ArtifactStore
    extractor: Extractor

    @asynccontextmanager
    async def opened(self, ref_or_url: str) -> AsyncGenerator[tuple[Facts, TextReader | None]]:
        """Open an artifact: its facts, and its text where it has one."""
        facts, reader = await self.store.open_artifact(ref_or_url)
        try:
            yield facts, reader
        finally:
            if reader:
                await reader.aclose()  # waits for nothing, so that nothing cancels it

    @asynccontextmanager
    async def text(self, ref: str) -> AsyncGenerator[TextReader]:
        """Open the text of an artifact. Raises NoText where there is none."""
        reader = await self.store.open_text(ref)
        try:
            yield reader
        finally:
            await reader.aclose()

    async def count_left_out(self, facts: Facts, query: GrepQuery) -> int:
        """Return the number of matching lines that the text of a web page leaves out.

        The handler reads them out of the page again: keeping them would be a third blob. Where it
        cannot, the count is 0.
        """
        if not facts.left_out_chars:
            return 0
        with suppress(FetchstashError):
            value = await self.part(facts, path="left_out", unit="chars")
            if not isinstance(value, handlers.Picture):
                return await anyio.to_thread.run_sync(count_matches, value.text, query)
        return 0

    async def part(
        self,
        facts: Facts,
        *,
        path: str = "",
        unit: Unit = "pages",
        start: int | None = None,
        end: int | None = None,
        render: Render = "text",
    ) -> PartText | handlers.Picture:
        async with self.store.open_raw(facts.artifact_ref) as raw:
            request = PartRequest(
                source=raw,
                path=path,
                unit=unit,
                start=start,
                end=end,
                render=render,
                hints=hints_of(facts),
            )
            return await self.extractor.part(decision_of(facts), request)

    async def image(self, facts: Facts) -> Picture | None:
        """Return an image as a picture; None if it cannot be shown as one."""
        if facts.extraction_error or not described(facts).pictures:
            return None
        try:
            shown = await self.picture(facts, None, "")
        except FetchstashError:
            return None  # the facts are the result; asking for the picture says why there is none
        return shown if isinstance(shown, Picture) else None

    async def excerpt(self, facts: Facts, focus: str, limit: int) -> Excerpt:
        """Read what a preview is cut from."""
        views = self.settings.views
        async with self.text(facts.artifact_ref) as reader:
            text = await reader.read_chars(0, limit + 1)
            if len(text) == reader.chars and views.measure(text) <= limit:
                return Excerpt(limit, text)
            ranked = SearchResult(())
            if focus.strip():
                ranked = await reader.rank(focus, FOCUS_PASSAGES)
            partly = bool(ranked.pending)
            if passages := ranked.passages:
                bound = min(views.preview_chars, limit)
                body, shown = passages_body(passages, bound, views.measure)
                preview = Preview(body, lines_shown=body.count("\n") + 1 - shown)
                first, last = passages[0].first_line, passages[0].last_line
                around = (max(first - FOCUS_LINES, 1), last + FOCUS_LINES)
                return Excerpt(limit, text, preview, lines=around, partly=partly)
            ending = ""
            if described(facts).is_text and not reader.ranges.preview.text:
                ending = await reader.read_chars(max(reader.chars - limit, 0), reader.chars)
            unfocused = bool(focus.strip())
            preview = reader.ranges.preview
            return Excerpt(limit, text, preview, ending, unfocused=unfocused, partly=partly)

    async def at_fragment(self, excerpt: Excerpt, facts: Facts, fragment: str) -> Excerpt:
        """Return an excerpt of the section that a URL's fragment names, if there is one."""
        if "#*" not in described(facts).paths:
            return excerpt
        try:
            value = await self.part(facts, path=f"#{fragment}", unit="chars")
        except FetchstashError:
            return excerpt
        if isinstance(value, handlers.Picture) or not value.text:
            return excerpt
        lines = value.text.count("\n")
        title = value.text.partition("\n")[0].lstrip("# ")
        starts = [heading.start for heading in facts.outline if heading.title == title]
        around = (starts[0], starts[0] + lines) if starts else None
        return replace(excerpt, preview=Preview(value.text, lines_shown=lines), lines=around)

    async def picture(self, facts: Facts, page: int | None, path: str) -> Picture | str:
        """Return a page, an image or a part as a picture; of one that is linked its address."""
        value = await self.part(facts, path=path, start=page, end=page, render="image")
        if isinstance(value, PartText) and path.startswith(PICTURES):
            # A worker that was taken over could name any address, with the page in it.
            async with self.store.open_raw(facts.artifact_ref) as raw:
                look = partial(handlers.is_picture, raw, facts.content_kind, facts.charset)
                if await anyio.to_thread.run_sync(look, facts.final_url, value.text):
                    return value.text
        if not isinstance(value, handlers.Picture):
            text = Call("slice", {"ref": facts.artifact_ref, "path": path or None})
            raise BadArgument("That part is no picture.", "Try {}.", text)
        shown_page = None if facts.pages is None or path else page or 1
        return Picture(facts, value.data, value.media_type, value.width, value.height, shown_page)
