"""A page's metadata, links and tables, pages without content, and hostile pages."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fetchstash.errors import BadArgument, OutOfRange
from fetchstash.handlers import Extracted, ExtractLimits, Hints, PartRequest, handler_named
from fetchstash.text.facts import PAGE_VERDICTS
from tests.handlers.hostile.pages import pages
from tests.handlers.parts import text_part

PROSE = (
    "The reservoir fills slowly in spring, and the wardens open the lower gate "
    "when the mark is reached. "
) * 3
HEAD = """<html lang="en-GB"><head><title>Gate works</title>
<link rel="canonical" href="https://example.org/gate">
<meta property="og:site_name" content="The Wardens"><meta name="author" content="A. Warden">
<meta property="article:published_time" content="2026-11-02T08:00:00Z"></head>"""


def extract(tmp_path: Path, html: str) -> tuple[Extracted, str]:
    source = tmp_path / "page.html"
    source.write_text(html, "utf-8")
    extracted = handler_named("html").extract(
        source, Hints(url="https://example.org/a/page.html"), ExtractLimits()
    )
    return extracted, "".join(part.text for part in extracted.parts or ())


def test_facts_come_from_the_head(tmp_path: Path) -> None:
    extracted, _ = extract(tmp_path, f"{HEAD}<body><h1>Gate works</h1><p>{PROSE}</p><p>{PROSE}</p>")
    assert (extracted.facts.title, extracted.facts.author, extracted.facts.language) == (
        "Gate works",
        "A. Warden",
        "en-GB",
    )
    assert extracted.facts.published == "2026-11-02T08:00:00Z"
    assert (
        extracted.facts.structure_info == "site: The Wardens · canonical: https://example.org/gate"
    )


def test_author_and_date_come_from_linked_data_too(tmp_path: Path) -> None:
    article = '{"author":[{"name":"B. Warden"}],"datePublished":"2026-10-01"}'
    script = f'<script type="application/ld+json">{{"@graph":[{article}]}}</script>'
    extracted, _ = extract(tmp_path, f"{script}<p>{PROSE}</p>")
    assert (extracted.facts.author, extracted.facts.published) == ("B. Warden", "2026-10-01")


NO_CONTENT = {
    "a shell": ('<body><div id="root"></div><script src="app.js"></script>', "empty_shell"),
    "a shell that says so": (
        "<body><p>You need to enable JavaScript to run this app.</p><script src=a.js></script>",
        "empty_shell",
    ),
    "a login page": (
        "<form><h1>Sign in</h1><input name=u><input type=password><a>Forgot password?</a></form>",
        "login",
    ),
    "a login page of labels alone": (
        "<title>Sign in</title><form><label>Email<input></label><input type=password></form>",
        "login",
    ),
    "a consent wall": (
        (
            "<h1>Before you continue</h1><p>We use cookies.</p>"
            "<button>Reject all</button><p>Manage options</p>"
        ),
        "consent_wall",
    ),
    "a check": ("<h1>Just a moment...</h1><p>Verify you are human. Ray ID: 8f</p>", "human_check"),
    "a paywall": (
        (
            f"<h1>The gate</h1><p>{PROSE}</p><p>Subscribe to continue reading.</p>"
            "<p>Already a subscriber? Log in.</p>"
        ),
        "paywall",
    ),
    "a paywall that linked data states": (
        (
            '<script type="application/ld+json">{"isAccessibleForFree": "False"}</script>'
            f"<p>{PROSE}</p>"
        ),
        "paywall",
    ),
    "a page that is not found": (
        "<title>Page not found</title><h1>Oops</h1><p>Try the search.</p>",
        "soft_404",
    ),
    "a page that is gone": (
        "<h1>This product is no longer available</h1><p>See our other gates.</p>",
        "soft_404",
    ),
    "nothing": ("<body></body>", "no_text"),
}


@pytest.mark.parametrize(("html", "verdict"), NO_CONTENT.values(), ids=NO_CONTENT.keys())
def test_a_page_without_content_gets_a_verdict(tmp_path: Path, html: str, verdict: str) -> None:
    extracted, _ = extract(tmp_path, html)
    assert extracted.facts.page_verdict == verdict
    assert verdict in PAGE_VERDICTS


CONTENT = {
    "a short page": "<h1>Gate</h1><p>The gate opens at nine.</p>",
    "a page with a login form": f"<p>{PROSE * 6}</p><form>Sign in<input type=password></form>",
    "an article about errors": f"<title>What a 404 is</title><h1>Not found</h1><p>{PROSE * 6}</p>",
    "an article that asks for subscriptions": (
        f"<p>{PROSE * 12}</p><p>Subscribe to keep reading our paper. Already a subscriber?</p>"
    ),
    "a page with a film": f'<p>{PROSE}</p><iframe src="https://example.net/film"></iframe>',
}


@pytest.mark.parametrize("html", CONTENT.values(), ids=CONTENT.keys())
def test_a_page_with_content_gets_no_verdict(tmp_path: Path, html: str) -> None:
    extracted, _ = extract(tmp_path, html)
    assert (extracted.facts.page_verdict, extracted.facts.leads_to) == ("", "")


LEADS_ON = {
    "a meta refresh": '<meta http-equiv="Refresh" content="0; url=../b.html"><p>Moving…</p>',
    "a meta refresh in quotes": "<meta http-equiv=refresh content='3;URL=\"/b.html\"'>",
    "a lone frame": '<iframe src="/b.html"></iframe><iframe src="/c" width=0></iframe>',
    "frames": '<frameset><frame name=toc src=toc.html><frame name=main src="/b.html"></frameset>',
    "a script": "<script>window.location.href = '/b.html';</script>",
    "a script that replaces": '<p>One moment.</p><script>location.replace("/b.html")</script>',
}


@pytest.mark.parametrize("html", LEADS_ON.values(), ids=LEADS_ON.keys())
def test_a_page_that_only_leads_on_names_the_address(tmp_path: Path, html: str) -> None:
    extracted, _ = extract(tmp_path, html)
    facts = extracted.facts
    assert (facts.page_verdict, facts.leads_to) == ("leads_on", "https://example.org/b.html")


@pytest.mark.parametrize(
    "html",
    ['<meta http-equiv=refresh content="0;url=javascript:alert(1)">', "<iframe title=ad></iframe>"],
    ids=["to a script", "a frame without an address"],
)
def test_a_page_that_leads_nowhere_has_no_text(tmp_path: Path, html: str) -> None:
    extracted, _ = extract(tmp_path, html)
    assert (extracted.facts.page_verdict, extracted.facts.leads_to) == ("no_text", "")


def test_text_inside_of_very_deep_tags_is_read(tmp_path: Path) -> None:
    _, text = extract(tmp_path, f"{'<b>' * 300_000}The gate is open.")
    assert "The gate is open." in text


def test_text_after_too_many_tags_is_reported_as_unread(tmp_path: Path) -> None:
    extracted, text = extract(tmp_path, f"{'<b>' * 900_000}The gate is open.")
    assert (text, extracted.facts.extraction_truncated) == ("", True)
    assert "800,000" in extracted.facts.extraction_error


def test_links_and_tables_of_the_whole_page_are_parts(tmp_path: Path) -> None:
    source = tmp_path / "page.html"
    source.write_text(
        f"{HEAD}<nav><a href=/b>Beta</a></nav><p>{PROSE}<a href=c>C</a></p>"
        "<table><tr><th>a<th>b<tr><td>1<td>2</table>",
        "utf-8",
    )

    def part(path: str) -> str:
        return text_part("html", PartRequest(source=source, path=path)).text

    assert part("links") == "- [Beta](https://example.org/b)\n- [C](https://example.org/c)\n"
    assert part("tables") == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    with pytest.raises(OutOfRange):
        part("pictures")
    with pytest.raises(BadArgument):
        text_part("html", PartRequest(source=source, path="links", render="image"))


GUIDE = f"""<nav id=menu><a href=/b>Beta menu</a></nav>
<main><h1 id=top>Guide</h1><p>{PROSE}</p>
<h2><a name=open></a>Opening</h2><p>Turn the key.</p><h3>At night</h3><p>Use a lamp.</p>
<h2 id="sch%C3%B6n">Closing</h2><p id=note>Turn it back.</p><p>{PROSE}</p><p>{PROSE}</p></main>
<div class=comments><p>{PROSE} says a visitor.</p></div><footer>Imprint</footer>"""


@pytest.fixture
def guide(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that reads a part of a guide with navigation and comments."""
    source = tmp_path / "guide.html"
    source.write_text(GUIDE, "utf-8")

    def read(path: str) -> str:
        found = text_part("html", PartRequest(source=source, path=path))
        return found.text

    return read


def test_the_whole_page_and_what_was_left_out_of_it_can_be_read(
    tmp_path: Path, guide: Callable[[str], str]
) -> None:
    extracted, text = extract(tmp_path, GUIDE)
    assert "Beta menu" not in text
    page, left_out = guide("page"), guide("left_out")
    assert "Beta menu" in page
    assert "Turn the key." in page
    assert "Beta menu" in left_out
    assert "Imprint" in left_out
    assert "Turn the key." not in left_out
    facts = extracted.facts
    assert facts.left_out_chars >= len("Beta menu") + len("Imprint")
    assert "navigation 9" in facts.left_out
    assert "footer 7" in facts.left_out


def test_a_page_that_is_kept_whole_leaves_nothing_out(tmp_path: Path) -> None:
    extracted, _ = extract(tmp_path, f"<main><p>{PROSE}</p></main>")
    assert (extracted.facts.left_out_chars, extracted.facts.left_out) == (0, "")


SECTIONS = {
    "#open": "## Opening\n\nTurn the key.\n\n### At night\n\nUse a lamp.\n",
    "#note": f"Turn it back.\n\n{PROSE.strip()}\n\n{PROSE.strip()}\n",
    "#menu": "[Beta menu](/b)\n",
}


@pytest.mark.parametrize("fragment", SECTIONS)
def test_a_fragment_names_the_section_that_begins_there(
    guide: Callable[[str], str], fragment: str
) -> None:
    assert guide(fragment).startswith(SECTIONS[fragment])


def test_a_fragment_is_taken_with_and_without_its_escapes(guide: Callable[[str], str]) -> None:
    assert guide("#sch%C3%B6n").startswith("## Closing\n")


def test_a_fragment_that_names_nothing_is_out_of_range(guide: Callable[[str], str]) -> None:
    with pytest.raises(OutOfRange):
        guide("#nowhere")


def test_links_are_absolute_by_the_address_of_the_page(tmp_path: Path) -> None:
    source = tmp_path / "page.html"
    source.write_text(f"<p>{PROSE}<a href=/b>B</a> and <a href=c>C</a></p>", "utf-8")
    hints = Hints(url="https://example.net/docs/page")
    links = text_part("html", PartRequest(source=source, path="links", hints=hints))
    assert links.text == "- [B](https://example.net/b)\n- [C](https://example.net/docs/c)\n"


# A share of each size; scripts/ci torture sends the full sizes through a server.
HOSTILE = pages(2**16)


@pytest.mark.slow
@pytest.mark.parametrize("page", HOSTILE)
def test_a_hostile_page_ends_in_bounded_text(tmp_path: Path, page: str) -> None:
    html = HOSTILE[page].decode()
    start = time.process_time()
    _, text = extract(tmp_path, html)
    assert time.process_time() - start < 10  # a runaway, not a figure: scripts/ci torture has those
    assert "gate" in text
    assert len(text) <= 2 * len(html)
