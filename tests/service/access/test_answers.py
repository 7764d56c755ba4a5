"""What a client without the right token is told."""

from hypothesis import given, strategies as st

from fetchstash.config import OAuthLimits
from fetchstash.service.access import Rejected, challenge, metadata_paths, resource_metadata
from fetchstash.service.access._principal import metadata_url

LIMITS = OAuthLimits("https://idp.example.org/realms/a", "https://fetch.example.org/mcp")
PLACE = "https://fetch.example.org/.well-known/oauth-protected-resource/mcp"


def test_a_call_beyond_its_scope_is_told_the_providers_name_of_the_scope() -> None:
    limits = OAuthLimits(LIMITS.issuer, LIMITS.audience, fetch_scope="stash.all")
    rejected = Rejected("scope", "No.", error="insufficient_scope", scope="fetch")
    assert rejected.status == 403
    assert 'scope="stash.all", error="insufficient_scope"' in challenge(limits, rejected)


def test_without_a_provider_there_is_no_metadata() -> None:
    limits = OAuthLimits(audience=LIMITS.audience)
    assert challenge(limits) == "Bearer"
    assert challenge(limits, Rejected("unknown", "No.")) == (
        'Bearer error="invalid_token", error_description="No."'
    )
    assert metadata_paths(limits) == ()


def test_the_metadata_names_the_resource_and_who_grants_access_to_it() -> None:
    assert resource_metadata(LIMITS) == {
        "resource": "https://fetch.example.org/mcp",
        "authorization_servers": ["https://idp.example.org/realms/a"],
        "scopes_supported": ["read", "fetch"],
        "bearer_methods_supported": ["header"],
        "resource_name": "fetchstash",
    }
    assert metadata_paths(LIMITS) == (
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource",
    )


def test_a_resource_that_is_not_the_audience_has_a_setting() -> None:
    limits = OAuthLimits(LIMITS.issuer, "api://fetchstash", "https://fetch.example.org/mcp")
    assert metadata_url(limits) == PLACE
    assert resource_metadata(limits)["resource"] == "https://fetch.example.org/mcp"


@given(st.text())
def test_no_description_ends_its_quotes(description: str) -> None:
    header = challenge(LIMITS, Rejected("unknown", description))
    assert header.isascii()
    assert header.isprintable()
    assert header.count('"') in (6, 8)
    assert "\\" not in header
