"""Commands for who moves or leaves: store copy, tenant export and delete, person delete."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from fetchstash.cli._operating import with_tokens
from fetchstash.cli._options import json_flag
from fetchstash.cli._progress import Meter
from fetchstash.cli._run import FAILED, command, print_objects, say
from fetchstash.config import Settings, load
from fetchstash.errors import BadArgument, UnknownRef
from fetchstash.store import ALL_RUNS, StoreLimits, person_run, store_of_tenant
from fetchstash.text import counted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from fetchstash.store import Copied, Progress

T = TypeVar("T")

_yes = click.option("--yes", is_flag=True, help="Do it. Without this it says what would go.")
_tenant = click.option("--tenant", required=True, metavar="TENANT", help="Whose person it is.")


@command(
    "Copy a store into another: SETTINGS.toml or FOLDER[#TENANT[/PERSON]]",
    example="~/.local/share/fetchstash team.toml#acme/ada",
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@json_flag
def copy(settings: Settings, source: str, target: str, as_json: bool) -> int | None:
    """Copy a store into another one: references, pins, dates and URLs stay as they are.

    FROM and TO are a settings file (.toml) or a folder, which stand for all that a service keeps:
    its store, those of its tenants, and tokens. PLACE#TENANT is the store of one tenant,
    PLACE#TENANT/PERSON what one person of it keeps. A copy that was cut short goes on.
    """
    from fetchstash.store import copy_service, copy_store  # noqa: PLC0415 - heavy

    one, of_one, run = _place(settings, source)
    if not (one.url or one.folder.is_dir()):  # a wrong word would be an empty store
        raise BadArgument(f"There is no folder {one.folder}.", "Name the store to copy from.")
    other, of_other, into = _place(settings, target)
    if one == other and (of_one, run) == (of_other, into):
        raise BadArgument("FROM and TO are the same store.", "Name another one.")

    async def work(read: "Progress") -> "Copied":
        if not (of_one or of_other or run or into):
            return await copy_service(one, other, read)
        limits = _of_tenant(one, of_one), _of_tenant(other, of_other)
        return await copy_store(*limits, read, run=run or ALL_RUNS, into=into)

    return _told(_run("Copying", work), as_json)


def _told(done: "Copied", as_json: bool) -> int | None:
    if as_json:
        print_objects([{"copied": done.copied, "there": done.there, "lost": done.lost}])
    else:
        say(f"{counted(done.copied, 'artifact')} copied, {done.there:,} were there already.")
    if done.lost:
        say(f"{done.lost:,} were left out: their bytes are lost. fetchstash doctor names them.")
    return FAILED if done.lost else None


def _place(settings: Settings, word: str) -> tuple[StoreLimits, str, str]:
    """Return the store that a word names, its tenant, and the run of its person."""
    name, _, rest = (word, "", "") if Path(word).exists() else word.partition("#")
    tenant, _, person = rest.partition("/")
    place = Path(name).expanduser()
    if place.suffix == ".toml":
        if not place.is_file():
            raise BadArgument(f"There is no settings file {name}.", "Name one, or a folder.")
        settings = load({}, os.environ, place)
    elif "://" in name:
        what = f"{name[:80]} is an address, and no folder or settings file."
        raise BadArgument(what, "Name a settings file with it as store.url, and store.catalog.")
    else:
        limits = replace(settings.store, folder=place.resolve(), url="", catalog="")
        settings = replace(settings, store=limits)
    run = person_run(person, settings.oauth.issuer) if person else ""
    return settings.store, tenant, run


def _of_tenant(limits: StoreLimits, tenant: str) -> StoreLimits:
    return store_of_tenant(limits, _checked(tenant)) if tenant else limits


def _checked(tenant: str) -> str:
    from fetchstash.service.access import is_tenant  # noqa: PLC0415 - as above

    if not is_tenant(tenant):
        what = f"{tenant[:80]!r} is no name of a tenant."
        raise BadArgument(what, "Take a-z, 0-9 and -, at most 63, the first no -.")
    return tenant


def _run(doing: str, work: "Callable[[Progress], Awaitable[T]]") -> T:
    import anyio  # noqa: PLC0415 - heavy

    with Meter(doing) as meter:
        return anyio.run(work, meter.download("artifacts", local=True).read)


@command("Copy what a tenant keeps into a folder", example="research ./research")
@click.argument("tenant", metavar="TENANT")
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@json_flag
def export(settings: Settings, tenant: str, folder: Path, as_json: bool) -> int | None:
    """Copy all that a tenant keeps into a folder, which is a store: --folder FOLDER reads it."""
    from fetchstash.store import copy_store  # noqa: PLC0415 - heavy

    _has_store(settings, tenant)  # raises where there is none
    own = settings.for_tenant(tenant).store
    target = replace(own, folder=folder.resolve(), url="", catalog="", tenant="")
    return _told(_run("Exporting", lambda read: copy_store(own, target, read)), as_json)


@command("Delete a tenant: its tokens, artifacts and logs", name="delete")
@click.argument("tenant", metavar="TENANT")
@_yes
def delete_tenant(settings: Settings, tenant: str, yes: bool) -> int | None:
    """Delete a tenant: its tokens, artifacts and logs of calls and events. The audit log stays.

    An identity provider may still name it: remove it there, too.
    """
    from fetchstash.store import open_whole  # noqa: PLC0415 - heavy

    own = settings.for_tenant(_checked(tenant))

    async def work(_: "Progress") -> int:
        async with open_whole(own.store) as store:
            kept = (await store.usage()).artifacts
            if yes:
                await store.remove()
        return kept

    tokens = _revoke(settings, tenant, "", yes=yes)
    kept = _run("Deleting", work) if _has_store(settings, tenant, tokens) else 0
    if yes and own.telemetry.event_log:
        log = Path(own.telemetry.event_log)
        for path in log.parent.glob(f"{log.name}*"):
            path.unlink()
    return _said(tokens, kept, tenant, yes=yes)


@command(
    "Delete a person: the tokens, artifacts and calls",
    name="delete",
    example="ada --tenant research --yes",
)
@click.argument("name", metavar="NAME")
@_tenant
@_yes
def delete_person(settings: Settings, name: str, tenant: str, yes: bool) -> int | None:
    """Delete a person of a tenant: tokens, artifacts, pinned ones too, and logged calls.

    NAME is that of the tokens, and of oauth.principal_claim where there is a provider. In a team's
    store the bytes go within the hour.
    """
    from fetchstash.stash import log_of  # noqa: PLC0415 - as above
    from fetchstash.store import open_whole  # noqa: PLC0415 - as above

    own = settings.for_tenant(_checked(tenant))
    runs = {person_run(name, issuer) for issuer in ("", settings.oauth.issuer)}

    async def work(_: "Progress") -> int:
        kept = 0
        for run in runs:
            async with open_whole(own.store, run) as store:
                refs = await store.refs()
                kept += len(refs)
                for ref in refs if yes else ():
                    try:
                        await store.delete(ref)
                    except UnknownRef:  # it went meanwhile
                        kept -= 1
        return kept

    tokens = _revoke(settings, tenant, name, yes=yes)
    kept = _run("Deleting", work) if _has_store(settings, tenant, tokens) else 0
    if yes and (log := log_of(own)):
        log.forget(lambda call: call.get("run") in runs)
    return _said(tokens, kept, f"{name} of {tenant}", yes=yes)


def _has_store(settings: Settings, tenant: str, tokens: int = 0) -> bool:
    """Return whether a tenant has a store. Raises BadArgument where it has neither that nor tokens.

    Who was given ``tokens`` and never used them keeps nothing yet.
    """
    import anyio  # noqa: PLC0415 - heavy

    from fetchstash.store import tenants_of  # noqa: PLC0415 - as above

    names = anyio.run(tenants_of, settings.store)
    if _checked(tenant) in names or tokens:
        return tenant in names
    what = f"The tenant {tenant} keeps nothing here."
    raise BadArgument(what, f"There are {', '.join(names)}." if names else "No tenant does.")


def _revoke(settings: Settings, tenant: str, name: str, *, yes: bool) -> int:
    """Revoke the tokens of a tenant, or of one name of it; return how many there are."""
    from fetchstash.service.access import OwnTokens  # noqa: PLC0415 - heavy

    async def work(own: OwnTokens) -> int:
        records = await own.of(name, tenant)
        for record in records if yes else ():
            await own.revoke(record.id)
        return len(records)

    return with_tokens(settings, work)


def _said(tokens: int, kept: int, whose: str, *, yes: bool) -> int | None:
    what = f"{counted(tokens, 'token')} and {counted(kept, 'artifact')} of {whose}"
    say(f"Deleted {what}." if yes else f"This would delete {what}. Add --yes to do it.")
    return None if yes else FAILED


def _group(name: str, help_text: str, *commands: click.Command) -> click.Group:
    """Return a group; the list of commands has one row for all of them."""
    short_help = "Copy, export or delete what is kept"
    return click.Group(name, commands=list(commands), short_help=short_help, help=help_text)


COMMANDS: "Sequence[click.Command]" = (
    _group("tenant", "Export or delete what a tenant keeps.", export, delete_tenant),
    _group("person", "Delete what a person of a tenant keeps.", delete_person),
    _group("store", "Copy a store into another one.", copy),
)
