"""Documents of a store with their handlers; files of this machine."""

import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

import anyio.to_thread

from fetchstash import handlers
from fetchstash.config import Settings
from fetchstash.errors import BadArgument, Call, FetchstashError, OutOfRange, Refused, TooLarge
from fetchstash.handlers import Extractor, PartRequest, PartText, Render
from fetchstash.stash._changes import compared, printed
from fetchstash.stash._facts import Excerpt, decision_of, described, fits, hints_of
from fetchstash.stash._fragments import Named, lines_named, section_named
from fetchstash.stash._values import Picture, passages_body
from fetchstash.store import (
    ArtifactStore,
    Facts,
    GrepQuery,
    Passage,
    TextReader,
    count_matches,
)
from fetchstash.text import largest
from fetchstash.text.ranges import Preview, Unit

COPY_BYTES = 2**20


def hashed(path: Path) -> tuple[str, int]:
    """Return the SHA-256 and the size of a file. Blocking."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()


def copy_in(path: Path, within: Sequence[str | Path] | None, copy: Path, max_bytes: int) -> None:
    """Copy a file to ``copy``, a new file of the caller's.

    The file is opened once, and what was opened is checked: where it really is must lie in one of
    the folders ``within`` (None: anywhere), however names change meanwhile. Raises Refused for a
    file outside of them, whether there is one or not, and then for a hard link to another user's
    file; TooLarge over ``max_bytes``; BadArgument for a file that is missing or unreadable.
    """
    missing = BadArgument(f"There is no file {path}.", "Give the path of an existing one.")
    roots = None if within is None else [Path(root).expanduser().resolve() for root in within]
    try:
        real = path.expanduser().resolve()
    except (OSError, RuntimeError, ValueError):  # a ring of links or an unknown user; a NUL
        raise missing from None
    _check_place(path, real, roots)
    try:
        # The last name is no link any more; opening a pipe must not wait for its writer.
        descriptor = os.open(real, _OPEN_FLAGS)
    except PermissionError as error:
        raise _unreadable(path, error) from None
    except OSError:
        raise missing from None
    try:
        source = os.fdopen(descriptor, "rb")
    except IsADirectoryError:
        os.close(descriptor)
        raise BadArgument(f"{path} is a folder.", "Give the path of a file in it.") from None
    with source:
        _check_place(path, _place_of(source, real), roots)
        _check_file(path, os.fstat(source.fileno()), max_bytes, anywhere=roots is None)
        _copy(path, source, copy, max_bytes)


# Not every system has all of them.
_OPEN_FLAGS = sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
)


def _place_of(file: BinaryIO, path: Path) -> Path:
    """Return the current path of an open file, as the system reports it where it can."""
    if sys.platform == "linux":
        return Path(f"/proc/self/fd/{file.fileno()}").readlink()
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415 - POSIX alone has it

        name = fcntl.fcntl(file.fileno(), fcntl.F_GETPATH, bytes(1_024))
        return Path(os.fsdecode(name.rstrip(b"\0")))
    # Windows lets nobody rename a file that is open, so its path still leads to it.
    return path.resolve()


def _check_place(path: Path, real: Path, roots: Sequence[Path] | None) -> None:
    if roots is not None and not any(real.is_relative_to(root) for root in roots):
        allow = Call("setting", {"name": "ingest.read_roots", "value": [str(path.parent)]})
        raise Refused(f"{path} is in no folder that may be read.", "{}.", allow)


def _check_file(path: Path, status: os.stat_result, max_bytes: int, *, anywhere: bool) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise BadArgument(f"{path} is no regular file.", "Give the path of a file.")
    # A hard link has no place of its own: it may name a file that lies outside of the folders.
    if not anywhere and os.name != "nt" and status.st_nlink > 1 and status.st_uid != os.geteuid():
        what = f"{path} is a hard link to a file of another user."
        raise Refused(what, "Copy it, and give the path of the copy.")
    if status.st_size > max_bytes:
        raise _too_large(path, max_bytes)


def _copy(path: Path, source: BinaryIO, copy: Path, max_bytes: int) -> None:
    """Copy a file's bytes, at most ``max_bytes`` however it grows."""
    size = 0
    try:
        with copy.open("wb") as file:
            while data := source.read(COPY_BYTES):
                size += len(data)
                if size > max_bytes:
                    raise _too_large(path, max_bytes)
                file.write(data)
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> BadArgument:
    what = f"{path} cannot be read: {error.strerror}."
    return BadArgument(what, "Change its permissions, or give another.")


def _too_large(path: Path, max_bytes: int) -> TooLarge:
    what = f"{path} has more than the {max_bytes:,} bytes that one document may have."
    return TooLarge(what, "Give a part of it, or allow more: {}.", Call("setting", _MAX_BYTES))


_MAX_BYTES = {"name": "fetch.max_decoded_bytes", "value": 2**30}


@contextmanager
def replacing(target: Path) -> Generator[BinaryIO]:
    """Yield a file that replaces ``target`` at the end, if no error occurred.

    A link stays, and what it leads to is replaced; a file keeps its permissions; a device or a pipe
    is written to as it is. Raises BadArgument where it cannot be written.
    """
    name = ""
    try:
        target = target.resolve()
        mode = _mode_for(target)
        if not stat.S_ISREG(mode):
            with target.open("wb") as file:
                yield file
            return
        fd, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}-")
        with os.fdopen(fd, "wb") as file:
            yield file
        Path(name).chmod(stat.S_IMODE(mode))
        Path(name).replace(target)
        name = ""
    except OSError as error:
        what = f"{target} cannot be written: {error.strerror}."
        raise BadArgument(what, "Give a path that can be written.") from None
    finally:
        if name:
            Path(name).unlink(missing_ok=True)


def _mode_for(target: Path) -> int:
    """Return the mode of a file that is there, or the one that a new file gets."""
    try:
        return target.stat().st_mode
    except FileNotFoundError:
        mask = os.umask(0o077)  # there is no other way to read it
        os.umask(mask)
        return stat.S_IFREG | (0o666 & ~mask)


def copy_out(source: Path, target: Path) -> None:
    """Copy a file to ``target``. Raises BadArgument where that cannot be written."""
    with replacing(target) as copy, source.open("rb") as file:
        shutil.copyfileobj(file, copy)


_NO_SECTION = re.compile(r"top$|[/!]", re.IGNORECASE)
"""Fragments of no section: the top (HTML Standard, 7.4.6.4) and a state of scripts."""
FOCUS_PASSAGES = 8
_AS_GOOD = 0.7
"""Of the score of the best passage: a document with less is left to a line of its own."""
PASSAGE_CHARS = 700
"""The length of a passage, which is the least that a document with an answer shows."""
ROOM_FOR_A_BODY = 400
"""Where several URLs share a result, a share under this holds a reference line and no body."""
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
        async with aclosing(await self.store.open_text(ref)) as reader:
            yield reader

    async def count_left_out(self, facts: Facts, query: GrepQuery) -> int:
        """Return the number of matching lines that the text of a web page leaves out.

        What is too long to be kept beside the text the handler reads out of the page again. Where
        it cannot, the count is 0.
        """
        if not facts.left_out_chars:
            return 0
        with suppress(FetchstashError):
            if facts.extracted_chars is not None:
                async with self.text(facts.artifact_ref) as reader:
                    kept = reader.ranges.left_out
                if kept:
                    return await anyio.to_thread.run_sync(count_matches, kept, query)
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
            try:
                return await self.extractor.part(decision_of(facts), request)
            except FetchstashError as error:
                error.source = facts.final_url or facts.source_url or facts.name
                raise

    async def changes(self, facts: Facts, other: str = "") -> PartText:
        """Return the changes since the earlier text, or since the artifact ``other``.

        Raises OutOfRange where there is no earlier one, and NoText.
        """
        if not (other or facts.earlier_ref):
            part = Call("slice", {"ref": facts.artifact_ref, "path": "changes/art_…"})
            what = f"There is no earlier text of {facts.artifact_ref}."
            raise OutOfRange(what, "{} compares it with another artifact.", part)
        earlier = await self.store.get(other or facts.earlier_ref)
        kept = earlier.validated_at or earlier.created_at
        named = f"{earlier.artifact_ref}, kept {kept:%Y-%m-%dT%H:%M:%SZ}"
        text = await compared(self.store, earlier, facts, partial(printed, named))
        return PartText(text, text.count("\n"))

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
        """Read the excerpt from which one document's preview is cut."""
        return (await self.excerpts([facts], focus, limit))[facts.artifact_ref]

    async def excerpts(
        self, documents: Sequence[Facts], focus: str, limit: int
    ) -> dict[str, Excerpt]:
        """Read the excerpts from which several documents' previews are cut; they share ``limit``.

        Passages for a focus are ranked in all texts together. A document whose best one is much
        weaker than that of another is not worth a preview.
        """
        beginnings = {
            facts.artifact_ref: await self._beginning(facts, limit) for facts in documents
        }
        preview_chars = min(self.settings.views.preview_chars, limit)
        if not focus.strip():
            return beginnings
        if len(documents) == 1 and fits(
            beginnings[documents[0].artifact_ref],
            documents[0],
            self.settings.views,
            preview_chars,
        ):
            return beginnings
        most = FOCUS_PASSAGES * len(beginnings)
        ranked = await self.store.search(focus, list(beginnings), most)
        by_ref: dict[str, list[Passage]] = {}
        for passage in ranked.passages:
            by_ref.setdefault(passage.artifact_ref, []).append(passage)
        least = _AS_GOOD * max((passage.score for passage in ranked.passages), default=0)
        answering = [ref for ref, (best, *_) in by_ref.items() if best.score >= least]
        answering = answering[: max(limit // ROOM_FOR_A_BODY, 1)]
        bound = preview_chars
        if len(answering) > 1:
            bound = min(max(bound // len(answering), PASSAGE_CHARS), limit // len(answering))
        partly = bool(ranked.pending)
        found = {
            ref: replace(
                excerpt,
                passages_over=bound,
                unfocused=not answering,
                elsewhere=bool(answering),
                partly=partly,
            )
            for ref, excerpt in beginnings.items()
        }
        for place, ref in enumerate(answering, start=1):
            passages = by_ref[ref][:FOCUS_PASSAGES]
            body, shown = passages_body(passages, bound, self.settings.views.measure)
            found[ref] = replace(
                beginnings[ref],
                preview=Preview(body, lines_shown=body.count("\n") + 1 - shown),
                lines=(
                    max(passages[0].first_line - FOCUS_LINES, 1),
                    passages[0].last_line + FOCUS_LINES,
                ),
                ending="",
                passages_over=bound,
                place=place,
                partly=partly,
            )
        return found

    async def _beginning(self, facts: Facts, limit: int) -> Excerpt:
        """Read the beginning of a text, and its handler's preview or its end."""
        async with self.text(facts.artifact_ref) as reader:
            text = await reader.read_chars(0, limit + 1)
            preview, ending = reader.ranges.preview, ""
            if described(facts).is_text and not preview.text:
                ending = await reader.read_chars(max(reader.chars - limit, 0), reader.chars)
            return Excerpt(limit, text, preview, ending)

    async def at_fragment(self, excerpt: Excerpt, facts: Facts, fragment: str) -> Excerpt:
        """Return an excerpt of what a URL's fragment names: a section, lines, a page, a time."""
        is_whole = fits(excerpt, facts, self.settings.views, excerpt.limit)
        async with self.text(facts.artifact_ref) as reader:
            if named := await lines_named(reader, facts, fragment):
                return excerpt if is_whole else await self._of_lines(excerpt, reader, named)
            fragment, _, quotation = fragment.partition(":~:")
            part = await self._part_named(facts, fragment)
            if part is None and (named := await section_named(reader, facts, fragment)):
                return excerpt if is_whole else await self._of_lines(excerpt, reader, named)
        if part is None:
            no_name = _NO_SECTION.match(fragment) and "/*" not in described(facts).paths
            return replace(excerpt, no_section=bool(quotation or (fragment and not no_name)))
        if is_whole or not part.text:
            return excerpt
        lines = part.text.count("\n")
        title = part.text.partition("\n")[0].lstrip("# ")
        starts = [heading.start for heading in facts.outline if heading.title == title]
        around = (starts[0], starts[0] + lines) if starts else None
        return replace(excerpt, preview=Preview(part.text, lines_shown=lines), lines=around)

    async def _part_named(self, facts: Facts, fragment: str) -> PartText | None:
        """Return the part that a fragment is the path of: an id of a page, a JSON Pointer."""
        paths = described(facts).paths
        if "/*" in paths and fragment.startswith("/"):
            path = unquote(fragment)  # RFC 6901, section 6
        elif "#*" in paths and fragment and not _NO_SECTION.match(fragment):
            path = f"#{fragment}"
        else:
            return None
        with suppress(FetchstashError):
            part = await self.part(facts, path=path, unit="chars")
            return part if isinstance(part, PartText) else None
        return None

    async def _of_lines(self, excerpt: Excerpt, reader: TextReader, named: Named) -> Excerpt:
        """Return an excerpt of these lines, with their numbers."""
        views = self.settings.views
        bound = min(views.preview_chars, excerpt.limit)
        lines = named.first, named.last
        start, end = [await reader.char_of_line(line) for line in (lines[0], lines[1] + 1)]
        if named.quoted is not None:  # what is quoted is shown, however long the lines before it
            start, end = max(start, named.quoted - bound), min(end, named.quoted + bound)
            first = await reader.line_of_char(start)
            text = await reader.read_chars(start, end)
            hit = named.quoted - start
            passage = Passage(reader.ref, first, named.last, text, 0.0, hit=hit)
            body, _ = passages_body([passage], bound, views.measure)
        else:
            text = await reader.read_chars(start, min(end, start + bound))

            def body_of(length: int) -> str:
                passage = Passage(reader.ref, *lines, text[:length], 0.0)
                return passages_body([passage], None)[0]

            body = body_of(largest(len(text), lambda n: views.measure(body_of(n)) <= bound))
        return replace(excerpt, preview=Preview(body, lines_shown=body.count("\n")), lines=lines)

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
