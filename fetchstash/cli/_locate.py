"""From what a person names to the artifact: kept already, fetched, or copied in."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from fetchstash.cli._run import aside, say
from fetchstash.cli._sources import Source
from fetchstash.cli._words import age, as_command, short_ref
from fetchstash.errors import BadArgument, Call, FetchstashError, UnknownRef

if TYPE_CHECKING:
    from fetchstash.cli._meter import Download
    from fetchstash.stash import Artifact, Stash
    from fetchstash.store import ArtifactStore, Facts

T = TypeVar("T")

_REF_CHARS = 26
_PAGE = 1_000
_CANDIDATES = 4
_AT_ONCE = 8
_NOTED_SECONDS = 60
"""A kept copy that is older is said to be one."""


async def kept(stash: "Stash", source: Source) -> "Facts":
    """Return the facts of what is kept already. Raises UnknownRef, ExpiredRef, BadArgument."""
    if source.kind == "newest":
        number = int(source.value)
        listing = await stash.list(limit=1, offset=number - 1)
        if listing.facts:
            return listing.facts[0]
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
    """Return the line for a run that is empty while others are not, else None."""
    from fetchstash.store import project_of  # noqa: PLC0415 - heavy

    run = stash.settings.store.run
    runs = await stash.store.runs()
    count = sum(other.artifacts for other in runs if other.name != run)
    if not count or count < sum(other.artifacts for other in runs):
        return None
    folder = project_of(run)
    here = f"this folder, {folder}" if folder else f"the run {run!r}"
    others = f"{count:,} artifact{'s are' if count > 1 else ' is'} kept for others"
    what = f"Nothing is kept for {here}; {others}."
    return UnknownRef(what, "{} lists all.", Call("list", {"all_runs": True}))


async def say_where(stash: "Stash") -> None:
    """Say that nothing is kept here, and what holds all; in a pipe only where there is any."""
    if error := await elsewhere(stash):
        say(f"{error.what} {error.advice(as_command)}")
    else:
        aside("Nothing is kept yet.")


async def _by_prefix(stash: "Stash", source: Source) -> "Facts":
    """Return the facts of the one artifact whose reference begins so."""
    from fetchstash.store import ALL_RUNS, open_store  # noqa: PLC0415 - heavy

    if len(source.value) >= _REF_CHARS:
        return await stash.store.get(f"art_{source.value}")
    matches = await _beginning_with(stash.store, source.value)
    if not matches:  # a reference works in every run
        everywhere = await open_store(replace(stash.settings.store, run=ALL_RUNS))
        try:
            matches = await _beginning_with(everywhere, source.value)
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


async def _beginning_with(store: "ArtifactStore", beginning: str) -> "list[Facts]":
    matches: list[Facts] = []
    offset = 0
    while page := (await store.list(limit=_PAGE, offset=offset)).facts:
        matches += [facts for facts in page if facts.artifact_ref.startswith(f"art_{beginning}")]
        offset += _PAGE
    return matches


async def located(
    stash: "Stash",
    source: Source,
    note: Callable[[str], None],
    *,
    refresh: bool = False,
    progress: "Download | None" = None,
) -> "Facts":
    """Return the facts of what is to be read: a URL that is kept is not asked for again.

    ``note`` is told when the copy is from an earlier time.
    """
    if source.kind == "file" or refresh:
        return (await fetched(stash, source, refresh=refresh, progress=progress)).facts
    if source.kind != "url":
        return await kept(stash, source)
    try:
        facts = await stash.store.get(source.value)
    except FetchstashError:
        return (await fetched(stash, source, progress=progress)).facts
    made = facts.validated_at or facts.created_at
    if made and (datetime.now(UTC) - made).total_seconds() > _NOTED_SECONDS:
        note(f"{source.word}: the copy of {age(made)} ago; --refresh asks the server again.")
    return facts


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
