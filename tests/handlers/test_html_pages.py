"""What a page says of itself, what it is instead of content, its links and tables, and pages that mean harm."""

import time
from pathlib import Path

import pytest

from fetchstash.errors import BadArgument, OutOfRange
from fetchstash.handlers import Extracted, ExtractLimits, Hints
from fetchstash.handlers._html import HtmlHandler

PROSE = "The reservoir fills slowly in spring, and the wardens open the lower gate when the mark is reached. " * 3
HEAD = """<html lang="en-GB"><head><title>Gate works</title><link rel="canonical" href="https://example.org/gate">
<meta property="og:site_name" content="The Wardens"><meta name="author" content="A. Warden">
<meta property="article:published_time" content="2026-11-02T08:00:00Z"></head>"""


def extract(tmp_path: Path, html: str) -> tuple[Extracted, str]:
    source = tmp_path / "page.html"
    source.write_text(html, "utf-8")
    extracted = HtmlHandler().extract(source, Hints(url="https://example.org/a/page.html"), ExtractLimits())
    return extracted, "".join(part.text for part in extracted.parts or ())


def test_facts_come_from_the_head(tmp_path: Path) -> None:
    extracted, _ = extract(tmp_path, f"{HEAD}<body><h1>Gate works</h1><p>{PROSE}</p><p>{PROSE}</p>")
    assert (extracted.title, extracted.author, extracted.language) == ("Gate works", "A. Warden", "en-GB")
    assert extracted.published == "2026-11-02T08:00:00Z"
    assert extracted.structure_info == "site: The Wardens · canonical: https://example.org/gate"


def test_author_and_date_come_from_linked_data_too(tmp_path: Path) -> None:
    data = '{"@graph":[{"@type":"Article","author":[{"name":"B. Warden"}],"datePublished":"2026-10-01"}]}'
    extracted, _ = extract(tmp_path, f'<script type="application/ld+json">{data}</script><p>{PROSE}</p>')
    assert (extracted.author, extracted.published) == ("B. Warden", "2026-10-01")


NO_CONTENT = {
    "a shell": ('<body><div id="root"></div><script src="app.js"></script>', "shell"),
    "a shell that says so": ("<body><p>You need to enable JavaScript to run this app.</p><script src=a.js></script>", "shell"),
    "a login page": ("<form><h1>Sign in</h1><input name=u><input type=password><a>Forgot password?</a></form>", "login"),
    "a consent wall": (
        "<h1>Before you continue</h1><p>We use cookies.</p><button>Reject all</button><p>Manage options</p>",
        "consent",
    ),
    "a check": ("<h1>Just a moment...</h1><p>Verify you are human. Ray ID: 8f</p>", "human"),
    "nothing": ("<body></body>", "no text"),
}


@pytest.mark.parametrize(("html", "told"), NO_CONTENT.values(), ids=NO_CONTENT.keys())
def test_a_page_without_content_is_said_to_be_that(tmp_path: Path, html: str, told: str) -> None:
    extracted, _ = extract(tmp_path, html)
    assert told in extracted.structure_info


def test_links_and_tables_of_the_whole_page_are_there_for_the_asking(tmp_path: Path) -> None:
    source = tmp_path / "page.html"
    source.write_text(
        f"{HEAD}<nav><a href=/b>Beta</a></nav><p>{PROSE}<a href=c>C</a></p><table><tr><th>a<th>b<tr><td>1<td>2</table>", "utf-8"
    )

    def part(path: str) -> str:
        return HtmlHandler().part(source, path, "lines", None, None, "text", ExtractLimits()).text

    assert part("links") == "- [Beta](https://example.org/b)\n- [C](https://example.org/c)\n"
    assert part("tables") == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    with pytest.raises(OutOfRange):
        part("pictures")
    with pytest.raises(BadArgument):
        HtmlHandler().part(source, "links", "lines", None, None, "image", ExtractLimits())


def test_links_are_absolute_by_the_address_of_the_page(tmp_path: Path) -> None:
    source = tmp_path / "page.html"
    source.write_text(f"<p>{PROSE}<a href=/b>B</a> and <a href=c>C</a></p>", "utf-8")
    hints = Hints(url="https://example.net/docs/page")
    found = HtmlHandler().part(source, "links", "lines", None, None, "text", ExtractLimits(), hints)
    assert found.text == "- [B](https://example.net/b)\n- [C](https://example.net/docs/c)\n"


# A share of each; the full sizes run from bench.
HOSTILE = {
    "deep divisions": "<div>" * 20_000 + "gate",
    "deep formatting": "<b>" * 20_000 + "gate",
    "deep tables": "<div><table><td></div>" * 5_000 + "gate",
    "formatting that copies itself": "".join(f"<font size={n}>" for n in range(1_000)) + "<p>gate" * 10_000,
    "attributes of one tag": f"<p {' '.join(f'a{n}=1' for n in range(20_000))}>gate</p>",
    "options of one select": f"<select>{'<option>x' * 50_000}</select><p>gate",
    "cells over a thousand columns": f"<table><tr>{'<td colspan=1000 rowspan=1000>gate</td>' * 1_000}</tr><tr><td>x<td>y</table>",
    "tags that never end": "gate" + "<a " * 200_000,
    "comments that never end": "gate" + "<!--" * 200_000,
    "scripts that never end": "gate" + "<script>" * 50_000,
    "lists in lists": "<ul><li>gate" * 3_000,
    "quotations in quotations": "<blockquote>gate" * 3_000,
    "links of a long base": f"<base href='https://e.org/{'x' * 8_000}/'>" + "<p><a href=y>gate</a>" * 2_000,
    "rules of a style sheet": f"<style>{''.join(f'.a.b{n}{{display:none}}' for n in range(5_000))}</style>"
    + "<p class=a>gate</p>" * 500,
}


@pytest.mark.parametrize("html", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_page_ends_in_bounded_text(tmp_path: Path, html: str) -> None:
    start = time.process_time()
    _, text = extract(tmp_path, html)
    assert time.process_time() - start < 10  # a runaway, not a figure: those are in bench
    assert "gate" in text
    assert len(text) <= 2 * len(html)
