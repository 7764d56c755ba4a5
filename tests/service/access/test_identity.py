"""The recipes of docs/identity.md, each with tokens as its provider writes them."""

import base64
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import httpx2
import pytest

from fetchstash.config import KEYS, load
from fetchstash.errors import Busy, FetchFailed
from fetchstash.service.access import Rejected, challenge, grants_scopes, verifier
from fetchstash.service.access._issuer import BELIEVED, Issuer
from fetchstash.service.access._oauth import OAuthTokens
from fetchstash.store import MemoryObjects
from tests.loopback import Site
from tests.service.access.provider import AUDIENCE, Provider

pytestmark = [pytest.mark.anyio, pytest.mark.whole]

PAGE = (Path(__file__).parents[3] / "docs" / "identity.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^## (.+?)\n.*?```toml\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL))

Sent = tuple[dict[str, Any], tuple[str, str, set[str]], dict[str, Any], str]

# What the provider sends, whom it stands for, a change that keeps the account out, and the reason.
# fmt: off
SENT: dict[str, Sent] = {
    "Keycloak": (
        {"aud": ["fetchstash", "account"], "typ": "Bearer", "scope": "openid email",
         "preferred_username": "ada", "groups": ["/everyone", "/research"],
         "resource_access": {"fetchstash": {"roles": ["fetch"]}, "account": {"roles": ["x"]}}},
        ("research", "ada", {"fetch"}),
        {"groups": ["/everyone"]}, "groups of its token names no tenant of this service",
    ),
    "Microsoft Entra ID": (
        {"aud": "2b1d7c55-0000-4000-8000-000000000000", "scope": None, "scp": "access_as_user",
         "oid": "0d4f", "roles": ["Stash.Read"]},
        ("acme", "0d4f", {"read"}),
        {"roles": None}, "roles of its token has neither Stash.Read nor Stash.Fetch",
    ),
    "Okta": (
        {"sub": "ada@acme.example", "scope": None, "scp": ["openid", "fetch"],
         "groups": ["Everyone", "Stash Sales"]},
        ("sales", "ada@acme.example", {"fetch"}),
        {"groups": None}, "groups of its token is missing",
    ),
    "Auth0": (
        {"aud": [AUDIENCE, "https://acme.eu.auth0.com/userinfo"], "sub": "auth0|5f7c",
         "scope": "openid", "permissions": ["read", "fetch"],
         "https://fetch.example.org/tenant": "Acme Research"},
        ("acme-research", "auth0|5f7c", {"read", "fetch"}),
        {"https://fetch.example.org/tenant": ["a", "b"]},
        "https://fetch.example.org/tenant of its token names several tenants",
    ),
    "Google": (
        {"aud": "1234.apps.googleusercontent.com", "sub": "1105", "scope": None,
         "hd": "acme.example", "email": "ada@acme.example"},
        ("acme", "ada@acme.example", {"fetch"}),
        {"hd": None}, "hd of its token is missing",
    ),
}
# fmt: on


def recipe(name: str, **changes: Any) -> dict[str, Any]:
    """Return the settings of a recipe by their keys."""
    table = tomllib.loads(RECIPES[name])["oauth"] | changes
    return {f"oauth.{key}": value for key, value in table.items()}


def test_every_recipe_is_tried() -> None:
    assert set(RECIPES) == {*SENT, "Opaque tokens"}
    assert all(set(recipe(name)) <= set(KEYS) for name in RECIPES)


@pytest.mark.parametrize("name", SENT)
async def test_a_recipe_lets_in_its_accounts_and_tells_others_which_claim_is_wrong(
    site: Site, tmp_path: Path, name: str
) -> None:
    claims, (tenant, person, scopes), changes, line = SENT[name]
    provider = Provider(site)
    values = {"store.folder": str(tmp_path), **recipe(name, issuer=provider.issuer)}
    tokens = verifier(load(values), MemoryObjects())
    sent: dict[str, Any] = {"tenant": None, **claims}
    other: dict[str, Any] = sent | changes
    principal = await tokens.verify(provider.token(header={"typ": "JWT"}, **sent))
    assert (principal.tenant, principal.name, {*principal.scopes}) == (tenant, person, scopes)
    with pytest.raises(Rejected) as caught:
        await tokens.verify(provider.token(**other))
    assert caught.value.description == f"This account is not let in: the claim {line}."
    assert (caught.value.status, caught.value.error) == (403, "access_denied")


@pytest.mark.parametrize(
    ("name", "is_asked"), [("Okta", True), ("Auth0", False), ("Google", False)]
)
def test_a_client_is_asked_to_log_in_for_a_scope_and_not_for_a_role(
    name: str, is_asked: bool
) -> None:
    limits = load(recipe(name)).oauth
    assert grants_scopes(limits) is ("scope=" in challenge(limits)) is is_asked


ACTIVE = {"active": True, "aud": AUDIENCE, "sub": "ada", "scope": "read", "ext": {"team": "b"}}


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (ACTIVE, "b"),
        ({"active": False}, "unknown"),
        (ACTIVE | {"aud": ["https://other.example.org"]}, "audience"),
        ({name: value for name, value in ACTIVE.items() if name != "aud"}, "audience"),
        (ACTIVE | {"iss": "https://other.example.org"}, "issuer"),
        (ACTIVE | {"exp": 1_000}, "expired"),
        ({"error": "invalid_client"}, "unavailable"),
    ],
    ids=str,
)
async def test_an_opaque_token_is_what_the_provider_says(
    said: dict[str, Any], outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[httpx2.Request] = []
    limits = load(recipe("Opaque tokens")).oauth

    async def answer(request: httpx2.Request) -> httpx2.Response:
        document: dict[str, Any] = {"issuer": limits.issuer}
        document["introspection_endpoint"] = f"{limits.issuer}/introspect"
        if request.method == "POST":
            asked.append(request)
            assert b"token=opaque" in await request.aread()
            document = said
        return httpx2.Response(200, stream=httpx2.ByteStream(json.dumps(document).encode()))

    client, transport = ("fetchstash", "pass word"), httpx2.MockTransport(answer)
    issuer = Issuer(limits.issuer, client=client, transport=transport)
    tokens = OAuthTokens(limits, issuer)
    for _ in range(2):
        try:
            result = (await tokens.verify("opaque")).tenant
        except Rejected as rejected:
            result = rejected.reason
        except (FetchFailed, Busy):
            result = "unavailable"
        assert result == outcome
    assert len(asked) == (1 if said.get("active") else 2), "an active one is believed for a while"
    user = base64.b64decode(asked[0].headers["authorization"].removeprefix("Basic ")).decode()
    assert user == "fetchstash:pass%20word"


async def test_an_opaque_token_that_was_withdrawn_is_refused_after_half_a_minute() -> None:
    said, now = dict(ACTIVE), 1_000.0
    limits = load(recipe("Opaque tokens")).oauth

    async def answer(request: httpx2.Request) -> httpx2.Response:
        place = {"issuer": limits.issuer, "introspection_endpoint": f"{limits.issuer}/introspect"}
        document = said if request.method == "POST" else place
        return httpx2.Response(200, stream=httpx2.ByteStream(json.dumps(document).encode()))

    transport = httpx2.MockTransport(answer)
    issuer = Issuer(limits.issuer, client=("a", "b"), transport=transport, clock=lambda: now)
    tokens = OAuthTokens(limits, issuer)
    await tokens.verify("opaque")
    said = {"active": False}
    now += BELIEVED - 1
    await tokens.verify("opaque")
    now += 1
    with pytest.raises(Rejected, match="not any more"):
        await tokens.verify("opaque")
