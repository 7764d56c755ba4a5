"""The story of a page is read; those that follow it are left out, and stay at hand."""

from collections.abc import Callable

import pytest

from tests.handlers.conftest import Read
from tests.handlers.parts import PROSE

LATER = PROSE.replace("reservoir", "harbour")


def story(title: str, text: str, tag: str = "article", heading: str = "h1") -> str:
    return f"<{tag} class=story><{heading}>{title}</{heading}>{f'<p>{text}</p>' * 3}</{tag}>"


def page(*stories: str, title: str = "Gate works | The Paper") -> str:
    return f"<!doctype html><title>{title}</title><body>{''.join(stories)}"


FIRST = story("Gate works", PROSE)
FOLLOWED = {
    "articles": page(FIRST, story("Other news", LATER), story("More news", LATER)),
    "sections": page(story("Gate works", PROSE, "section"), story("Other news", LATER, "section")),
    "boxes in a scroll": page(
        f"<div id=scroll>{story('Gate works', PROSE, 'div')}{story('News', LATER, 'div')}</div>"
    ),
}


@pytest.mark.parametrize("html", FOLLOWED.values(), ids=FOLLOWED)
def test_stories_that_follow_are_left_out_and_told(
    read_page: Read, page_part: Callable[..., str], html: str
) -> None:
    extracted, text = read_page(html)
    assert "reservoir" in text
    assert "harbour" not in text
    assert extracted.facts.left_out_chars > len(LATER)
    assert "harbour" in page_part(html, "left_out")


WHOLE = {
    "parts of one story": page(
        f"<h1>Gate works</h1>{story('One', PROSE, heading='h2')}{story('Two', LATER, heading='h2')}"
    ),
    "stories of a front page": page(FIRST, story("Other news", LATER), title="The Paper"),
    "parts with great headings": page(f"<main>{FIRST}<h1>Below</h1><p>{LATER}</p></main>"),
    "a story in two parts of one name": page(FIRST, story("Gate works", LATER)),
}


@pytest.mark.parametrize("html", WHOLE.values(), ids=WHOLE)
def test_parts_of_a_page_are_no_other_stories(read_page: Read, html: str) -> None:
    _, text = read_page(html)
    assert "reservoir" in text
    assert "harbour" in text


def test_captions_of_one_template_are_all_there(read_page: Read) -> None:
    captions = ["Workers at the wall" if n % 2 else f"The wall in 190{n}" for n in range(8)]
    pictures = "".join(
        f"<p>{PROSE}</p><div class=mol-img><img src=/p{n}.jpg width=600 height=400 alt=''></div>"
        f"<p class=imageCaption>{caption}</p>"
        for n, caption in enumerate(captions)
    )
    _, text = read_page(page(f"<article><h1>Gate works</h1>{pictures}</article>"))
    assert [line for line in text.split("\n") if "wall" in line] == captions
