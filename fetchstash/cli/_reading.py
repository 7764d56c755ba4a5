"""Commands that read parts: slice, search, info."""

from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TextIO

import click

from fetchstash.cli import _show
from fetchstash.cli._options import (
    UNITS,
    Count,
    complete_sources,
    json_flag,
    max_chars_flag,
    model_max_chars_flag,
    refresh_flag,
)
from fetchstash.cli._progress import Meter
from fetchstash.cli._run import (
    NO_MATCH,
    View,
    aside,
    command,
    print_objects,
    print_text,
    say,
    with_stash,
)
from fetchstash.cli._sources import (
    Source,
    found,
    is_plain_source,
    read_each,
    report,
    say_where,
    with_sources,
)
from fetchstash.cli._terminal import screen_of
from fetchstash.cli._words import command_line
from fetchstash.config import Settings
from fetchstash.errors import COUNTS, FetchstashError
from fetchstash.text import counted

if TYPE_CHECKING:
    from fetchstash.stash import Picture, Stash
    from fetchstash.store import Facts

_INDEX_SECONDS = 20
"""So long ``search`` waits at most until all texts are indexed: a person asks once."""

_MAX_TRACED = 200_000
"""Characters of a text that are read; fewer are too many for a trace."""

_FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}


def _save_picture(picture: "Picture", target: Path) -> None:
    """Write a picture, converted where the name asks for it. Raises BadArgument."""
    from io import BytesIO  # noqa: PLC0415 - only where it is needed

    from PIL import Image  # noqa: PLC0415 - heavy

    from fetchstash.stash import replacing  # noqa: PLC0415 - heavy

    wanted = _FORMATS[target.suffix.lower()]
    data = picture.data
    if picture.media_type != f"image/{wanted.lower()}":
        written = BytesIO()
        with Image.open(BytesIO(data), formats=tuple(_FORMATS.values())) as image:
            flat = image if wanted != "JPEG" else image.convert("RGB")
            flat.save(written, wanted)
        data = written.getvalue()
    with replacing(target) as file:
        file.write(data)


@command(
    "Read lines, pages, rows, a sheet, a member …",
    name="slice",
    example="@1 --unit pages --start 3 --end 4",
    views=True,
)
@click.argument("word", metavar="SOURCE", shell_complete=complete_sources)
@click.option("--path", default="", help="Heading, sheet, member, JSON pointer, links …")
@click.option(
    "--unit", type=click.Choice(UNITS), metavar="UNIT", help=f"{', '.join(UNITS)} (default: lines)."
)
@click.option(
    "--start",
    type=Count(0),
    metavar="N",
    help="First line, page or row (from 1), char or byte (from 0).",
)
@click.option(
    "--end", type=Count(0), metavar="N", help="Last line, page or row; char or byte to end before."
)
@click.option(
    "--render",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write page --start, or an image, as a picture (.png, .jpg, .webp).",
)
@refresh_flag
@max_chars_flag()
def slice_(
    view: View,
    word: str,
    path: str,
    unit: Literal["lines", "chars", "bytes", "pages", "rows"] | None,
    start: int | None,
    end: int | None,
    render: Path | None,
) -> int:
    """Read exactly a part: lines, pages, rows, a heading, a sheet, a member, a JSON value."""
    if render and (unit not in (None, "pages") or end is not None):
        raise click.UsageError("--render takes one page: name it with --start.")
    if render and render.suffix.lower() not in _FORMATS:
        raise click.UsageError(f"--render writes {', '.join(_FORMATS)}: end the file's name so.")
    screen, views = screen_of(), view.settings.views

    async def show(stash: "Stash", source: Source, facts: "Facts") -> None:
        ref = facts.artifact_ref
        if render:
            picture = await stash.picture(ref, start, path=path)
            _save_picture(picture, render)
            aside(f"Wrote {picture.width}×{picture.height} px to {render}.")
            return
        limit = view.max_chars
        if view.model:
            limit = views.max_chars(limit, views.default_max_chars)
        elif screen.is_terminal and not view.as_json:
            limit = limit or views.default_max_chars
        place: dict[str, Any] = {"path": path, "unit": unit or "lines", "start": start, "end": end}
        with Meter("Reading") as meter, meter.download(source.word, local=True) as progress:
            part = await stash.slice(ref, **place, max_chars=limit, progress=progress.read)
        if view.printed(part):
            return
        print_text(part.text, wrap=_show.is_prose(facts))
        if part.cut_at is not None:
            say(f"It goes on behind its first {part.cut_at:,} characters: name a narrower path.")
        if part.next and screen.is_terminal:
            click.echo("\n".join(_show.what_next(screen, part, [part.next])))

    return read_each(view, [word], show)


@command(
    "Rank passages by the words you look for",
    example="when does the ferry leave --in @1",
    shows=["all_runs"],
    views=True,
)
@click.argument("words", nargs=-1, required=True, metavar="WORDS...")
@click.option(
    "--in",
    "places",
    multiple=True,
    metavar="SOURCE",
    shell_complete=complete_sources,
    help="Search there alone.",
)
@click.option(
    "-n",
    "--max-results",
    type=Count(*COUNTS["max_results"]),
    metavar="N",
    default=8,
    help="Passages to show.",
)
@refresh_flag
@model_max_chars_flag
def search(view: View, words: Sequence[str], places: Sequence[str], max_results: int) -> int | None:
    """Rank the passages of all that is kept here by the words you look for."""
    query = " ".join(word for word in words if not is_plain_source(word))
    places = (*places, *(word for word in words if is_plain_source(word)))
    if not query.strip():
        raise click.UsageError("Name the words to look for.")

    async def work(stash: "Stash", named: Sequence[Source]) -> int | None:
        refs: list[str] = []
        codes: list[int] = []
        results = await found(stash, named, refresh=view.refresh)
        for source, result in zip(named, results, strict=True):
            if isinstance(result, FetchstashError):
                codes.append(report(named, source, result, as_json=view.as_json))
            else:
                refs.append(result.artifact_ref)
        code = max(codes, default=0)
        if code and not refs:
            return code
        with Meter("Searching"):
            passages = await stash.search(query, refs, max_results=max_results)
            stop = monotonic() + _INDEX_SECONDS
            while passages.pending and monotonic() < stop:
                passages = await stash.search(query, refs, max_results=max_results)
        if not view.printed(passages):
            if screen_of().is_terminal:
                for line in _show.passages(screen_of(), passages, query):
                    click.echo(line)
            else:
                print_text(f"{passages}\n" if passages.best_first else "")
        if passages.pending:
            said = f"{counted(passages.pending, 'text')} not searched whole yet"
            say(f"{said}: `{command_line(passages.next)}`." if passages.next else f"{said}.")
        elif not (passages.searched or refs):
            await say_where(stash)
        elif not passages.best_first:
            aside(f"No passage of {counted(passages.searched, 'artifact')} has these words.")
        return code or (None if passages.best_first else NO_MATCH)

    return with_sources(view.settings, places, work)


@command("Show the facts and the outline of a document", views=True)
@click.argument("word", metavar="SOURCE", shell_complete=complete_sources)
@refresh_flag
def info(view: View, word: str) -> int:
    """Show what is known of a document, and its outline."""

    async def show(_: "Stash", __: Source, facts: "Facts") -> None:
        if not view.printed(facts):
            click.echo("\n".join(_show.known(screen_of(), facts)))

    return read_each(view, [word], show)


@command("Find where the sentences of an answer came from", example="answer.md", shows=["all_runs"])
@click.argument("file", type=click.File(encoding="utf-8", errors="replace"))
@json_flag
def trace(settings: Settings, file: "TextIO", as_json: bool) -> int | None:
    """Show for each sentence of a text the passage that supports it, and who was shown that.

    FILE is a text, - is stdin. The exit code is 1 where nothing kept supports a sentence.
    """
    text = file.read(_MAX_TRACED)
    with Meter("Tracing"):
        traced = with_stash(settings, lambda stash: stash.trace(text))
    if as_json:
        print_objects([origin.to_json() for origin in traced])
    else:
        click.echo("\n".join(_show.origins(screen_of(), traced)))
    if traced.pending:
        say(f"{counted(traced.pending, 'text')} not searched whole yet: ask again.")
    if not traced.is_logged:
        aside("No log of calls is kept here: what a model was shown is not known.")
    return None if all(origin.is_supported for origin in traced) else NO_MATCH


COMMANDS = (slice_, search, trace, info)
