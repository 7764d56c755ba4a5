"""Commands for whoever runs it: config, doctor, demo, register, ui, token."""

import shlex
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import click

from fetchstash.cli._options import Count, json_flag
from fetchstash.cli._progress import Meter
from fetchstash.cli._run import (
    FAILED,
    aside,
    command,
    failed,
    in_this_folder,
    print_objects,
    say,
    tenant_flag,
)
from fetchstash.cli._terminal import Column, safe_line, screen_of, table_or_tabs
from fetchstash.cli._words import as_command
from fetchstash.cli.hosts._servers import HOSTS, Environment, Host
from fetchstash.config import KEYS, Settings, example_file, toml_value
from fetchstash.errors import BadArgument, FetchstashError

if TYPE_CHECKING:
    from fetchstash.service.access import OwnTokens, TokenRecord


@command("Print the settings and where each came from")
@click.option(
    "--example",
    is_flag=True,
    help="Print a settings file with every setting, its default and its meaning.",
)
@json_flag
def config(settings: Settings, example: bool, as_json: bool) -> None:
    """Print each setting's value and where it came from."""
    from fetchstash.fetch import mask_url  # noqa: PLC0415 - heavy

    if example:
        click.echo(example_file(), nl=False)
        return
    shown = {**settings.values, "fetch.proxy": mask_url(settings.fetch.proxy)}
    rows = tuple(
        {"key": path, "value": shown[path], "origin": settings.origins[path]} for path in KEYS
    )
    if as_json:
        print_objects(rows)
        return
    texts = [(path, toml_value(shown[path]), settings.origins[path]) for path in KEYS]
    columns = (Column("setting"), Column("value", least=8), Column("from", 8, from_width=70))
    click.echo("\n".join(table_or_tabs(columns, texts)))


@command("Examine the installation and the store")
@click.option(
    "--repair",
    is_flag=True,
    help="Mend what can be mended in the store; what is lost for good is removed.",
)
@tenant_flag
@json_flag
def doctor(settings: Settings, repair: bool, as_json: bool) -> int | None:
    """Examine the installation and the store; the exit code says whether all is well.

    The store of a service is examined with those of its tenants.
    """
    import anyio  # noqa: PLC0415 - heavy

    from fetchstash.cli._doctor import conclusion, examine  # noqa: PLC0415 - as above

    with Meter("Examining"):
        diagnoses = anyio.run(partial(examine, settings, repair=repair))
    if as_json:
        print_objects([asdict(diagnosis) for diagnosis in diagnoses])
    else:
        screen = screen_of()
        for diagnosis in diagnoses:
            step = diagnosis.next_step
            what = f"{diagnosis.what.removesuffix('.')}. {step}" if step else diagnosis.what
            text = safe_line(what)
            if screen.is_terminal:
                hang = " " * 9
                text = click.wrap_text(text, screen.width, hang, hang).lstrip()
            style = "key" if diagnosis.level == "ok" else "warning"
            click.echo(f"{screen.style(f'{diagnosis.level:<7}', style)}  {text}")
        click.echo(safe_line(conclusion(diagnoses)))
    return FAILED if any(item.level in ("warning", "fault") for item in diagnoses) else None


@command("See what a model sees, on a site of its own", settings=False)
def demo() -> int:
    """Show what a model sees and what each call costs, on a small site of its own."""
    from fetchstash.cli.demo._tour import run  # noqa: PLC0415 - imports mcp

    return run()


@command("Add fetchstash to a host, or take it out", settings=False)
@click.argument("host", metavar="[HOST]", type=click.Choice(list(HOSTS)), required=False)
@click.option("--print", "print_only", is_flag=True, help="Show what would be added; add nothing.")
@click.option("--remove", is_flag=True, help="Take fetchstash out again.")
@click.option("--browser", is_flag=True, help="Have pages of scripts rendered; install what does.")
@click.option("--wrap", is_flag=True, help="Put its other servers behind fetchstash.")
@click.option("--unwrap", is_flag=True, help="Bring them back as they were.")
@click.option("--each", is_flag=True, help="With --wrap: a gateway for each, not one for all.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
def register(
    host: str | None,
    names: tuple[str, ...],
    print_only: bool,
    remove: bool,
    browser: bool,
    wrap: bool,
    unwrap: bool,
    each: bool,
) -> int | None:
    """Add this fetchstash to a host's servers; all else there stays.

    HOST is claude-code, codex, gemini, claude-desktop, cursor, vscode, windsurf or zed. Without
    one, each host on this machine is offered in turn.

    The file is backed up before it is changed. Claude Code, Codex and Gemini CLI have a command of
    their own for it, which is run.
    """
    from fetchstash.cli.hosts import _register, _wrap  # noqa: PLC0415 - heavy

    start, env = _register.start_command(browser=browser), Environment()
    if print_only + remove + wrap + unwrap > 1 or (browser and (remove or wrap or unwrap)):
        raise BadArgument("Several of these options exclude each other.", "Give one of them.")
    if each and not wrap:
        raise BadArgument("--each goes with --wrap.", "Add it.")
    if names and not (wrap or unwrap):
        raise BadArgument("Names of servers go with --wrap or --unwrap.", "Add one of them.")
    if browser and not print_only:
        for line in _register.add_browser(start):
            say(line)

    def change(target: Host) -> None:
        if wrap:
            done = _wrap.wrap(target, names, start, env, each=each)
        elif unwrap:
            done = _wrap.unwrap(target, names, env)
        elif remove:
            done = _register.unregister(target, env)
        elif print_only:
            if not target.program:
                say(f"In {target.file(env)}:")
            done = _register.shown(target, start)
        else:
            done = _register.register(target, start, env)
        click.echo(done)

    if host:
        change(HOSTS[host])
        return None
    flags = (
        ("--print", print_only),
        ("--remove", remove),
        ("--browser", browser),
        ("--wrap", wrap),
        ("--unwrap", unwrap),
        ("--each", each),
    )
    options = [flag for flag, is_set in flags if is_set]
    found = [target for target in HOSTS.values() if target.is_here(env)]
    if not found:
        raise BadArgument("No host was found on this machine.", f"Name one: {', '.join(HOSTS)}.")
    if not (print_only or screen_of("stdin").is_terminal):
        say("Nothing was changed, for nobody can be asked here. These hosts are on this machine:")
        for target in found:
            program = _register.start_command()[:-1]
            click.echo(shlex.join([*program, "register", target.name, *options]))
        return None
    code = None
    for target in found:
        line = " ".join(["register", target.name, *options])
        try:
            if print_only or click.confirm(f"{target.title}: {line}?", default=True, err=True):
                change(target)
        except FetchstashError as error:
            code = failed(error, target.title)
    return code


@command("Look at what is kept, in a browser")
@click.option("--port", type=Count(0, 65_535), metavar="N", default=0, help="0: any free one.")
@click.option("--no-browser", is_flag=True, help="Only print the link.")
def ui(settings: Settings, port: int, no_browser: bool) -> None:
    """Show what agents fetched and what they were shown of it. The link opens one browser, once."""
    import webbrowser  # noqa: PLC0415 - only where it is needed

    import anyio  # noqa: PLC0415 - heavy

    from fetchstash.cli._keeping import open_copy  # noqa: PLC0415 - only where it is needed
    from fetchstash.server.ui import Person, ViewServer  # noqa: PLC0415 - imports a web server

    settings = in_this_folder(settings)

    async def serve() -> None:
        person = Person(as_command, open_copy)
        async with ViewServer.open(settings, port=port, person=person) as server:
            click.echo(server.link)
            if not (no_browser or await anyio.to_thread.run_sync(webbrowser.open, server.link)):
                say("No browser could be started. Open the link yourself.")
            aside("Ctrl-C ends it.")
            await server.wait()

    anyio.run(serve)


T = TypeVar("T")


@command("Create a token and print it, once", example="--tenant research --name ada --days 30")
@click.option("--tenant", required=True, metavar="TENANT", help="Whose artifacts it opens.")
@click.option("--name", required=True, metavar="NAME", help="Who uses it, for lists and logs.")
@click.option("--days", type=int, metavar="N", default=90, help="Days until it expires; else 90.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="SCOPE",
    help="read: what is kept; fetch: everything. Without any it may do both.",
)
@json_flag
def create(
    settings: Settings, tenant: str, name: str, days: int, scopes: Sequence[str], as_json: bool
) -> None:
    """Create a token and print it. It is shown this once, and kept as a hash alone."""
    from fetchstash.service.access import SCOPES  # noqa: PLC0415 - heavy

    made = with_tokens(settings, lambda own: own.create(tenant, name, days, scopes or SCOPES))
    if settings.tenants and tenant not in settings.tenants:
        say(f"The settings file has no [tenants.{tenant}]: it gets the settings of all.")
    if as_json:
        print_objects([{"token": made.text, **made.record.listed()}])
        return
    click.echo(made.text)
    aside(f"Copy it now: it is not shown again. It expires on {made.record.expires[:10]}.")


@command("List the tokens, the oldest first", name="list")
@json_flag
def list_tokens(settings: Settings, as_json: bool) -> None:
    """List the tokens that are not revoked, the oldest first. What they are is not shown."""
    records = with_tokens(settings, lambda own: own.records())
    if as_json:
        print_objects([record.listed() for record in records])
        return
    columns = (
        Column("id"),
        Column("tenant", least=6),
        Column("name", least=6),
        Column("scopes"),
        Column("created", from_width=70),
        Column("expires"),
    )
    rows = [
        (r.id, r.tenant, r.name, ",".join(r.scopes), r.created[:10], r.expires[:10])
        for r in records
    ]
    if lines := table_or_tabs(columns, rows):
        click.echo("\n".join(lines))
    if not rows:
        aside("There are no tokens: fetchstash token create makes one.")


@command("Revoke tokens by their ids, or all of one name")
@click.argument("ids", nargs=-1, metavar="ID...")
@click.option("--all", "every", is_flag=True, help="Revoke all tokens --of NAME.")
@click.option("--of", "name", default="", metavar="NAME", help="Whose tokens --all revokes.")
@click.option("--tenant", default="", metavar="TENANT", help="Of this tenant alone.")
def revoke(settings: Settings, ids: Sequence[str], every: bool, name: str, tenant: str) -> None:
    """Revoke tokens by their ids, or --all --of NAME. Within 30 s no server takes them any more."""
    if every != bool(name) or every == bool(ids) or (tenant and not every):
        what = "revoke takes ids of tokens, or --all --of NAME."
        raise BadArgument(what, "fetchstash token list shows both.")

    async def work(own: "OwnTokens") -> None:
        named = [record.id for record in await own.of(name, tenant)] if every else ids
        if not named:
            raise BadArgument(f"There is no token of {name}.", "fetchstash token list shows all.")
        records = {record.id: record for record in await own.records()}
        for token_id in named:
            if record := records.get(token_id):
                note_audit(settings, "token_revoked", **token_facts(record))
            record = await own.revoke(token_id)
            say(f"Revoked {record.id} ({record.name} of {record.tenant}).")
        if not settings.oauth.issuer and not await own.records():
            say("No token is left, and the service lets in nobody: fetchstash token create.")

    with_tokens(settings, work)


def note_audit(settings: Settings, event: str, **facts: str) -> None:
    """Write a line to the audit log of a service, if it has a file. Raises StoreError."""
    from fetchstash.service import AuditLog  # noqa: PLC0415 - heavy

    if settings.http.audit_log:
        AuditLog.of(settings.http.audit_log, begins=False).operator(event, **facts)


def token_facts(record: "TokenRecord") -> dict[str, str]:
    """Return what the audit log says of a token."""
    return {"revoked": record.id, "tenant": record.tenant, "name": record.name}


def with_tokens(settings: Settings, work: "Callable[[OwnTokens], Awaitable[T]]") -> T:
    """Open the tokens in the store of the settings, do one thing, and close them."""
    import anyio  # noqa: PLC0415 - heavy: only where something is done

    from fetchstash.service.access import OwnTokens  # noqa: PLC0415 - as above
    from fetchstash.store import MemoryObjects, open_objects  # noqa: PLC0415 - as above

    async def run() -> T:
        objects = await open_objects(settings.store)
        try:
            if isinstance(objects, MemoryObjects):
                what = "store.url is memory:, which keeps no token."
                raise BadArgument(what, "Set store.url or store.folder to that of the service.")
            return await work(OwnTokens(objects))
        finally:
            await objects.aclose()

    return anyio.run(run)


token = click.Group(
    "token",
    commands=[create, list_tokens, revoke],
    short_help="Create, list and revoke a team's tokens",
    help="""Create, list and revoke the tokens of a service that a team shares (serve --http).

    They lie in the store that the settings name: the one that the service uses.""",
)

COMMANDS = (config, doctor, demo, token)
