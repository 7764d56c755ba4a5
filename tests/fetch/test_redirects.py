"""Redirects and pages that lead on: what counts, what is vetted, and what errors then say."""

from collections.abc import AsyncGenerator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from fetchstash.errors import (
    BadArgument,
    FetchFailed,
    FetchstashError,
    HttpError,
    Refused,
    RobotsRefused,
    TimedOut,
)
from fetchstash.fetch import FetchLimits, HttpFetcher, landing
from tests.fetch.sending import Answers, Fetch, Make
from tests.loopback import Site
from tests.public import NAME, fetcher_of, proxy_to

pytestmark = [pytest.mark.anyio, pytest.mark.whole]


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fetchstash.fetch._responses._FIRST_WAIT_SECONDS", 0)


def silent(handler: BaseHTTPRequestHandler) -> None:
    """Answer nothing until the client gives up."""
    handler.rfile.read(1)


ERRORS: dict[str, tuple[type[FetchstashError], str]] = {
    "refused": (Refused, "evil.test:22/"),
    "robots": (RobotsRefused, "evil.test:PORT/secret"),
    "failed": (FetchFailed, "evil.test:9/"),
    "status": (HttpError, "evil.test:PORT/nothing"),
    "late": (TimedOut, "evil.test:PORT/late"),
}


async def redirected(site: Site, tmp_path: Path, first: str, name: str) -> FetchstashError:
    """Return the error of a page of ``first`` that leads to where this error waits."""
    error, target = ERRORS[name]
    ours = f":{site.port}"
    location = f"http://{target.replace(':PORT', ours)}"
    site.put("/robots.txt", "user-agent: *\ndisallow: /secret", "text/plain")
    site.put("/begin", status=302, headers={"Location": location})
    site.put("/late", script=silent)
    hosts = tuple(f"{host}{ours}" for host in ("good.test", "www.evil.test", "evil.test"))
    limits = FetchLimits(
        allow_hosts=(*hosts, "evil.test:9"),
        respect_robots=name == "robots",
        deadline_seconds=0.5 if name == "late" else 45,
    )
    http = HttpFetcher(limits, resolver=Answers("127.0.0.1"))
    with pytest.raises(FetchstashError) as raised:
        await http.fetch(f"http://{first}{ours}/begin", tmp_path)
    await http.aclose()
    assert type(raised.value) is error
    return raised.value


@pytest.mark.parametrize("name", ERRORS)
async def test_an_error_after_a_redirect_does_not_name_the_host_that_a_server_chose(
    site: Site, tmp_path: Path, name: str
) -> None:
    told = await redirected(site, tmp_path, "good.test", name)
    assert "evil" not in told.line() + str(told.details)
    # A time-out is one of the whole fetch, whichever site was late.
    site_named = "good.test did not" if name == "late" else "the site that good.test redirected to"
    assert site_named in told.line().lower()


@pytest.mark.parametrize("name", ["refused", "robots"])
async def test_a_refusal_after_a_redirect_does_not_say_how_to_allow_it(
    site: Site, tmp_path: Path, name: str
) -> None:
    told = await redirected(site, tmp_path, "evil.test", name)
    assert told.calls == ()
    assert told.next_step == "Look for the document elsewhere."


@pytest.mark.parametrize(
    ("first", "location", "line"),
    [
        ("a.evil.test", "http://evil.test:22/", "Port 22 of {} is not among the allowed"),
        ("evil.test", "http://evil.test:22/", "Port 22 of {} is not among the allowed"),
        ("a.evil.test", "http://evil.test/to-nothing", "evil.test redirected to something"),
        ("good.test", "http://evil.test/to-nothing", "good.test redirected to something"),
        ("good.test", "http://evil.test/to-nowhere", "good.test redirected without saying"),
        ("good.test", "http://good.test.evil.test:22/", "Port 22 of {} is not among"),
    ],
)
async def test_a_chain_of_redirects_is_said_once(
    first: str, location: str, line: str, site: Site, tmp_path: Path
) -> None:
    ours = f":{site.port}"
    location = location if ":22" in location else location.replace(".test/", f".test{ours}/")
    site.put("/begin", status=302, headers={"Location": location})
    site.put("/to-nothing", status=302, headers={"Location": "http://[/"})
    site.put("/to-nowhere", status=302)
    hosts = tuple(f"{host}{ours}" for host in (first, "evil.test"))
    limits = FetchLimits(allow_hosts=hosts, respect_robots=False)
    http = HttpFetcher(limits, resolver=Answers("127.0.0.1"))
    with pytest.raises(FetchstashError) as raised:
        await http.fetch(f"http://{first}{ours}/begin", tmp_path)
    await http.aclose()
    site_named = f"the site that {first} redirected to"
    assert raised.value.what.startswith(line.format(site_named))
    assert raised.value.what.count("redirected") == 1


DEEP = "https://www.shop.example/en/docs/guide?id=4"
LANDINGS = {
    "the home page": (DEEP, "https://shop.example/", "home"),
    "in a language": (DEEP, "https://www.shop.example/en-GB/", "home"),
    "a file that stands for it": (DEEP, "https://www.shop.example/index.html", "home"),
    "with a counter": (DEEP, "https://www.shop.example/?utm_source=x&ref=404", "home"),
    "of another site": (DEEP, "https://new.example/", "home"),
    "a page": (DEEP, "https://www.shop.example/guide", ""),
    "a page by its query": (DEEP, "https://www.shop.example/?p=4", ""),
    "a short link to a home page": ("https://sh.example/x7Yq", "https://shop.example/", ""),
    "a home page to its language": ("https://shop.example/", "https://shop.example/de/", ""),
    "a form": (DEEP, "https://www.shop.example/login?next=%2Fdocs", "login"),
    "a form in a file": (DEEP, "https://www.shop.example/account/sign-in.aspx", "login"),
    "WordPress": (DEEP, "https://www.shop.example/wp-login.php?redirect_to=x", "login"),
    "Rails": (DEEP, "https://www.shop.example/users/sign_in", "login"),
    "another host's": (DEEP, "https://login.idp.example/common/oauth2/authorize?x=1", "login"),
    "a host that signs in": (DEEP, "https://accounts.idp.example/v3/x?continue=y", "login"),
    "a form that was asked for": ("https://a.example/login", "https://b.example/login", ""),
    "words about it": (DEEP, "https://www.shop.example/docs/sign-in-with-x", ""),
    "a host of accounts": (DEEP, "https://accounts.shop.example/docs", ""),
}


@pytest.mark.parametrize(("url", "final", "expected"), LANDINGS.values(), ids=LANDINGS)
def test_a_landing_elsewhere_is_known_by_the_two_addresses(
    url: str, final: str, expected: str
) -> None:
    assert landing(url, final) == expected


async def test_an_error_names_a_host_of_the_same_domain(site: Site, tmp_path: Path) -> None:
    told = await redirected(site, tmp_path, "www.evil.test", "status")
    assert told.line().startswith("[http_error] evil.test")
    assert "redirected" not in told.line()


async def test_a_redirect_to_a_private_address_is_refused_in_words_without_a_hint(
    site: Site, fetch: Fetch
) -> None:
    url = site.put("/begin", status=302, headers={"Location": "http://10.0.0.1/x"})
    with pytest.raises(Refused) as refused:
        await fetch(url)
    assert refused.value.line() == (
        "[refused] The site that 127.0.0.1 redirected to is in a private network (RFC 1918). "
        "Look for the document elsewhere."
    )


@pytest.mark.parametrize("location", ["evilscheme://evil.test/", "http://evil@evil.test/"])
async def test_a_redirect_to_a_forbidden_url_gives_an_error_that_repeats_no_part_of_it(
    location: str, site: Site, fetch: Fetch
) -> None:
    url = site.put("/begin", status=302, headers={"Location": location})
    with pytest.raises(Refused, match=r"127\.0\.0\.1 redirected to a URL") as refused:
        await fetch(url)
    assert "evil" not in refused.value.line() + str(refused.value.details)


@pytest.fixture
async def public(site: Site) -> AsyncGenerator[HttpFetcher]:
    """A fetcher for which the test's site is a public one."""
    with proxy_to(site) as proxy:
        limits = FetchLimits(proxy=proxy, respect_robots=False, max_redirects=3)
        http = fetcher_of(limits)
        yield http
        await http.aclose()


async def test_a_page_that_leads_on_counts_as_a_redirect(
    site: Site, public: HttpFetcher, tmp_path: Path
) -> None:
    site.put("/a/begin?key=s", b"<meta http-equiv=refresh content='0;url=next'>")
    site.put("/a/next", status=302, headers={"Location": "/end"})
    site.put("/end", b"there")
    page, end = f"{NAME}/a/begin?key=s", f"{NAME}/end"
    first = await public.fetch(page, tmp_path)
    fetched = await public.fetch("next", tmp_path, after=first)
    assert (first.redirects, fetched.redirects) == (0, 2)
    assert (fetched.url, fetched.final_url) == (page, end)
    again = await public.fetch(end, tmp_path, after=fetched)
    with pytest.raises(FetchFailed, match="more redirects than 3"):
        await public.fetch(end, tmp_path, after=again)


async def test_a_page_may_not_lead_inside(site: Site, public: HttpFetcher, tmp_path: Path) -> None:
    site.put("/", b"x")
    first = await public.fetch(NAME, tmp_path)
    with pytest.raises(Refused, match=r"site that site\.example redirected to") as refused:
        await public.fetch(f"http://127.0.0.2:{site.port}/", tmp_path, after=first)
    assert refused.value.calls == ()


async def test_a_page_of_an_exempted_or_granted_host_leads_nowhere(
    site: Site, fetcher: Make, public: HttpFetcher, tmp_path: Path
) -> None:
    exempting = fetcher()
    first = await exempting.fetch(site.put("/", b"x"), tmp_path)
    with pytest.raises(Refused, match="which the operator allowed, leads to another address"):
        await exempting.fetch(site.put("/b", b"y"), tmp_path, after=first)
    granted = await public.fetch(NAME, tmp_path)
    public.grant("site.example", 80)
    with pytest.raises(Refused, match="leads to another address"):
        await public.fetch(f"{NAME}/b", tmp_path, after=granted)
    assert site.asked == ["/", "/"]


@pytest.mark.parametrize(
    ("url", "addresses", "limits", "error"),
    [
        ("http://a.test/", ("93.184.216.34",), FetchLimits(), None),
        ("http://a.test/", (), FetchLimits(), None),
        ("http://a.test/", ("10.0.0.1",), FetchLimits(), Refused),
        ("http://a.test/", ("10.0.0.1",), FetchLimits(allow_hosts=("a.test",)), None),
        ("http://a.test/", ("93.184.216.34",), FetchLimits(deny_domains=("a.test",)), Refused),
        ("http://10.0.0.1/", (), FetchLimits(), Refused),
        ("http://a.test:22/", ("93.184.216.34",), FetchLimits(), Refused),
        ("no url", (), FetchLimits(), BadArgument),
    ],
)
async def test_a_check_refuses_what_a_fetch_would_refuse_and_sends_nothing(
    url: str, addresses: tuple[str, ...], limits: FetchLimits, error: type[Exception] | None
) -> None:
    http = HttpFetcher(limits, resolver=Answers(*addresses))
    if error is None:
        await http.check(url)
    else:
        with pytest.raises(error):
            await http.check(url)
    await http.aclose()
