"""Web pages: what their text leaves out, a fragment, their pictures, and their own Markdown."""

from typing import Any

import pytest

from fetchstash.errors import FetchstashError
from fetchstash.fetch import TWIN
from fetchstash.render import as_shown
from fetchstash.stash import Stash
from tests.loopback import Site
from tests.public import Recorded
from tests.stash.test_rules import open_recorded

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]


WORDS = "The reservoir fills slowly in spring, and the wardens open the lower gate then. "
PAGE = f"""<!doctype html><title>Gates</title><nav><a href=/s>Sluice menu</a></nav>
<main><h1>Gates</h1><p>{WORDS * 200}</p><p>A sluice is a gate.</p>
<h2 id=night>At night</h2><p>Use a lamp at the sluice.</p><p>{WORDS * 200}</p></main>
<footer>Sluice imprint</footer>"""


@pytest.fixture
def url(site: Site) -> str:
    return site.put("/gates", PAGE.encode(), "text/html")


async def test_grep_counts_the_matches_in_the_parts_left_out(stash: Stash, url: str) -> None:
    artifact = await stash.fetch(url)
    matches = await artifact.grep("sluice", ignore_case=True)
    assert (matches.total, matches.artifacts[0].left_out) == (2, 2)
    assert "[2 lines more in the parts left out of the text: " in as_shown(matches)
    assert "left_out" in as_shown(matches)


async def test_search_counts_the_lines_left_out_that_have_a_word(stash: Stash, url: str) -> None:
    artifact = await stash.fetch(url)
    passages = await artifact.search("imprint terms")
    assert passages.left_out == {artifact.ref: 1}
    assert "[1 line more in the parts left out of the text: " in as_shown(passages)


async def test_no_line_speaks_of_parts_left_out_that_do_not_match(stash: Stash, url: str) -> None:
    artifact = await stash.fetch(url)
    matches = await artifact.grep("lamp")
    assert matches.artifacts[0].left_out == 0
    assert "left out" not in as_shown(matches)


async def test_the_whole_page_is_a_part(stash: Stash, url: str) -> None:
    artifact = await stash.fetch(url)
    assert "Sluice menu" in (await artifact.slice(path="page")).text
    assert "Sluice menu" not in await artifact.text()


async def test_a_fragment_shows_its_section(stash: Stash, url: str) -> None:
    artifact = await stash.fetch(f"{url}#night")
    assert artifact.preview.startswith("## At night\n\nUse a lamp")
    again = await stash.fetch(url)
    assert again.preview.startswith("# Gates")


async def test_a_fragment_that_names_nothing_shows_the_beginning(stash: Stash, url: str) -> None:
    artifact = await stash.fetch(f"{url}#nowhere")
    assert artifact.preview.startswith("# Gates")


PNG = (
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c4944415408d763f8ffff3f0005fe02fedccc59e70000000049454e44ae426082"
)


async def test_a_picture_of_a_page_is_fetched_and_kept(stash: Stash, site: Site) -> None:
    picture = site.put("/low-gate.png", bytes.fromhex(PNG), "image/png")
    page = f"<main><p>{WORDS}</p><p><img src=/low-gate.png alt='The low gate'></p></main>"
    artifact = await stash.fetch(site.put("/open", page.encode(), "text/html"))
    assert f"![The low gate]({picture})" in await artifact.text()
    shown = await artifact.picture(path="images/1")
    assert (shown.width, shown.height) == (1, 1)
    assert shown.facts.source_url == picture
    assert (await stash.get(picture)).ref == shown.facts.artifact_ref


async def test_a_picture_at_a_private_address_is_refused(stash: Stash, site: Site) -> None:
    page = f"<main><p>{WORDS}</p><p><img src=http://10.0.0.1/x.png alt='The low gate'></p></main>"
    artifact = await stash.fetch(site.put("/closed", page.encode(), "text/html"))
    with pytest.raises(FetchstashError, match="private"):
        await artifact.picture(path="images/1")


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
