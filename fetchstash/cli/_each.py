"""Do one thing with each of several sources, and say of each that failed why."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from fetchstash.cli import _show
from fetchstash.cli._locate import each, kept, located
from fetchstash.cli._meter import Meter
from fetchstash.cli._run import failed, say, with_stash
from fetchstash.cli._sources import Source, sources
from fetchstash.cli._terminal import safe_line
from fetchstash.cli._words import short_ref
from fetchstash.errors import FetchstashError

if TYPE_CHECKING:
    from fetchstash.config import Settings
    from fetchstash.stash import Stash
    from fetchstash.store import Facts


def read_each(
    settings: "Settings",
    named: Sequence[Source],
    show: "Callable[[Stash, Source, Facts], Awaitable[None]]",
    *,
    refresh: bool = False,
    model: bool = False,
    as_json: bool = False,
) -> int | None:
    """Find each source, fetched where it is not kept, and show it; return the exit code.

    The code is the highest of all. With ``model`` the error of a lone source is raised.
    """

    async def work(stash: "Stash") -> int | None:
        codes: list[int] = []
        for source, result in zip(
            named, await found(stash, settings, named, refresh=refresh), strict=True
        ):
            try:
                if isinstance(result, FetchstashError):
                    raise result
                await show(stash, source, result)
            except FetchstashError as error:
                if model and len(named) == 1:
                    raise
                codes.append(report(named, source, error, as_json=as_json))
        return max(codes, default=0)

    return with_stash(settings, work)


def kept_each(
    settings: "Settings",
    words: Sequence[str],
    work: "Callable[[Stash, Facts], Awaitable[None]]",
) -> int:
    """Do one thing with each artifact that is kept already; return the exit code."""

    async def do(stash: "Stash") -> int:
        # All are looked up first: what @2 names must not change while @1 is deleted.
        codes: list[int] = []
        for source, result in zip(
            named, await each(named, lambda source: kept(stash, source)), strict=True
        ):
            try:
                if isinstance(result, FetchstashError):
                    raise result
                await work(stash, result)
            except FetchstashError as error:
                codes.append(report(named, source, error))
        return max(codes, default=0)

    with sources(words, settings) as named:
        return with_stash(settings, do)


async def found(
    stash: "Stash", settings: "Settings", named: Sequence[Source], *, refresh: bool = False
) -> "list[Facts | FetchstashError]":
    """Return the facts of each source, or why there are none."""
    notes: list[str] = []
    with Meter("Looking", give_up=settings.fetch.deadline_seconds) as meter:

        async def find(source: Source) -> "Facts":
            with meter.download(source.word, local=source.kind != "url") as progress:
                return await located(
                    stash, source, notes.append, refresh=refresh, progress=progress
                )

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
    """Say why a source failed, and return the exit code."""
    from fetchstash.fetch import mask_url  # noqa: PLC0415 - heavy

    about, of = source.word if len(named) > 1 else "", safe_line(mask_url(source.word))
    code = failed(error, about, of=of, as_json=as_json)
    if source.hint and source.kind == "url":
        say(source.hint)
    return code


def warn(stash: "Stash", facts: "Facts") -> None:
    """Say what is wrong with a document or its text."""
    for line in (*_show.conditions(facts), *_show.unread(stash.scans.unread(facts))):
        say(f"{short_ref(facts.artifact_ref)}: {line}")
