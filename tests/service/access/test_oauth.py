"""Tokens of an identity provider: those that are taken, and everything that is not."""

import hashlib
import hmac
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from hypothesis import given, strategies as st

from fetchstash.config import OAuthLimits
from fetchstash.errors import BadArgument, Busy, FetchFailed
from fetchstash.service.access import Principal, Rejected
from fetchstash.service.access._issuer import Issuer
from fetchstash.service.access._oauth import OAuthTokens
from tests.loopback import Site
from tests.service.access.floods import turned_away
from tests.service.access.provider import (
    ALGORITHMS,
    AUDIENCE,
    Provider,
    jwk,
    part,
    private_key,
    public_pem,
)
from tests.service.asgi import Clock

pytestmark = [pytest.mark.anyio, pytest.mark.whole]


def tokens_of(provider: Provider, clock: Clock | None = None, **changes: Any) -> OAuthTokens:
    limits = OAuthLimits(issuer=provider.issuer, audience=AUDIENCE, **changes)
    return OAuthTokens(limits, Issuer(limits.issuer, clock=clock or Clock()))


@pytest.fixture
async def tokens(provider: Provider, clock: Clock) -> OAuthTokens:
    """Return what has verified a token, and so read the provider's keys."""
    tokens = tokens_of(provider, clock)
    await tokens.verify(provider.token())
    return tokens


async def reason(tokens: OAuthTokens, token: str) -> str:
    with pytest.raises(Rejected) as caught:
        await tokens.verify(token)
    assert len(token) < 20 or token[:40] not in f"{caught.value}"
    return caught.value.reason


async def test_a_token_says_who_its_tenant_and_principal_are(provider: Provider) -> None:
    principal = await tokens_of(provider).verify(provider.token())
    assert principal == Principal(
        "team-a", "ada", frozenset({"read", "fetch"}), issuer=provider.issuer
    )


async def test_the_operator_names_the_claims_and_the_scopes(provider: Provider) -> None:
    tokens = tokens_of(
        provider,
        tenant_claim="https://example.org/team",
        principal_claim="email",
        read_scope="stash.read",
        fetch_scope="stash.all",
    )
    more: dict[str, Any] = {
        "https://example.org/team": "b",
        "email": "a@example.org",
        "tenant": "other",
    }
    principal = await tokens.verify(provider.token(scope="read stash.read", **more))
    assert (principal.tenant, principal.name) == ("b", "a@example.org")
    assert principal.scopes == {"read"}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_each_asymmetric_algorithm_is_taken(provider: Provider, algorithm: str) -> None:
    provider.add("its", algorithm)
    assert (await tokens_of(provider).verify(provider.token("its"))).name == "ada"


@pytest.mark.parametrize(
    "scopes", [{"scp": ["read"]}, {"scp": "read"}, {"scope": ["read", 3]}], ids=str
)
async def test_scopes_may_stand_where_other_providers_write_them(
    provider: Provider, scopes: dict[str, Any]
) -> None:
    claims: dict[str, Any] = {"scope": None, **scopes}
    token = provider.token(**claims)
    assert (await tokens_of(provider).verify(token)).scopes == {"read"}


CLAIMS: dict[str, tuple[str, dict[str, Any]]] = {
    "another audience": ("audience", {"aud": "https://other.example.org/mcp"}),
    "an audience that begins as ours": ("audience", {"aud": AUDIENCE + "/"}),
    "no audience": ("claim", {"aud": None}),
    "an audience that is a number": ("audience", {"aud": 7}),
    "another issuer": ("issuer", {"iss": "https://other.example.org"}),
    "the issuer and a slash": ("issuer", {"iss": "{issuer}/"}),
    "a list of issuers": ("issuer", {"iss": ["{issuer}"]}),
    "no issuer": ("claim", {"iss": None}),
    "expired": ("expired", {"exp": 1_000_000}),
    "no end": ("claim", {"exp": None}),
    "an end that is a text": ("claim", {"exp": "2999"}),
    "an end that is true": ("claim", {"exp": True}),
    "an end beyond all": ("claim", {"exp": 10**30}),
    "not valid yet": ("not_yet_valid", {"nbf": 9_000_000_000}),
    "issued in the future": ("not_yet_valid", {"iat": 9_000_000_000}),
    "no tenant": ("tenant", {"tenant": None}),
    "a tenant that leaves its folder": ("tenant", {"tenant": "../team-b"}),
    "a list of tenants": ("tenant", {"tenant": ["team-a", "team-b"]}),
    "no principal": ("claim", {"sub": None}),
    "a principal of two lines": ("claim", {"sub": "ada\nroot"}),
    "a principal that changes direction": ("claim", {"sub": "ada\u202e"}),
    "a principal of half a pair": ("claim", {"sub": "ada\ud800"}),
    "a principal of 300 characters": ("claim", {"sub": "a" * 300}),
}


@pytest.mark.parametrize("case", CLAIMS)
async def test_a_token_with_wrong_claims_is_rejected(provider: Provider, case: str) -> None:
    expected, changes = CLAIMS[case]
    changes = json.loads(json.dumps(changes).replace("{issuer}", provider.issuer))
    key, algorithm = provider.keys["first"]
    # By hand: PyJWT refuses to make some of them.
    head = part({"alg": algorithm, "kid": "first"})
    signed = f"{head}.{part(provider.claims(**changes))}"
    signature = jwt.get_algorithm_by_name(algorithm).sign(signed.encode(), key)
    assert await reason(tokens_of(provider), f"{signed}.{part(signature)}") == expected


def alg_none(provider: Provider) -> str:
    return f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(provider.claims())}."


def alg_none_with_a_signature(provider: Provider) -> str:
    _, claims, signature = provider.token().split(".")
    return f"{part({'alg': 'None', 'kid': 'first'})}.{claims}.{signature}"


def hs256_with_the_public_key(provider: Provider) -> str:
    key, _ = provider.keys["first"]
    signed = f"{part({'alg': 'HS256', 'kid': 'first'})}.{part(provider.claims())}"
    signature = hmac.new(public_pem(key), signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{part(signature)}"


def other_claims(provider: Provider) -> str:
    head, _, signature = provider.token().split(".")
    return f"{head}.{part(provider.claims(tenant='team-b'))}.{signature}"


def another_key_of_that_name(provider: Provider) -> str:
    return jwt.encode(provider.claims(), private_key("RS256", 9), "RS256", {"kid": "first"})


def encrypted(provider: Provider) -> str:
    return ".".join([part({"alg": "RSA-OAEP", "enc": "A256GCM"}), *("AAAA",) * 4])


def deep(provider: Provider) -> str:
    return f"{part(b'[' * 5_000)}.{part({})}.AAAA"


def deep_claims(provider: Provider) -> str:
    head = part({"alg": "RS256", "kid": "first"})
    return f"{head}.{part(b'[' * 5_000)}.AAAA"


def crit_that_a_library_knows(provider: Provider) -> str:
    head = {"alg": "RS256", "kid": "first", "crit": ["b64"], "b64": True}
    return f"{part(head)}.{part(provider.claims())}.AAAA"


def header(**values: Any) -> Callable[[Provider], str]:
    return lambda provider: provider.token(header=values)


FORGED: dict[str, tuple[str, Callable[[Provider], str]]] = {
    "nothing": ("malformed", lambda _: ""),
    "no JWT": ("malformed", lambda _: "secret"),
    "dots": ("malformed", lambda _: ".."),
    "two parts": ("malformed", lambda p: p.token().rpartition(".")[0]),
    "four parts": ("malformed", lambda p: p.token() + ".AAAA"),
    "too long": ("malformed", lambda p: p.token(padding="x" * 8_192)),
    "letters that are no ASCII": ("malformed", lambda p: p.token() + "é"),
    "nested 5,000 deep in its header": ("malformed", deep),
    "nested 5,000 deep in its claims": ("signature", deep_claims),
    "encrypted": ("malformed", encrypted),
    "alg none": ("algorithm", alg_none),
    "alg None": ("algorithm", alg_none_with_a_signature),
    "HS256 with the public key": ("algorithm", hs256_with_the_public_key),
    "other claims under a signature": ("signature", other_claims),
    "another key of that name": ("signature", another_key_of_that_name),
    "jku": ("header", header(jku="https://evil.example/keys")),
    "x5u": ("header", header(x5u="https://evil.example/chain")),
    "jwk": ("header", header(jwk={"kty": "RSA"})),
    "x5c": ("header", header(x5c=["AAAA"])),
    "crit": ("malformed", header(crit=["exp"])),
    "crit that a library knows": ("header", crit_that_a_library_knows),
    "a token in a token": ("header", header(cty="JWT")),
    "a logout token": ("header", header(typ="logout+jwt")),
    "a proof": ("header", header(typ="dpop+jwt")),
    "a key with a long name": ("header", header(kid="k" * 300)),
    "an unknown key": ("key", header(kid="second")),
}


@pytest.mark.parametrize("case", FORGED)
async def test_a_forged_token_is_rejected(provider: Provider, case: str) -> None:
    expected, make = FORGED[case]
    assert await reason(tokens_of(provider), make(provider)) == expected


@given(st.data())
async def test_a_token_with_one_changed_character_is_rejected(data: st.DataObject) -> None:
    key = private_key("ES256")
    token = jwt.encode({"iss": "x"}, key, "ES256", {"kid": "k"})
    at = data.draw(st.integers(0, len(token) - 3))  # the last two have bits that mean nothing
    changed = token[:at] + data.draw(st.characters(codec="ascii")) + token[at + 1 :]
    if changed == token:
        return
    with pytest.raises(Rejected):
        await tokens_at("https://idp.example.org", key).verify(changed)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
HEADERS = st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "b64", "cty", "x"]), JSON)
CLAIM_NAMES = ["iss", "aud", "exp", "nbf", "iat", "sub", "jti", "tenant", "scope", "scp"]


@pytest.mark.long
@given(HEADERS, st.dictionaries(st.sampled_from(CLAIM_NAMES), JSON, min_size=1))
async def test_no_value_of_a_signed_token_makes_the_verifier_fail(
    header: dict[str, Any], claims: dict[str, Any]
) -> None:
    key, issuer = private_key("ES256"), "https://idp.example.org"
    head = {"alg": "ES256", "kid": "k"}
    good = {"iss": issuer, "aud": AUDIENCE, "exp": 9_000_000_000, "sub": "a", "tenant": "a"}
    for changed_head, changed_claims in (
        (header, good),
        (head | header, good),
        (head, good | claims),
    ):
        signed = f"{part(changed_head)}.{part(changed_claims)}"
        signature = jwt.get_algorithm_by_name("ES256").sign(signed.encode(), key)
        try:
            principal = await tokens_at(issuer, key).verify(f"{signed}.{part(signature)}")
        except Rejected:
            continue
        assert principal.tenant == changed_claims["tenant"]
        assert principal.name.isprintable()


def tokens_at(
    issuer: str,
    key: Any,
    clock: Callable[[], float] = time.monotonic,
    on_request: Callable[[], Awaitable[Any]] = anyio.lowlevel.checkpoint,
) -> OAuthTokens:
    """Return what verifies tokens that ES256 signs, without a socket."""
    keys = {"keys": [jwk(key, "ES256", "k")]}
    metadata = {"issuer": issuer, "jwks_uri": f"{issuer}/keys"}

    async def answer(request: httpx2.Request) -> httpx2.Response:
        await on_request()
        document = keys if request.url.path == "/keys" else metadata
        return httpx2.Response(200, stream=httpx2.ByteStream(json.dumps(document).encode()))

    known_keys = Issuer(issuer, transport=httpx2.MockTransport(answer), clock=clock)
    return OAuthTokens(OAuthLimits(issuer, AUDIENCE), known_keys)


async def test_a_clock_that_differs_by_half_a_minute_does_no_harm(provider: Provider) -> None:
    limits = OAuthLimits(issuer=provider.issuer, audience=AUDIENCE)
    now = 1_800_000_000.0
    tokens = OAuthTokens(limits, Issuer(limits.issuer), now=lambda: now)
    await tokens.verify(provider.token(iat=int(now) + 29, exp=int(now) + 60))
    await tokens.verify(provider.token(iat=int(now) - 60, exp=int(now) - 29))
    assert (
        await reason(tokens, provider.token(iat=int(now) + 31, exp=int(now) + 60))
        == "not_yet_valid"
    )
    late = provider.token(iat=int(now) - 60, exp=int(now) - 31)
    assert await reason(tokens, late) == "expired"


async def test_a_forged_key_does_not_use_up_the_look_up_of_a_new_one(
    provider: Provider, tokens: OAuthTokens
) -> None:
    for _ in range(50):
        assert await reason(tokens, provider.token(header={"kid": "forged"})) == "key"
    assert provider.site.asked.count("/keys") == 2
    provider.add("second", "ES256")
    assert (await tokens.verify(provider.token("second"))).name == "ada"
    assert await reason(tokens, provider.token(header={"kid": "forged"})) == "key"
    assert provider.site.asked.count("/keys") == 3


@pytest.mark.long
async def test_random_keys_cause_ten_reads_a_minute_and_no_rejection_of_what_is_not_known(
    provider: Provider, tokens: OAuthTokens, clock: Clock
) -> None:
    for number in range(10):
        assert await reason(tokens, provider.token(header={"kid": f"k{number}"})) == "key"
    for number in range(10, 50):
        with pytest.raises(Busy):
            await tokens.verify(provider.token(header={"kid": f"k{number}"}))
    assert provider.site.asked.count("/keys") == 11
    await tokens.verify(provider.token())
    provider.add("second", "ES256")
    with pytest.raises(Busy):
        await tokens.verify(provider.token("second"))
    clock.seconds += 6
    await tokens.verify(provider.token("second"))


async def test_an_unknown_key_is_no_rejection_while_keys_cannot_be_looked_up(
    provider: Provider, tokens: OAuthTokens
) -> None:
    provider.add("second", "ES256")
    provider.site.put("/keys", "down", status=503)
    for _ in range(3):
        with pytest.raises(FetchFailed):
            await tokens.verify(provider.token("second"))
    await tokens.verify(provider.token())


async def test_a_key_that_is_withdrawn_holds_no_longer_than_ten_minutes(
    provider: Provider, clock: Clock
) -> None:
    tokens = tokens_of(provider, clock)
    provider.add("second", "RS256", 1)
    await tokens.verify(provider.token())
    provider.publish(without="first")
    clock.seconds += 601
    assert await reason(tokens, provider.token()) == "key"
    await tokens.verify(provider.token("second"))


async def test_the_keys_hold_for_an_hour_while_the_provider_is_down(
    provider: Provider, tokens: OAuthTokens, clock: Clock
) -> None:
    provider.site.put("/keys", "down", status=503)
    clock.seconds += 3_000
    await tokens.verify(provider.token())
    clock.seconds += 3_000
    with pytest.raises(FetchFailed, match="answers with 503"):
        await tokens.verify(provider.token())
    before = len(provider.site.asked)
    with pytest.raises(FetchFailed, match="answers with 503"):
        await tokens.verify(provider.token())
    assert len(provider.site.asked) == before  # it is asked again after 30 s
    provider.publish()
    clock.seconds += 31
    await tokens.verify(provider.token())


async def test_a_client_that_leaves_does_not_interrupt_the_reading_of_keys_for_others() -> None:
    key, issuer = private_key("ES256"), "https://idp.example.org"
    asked, answers = 0, anyio.Event()

    async def hang() -> None:
        nonlocal asked
        asked += 1
        await answers.wait()

    tokens = tokens_at(issuer, key, on_request=hang)
    claims = {"iss": issuer, "aud": AUDIENCE, "sub": "ada", "tenant": "a", "exp": 9_000_000_000}
    token = jwt.encode(claims, key, "ES256", {"kid": "k"})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tokens.verify, token)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
        answers.set()
    await tokens.verify(token)
    assert asked == 2  # the metadata and the keys, once


async def test_unknown_keys_do_not_fill_the_places_of_known_ones_while_a_provider_hangs(
    clock: Clock,
) -> None:
    key, issuer = private_key("ES256"), "https://idp.example.org"
    answers = anyio.Event()
    answers.set()

    async def hang() -> None:
        await answers.wait()

    tokens = tokens_at(issuer, key, clock, hang)
    claims = {"iss": issuer, "aud": AUDIENCE, "sub": "ada", "tenant": "a", "exp": 9_000_000_000}
    known, stranger = (jwt.encode(claims, key, "ES256", {"kid": kid}) for kid in ("k", "other"))
    await tokens.verify(known)
    clock.seconds += 31
    answers = anyio.Event()
    flood = await turned_away(tokens, stranger, known, answers)
    assert flood == (1_000 - 201, {"key"})  # one reads the keys, and 200 wait for them


async def test_a_token_without_the_name_of_its_key_gets_the_only_one_that_fits(
    provider: Provider,
) -> None:
    key, _ = provider.keys["first"]
    token = jwt.encode(provider.claims(), key, "RS256")
    provider.add("curve", "ES256")
    assert (await tokens_of(provider).verify(token)).name == "ada"
    provider.add("second", "RS256", 1)
    assert await reason(tokens_of(provider), token) == "key"


BAD_KEYS: dict[str, Callable[[], dict[str, Any]]] = {
    "of 1,024 bits": lambda: jwk(private_key("RS256", 5, 1024), "RS256", "first"),
    "for encryption": lambda: jwk(private_key("RS256"), "RS256", "first", use="enc"),
    "of another algorithm": lambda: jwk(private_key("RS256"), "RS256", "first", alg="RS512"),
    "that is a secret": lambda: {"kty": "oct", "k": "AAAA", "kid": "first"},
    "without a modulus": lambda: {"kty": "RSA", "e": "AQAB", "kid": "first"},
    "of a wrong kind": lambda: {"kty": ["RSA"], "n": 3, "e": None, "kid": "first"},
}


@pytest.mark.parametrize("case", BAD_KEYS)
async def test_a_published_key_that_may_not_sign_verifies_nothing(
    provider: Provider, case: str
) -> None:
    signer = private_key("RS256", 5, 1024) if "1,024" in case else private_key("RS256")
    provider.publish_keys([BAD_KEYS[case](), "no key", None])
    signed = f"{part({'alg': 'RS256', 'kid': 'first'})}.{part(provider.claims())}"
    signature = signer.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    token = f"{signed}.{part(signature)}"
    assert await reason(tokens_of(provider), token) == "key"


async def test_the_metadata_of_openid_connect_serves_as_well(site: Site) -> None:
    provider = Provider(site, path="/realms/team")
    document = site.pages.pop("/.well-known/oauth-authorization-server/realms/team")
    site.put("/realms/team/.well-known/openid-configuration", document.body, "application/json")
    assert (await tokens_of(provider).verify(provider.token())).name == "ada"


METADATA: dict[str, tuple[dict[str, Any], str]] = {
    "another issuer": ({"issuer": "https://other.example.org"}, "calls itself otherwise"),
    "no keys": ({"jwks_uri": None}, "names no jwks_uri"),
    "keys over http": ({"jwks_uri": "http://192.0.2.1/keys"}, "names no jwks_uri"),
    "keys in a file": ({"jwks_uri": "file:///etc/passwd"}, "names no jwks_uri"),
}


@pytest.mark.parametrize("case", METADATA)
async def test_metadata_that_leads_elsewhere_is_not_followed(provider: Provider, case: str) -> None:
    changes, message = METADATA[case]
    provider.publish_metadata(**changes)
    with pytest.raises(FetchFailed, match=message):
        await tokens_of(provider).verify(provider.token())


DOCUMENTS: dict[str, tuple[bytes, int, str]] = {
    "too long": (b'{"keys": [' + b" " * 600_000 + b"]}", 200, "more than 524,288 bytes"),
    "no JSON": (b"<html>", 200, "no JSON"),
    "deep": (b"[" * 100_000, 200, "no JSON"),
    "a list": (b"[]", 200, "no keys"),
    "a redirect": (b"", 302, "no keys"),
    "an error": (b"{}", 500, "answers with 500"),
}


@pytest.mark.parametrize("case", DOCUMENTS)
async def test_keys_that_cannot_be_read_are_an_error_and_no_rejection(
    provider: Provider, case: str
) -> None:
    body, status, message = DOCUMENTS[case]
    headers = {"Location": provider.site.url("/elsewhere")} if status == 302 else {}
    provider.site.put("/keys", body, "application/json", status=status, headers=headers)
    with pytest.raises(FetchFailed, match=message):
        await tokens_of(provider).verify(provider.token())
    assert "/elsewhere" not in provider.site.asked


@pytest.mark.parametrize(
    "url",
    ["", "idp.example.org", "http://idp.example.org", "https://u:p@idp.example.org", "ftp://a"],
)
def test_an_issuer_without_tls_is_no_setting(url: str) -> None:
    with pytest.raises(BadArgument, match=r"oauth\.issuer"):
        Issuer(url)
