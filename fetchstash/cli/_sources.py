"""Sources of a command: resolve each, fetch missing ones, report failures."""

import os
import re
import stat
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from fetchstash.cli import _show
from fetchstash.cli._progress import Meter
from fetchstash.cli._run import View, aside, failed, say, with_every_stash, with_stash
from fetchstash.cli._terminal import safe_line, screen_of
from fetchstash.cli._words import age, as_command, short_ref
from fetchstash.config import Settings
from fetchstash.errors import (
    BadArgument,
    Busy,
    Call,
    ExpiredRef,
    FetchstashError,
    StoreError,
    TooLarge,
    UnknownRef,
)
from fetchstash.store import ALL_RUNS, project_of
from fetchstash.text import counted

if TYPE_CHECKING:
    from fetchstash.cli._progress import Download
    from fetchstash.stash import Artifact, Stash
    from fetchstash.store import ArtifactStore, Facts

Kind = Literal["newest", "prefix", "url", "file"]
T = TypeVar("T")

_NEWEST = re.compile(r"@([1-9][0-9]{0,5})")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_BARE_PREFIX = re.compile(r"[a-z2-7]{4,26}")
_HOST = re.compile(
    r"(?:(?P<local>localhost|\d+(?:\.\d+){3}|\[[0-9A-Fa-f:.]+\]|[\w-]+(?=:))"
    r"|(?:[\w-]+\.)+[^\W\d][\w-]+)\.?(?::\d{1,5})?(?:[/?#]\S*)?"
)
# No top-level domain is called like these, so such a name without a file is a slip.
_EXTENSIONS = re.compile(
    r"[^/]+\.(?:csv|docx?|epub|eml|gif|html?|ipynb|jpe?g|json|jsonl|log|odt|ods|parquet|pdf|png|"
    r"pptx?|rtf|sqlite|tsv|txt|webp|xlsx?|xml|ya?ml)"
)
# Files seldom are called like these, and notes.md is no site to whoever has a file of that name.
_SITE = re.compile(r"\.(?:com|org|net|edu|gov|io|dev|app|info|ai)\Z")
_COPY_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Source:
    """The resolution of one word of the command line.

    ``value`` is a number for "newest", the beginning of a reference for "prefix", else the URL or
    the path. ``hint`` says what else the word may have meant ("": nothing).
    """

    word: str
    kind: Kind
    value: str
    hint: str = ""


def is_plain_source(word: str) -> bool:
    """Return whether a word can only be a source: @1, art_…, or a URL with its scheme."""
    return bool(_NEWEST.fullmatch(word)) or word.startswith(("art_", "http://", "https://"))


def is_folder(word: str) -> bool:
    """Return whether a word names a folder that is here, and can be no site."""
    return os.path.isdir(os.path.expanduser(word)) and not _HOST.fullmatch(word)  # noqa: PTH111, PTH112 - any text


def with_sources(
    settings: Settings,
    words: Sequence[str],
    work: "Callable[[Stash, Sequence[Source]], Awaitable[T]]",
) -> T:
    """Open a Stash and run a function with the sources that the words name.

    What comes out of a pipe is in a file meanwhile. It is read outside of any event loop, so that
    Ctrl-C ends it. Raises BadArgument for a word that names nothing, and TooLarge.
    """
    if words.count("-") > 1:
        raise BadArgument("stdin is named twice.", "Give - once.")
    with tempfile.TemporaryDirectory(prefix="fetchstash-") as folder:
        limit = settings.fetch.max_decoded_bytes
        named = [_source(word, Path(folder, str(n)), limit) for n, word in enumerate(words)]
        return with_stash(settings, lambda stash: work(stash, named))


def _source(word: str, folder: Path, max_bytes: int) -> Source:
    if word == "-":
        if screen_of("stdin").is_terminal:
            sys.stderr.write("Reading what you type; Ctrl-D ends it.\n")
        spooled = _spooled(sys.stdin.fileno(), folder / "stdin", max_bytes)
        if not spooled.stat().st_size:
            say("Nothing came in: stdin is empty.")
        return Source(word, "file", str(spooled))
    if number := _NEWEST.fullmatch(word):
        return Source(word, "newest", number[1])
    if word.startswith("art_"):
        return Source(word, "prefix", word.removeprefix("art_"))
    if _SCHEME.match(word):
        return Source(word, "url", word)
    url = ""
    if host := _HOST.fullmatch(word):
        # https, as browsers do; http for an address, localhost, and a name of this network.
        url = f"http://{word}" if host["local"] else f"https://{word}"
    path = Path(word).expanduser()
    mode = 0
    with suppress(OSError, ValueError):
        mode = path.stat().st_mode
    if mode and (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):  # <(command), /dev/stdin
        descriptor = os.open(path, os.O_RDONLY)
        try:
            return Source(word, "file", str(_spooled(descriptor, folder / path.name, max_bytes)))
        finally:
            os.close(descriptor)
    if mode and not stat.S_ISDIR(mode):
        is_site = bool(_SITE.search(word.lower()))
        also = f"{word} is a file here; {url} is the site." if url and is_site else ""
        return Source(word, "file", str(path), also)
    if word and stat.S_ISDIR(mode) and not url:
        raise BadArgument(f"{word} is a folder.", "Name the files in it.")
    if word.startswith((".", "/", "~", os.sep)) or _EXTENSIONS.fullmatch(word.lower()):
        raise BadArgument(f"There is no file {word}.", "Give the path of one.")
    if url:
        return Source(word, "url", url, f"There is no file {word}; it was taken for a site.")
    if _BARE_PREFIX.fullmatch(word):
        return Source(word, "prefix", word)
    raise BadArgument(
        f"{word!r} is no URL, no file and no reference.", "{} lists what is kept.", Call("list")
    )


def _spooled(descriptor: int, path: Path, max_bytes: int) -> Path:
    """Copy a stream to a file. Raises TooLarge."""
    path.parent.mkdir(exist_ok=True)
    size = 0
    with path.open("wb") as file:
        while data := os.read(descriptor, _COPY_BYTES):
            size += len(data)
            if size > max_bytes:
                what = f"What comes in has more than {max_bytes:,} bytes."
                allow = Call("setting", {"name": "fetch.max_decoded_bytes", "value": 2**30})
                raise TooLarge(what, "Give less, or allow more: {}.", allow)
            file.write(data)
    return path


_REF_CHARS = 26
_PAGE = 1_000
_CANDIDATES = 4
_AT_ONCE = 8
_NOTED_SECONDS = 60
"""A kept copy that is older is said to be one."""


async def kept(stash: "Stash", source: Source) -> "Facts":
    """Return the facts of a kept artifact. Raises UnknownRef, ExpiredRef, BadArgument."""
    if source.kind == "newest":
        number = int(source.value)
        listing = await stash.list(limit=1, offset=number - 1)
        if listing.facts:
            facts = listing.facts[0]
            aside(f"{source.word} is {short_ref(facts.artifact_ref)}, {facts.name or facts.word}.")
            return facts
        if not listing.total and (error := await elsewhere(stash)):
            what = f"There is no @{number}: {error.what[:1].lower()}{error.what[1:]}"
            raise UnknownRef(what, error.next_step, *error.calls)
        oldest = f"@{listing.total} is the oldest" if listing.total else "nothing is kept yet"
        raise UnknownRef(f"There is no @{number}: {oldest}.", "{} lists them.", Call("list"))
    if source.kind == "prefix":
        return await _by_prefix(stash, source)
    if source.kind == "file":
        raise BadArgument(f"{source.word} is a file.", "Name what {} lists.", Call("list"))
    return await stash.store.get(source.value)


async def elsewhere(stash: "Stash") -> UnknownRef | None:
    """Return the line for an empty run where other runs have artifacts, else None."""
    run = stash.settings.store.run
    runs = await stash.store.runs()
    count = sum(other.artifacts for other in runs if other.name != run)
    if not count or count < sum(other.artifacts for other in runs):
        return None
    folder = project_of(run)
    here = f"this folder, {folder}" if folder else f"the run {run!r}"
    what = f"Nothing is kept for {here}; for others {counted(count, 'artifact')}."
    return UnknownRef(what, "{} lists all.", Call("list", {"all_runs": True}))


async def say_where(stash: "Stash") -> None:
    """Say that this folder has no artifacts, and where others are; in a pipe only if any are."""
    if error := await elsewhere(stash):
        say(f"{error.what} {error.advice(as_command)}")
    else:
        aside("Nothing is kept yet.")


async def _by_prefix(stash: "Stash", source: Source) -> "Facts":
    """Return the facts of the one artifact whose reference has this prefix."""
    from fetchstash.store import open_store  # noqa: PLC0415 - heavy

    if len(source.value) >= _REF_CHARS:
        return await stash.store.get(f"art_{source.value}")

    async def matching(store: "ArtifactStore") -> "list[Facts]":
        matches: list[Facts] = []
        offset, beginning = 0, f"art_{source.value}"
        while page := (await store.list(limit=_PAGE, offset=offset)).facts:
            matches += [facts for facts in page if facts.artifact_ref.startswith(beginning)]
            offset += _PAGE
        return matches

    matches = await matching(stash.store)
    if not matches:  # a reference works in every run
        everywhere = await open_store(replace(stash.settings.store, run=ALL_RUNS))
        try:
            matches = await matching(everywhere)
        finally:
            await everywhere.aclose()
    if len(matches) == 1:
        return matches[0]
    if not matches:
        what = f"No file is called {source.word}, and no reference begins so."
        raise UnknownRef(what, "{} lists what is kept.", Call("list"))
    some = ", ".join(facts.artifact_ref for facts in matches[:_CANDIDATES])
    what = f"{len(matches)} references begin with {source.word}: {some}."
    raise BadArgument(what, "Give more of one.")


async def fetched(
    stash: "Stash",
    source: Source,
    *,
    focus: str = "",
    max_chars: int | None = None,
    refresh: bool = False,
    progress: "Download | None" = None,
) -> "Artifact":
    """Return the artifact of a source: a URL is asked for, unless its copy is still fresh."""
    shown: dict[str, Any] = {"focus": focus, "max_chars": max_chars}
    reading = progress.read if progress else None
    if source.kind == "file":
        return await stash.add_file(source.value, **shown, reading=reading)
    url = source.value
    if source.kind != "url":
        facts = await kept(stash, source)
        if not refresh:
            return await stash.get(facts.artifact_ref)
        url = facts.source_url
        if not url or "***" in url:  # a file, or a URL whose secrets were masked
            what = f"{short_ref(facts.artifact_ref)} does not know its whole address any more."
            raise BadArgument(what, "Give the URL or the file.")
    return await stash.fetch(url, refresh=refresh, progress=progress, reading=reading, **shown)


async def each(
    sources: Sequence[Source], work: Callable[[Source], Awaitable[T]]
) -> list[T | FetchstashError]:
    """Return what ``work`` makes of each source, or why it failed, in their order."""
    import anyio  # noqa: PLC0415 - heavy

    results: dict[int, T | FetchstashError] = {}
    limiter = anyio.CapacityLimiter(_AT_ONCE)

    async def run(position: int, source: Source) -> None:
        async with limiter:
            try:
                results[position] = await work(source)
            except FetchstashError as error:
                results[position] = error

    async with anyio.create_task_group() as tasks:
        for position, source in enumerate(sources):
            tasks.start_soon(run, position, source)
    return [results[position] for position in range(len(sources))]


def read_each(
    view: View, words: Sequence[str], show: "Callable[[Stash, Source, Facts], Awaitable[None]]"
) -> int:
    """Find each source, fetched where it is not kept, and show it; return the exit code.

    The code is the highest of all. For a model the error of a lone source is raised.
    """

    async def work(stash: "Stash", named: Sequence[Source]) -> int:
        results = await found(stash, named, refresh=view.refresh)
        return await _do_each(stash, named, results, show, view)

    return with_sources(view.settings, words, work)


def kept_each(
    settings: Settings, words: Sequence[str], do: "Callable[[Stash, Facts], Awaitable[None]]"
) -> int:
    """Do one thing with each artifact that is kept already, by any tenant; return the exit code."""
    limit = settings.fetch.max_decoded_bytes

    async def work(stashes: "Sequence[Stash]") -> int:
        # All are looked up first: what @2 names must not change while @1 is deleted.
        results = await each(named, lambda source: _kept_in(stashes, source))
        codes: list[int] = []
        for source, result in zip(named, results, strict=True):
            try:
                if isinstance(result, FetchstashError):
                    raise result
                await do(*result)
            except FetchstashError as error:
                codes.append(report(named, source, error))
        return max(codes, default=0)

    with tempfile.TemporaryDirectory(prefix="fetchstash-") as folder:
        named = [_source(word, Path(folder, str(n)), limit) for n, word in enumerate(words)]
        return with_every_stash(settings, work)


async def _kept_in(stashes: "Sequence[Stash]", source: Source) -> "tuple[Stash, Facts]":
    """Return an artifact and the store that keeps it, numbers as ``ls`` shows them.

    Raises what ``kept`` does, and BadArgument for what several tenants keep.
    """
    if len(stashes) == 1:
        return stashes[0], await kept(stashes[0], source)
    before = 0
    matches: list[tuple[Stash, Facts]] = []
    failures: list[FetchstashError] = []
    for stash in stashes:
        here = source
        if source.kind == "newest":
            total = (await stash.store.list(limit=1)).total
            before, number = before + total, int(source.value) - before
            if not 1 <= number <= total:
                continue
            here = replace(source, value=str(number))
        try:
            matches.append((stash, await kept(stash, here)))
        except (ExpiredRef, UnknownRef) as error:
            failures.append(error)
    if len(matches) > 1:
        whose = ", ".join(stash.settings.store.tenant or "no tenant" for stash, _ in matches)
        raise BadArgument(f"{source.word} is kept by several: {whose}.", "Add --tenant TENANT.")
    if matches:
        return matches[0]
    if failures:
        raise next((e for e in failures if isinstance(e, ExpiredRef)), failures[0])
    oldest = f"@{before} is the oldest" if before else "nothing is kept yet"
    raise UnknownRef(f"There is no {source.word}: {oldest}.", "{} lists them.", Call("list"))


async def _do_each(
    stash: "Stash",
    named: Sequence[Source],
    results: "Sequence[Facts | FetchstashError]",
    do: "Callable[[Stash, Source, Facts], Awaitable[None]]",
    view: View,
) -> int:
    codes: list[int] = []
    for source, result in zip(named, results, strict=True):
        try:
            if isinstance(result, FetchstashError):
                raise result
            await do(stash, source, result)
        except FetchstashError as error:
            if view.model and len(named) == 1:
                raise
            codes.append(report(named, source, error, as_json=view.as_json))
    return max(codes, default=0)


async def found(
    stash: "Stash", named: Sequence[Source], *, refresh: bool = False
) -> "list[Facts | FetchstashError]":
    """Return the facts of each source, or why there are none.

    A URL that is kept is not asked for again, and a copy of an earlier time is said to be one.
    """
    notes: list[str] = []
    with Meter("Looking", give_up=stash.settings.fetch.deadline_seconds) as meter:

        async def find(source: Source) -> "Facts":
            with meter.download(source.word, local=source.kind != "url") as progress:
                if source.kind in ("newest", "prefix") and not refresh:
                    return await kept(stash, source)
                facts = None
                if source.kind == "url" and not refresh:
                    facts = await stash.intake.known(source.value)
                if facts:
                    with suppress(Busy, StoreError):  # it can be read all the same
                        facts = await stash.store.touch(facts.artifact_ref)  # @1 from now on
                if facts is None:
                    artifact = await fetched(stash, source, refresh=refresh, progress=progress)
                    return artifact.facts
            made = facts.validated_at or facts.created_at
            if made and (datetime.now(UTC) - made).total_seconds() > _NOTED_SECONDS:
                copy = f"{source.word}: the copy of {age(made)} ago"
                notes.append(f"{copy}; --refresh asks the server again.")
            return facts

        results = await each(named, find)
    for source in named:
        if source.hint and source.kind == "file":
            say(source.hint)
    for note in notes:
        say(note)
    return results


def report(
    named: Sequence[Source], source: Source, error: FetchstashError, *, as_json: bool = False
) -> int:
    """Print why a source failed, and return the exit code."""
    from fetchstash.fetch import mask_url  # noqa: PLC0415 - heavy

    about, of = source.word if len(named) > 1 else "", safe_line(mask_url(source.word))
    code = failed(error, about, of=of, as_json=as_json)
    if source.hint and source.kind == "url":
        say(source.hint)
    return code


async def warn(stash: "Stash", facts: "Facts") -> None:
    """Print the warnings about a document or its text."""
    for line in (*_show.conditions(facts), *_show.unread(await stash.scans.unread(facts))):
        say(f"{short_ref(facts.artifact_ref)}: {line}")
