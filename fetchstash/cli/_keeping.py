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
from typing import TYPE_CHECKING, Any

import click

from fetchstash.cli import _show
from fetchstash.cli._options import Age, Count, json_flag, sources_argument
from fetchstash.cli._progress import Meter
from fetchstash.cli._run import (
    View,
    aside,
    command,
    print_objects,
    print_text,
    say,
    tenant_flag,
    with_every_stash,
)
from fetchstash.cli._sources import kept_each, say_where
from fetchstash.cli._terminal import Column, screen_of, table
from fetchstash.cli._words import command_line, short_ref
from fetchstash.config import Settings
from fetchstash.errors import BadArgument, Call
from fetchstash.store import ALL_RUNS, Removed, open_whole, with_run
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
    """Return the extension under which a document is opened, "" if it is not opened."""
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
@tenant_flag
@click.option("-n", "--limit", type=Count(1), metavar="N", help="Artifacts to list.")
def ls(view: View, limit: int | None) -> None:
    """List what is kept, the last fetched first; @1, @2 … name it in every command."""
    screen = screen_of()
    plain = view.as_json or not screen.is_terminal

    async def work(stashes: "Sequence[Stash]") -> None:
        if view.model:
            for stash in stashes:
                view.print_as_model(await stash.list())
            return
        wanted = limit or (sys.maxsize if plain else _ON_A_TERMINAL)
        first = total = 0
        for stash in stashes:
            shown = 0
            while True:
                page = await stash.list(limit=min(max(wanted - first, 1), _PAGE), offset=shown)
                if not page.facts or first >= wanted:
                    break
                _print_listed(view, page.facts, stash.settings.store.tenant, first + 1)
                shown, first = shown + len(page.facts), first + len(page.facts)
            total += page.total
        if not plain and first < total:
            more = command_line(Call("list", {"limit": total}))
            aside(f"{first} of {total}, the last fetched first. {more} lists all.")
        if not first:
            await say_where(stashes[0])

    with_every_stash(view.settings, work)


def _print_listed(view: View, artifacts: "Sequence[Facts]", tenant: str, first: int) -> None:
    """Print artifacts of one store, each with its tenant, the first with number ``first``."""
    screen = screen_of()
    if view.as_json:
        whose, left_out = ({"tenant": tenant} if tenant else {}), ("outline", "caching")
        rows = [replace(facts, outline=()).to_json() for facts in artifacts]
        print_objects([{k: r[k] for k in r if k not in left_out} | whose for r in rows])
    elif screen.is_terminal:
        click.echo("\n".join(_show.listed(screen, artifacts, first, tenant)))
    else:
        print_text("".join(f"{_show.plain_row(facts, tenant)}\n" for facts in artifacts))


@command("Keep artifacts for good, or delete them")
@_refs
@tenant_flag
@click.option("--unpin", is_flag=True, help="Let retention have them again.")
def pin(settings: Settings, words: Sequence[str], unpin: bool) -> int | None:
    """Keep artifacts whatever their age and however full the store is."""

    async def work(stash: "Stash", facts: "Facts") -> None:
        await stash.pin(facts.artifact_ref, pinned=not unpin)
        aside(f"{'Unpinned' if unpin else 'Pinned'} {_named(stash, facts)}.")

    return kept_each(settings, words, work)


@command("Keep artifacts for good, or delete them")
@_refs
@tenant_flag
def rm(settings: Settings, words: Sequence[str]) -> int | None:
    """Delete artifacts, and the bytes that no other shares."""

    async def work(stash: "Stash", facts: "Facts") -> None:
        await stash.delete(facts.artifact_ref)
        aside(f"Deleted {_named(stash, facts)}.")

    return kept_each(settings, words, work)


def _named(stash: "Stash", facts: "Facts") -> str:
    title, tenant = facts.title or facts.name, stash.settings.store.tenant
    name = short_ref(facts.artifact_ref) + (f" ({title})" if title else "")
    return f"{name} of {tenant}" if tenant else name


@command("Open the kept file in its own program", name="open")
@_refs
@tenant_flag
def open_(settings: Settings, words: Sequence[str]) -> int | None:
    """Open a read-only copy of the kept file in the program that this system has for it."""

    async def work(stash: "Stash", facts: "Facts") -> None:
        async with stash.raw(facts.artifact_ref) as path:
            aside(f"Opening {open_copy(facts, path)}")

    return kept_each(settings, words, work)


@command("Remove now what is too old or too much")
@click.option("--dry-run", is_flag=True, help="Say what would go and why, and remove nothing.")
@click.option("--orphans", is_flag=True, help="Remove bytes of a team's store without a row, too.")
@click.option("--older-than", type=Age(), metavar="AGE", default="1d", help="Of orphans; else 1d.")
@tenant_flag
@json_flag
def gc(settings: Settings, dry_run: bool, orphans: bool, older_than: int, as_json: bool) -> None:
    """Apply retention now: age, count, bytes, and what no artifact names.

    On the store of a service it does so for each tenant. Orphans are bytes that a database which
    was restored does not know.
    """
    from fetchstash.render import size  # noqa: PLC0415 - heavy

    async def work(stashes: "Sequence[Stash]") -> list[tuple[str, Removed]]:
        removed: list[tuple[str, Removed]] = []
        for stash in stashes:
            items = [*await stash.gc(dry_run=dry_run)]
            if orphans:
                async with open_whole(stash.settings.store) as store:
                    items += await store.remove_orphans(older_than, dry_run=dry_run)
            removed += [(stash.settings.store.tenant, item) for item in items]
        return removed

    with Meter("Cleaning up"):
        removed = with_every_stash(settings, work)
    if as_json:
        print_objects([asdict(item) | ({"tenant": t} if t else {}) for t, item in removed])
        return
    names = [] if all(not tenant for tenant, _ in removed) else [Column("tenant")]
    columns = Column("ref", least=7, style="reference"), Column("size", right=True), Column("why")
    rows = [
        [short_ref(item.artifact_ref), size(item.size_bytes), item.reason, *([tenant] * len(names))]
        for tenant, item in removed
    ]
    if rows:
        click.echo("\n".join(table(screen_of(), [*columns, *names], rows)))
    total = sum(item.size_bytes for _, item in removed)
    say(f"{len(removed)} {'would go' if dry_run else 'removed'}, {counted(total, 'byte')}.")


@command("Sum up what was fetched, by kind and host", shows=["all_runs"])
@click.option(
    "--plot", "plot_file", type=click.Path(path_type=Path), help="Draw it to this file, as SVG."
)
@tenant_flag
@json_flag
def stats(settings: Settings, plot_file: Path | None, as_json: bool) -> None:
    """Sum up what was fetched, by kind and host, the tokens kept out, and what each tool cost.

    Of a service it does so for each tenant.
    """
    from fetchstash.server.ui import plot, totals  # noqa: PLC0415 - heavy rooms
    from fetchstash.stash import logged_calls, replacing  # noqa: PLC0415 - as above

    async def work(stashes: "Sequence[Stash]") -> "list[tuple[Settings, Listing]]":
        listings = [
            (stash.settings, await stash.list(limit=stash.settings.store.max_artifacts))
            for stash in stashes
        ]
        if stashes and not any(listing.total for _, listing in listings):
            await say_where(stashes[0])
        return listings

    listings = with_every_stash(settings, work)
    # A call counts by the artifacts that it showed, whichever run it came from.
    calls = [list(logged_calls(own)) for own, _ in listings]
    if plot_file:
        every = [facts for _, listing in listings for facts in listing.facts]
        with replacing(plot_file) as file:
            file.write(plot(totals(every, [call for own in calls for call in own])).encode())
    for (own, listing), logged in zip(listings, calls, strict=True):
        if not own.store.tenant and not listing.total and len(listings) > 1:
            continue  # a service keeps nothing beside its tenants
        _print_stats(own, listing, logged, as_json=as_json)


def _print_stats(
    settings: Settings, listing: "Listing", calls: list[dict[str, Any]], *, as_json: bool
) -> None:
    """Print the sums of one store, and whose it is."""
    from fetchstash.server.ui import costs, origins, totals  # noqa: PLC0415 - heavy rooms

    sums, tenant = totals(listing.facts, calls), settings.store.tenant
    rows = _show.rows_of(listing.facts, origins(listing.facts, calls))
    shown = sums.shown if sums.calls else None
    run = with_run(settings.store).run
    tools = costs(call for call in calls if run in (ALL_RUNS, call.get("run")))["tool"]
    if as_json:
        whose = {"tenant": tenant} if tenant else {}
        print_objects([{**row, **whose} for row in _show.as_objects(rows, tools, shown)])
        return
    if tenant:
        click.echo(f"Tenant {tenant}:")
    for line in _show.printed(screen_of(), rows, tools, shown):
        click.echo(line)


COMMANDS = (ls, open_, pin, rm, gc, stats)
