"""Commands for whole documents: fetch, get."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fetchstash.cli import _show
from fetchstash.cli._grep import pieces
from fetchstash.cli._options import (
    Count,
    max_chars_flag,
    output_flag,
    raw_flag,
    refresh_flag,
    sources_argument,
)
from fetchstash.cli._progress import Meter
from fetchstash.cli._run import FAILED, View, aside, command, print_text, say, write
from fetchstash.cli._sources import Source, each, fetched, read_each, report, warn, with_sources
from fetchstash.cli._terminal import safe_line, screen_of
from fetchstash.cli._words import as_command, short_ref
from fetchstash.errors import BadArgument, Call, FetchstashError, NoText
from fetchstash.text import counted

if TYPE_CHECKING:
    from fetchstash.render import Value
    from fetchstash.stash import Artifact, Stash
    from fetchstash.store import Facts

F = TypeVar("F", bound=Callable[..., Any])

_PIECE_CHARS = 2**20
_STDOUT = Path("-")


def _flags(of: F) -> F:
    """Add the flags that fetch and get share."""
    return refresh_flag(output_flag(raw_flag(max_chars_flag()(of))))


@command("Fetch documents and show them", views=True)
@sources_argument()
@click.option("--focus", default="", metavar="WORDS", help="What the preview should show.")
@_flags
def fetch(
    view: View, words: Sequence[str], focus: str, output: Path | None, raw: bool
) -> int | None:
    """Fetch documents: a preview of a long one on a terminal, the whole text in a pipe."""
    _check_output(words, output, raw=raw)
    settings = view.settings
    whole = output or (view.max_chars is None and not screen_of().is_terminal)

    async def work(stash: "Stash", named: Sequence[Source]) -> int | None:
        with Meter("Fetching", give_up=settings.fetch.deadline_seconds) as meter:

            async def take(source: Source) -> "Artifact":
                with meter.download(source.word, local=source.kind != "url") as progress:
                    return await fetched(
                        stash,
                        source,
                        focus=focus,
                        max_chars=view.max_chars,
                        refresh=view.refresh,
                        progress=progress,
                    )

            results = await each(named, take)
        if view.model and not view.as_json:
            if len(results) == 1 and isinstance(results[0], FetchstashError):
                raise results[0]
            view.print_as_model(_value(named, results))
            return FAILED if any(isinstance(r, FetchstashError) for r in results) else None
        code: int | None = None
        for source, result in zip(named, results, strict=True):
            if isinstance(result, FetchstashError):
                code = max(code or 0, report(named, source, result, as_json=view.as_json))
                continue
            if view.as_json:
                view.print_json(result)
                continue
            error = None if raw else await _show.no_text(stash, result.facts)
            if error is None:
                await warn(stash, result.facts)
            if raw or (whole and result.facts.extracted_chars is not None):
                await _write_out(stash, result.facts, output, raw=raw)
            else:
                _preview(view, result, error, first=source is named[0])
        return code

    return with_sources(settings, words, work)


def _check_output(words: Sequence[str], output: Path | None, *, raw: bool) -> None:
    """Raise click.UsageError if the output file cannot be written."""
    if output not in (None, _STDOUT) and len(words) > 1:
        raise click.UsageError("-o writes one document: name one source.")
    if raw and output in (None, _STDOUT) and screen_of().is_terminal:
        raise click.UsageError("Raw bytes may upset a terminal: add -o FILE, or use a pipe.")


def _value(named: Sequence[Source], results: "Sequence[Artifact | FetchstashError]") -> "Value":
    """Return the value to render: one artifact, or all results with failures in their places."""
    from fetchstash.fetch import mask_url  # noqa: PLC0415 - the rooms are heavy
    from fetchstash.stash import Failure  # noqa: PLC0415 - as above

    if len(results) == 1 and not isinstance(results[0], FetchstashError):
        return results[0]
    return tuple(
        Failure(safe_line(mask_url(source.word)), result)
        if isinstance(result, FetchstashError)
        else result
        for source, result in zip(named, results, strict=True)
    )


def _preview(view: View, artifact: "Artifact", no_text: NoText | None, *, first: bool) -> None:
    """Print a document's facts, its text if short, else a preview, and the next commands."""
    from fetchstash.stash import shown_of  # noqa: PLC0415 - heavy

    screen, facts = screen_of(), artifact.facts
    if screen.is_terminal:
        click.echo("\n" * (not first) + "\n".join(_show.heading(screen, facts)))
    if no_text:
        if screen.is_terminal:
            say(no_text.what)
            click.echo("\n".join(_show.next_steps(screen, no_text.calls)))
        else:
            say(f"{no_text.what} {no_text.advice(as_command)}")
        return
    assert facts.extracted_chars is not None  # it has a text
    views = view.settings.views
    limit = views.max_chars(view.max_chars, views.inline_threshold)
    shown = shown_of(artifact.excerpt, facts, views, view.settings.context, limit)
    if screen.is_terminal:
        click.echo()
    print_text(shown.body, wrap=_show.is_prose(facts))
    if shown.info and screen.is_terminal:
        if artifact.excerpt.unfocused:
            say("No passage has a word of the focus.")
        if artifact.excerpt.partly:
            say("Only the beginning of the text could be searched for the focus in time.")
        amount = f"A preview of {counted(facts.extracted_chars, 'character')}. Next:"
        click.echo("\n" + screen.style(amount, "dim"))
        steps = _show.next_steps(screen, _show.after_preview(artifact), pipe="less")
        click.echo("\n".join(steps))


async def _write_out(
    stash: "Stash", facts: "Facts", output: Path | None, *, raw: bool, offset: int = 0
) -> None:
    """Write the whole text, or the bytes, to a file or to stdout."""
    ref = facts.artifact_ref
    if output not in (None, _STDOUT):
        await stash.export(ref, output, raw=raw)
        aside(f"Wrote {short_ref(ref)} to {output}.")
        return
    if raw:
        async with stash.raw(ref) as path:
            with path.open("rb") as file:
                while data := file.read(_PIECE_CHARS):
                    write(data)
        return
    async for piece in pieces(stash, ref, offset, _PIECE_CHARS):
        print_text(piece)


@command("Print the whole text, or the bytes", views=True)
@sources_argument()
@click.option("--offset", type=Count(0), metavar="N", default=0, help="First character, from 0.")
@_flags
def get(view: View, words: Sequence[str], offset: int, output: Path | None, raw: bool) -> int:
    """Print the whole text of documents, or their bytes; a terminal gets the first 30,000."""
    _check_output(words, output, raw=raw)
    terminal, max_chars = screen_of().is_terminal and output is None, view.max_chars

    async def show(stash: "Stash", _: Source, facts: "Facts") -> None:
        ref, default = facts.artifact_ref, view.settings.views.default_max_chars
        if view.model or view.as_json:
            limit = view.settings.views.max_chars(max_chars, default) if view.model else max_chars
            view.printed(await stash.read(ref, offset, max_chars=limit))
            return
        if not raw and (error := await _show.no_text(stash, facts)):
            raise error
        await warn(stash, facts)
        if raw or not (terminal or max_chars):
            await _write_out(stash, facts, output, raw=raw, offset=offset)
            return
        part = await stash.read(ref, offset, max_chars=max_chars or default)
        print_text(part.text, wrap=_show.is_prose(facts))
        if part.next and terminal:
            calls = (Call("read", {"ref": ref}), part.next)
            click.echo("\n".join(_show.what_next(screen_of(), part, calls, pipe="less")))

    return read_each(view, words, show)


@command(
    "Fetch all pages of a site",
    views=True,
    shows=tuple(f"setting__ingest__site_{name}" for name in ("pages", "bytes", "seconds", "rate")),
)
@click.argument("url")
@max_chars_flag()
@refresh_flag
def site(view: View, url: str) -> int | None:
    """Fetch the pages below a URL, by sitemap, llms.txt or links, and print their index.

    A call that was cut goes on where it ended. grep and search --in take the index for its pages.
    """

    async def work(stash: "Stash", named: Sequence[Source]) -> int | None:
        (source,) = named
        if source.kind != "url":
            raise BadArgument(f"{source.word} is no URL.", "Give the address of a site.")
        with Meter("Fetching") as meter, meter.download(source.word) as progress:
            index = await stash.fetch_site(
                source.value, max_chars=view.max_chars, refresh=view.refresh, progress=progress.read
            )
        facts = index.facts
        if view.printed(index):
            return None
        if screen_of().is_terminal:
            _preview(view, index, None, first=True)
        else:
            await _write_out(stash, facts, None, raw=False)
        say(f"{short_ref(index.ref)}: {facts.structure_info}.")
        if facts.incomplete:
            again = as_command(Call("fetch_site", {"url": source.value}))
            say(f"{facts.incomplete}. {again} goes on.")
        return None

    return with_sources(view.settings, [url], work)


COMMANDS = (fetch, get, site)
