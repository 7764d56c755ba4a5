"""Lists of teasers around an article are not its text, and lists inside of it are."""

# ruff: noqa: E501 - a page on one line reads better than in pieces

from collections.abc import Callable

import pytest

from fetchstash.handlers import Extracted

SENTENCES = (
    "The council voted on Tuesday to repair the lower gate before the floods, after months of argument over its cost.",
    "Engineers found cracks in two of the four piers, and they warned that the wood behind the iron plates had begun to rot.",
    "The wardens, who have opened the gate by hand since 1911, asked for a motor and for a roof.",
    "Work begins in March and ends, if the weather allows, before the first of the barges comes.",
    "Until then the towpath stays closed between the bridge and the mill, and walkers are asked to cross at the church.",
    "A spokeswoman for the mill said that its owners had offered to pay a third of the cost.",
)
BODY = "".join(f"<p>{SENTENCES[n % 6]} {SENTENCES[(n + 2) % 6]}</p>" for n in range(7))
STORIES = [f"Story {n} about a bridge in the north" for n in range(9)]
EXCERPT = "A short word on what happened at this bridge yesterday evening, and who saw it."


def cards(name: str, title: str) -> str:
    items = "".join(
        f'<div class="{name}-i"><a href="/{n}"><h3>{story}</h3></a><p>{EXCERPT}</p></div>'
        for n, story in enumerate(STORIES)
    )
    return f'<section class="{name}"><h2>{title}</h2>{items}</section>'


LINKS = "".join(f"<li><a href=/{n}>{story}</a></li>" for n, story in enumerate(STORIES))
WRAPPED = "".join(
    f"<article class=c><a href=/{n}><h2>{story}</h2><p>{EXCERPT}</p></a></article>"
    for n, story in enumerate(STORIES)
)
ARCHIVE = "".join(f"<li><a href=/{n}>In the month {n} of 2026 (1{n})</a></li>" for n in range(12))
ARTICLE = f"<h1>The lower gate</h1>{BODY}"
AROUND = {
    "teasers at the end of the article": f"<article>{ARTICLE}{cards('x1', 'More')}</article>",
    "teasers before the article": f"{cards('x2', 'Top stories')}<article>{ARTICLE}</article>",
    "the most read in another column": f"<div>{ARTICLE}</div><div><h4>Most read</h4><ol>{LINKS}</ol></div>",
    "the next stories, each a link": f"<main>{ARTICLE}<div>{WRAPPED}</div></main>",
    "teasers before a text that is a link": f"<article>{ARTICLE}{cards('x1', 'More')}<a href=/s><p>{SENTENCES[1]}</p></a></article>",
    "an archive": f"<div>{ARTICLE}</div><div><h3>Archive</h3><ul>{ARCHIVE}</ul></div>",
}  # fmt: skip

Read = Callable[[str], tuple[Extracted, str]]


def page(body: str) -> str:
    """Return the page of an article with this body."""
    return f'<title>Gate</title><meta property="og:type" content="article"><body>{body}'


@pytest.mark.parametrize("body", AROUND.values(), ids=AROUND.keys())
def test_the_text_of_an_article_has_no(read_page: Read, body: str) -> None:
    _, text = read_page(page(body))
    assert "Story" not in text
    assert "short word" not in text
    assert "2026" not in text
    assert text.count("spokeswoman") == BODY.count("spokeswoman")


INSIDE = {
    "a list of links between paragraphs": f"{ARTICLE}<ul>{LINKS}</ul>{BODY}",
    "sections with long texts": ARTICLE
    + "".join(f"<div><h3><a href=/{n}>{s}</a></h3>{BODY}</div>" for n, s in enumerate(STORIES[:4])),
    "notes that link inside of the page": f"{ARTICLE}<ol>"
    + "".join(f"<li><a href=#r{n}>{story}</a></li>" for n, story in enumerate(STORIES))
    + "</ol>",
    "few links": f"{ARTICLE}<p><a href=/1>{STORIES[0]}</a></p><p><a href=/2>{STORIES[1]}</a></p>",
}


@pytest.mark.parametrize("body", INSIDE.values(), ids=INSIDE.keys())
def test_the_text_of_an_article_keeps(read_page: Read, body: str) -> None:
    assert "Story 1" in read_page(page(f"<main><article>{body}</article></main>"))[1]


def test_a_page_that_is_a_list_of_teasers_keeps_them(read_page: Read) -> None:
    _, text = read_page(page(f"<main><h1>News</h1>{cards('x', 'Today')}</main>"))
    assert text.count("Story") == 9
