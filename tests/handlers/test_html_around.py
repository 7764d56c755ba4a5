"""What stands around a text twice or as its frame goes: contents, feet, summaries, copies."""

# ruff: noqa: E501 - a fragment of HTML on one line reads better than in pieces

import pytest

from fetchstash.handlers._html import _blocks, _repairs, _tree
from tests.handlers.conftest import Read
from tests.handlers.test_html_pages import SENTENCES

NAMES = ("First steps", "The gate by hand", "Floods", "2.1 Repairs")
TEXT = "".join(
    f"<h2 id=s{n}>{name}</h2><p>{SENTENCES[n]} {SENTENCES[n + 1]}</p><p>{SENTENCES[n + 2]}</p>"
    for n, name in enumerate(NAMES)
)
LINKS = "".join(f"<li><a href=#s{n}>{name}</a></li>" for n, name in enumerate(NAMES))
UNNUMBERED = LINKS.replace("2.1 ", "")
CONTENTS = {
    "a list": f"<ul>{LINKS}</ul>{TEXT}",
    "a list with its name": f"<div><b>Table of contents</b></div><ol>{LINKS}</ol>{TEXT}",
    "a list under a heading": f"<h2>Contents</h2><ul>{LINKS}</ul>{TEXT}",
    "a list that opens": f"<details open><summary>Table of contents</summary><ul>{LINKS}</ul></details>{TEXT}",
    "a list in a list": f"<ul>{LINKS.replace('</li>', f'<ul>{LINKS}</ul></li>', 1)}</ul>{TEXT}",
    "numbers that the headings have alone": f"<ul>{UNNUMBERED}</ul>{TEXT}",
    "numbers that the list has alone": f"<ul>{LINKS}</ul>{TEXT.replace('2.1 ', '')}",
    "below the text": f"{TEXT}<div>On this page</div><ul>{LINKS}</ul>",
    "addresses with the name of the page": f"<ul>{LINKS.replace('#', 'page.html#')}</ul>{TEXT}",
    "another language": f"<p>Inhaltsverzeichnis:</p><ul>{LINKS}</ul>{TEXT}",
}


@pytest.mark.parametrize("body", CONTENTS.values(), ids=CONTENTS)
def test_a_table_of_contents_stands_in_the_outline_alone(read_page: Read, body: str) -> None:
    extracted, text = read_page(f"<main><h1>Gate works</h1>{body}</main>")
    assert text.startswith("# Gate works\n\n## First steps")
    assert text.count("The gate by hand") == 1
    assert "ontents" not in text.replace(" contents of", "")
    assert "this page" not in text
    assert extracted.facts.left_out_chars >= sum(map(len, NAMES)) - len("2.1 ")


NO_CONTENTS = {
    "links to other pages": f"<ul>{LINKS.replace('#', '/')}</ul>{TEXT}",
    "places that are no headings": f"<ul>{''.join(f'<li><a href=#p{n}>Gate {n} by hand</a></li>' for n in range(5))}</ul>{TEXT}",
    "two links": f"<ul>{LINKS[: LINKS.index('<li>', 60)]}</ul>{TEXT}",
    "entries with words of their own": f"<ul>{LINKS.replace('</a>', '</a>: what it costs in spring')}</ul>{TEXT}",
}


@pytest.mark.parametrize("body", NO_CONTENTS.values(), ids=NO_CONTENTS)
def test_lists_that_say_more_than_headings_stay(read_page: Read, body: str) -> None:
    _, text = read_page(f"<main><h1>Gate works</h1>{body}</main>")
    assert text.count("y hand") > 1


def test_a_heading_above_contents_stays_with_what_else_it_has(read_page: Read) -> None:
    body = f"<h2>Overview</h2><ul>{LINKS}</ul><p>{SENTENCES[5]}</p>{TEXT}"
    _, text = read_page(f"<main><h1>Gate works</h1>{body}</main>")
    assert f"## Overview\n\n{SENTENCES[5]}" in text


OWNERS = f"© 2026 The Gate Works Company. All of its marks are registered. {SENTENCES[5]}"
SHORT = "".join(f"<h2>{name}</h2><p>{s}</p>" for name, s in zip(NAMES, SENTENCES, strict=False))
FEET = {
    "a class": f"<div class=footer><p>{OWNERS}</p></div>",
    "an id": f"<div id=footer><div><p>{OWNERS}</p></div></div>",
    "of the site": f"<div class='x site-footer'><p>{OWNERS}</p></div>",
    "a sidebar": f"<div class='sidebar section'><h3>Follow us</h3><p>{OWNERS}</p></div>",
    "two": f"<div class=footer><p>{OWNERS}</p></div><div class=page-footer><p>{OWNERS}</p></div>",
}


@pytest.mark.parametrize("foot", FEET.values(), ids=FEET)
def test_the_foot_of_a_page_is_left_out(read_page: Read, foot: str) -> None:
    _, text = read_page(f"<body><div class=content><h1>Gate works</h1>{SHORT}</div>{foot}")
    assert "registered" not in text
    assert SENTENCES[3] in text


NO_FEET = {
    "above the text": f"<div class=footer><p>{OWNERS}</p></div><div><h1>Gate</h1>{TEXT}</div>",
    "most of the page": f"<h1>Gate</h1><p>{SENTENCES[0]}</p><div class=footer>{TEXT}<p>{OWNERS}</p></div>",
    "another word": f"<div><h1>Gate</h1>{TEXT}</div><div class=footer-notes><p>{OWNERS}</p></div>",
}


@pytest.mark.parametrize("body", NO_FEET.values(), ids=NO_FEET)
def test_what_is_no_foot_stays(read_page: Read, body: str) -> None:
    assert "Floods" in read_page(f"<body>{body}")[1]


def test_a_sidebar_in_the_text_is_of_the_text(read_page: Read) -> None:
    sidebar = f"<div class=sidebar><p>{OWNERS}</p></div>"
    _, text = read_page(f"<body><div><h1>Gate</h1>{TEXT}{sidebar}{TEXT}</div>")
    assert "registered" in text


def test_a_summary_is_left_out_where_the_whole_follows(read_page: Read) -> None:
    items = "".join(
        f"<li><h4>open{n}</h4><p class=short>{said}</p><div class=full><div><p>{said} {SENTENCES[n]}</p></div></div></li>"
        for n, said in enumerate(("Opens the gate.", "Shuts the gate.", "Says how high it is."))
    )
    _, text = read_page(f"<main><h1>Gate</h1>{TEXT}<ol>{items}</ol></main>")
    assert [text.count(said) for said in ("Opens the gate", "Shuts the", "Says how")] == [1, 1, 1]
    assert f"Shuts the gate. {SENTENCES[1]}" in text


def test_a_refrain_is_said_as_often_as_it_is(read_page: Read) -> None:
    song = "<p>Raise the gate, raise it high.</p>" * 3
    _, text = read_page(f"<main><h1>Gate</h1>{TEXT}<div>{song}</div></main>")
    assert text.count("Raise the gate") == 3


def test_what_is_said_of_each_language_stays(read_page: Read) -> None:
    said = "Read the settings of the gate as environment variables."
    zones = "".join(f"<div class=zone><p>{said}</p></div>" for _ in range(3))
    _, text = read_page(f"<main><h1>Gate</h1><div>{TEXT}{zones}</div><pre>x = 1</pre></main>")
    assert text.count(said) == 3


def test_a_post_stays_that_the_next_one_quotes(read_page: Read) -> None:
    posts = "".join(f"<div class=post><div><p>{said}</p></div></div>" for said in SENTENCES[:3])
    quote = f"<div class=post><div><blockquote><div><p>{SENTENCES[2]}</p></div></blockquote><p>{SENTENCES[4]}</p></div></div>"
    _, text = read_page(f"<main><h1>Gate</h1>{posts}{quote}</main>")
    assert text.index(SENTENCES[2]) < text.index(SENTENCES[4])
    assert f"\n{SENTENCES[2]}" in text


def test_a_quotation_of_a_post_above_is_left_out(read_page: Read) -> None:
    said = (SENTENCES[0], SENTENCES[1], SENTENCES[2])
    posts = "".join(
        f"<div><h3>Re: The gate</h3><p>{who}:</p><p>{s}</p></div>"
        for who, s in zip("abc", said, strict=True)
    )
    quote = f"<div><h3>Re: The gate</h3><p>d:</p><blockquote><p>{said[1]}</p></blockquote><p>{SENTENCES[4]}</p></div>"
    _, text = read_page(f"<main><h1>The gate</h1>{posts}{quote}</main>")
    assert text.count(said[1]) == 1
    assert SENTENCES[4] in text


def test_what_two_members_of_one_name_say_alike_is_said_of_each(read_page: Read) -> None:
    same = f"<dl><dt>Parameters:</dt><dd>{SENTENCES[1]}</dd></dl>"
    members = "".join(
        f"<section><h3>open</h3><div>void open({given})</div><p>{said}</p>{same}</section>"
        for given, said in (("int gate", SENTENCES[0]), ("Gate gate, int by", SENTENCES[2]))
    )
    _, text = read_page(f"<main><h1>Gate</h1><p>{SENTENCES[4]}</p>{members}</main>")
    assert text.count(SENTENCES[1]) == 2


def test_a_long_copy_is_left_out_under_whatever_heading(read_page: Read) -> None:
    said = "".join(f"<p>{sentence} It is so.</p>" for sentence in SENTENCES * 2)
    body = f"<div class=a><h1>Gate works</h1><h6>10 May 2026</h6>{said}</div>"
    copy = body.replace("10 May", "9 May").replace("class=a", "class=b").replace("<h1>", "<h1>The ")
    _, text = read_page(f"<body><main>{body}{copy}</main>")
    assert text.count(SENTENCES[0]) == 2


@pytest.mark.parametrize(
    ("between", "is_kept"),
    [
        (f"<h3>About</h3><p>{SENTENCES[0]}</p><p>{SENTENCES[3]}</p>", True),
        (f"<h3>About</h3><p>{SENTENCES[0]}</p>", False),
        (f"<p><a href=/1>{SENTENCES[0]}</a></p><p><a href=/2>{SENTENCES[3]}</a></p>", False),
        ("<p>Share this</p><p>Print this</p><p>Save this for later</p>", False),
    ],
    ids=["paragraphs", "one paragraph", "links", "buttons"],
)
def test_paragraphs_below_the_main_heading_are_kept(between: str, is_kept: bool) -> None:
    end = f"<h3>open(Gate)</h3><p>{SENTENCES[1]}</p>"
    blocks = _blocks.cut(_tree.parse(f"<div><h1>gates</h1>{between}{end}</div>"))
    keep = [True, *[False] * (len(blocks) - 3), True, True]
    _repairs.keep_lead(blocks, keep)
    assert all(keep) is is_kept
