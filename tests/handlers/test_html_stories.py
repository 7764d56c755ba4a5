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


ADDED = (
    "<div class=added><div><h1>Other news</h1><span class=author-name>Ada North</span></div>"
    f"<p>{LATER}</p></div>"
)
FIRST = story("Gate works", PROSE)
FOLLOWED = {
    "articles": page(FIRST, story("Other news", LATER), story("More news", LATER)),
    "sections": page(story("Gate works", PROSE, "section"), story("Other news", LATER, "section")),
    "stories of another template": page(
        f"<article><h1>Gate works</h1>{f'<p>{PROSE}</p>' * 2}<div>{ADDED * 2}</div></article>"
    ),
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
    "chapters with great headings": page(
        f"<h1>Gate works</h1><p>{PROSE}</p>"
        + f"<section><h1>Below</h1><p>{LATER}</p></section>" * 2
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


OTHERS = "".join(
    f"<li><a href=/n{n}>Harbour master number {n} speaks of the new wall</a></li>" for n in range(5)
)
BESIDE = {
    "a column without a name": f"<div class=right-3><ul>{OTHERS}</ul></div>",
    "a column of cards": "".join(
        f"<div class=post><h2><a href=/n{n}>Harbour master {n} speaks of the wall</a></h2>"
        f"<p>March {n}, 2026</p></div>"
        for n in range(1, 5)
    ),
    "most read": f"<section><h3>Most read</h3><ol>{OTHERS}</ol></section>",
    "words of another language": f"<div class=c2><h4>Lasītākie</h4><ul>{OTHERS}</ul></div>",
}


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("kind", ["", "<meta property=og:type content=article>"], ids=["", "said"])
def test_lists_of_other_stories_are_left_out_by_their_form(
    read_page: Read, page_part: Callable[..., str], beside: str, kind: str
) -> None:
    text_of_page = f"<div class=text><h1>Gate works</h1>{f'<p>{PROSE}</p>' * 3}</div>{beside}"
    html = page(kind + text_of_page)
    _, text = read_page(html)
    assert "reservoir" in text
    assert "Harbour master" not in text
    assert "Harbour master" in page_part(html, "left_out")


def test_a_page_that_has_more_in_its_lists_is_a_list(read_page: Read) -> None:
    cards = "".join(
        f"<div class=card><h2><a href=/n{n}>Harbour camera of the year {n}</a></h2>"
        f"<ul><li>{PROSE}</li></ul></div>"
        for n in range(1, 9)
    )
    _, text = read_page(page(f"<h1>Gate works</h1>{f'<p>{PROSE}</p>' * 3}{cards}"))
    assert text.count("Harbour camera") == 8


def test_filters_of_a_shop_are_no_facts(read_page: Read) -> None:
    filters = "<div class=filters><p>$0 - $200</p><p>5 stars</p><p>4 stars</p></div>"
    text_of_page = f"<h1>Used van</h1>{f'<p>{PROSE}</p>' * 3}"
    _, text = read_page(page(f"{filters}<main>{text_of_page}</main>", title="Used van"))
    assert "$200" not in text


def test_a_list_of_links_between_paragraphs_is_of_the_text(read_page: Read) -> None:
    whole = f"<div><h1>Gate works</h1>{f'<p>{PROSE}</p>' * 3}<ul>{OTHERS}</ul><p>{PROSE}</p></div>"
    _, text = read_page(page(whole))
    assert text.count("Harbour master") == 5


VAN = "<li>61,000 miles</li><li>Diesel</li>"
BESIDE_A_PRICE = {
    "in a column": f"<aside class=sidebar><p class=price>£7,250</p><ul>{VAN}</ul></aside>",
    "in a form": f"<form action=/cart><div>£7,250</div><ul>{VAN}</ul><button>Buy</button></form>",
    "paragraphs": "<div class=sum><span>7 250 €</span><p>61,000 miles</p><p>Diesel</p></div>",
    "in a line": "<div class=header-info><b>£7,250</b> <b>61,000 miles</b> <b>Diesel</b></div>",
    "in a table": (
        "<aside><div>$7,250</div><table><tr><td>Mileage</td><td>61,000 miles</td></tr>"
        "<tr><td>Fuel</td><td>Diesel</td></tr></table></aside>"
    ),
}


@pytest.mark.parametrize("facts", BESIDE_A_PRICE.values(), ids=BESIDE_A_PRICE)
@pytest.mark.parametrize("first", [True, False], ids=["above the text", "below"])
def test_facts_of_a_product_stand_with_its_price(
    read_page: Read, facts: str, *, first: bool
) -> None:
    body = f"<p>{PROSE}</p>" * 3
    body = facts + body if first else body + facts
    _, text = read_page(page(f"<main><h1>Used van</h1>{body}</main>", title="Used van"))
    assert all(fact in text for fact in ("250", "61,000 miles", "Diesel"))


def test_a_price_beside_a_page_of_few_words_is_no_fact_of_it(read_page: Read) -> None:
    hat = "<aside><p>$5</p><p>Straw hat</p></aside>"
    _, text = read_page(page(f"<main><h1>Used van</h1><p>{PROSE[:80]}</p></main>{hat}"))
    assert "hat" not in text


def test_prices_of_other_products_are_no_facts_of_this_one(read_page: Read) -> None:
    card = "<div class=card><a href=/v>A van</a><div><b>£9,000</b><p>9,999 miles</p></div></div>"
    related = f"<section class=related><h2>Similar</h2>{card * 4}</section>"
    cart = "<div class=mini-cart><p>£9,000</p><p>9,999 miles</p></div>"
    body = f"{cart}<main><h1>Used van</h1>{f'<p>{PROSE}</p>' * 3}</main>{related}"
    _, text = read_page(page(body, title="Used van"))
    assert "9,999" not in text
