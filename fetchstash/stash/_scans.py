"""Scans: pages without a text layer are read by OCR when they are asked for, each once.

What was read takes the place of the page in the artifact's text, so that slices, grep and search
see it from then on.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from pathlib import Path
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from fetchstash.config import Settings
from fetchstash.errors import Busy, Call, FetchstashError, NoText
from fetchstash.fetch import Progress
from fetchstash.handlers import PageReader, PageText, blank_page, ocr_page, ocr_text, unmapped_page
from fetchstash.stash._documents import Documents
from fetchstash.stash._facts import decision_of, described
from fetchstash.stash._values import Unread
from fetchstash.store import Facts
from fetchstash.system.processes import new_file
from fetchstash.text import tokens
from fetchstash.text.ranges import Heading, Ranges

_HEAD_CHARS = 200
_FEW = 10
"""One page of so many may be blank."""
_TRIES = 5
"""Of writing what was read, while other processes read pages of the same artifact."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Pages [first, last] to read, until ``deadline`` on the loop's clock.

    ``at_least`` so many are read to their end, whatever the clock says: on a busy machine a page
    may take longer than a call, and who asks again would never see it. Reading stops after
    ``enough`` characters too (None: never), unless the time seems to suffice for all the rest.
    """

    first: int
    last: int
    deadline: float
    enough: int | None = None
    at_least: int = 0


@dataclass(frozen=True, slots=True)
class Scans:
    """Reads pages by OCR. Without a ``reader`` it reports which extra is missing.

    ``reading`` has a lock for each artifact whose pages are read now.
    """

    settings: Settings
    documents: Documents
    reader: PageReader | None
    reading: WeakValueDictionary[str, anyio.Lock] = field(
        default_factory=WeakValueDictionary[str, anyio.Lock]
    )

    async def first_pages(
        self, facts: Facts, limit: int, deadline: float, progress: Progress | None
    ) -> Facts:
        """Read the pages that a fetch's result shows, as far as time allows."""
        if self.reader is None or is_image(facts) or not unread_pages(facts):
            return facts
        preview = self.settings.views.preview_chars
        last = self._pages(facts)
        if (facts.extracted_chars or 0) > limit:  # a preview is shown: pages behind it can wait
            async with self.documents.text(facts.artifact_ref) as text:
                last = sum(start < preview for start in text.ranges.pages)
        try:
            return await self._read(facts, _Wanted(1, last, deadline, preview), progress)
        except FetchstashError:
            return facts  # the facts are the result; asking for the page says why it has no text

    async def pages(
        self,
        facts: Facts,
        start: int | None,
        end: int | None,
        max_chars: int | None,
        deadline: float,
        progress: Progress | None,
    ) -> tuple[Facts, int | None]:
        """Read the pages of a slice; return the first page that time did not allow, if any.

        One is read at least. Raises what reading the first one raises.
        """
        if self.reader is None or not (unread_pages(facts) or facts.unreadable_pages):
            return facts, None
        first, last = max(start or 1, 1), min(end or self._pages(facts), self._pages(facts))
        if last < first:
            return facts, None
        wanted = _Wanted(first, last, deadline, max_chars, at_least=1)
        facts = await self._read(facts, wanted, progress)
        left = await self._without_text(facts, first, last)
        return facts, left[0] if left else None

    async def image(self, facts: Facts, deadline: float) -> Facts:
        """Read the text of an image. Raises NoText where it has none or it cannot be read."""
        if facts.extracted_chars is None and self.reader:
            facts = await self._read(facts, _Wanted(1, 1, deadline, at_least=1), None)
        if facts.extracted_chars is None:
            picture = Call("picture", {"ref": facts.artifact_ref})
            what = "The text of this image was not read."
            raise NoText(what, f"{{}} shows it. {_MISSING}", picture)
        return facts

    async def refuse_scan(self, facts: Facts) -> None:
        """Raise NoText for a document whose pages are unread pictures."""
        if facts.extracted_chars is None and (unread := await self.unread(facts)):
            advice = f"{{}} shows one. {_MISSING}"
            if self.reader:
                advice = "{} reads them by OCR."
            what = f"The pages of {facts.artifact_ref} have no text layer."
            raise NoText(what, advice, unread.call)

    async def unread(self, facts: Facts) -> Unread | None:
        """Return how many pages have no text, and the call that shows or reads the first ones.

        A few such pages are no scan, and are not worth a line.
        """
        count, pages = unread_pages(facts), self._pages(facts)
        if not count or is_image(facts) or (facts.ocr_pages is None and count * _FEW < pages):
            return None
        first = next(iter(await self._without_text(facts, 1, pages, most=1)), 1)
        ref = facts.artifact_ref
        if self.reader is None:
            return Unread(count, Call("picture", {"ref": ref, "page": first}), is_readable=False)
        last = min(first + 3, pages)
        part = {"ref": ref, "unit": "pages", "start": first, "end": last}
        return Unread(count, Call("slice", part), is_readable=True)

    def _pages(self, facts: Facts) -> int:
        """Return how many pages have a place in the text."""
        return min(facts.pages or 1, self.settings.extract.pdf_max_pages)

    async def _read(self, facts: Facts, wanted: _Wanted, progress: Progress | None) -> Facts:
        """Read pages and keep them, also those that were read before an error or the deadline."""
        assert self.reader is not None
        ref = facts.artifact_ref
        async with self.reading.setdefault(ref, anyio.Lock()):
            facts = await self.documents.store.get(ref)
            pages = await self._without_text(facts, wanted.first, wanted.last)
            texts: dict[int, str] = {}
            try:
                await self._read_pages(facts, pages, wanted, texts, progress)
            except FetchstashError:
                if not texts:
                    raise
            finally:
                with anyio.CancelScope(shield=True):
                    facts = await self._keep(facts, texts) if texts else facts
        return facts

    async def _read_pages(
        self,
        facts: Facts,
        pages: Sequence[int],
        wanted: _Wanted,
        texts: dict[int, str],
        progress: Progress | None,
    ) -> None:
        assert self.reader is not None
        slowest, chars = 0.0, 0
        async with self.documents.store.open_raw(facts.artifact_ref) as raw:
            for done, page in enumerate(pages):
                began = anyio.current_time()
                left = wanted.deadline - began
                if done and slowest > left:
                    return
                is_enough = wanted.enough is not None and chars >= wanted.enough
                if is_enough and slowest * (len(pages) - done) > left:
                    return
                latest = math.inf if done < wanted.at_least else wanted.deadline
                read: PageText | None = None
                with anyio.move_on_at(latest):
                    read = await self.reader.read_page(decision_of(facts), raw, page)
                if read is None:
                    return
                if is_image(facts):
                    texts[page] = ocr_text(read.text, read.confidence)
                else:
                    texts[page] = ocr_page(page, read.text, read.confidence)
                chars += len(texts[page])
                slowest = max(slowest, anyio.current_time() - began)
                if progress:
                    progress(done + 1, len(pages))

    async def _without_text(
        self, facts: Facts, first: int, last: int, *, most: int | None = None
    ) -> list[int]:
        """Return which of these pages have no text, the first ``most`` of them."""
        if facts.extracted_chars is None:
            return list(range(first, last + 1))
        if not unread_pages(facts) and not facts.unreadable_pages:
            return []
        async with self.documents.text(facts.artifact_ref) as text:
            found: list[int] = []
            for number, start in enumerate(text.ranges.pages[first - 1 : last], start=first):
                if _unread_part(number, await text.read_chars(start, start + _HEAD_CHARS)):
                    found.append(number)
                if len(found) == most:
                    break
            return found

    async def _keep(self, facts: Facts, texts: Mapping[int, str]) -> Facts:
        """Put pages that were read into the text of the artifact."""
        for attempt in range(_TRIES):
            ranges, text = await self._text_of(facts)
            renewed, ranges, text = await anyio.to_thread.run_sync(
                self._with_pages, facts, ranges, text, texts
            )
            path = await anyio.to_thread.run_sync(_spooled, self.documents.store.spool, text)
            try:
                return await self.documents.store.replace_text(
                    facts.artifact_ref, path, renewed, ranges, known=facts
                )
            except Busy:
                if attempt == _TRIES - 1:
                    raise
            facts = await self.documents.store.get(facts.artifact_ref)
        raise AssertionError

    async def _text_of(self, facts: Facts) -> tuple[Ranges, str]:
        """Return the text with its ranges: of a scan that was not read yet, its blank pages."""
        if facts.extracted_chars is not None:
            async with self.documents.text(facts.artifact_ref) as reader:
                return reader.ranges, await reader.read_chars(0, reader.chars)
        if is_image(facts):
            return Ranges(), ""
        blanks = [blank_page(number) for number in range(1, self._pages(facts) + 1)]
        starts = accumulate(map(len, blanks[:-1]), initial=0)
        return Ranges(pages=tuple(starts)), "".join(blanks)

    def _with_pages(
        self, facts: Facts, ranges: Ranges, text: str, texts: Mapping[int, str]
    ) -> tuple[Facts, Ranges, str]:
        """Return text, ranges and facts with pages that were read in place of blank ones."""
        spliced = _spliced(ranges, text, texts)
        left = unread_pages(facts) - (spliced.count - spliced.unmapped)
        is_first = facts.extracted_chars is None
        facts = replace(
            facts,
            pages_without_text=max(left, 0),
            unreadable_pages=max(facts.unreadable_pages - spliced.unmapped, 0),
            ocr_pages=(facts.ocr_pages or 0) + spliced.count,
            outline=tuple(map(spliced.heading, facts.outline)),
            page_range=(1, len(spliced.ranges.pages)) if spliced.ranges.pages else None,
            text_tokens=tokens.estimate(spliced.text),
            text_tokens_exact=False,
            is_oversized=len(spliced.text) > self.settings.views.inline_threshold,
            extraction_error="" if is_first else facts.extraction_error,
            extraction_truncated=False if is_first else facts.extraction_truncated,
        )
        return facts, spliced.ranges, spliced.text


@dataclass(frozen=True, slots=True)
class _Spliced:
    """A text in which ``count`` pages were replaced; ``grown``: lines behind, lines more.

    ``unmapped`` of them had a text layer without a mapping to characters.
    """

    text: str
    ranges: Ranges
    count: int
    grown: tuple[tuple[int, int], ...]
    unmapped: int = 0

    def line(self, number: int) -> int:
        """Return where a line of the earlier text is now."""
        return number + sum(more for behind, more in self.grown if number > behind)

    def heading(self, heading: Heading) -> Heading:
        if heading.unit != "lines":
            return heading
        return replace(heading, start=self.line(heading.start))


def _spliced(ranges: Ranges, text: str, texts: Mapping[int, str]) -> _Spliced:
    """Replace blank pages of ``text`` by ``texts``. A text without pages is replaced whole."""
    if not ranges.pages:
        return _Spliced("".join(texts.values()), ranges, len(texts), ())
    pieces: list[str] = [text[: ranges.pages[0]]]
    starts: list[int] = []
    grown: list[tuple[int, int]] = []
    at, lines, count, unmapped = len(pieces[0]), pieces[0].count("\n"), 0, 0
    for number, (start, end) in enumerate(pairwise([*ranges.pages, len(text)]), start=1):
        piece = text[start:end]
        earlier = piece.count("\n")
        unread = _unread_part(number, piece) if number in texts else 0
        if unread:  # else somebody else read it meanwhile
            unmapped += unread == len(piece) and not piece.startswith(blank_page(number))
            piece = texts[number] + piece[unread:]
            grown.append((lines + earlier, piece.count("\n") - earlier))
            count += 1
        starts.append(at)
        pieces.append(piece)
        at, lines = at + len(piece), lines + earlier
    result = _Spliced("".join(pieces), ranges, count, tuple(grown), unmapped)
    tables = tuple(
        replace(table, first_line=result.line(table.first_line)) for table in ranges.tables
    )
    return replace(result, ranges=replace(ranges, pages=tuple(starts), tables=tables))


def _unread_part(number: int, page: str) -> int:
    """Return how many characters of a page OCR replaces, 0 if the page has a text."""
    blank = blank_page(number)
    if page.startswith(blank):
        return len(blank)
    return len(page) if page.startswith(unmapped_page(number)) else 0


def unread_pages(facts: Facts) -> int:
    """Return how many pages have no text layer and were not read."""
    if facts.pages_without_text is not None:
        return facts.pages_without_text
    if facts.extracted_chars is not None or not described(facts).pictures:
        return 0
    if is_image(facts):
        return 0 if facts.extraction_error else 1
    return facts.pages or 0


def is_image(facts: Facts) -> bool:
    """Return whether the document is one picture, not pages."""
    return described(facts).pictures and facts.width is not None and facts.pages is None


def _spooled(spool: Path, text: str) -> Path:
    """Write a text to a new file of the spool."""
    path = new_file(spool, "text-")
    path.write_bytes(text.encode())
    return path


_MISSING = "The operator can install fetchstash[ocr] to have it read."
