"""Addresses that show a document: the rules lead to it, and the page stays where they cannot.

The answers are our own, in the shapes of the real APIs (recorded_sites.py).
"""

import itertools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from fetchstash.config import load
from fetchstash.errors import BadArgument, FetchFailed
from fetchstash.fetch import MEANINGS, RULES, TWIN, HttpFetcher, Rule, _rules, matching
from fetchstash.handlers import ExtractLimits
from fetchstash.render import as_shown
from fetchstash.stash import open_stash
from fetchstash.text.urls import normal_url
from tests.in_process import InProcess
from tests.loopback import Site
from tests.public import NAME, Recorded
from tests.stash.conftest import OpenStash
from tests.stash.recorded_sites import SITES, RecordedSite

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]


def open_recorded(answers: Mapping[str, Any] | Recorded, **settings: Any) -> Any:
    """Open a Stash on recorded answers; its documents are read in this process."""
    fetcher = answers if isinstance(answers, Recorded) else Recorded(answers)
    values = {"store.url": "memory:", **settings}
    return open_stash(values, fetcher=fetcher, extractor=InProcess(ExtractLimits()))


@pytest.mark.parametrize("site", SITES, ids=lambda site: f"{site.rule} {site.url[:70]}")
async def test_a_rule_reads_the_document_behind_an_address(site: RecordedSite) -> None:
    async with open_recorded(site.answers) as stash:
        artifact = await stash.fetch(site.url)
        text = await artifact.text()
        for expected in site.says:
            assert expected in text
        assert artifact.facts.rule == site.rule
        assert artifact.facts.source_url == site.url
        shown = as_shown(artifact)
        assert f"[Rule {site.rule}: {MEANINGS[site.rule]}.]" in shown.splitlines()
        assert f'source="{site.url}"' in shown


@pytest.mark.parametrize("site", SITES, ids=lambda site: f"{site.rule} {site.url[:70]}")
@pytest.mark.parametrize("why", ["off", "missing", "garbage", "a form to sign in"])
async def test_without_the_document_the_page_itself_is_read(site: RecordedSite, why: str) -> None:
    answers: dict[str, Any] = {site.url: PAGE}
    if why == "garbage" and site.shape:  # else any bytes may be the file
        answers = dict.fromkeys(site.answers, b'{"message": "no"}') | answers
    elif why == "a form to sign in":
        form = "<title>Sign in</title><form><input type=password></form>"
        answers = dict.fromkeys(site.answers, form) | answers
    elif why == "off":
        answers = dict(site.answers) | answers
    off = {"fetch.rules_off": [site.rule]} if why == "off" else {}
    async with open_recorded(answers, **off) as stash:
        artifact = await stash.fetch(site.url)
        assert "What the page itself says" in await artifact.text()
        assert artifact.facts.rule == ""
        assert (await stash.list()).total == 1


PAGE = f"<title>Page</title><main><h1>Page</h1><p>{'What the page itself says. ' * 20}</p></main>"


def test_every_rule_has_a_recorded_site() -> None:
    assert {site.rule for site in SITES} == {rule.name for rule in RULES} == set(MEANINGS) - {TWIN}


def test_every_rule_stands_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")
    assert [name for name, what in MEANINGS.items() if f"| `{name}` | {what} |" not in page] == []


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/features/actions",
        "https://github.com/o/r/blob/main/b.py?plain=1",
        "https://github.com/o/r/issues",
        "https://user@gitlab.com/g/r/-/blob/v1/b.py",
        "https://example.org/o/r",
        "https://example.org/o/r/issues/7",
        "https://pypi.example.evil.test/project/x/",
        "https://pypi-mirror.test/project/x/",
        "https://evil.test/pypi.example/project/x/",
        "https://huggingface.co/docs/hub",
        "https://docs.google.com/document/d/e/2PACX-1vQ/pub",
        "https://github.com.evil.test/o/r/issues/7",
        "ftp://github.com/o/r",
        "https://[::1/o/r",
    ],
)
def test_no_rule_is_for(url: str) -> None:
    assert list(matching(url)) == []


# --- one document, however its address is spelled ---------------------------------------------

SLASHES = ("/", "\\", "%2f", "%2F", "%5c", "%5C", "%252f", "%255c")
DOTS = ("..", "%2e%2e", ".%2E", "%2e.", "%252e%252e", "%25252e.")
# Where a rule puts what follows into another address.
INTO = (
    "https://github.com/o/r/blob/main/x",
    "https://github.com/o/r/tree/main/x",
    "https://github.com/o/r/releases/tag/x",
    "https://gitlab.com/o/r/-/blob/main/x",
    "https://gitlab.com/o/r/-/releases/x",
    "https://codeberg.org/o/r/src/branch/main/x",
    "https://huggingface.co/o/r/blob/main/x",
    "https://en.m.wikipedia.org/wiki/x",
    "https://en.wikipedia.org/w/index.php?title=x",
)


def plainly(address: str) -> str:
    """Return an address as the most lenient server may take it: decoded, one kind of slash."""
    for _ in range(4):
        address = unquote(address)
    return address.replace("\\", "/")


@pytest.mark.parametrize("into", INTO)
def test_no_spelling_of_dots_and_slashes_leads_a_rule_out_of_what_the_page_names(into: str) -> None:
    assert list(matching(f"{into}/f"))  # the rule is reached
    for slash, dots in itertools.product(SLASHES, DOTS):
        url = f"{into}{f'{slash}{dots}' * 5}{slash}other{slash}repo{slash}main{slash}f"
        for match in matching(url):
            named = normal_url(url)
            for address in (match.first, *match.others({})):
                assert "/.." not in plainly(address), url
                assert address == normal_url(address)
            # What is left of dots and slashes are those of the page's own address.
            assert [other.first for other in matching(named)] == [
                other.first for other in matching(url)
            ]


@pytest.mark.parametrize(
    "url",
    [
        "https://GitHub.COM/o/r/blob/main/b.py",
        "HTTPS://github.com:443/o/r/blob/main/b.py",
        "https://%67ithub.com/o/r/blob/main/b.py",
        "https://github.com/o/r/%62lob/main/b%2Epy",
        "https://github.com/o\\r\\blob/./main/x/../b.py",
        "https://github.com/u/v/../../o/%2E/r/blob/main/b.py#L3",
        r"https://github.com/x\..\o/r/blob/main/b.py",
    ],
)
def test_every_spelling_of_an_address_leads_to_one_document(url: str) -> None:
    found = [match.first for match in matching(url)]
    plain = [match.first for match in matching("https://github.com/o/r/blob/main/b.py")]
    assert plain == ["https://raw.githubusercontent.com/o/r/main/b.py"]
    assert found == plain


@pytest.mark.parametrize("path", ["/%73ettings/profile", "/Settings/profile", "/x/../login/device"])
def test_no_spelling_makes_a_repository_of_a_page_of_the_site(path: str) -> None:
    assert list(matching("https://github.com/other/profile"))
    assert list(matching(f"https://github.com{path}")) == []


async def test_no_address_of_a_page_asks_an_api_for_what_the_operator_owns() -> None:
    url = "https://github.com/o/r/releases/tag/x"
    for climb in (r"\..", "%5c..", "%2f%2e%2e"):
        fetcher = Recorded({})
        async with open_recorded(fetcher) as stash:
            with pytest.raises(FetchFailed):
                await stash.fetch(f"{url}{climb * 5}{climb[:-2]}user{climb[:-2]}repos")
        asked = [plainly(address) for address in fetcher.asked]
        assert not [address for address in asked if "api." in address and ".." in address]
        assert "https://api.github.com/user/repos" not in asked


def test_no_rule_is_tried_on_what_is_no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Rule] = []
    pattern = _rules._pattern  # pyright: ignore[reportPrivateUsage]

    def note(rule: Rule) -> re.Pattern[str]:
        tried.append(rule)
        return pattern(rule)

    monkeypatch.setattr(_rules, "_pattern", note)
    assert list(matching("https://gitlab.com/o/r/-/issues/7"))
    assert tried  # a rule is tried on a host
    tried.clear()
    assert list(matching(f"https://{'a-' * 4_000}.gitlab.com/o/r/-/issues/7")) == []
    assert not tried


@pytest.mark.parametrize("site", SITES, ids=lambda site: f"{site.rule} {site.url[:70]}")
def test_a_rule_leads_to_the_site_itself_or_to_a_host_of_its_row(site: RecordedSite) -> None:
    host = site.url.split("/")[2]
    for match in matching(site.url):
        for template, address in zip(
            match.rule.parts, [match.first, *match.others({})], strict=True
        ):
            there = address.split("/")[2] if address else host
            named = template.split("/")[2] if template.startswith("https://") else ""
            own = there in {host, f"registry.{host.removeprefix('www.')}"}
            assert own or there == named or named.startswith("{language}.")


async def test_a_long_thread_names_its_next_page_by_the_address_of_the_page() -> None:
    url = "https://github.com/o/r/issues/7"
    issue = {"title": "Gate", "number": 7, "state": "open", "comments": 150, "body": "It sticks."}
    said = [{"user": {"login": "ana"}, "created_at": "2026-01-02T03:04:05Z", "body": "Yes."}]
    base = "https://api.github.com/repos/o/r/issues/7"
    first, second = (f"{base}/comments?per_page=100&page={n}" for n in (1, 2))
    answers = {
        base: issue,
        first: (said * 100, {"link": f'<{second}>; rel="next"'}),
        second: said * 50,
    }
    async with open_recorded(answers) as stash:
        artifact = await stash.fetch(url)
        assert artifact.facts.next_url == f"{url}?page=2"
        call = f'artifact_slice(artifact_ref="{artifact.ref}", path="next")'
        assert f"[Next page: {call}]" in as_shown(artifact)
        assert "## Comment 100 of 150: ana, 2026-01-02 03:04Z" in await artifact.text()
        rest = await stash.get((await artifact.slice(path="next")).facts.artifact_ref)
        assert rest.facts.next_url == ""
        text = await rest.text()
        assert "## Comment 101 of 150" in text
        assert "## Comment 150 of 150" in text
        assert "It sticks." not in text
        headings = [heading.title for heading in rest.facts.outline]
        assert headings[:2] == ["Gate (#7)", "Comment 101 of 150: ana, 2026-01-02 03:04Z"]
        assert (await rest.slice(path="/1/title")).text == '"Gate"\n'


async def test_a_part_that_does_not_come_is_said() -> None:
    issue = {"title": "Gate", "number": 7, "state": "open", "comments": 3, "body": "It sticks."}
    async with open_recorded({"https://api.github.com/repos/o/r/issues/7": issue}) as stash:
        text = await (await stash.fetch("https://github.com/o/r/issues/7")).text()
    assert "It sticks." in text
    assert "The comments could not be fetched." in text


@pytest.mark.long
async def test_a_rule_adds_a_few_requests_at_the_most() -> None:
    for site in SITES:
        fetcher = Recorded({})
        async with open_recorded(fetcher) as stash:
            with pytest.raises(FetchFailed):
                await stash.fetch(site.url)
        assert 2 <= len(fetcher.asked) <= 3
        assert fetcher.asked[-1] == site.url
        fetcher = Recorded(site.answers)
        async with open_recorded(fetcher) as stash:
            await stash.fetch(site.url)
        assert len(fetcher.asked) <= 4


async def test_a_copy_that_a_rule_gave_is_not_used_once_the_rule_is_off(tmp_path: Path) -> None:
    site = next(site for site in SITES if site.rule == "pypi")
    fresh = {url: (body, {"cache-control": "max-age=600"}) for url, body in site.answers.items()}
    folder = {"store.url": "", "store.folder": str(tmp_path / "store"), "store.run": "one"}
    async with open_recorded(fresh, **folder) as stash:
        assert (await stash.fetch(site.url)).facts.rule == "pypi"
        assert (await stash.fetch(site.url)).cache is not None
    off = {**folder, "fetch.rules_off": ["pypi"]}
    async with open_recorded({**fresh, site.url: PAGE}, **off) as stash:
        assert (await stash.fetch(site.url)).facts.rule == ""


def test_a_rule_that_is_not_there_cannot_be_switched_off() -> None:
    with pytest.raises(BadArgument, match="no such rule"):
        HttpFetcher(load({"fetch.rules_off": ["github-issues"]}).fetch)


async def test_a_rule_asks_robots_as_any_fetch_does(site: Site, open_public: OpenStash) -> None:
    url = NAME.replace("site", "gitlab") + "/g/r/-/issues/3"
    site.put("/g/r/-/issues/3", PAGE)
    api = "/api/v4/projects/g%2Fr/issues/3"
    issue = {"title": "Gate", "iid": 3, "state": "opened", "description": "It sticks."}
    site.put(api, json.dumps(issue), "application/json")
    async with open_public(fetch__respect_robots=True) as stash:
        artifact = await stash.fetch(url)
        assert "It sticks." in await artifact.text()
        assert artifact.facts.handler == "answer"
    site.put("/robots.txt", "User-agent: *\nDisallow: /api/\n", "text/plain")
    site.asked.clear()
    async with open_public(fetch__respect_robots=True) as stash:
        page = await stash.fetch(url, refresh=True)
        assert "What the page itself says" in await page.text()
    assert api not in site.asked
