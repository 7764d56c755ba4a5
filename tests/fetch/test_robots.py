"""robots.txt: which paths a file allows (RFC 9309), and what parsing a hostile one costs."""

import pytest
from hypothesis import given, strategies as st

from fetchstash.fetch._robots import MAX_BYTES, read_robots

DECISIONS = {
    "no rules": ("", "/a", True),
    "another's group": ("User-agent: other\nDisallow: /", "/a", True),
    "everyone's group": ("User-agent: *\nDisallow: /", "/a", False),
    "our group before everyone's": (
        "User-agent: *\nDisallow: /\nUser-agent: fetchstash\nDisallow: /b",
        "/a",
        True,
    ),
    "our empty group before everyone's": ("User-agent: fetchstash\nUser-agent: x", "/a", True),
    "one group for several": (
        "User-agent: x\nUser-agent: FetchStash\n\nDisallow: /a",
        "/a",
        False,
    ),
    "our groups add up": (
        "User-agent: fetchstash\nDisallow: /a\nUser-agent: x\nUser-agent: fetchstash\nDisallow: /b",
        "/b",
        False,
    ),
    "a version after our name": ("User-agent: fetchstash/2.0 (x)\nDisallow: /", "/a", False),
    "a longer name than ours": ("User-agent: fetchstasher\nDisallow: /", "/a", True),
    "other records close no group": (
        "User-agent: *\nSitemap: https://x/\nUser-agent: y\nDisallow: /",
        "/a",
        False,
    ),
    "a rule before any group": ("Disallow: /\nUser-agent: fetchstash", "/a", True),
    "the longest pattern": ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", True),
    "allow among equals": ("User-agent: *\nDisallow: /a\nAllow: /a", "/a", True),
    "an empty pattern": ("User-agent: *\nDisallow:", "/a", True),
    "a comment": ("User-agent: * # all\nDisallow: /a # b", "/a", False),
    "case in a path": ("User-agent: *\nDisallow: /A", "/a", True),
    "a star": ("User-agent: *\nDisallow: /a*z", "/abcz9", False),
    "a star that matches nothing": ("User-agent: *\nDisallow: /a*z", "/az", False),
    "stars in order": ("User-agent: *\nDisallow: /*b*a", "/ab", True),
    "an end": ("User-agent: *\nDisallow: /*.pdf$", "/x.pdf?a", True),
    "an end that matches": ("User-agent: *\nDisallow: /*.pdf$", "/x.pdf", False),
    "an end without a star": ("User-agent: *\nDisallow: /a$", "/a/", True),
    "an end behind overlapping parts": ("User-agent: *\nDisallow: /ab*bc$", "/abc", True),
    "a literal star": ("User-agent: *\nDisallow: /a-%2A.html", "/a-*.html", False),
    "a query": ("User-agent: *\nDisallow: /*?session=", "/a?session=1", False),
    "an escape in the file": ("User-agent: *\nDisallow: /%62%61r", "/bar", False),
    "an escape in the URL": ("User-agent: *\nDisallow: /a/ツ", "/a/%e3%83%84", False),
    "a reserved escape": ("User-agent: *\nDisallow: /a%2fb", "/a/b", True),
    "a byte order mark": ("\ufeffUser-agent: *\nDisallow: /", "/a", False),
    "line ends of all kinds": ("User-agent: *\r\rDisallow: /a\r\nDisallow: /b", "/b", False),
}


@pytest.mark.parametrize(("text", "path", "allowed"), DECISIONS.values(), ids=DECISIONS)
def test_a_robots_txt_decides_on_a_path(text: str, path: str, allowed: bool) -> None:
    assert read_robots(200, text.encode(), "fetchstash/1.0 (+x)").allows(path) is allowed


@pytest.mark.parametrize(
    ("status", "allowed"), [(200, False), (204, False), (404, True), (410, True), (503, False)]
)
def test_the_status_decides_whether_there_are_rules(status: int, allowed: bool) -> None:
    assert read_robots(status, b"User-agent: *\nDisallow: /", "x").allows("/a") is allowed


HOSTILE = {
    "agents times rules": b"useragent:x\n" * 20_000 + b"Allow:/\n" * 30_000,
    "everyone times rules": b"useragent:*\n" * 20_000 + b"Allow:/\n" * 30_000,
    "groups": b"useragent:*\nAllow:/\n" * 20_000,
    "many rules": b"useragent:*\n" + b"".join(b"Allow:/%d\n" % n for n in range(40_000)),
    "one rule of stars": b"useragent:*\nAllow:/" + b"*a" * 250_000,
    "characters to encode": b"useragent:*\nAllow:/" + "ツ".encode() * 150_000,
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_the_rules_that_are_kept_are_no_larger_than_their_text_encoded(body: bytes) -> None:
    robots = read_robots(200, body, "fetchstash")
    assert robots.size_bytes < 3 * MAX_BYTES
    assert robots.allows("/" + "a" * 8_000)


@given(st.binary(max_size=300), st.text("/a*$%?", max_size=20))
def test_any_robots_txt_is_read(body: bytes, path: str) -> None:
    assert read_robots(200, b"user-agent: *\nallow: " + body, "x").allows(path) in (True, False)
