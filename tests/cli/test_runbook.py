"""The commands of docs/runbook.md, walked as whoever is called at night would."""

import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from fetchstash.store import StoreLimits
from tests.cli.terminal import Terminal
from tests.store.conftest import keep_as
from tests.store.postgres import server

pytestmark = pytest.mark.long

PAGE = Path(__file__).parents[2] / "docs" / "runbook.md"
COMMANDS = {
    " ".join(command.split())
    for command in re.findall(r"`(fetchstash (?!token`)[^`]+)`", PAGE.read_text(encoding="utf-8"))
}
BYTES_OF_A_STORE = ("raw", "text", "facts")
TWO_DAYS = 2 * 86_400

Run = Callable[..., str]


@pytest.fixture
def limits(service_store: StoreLimits, run: Terminal) -> StoreLimits:
    """Keep a text of each of two persons of acme."""
    run.env["FETCHSTASH_HTTP_AUDIT_LOG"] = str(run.folder / "audit.log")
    for name in ("ada", "bob"):
        run("token", "create", "--tenant", "acme", "--name", name)
        anyio.run(keep_as, service_store, "acme", name, f"of {name}")
    return service_store


@pytest.fixture
def walk(run: Terminal, limits: StoreLimits) -> Run:
    """Return what runs a command of the page, and gives what it says."""
    assert limits

    def one(command: str, code: int = 0) -> str:
        assert command in COMMANDS, "the page has it"
        values = {"audit.log": str(run.folder / "audit.log"), "N": "1"}
        done = run(*(values.get(word, word) for word in shlex.split(command)[1:]), code=code)
        return done.stdout + done.stderr

    return one


def restored(run: Terminal, limits: StoreLimits, backup: Path) -> StoreLimits:
    """Give the commands the store as of the backup, with the bytes of now."""
    now = limits.folder
    if limits.catalog:
        catalog = server().new_database()
        server().restore(catalog, backup)
        run.env["FETCHSTASH_STORE_CATALOG"] = catalog
        return StoreLimits(now, catalog=catalog, run="default")
    for name in BYTES_OF_A_STORE:
        place = backup / "tenants" / "acme" / name
        shutil.rmtree(place)
        shutil.copytree(now / "tenants" / "acme" / name, place)
    run.env["FETCHSTASH_STORE_FOLDER"] = str(backup)
    return StoreLimits(backup, run="default")


def test_a_database_that_is_lost_is_restored_by_the_page(
    run: Terminal, limits: StoreLimits, walk: Run
) -> None:
    assert walk("fetchstash token list").count("acme") == 2
    backup = run.folder / "backup"
    if limits.catalog:
        server().dump(limits.catalog, backup)
    else:
        shutil.copytree(limits.folder, backup)
    (of_bob,) = [row["id"] for row in run.data("token", "list") if row["name"] == "bob"]
    run("token", "revoke", of_bob)
    run("person", "delete", "ada", "--tenant", "acme", "--yes")
    anyio.run(keep_as, limits, "acme", "bob", "newer than the backup")
    place = restored(run, limits, backup)
    assert walk("fetchstash token list").count("acme") == 2, "the backup revives them"
    assert {row["title"] for row in run.data("ls")} == {"of ada", "of bob"}
    walk("fetchstash store replay audit.log --yes")
    assert "acme" not in walk("fetchstash token list")
    assert [row["title"] for row in run.data("ls")] == ["of bob"]
    said = walk("fetchstash doctor", code=3)
    if limits.catalog:
        assert "have no row" in said
        for name in ("raw", "text"):
            for path in (place.folder / "tenants" / "acme" / name).iterdir():
                before = path.stat().st_mtime - TWO_DAYS
                os.utime(path, (before, before))
        assert " removed" in walk("fetchstash gc --orphans")
        titles = ["of bob"]
    else:
        walk("fetchstash doctor --repair")
        titles = ["newer than the backup", "of bob"]
    assert "All is well." in walk("fetchstash doctor")
    assert sorted(row["title"] for row in run.data("ls")) == titles


def test_bytes_that_went_since_the_backup_are_named_and_their_artifacts_removed(
    run: Terminal, limits: StoreLimits, walk: Run
) -> None:
    for path in (limits.folder / "tenants" / "acme" / "text").iterdir():
        if path.read_text(encoding="utf-8") == "of ada\n":
            path.unlink()
    assert "store of the tenant acme" in walk("fetchstash doctor", code=3)
    walk("fetchstash doctor --repair")
    assert "All is well." in walk("fetchstash doctor")
    assert [row["title"] for row in run.data("ls")] == ["of bob"]


def test_what_takes_room_is_shown_and_removed(
    run: Terminal, limits: StoreLimits, walk: Run
) -> None:
    assert limits
    assert "Tenant acme:" in walk("fetchstash stats")
    assert "0 removed" in walk("fetchstash gc")
    assert "2 removed" in walk("fetchstash gc --max-total-bytes N")
    assert run.data("ls") == []


def test_each_command_of_the_page_is_walked() -> None:
    walked = set(re.findall(r'walk\(\s*"(fetchstash [^"]+)"', Path(__file__).read_text("utf-8")))
    assert walked == COMMANDS
