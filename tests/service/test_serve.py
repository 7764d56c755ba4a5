"""The command: what it refuses to serve, and how it ends."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import trustme

from fetchstash.config import HttpLimits, load
from fetchstash.errors import BadArgument
from fetchstash.service._listen import (
    check_certificate,
    check_exposure,
    check_names,
    host_and_port,
    invalid_now,
    listener,
)
from fetchstash.service._serve import check_tenants, warnings_of
from tests.cli.terminal import Terminal
from tests.loopback import Site
from tests.server.test_stdio import FETCHSTASH, flags
from tests.service.pages import Hanging, Waiting, calling
from tests.service.sockets import echo, serving


@contextmanager
def process(*words: str, workers: int = 1) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Start ``fetchstash serve --http`` and yield it with the line that it printed.

    One process, where a test does not need ``workers`` beside each other: each imports all.
    """
    count = ("--workers", str(workers)) if "--workers" not in words else ()
    command = [FETCHSTASH, "serve", "--http", "127.0.0.1:0", *count, *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = os.environ | {"FETCHSTASH_EXTRACT_CONFINE": "auto"}
    started: subprocess.Popen[str] = subprocess.Popen(command, env=environment, **pipes)  # type: ignore[call-overload]
    assert started.stdout
    try:
        yield started, started.stdout.readline()
    finally:
        started.kill()
        started.communicate()


@pytest.fixture
def not_nohup() -> Generator[None]:
    """Let processes take SIGHUP as usual, also where ``nohup`` runs the tests and ignores it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def url_in(line: str) -> str:
    return next(word for word in line.split() if word.startswith("http"))


@pytest.mark.anyio
@pytest.mark.slow
async def test_sigterm_lets_calls_end_and_takes_no_more(site: Site, tmp_path: Path) -> None:
    page = Waiting(site)
    answers: list[httpx2.Response] = []
    with process(*flags(site, tmp_path), workers=2) as (server, line):
        url = url_in(line)
        async with httpx2.AsyncClient(timeout=20) as http, anyio.create_task_group() as tasks:

            async def call() -> None:
                answers.append(await http.post(url, **calling(page.url, "2026-07-28")))

            tasks.start_soon(call)
            with anyio.fail_after(60):
                await page.begun.wait()
            server.send_signal(signal.SIGTERM)
            while (await http.get(url.replace("/mcp", "/readyz"))).status_code == 200:  # noqa: ASYNC110 - another process
                await anyio.sleep(0.01)
            refused = await http.post(url, **calling(page.url, "2026-07-28"))
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert "[busy] This server is shutting down. Try again in a second." in refused.text
            assert (await http.get(url.replace("/mcp", "/healthz"))).status_code == 200
            page.end()
        code = await anyio.to_thread.run_sync(lambda: server.wait(60))
        stderr = server.stderr.read() if server.stderr else ""
    assert "The text and end." in answers[0].text
    assert code == 0
    assert all(text.startswith('{"time":') for text in stderr.splitlines())


@pytest.mark.anyio
@pytest.mark.long
async def test_calls_that_outlast_the_grace_are_ended(site: Site, tmp_path: Path) -> None:
    page = Hanging(site)
    answers: list[httpx2.Response] = []
    settings = tmp_path / "settings.toml"
    settings.write_text("[http]\ngrace_seconds = 0.2\n")
    words = ["--config", str(settings), *flags(site, tmp_path)]
    with process(*words) as (server, line):
        async with httpx2.AsyncClient(timeout=20) as http, anyio.create_task_group() as tasks:

            async def call() -> None:
                answers.append(await http.post(url_in(line), **calling(page.url, "2026-07-28")))

            tasks.start_soon(call)
            with anyio.fail_after(60):
                await page.begun.wait()
            server.send_signal(signal.SIGTERM)
            assert await anyio.to_thread.run_sync(lambda: server.wait(60)) == 0
    assert answers[0].status_code == 503


@pytest.mark.long
@pytest.mark.usefixtures("not_nohup")
def test_it_says_where_and_for_whom_it_serves_until_its_terminal_closes(tmp_path: Path) -> None:
    with process("--folder", str(tmp_path)) as (server, line):
        assert line.startswith("fetchstash serves MCP at http://127.0.0.1:")
        assert line.endswith("/mcp to the one user of this machine, without tokens.\n")
        server.send_signal(signal.SIGHUP)
        assert server.wait(60) == 0


@pytest.mark.long
def test_a_service_whose_last_token_was_revoked_answers_401_before_and_after_a_restart(
    site: Site, tmp_path: Path
) -> None:
    folder, run = ("--folder", str(tmp_path / "store")), Terminal(site, tmp_path)

    def status(line: str, text: str = "") -> int:
        sent = calling("http://127.0.0.1:9/", "2026-07-28")
        bearer = {"authorization": f"Bearer {text}"} if text else {}
        return httpx2.post(
            url_in(line), json=sent["json"], headers={**sent["headers"], **bearer}, timeout=60
        ).status_code

    text = run("token", "create", "--tenant", "acme", "--name", "ci", *folder).stdout.strip()
    with process(*folder) as (_, line):
        assert (status(line), status(line, text)) == (401, 200)
        revoked = run("token", "revoke", text.removeprefix("fstash_")[:12], *folder)
        assert "No token is left, and the service lets in nobody" in revoked.stderr
        assert status(line) == 401
    with process(*folder) as (_, line):
        assert "to who sends a token" in line
        assert (status(line), status(line, text)) == (401, 401)


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_a_service_whose_stdout_is_full_serves_and_ends_as_any(tmp_path: Path) -> None:
    words = ["serve", "--http", "127.0.0.1:0", "--workers", "1", "--folder", str(tmp_path)]
    with Path("/dev/full").open("wb") as full:
        server = subprocess.Popen([FETCHSTASH, *words], stdout=full, stderr=subprocess.PIPE)
    with server:
        assert server.stderr
        assert any(b"was not printed: No space left" in line for line in server.stderr)
        server.send_signal(signal.SIGTERM)
        rest = server.stderr.read()
    assert b"Traceback" not in rest
    assert server.returncode == 0


BEYOND = ("0.0.0.0", "::", "192.0.2.1", "stash.example.org", "fe80::1")


@pytest.mark.whole
@pytest.mark.parametrize(
    ("named", "host", "refused"),
    [
        *(({}, host, "Other machines reach") for host in BEYOND[2:]),
        *(({"hosts": ("stash.example.org",)}, host, "nobody needs a token") for host in BEYOND),
        ({"hosts": ("10.0.0.1",)}, "127.0.0.1", r"http\.hosts is set"),
        ({"forwarded": ("10.0.0.1",)}, "127.0.0.1", r"http\.forwarded is set"),
        ({}, "127.0.0.1", ""),
    ],
)
def test_an_address_beyond_loopback_and_a_proxy_before_it_need_tokens(
    named: dict[str, Any], host: str, refused: str
) -> None:
    http = replace(HttpLimits(), **named)
    with pytest.raises(BadArgument, match=refused) if refused else nullcontext():
        check_exposure(http, host, asks_for_tokens=False)
    check_exposure(http, host, asks_for_tokens=True)
    with pytest.raises(BadArgument, match=r"http\.hosts names none"):
        check_exposure(HttpLimits(), "::", asks_for_tokens=True)


@pytest.mark.parametrize(
    ("named", "host", "warning"),
    [
        ({}, "192.0.2.1", "Tokens reach 192.0.2.1 in clear"),
        ({}, "127.0.0.1", ""),
        ({"http.forwarded": ["10.0.0.1"]}, "192.0.2.1", ""),
        ({"http.forwarded": ["10.0.0.1"], "store.catalog": "postgresql://h/d"}, "::", "No other"),
        ({"store.catalog": "postgresql://h/d", "store.url": "s3://stash"}, "127.0.0.1", ""),
    ],
)
def test_what_harms_a_team_is_warned_of_at_the_start(
    named: dict[str, Any], host: str, warning: str
) -> None:
    warnings = list(warnings_of(load(named, {}), host))
    assert len(warnings) == bool(warning)
    assert "".join(warnings).startswith(warning)


@pytest.mark.parametrize(
    "address", ["8080", ":8080", "localhost", "localhost:", "a:b", "a:70000", "::1:80", "[]:1"]
)
def test_an_address_without_host_or_port_is_refused(address: str) -> None:
    assert host_and_port("[::1]:8080") == ("::1", 8080)
    with pytest.raises(BadArgument, match="is no HOST:PORT"):
        host_and_port(address)


def test_an_address_of_the_metrics_is_called_what_it_is() -> None:
    with pytest.raises(BadArgument, match=r"http\.metrics is '9464'"):
        host_and_port("9464", "http.metrics")
    with pytest.raises(BadArgument) as caught:
        listener("203.0.113.9", 9464, "http.metrics")
    assert caught.value.next_step == "Choose another http.metrics."


@pytest.fixture
def certificate(tmp_path: Path) -> Any:
    """Return the files of a certificate and its key."""
    issued = trustme.CA().issue_cert("localhost")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    return str(cert), str(key)


@pytest.mark.parametrize(
    ("begin", "end", "reason"),
    [
        (2020, 2021, "it ended at 2021-01-01 00:00 UTC"),
        (2998, 2999, "it is valid from 2998-01-01 00:00 UTC on"),
        (2020, 2999, ""),
    ],
)
def test_a_certificate_that_clients_refuse_by_its_time_is_noticed(
    tmp_path: Path, begin: int, end: int, reason: str
) -> None:
    first, last = datetime(begin, 1, 1), datetime(end, 1, 1)  # noqa: DTZ001 - as trustme takes them
    issued = trustme.CA().issue_cert("localhost", not_before=first, not_after=last)
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    assert invalid_now(str(tmp_path / "cert.pem")) == reason


@pytest.mark.parametrize(
    ("cert", "key", "message"),
    [
        ("cert.pem", "key.pem", ""),
        ("cert.pem", "", r"http\.tls_key is not set"),
        ("", "key.pem", r"http\.tls_cert is not set"),
        ("none.pem", "key.pem", "cannot be read: No such file"),
        ("cert.pem", "cert.pem", "no certificate and its key"),
        ("text.pem", "key.pem", "no certificate and its key"),
        ("cert.pem", "other.pem", "no certificate and its key"),
    ],
)
@pytest.mark.usefixtures("certificate")
def test_what_is_no_certificate_and_its_key_is_refused(
    tmp_path: Path, cert: str, key: str, message: str
) -> None:
    (tmp_path / "text.pem").write_text("text")
    other = trustme.CA().issue_cert("localhost").private_key_pem.bytes()
    (tmp_path / "other.pem").write_bytes(other)
    files = {"tls_cert": cert, "tls_key": key}
    named: dict[str, Any] = {
        name: str(tmp_path / file) if file else "" for name, file in files.items()
    }
    with pytest.raises(BadArgument, match=message) if message else nullcontext():
        check_certificate(replace(HttpLimits(), **named))


@pytest.mark.slow
def test_a_key_with_a_passphrase_asks_for_none(tmp_path: Path, certificate: Any) -> None:
    cert, key = certificate
    locked = tmp_path / "locked.pem"
    command = ["openssl", "ec", "-aes256", "-passout", "pass:x", "-in", key, "-out", str(locked)]
    try:
        subprocess.run(command, check=True, capture_output=True, env=dict(os.environ))
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("openssl is missing, or does not lock this key")
    with pytest.raises(BadArgument, match="without a passphrase"):
        check_certificate(HttpLimits(tls_cert=cert, tls_key=str(locked)))


FORWARDED = {"x-forwarded-for": "192.0.2.9", "x-forwarded-proto": "https"}


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.parametrize(
    ("proxies", "who"),
    [
        ((), "http 127.0.0.1"),
        (("10.0.0.0/8",), "http 127.0.0.1"),
        (("127.0.0.1",), "https 192.0.2.9"),
        (("127.0.0.0/8",), "https 192.0.2.9"),
    ],
)
async def test_what_a_proxy_says_is_believed_of_those_that_are_named(
    proxies: tuple[str, ...], who: str
) -> None:
    async with serving(echo, HttpLimits(forwarded=proxies)) as port, httpx2.AsyncClient() as http:
        answer = await http.get(f"http://127.0.0.1:{port}/", headers=FORWARDED)
    assert answer.text == who


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no socket of both versions of IP")
async def test_a_proxy_of_ipv4_is_known_at_an_address_of_ipv6() -> None:
    opened = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    http = HttpLimits(forwarded=("127.0.0.1",))
    async with serving(echo, http, opened) as port, httpx2.AsyncClient() as client:
        answer = await client.get(f"http://127.0.0.1:{port}/", headers=FORWARDED)
    assert answer.text == "https 192.0.2.9"


def limits(name: str, *values: str) -> HttpLimits:
    named: dict[str, Any] = {name: values}
    return replace(HttpLimits(), **named)


NAMES: dict[str, tuple[str, str]] = {  # that requests have, and that no request has
    "hosts": (
        "fetch.example.org|a:8443|10.0.0.1|[::1]|[::1]:80",
        "https://a.example|A.example|*|*.example.org||a b|a\n|a/mcp|::1|a:b",
    ),
    "origins": (
        "https://app.example.org|http://localhost:3000|vscode://a",
        "app.example.org|https://app.example.org/|https://App.example.org|null|*",
    ),
    "forwarded": ("10.0.0.0/8|192.0.2.1|fd00::/8|::1", "proxy|*||10.0.0.1/8|10.0.0.0/33"),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_no_request_has_is_refused(name: str) -> None:
    good, bad = (names.split("|") for names in NAMES[name])
    check_names(limits(name, *good))
    for value in bad:
        with pytest.raises(BadArgument) as caught:
            check_names(limits(name, value))
        assert caught.value.what.startswith(f"http.{name} has {value!r}, which ")


def test_a_rule_of_fetching_that_cannot_be_read_is_refused_with_its_tenant(tmp_path: Path) -> None:
    file = tmp_path / "team.toml"
    file.write_text('[tenants.acme.fetch]\nallow_nets = ["10.0.0.0/99"]\n')
    with pytest.raises(BadArgument, match=r"^\[bad_argument\] The table \[tenants\.acme\] .*'10.0"):
        check_tenants(load(file=file))
    with pytest.raises(BadArgument, match=r"fetch\.deny_domains"):
        check_tenants(load({"fetch.deny_domains": ["a b"]}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[quota]\nartifacts = 10_001", "quota.artifacts is 10,001, and store.max"),
        ("[quota]\nstored_bytes = 3_000_000_000", "quota.stored_bytes is 3,000,000,000"),
        ("[tenants.acme.quota]\nartifacts = 10_001", "tenants.acme.quota.artifacts is 10,001"),
        ("[quota]\nartifacts = 9\n[tenants.acme.store]\nmax_artifacts = 8", "tenants.acme.quota"),
        ("[quota]\nartifacts = 10_000\nstored_bytes = 2_000_000_000", ""),
    ],
)
def test_a_quota_above_the_limits_of_the_store_is_refused(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "team.toml"
    file.write_text(text)
    with pytest.raises(BadArgument, match=re.escape(said)) if said else nullcontext():
        check_tenants(load(file=file))


@pytest.mark.long
@pytest.mark.parametrize(
    ("address", "hosts", "line"),
    [
        ("127.0.0.1:0", "https://a.example/mcp", "http.hosts has 'https://a.example/mcp'"),
        ("0.0.0.0:0", "", "Other machines reach 0.0.0.0, and nobody needs"),
        ("TAKEN", "", "TAKEN cannot be used"),
    ],
)
def test_what_cannot_be_served_is_one_line_and_not_in_the_audit_log(
    site: Site, tmp_path: Path, address: str, hosts: str, line: str
) -> None:
    file, log = tmp_path / "team.toml", tmp_path / "audit.jsonl"
    file.write_text(f'[http]\naudit_log = "{log}"\n' + (f'hosts = ["{hosts}"]\n' if hosts else ""))
    taken = f"127.0.0.1:{site.port}"
    words = ["serve", "--http", address.replace("TAKEN", taken), "--config", str(file)]
    done = Terminal(site, tmp_path)(*words, code=2)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"[bad_argument] {line.replace('TAKEN', taken)}")
    assert ("Create a token with these settings" in done.stderr) is address.startswith("0.")
    assert not log.exists()
