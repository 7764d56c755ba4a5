"""URLs and hosts: one reading for everything that is vetted, dialled and sent."""

import re
import time
from ipaddress import ip_address

import pytest
from hypothesis import given, strategies as st

from fetchstash.errors import BadArgument, FetchFailed, FetchstashError, Refused
from fetchstash.fetch import mask_url
from fetchstash.text.urls import join, parse

pytestmark = pytest.mark.whole

MAX = 8_192

READ = {
    "plain": ("http://example.com/", "http://example.com/"),
    "no path": ("https://example.com", "https://example.com/"),
    "upper case": ("HTTP://EXAMPLE.COM/A", "http://example.com/A"),
    "default port": ("https://example.com:443/x", "https://example.com/x"),
    "other port": ("https://example.com:8443/x", "https://example.com:8443/x"),
    "empty port": ("https://example.com:/x", "https://example.com/x"),
    "fragment": ("https://example.com/x#part", "https://example.com/x"),
    "query": ("https://example.com?q=1#x", "https://example.com/?q=1"),
    "spaces around": ("  https://example.com/  ", "https://example.com/"),
    "space in the path": ("https://example.com/a b", "https://example.com/a%20b"),
    "raw UTF-8": ("https://example.com/你?q=好", "https://example.com/%E4%BD%A0?q=%E5%A5%BD"),
    "percent stays": ("https://example.com/a%2Fb?c=%0d%0a", "https://example.com/a%2Fb?c=%0d%0a"),
    "dots": ("https://example.com/a/./b/../c/%2e%2E/d/..", "https://example.com/a/"),
    "dots above the root": ("https://example.com/../../x", "https://example.com/x"),
    "backslash in the path": ("https://example.com/a\\b", "https://example.com/a/b"),
    "at in the path": ("https://example.com/@user", "https://example.com/@user"),
    "trailing dot": ("https://example.com./", "https://example.com./"),
    "underscore": ("https://my_host.example.com/", "https://my_host.example.com/"),
    "IDN": ("https://bücher.example/", "https://xn--bcher-kva.example/"),
    "IDN CJK": ("https://例え.example/", "https://xn--r8jz45g.example/"),
    "emoji": ("https://💩.example/", "https://xn--ls8h.example/"),
    "A-label": ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
    "percent-encoded host": ("https://ex%61mple.com/", "https://example.com/"),
    "ideographic full stop": ("https://example。com/", "https://example.com/"),
    "IPv4": ("http://8.8.8.8/", "http://8.8.8.8/"),
    "fullwidth digits": ("http://８.８.８.８/", "http://8.8.8.8/"),
    "IPv6": ("http://[2606:4700::0:1111]:8080/", "http://[2606:4700::1111]:8080/"),
    "numeric label": ("https://10.example.com/", "https://10.example.com/"),
    "hex-looking label": ("https://0x7f.example.com/", "https://0x7f.example.com/"),
    "brackets in the path": ("https://example.com/a[1]=2", "https://example.com/a[1]=2"),
}
MALFORMED = [
    *(
        "",
        "example.com",
        "//example.com/",
        "/etc/passwd",
        "http:example.com",
        "http:/example.com/",
        "http:\\\\example.com\\",
    ),
    *(
        "http://",
        "http:///",
        "http://?x",
        "http://:80/",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com:80x/",
    ),
    *(
        "http://example.com:80:443/",
        "http://exa mple.com/",
        "http://exa%20mple.com/",
        "http://exa%00mple.com/",
        "http://a%2fb/",
    ),
    *(
        "http://example..com/",
        "http://.example.com/",
        f"http://{'a' * 64}.com/",
        f"http://{'a.' * 130}com/",
        "http://a<b>.com/",
    ),
    *(
        "http://[::1",
        "http://[::1]x/",
        "http://[fe80::1%25eth0]/",
        "http://[::1%eth0]/",
        "http://[google.com]/",
        "http://[]/",
    ),
    *(
        "http://127.1/",
        "http://0x7f000001/",
        "http://2130706433/",
        "http://0177.0.0.1/",
        "http://127.0.0.01/",
        "http://1.2.3.4./",
    ),
    *(
        "http://1.2.3.4.5/",
        "http://256.1.1.1/",
        "http://0o177.0.0.1/",
        "http://1.2.3.08/",
        "http://0x/",
        "http://x.0x1/",
    ),
    *(
        "http://xn--/",
        "http://xn--a/",
        "http://xn--zzzzzzzz9999/",
        "http://a\u0300\u200d.com/",
        "http://\u0300a.com/",
        "http://\ufdd0.com/",
    ),
    *(
        "http://example.com/\r\nHost: x",
        "http://exam\tple.com/",
        "http://example.com/\x00",
        "http://example.com/\U000e0041",
        "\ud800",
    ),
    *("http://example.com\\127.0.0.1/", "http://example.com/" + "a" * MAX),
]


@pytest.mark.parametrize(("text", "normal"), READ.values(), ids=READ)
def test_a_url_is_read_as_a_browser_reads_it(text: str, normal: str) -> None:
    assert parse(text, MAX).text == normal


@pytest.mark.parametrize("text", MALFORMED, ids=lambda text: ascii(text)[:40])
def test_a_url_that_parsers_read_differently_is_refused_and_not_repaired(text: str) -> None:
    with pytest.raises(BadArgument):
        parse(text, MAX)


@pytest.mark.parametrize(
    "text",
    [
        "ftp://a/",
        "file:///etc/passwd",
        "gopher://a:70/_x",
        "data:text/html,x",
        "view-source:http://a/",
        "http+unix://%2Frun/x",
        "mailto:a@b",
    ],
)
def test_another_scheme_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        parse(text, MAX)


@pytest.mark.parametrize(
    "text",
    ["http://user:pass@example.com/", "http://example.com@127.0.0.1/", "http://@example.com/"],
)
def test_a_url_with_a_user_name_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(Refused) as refused:
        parse(text, MAX)
    assert "pass" not in refused.value.what.replace("password", "")


@pytest.mark.parametrize(
    ("location", "leads_to"),
    [
        ("/b", "https://example.com/b"),
        ("c", "https://example.com/a/c"),
        ("?q", "https://example.com/a/b?q"),
        ("//other.org/x", "https://other.org/x"),
        ("\\\\other.org/x", "https://other.org/x"),
        ("https://other.org", "https://other.org/"),
        ("../../../c", "https://example.com/c"),
        ("#part", "https://example.com/a/b"),
    ],
)
def test_a_redirect_is_read_against_the_url_that_it_came_from(location: str, leads_to: str) -> None:
    assert join(parse("https://example.com/a/b", MAX), location, MAX).text == leads_to


@pytest.mark.parametrize("location", ["http://[", "//[::1", "https://a b/", "http:x", "/\r\nx"])
def test_a_redirect_to_an_invalid_url_fails(location: str) -> None:
    with pytest.raises(FetchFailed):
        join(parse("https://example.com/", MAX), location, MAX)


@given(
    st.one_of(
        st.text(max_size=80),
        st.text(max_size=60).map("http://{}".format),
        st.text(max_size=40).map("https://a.org/{}".format),
    )
)
def test_any_text_is_read_or_refused_and_what_was_read_reads_the_same_again(text: str) -> None:
    try:
        target = parse(text, MAX)
    except FetchstashError:
        return
    assert target.text.isascii()
    assert parse(target.text, MAX * 9) == target
    assert not set(target.text) & set(" \r\n\t\x00")


@given(st.ip_addresses())
def test_every_address_reads_as_itself(address: object) -> None:
    written = f"[{address}]" if ":" in str(address) else str(address)
    assert parse(f"http://{written}/", MAX).address == ip_address(str(address))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://0x7f.1/", "Write the host as 127.0.0.1."),
        ("http://2130706433/", "Write the host as 127.0.0.1."),
        ("http:///page", "The URL's host is missing. Give the whole URL, such as https://exam"),
        ("https://example.org/a\n", "Give it without them."),
        ("example.org/page", "Try stash.fetch(url='https://example.org/page')."),
        ("no page", "Give the whole URL, such as https://example.org/page."),
    ],
)
def test_a_url_that_is_written_wrong_comes_with_how_to_write_it(url: str, words: str) -> None:
    with pytest.raises(BadArgument) as bad:
        parse(url, 8_192)
    assert words in bad.value.line()


# --- Secrets in URLs: masked by name and by shape, and nothing else touched.

# Assembled, so that no scanner takes this file for a leak.
SLACK = f"T{'0' * 8}/B{'0' * 8}/{'x' * 24}"
JWT = f"{'eyJ'}hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"

MASKED = {
    "password": "https://«joe:pa55»@example.org/",
    "user name alone": "https://«joe»@example.org/",
    "api_key": "https://a.org/?q=1&api_key=«s3cret»&z=2",
    "API-Key": "https://a.org/?API-Key=«s3cret»",
    "percent-encoded name": "https://a.org/?api%5Fkey=«s3cret»",
    "AWS": "https://s3.a.org/x?X-Amz-Date=20260101&X-Amz-Signature=«abc»",
    "Azure": "https://a.org/x?sv=2024&sig=«abc%3D»",
    "some token": "https://a.org/?my_reset_token=«abc»",
    "fragment": "https://a.org/#access_token=«abc»&state=«1»",
    # the values of RFC 6749, section 4.1.2
    "OAuth's answer": "https://a.org/cb?code=«SplxlOBeZQQYbYS6WxSbIA»&state=«xyz»&iss=https%3A%2F%2Fb.org",
    "OAuth's question": "https://a.org/authorize?response_type=code&client_id=web&state=«open»&scope=openid",
    "OAuth's refusal": "https://a.org/cb?error=access_denied&state=«af0ifjsldkj»",
    "a state as JSON": "https://a.org/cb?state=«eyJyIjoiLyJ9»",
    "a state with a secret in it": "https://a.org/cb?state=«security_token%3D138r5719ru3e1%26url%3Dhttps%3A%2F%2Fb.org»",
    "a state as a UUID": "https://a.org/cb?state=«550e8400-e29b-41d4-a716-446655440000»",
    "a state as letters": "https://a.org/cb?state=«XqRvTbLmZpKd»",
    "a state as a number": "https://a.org/cb?state=«8842173»",
    "SAML's state": "https://a.org/acs?RelayState=«ss:mem:1f0c»",
    "OpenID's": "https://a.org/?session_state=«ab.c»&id_token_hint=«e30.e30.x»&prompt=none",
    # RFC 9126, section 2.2
    "a pushed request": "https://a.org/?client_id=web&request_uri=«urn:ietf:params:oauth:request_uri:6esc_11»",
    # RFC 8628, section 3.3.1
    "a device's codes": "https://a.org/device?user_code=«WDJB-MJHT»&device_code=«GmRh»",
    "OAuth 1": "https://a.org/?oauth_token=«hh5s93j4»&oauth_verifier=«hfdp7dh3»&oauth_nonce=«kllo»",
    "JWT in the path": f"https://a.org/v/«{JWT}»/x",
    "opaque value": f"https://a.org/?v=«{'a1B2' * 10}»",
    "opaque query": f"https://a.org/?«{'a1B2' * 10}»",
    "Slack": f"https://hooks.slack.com/services/«{SLACK}»",
    "Telegram": f"https://api.telegram.org/«bot123456789:{'A' * 30}»/getMe",
    "GitHub": f"https://a.org/«gh{'p'}_{'a' * 36}»",
    "document ID": "https://docs.a.org/document/d/«1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms»/edit",
    "key with dashes": "https://join.a.org/t/team/shared_invite/«zt-9zC5rk-PBCEucf9_zfwPVmm5-dG2sl7b»",
    "key of a shared folder": "https://a.org/scl/x/f.pdf?rlkey=«54rxu4jbw3839xnktrke0aky7»&dl=0",
    "share link": "https://a.org/s/«q3x8v1k9z2»/report.pdf",
    "invitation": "https://a.org/invite/«aB3dE5gH»",
    "UUID": "https://a.org/view/«550e8400-e29b-41d4-a716-446655440000»",
    "page ID at the end of a title": "https://a.org/Plan-«9f8e7d6c5b4a39281706f5e4d3c2b1a0»?x=1",
    "a key with an extension": "https://a.org/f/«Xk29fLq0aZ7RtB41mWc8».pdf",
    "a key in a fragment": "https://a.org/#/file/«Xk29fLq0aZ7RtB41mWc8»",
    "a UUID behind a title": "https://a.org/accounts-in-office-«628ea040-f265-49de-b986-be09c3ebf8a9»",
    "a key with dashes": "https://a.org/f/«1ja2rY_JdGTGDwRjVZIQeCnfD4l_SIG-1»",
    "percent-encoded key": "https://a.org/f/«%58k29fLq0aZ7RtB41mWc8»",
    # Deeper in.
    "a path parameter": "https://a.org/x;jsessionid=«S3»?y=1",
    "a URL in a URL": "https://a.org/?to=«https%3A%2F%2Fb.org%2F%3Ftoken%3DS3»&z=1",
    "URLs without end": "https://a.org/?u=«" + "https://a.org/?u=" * 400 + "»",
}
"""URLs with their secrets between marks."""

UNTOUCHED = [
    "https://a.org/?to=https://b.org/&z=1",
    "https://example.org/",
    "https://example.org/a/b?q=how+to+cook&page=2#part",
    "https://github.com/python/cpython/commit/0123456789abcdef0123456789abcdef01234567",
    "https://github.com/python/cpython/compare/63846a81fea121020983...eaba2fbae57cabdbd887",
    "https://example.org/some-graphics-card/p/N82E16814487048",
    "https://example.org/@user/x",
    "https://example.org/2024/05/17/the-10-best-ways-to-do-something-great-in-2024.html",
    "https://en.wikipedia.org/wiki/Donaudampfschifffahrtselektrizit%C3%A4tenhauptbetriebswerk",
    "https://arxiv.org/pdf/2401.01234v2",
    "https://doi.org/10.1038/s41586-021-03819-2",
    "https://example.org/JavaScriptEngine2024Overview",
    "https://example.org/iPhone-15-Pro-vs-GalaxyS24-Ultra5G-review",
    "https://example.org/d/index.html",
    "https://example.org/share/annual-report-2024",
    "https://d3f4a5b6c7d8e9f0a1b2c3d4e5f6a7b8.example.org/x",
    "https://www.rfc-editor.org/rfc/rfc9110.html#section-8.4.1",
    "https://example.org/?url=https://joe@other.org/",
    "https://example.org/?q=",
    "https://example.org/issues?state=open&sort=updated&labels=bug",
    "https://example.org/issues?state=inProgress&code_challenge_method=S256",
    "https://example.org/issues?state%5B%5D=in_progress&state%5B%5D=Closed",
    "https://example.org/clinics?city=Fresno&state=CA",
    "https://example.org/clinics?state=New+York",
    "https://example.org/clinics?state=Baden-W%C3%BCrttemberg",
    "https://example.org/clinics?state=CA,NY,TX",
    "https://example.org/clinics?state=06&state=x&state=",
    "https://example.org/clinics?state=https://example.org/back&statement=x1y2z3&estate=a1b2c3",
    "not a url at all",
]


@pytest.mark.parametrize("marked", MASKED.values(), ids=MASKED)
def test_a_secret_is_masked(marked: str) -> None:
    url = re.sub("[«»]", "", marked)
    assert mask_url(url) == re.sub("«.*?»", "***", marked)


@pytest.mark.parametrize("url", UNTOUCHED)
def test_words_that_are_no_secret_stay(url: str) -> None:
    assert mask_url(url) == url


@pytest.mark.parametrize(
    "part", ["eyJ", "eyJaaaaaaaaaa.", "sk-", "xoxb-a", "A1b2", "=a1", "&a1=", "/", "T/B/"]
)
def test_a_long_url_is_masked_in_no_time(part: str) -> None:
    began = time.process_time()
    mask_url("https://a.org/" + part * (70_000 // len(part)))
    mask_url("https://a.org/?" + part * (70_000 // len(part)))
    # Ten times that if a run is read again from each of its characters.
    assert time.process_time() - began < 1


@given(st.text(max_size=200))
def test_any_text_is_taken_and_masking_twice_changes_nothing_more(text: str) -> None:
    masked = mask_url(text)
    assert mask_url(masked) == masked
