"""Commands for a team: token."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from fetchstash.cli._options import json_flag
from fetchstash.cli._run import aside, command, print_objects, say
from fetchstash.cli._terminal import Column, table_or_tabs

if TYPE_CHECKING:
    from fetchstash.config import Settings
    from fetchstash.service.access import OwnTokens


T = TypeVar("T")


@command("Create a token and print it, once")
@click.option("--tenant", required=True, metavar="TENANT", help="Whose artifacts it opens.")
@click.option("--name", required=True, metavar="NAME", help="Who uses it, for lists and logs.")
@click.option("--days", type=int, default=90, show_default=True, help="Days until it expires.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="SCOPE",
    help="read: what is kept; fetch: everything. Without any it may do both.",
)
@json_flag
def create(
    settings: "Settings", tenant: str, name: str, days: int, scopes: Sequence[str], as_json: bool
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
def list_tokens(settings: "Settings", as_json: bool) -> None:
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
def revoke(settings: "Settings", ids: Sequence[str], every: bool, name: str, tenant: str) -> None:
    """Revoke tokens by their ids, or --all --of NAME. Within 30 s no server takes them any more."""
    from fetchstash.errors import BadArgument  # noqa: PLC0415 - heavy

    if every != bool(name) or every == bool(ids) or (tenant and not every):
        what = "revoke takes ids of tokens, or --all --of NAME."
        raise BadArgument(what, "fetchstash token list shows both.")

    async def work(own: "OwnTokens") -> None:
        named = [record.id for record in await own.of(name, tenant)] if every else ids
        if not named:
            raise BadArgument(f"There is no token of {name}.", "fetchstash token list shows all.")
        for token_id in named:
            record = await own.revoke(token_id)
            say(f"Revoked {record.id} ({record.name} of {record.tenant}).")
        if not settings.oauth.issuer and not await own.records():
            say("No token is left, and the service lets in nobody: fetchstash token create.")

    with_tokens(settings, work)


def with_tokens(settings: "Settings", work: "Callable[[OwnTokens], Awaitable[T]]") -> T:
    """Open the tokens in the store of the settings, do one thing, and close them."""
    import anyio  # noqa: PLC0415 - heavy: only where something is done

    from fetchstash.errors import BadArgument  # noqa: PLC0415 - as above
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


COMMANDS = (
    click.Group(
        "token",
        commands=[create, list_tokens, revoke],
        short_help="Create, list and revoke a team's tokens",
        help="""Create, list and revoke the tokens of a service that a team shares (serve --http).

        They lie in the store that the settings name: the one that the service uses.""",
    ),
)
