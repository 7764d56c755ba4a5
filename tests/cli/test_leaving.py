"""The commands ``store copy``, ``tenant export`` and ``delete``, ``person delete``."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner

from fetchstash.cli import _leaving, commands
from fetchstash.service.access import OwnTokens
from fetchstash.store import (
    Facts,
    StoreLimits,
    open_objects,
    open_store,
    person_run,
    store_of_tenant,
    tenants_of,
)
from tests.cli.terminal import Terminal, plain
from tests.loopback import Site
from tests.service.access.provider import AUDIENCE, Provider
from tests.store.buckets import every_bucket_is, new_objects
from tests.store.conftest import keep_as, put_into
from tests.store.postgres import server

pytestmark = pytest.mark.long


@pytest.fixture
def limits(service_store: StoreLimits, run: Terminal) -> StoreLimits:
    """Keep a document of each of two persons of two tenants."""
    limits, folder = service_store, service_store.folder
    run.env["FETCHSTASH_TELEMETRY_EVENT_LOG"] = str(folder.parent / "events.jsonl")

    async def fill() -> None:
        pairs = [(name, who) for name in ("acme", "globex") for who in ("ada", "ada", "bob")]
        await _make_tokens(limits, pairs)
        for name in ("acme", "globex"):
            for person in ("ada", "bob"):
                document = {"text": b"words\n" * 99, "raw": person.encode()}
                more: dict[str, Any] = {**document, "url": "https://example.org/", "pinned": True}
                await keep_as(limits, name, person, f"{person} of {name}", **more)

    anyio.run(fill)
    for name in ("acme", "globex"):
        place = folder / "tenants" / name
        calls = [{"run": person_run(person), "tool": person} for person in ("ada", "bob")]
        (place / "calls.jsonl").write_text("".join(f"{json.dumps(call)}\n" for call in calls))
        events = folder.parent / "tenants" / name / "events.jsonl"
        events.parent.mkdir(parents=True)
        events.write_text("{}\n")
    return limits


def titles(limits: StoreLimits, tenant: str) -> set[str]:
    async def read() -> set[str]:
        store = await open_store(store_of_tenant(limits, tenant))
        found = {facts.title for facts in (await store.list()).facts}
        await store.aclose()
        return found

    return anyio.run(read)


def tokens(run: Terminal) -> list[tuple[str, str]]:
    return sorted((row["tenant"], row["name"]) for row in run.data("token", "list"))


def test_a_person_is_deleted_with_tokens_pins_and_calls_and_nobody_else(
    run: Terminal, limits: StoreLimits
) -> None:
    words = ["person", "delete", "ada", "--tenant", "acme"]
    what = "2 tokens and 1 artifact of ada of acme"
    assert run(*words, code=3).stderr == f"This would delete {what}. Add --yes to do it.\n"
    assert titles(limits, "acme") == {"ada of acme", "bob of acme"}
    said = run(*words, "--yes").stderr.splitlines()
    assert said[0] == f"Deleted {what}."
    assert said[-1].startswith("The audit log, the log of requests and backups keep lines")
    assert ("within two hours" in said[1]) == bool(limits.catalog)
    assert titles(limits, "acme") == {"bob of acme"}
    assert titles(limits, "globex") == {"ada of globex", "bob of globex"}
    assert tokens(run) == [("acme", "bob"), ("globex", "ada"), ("globex", "ada"), ("globex", "bob")]
    log = limits.folder / "tenants" / "acme" / "calls.jsonl"
    assert [json.loads(line)["tool"] for line in log.read_text().splitlines()] == ["bob"]


def test_a_tenant_is_exported_and_deleted(run: Terminal, limits: StoreLimits) -> None:
    folder = run.folder / "export"
    done = run("tenant", "export", "acme", str(folder))
    assert done.stderr == "2 artifacts copied, 0 were there already.\n"
    run.env["FETCHSTASH_STORE_CATALOG"], catalog = "", run.env["FETCHSTASH_STORE_CATALOG"]
    listed = run.data("ls", "--all-runs", "--folder", str(folder))
    assert {row["title"] for row in listed} == {"ada of acme", "bob of acme"}
    run.env["FETCHSTASH_STORE_CATALOG"] = catalog
    again = run.data("tenant", "export", "acme", str(folder))
    assert again == [{"copied": 0, "there": 2, "lost": 0}]
    assert "3 tokens and 2 artifacts" in run("tenant", "delete", "acme", code=3).stderr
    assert run("tenant", "delete", "acme", "--yes").stderr.startswith("Deleted 3 tokens and 2 ")
    assert anyio.run(tenants_of, limits) == ["globex"]
    assert titles(limits, "globex") == {"ada of globex", "bob of globex"}
    assert {tenant for tenant, _ in tokens(run)} == {"globex"}
    left = [path for path in run.folder.rglob("*") if "acme" in path.name and path.is_file()]
    assert left == []
    assert not (limits.folder / "tenants" / "acme").exists()
    assert not (run.folder / "tenants" / "acme" / "events.jsonl").exists()
    missing = run("tenant", "delete", "acme", "--yes", code=2).stderr
    assert "The tenant acme keeps nothing here. There are globex." in missing


def test_what_was_revoked_and_deleted_is_done_again_in_a_store_that_was_restored(
    run: Terminal, limits: StoreLimits
) -> None:
    log = run.folder / "audit.log"
    run.env["FETCHSTASH_HTTP_AUDIT_LOG"] = str(log)
    backup = run.folder / "backup"
    here = run.folder / "here.toml"
    here.write_text(f'[store]\nfolder = "{limits.folder}"\ncatalog = "{limits.catalog}"\n')
    run("store", "copy", str(here), str(backup))
    of_globex = [row["id"] for row in run.data("token", "list") if row["tenant"] == "globex"]
    run("token", "revoke", of_globex[0])
    run("person", "delete", "bob", "--tenant", "globex", "--yes")
    run("tenant", "delete", "acme", "--yes")
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events == ["token_revoked", "person_deleted", "tenant_deleted"]
    left = tokens(run), anyio.run(tenants_of, limits), titles(limits, "globex")
    # What was deleted is back with the backup, and someone has come back since.
    run.env["FETCHSTASH_STORE_FOLDER"] = str(backup)
    run.env["FETCHSTASH_STORE_CATALOG"] = ""
    restored = StoreLimits(backup)
    assert len(tokens(run)) == 6
    assert anyio.run(tenants_of, restored) == ["acme", "globex"]
    run("token", "create", "--tenant", "globex", "--name", "bob", "--days", "9")
    planned = run("store", "replay", str(log), code=3).stderr
    assert planned.startswith("This would delete 5 tokens and 3 artifacts of what the log names.")
    run("store", "replay", str(log), "--yes")
    assert tokens(run) == sorted([*left[0], ("globex", "bob")])
    assert (anyio.run(tenants_of, restored), titles(restored, "globex")) == left[1:]
    run("store", "replay", str(log), "--yes")
    torn = run.folder / "torn.log"
    torn.write_text('{"event": "person_deleted", "time": ')
    assert "Line 1 of " in run("store", "replay", str(torn), code=2).stderr


def test_tokens_that_were_never_used_go_with_their_tenant_or_person(
    run: Terminal, limits: StoreLimits
) -> None:
    for name in ("eve", "kim"):
        run("token", "create", "--tenant", "initech", "--name", name)
    done = run("person", "delete", "eve", "--tenant", "initech", "--yes").stderr
    assert done.startswith("Deleted 1 token and 0 artifacts of eve of initech.\n")
    assert "This would delete 1 token " in run("tenant", "delete", "initech", code=3).stderr
    assert "initech" not in anyio.run(tenants_of, limits)
    run("tenant", "delete", "initech", "--yes")
    assert "initech" not in {tenant for tenant, _ in tokens(run)}


def test_a_folder_becomes_a_persons_and_a_service_another(
    run: Terminal, limits: StoreLimits
) -> None:
    own = run.folder / "own"
    anyio.run(_keep, StoreLimits(own))
    settings = run.folder / "team.toml"
    place = f'folder = "{limits.folder}"\ncatalog = "{limits.catalog}"\n'
    settings.write_text(f"[store]\n{place}")
    for name in ("FETCHSTASH_STORE_FOLDER", "FETCHSTASH_STORE_CATALOG"):
        del run.env[name]
    done = run.data("store", "copy", str(own), f"{settings}#acme/eve")
    assert done == [{"copied": 1, "there": 0, "lost": 0}]
    assert titles(limits, "acme") == {"ada of acme", "bob of acme", "mine"}
    back = run.folder / "back"
    assert run.data("store", "copy", f"{settings}#acme/eve", str(back))[0]["copied"] == 1
    assert [row["title"] for row in run.data("ls", "--all-runs", "--folder", str(back))] == ["mine"]
    whole = run.folder / "whole"
    assert run("store", "copy", str(settings), str(whole)).stderr.startswith("5 artifacts copied")
    assert titles(StoreLimits(whole), "globex") == {"ada of globex", "bob of globex"}
    assert "are the same store" in run("store", "copy", str(own), str(own), code=2).stderr
    assert "no settings file" in run("store", "copy", "none.toml", str(own), code=2).stderr
    assert "no folder" in run("store", "copy", f"{own}s", str(back), code=2).stderr
    assert "is an address" in run("store", "copy", "s3://old/team", str(back), code=2).stderr
    assert not (run.folder / "owns").exists()
    assert "no name of a tenant" in run("store", "copy", f"{own}#A", str(back), code=2).stderr


async def _keep(limits: StoreLimits) -> None:
    store = await open_store(limits)
    await put_into(store, b"words\n", facts=Facts(title="mine"))
    await store.aclose()


def test_all_tokens_of_a_name_are_revoked(run: Terminal) -> None:
    limits = StoreLimits(Path(run.env["FETCHSTASH_STORE_FOLDER"]))
    pairs = [(tenant, name) for tenant in ("acme", "globex") for name in ("ada", "bob")]
    anyio.run(_make_tokens, limits, pairs)
    run("token", "revoke", "--all", "--of", "ada", "--tenant", "acme")
    run("token", "revoke", "--all", "--of", "bob")
    assert tokens(run) == [("globex", "ada")]
    assert "no token of bob" in run("token", "revoke", "--all", "--of", "bob", code=2).stderr
    for words in (["--all"], ["abc", "--all", "--of", "ada"]):
        assert "ids of tokens, or --all --of NAME" in run("token", "revoke", *words, code=2).stderr


async def _make_tokens(limits: StoreLimits, pairs: Sequence[tuple[str, str]]) -> None:
    objects = await open_objects(limits)
    for tenant, name in pairs:
        await OwnTokens(objects).create(tenant, name)
    await objects.aclose()


# --- The commands ``token`` and ``store``, and what commands ask of a bucket.

LINES = 400_000


def test_a_token_is_printed_once_listed_without_its_secret_and_revoked(run: Terminal) -> None:
    token = run("token", "create", "--tenant", "team-a", "--name", "ci").stdout
    assert re.fullmatch(r"fstash_[a-z2-7]{12}[0-9A-Za-z]{49}\n", token)
    words = ["--tenant", "b", "--name", "ada", "--scope", "read"]
    (made,) = run.data("token", "create", *words)
    assert made["scopes"] == ["read"]
    # Both may be of one second, whose tokens are in no order of their making.
    by_tenant = {line.split("\t")[1]: line for line in run("token", "list").stdout.splitlines()}
    first, second = by_tenant["team-a"], by_tenant["b"]
    assert first.split("\t")[1:4] == ["team-a", "ci", "read,fetch"]
    assert second.split("\t")[:4] == [made["id"], "b", "ada", "read"]
    listed = run.data("token", "list")
    assert {name: value for name, value in made.items() if name != "token"} in listed
    assert token[19:30] not in json.dumps(listed)
    done = run("token", "revoke", made["id"])
    assert done.stderr == f"Revoked {made['id']} (ada of b).\n"
    assert run("token", "list").stdout.splitlines() == [first]


def test_a_person_sees_a_table_of_tokens_and_that_one_is_shown_once(run: Terminal) -> None:
    made = run.on_terminal("token", "create", "--tenant", "team-a", "--name", "ci", columns=60)
    assert "it is not shown again" in plain(made)
    lines = plain(run.on_terminal("token", "list", columns=60)).splitlines()
    assert lines[0].split() == ["id", "tenant", "name", "scopes", "expires"]
    assert lines[1].split()[1:3] == ["team-a", "ci"]


def test_a_tenant_that_the_settings_do_not_name_is_pointed_out(run: Terminal) -> None:
    file = run.folder / "settings.toml"
    file.write_text("[tenants.acme.fetch]\nallow_domains = ['example.org']\n")
    words = ["token", "create", "--config", str(file), "--name", "ci", "--tenant"]
    assert run(*words, "acme").stderr == ""
    assert "has no [tenants.acne]" in run(*words, "acne").stderr


def test_doctor_says_whether_the_provider_can_be_asked(run: Terminal, site: Site) -> None:
    provider = Provider(site)
    run.env["FETCHSTASH_OAUTH_ISSUER"] = provider.issuer
    done = run("doctor", code=3)
    assert "fault    tokens: oauth.issuer is set, and oauth.audience is not." in done.stdout
    run.env["FETCHSTASH_OAUTH_AUDIENCE"] = AUDIENCE
    assert f"ok       tokens: {provider.issuer} has 1 key\n" in run("doctor").stdout
    site.put("/keys", status=503)
    assert "answers with 503. Try again" in run("doctor", code=3).stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("create --tenant A --name x", "[bad_argument] The tenant 'A' has a wrong name."),
        ("create --tenant a --name x --scope all", "[bad_argument] There is no such scope."),
        ("create --tenant a --name x --days 0", "[bad_argument] A token cannot last 0 days."),
        ("create --tenant a --name x --url memory: --folder=", "memory:, which keeps no token"),
        ("revoke abc", "[bad_argument] There is no token 'abc'."),
    ],
)
def test_what_cannot_be_done_is_one_line_on_stderr(
    run: Terminal, arguments: str, line: str
) -> None:
    done = run("token", *arguments.split(), code=2)
    assert done.stdout == ""
    assert line in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_doctor_says_what_keeps_a_bucket_from_being_used(run: Terminal) -> None:
    pytest.importorskip("obstore", reason="obstore is in the extra team")
    words = ["--url", "s3://bucket/team", "--endpoint", "http://127.0.0.1:9", "--json"]
    words += ["--catalog", server().new_database()]
    run.env |= {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret-of-the-test"}
    done = run("doctor", *words, code=3)
    (fault,) = [
        line for line in map(json.loads, done.stdout.splitlines()) if line["level"] == "fault"
    ]
    assert fault["what"] == "store: The bucket does not answer."
    assert "secret-of-the-test" not in done.stdout + done.stderr


@pytest.mark.parametrize("command", [["grep", "line 399999"], ["get"]])
def test_a_whole_text_is_opened_once_and_read_ahead(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = new_objects()
    monkeypatch.setenv("FETCHSTASH_STORE_CATALOG", server().new_database())
    document = tmp_path / "document.txt"
    document.write_text("".join(f"line {n}\n" for n in range(LINES)))
    with every_bucket_is(objects):
        place = ["--url", "s3://bucket", "--run", "default", "--folder"]
        words = ["fetch", str(document), *place, str(tmp_path / "a")]
        assert CliRunner().invoke(commands, words).exit_code == 0
        for most in (6, 0):  # the second time all of it is here
            objects.requests.clear()
            done = CliRunner().invoke(commands, [*command, "@1", *place, str(tmp_path / "b")])
            assert done.output.endswith("line 399999\n")
            assert objects.names().count("get_range") <= most


def test_a_long_copy_says_how_far_it_is_where_there_is_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fill() -> None:
        store = await open_store(StoreLimits(tmp_path / "one", run="default"))
        for number in range(3):
            await put_into(store, f"text {number}\n".encode())
        await store.aclose()

    anyio.run(fill)
    monkeypatch.setattr(_leaving, "_TOLD_SECONDS", 0.0)
    done = CliRunner().invoke(
        commands, ["store", "copy", str(tmp_path / "one"), str(tmp_path / "two")]
    )
    assert "Copying: 3 of 3 artifacts.\n" in done.stderr
    assert "3 artifacts copied" in done.stderr
