"""What verifies the tokens of a service, by its settings."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from fetchstash.config import load
from fetchstash.errors import BadArgument
from fetchstash.service.access import OwnTokens, Rejected, verifier
from fetchstash.store import MemoryObjects
from tests.loopback import Site
from tests.service.access.provider import AUDIENCE, Provider

pytestmark = [pytest.mark.anyio, pytest.mark.whole]

ISSUER = "https://idp.example.org"


async def test_tokens_of_both_kinds_are_taken_side_by_side(site: Site, tmp_path: Path) -> None:
    provider, objects = Provider(site), MemoryObjects()
    values = {"oauth.issuer": provider.issuer, "oauth.audience": AUDIENCE}
    both = verifier(load({"store.folder": str(tmp_path), **values}), objects)
    own = await OwnTokens(objects).create("team-b", "ci")
    assert (await both.verify(own.text)).tenant == "team-b"
    assert (await both.verify(provider.token())).tenant == "team-a"


async def test_without_a_provider_its_tokens_are_none(site: Site, tmp_path: Path) -> None:
    own = verifier(load({"store.folder": str(tmp_path)}), MemoryObjects())
    with pytest.raises(Rejected) as caught:
        await own.verify(Provider(site).token())
    assert caught.value.reason == "malformed"
    assert site.asked == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "oauth.audience is not"),
        ({"audience": "api://fetchstash"}, "oauth.audience is 'api://fetchstash'"),
        ({"audience": AUDIENCE, "resource": "fetch.example.org"}, "oauth.resource is"),
        ({"audience": AUDIENCE, "resource": f"{AUDIENCE}#a"}, "oauth.resource is"),
        ({"audience": f"{AUDIENCE}?a=b"}, "oauth.audience is"),
        ({"audience": AUDIENCE, "fetch_scope": "read"}, "are the same"),
        ({"audience": AUDIENCE, "issuer": "http://idp.example.org"}, "oauth.issuer is"),
        ({"audience": AUDIENCE, "issuer": ""}, "oauth.issuer is not set"),
        ({"audience": AUDIENCE, "tenant_claim": ""}, "oauth.tenant_claim is empty"),
        ({"audience": AUDIENCE, "principal_claim": ""}, "oauth.principal_claim is empty"),
        ({"audience": AUDIENCE, "read_scope": "a b"}, "oauth.read_scope is 'a b'"),
        ({"audience": AUDIENCE, "fetch_scope": 'a"'}, "oauth.fetch_scope is"),
        ({"audience": AUDIENCE, "fetch_scope": ""}, "oauth.fetch_scope is"),
        ({"audience": AUDIENCE, "tenant": "A b"}, "oauth.tenant is 'A b'"),
        ({"audience": AUDIENCE, "tenant_map": ["acme"]}, "oauth.tenant_map has an item"),
        ({"audience": AUDIENCE, "tenant_map": ["a=A"]}, "oauth.tenant_map has an item"),
        ({"audience": AUDIENCE, "client_id": "a", "client_secret": "b"}, "names a variable"),
        ({"audience": AUDIENCE, "client_secret": "env:SECRET"}, "oauth.client_id needs"),
        ({"audience": AUDIENCE, "client_id": "a", "client_secret": "env:NONE"}, "NONE, which the"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_right_are_refused_at_the_start(
    tmp_path: Path, values: dict[str, Any], message: str
) -> None:
    named = {f"oauth.{name}": value for name, value in {"issuer": ISSUER, **values}.items()}
    with pytest.raises(BadArgument, match=message):
        verifier(load({"store.folder": str(tmp_path), **named}), MemoryObjects())


def test_without_its_extra_a_provider_is_one_line_that_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(_: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", nothing)
    values = {"oauth.issuer": ISSUER, "oauth.audience": AUDIENCE}
    with pytest.raises(BadArgument, match=r'pip install "fetchstash\[team\]"'):
        verifier(load({"store.folder": str(tmp_path), **values}), MemoryObjects())
