"""Secrets in URLs: masked by name and by shape, and nothing else touched."""

import time

import pytest
from hypothesis import given, strategies as st

from fetchstash.fetch import mask_url

# Assembled, so that no scanner takes this file for a leak.
SLACK = f"T{'0' * 8}/B{'0' * 8}/{'x' * 24}"
JWT = f"{'eyJ'}hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"

MASKED = {
    "password": ("https://joe:pa55@example.org/", "https://***@example.org/"),
    "user name alone": ("https://joe@example.org/", "https://***@example.org/"),
    "api_key": ("https://a.org/?q=1&api_key=s3cret&z=2", "https://a.org/?q=1&api_key=***&z=2"),
    "API-Key": ("https://a.org/?API-Key=s3cret", "https://a.org/?API-Key=***"),
    "percent-encoded name": ("https://a.org/?api%5Fkey=s3cret", "https://a.org/?api%5Fkey=***"),
    "AWS": (
        "https://s3.a.org/x?X-Amz-Date=20260101&X-Amz-Signature=abc",
        "https://s3.a.org/x?X-Amz-Date=20260101&X-Amz-Signature=***",
    ),
    "Azure": ("https://a.org/x?sv=2024&sig=abc%3D", "https://a.org/x?sv=2024&sig=***"),
    "some token": ("https://a.org/?my_reset_token=abc", "https://a.org/?my_reset_token=***"),
    "fragment": (
        "https://a.org/#access_token=abc&state=1",
        "https://a.org/#access_token=***&state=1",
    ),
    "JWT in the path": (f"https://a.org/v/{JWT}/x", "https://a.org/v/***/x"),
    "opaque value": (f"https://a.org/?v={'a1B2' * 10}", "https://a.org/?v=***"),
    "opaque query": (f"https://a.org/?{'a1B2' * 10}", "https://a.org/?***"),
    "Slack": (f"https://hooks.slack.com/services/{SLACK}", "https://hooks.slack.com/services/***"),
    "Telegram": (
        f"https://api.telegram.org/bot123456789:{'A' * 30}/getMe",
        "https://api.telegram.org/***/getMe",
    ),
    "GitHub": (f"https://a.org/gh{'p'}_{'a' * 36}", "https://a.org/***"),
}
UNTOUCHED = [
    "https://example.org/",
    "https://example.org/a/b?q=how+to+cook&page=2#part",
    "https://github.com/python/cpython/commit/0123456789abcdef0123456789abcdef01234567",
    "https://example.org/@user/x",
    "https://example.org/?url=https://joe@other.org/",
    "https://example.org/?q=",
    "not a url at all",
]


@pytest.mark.parametrize(("url", "masked"), MASKED.values(), ids=MASKED)
def test_a_secret_is_masked(url: str, masked: str) -> None:
    assert mask_url(url) == masked


NESTED = {
    "a path parameter": ("https://a.org/x;jsessionid=S3?y=1", "https://a.org/x;jsessionid=***?y=1"),
    "a URL in a URL": (
        "https://a.org/?to=https%3A%2F%2Fb.org%2F%3Ftoken%3DS3&z=1",
        "https://a.org/?to=***&z=1",
    ),
    "a URL in a URL without a secret": (
        "https://a.org/?to=https://b.org/&z=1",
        "https://a.org/?to=https://b.org/&z=1",
    ),
    "URLs without end": ("https://a.org/?u=" + "https://a.org/?u=" * 400, "https://a.org/?u=***"),
}


@pytest.mark.parametrize(("url", "masked"), NESTED.values(), ids=NESTED)
def test_a_secret_deeper_in_is_masked(url: str, masked: str) -> None:
    assert mask_url(url) == masked


@pytest.mark.parametrize("url", UNTOUCHED)
def test_what_is_no_secret_stays(url: str) -> None:
    assert mask_url(url) == url


@pytest.mark.parametrize(
    "part", ["eyJ", "eyJaaaaaaaaaa.", "sk-", "xoxb-a", "A1b2", "=a1", "&a1=", "/", "T/B/"]
)
def test_a_long_url_is_masked_in_no_time(part: str) -> None:
    began = time.monotonic()
    mask_url("https://a.org/" + part * (70_000 // len(part)))
    mask_url("https://a.org/?" + part * (70_000 // len(part)))
    assert (
        time.monotonic() - began < 1
    )  # where a run is read again from each of its characters it takes ten times that


@given(st.text(max_size=200))
def test_any_text_is_taken_and_masking_twice_changes_nothing_more(text: str) -> None:
    masked = mask_url(text)
    assert mask_url(masked) == masked
