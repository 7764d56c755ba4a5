"""The commands ``token`` and ``store``, and what commands ask of a bucket."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from fetchstash.cli import commands
from tests.cli.terminal import Terminal, plain
from tests.loopback import Site
from tests.service.access.provider import AUDIENCE, Provider
from tests.store.buckets import every_bucket_is, new_objects
from tests.store.postgres import server

pytestmark = pytest.mark.long

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
