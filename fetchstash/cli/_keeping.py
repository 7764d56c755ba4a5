"""Commands for what is kept: ls, pin, rm, gc, stats."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from fetchstash.cli._run import (
    command,
    json_flag,
    print_objects,
    say,
    show,
    view_for_terminal,
    with_stash,
)

if TYPE_CHECKING:
    from fetchstash.config import Settings
    from fetchstash.stash import Stash


@click.command()
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Artifacts to list.",
)
@json_flag
@command
def ls(settings: "Settings", limit: int, as_json: bool) -> None:
    """List the run's artifacts, newest first."""
    listing = with_stash(settings, lambda stash: stash.list(limit=limit))
    show(view_for_terminal(settings, listing), as_json=as_json)


@click.command()
@click.argument("refs", nargs=-1, required=True, metavar="REF...")
@click.option("--unpin", is_flag=True, help="Let retention have them again.")
@command
def pin(settings: "Settings", refs: Sequence[str], unpin: bool) -> None:
    """Keep artifacts whatever their age and however full the store is."""

    async def work(stash: "Stash") -> None:
        for ref in refs:
            await stash.pin(ref, pinned=not unpin)

    with_stash(settings, work)


@click.command()
@click.argument("refs", nargs=-1, required=True, metavar="REF...")
@command
def rm(settings: "Settings", refs: Sequence[str]) -> None:
    """Delete artifacts, and the bytes that no other shares."""

    async def work(stash: "Stash") -> None:
        for ref in refs:
            await stash.delete(ref)

    with_stash(settings, work)


@click.command()
@click.option("--dry-run", is_flag=True, help="Say what would go and why, and remove nothing.")
@json_flag
@command
def gc(settings: "Settings", dry_run: bool, as_json: bool) -> None:
    """Apply retention now: age, count, bytes, and what no artifact names."""
    removed = with_stash(settings, lambda stash: stash.gc(dry_run=dry_run))
    if as_json:
        print_objects([asdict(item) for item in removed])
        return
    for item in removed:
        click.echo(f"{item.artifact_ref}  {item.size_bytes:>12,}  {item.reason}")
    total = sum(item.size_bytes for item in removed)
    say(f"{len(removed)} {'would go' if dry_run else 'removed'}, {total:,} bytes.")


@click.command()
@json_flag
@command
def stats(settings: "Settings", as_json: bool) -> None:
    """Sum up what was fetched, by kind and host, and the tokens kept out of the context."""
    from fetchstash.cli import _stats  # noqa: PLC0415 - the room is heavy

    listing = with_stash(settings, lambda stash: stash.list(limit=settings.store.max_artifacts))
    rows, shown = _stats.rows_of(listing.facts), _stats.shown_tokens(settings.telemetry.event_log)
    if as_json:
        print_objects(_stats.as_objects(rows, shown))
    else:
        for line in _stats.printed(rows, shown):
            click.echo(line)


COMMANDS = (ls, pin, rm, gc, stats)
