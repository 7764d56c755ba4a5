"""Commands for what is kept: ls, open, pin, rm, gc, stats."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fetchstash.cli import _show
from fetchstash.cli._options import Count, json_flag, sources_argument
from fetchstash.cli._progress import Meter
from fetchstash.cli._run import View, aside, command, print_objects, print_text, say, with_stash
from fetchstash.cli._sources import kept_each, say_where
from fetchstash.cli._terminal import Column, screen_of, table
from fetchstash.cli._words import command_line, short_ref
from fetchstash.config import Settings
from fetchstash.errors import BadArgument, Call
from fetchstash.store import ALL_RUNS, with_run
from fetchstash.text import counted

if TYPE_CHECKING:
    from fetchstash.stash import Listing, Stash
    from fetchstash.store import Facts

_KEPT_SECONDS = 86_400
"""A program may read the copy long after it was started; older copies are removed."""

_REFUSAL_SECONDS = 1
"""In so long xdg-open says that it found no program."""

_SAVE = "Save it with {}."

# The extension is ours, by what the document is, and never that of its name: what a system would
# run (a script, a shortcut, a program) is opened as text or not at all.
_BY_MEDIA_TYPE = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "application/json": ".json",
    "application/x-ipynb+json": ".txt",
    "text/xml": ".xml",
    "application/xml": ".xml",
    "text/csv": ".csv",
    "application/pdf": ".pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
    "application/msword": ".doc",
    "application/vnd.ms-excel": ".xls",
    "application/vnd.ms-powerpoint": ".ppt",
    "application/rtf": ".rtf",
    "text/rtf": ".rtf",
    "application/vnd.oasis.opendocument.text": ".odt",
    "application/vnd.oasis.opendocument.spreadsheet": ".ods",
    "application/vnd.oasis.opendocument.presentation": ".odp",
    "application/epub+zip": ".epub",
    "message/rfc822": ".eml",
    "text/calendar": ".ics",
    "text/tab-separated-values": ".tsv",
    "application/zip": ".zip",
    "image/svg+xml": ".svg",
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "image/avif": ".avif",
    "image/tiff": ".tif",
    "image/bmp": ".bmp",
    "audio/mpeg": ".mp3",
    "audio/flac": ".flac",
    "audio/ogg": ".ogg",
    "audio/wav": ".wav",
    "audio/x-wav": ".wav",
    "video/mp4": ".mp4",
    "video/webm": ".webm",
    "video/quicktime": ".mov",
}


def extension(facts: "Facts") -> str:
    """Return the extension that a document is opened under, "" for what is not opened."""
    from fetchstash.stash import described  # noqa: PLC0415 - heavy

    is_text = described(facts).is_text or facts.media_type.startswith("text/")
    return _BY_MEDIA_TYPE.get(facts.media_type, ".txt" if is_text else "")


def open_copy(facts: "Facts", source: Path) -> Path:
    """Open a read-only copy of a document and return its path. Raises BadArgument."""
    import platformdirs  # noqa: PLC0415 - only where it is needed

    ref = facts.artifact_ref
    ending = extension(facts)
    save = Call("export", {"ref": ref, "target": "FILE", "raw": True})
    if not ending:
        what = f"{facts.media_type} is nothing that is opened unseen: it may be a program."
        raise BadArgument(what, _SAVE, save)
    opener = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
    if not opener and sys.platform != "win32":
        raise BadArgument("This system has no xdg-open.", _SAVE, save)
    folder = platformdirs.user_cache_path("fetchstash", appauthor=False) / "open"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in folder.iterdir():
        if time.time() - old.stat().st_mtime > _KEPT_SECONDS:
            old.unlink(missing_ok=True)
    copy = folder / f"{ref}{ending}"
    if not copy.exists():
        handle, partial = tempfile.mkstemp(dir=folder)
        os.close(handle)
        shutil.copyfile(source, partial)
        Path(partial).chmod(0o400)
        Path(partial).replace(copy)
    if sys.platform == "win32":
        os.startfile(copy)  # noqa: S606 - the system picks the program
    else:
        # The program lives on its own: not ended with this terminal, and silent in it.
        process = subprocess.Popen(  # noqa: S603 - our own extension, in a folder of ours
            [str(opener), str(copy)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with suppress(subprocess.TimeoutExpired):  # it stays for as long as its program
            if process.wait(_REFUSAL_SECONDS):
                raise BadArgument(f"No program of this system opens {ending}.", _SAVE, save)
    return copy


_ON_A_TERMINAL = 100
_PAGE = 1_000
_refs = sources_argument("REF...")


@command("List what is kept, the newest first", shows=["all_runs"], views=True)
@click.option("-n", "--limit", type=Count(1), metavar="N", help="Artifacts to list.")
def ls(view: View, limit: int | None) -> None:
    """List what is kept, the newest first; @1, @2 … name it in every command."""
    screen = screen_of()
    plain = view.as_json or not screen.is_terminal

    async def work(stash: "Stash") -> None:
        if view.model:
            view.print_as_model(await stash.list())
            return
        wanted = limit or (sys.maxsize if plain else _ON_A_TERMINAL)
        first = total = 0
        while first < wanted:
            page = await stash.list(limit=min(wanted - first, _PAGE), offset=first)
            if not page.facts:
                break
            if view.as_json:
                rows = [replace(facts, outline=()).to_json() for facts in page.facts]
                left_out = ("outline", "caching")
                print_objects([{k: row[k] for k in row if k not in left_out} for row in rows])
            elif plain:
                print_text("".join(f"{_show.plain_row(facts)}\n" for facts in page.facts))
            else:
                click.echo("\n".join(_show.listed(screen, page.facts, first + 1)))
            first, total = first + len(page.facts), page.total
        if not plain and first < total:
            more = command_line(Call("list", {"limit": total}))
            aside(f"{first} of {total}, the newest first. {more} lists all.")
        if not first:
            await say_where(stash)

    with_stash(view.settings, work)


@command("Keep artifacts for good, or delete them")
@_refs
@click.option("--unpin", is_flag=True, help="Let retention have them again.")
def pin(settings: Settings, words: Sequence[str], unpin: bool) -> int | None:
    """Keep artifacts whatever their age and however full the store is."""

    async def work(stash: "Stash", facts: "Facts") -> None:
        await stash.pin(facts.artifact_ref, pinned=not unpin)
        aside(f"{'Unpinned' if unpin else 'Pinned'} {_named(facts)}.")

    return kept_each(settings, words, work)


@command("Keep artifacts for good, or delete them")
@_refs
def rm(settings: Settings, words: Sequence[str]) -> int | None:
    """Delete artifacts, and the bytes that no other shares."""

    async def work(stash: "Stash", facts: "Facts") -> None:
        await stash.delete(facts.artifact_ref)
        aside(f"Deleted {_named(facts)}.")

    return kept_each(settings, words, work)


def _named(facts: "Facts") -> str:
    name = facts.title or facts.name
    return f"{short_ref(facts.artifact_ref)} ({name})" if name else short_ref(facts.artifact_ref)


@command("Open the kept file in its own program", name="open")
@_refs
def open_(settings: Settings, words: Sequence[str]) -> int | None:
    """Open a read-only copy of the kept file in the program that this system has for it."""

    async def work(stash: "Stash", facts: "Facts") -> None:
        async with stash.raw(facts.artifact_ref) as path:
            aside(f"Opening {open_copy(facts, path)}")

    return kept_each(settings, words, work)


@command("Remove now what is too old or too much")
@click.option("--dry-run", is_flag=True, help="Say what would go and why, and remove nothing.")
@json_flag
def gc(settings: Settings, dry_run: bool, as_json: bool) -> None:
    """Apply retention now: age, count, bytes, and what no artifact names."""
    from fetchstash.render import size  # noqa: PLC0415 - heavy

    with Meter("Cleaning up"):
        removed = with_stash(settings, lambda stash: stash.gc(dry_run=dry_run))
    if as_json:
        print_objects([asdict(item) for item in removed])
        return
    columns = (Column("ref", least=7, style="reference"), Column("size", right=True), Column("why"))
    rows = [[short_ref(item.artifact_ref), size(item.size_bytes), item.reason] for item in removed]
    if rows:
        click.echo("\n".join(table(screen_of(), columns, rows)))
    total = sum(item.size_bytes for item in removed)
    say(f"{len(removed)} {'would go' if dry_run else 'removed'}, {counted(total, 'byte')}.")


@command("Sum up what was fetched, by kind and host", shows=["all_runs"])
@click.option(
    "--plot", "plot_file", type=click.Path(path_type=Path), help="Draw it to this file, as SVG."
)
@json_flag
def stats(settings: Settings, plot_file: Path | None, as_json: bool) -> None:
    """Sum up what was fetched, by kind and host, the tokens kept out, and what each tool cost."""
    from fetchstash.server.ui import costs, origins, plot, totals  # noqa: PLC0415 - heavy rooms
    from fetchstash.stash import logged_calls, replacing  # noqa: PLC0415 - as above

    async def work(stash: "Stash") -> "Listing":
        listing = await stash.list(limit=settings.store.max_artifacts)
        if not listing.total:
            await say_where(stash)
        return listing

    listing = with_stash(settings, work)
    # A call counts by the artifacts that it showed, whichever run it came from.
    calls = list(logged_calls(settings))
    sums = totals(listing.facts, calls)
    rows = _show.rows_of(listing.facts, origins(listing.facts, calls))
    shown = sums.shown if sums.calls else None
    run = with_run(settings.store).run
    tools = costs(call for call in calls if run in (ALL_RUNS, call.get("run")))["tool"]
    if plot_file:
        with replacing(plot_file) as file:
            file.write(plot(sums).encode())
    if as_json:
        print_objects(_show.as_objects(rows, tools, shown))
    else:
        for line in _show.printed(screen_of(), rows, tools, shown):
            click.echo(line)


COMMANDS = (ls, open_, pin, rm, gc, stats)
