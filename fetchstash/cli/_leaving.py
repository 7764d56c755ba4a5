"""Commands that move or delete what is stored: store copy, tenant and person."""

import json
import math
import os
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from fetchstash.cli._operating import note_audit, with_tokens
from fetchstash.cli._options import json_flag
from fetchstash.cli._progress import Meter
from fetchstash.cli._run import FAILED, command, print_objects, say
from fetchstash.cli._terminal import screen_of
from fetchstash.config import Settings, load
from fetchstash.errors import BadArgument, UnknownRef
from fetchstash.store import (
    ALL_RUNS,
    CLEANED,
    StoreLimits,
    is_shared,
    open_objects,
    open_whole,
    person_run,
    store_of_tenant,
    tenants_of,
)
from fetchstash.text import counted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from fetchstash.service.access import OwnTokens, TokenRecord
    from fetchstash.store import Copied, Progress

T = TypeVar("T")

_TOLD_SECONDS = 10.0
"""Between two lines of how far a copy is, where no terminal shows it."""

_yes = click.option("--yes", is_flag=True, help="Do it. Without this it says what would go.")
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
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
    """Resolve a PLACE argument to a store, its tenant, and the run of a person."""
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

    told_at, is_terminal = time.monotonic(), screen_of("stderr").is_terminal

    def report(done: int, total: int | None) -> None:
        nonlocal told_at
        shown(done, total)
        if not is_terminal and time.monotonic() - told_at >= _TOLD_SECONDS:
            told_at = time.monotonic()
            say(f"{doing}: {done:,} of {counted(total or done, 'artifact')}.")

    with Meter(doing) as meter:
        shown = meter.download("artifacts", local=True).read
        return anyio.run(work, report)


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
    leaving = _Leaving(settings, _checked(tenant))
    tokens = leaving.tokens()
    has_store = _has_store(settings, tenant, len(tokens))
    if yes:
        note_audit(settings, "tenant_deleted", tenant=tenant)
    leaving.revoke(tokens if yes else ())
    kept = leaving.artifacts(yes=yes) if has_store else 0
    return _said(settings, len(tokens), kept, tenant, yes=yes)


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

    NAME is that of the tokens, and of oauth.principal_claim where there is a provider.
    """
    leaving = _Leaving(settings, _checked(tenant), name)
    tokens = leaving.tokens()
    has_store = _has_store(settings, tenant, len(tokens))
    if yes:
        note_audit(settings, "person_deleted", tenant=tenant, name=name)
    leaving.revoke(tokens if yes else ())
    kept = leaving.artifacts(yes=yes) if has_store else 0
    return _said(settings, len(tokens), kept, f"{name} of {tenant}", yes=yes)


@command("Do again what the audit log says was revoked and deleted", example="audit.log --yes")
@click.argument("logs", nargs=-1, required=True, metavar="AUDIT_LOG...", type=_FILE)
@_yes
def replay(settings: Settings, logs: "Sequence[Path]", yes: bool) -> int | None:
    """Revoke and delete again, in a store that was restored, what the audit log says.

    A backup revives tokens that were revoked and persons who were deleted since. Only what is older
    than a line goes: who came back later stays.
    """
    tokens = kept = 0
    for at, event, line in _deletions(logs):
        leaving = _Leaving(settings, line["tenant"], line.get("name", ""), at)
        known = leaving.tokens(line.get("revoked", ""))
        leaving.revoke(known if yes else ())
        tokens += len(known)
        if event != "token_revoked" and line["tenant"] in _tenants(settings):
            kept += leaving.artifacts(yes=yes)
    return _said(settings, tokens, kept, "what the log names", yes=yes)


_DELETIONS = ("token_revoked", "person_deleted", "tenant_deleted")


def _deletions(logs: "Sequence[Path]") -> "Iterator[tuple[float, str, dict[str, str]]]":
    """Read from audit logs what was revoked and deleted, and when. Raises BadArgument."""
    for path in logs:
        with path.open(encoding="utf-8", errors="replace") as file:
            for number, text in enumerate(file, start=1):
                if not any(event in text for event in _DELETIONS):
                    continue
                try:
                    line = json.loads(text)
                    at, event = datetime.fromisoformat(line["time"]).timestamp(), line["event"]
                    _checked(line["tenant"])
                except (KeyError, TypeError, ValueError):
                    what = f"Line {number} of {path} is no line of an audit log."
                    raise BadArgument(what, "Name files of http.audit_log.") from None
                if event in _DELETIONS:
                    yield at, event, line


class _Leaving:
    """A tenant to delete, or a person of it; only what is older than ``before`` is deleted."""

    def __init__(
        self, settings: Settings, tenant: str, name: str = "", before: float = math.inf
    ) -> None:
        self._settings, self._tenant, self._name, self._before = settings, tenant, name, before
        self._own = settings.for_tenant(tenant)
        issuers = ("", settings.oauth.issuer)
        self._runs = {person_run(name, issuer) for issuer in issuers} if name else {ALL_RUNS}

    def tokens(self, token_id: str = "") -> "list[TokenRecord]":
        """Return the tokens of the tenant or the person, or the one with this id."""

        async def work(own: "OwnTokens") -> "list[TokenRecord]":
            records = await own.of(self._name, self._tenant)
            created = [datetime.fromisoformat(record.created).timestamp() for record in records]
            return [
                record
                for record, at in zip(records, created, strict=True)
                if at < self._before and token_id in ("", record.id)
            ]

        return with_tokens(self._settings, work)

    def revoke(self, records: "Sequence[TokenRecord]") -> None:
        """Revoke tokens."""
        if not records:
            return

        async def work(own: "OwnTokens") -> None:
            for record in records:
                await own.revoke(record.id)

        with_tokens(self._settings, work)

    def artifacts(self, *, yes: bool) -> int:
        """Count the artifacts to delete; with ``yes`` delete them, and what is logged of them."""
        return _run("Deleting", lambda _: self._artifacts(yes=yes))

    async def _artifacts(self, *, yes: bool) -> int:
        from fetchstash.service import remove_logs  # noqa: PLC0415 - heavy

        kept = 0
        for run in self._runs:
            async with open_whole(self._own.store, run) as store:
                refs = await store.refs(before=self._before)
                kept += len(refs)
                if yes and not self._name and len(refs) == len(await store.refs()):
                    await store.remove()
                    remove_logs(self._own)
                    continue
                for ref in refs if yes else ():
                    try:
                        await store.delete(ref)
                    except UnknownRef:  # it went meanwhile
                        kept -= 1
                if yes:
                    await store.clean_up()
        if yes:
            self._forget_calls()
            await self._tell_replicas()
        return kept

    def _forget_calls(self) -> None:
        from fetchstash.stash import log_of  # noqa: PLC0415 - heavy

        before = datetime.fromtimestamp(min(self._before, time.time()), UTC).isoformat()
        if self._name and (log := log_of(self._own)):
            log.forget(
                lambda call: call.get("run") in self._runs and call.get("time", "") <= before
            )

    async def _tell_replicas(self) -> None:
        """Tell each replica to remove the tenant's copies from its local cache."""
        objects = await open_objects(self._settings.store)
        await objects.counts.note(CLEANED, self._tenant)
        await objects.aclose()


def _tenants(settings: Settings) -> list[str]:
    import anyio  # noqa: PLC0415 - heavy

    return anyio.run(tenants_of, settings.store)


def _has_store(settings: Settings, tenant: str, tokens: int = 0) -> bool:
    """Return whether a tenant has a store. Raises BadArgument where it has neither that nor tokens.

    Who was given ``tokens`` and never used them keeps nothing yet.
    """
    names = _tenants(settings)
    if _checked(tenant) in names or tokens:
        return tenant in names
    what = f"The tenant {tenant} keeps nothing here."
    raise BadArgument(what, f"There are {', '.join(names)}." if names else "No tenant does.")


def _said(settings: Settings, tokens: int, kept: int, whose: str, *, yes: bool) -> int | None:
    """Print what was deleted, what stays for a while, and what stays by design."""
    what = f"{counted(tokens, 'token')} and {counted(kept, 'artifact')} of {whose}"
    if not yes:
        say(f"This would delete {what}. Add --yes to do it.")
        return FAILED
    say(f"Deleted {what}.")
    if is_shared(settings.store) and kept:
        say(
            "Copies on replicas go within seconds, the bytes in the store at the first clean-up "
            "in an hour or later: within two hours while a service runs, or by fetchstash gc."
        )
    say("The audit log, the log of requests and backups keep lines until you remove those.")
    return None


def _group(name: str, help_text: str, *commands: click.Command) -> click.Group:
    """Return a group; the list of commands has one row for all of them."""
    short_help = "Copy, export or delete what is kept"
    return click.Group(name, commands=list(commands), short_help=short_help, help=help_text)


COMMANDS: "Sequence[click.Command]" = (
    _group("tenant", "Export or delete what a tenant keeps.", export, delete_tenant),
    _group("person", "Delete what a person of a tenant keeps.", delete_person),
    _group("store", "Copy a store, or delete anew after a restore.", copy, replay),
)
