"""Log in at a real identity provider, and call the service over HTTP as clients and hosts do.

    scripts/ci access [HOST …]

Runs npm's oidc-provider on loopback and `fetchstash serve --http` with it as oauth.issuer: the mcp
client's own OAuth, tokens for others and of too small a scope, a change of the provider's keys,
then Claude Code's and Codex's own logins, a program standing for the person at the browser, and
both with a token of our own as a header. What cannot be installed is skipped aloud. Exit code: how
many checks failed.
"""

import os
import shlex
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from scripts.drive.hosts import HOSTS, SECONDS, Host, HostAtHome, install, write
from scripts.drive.loopback import Loopback
from scripts.drive.person import log_in
from scripts.drive.programs import check, failures, options
from scripts.drive.provider import Provider
from scripts.drive.scenes import PAGES, WORD
from scripts.drive.service import free_port, running, token_of
from scripts.drive.speech import SERVER, Step
from scripts.drive.tools import node_folder, node_tool
from tests.cli.terminal import read_all, start_on_terminal

ADA, BOB = "ada@team-a", "bob@team-b"
FETCHSTASH = Path(sys.executable).with_name("fetchstash")
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


class _Memory:  # what the mcp client's OAuth keeps, in its TokenStorage's words
    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def oauth_of(service: str, account: str, memory: _Memory) -> OAuthClientProvider:
    """Return the mcp client's own OAuth for a person."""
    callback = ""

    async def redirect(url: str) -> None:
        nonlocal callback
        callback = await anyio.to_thread.run_sync(log_in, url, account)

    async def answer() -> AuthorizationCodeResult:
        values = {name: value for name, (value, *_) in parse_qs(urlsplit(callback).query).items()}
        return AuthorizationCodeResult(
            code=values["code"], state=values.get("state"), iss=values.get("iss")
        )

    metadata = OAuthClientMetadata(
        client_name="scripts/ci access",
        redirect_uris=[AnyUrl("http://127.0.0.1:1/callback")],
        token_endpoint_auth_method="none",  # noqa: S106 - a public client
    )
    return OAuthClientProvider(service, metadata, memory, redirect, answer)


async def call(service: str, tool: str, arguments: dict[str, Any], auth: httpx2.Auth) -> str:
    """Call a tool and return the text of its result."""
    async with (
        httpx2.AsyncClient(auth=auth, trust_env=False, timeout=60) as http,
        Client(streamable_http_client(service, http_client=http)) as client,
    ):
        result = await client.call_tool(tool, arguments)
    return "".join(getattr(part, "text", "") for part in result.content)


async def the_mcp_client(provider: Provider, service: str, page: str) -> None:
    """Check the mcp client's own OAuth: registration, PKCE, the resource, and two tenants."""
    ada = _Memory()
    text = await call(service, "fetch_content", {"url": page}, oauth_of(service, ADA, ada))
    check("the mcp client logs in by itself and fetches", WORD not in text and text[:300])
    granted = ada.tokens.scope if ada.tokens else ""
    asked_for = "fetch" in (granted or "").split()
    check("it asked for the scope that the challenge names", not asked_for and f"{granted!r}")
    if ada.tokens:
        ada.tokens.access_token = "none"  # noqa: S105 - no password
    text = await call(service, "artifact_info", {}, oauth_of(service, ADA, ada))
    check(
        "a token that went bad is replaced by another login",
        ": 1 artifact," not in text and text[:300],
    )
    reader = _Memory()
    token = await anyio.to_thread.run_sync(provider.token, ADA, "read", service)
    reader.tokens = OAuthToken(access_token=token, scope="read")
    text = await call(service, "fetch_content", {"url": page}, oauth_of(service, ADA, reader))
    granted = reader.tokens.scope or ""
    fault = "" if WORD in text and {"read", "fetch"} <= {*granted.split()} else f"{granted} {text}"
    check("a client that may only read logs in again, to fetch as well", fault[:300])
    text = await call(service, "artifact_info", {}, oauth_of(service, BOB, _Memory()))
    unseen = "no artifacts yet" in text
    check("a person of another tenant sees nothing of it", not unseen and text[:300])


def asked(service: str, token: str, message: dict[str, Any] = LIST) -> httpx2.Response:
    """Send one message with a token."""
    headers = {"accept": "application/json, text/event-stream"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    return httpx2.post(service, json=message, headers=headers, trust_env=False, timeout=60)


def tokens_of_the_provider(provider: Provider, service: str, page: str) -> None:
    """Check tokens that are for others, or of too small a scope."""
    arguments = {"name": "fetch_content", "arguments": {"url": page}}
    fetch = {**LIST, "method": "tools/call", "params": arguments}
    good = provider.token(ADA, "read fetch", service)
    other = provider.token(ADA, "read fetch", f"{service}/other")
    nobody = provider.token("ada", "read fetch", service)
    reader = provider.token(ADA, "read", service)
    for name, token, message, status, part in (
        ("a token for the service is taken", good, LIST, 200, ""),
        ("no token leads to the metadata", "", LIST, 401, "/.well-known/oauth-pro"),
        ("a token for another resource is not", other, LIST, 401, "invalid_token"),
        ("a token without a tenant is not", nobody, LIST, 403, "claim tenant"),
        ("a token of scope read lists", reader, LIST, 200, ""),
        ("and may not fetch", reader, fetch, 403, "insufficient_scope"),
    ):
        answer = asked(service, token, message)
        said = f"{answer.status_code} {answer.headers.get('www-authenticate', '')} {answer.text}"
        fits = answer.status_code == status and part in said
        check(name, "" if fits else said[:300])


def changed_keys(provider: Provider, service: str) -> None:
    """Check that tokens of a new key are taken, and how soon."""
    with provider.serving("second"):
        token, begin = provider.token(ADA, "fetch", service), time.monotonic()
        status = 0
        while status != 200 and time.monotonic() < begin + SECONDS:
            status = asked(service, token).status_code
            time.sleep(0.5)
        seconds = time.monotonic() - begin
        check(f"a new key of the provider is taken after {seconds:.0f} s", status != 200 and status)


class LoginHost(HostAtHome):
    """A host with a program that stands for the person's browser."""

    def __init__(self, host: Host, loopback: Loopback, home: Path, token: str) -> None:
        browser = home / "bin" / "xdg-open"
        super().__init__(host, loopback, home, [browser.parent])
        words = [sys.executable, "-P", str(Path(__file__).parents[1] / "drive" / "person.py"), ADA]
        write(browser, f'#!/bin/sh\nexec {shlex.join(words)} "$@" 2>>{home}/browser.log\n')
        browser.chmod(0o755)
        self.environment.update(BROWSER=str(browser), STASH_TOKEN=token, DISPLAY=":9")

    def on_terminal(self, *words: str) -> tuple[int, str]:
        """Run the host's program on a terminal; return its exit code and what it said.

        Claude Code logs in on a terminal alone.
        """
        command = [str(self.host.folder / self.host.program), *words]
        process, leader = start_on_terminal(command, self.environment, self.work)
        said = read_all(leader)
        return process.wait(SECONDS), said

    def fetches(self, page: str) -> str:
        """Let its model fetch a page; return what is wrong with what reached it."""
        self.converse([Step("fetch_content", {"url": page})], trusting=True)
        heard = "".join(result.text for result in self.loopback.heard)
        said = (self.home / "output").read_text(errors="replace")
        return "" if WORD in heard else f"{heard[:300] or said[-1_500:]}"


def drive(at_home: LoginHost, service: str, page: str, token: str, log: Path) -> None:
    """Give a host a token as a header, then log it in by its own command."""
    name, is_claude = at_home.host.name, at_home.host.program == "claude"
    if is_claude:
        add = ["mcp", "add", "-s", "user", "--transport", "http", SERVER, service]
        bearer = [*add, "--header", f"Authorization: Bearer {token}"]
        remove = ["mcp", "remove", "-s", "user", SERVER]
    else:
        add = ["mcp", "add", SERVER, "--url", service]
        bearer = [*add, "--bearer-token-env-var", "STASH_TOKEN"]
        remove = ["mcp", "remove", SERVER]
    code, said = at_home.on_terminal(*bearer)
    check(f"{name} is registered with a token", code and said)
    check(f"{name} fetches with it", at_home.fetches(page))
    at_home.on_terminal(*remove)
    code, said = at_home.on_terminal(*add)
    check(f"{name} is registered without one", code and said)
    code, said = at_home.on_terminal("mcp", "login", SERVER)
    check(f"{name} logs in by its own command", code and said[-1_500:])
    before = log.stat().st_size
    check(f"{name} fetches after that", at_home.fetches(page))
    logged = log.read_bytes()[before:].decode()
    check(f"{name} does it as the person who logged in", f'"principal":"{ADA}"' not in logged)


def main() -> int:
    """Check all of it; return how many checks failed."""
    names = options(__doc__, names=("claude-code", "codex")).names
    if sys.platform != "linux":
        print("SKIPPED: the hosts are driven on Linux alone")
        return 0
    library, node = node_tool("oidc-provider"), node_folder(22)
    if library is None or node is None:
        return 0
    with tempfile.TemporaryDirectory() as name, Loopback(PAGES) as loopback:
        work = Path(name)
        port = free_port()
        service, page = f"http://127.0.0.1:{port}/mcp", loopback.url("/short")
        provider = Provider(node, library, work, free_port(), service)
        settings = work / "fetchstash.toml"
        write(
            settings,
            f'[oauth]\nissuer = "{provider.issuer}"\naudience = "{service}"\n'
            f'[store]\nfolder = "{work / "store"}"\n'
            f'[fetch]\nallow_hosts = ["127.0.0.1:{loopback.port}"]\nrespect_robots = false\n'
            '[extract]\nconfine = "auto"\n',  # also on a kernel without Landlock
        )
        environment = {"FETCHSTASH_CONFIG": str(settings), "PATH": os.environ["PATH"]}
        serve = [str(FETCHSTASH), "serve", "--http", f"127.0.0.1:{port}"]
        log = work / "service.log"
        with running(serve, "serves MCP at", environment, log):
            with provider.serving("first"):
                anyio.run(the_mcp_client, provider, service, page)
                tokens_of_the_provider(provider, service, page)
                token = token_of("team-a", environment=environment)
                for number, host in enumerate(HOSTS[host_name] for host_name in names):
                    version = install(host)
                    if not version:
                        continue
                    print(f"--- {host.name} {version}", flush=True)
                    at_home = LoginHost(host, loopback, work / f"home{number}", token)
                    drive(at_home, service, page, token, log)
            changed_keys(provider, service)
        said = log.read_text(errors="replace")
        check("no token stands in the log", "fstash_" in said or "eyJ" in said)
        print(log.read_text(errors="replace")[-2_000:] if failures else "", end="")
    return len(failures)


if __name__ == "__main__":
    sys.exit(main())
