"""The command grep: every match, each line whole, and read piece by piece.

A model is shown windows of thirty matches (fetchstash.store). Here nothing is left out, and what is
printed is not kept, so that the first lines come at once and memory stays small.
"""

import os
import re
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from fetchstash.cli import _show
from fetchstash.cli._options import Count, model_max_chars_flag, refresh_flag, sources_argument
from fetchstash.cli._run import NO_MATCH, View, aside, command, print_objects, print_text
from fetchstash.cli._sources import Source, found, is_folder, read_each, warn, with_sources
from fetchstash.cli._terminal import safe, screen_of, window_cells
from fetchstash.cli._words import command_line
from fetchstash.errors import (
    COUNTS,
    BadArgument,
    BadPattern,
    Call,
    ExpiredRef,
    FetchstashError,
    UnknownRef,
)

if TYPE_CHECKING:
    from fetchstash.stash import Stash
    from fetchstash.store import Facts, GrepQuery, Pattern

_ALL = 10**9
_MODEL_CONTEXT, _MODEL_MATCHES = 2, 30
"""The defaults of the tools; a person gets every match, and no context unasked."""

_PIECE_CHARS = 2**18
_MAX_FILES = 1_000


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that is printed: its number from 1, its text, and whether it matches.

    ``after_gap``: lines before it were left out.
    """

    number: int
    text: str
    match: bool
    after_gap: bool = False


class Scanner:
    """Searches a text that is handed to it in whole lines.

    ``total`` counts the matching lines, those after ``query.max_matches`` too. ``before`` and
    ``after`` are lines shown around a match, ``query.context`` where they are None. ``inverted``:
    the lines that do not match are those that count.
    """

    def __init__(
        self,
        query: "GrepQuery",
        pattern: "Pattern",
        *,
        before: int | None = None,
        after: int | None = None,
        inverted: bool = False,
    ) -> None:
        self.query, self.pattern, self.inverted = query, pattern, inverted
        self.total = self.shown = 0
        self._number = self._printed = self._follow = 0
        self._after = query.context if after is None else after
        self._before = deque[tuple[int, str]](maxlen=query.context if before is None else before)

    def feed(self, text: str) -> Iterator[Hit]:
        """Go through more lines; the last may lack its line feed where the text ends."""
        lines = text.removesuffix("\n").split("\n")
        if not self._follow and not self.inverted and not self._is_match(text):
            self._before.extend(enumerate(lines, start=self._number + 1))
            self._number += len(lines)
            return
        for line in lines:
            self._number += 1
            yield from self._line(line)

    @property
    def has_context(self) -> bool:
        """Whether lines around a match are shown, so that a gap between them is."""
        return bool(self._after or self._before.maxlen)

    def _line(self, line: str) -> Iterator[Hit]:
        query = self.query
        if self._is_match(line) != self.inverted:
            self.total += 1
            if not query.offset < self.total <= query.offset + query.max_matches:
                self._follow = 0
                return
            for number, text in self._before:
                yield self._hit(number, text, match=False)
            self._before.clear()
            self._follow = self._after
            self.shown += 1
            yield self._hit(self._number, line, match=True)
        elif self._follow:
            self._follow -= 1
            yield self._hit(self._number, line, match=False)
        else:
            self._before.append((self._number, line))

    def _hit(self, number: int, text: str, *, match: bool) -> Hit:
        gap = bool(self._printed) and number > self._printed + 1
        self._printed = number
        return Hit(number, text, match, gap)

    def _is_match(self, text: str) -> bool:
        data = text.encode()
        return self.pattern.search(data, 0, len(data)) is not None


def spans(pattern: "Pattern", line: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of matches within the characters [start, end) of a line; none is empty."""
    data = line.encode()
    at = 0
    while at < len(data) and (span := pattern.search(data, at, len(data))):
        start, end = span
        if end > start:
            yield (
                len(data[:start].decode(errors="replace")),
                len(data[:end].decode(errors="replace")),
            )
        at = max(end, at + 1)


async def pieces(stash: "Stash", ref: str, offset: int, chars: int) -> AsyncGenerator[str]:
    """Yield a text in pieces from a character on. It is opened once: a bucket reads ahead then.

    Raises NoText, OutOfRange.
    """
    async with stash.documents.opened(ref) as (facts, reader):
        await stash.scans.refuse_scan(facts)
        if reader is None or offset >= reader.chars:
            yield (await stash.read(ref, offset)).text  # which says what is wrong
            return
        for start in range(offset, reader.chars, chars):
            yield await reader.read_chars(start, start + chars)


async def hits(stash: "Stash", ref: str, scanner: Scanner) -> AsyncGenerator[Hit]:
    """Yield a scanner's hits in an artifact. Raises NoText."""
    rest = ""
    async with aclosing(pieces(stash, ref, 0, _PIECE_CHARS)) as read:  # -l leaves it early
        async for piece in read:
            lines, feed, tail = piece.rpartition("\n")
            if not feed:
                rest += tail
                continue
            for hit in scanner.feed(rest + lines + feed):
                yield hit
            rest = tail
    for hit in scanner.feed(rest) if rest else ():
        yield hit


def _whole_words(query: "GrepQuery") -> "GrepQuery":
    """Return a query for the pattern where no letter or digit stands beside it (RE2's syntax)."""
    pattern = re.escape(query.pattern) if query.literal else query.pattern
    beside = r"[^\pL\pN_]"
    return replace(query, pattern=rf"(?:^|{beside})(?:{pattern})(?:{beside}|$)", literal=False)


def _with_files(words: Sequence[str]) -> list[str]:
    """Return the words, each folder replaced by the files in it and below, hidden ones left out.

    Raises BadArgument for a folder with no file, or with more than ``_MAX_FILES``.
    """
    named: list[str] = []
    for word in words:
        if not is_folder(word):
            named.append(word)
            continue
        files: list[str] = []
        for root, inner, names in os.walk(Path(word).expanduser()):
            inner[:] = sorted(name for name in inner if not name.startswith("."))
            shown = (Path(root, name) for name in sorted(names) if not name.startswith("."))
            files += [str(path) for path in shown if path.is_file()]
            if len(files) > _MAX_FILES:
                what = f"{word} has more than {_MAX_FILES:,} files."
                raise BadArgument(what, "Name a folder within it, or the files.")
        if not files:
            raise BadArgument(f"{word} is a folder without a file.", "Name another.")
        named += [path if os.sep in path else f".{os.sep}{path}" for path in files]
    return named


@command("Find the lines that match a pattern", example="-i 'tide gauge' @1 *.pdf", views=True)
@click.argument("pattern")
@sources_argument()
@click.option("-F", "--literal", is_flag=True, help="PATTERN is plain text.")
@click.option("-i", "--ignore-case", is_flag=True, help="Ignore case.")
@click.option("-w", "--words", "whole", is_flag=True, help="Match whole words alone.")
@click.option("-v", "--invert-match", "inverted", is_flag=True, help="Lines that do not match.")
@click.option("-c", "--count", is_flag=True, help="Print counts; -l the sources with a match.")
@click.option("-l", "--files", is_flag=True, hidden=True)  # told beside others: help fits a screen
@click.option("-n", "numbers", is_flag=True, hidden=True)
@click.option("-B", "--before", type=Count(*COUNTS["context"]), hidden=True)
@click.option("-A", "--after", type=Count(*COUNTS["context"]), hidden=True)
@click.option(
    "-C",
    "--context",
    type=Count(*COUNTS["context"]),
    metavar="N",
    help="Lines around a match; -B before it, -A after it.",
)
@click.option(
    "-m", "--max-matches", type=Count(1), metavar="N", help="Matches of each source, from --offset."
)
@click.option("--offset", type=Count(0), metavar="N", default=0, hidden=True)
@refresh_flag
@model_max_chars_flag
def grep(
    view: View,
    pattern: str,
    words: Sequence[str],
    context: int | None,
    max_matches: int | None,
    whole: bool,
    inverted: bool,
    count: bool,
    files: bool,
    before: int | None,
    after: int | None,
    numbers: bool,
    **options: Any,
) -> int | None:
    """Find the lines that match an RE2 pattern: all of them, each whole."""
    del numbers  # which are there always: scripts write -n out of habit
    words = _with_files(words)
    if view.model:
        if whole or inverted or count or files or before is not None or after is not None:
            what = "-w, -v, -c, -l, -B and -A are the command's alone: no model has them."
            raise BadArgument(what, "Leave out --as-model, or these.")
        options["context"] = _MODEL_CONTEXT if context is None else context
        options["max_matches"] = max_matches or _MODEL_MATCHES

        async def ask(stash: "Stash", named: Sequence[Source]) -> int | None:
            refs = [
                known.artifact_ref
                for known in await found(stash, named, refresh=view.refresh)
                if not isinstance(known, FetchstashError)
            ]
            matches = await stash.grep(pattern, refs, **options)
            view.print_as_model(matches)
            return None if matches.total else NO_MATCH

        return with_sources(view.settings, words, ask)

    from fetchstash.store import GrepQuery, compile_pattern  # noqa: PLC0415 - heavy

    query = GrepQuery(pattern, context=context or 0, max_matches=max_matches or _ALL, **options)
    try:
        compiled = compile_pattern(query)  # a wrong one is said once, before anything is fetched
    except BadPattern as error:
        calls = (replace(call, arguments={**call.arguments, "refs": words}) for call in error.calls)
        raise BadPattern(error.what, error.next_step, *calls) from None
    printer = _Printer(
        query,
        partial(
            Scanner,
            query,
            compile_pattern(_whole_words(query)) if whole else compiled,
            before=before,
            after=after,
            inverted=inverted,
        ),
        several=len(words) > 1,
        as_json=view.as_json,
        only="names" if files else "counts" if count else "",
    )
    return read_each(view, words, printer.show) or (None if printer.total else NO_MATCH)


class _Printer:
    """Prints the matches in one source after the other.

    ``only``: the names of the sources that have one, or their counts, in place of the lines.
    """

    def __init__(
        self,
        query: "GrepQuery",
        scanner: Callable[[], Scanner],
        *,
        several: bool,
        as_json: bool,
        only: Literal["", "names", "counts"] = "",
    ) -> None:
        self.total = 0
        self._query, self._scanner, self._only = query, scanner, only
        self._several, self._as_json = several, as_json
        self._screen = screen_of()
        self._headed = False

    async def show(self, stash: "Stash", source: Source, facts: "Facts") -> None:
        """Print the matches in one artifact, or in the pages of a site's index."""
        if not facts.site_prefix:
            await self._show(stash, source.word, facts)
            return
        self._several = True
        for ref in await stash.site_pages(facts.artifact_ref):
            with suppress(UnknownRef, ExpiredRef):
                page = await stash.store.get(ref)
                if page.extracted_chars is not None:
                    await self._show(stash, page.final_url, page)

    async def _show(self, stash: "Stash", word: str, facts: "Facts") -> None:
        from fetchstash.stash import described  # noqa: PLC0415 - heavy

        error = await _show.no_text(stash, facts)
        if error is None:
            await warn(stash, facts)
        elif not described(facts).pictures:  # those may have one by OCR
            raise error
        scanner = self._scanner()
        if self._only:
            await self._sum_up(stash, word, facts, scanner)
            return
        self._headed = False
        async for hit in hits(stash, facts.artifact_ref, scanner):
            if self._as_json:
                line = {"line": hit.number, "text": hit.text, "match": hit.match}
                print_objects([{"artifact_ref": facts.artifact_ref, **line}])
            elif self._screen.is_terminal:
                self._draw(facts, hit, scanner)
            else:
                mark = ":" if hit.match else "-"
                name = f"{word}{mark}" if self._several else ""
                gap = "--\n" if hit.after_gap and scanner.has_context else ""
                print_text(f"{gap}{name}{hit.number}{mark}{hit.text}\n")
        self.total += scanner.total
        if scanner.total > scanner.shown:
            aside(f"Shown: {scanner.shown:,} of {scanner.total:,} matches.")
        if scanner.inverted:
            return
        if left_out := await stash.documents.count_left_out(facts, self._query):
            there = command_line(Call("slice", {"ref": facts.artifact_ref, "path": "left_out"}))
            aside(f"{left_out} more in what its text leaves out: {there}")

    async def _sum_up(self, stash: "Stash", word: str, facts: "Facts", scanner: Scanner) -> None:
        """Print the name of a source that has a match, or the count of each."""
        async with aclosing(hits(stash, facts.artifact_ref, scanner)) as found:
            async for _ in found:
                if self._only == "names":
                    break
        self.total += scanner.total
        if self._only == "names" and not scanner.total:
            return
        if self._as_json:
            count = {"count": scanner.total} if self._only == "counts" else {}
            print_objects([{"artifact_ref": facts.artifact_ref, "source": word, **count}])
        elif self._only == "names":
            print_text(f"{word}\n")
        else:
            print_text(f"{word}:{scanner.total}\n" if self._several else f"{scanner.total}\n")

    def _draw(self, facts: "Facts", hit: Hit, scanner: Scanner) -> None:
        """Print a line as a terminal shows it: a window of a long one, its matches coloured."""
        screen = self._screen
        if self._several and not self._headed:
            click.echo("\n" * bool(self.total) + _show.heading(screen, facts)[0])
        elif hit.after_gap and scanner.has_context:
            click.echo(screen.style("--", "dim"))
        self._headed = True
        number = f"{hit.number}{':' if hit.match else '-'}"
        text = safe(hit.text)
        colour = hit.match and not scanner.inverted
        first = next(spans(scanner.pattern, text), (0, 0)) if colour else (0, 0)
        text = window_cells(text, *first, screen.width - len(number))
        pieces, at = [screen.style(number, "key")], 0
        for start, end in spans(scanner.pattern, text) if colour else ():
            pieces += [text[at:start], screen.style(text[start:end], "match")]
            at = end
        click.echo("".join([*pieces, text[at:]]))


COMMANDS = (grep,)
