"""URLs and hosts: one reading for everything that is vetted, dialled and sent."""

from ipaddress import ip_address

import pytest
from hypothesis import given, strategies as st

from fetchstash.errors import BadArgument, FetchFailed, FetchstashError, Refused
from fetchstash.fetch._url import join, parse

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
        "", "example.com", "//example.com/", "/etc/passwd", "http:example.com",
        "http:/example.com/", "http:\\\\example.com\\",
    ),
    *(
        "http://", "http:///", "http://?x", "http://:80/", "http://example.com:0/",
        "http://example.com:65536/", "http://example.com:80x/",
    ),
    *(
        "http://example.com:80:443/", "http://exa mple.com/", "http://exa%20mple.com/",
        "http://exa%00mple.com/", "http://a%2fb/",
    ),
    *(
        "http://example..com/", "http://.example.com/", f"http://{'a' * 64}.com/",
        f"http://{'a.' * 130}com/", "http://a<b>.com/",
    ),
    *(
        "http://[::1", "http://[::1]x/", "http://[fe80::1%25eth0]/", "http://[::1%eth0]/",
        "http://[google.com]/", "http://[]/",
    ),
    *(
        "http://127.1/", "http://0x7f000001/", "http://2130706433/", "http://0177.0.0.1/",
        "http://127.0.0.01/", "http://1.2.3.4./",
    ),
    *(
        "http://1.2.3.4.5/", "http://256.1.1.1/", "http://0o177.0.0.1/", "http://1.2.3.08/",
        "http://0x/", "http://x.0x1/",
    ),
    *(
        "http://xn--/", "http://xn--a/", "http://xn--zzzzzzzz9999/", "http://a\u0300\u200d.com/",
        "http://\u0300a.com/", "http://\ufdd0.com/",
    ),
    *(
        "http://example.com/\r\nHost: x", "http://exam\tple.com/", "http://example.com/\x00",
        "http://example.com/\U000e0041", "\ud800",
    ),
    *("http://example.com\\127.0.0.1/", "http://example.com/" + "a" * MAX),
]  # fmt: skip


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
        "ftp://a/", "file:///etc/passwd", "gopher://a:70/_x", "data:text/html,x",
        "view-source:http://a/", "http+unix://%2Frun/x", "mailto:a@b",
    ],
)  # fmt: skip
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
        ("example.org/page", "Put https:// before it."),
        ("no page", "Give the whole URL, such as https://example.org/page."),
    ],
)
def test_a_url_that_is_written_wrong_comes_with_how_to_write_it(url: str, words: str) -> None:
    with pytest.raises(BadArgument) as bad:
        parse(url, 8_192)
    assert words in bad.value.line()
