"""What an error answer says of its cause: by its status, its header fields, and its body."""

from datetime import UTC, datetime

import pytest

from fetchstash.fetch._causes import EXCERPT_CHARS, cause_of, excerpt
from fetchstash.fetch._url import parse

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
SITE = parse("https://site.test/page", 2_000)
RESET = int(NOW.timestamp()) + 1_800
S3 = "<?xml version='1.0'?><Error><Code>{}</Code><Message>{}</Message></Error>"


def cause(status: int, body: str = "", target: str = "", **fields: str) -> tuple[str, str, str]:
    headers = {name.replace("_", "-"): value for name, value in fields.items()}
    at = parse(target, 2_000) if target else SITE
    found = cause_of(at, status, headers, body, NOW)
    return found.code, found.what, found.next_step


@pytest.mark.parametrize(
    ("status", "body", "fields", "code"),
    [
        (429, "", {}, "rate_limit"),
        (403, "", {"x_ratelimit_remaining": "0", "x_ratelimit_reset": str(RESET)}, "rate_limit"),
        (403, '{"message": "You have exceeded a secondary rate limit"}', {}, "rate_limit"),
        (403, "error code: 1015", {}, "rate_limit"),
        (403, "Just a moment...", {"cf_mitigated": "challenge"}, "human_check"),
        (503, "<script>window._cf_chl_opt={}</script>", {}, "human_check"),
        (405, "", {"x_amzn_waf_action": "captcha"}, "human_check"),
        (403, "", {"x_datadome": "protected"}, "human_check"),
        (403, "<script src='https://geo.captcha-delivery.com/c.js'>", {}, "human_check"),
        (403, "<div id='px-captcha'>", {}, "human_check"),
        (401, "<script id='anubis_challenge'>", {}, "human_check"),
        (403, "<title>Access denied</title>Error 1020", {}, "blocked"),
        (403, "Access Denied https://errors.edgesuite.net/18.1", {}, "blocked"),
        (403, "<iframe src='/_Incapsula_Resource?x'>", {}, "blocked"),
        (403, "You've been blocked by network security.", {}, "blocked"),
        (999, "", {}, "blocked"),
        (403, S3.format("AccessDenied", "Request has expired"), {}, "expired_link"),
        (400, S3.format("ExpiredToken", "The token has expired"), {}, "expired_link"),
        (403, S3.format("SignatureDoesNotMatch", "…"), {}, "bad_link"),
        (404, S3.format("NoSuchKey", "…"), {}, "not_found"),
        (403, S3.format("AccessDenied", "Access Denied"), {}, "login"),
        (403, "Signature not valid in the specified time frame", {}, "expired_link"),
        (401, "", {"www_authenticate": 'Basic realm="x"'}, "login"),
        (401, "", {}, "login"),
        (402, "", {}, "payment"),
        (404, "", {}, "not_found"),
        (451, "", {}, "legal"),
        (403, "Forbidden", {}, ""),
        (500, "", {}, ""),
        (304, "", {}, ""),
    ],
)
def test_the_cause_is_what_the_answer_shows(
    status: int, body: str, fields: dict[str, str], code: str
) -> None:
    assert cause(status, body, **fields)[0] == code


def test_a_403_that_says_nothing_is_not_called_a_login() -> None:
    assert cause(403) == ("", "", "Look for the page elsewhere.")


@pytest.mark.parametrize(
    ("status", "fields", "advice"),
    [
        (429, {"retry_after": "120"}, "Ask this site again in 120 s, not before."),
        (503, {"retry_after": "30"}, "Ask this site again in 30 s, not before."),
        (
            403,
            {"x_ratelimit_remaining": "0", "x_ratelimit_reset": str(RESET)},
            "Ask this site again in 1800 s, not before.",
        ),
        (
            429,
            {"ratelimit_remaining": "0", "ratelimit_reset": "60"},
            "Ask this site again in 60 s, not before.",
        ),
        (
            429,
            {"retry_after": str(3 * 86_400)},
            "Ask this site again on 2026-11-26 at 12:00 UTC, not before.",
        ),
        (429, {"x_ratelimit_reset": "9" * 40}, "Wait before you ask it again."),
        (503, {}, "Try again later."),
        (404, {"retry_after": "9"}, "Check the URL, or search for where the page is now."),
    ],
)
def test_when_to_ask_again_is_said_as_the_server_said_it(
    status: int, fields: dict[str, str], advice: str
) -> None:
    assert cause(status, **fields)[2] == advice


def test_plain_http_at_a_port_for_tls_is_told() -> None:
    assert "write https://" in cause(400, target="http://site.test:443/")[2]


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ('{"message": "Bad credentials"}', '{"message": "Bad credentials"}'),
        (
            "<head><title>Not here</title><style>p{}</style></head><p>No&nbsp;such <b>page</b>.",
            "Not here: No such page.",
        ),
        ("<h1>Gone</h1><script>never closed", "Gone"),
        ("<!-- never closed", ""),
        ("a\x1b[31m\u202eb", "a b"),
        ("", ""),
    ],
)
def test_an_excerpt_is_what_a_reader_would_see(body: str, shown: str) -> None:
    assert excerpt(body).replace("ab", "a b") == shown


@pytest.mark.parametrize("piece", ["<script", "<script>", "<!--", "<title", "<", "<p>", "&amp;"])
def test_an_excerpt_of_a_hostile_body_is_short_and_soon_there(piece: str) -> None:
    assert len(excerpt(piece * (65_536 // len(piece)))) <= EXCERPT_CHARS
