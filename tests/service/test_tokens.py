"""Requests with every kind of wrong token, to the whole application: nothing is served to them."""

from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from mcp import MCPError
from mcp_types import TextContent

from fetchstash.config import Settings, load
from fetchstash.errors import StoreError
from fetchstash.service import for_clients_elsewhere, verifier_of
from fetchstash.service.access import OwnTokens, Rejected, verifier
from fetchstash.store import MemoryObjects
from tests.service.access.provider import AUDIENCE, Provider
from tests.service.asgi import Service, mcp_client

pytestmark = pytest.mark.anyio

URL = "https://example.org"
MODES = ("legacy", "2026-07-28")
METADATA = "https://fetch.example.org/.well-known/oauth-protected-resource/mcp"
PATH = "/.well-known/oauth-protected-resource"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture
def objects() -> MemoryObjects:
    return MemoryObjects()


@pytest.fixture
def settings(tmp_path: Path, provider: Provider) -> Settings:
    values = {
        "store.folder": str(tmp_path / "store"),
        "oauth.issuer": provider.issuer,
        "oauth.audience": AUDIENCE,
    }
    return for_clients_elsewhere(load(values))


WRONG: dict[str, Callable[[Provider], str]] = {
    "no JWT": lambda _: "secret",
    "expired": lambda provider: provider.token(exp=1_000_000),
}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}


def assert_nothing_served(answer: httpx2.Response, error: str = "invalid_token") -> None:
    assert answer.status_code == 401
    assert "fetch_content" not in answer.text
    challenge = answer.headers["www-authenticate"]
    assert challenge.startswith(f'Bearer resource_metadata="{METADATA}", scope="fetch"')
    assert (f'error="{error}"' in challenge) is bool(error)


@pytest.mark.parametrize("mode", MODES)
async def test_a_token_of_the_provider_is_let_in(
    service: Service, provider: Provider, settings: Settings, objects: MemoryObjects, mode: str
) -> None:
    async with service(verifier=verifier(settings, objects)) as http:
        http.headers["authorization"] = f"Bearer {provider.token()}"
        async with mcp_client(http, mode) as client:
            assert (await client.list_tools()).tools


async def test_a_request_without_a_token_is_led_to_the_provider(
    service: Service, settings: Settings, objects: MemoryObjects, provider: Provider
) -> None:
    async with service(verifier=verifier(settings, objects)) as http:
        assert_nothing_served(await http.post("/mcp", json=LIST), error="")
        for path in (PATH, f"{PATH}/mcp"):
            document = (await http.get(path)).json()
            assert document["resource"] == AUDIENCE
            assert document["authorization_servers"] == [provider.issuer]


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
async def test_a_wrong_token_of_the_provider_is_served_nothing(
    service: Service,
    settings: Settings,
    objects: MemoryObjects,
    provider: Provider,
    make: Callable[[Provider], str],
) -> None:
    async with service(verifier=verifier(settings, objects)) as http:
        answer = await http.post("/mcp", json=LIST, headers=bearer(make(provider)))
    assert_nothing_served(answer)


async def test_a_token_of_ours_is_let_in_until_it_is_revoked_or_its_time_is_over(
    service: Service, settings: Settings, objects: MemoryObjects
) -> None:
    now = 1_800_000_000.0
    clock = 0.0
    own = OwnTokens(objects, now=lambda: now, clock=lambda: clock)
    good, other = await own.create("team-a", "ci", days=1), await own.create("team-a", "ada")
    async with service(verifier=own) as http:

        async def ask(token: str) -> httpx2.Response:
            return await http.post("/mcp", json=LIST, headers=bearer(token))

        assert (await ask(good.text)).status_code == 200
        changed = good.text[:30] + ("a" if good.text[30] != "a" else "b") + good.text[31:]
        assert_nothing_served(await ask(changed))
        await objects.delete(f"tokens/{good.record.id}")  # as another replica does
        clock += 10
        assert_nothing_served(await ask(good.text))
        assert (await ask(other.text)).status_code == 200
        now += 91 * 86_400
        assert_nothing_served(await ask(other.text))


@pytest.mark.whole
@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic {token}", "{token}", "bearer\t{token}"]
)
async def test_a_header_without_a_bearer_token_counts_as_none(
    service: Service, settings: Settings, objects: MemoryObjects, header: str
) -> None:
    own = OwnTokens(objects)
    token = (await own.create("team-a", "ci")).text
    async with service(verifier=own) as http:
        headers = {"authorization": header.format(token=token)}
        answer = await http.post("/mcp", json=LIST, headers=headers)
        assert_nothing_served(answer, error="")
        answer = await http.post(f"/mcp?access_token={token}", json=LIST)
        assert_nothing_served(answer, error="")
        two = [("authorization", f"Bearer {token}"), ("authorization", "Bearer x")]
        assert_nothing_served(await http.post("/mcp", json=LIST, headers=two), error="")


@pytest.mark.whole
@pytest.mark.parametrize(
    "token",
    [b"\xff", b"\xc3\xa9.\xc3\xa9.\xc3\xa9", b"." * 7_000, b"a b", b"fstash_\xff", b"e30.e30.e30"],
)
async def test_bytes_that_are_no_token_are_answered_as_a_wrong_one(
    service: Service, settings: Settings, objects: MemoryObjects, token: bytes
) -> None:
    async with service(verifier=verifier(settings, objects)) as http:
        headers = [(b"authorization", b"Bearer " + token)]
        assert_nothing_served(await http.post("/mcp", json=LIST, headers=headers))


@pytest.mark.parametrize("mode", MODES)
async def test_a_token_of_the_provider_that_may_only_read_is_told_what_to_log_in_for(
    service: Service, settings: Settings, objects: MemoryObjects, provider: Provider, mode: str
) -> None:
    answers: list[httpx2.Response] = []

    async def note(answer: httpx2.Response) -> None:
        if answer.status_code == 403:
            await answer.aread()
            answers.append(answer)

    async with service(verifier=verifier(settings, objects)) as http:
        http.headers["authorization"] = f"Bearer {provider.token(scope='read')}"
        http.event_hooks["response"].append(note)
        async with mcp_client(http, mode) as client:
            assert not (await client.call_tool("artifact_info", {})).is_error
            with pytest.raises(MCPError):
                await client.call_tool("fetch_content", {"url": "https://example.org"})
    (answer,) = answers
    assert 'scope="fetch", error="insufficient_scope"' in answer.headers["www-authenticate"]
    assert "This call needs the scope fetch; the token has read." in answer.text


@pytest.mark.parametrize("mode", MODES)
async def test_a_token_of_ours_that_may_only_read_gets_one_line_from_a_tool_that_fetches(
    service: Service, objects: MemoryObjects, mode: str
) -> None:
    own = OwnTokens(objects)
    token = (await own.create("team-a", "ci", scopes=["read"])).text
    async with service(verifier=own) as http:
        http.headers["authorization"] = f"Bearer {token}"
        async with mcp_client(http, mode) as client:
            listed = await client.call_tool("artifact_info", {})
            read = await client.call_tool("get_search_content", {"artifact_ref": URL})
            refused = await client.call_tool("fetch_content", {"url": URL})
    assert not listed.is_error
    assert refused.is_error
    parts = [*listed.content, *read.content, *refused.content]
    none, unknown, line = [part.text for part in parts if isinstance(part, TextContent)]
    more = "hoever runs the service can give a token of the scope fetch"
    assert none.endswith(f": no artifacts yet.]\nTo fetch one: w{more}")
    assert unknown.endswith(f"Nothing is stored under this URL. Fetch it first: w{more}.")
    assert line == f"[refused] This token may read what is kept, and fetch nothing. W{more}."


async def test_a_token_without_any_scope_of_ours_may_not_even_list(
    service: Service, settings: Settings, objects: MemoryObjects, provider: Provider
) -> None:
    async with service(verifier=verifier(settings, objects)) as http:
        token = provider.token(scope="openid")
        answer = await http.post("/mcp", json=LIST, headers=bearer(token))
    assert answer.status_code == 403
    assert 'scope="read", error="insufficient_scope"' in answer.headers["www-authenticate"]


async def test_an_account_that_is_not_let_in_is_told_why_and_not_to_log_in_again(
    service: Service, settings: Settings, objects: MemoryObjects, provider: Provider
) -> None:
    async with service(verifier=verifier(settings, objects)) as http:
        token = provider.token(tenant=None)
        answer = await http.post("/mcp", json=LIST, headers=bearer(token))
    assert answer.status_code == 403
    assert "www-authenticate" not in answer.headers
    line = "This account is not let in: the claim tenant of its token is missing."
    assert answer.json() == {"error": "access_denied", "error_description": line}


async def test_while_tokens_cannot_be_verified_the_answer_is_503(
    service: Service, settings: Settings, objects: MemoryObjects, provider: Provider
) -> None:
    provider.site.put("/keys", status=503)
    async with service(verifier=verifier(settings, objects)) as http:
        answer = await http.post("/mcp", json=LIST, headers=bearer(provider.token()))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "www-authenticate" not in answer.headers
    assert provider.issuer not in answer.text


async def test_without_provider_and_tokens_nobody_is_asked_for_one(tmp_path: Path) -> None:
    objects = MemoryObjects()
    plain = load({"store.folder": str(tmp_path)})
    assert await verifier_of(plain, objects) is None
    await OwnTokens(objects).create("team-a", "ci")
    assert await verifier_of(plain, objects) is not None


@pytest.mark.parametrize("how", ["revoked", "removed by hand"])
async def test_a_store_that_had_tokens_asks_for_one_after_its_last_is_gone(
    how: str, tmp_path: Path
) -> None:
    objects = MemoryObjects()
    own, plain = OwnTokens(objects), load({"store.folder": str(tmp_path)})
    token = await own.create("team-a", "ci")
    if how == "revoked":
        await own.revoke(token.record.id)
    else:
        await objects.delete(f"tokens/{token.record.id}")
    assert await own.records() == []
    asked = await verifier_of(plain, objects)
    assert asked is not None
    with pytest.raises(Rejected):
        await asked.verify(token.text)


async def test_a_store_that_fails_at_the_start_opens_the_service_to_nobody(tmp_path: Path) -> None:
    class Broken(MemoryObjects):
        async def items(self, folder: str = "") -> dict[str, bytes]:
            raise StoreError(f"{folder} cannot be read.", "Try again.")

    with pytest.raises(StoreError):
        await verifier_of(load({"store.folder": str(tmp_path)}), Broken())
