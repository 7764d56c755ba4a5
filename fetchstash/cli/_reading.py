"""Commands that read parts: grep, slice, search, info."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

import click

from fetchstash.cli import _show
from fetchstash.cli._grep import Hit, Scanner, hits, spans
from fetchstash.cli._help import Command
from fetchstash.cli._meter import Meter
from fetchstash.cli._options import (
    UNITS,
    as_model_flag,
    complete_sources,
    max_chars_flag,
    model_max_chars_flag,
    refresh_flag,
)
from fetchstash.cli._run import (
    NO_MATCH,
    aside,
    command,
    json_flag,
    print_as_model,
    print_json,
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
    sources,
    warn,
)
from fetchstash.cli._terminal import safe, screen_of, window_cells
from fetchstash.cli._words import command_line
from fetchstash.errors import BadPattern, Call, FetchstashError

if TYPE_CHECKING:
    from fetchstash.config import Settings
    from fetchstash.stash import Picture, Stash
    from fetchstash.store import Facts, GrepQuery

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}


def save_picture(picture: "Picture", target: Path) -> None:
    """Write a picture, converted where the name asks for it. Raises BadArgument."""
    from io import BytesIO  # noqa: PLC0415 - only where it is needed

    from PIL import Image  # noqa: PLC0415 - heavy

    from fetchstash.stash import replacing  # noqa: PLC0415 - heavy

    wanted = FORMATS[target.suffix.lower()]
    data = picture.data
    if picture.media_type != f"image/{wanted.lower()}":
        written = BytesIO()
        with Image.open(BytesIO(data), formats=tuple(FORMATS.values())) as image:
            flat = image if wanted != "JPEG" else image.convert("RGB")
            flat.save(written, wanted)
        data = written.getvalue()
    with replacing(target) as file:
        file.write(data)


def check_name(target: Path) -> None:
    """Raise click.UsageError for a name that says no format of pictures."""
    if target.suffix.lower() not in FORMATS:
        raise click.UsageError(f"--render writes {', '.join(FORMATS)}: end the file's name so.")


_ALL = 10**9
_MODEL_CONTEXT, _MODEL_MATCHES = 2, 30
"""The defaults of the tools; a person gets every match, and no context unasked."""

_INDEX_SECONDS = 20
"""So long ``search`` waits at most until all texts are indexed: a person asks once."""


@click.command(cls=Command, short_help="Find the lines that match a pattern")
@click.argument("pattern")
@click.argument(
    "words", nargs=-1, required=True, metavar="SOURCE...", shell_complete=complete_sources
)
@click.option("-F", "--literal", is_flag=True, help="PATTERN is plain text.")
@click.option("-i", "--ignore-case", is_flag=True, help="Ignore case.")
@click.option(
    "-C", "--context", type=click.IntRange(0, 50), metavar="N", help="Lines around a match."
)
@click.option(
    "-m",
    "--max-matches",
    type=click.IntRange(1),
    metavar="N",
    help="Matches to show of each source.",
)
@click.option(
    "--offset", type=click.IntRange(min=0), metavar="N", default=0, help="Matches to skip."
)
@refresh_flag
@model_max_chars_flag
@as_model_flag
@json_flag
@command
def grep(
    settings: "Settings",
    pattern: str,
    words: Sequence[str],
    context: int | None,
    max_matches: int | None,
    refresh: bool,
    max_chars: int | None,
    model: bool,
    as_json: bool,
    **options: Any,
) -> int | None:
    """Find the lines that match an RE2 pattern: all of them, each whole."""
    if model:
        options["context"] = _MODEL_CONTEXT if context is None else context
        options["max_matches"] = max_matches or _MODEL_MATCHES

        async def ask(stash: "Stash") -> int | None:
            refs = [
                known.artifact_ref
                for known in await found(stash, settings, named, refresh=refresh)
                if not isinstance(known, FetchstashError)
            ]
            matches = await stash.grep(pattern, refs, **options)
            print_as_model(settings, matches, max_chars)
            return None if matches.total else NO_MATCH

        with sources(words, settings) as named:
            return with_stash(settings, ask)

    from fetchstash.store import GrepQuery, compile_pattern  # noqa: PLC0415 - heavy

    query = GrepQuery(pattern, context=context or 0, max_matches=max_matches or _ALL, **options)
    try:
        compile_pattern(query)  # a wrong one is said once, before anything is fetched
    except BadPattern as error:
        calls = (replace(call, arguments={**call.arguments, "refs": words}) for call in error.calls)
        raise BadPattern(error.what, error.next_step, *calls) from None
    printer = _Printer(query, several=len(words) > 1, as_json=as_json)
    with sources(words, settings) as named:
        code = read_each(settings, named, printer.show, refresh=refresh, as_json=as_json)
    if code:
        return code
    return None if printer.total else NO_MATCH


class _Printer:
    """Prints the matches in one source after the other."""

    def __init__(self, query: "GrepQuery", *, several: bool, as_json: bool) -> None:
        self.total = 0
        self._query, self._several, self._as_json = query, several, as_json
        self._screen = screen_of()
        self._headed = False

    async def show(self, stash: "Stash", source: Source, facts: "Facts") -> None:
        """Print the matches in one artifact."""
        from fetchstash.stash import described  # noqa: PLC0415 - heavy
        from fetchstash.store import compile_pattern  # noqa: PLC0415 - as above

        error = _show.no_text(stash, facts)
        if error is None:
            warn(stash, facts)
        elif not described(facts).pictures:  # those may have one by OCR
            raise error
        scanner = Scanner(self._query, compile_pattern(self._query))
        self._headed = False
        async for hit in hits(stash, facts.artifact_ref, scanner):
            if self._as_json:
                line = {"line": hit.number, "text": hit.text, "match": hit.match}
                print_objects([{"artifact_ref": facts.artifact_ref, **line}])
            elif self._screen.is_terminal:
                self._draw(facts, hit, scanner)
            else:
                mark = ":" if hit.match else "-"
                name = f"{source.word}{mark}" if self._several else ""
                gap = "--\n" if hit.after_gap and self._query.context else ""
                print_text(f"{gap}{name}{hit.number}{mark}{hit.text}\n")
        self.total += scanner.total
        if scanner.total > scanner.shown:
            aside(f"Shown: {scanner.shown:,} of {scanner.total:,} matches.")
        if left_out := await stash.documents.count_left_out(facts, self._query):
            there = command_line(Call("slice", {"ref": facts.artifact_ref, "path": "left_out"}))
            aside(f"{left_out} more in what its text leaves out: {there}")

    def _draw(self, facts: "Facts", hit: Hit, scanner: Scanner) -> None:
        """Print a line as a terminal shows it: a window of a long one, its matches coloured."""
        screen = self._screen
        if self._several and not self._headed:
            click.echo("\n" * bool(self.total) + _show.heading(screen, facts)[0])
        elif hit.after_gap and self._query.context:
            click.echo(screen.style("--", "dim"))
        self._headed = True
        number = f"{hit.number}{':' if hit.match else '-'}"
        text = safe(hit.text)
        first = next(spans(scanner.pattern, text), (0, 0)) if hit.match else (0, 0)
        text = window_cells(text, *first, screen.width - len(number))
        pieces, at = [screen.style(number, "key")], 0
        for start, end in spans(scanner.pattern, text) if hit.match else ():
            pieces += [text[at:start], screen.style(text[start:end], "match")]
            at = end
        click.echo("".join([*pieces, text[at:]]))


@click.command("slice", cls=Command, short_help="Read lines, pages, rows, a sheet, a member …")
@click.argument("word", metavar="SOURCE", shell_complete=complete_sources)
@click.option("--path", default="", help="Heading, sheet, member, JSON pointer, links …")
@click.option(
    "--unit", type=click.Choice(UNITS), metavar="UNIT", help=f"{', '.join(UNITS)} (default: lines)."
)
@click.option(
    "--start",
    type=click.IntRange(min=0),
    metavar="N",
    help="First line, page or row from 1; else 0.",
)
@click.option(
    "--end",
    type=click.IntRange(min=0),
    metavar="N",
    help="Last line, page or row; else one past it.",
)
@click.option(
    "--render",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write page --start, or an image, as a picture (.png, .jpg, .webp).",
)
@refresh_flag
@max_chars_flag
@as_model_flag
@json_flag
@command
def slice_(
    settings: "Settings",
    word: str,
    path: str,
    unit: Literal["lines", "chars", "bytes", "pages", "rows"] | None,
    start: int | None,
    end: int | None,
    render: Path | None,
    refresh: bool,
    max_chars: int | None,
    model: bool,
    as_json: bool,
) -> int | None:
    """Read exactly a part: lines, pages, rows, a heading, a sheet, a member, a JSON value."""
    if render and (unit not in (None, "pages") or end is not None):
        raise click.UsageError("--render takes one page: name it with --start.")
    if render:
        check_name(render)
    screen, views = screen_of(), settings.views

    async def show(stash: "Stash", source: Source, facts: "Facts") -> None:
        ref = facts.artifact_ref
        if render:
            picture = await stash.picture(ref, start, path=path)
            save_picture(picture, render)
            aside(f"Wrote {picture.width}×{picture.height} px to {render}.")
            return
        limit = views.max_chars(max_chars, views.default_max_chars) if model else max_chars
        if screen.is_terminal and not as_json:
            limit = limit or views.default_max_chars
        with Meter("Reading") as meter, meter.download(source.word, local=True) as progress:
            part = await stash.slice(
                ref,
                path=path,
                unit=unit or "lines",
                start=start,
                end=end,
                max_chars=limit,
                progress=progress.read,
            )
        if model:
            print_as_model(settings, part, max_chars)
        elif as_json:
            print_json(settings, part)
        else:
            print_text(part.text, wrap=_show.is_prose(facts))
            if part.cut_at is not None:
                say(
                    f"It goes on behind its first {part.cut_at:,} characters: name a narrower path."
                )
            if part.next and screen.is_terminal:
                click.echo("\n" + screen.style(f"{_show.opening_of(part)}. Next:", "dim"))
                click.echo("\n".join(_show.next_steps(screen, [part.next])))

    with sources([word], settings) as named:
        return read_each(settings, named, show, refresh=refresh, model=model, as_json=as_json)


@click.command(
    cls=Command, short_help="Rank passages by the words you look for", shows=["all_runs"]
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
    type=click.IntRange(1, 50),
    metavar="N",
    default=8,
    help="Passages to show.",
)
@refresh_flag
@model_max_chars_flag
@as_model_flag
@json_flag
@command
def search(
    settings: "Settings",
    words: Sequence[str],
    places: Sequence[str],
    max_results: int,
    refresh: bool,
    max_chars: int | None,
    model: bool,
    as_json: bool,
) -> int | None:
    """Rank the passages of all that is kept here by the words you look for."""
    query = " ".join(word for word in words if not is_plain_source(word))
    places = (*places, *(word for word in words if is_plain_source(word)))
    if not query.strip():
        raise click.UsageError("Name the words to look for.")

    async def work(stash: "Stash") -> int | None:
        results = await found(stash, settings, named, refresh=refresh)
        code = max(
            (
                report(named, source, result, as_json=as_json)
                for source, result in zip(named, results, strict=True)
                if isinstance(result, FetchstashError)
            ),
            default=0,
        )
        refs = [
            result.artifact_ref for result in results if not isinstance(result, FetchstashError)
        ]
        if code and not refs:
            return code
        with Meter("Searching"):
            passages = await stash.search(query, refs, max_results=max_results)
            stop = monotonic() + _INDEX_SECONDS
            while passages.pending and monotonic() < stop:
                passages = await stash.search(query, refs, max_results=max_results)
        if model:
            print_as_model(settings, passages, max_chars)
        elif as_json:
            print_json(settings, passages)
        elif screen_of().is_terminal:
            for line in _show.passages(screen_of(), passages, query):
                click.echo(line)
        else:
            print_text(f"{passages}\n" if passages.best_first else "")
        if passages.pending:
            said = f"{_show.counted(passages.pending, 'texts')} not searched yet"
            say(f"{said}: `{command_line(passages.next)}`." if passages.next else f"{said}.")
        elif not (passages.searched or refs):
            await say_where(stash)
        elif not passages.best_first:
            aside(f"No passage of {_show.counted(passages.searched, 'artifacts')} has these words.")
        return code or (None if passages.best_first else NO_MATCH)

    with sources(places, settings) as named:
        return with_stash(settings, work)


@click.command(cls=Command, short_help="Show the facts and the outline of a document")
@click.argument("word", metavar="SOURCE", shell_complete=complete_sources)
@refresh_flag
@as_model_flag
@json_flag
@command
def info(settings: "Settings", word: str, refresh: bool, model: bool, as_json: bool) -> int | None:
    """Show what is known of a document, and its outline."""

    async def show(_: "Stash", __: Source, facts: "Facts") -> None:
        if model:
            print_as_model(settings, facts)
        elif as_json:
            print_json(settings, facts)
        else:
            click.echo("\n".join(_show.known(screen_of(), facts)))

    with sources([word], settings) as named:
        return read_each(settings, named, show, refresh=refresh, model=model, as_json=as_json)


COMMANDS = (grep, slice_, search, info)
