"""A page that names its own Markdown is read as that, if it is its own; the page stays."""

from typing import Any

import pytest

from fetchstash.fetch import TWIN
from fetchstash.render import as_shown
from tests.public import Recorded
from tests.stash.test_rules import open_recorded

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

URL = "https://docs.example/gates"
LINES = [f"Rule {n}: the wardens open gate number {n} before sunrise." for n in range(40)]
LINK = "<link rel=alternate type=text/markdown href={}>"
OWN = "# Gates\n\n" + "\n\n".join(LINES) + "\n"
MARKDOWN = {"content-type": "text/markdown; charset=utf-8"}


def page(link: str = "/gates.md", lines: list[str] = LINES) -> str:
    text = "".join(f"<p>{line}</p>" for line in lines)
    return f"<title>Gates</title>{LINK.format(link)}<main><h1>Gates</h1>{text}</main>"


async def test_the_page_is_read_as_its_own_markdown_and_stays_within_reach() -> None:
    answers = {URL: page(), f"{URL}.md": (OWN.encode(), MARKDOWN)}
    async with open_recorded(answers) as stash:
        artifact = await stash.fetch(URL)
        assert await artifact.text() == OWN
        facts = artifact.facts
        assert (facts.rule, facts.source_url, facts.final_url) == (TWIN, URL, f"{URL}.md")
        itself = f'get_search_content(artifact_ref="{facts.page_ref}", offset=0)'
        line = (
            f"[Rule {TWIN}: the Markdown that the page names as its own. The page itself: {itself}]"
        )
        assert line in as_shown(artifact).splitlines()
        assert "Rule 39" in (await stash.read(facts.page_ref)).text
        assert (await stash.get(URL)).ref == artifact.ref
        again = await stash.fetch(URL, refresh=True)
        assert (again.ref, again.facts.page_ref) == (artifact.ref, facts.page_ref)
        assert (await stash.list()).total == 2


OTHERS: dict[str, Any] = {
    "missing": None,
    "an error page": (b"# Not found\n\nThere is no such page here.\n", MARKDOWN),
    "a web page in disguise": (page().encode(), MARKDOWN),
    "empty": (b"", MARKDOWN),
    "blank": (b" \n\n", MARKDOWN),
    "of another page": (OWN.replace("wardens", "ships").replace("gate", "sail")
                        .replace("sunrise", "winter").replace("number", "harbour")
                        .replace("before", "after").replace("Rule", "Ship").encode(), MARKDOWN),
    "all pages": ((OWN + "Another page says something else. " * 2_000).encode(), MARKDOWN),
    "a binary": (b"%PDF-1.7\n\x00\x01", {"content-type": "application/pdf"}),
}  # fmt: skip


@pytest.mark.parametrize("twin", OTHERS.values(), ids=OTHERS)
async def test_what_is_no_twin_leaves_the_page(twin: Any) -> None:
    answers = {URL: page(), **({f"{URL}.md": twin} if twin else {})}
    async with open_recorded(answers) as stash:
        artifact = await stash.fetch(URL)
        assert "Rule 39" in await artifact.text()
        assert (artifact.facts.rule, artifact.facts.final_url) == ("", URL)
        assert (await stash.list()).total == 1
        assert (await stash.get(URL)).ref == artifact.ref


@pytest.mark.parametrize(
    ("link", "off"),
    [
        ("https://other.example/gates.md", []),
        ("http://docs.example.evil.test/gates.md", []),
        ("/llms.txt", []),
        ("/llms-full.txt", []),
        ("/gates#md", []),
        ("/gates.md", [TWIN]),
    ],
)
async def test_an_address_that_is_not_the_pages_own_is_not_asked(link: str, off: list[str]) -> None:
    fetcher = Recorded({URL: page(link)})
    async with open_recorded(fetcher, **{"fetch.rules_off": off}) as stash:
        assert "Rule 39" in await (await stash.fetch(URL)).text()
    assert fetcher.asked == [URL]
