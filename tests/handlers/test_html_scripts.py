"""Pages of scripts: their text is read out of the data that they bring along."""

# ruff: noqa: E501 - data on one line read better than in pieces

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.handlers.conftest import Read

PROSE = "The reservoir fills slowly in spring, and the wardens open the lower gate then."
LONG = " ".join(f"Rule {n}: {PROSE}" for n in range(9))


def shell(script: str) -> str:
    """Return a page that shows nothing by itself."""
    return f"<title>Gates</title><div id=root></div>{script}<script src=/app.js></script>"


def next_data(properties: object) -> str:
    data = json.dumps({"props": {"pageProps": properties}, "page": "/", "buildId": "x"})
    return shell(f'<script id="__NEXT_DATA__" type="application/json">{data}</script>')


def pushed(*rows: str) -> str:
    text = json.dumps("".join(rows)).replace("</", "<\\/")
    middle = len(text) // 2
    while text[middle - 1] == "\\" or not text[middle - 3 : middle + 3].isalpha():
        middle += 1
    pieces = (f'{text[:middle]}"', f'"{text[middle:]}')
    return shell("".join(f"<script>self.__next_f.push([1,{piece}])</script>" for piece in pieces))


PROSEMIRROR = {
    "type": "doc",
    "content": [
        {
            "type": "heading",
            "attrs": {"level": 2},
            "content": [{"type": "text", "text": "Opening"}],
        },
        {"type": "paragraph", "content": [{"type": "text", "text": LONG}]},
        {
            "type": "bulletList",
            "content": [
                {"type": "listItem", "content": [{"type": "text", "text": "Turn the key"}]}
            ],
        },
    ],
}
SANITY = [
    {"_type": "block", "style": "h2", "children": [{"_type": "span", "text": "Opening"}]},
    {"_type": "block", "style": "normal", "children": [{"_type": "span", "text": LONG}]},
    {"_type": "block", "style": "normal", "children": [{"_type": "span", "text": "Turn the key"}]},
]
CONTENTFUL = {
    "nodeType": "document",
    "content": [
        {"nodeType": "heading-2", "content": [{"nodeType": "text", "value": "Opening"}]},
        {"nodeType": "paragraph", "content": [{"nodeType": "text", "value": LONG}]},
        {"nodeType": "paragraph", "content": [{"nodeType": "text", "value": "Turn the key"}]},
    ],
}
FLIGHT = (
    '1:"$Sreact.fragment"\n',
    '2:I[123,[],"default"]\n',
    '0:{"P":null,"f":[[["",{}],["$","$L2",null,{"children":["$","main",null,{"children":[["$","h2",null,{"children":"Opening"}],"$L3"]}]}]]]}\n',
    f"4:T{len(LONG):x},{LONG}",
    '3:["$","div",null,{"children":[["$","p",null,{"children":["$4",["$","b",null,{"children":" Daily."}]]}],["$","p",null,{"children":"Turn the key"}]]}]\n',
)
NUXT_3 = [
    ["ShallowReactive", 1],
    {"data": 2, "state": 5},
    {"page": 3},
    {"title": 4, "body": 6},
    "Opening",
    {},
    f"<p>{LONG}</p><p>Turn the key</p>",
]
REMIX_STREAM = [
    {"_1": 2},
    "loaderData",
    {"_3": 4},
    "routes/page",
    {"_5": 6, "_7": 8},
    "title",
    "Opening",
    "body",
    f"{LONG}\n\nTurn the key",
]

DATA: dict[str, str] = {
    "__NEXT_DATA__ with HTML": next_data(
        {"post": {"title": "Opening", "content": f"<p>{LONG}</p><p>Turn the key</p>"}}
    ),
    "__NEXT_DATA__ with plain texts": next_data(
        {"post": {"title": "Opening", "body": f"{LONG}\n\nTurn the key"}}
    ),
    "the rich text of ProseMirror": next_data({"doc": PROSEMIRROR}),
    "the rich text of Sanity": next_data({"doc": {"blocks": SANITY}}),
    "the rich text of Contentful": next_data({"doc": CONTENTFUL}),
    "a stream of React Server Components": pushed(*FLIGHT),
    "the flat array of Nuxt 3": shell(
        '<script type="application/json" id="__NUXT_DATA__">' + json.dumps(NUXT_3) + "</script>"
    ),
    "the function of Nuxt 2": shell(
        "<script>window.__NUXT__=(function(a,b){return {data:[{title:a,body:b}]}}"
        f'("Opening",{json.dumps(f"<h2>Opening</h2><p>{LONG}</p><p>Turn the key</p>")}))</script>'
    ),
    "the context of Remix": shell(
        "<script>window.__remixContext = "
        + json.dumps(
            {
                "state": {
                    "loaderData": {"a": {"title": "Opening", "text": f"{LONG}\n\nTurn the key"}}
                }
            }
        )
        + ";</script>"
    ),
    "the stream of React Router": shell(
        "<script>window.__reactRouterContext.streamController.enqueue("
        + json.dumps(json.dumps(REMIX_STREAM) + "\n")
        + ")</script>"
    ),
    "a state that a script parses": shell(
        "<script>window.__PRELOADED_STATE__ = JSON.parse("
        + json.dumps(json.dumps({"post": {"title": "Opening", "text": f"{LONG}\n\nTurn the key"}}))
        + ")</script>"
    ),
    "linked data": shell(
        '<script type="application/ld+json">'
        + json.dumps(
            {
                "@type": "NewsArticle",
                "headline": "Opening",
                "articleBody": f"{LONG}\n\nTurn the key",
            }
        )
        + "</script>"
    ),
}


@pytest.mark.parametrize("html", DATA.values(), ids=DATA.keys())
def test_the_text_is_that_of(read_page: Read, html: str) -> None:
    extracted, text = read_page(html)
    assert text.startswith("# Gates\n\n## Opening\n\n")
    assert LONG in text
    assert "Turn the key" in text
    assert text.count("Rule 3:") == 1
    assert extracted.facts.page_verdict == ""
    assert "text from its data: " in extracted.facts.structure_info


def test_items_of_data_keep_their_prices(read_page: Read) -> None:
    items = [{"name": f"Gate {n}", "price": n + 0.5, "id": "abc", "slug": "g"} for n in range(60)]
    _, text = read_page(next_data({"products": items}))
    assert "- Gate 7: price: 7.5\n" in text


NO_TEXT: dict[str, Any] = {
    "translations": {"i18n": {"cookie": LONG}},
    "settings": {"runtimeConfig": {"note": LONG}},
    "little": {"text": PROSE},
    "code": {"body": "function a() { return 1; } " * 40},
    "addresses": {"links": ["https://example.org/a/long/address"] * 60},
}


@pytest.mark.parametrize("properties", NO_TEXT.values(), ids=NO_TEXT.keys())
def test_a_shell_stays_a_shell_with(read_page: Read, properties: object) -> None:
    extracted, text = read_page(next_data(properties))
    assert extracted.facts.page_verdict == "empty_shell"
    assert extracted.facts.left_out.startswith("data ")
    assert text == ""


def test_a_page_that_shows_its_text_is_not_read_from_data(read_page: Read) -> None:
    page = next_data({"post": {"body": LONG}})
    shown = "".join(f"<p>Part {n}. {PROSE}</p>" for n in range(12))
    extracted, text = read_page(page.replace("<div id=root>", f"<div id=root><main>{shown}</main>"))
    assert "Part 3." in text
    assert "Rule 3:" not in text
    assert "data" not in extracted.facts.structure_info


def test_noscript_is_the_text_of_a_page_of_scripts(read_page: Read) -> None:
    _, text = read_page(shell(f"<noscript><h1>Gates</h1><p>{LONG}</p></noscript>"))
    assert LONG in text


def test_all_data_of_a_page_are_a_part(page_part: Callable[..., str]) -> None:
    text = page_part(next_data({"note": [1, 2.50]}), "data")
    assert text.startswith("[__NEXT_DATA__]\n{")
    assert '"note": [1, 2.5]' in text
    assert not page_part(f"<p>{LONG}</p>", "data")


ALTERNATES = {
    '<link rel=alternate type=text/markdown href="/blog.md">': "https://example.org/blog.md",
    '<link rel=alternate type="application/rss+xml" href="/blog/feed">': (
        "https://example.org/blog/feed"
    ),
    '<link rel=alternate type="application/rss+xml" href="/feed">': "",
    '<link rel=alternate hreflang=de href="/de">': "",
}


@pytest.mark.parametrize(("link", "address"), ALTERNATES.items())
def test_a_shell_leads_to_its_markdown_or_its_own_feed(
    read_page: Read, link: str, address: str
) -> None:
    extracted, _ = read_page(link + shell(""), url="https://example.org/blog")
    assert (extracted.facts.page_verdict, extracted.facts.leads_to) == ("empty_shell", address)


HOSTILE = {
    **{f"{levels} lists": "[" * levels + "]" * levels for levels in (600, 3_000)},
    **{f"{levels} objects": '{"a":' * levels + "1" + "}" * levels for levels in (600, 3_000)},
    "a flat array that refers to itself": json.dumps(
        [{"a": 1, "b": 1}] + [[n + 1] * 9 for n in range(900)]
    ),
    "an array that holds itself": json.dumps([{"a": 0}, 1]),
    "many texts of HTML": json.dumps([f"<p>{PROSE} {n}</p>" for n in range(3_000)]),
    "many words": json.dumps({"text": PROSE * 9_000}),
    "odd references": json.dumps([{"_1": 99, "_x": -7, "a": 1}, ["Date", "x"], ["Set", 1, 1]]),
}


@pytest.mark.long
@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_data_end_in_bounded_text(read_page: Read, data: str) -> None:
    html = shell(f'<script type="application/json">{data}</script>')
    _, text = read_page(html)
    assert len(text) <= 2 * len(html)


def test_a_stream_whose_rows_refer_to_each_other_ends(read_page: Read) -> None:
    rows = "".join(
        f'{n:x}:["$","p",null,{{"children":["$L{n + 1:x}","$L{n - 1:x}"]}}]\n'
        for n in range(1, 2_000)
    )
    extracted, _ = read_page(shell(f"<script>self.__next_f.push([1,{json.dumps(rows)}])</script>"))
    assert extracted.facts.page_verdict == "empty_shell"


ASSIGNED = {
    "a variable": "var story = %s; start(story)",
    "a constant": "const story=%s",
    "a member of the window": "window.story = %s;",
    "a member by its name": 'window["story"] = %s;',
    "a member of a member": "app.page.story = %s",
}
VALUE = {"title": "Opening hours", "open": [9, 17.5], "closed": None, "night": True}
AS_SCRIPT = """{title: 'Opening hours', /* of the gate */ "open": [9, 17.5,], // daily
  closed: undefined, night: !0,}"""


@pytest.mark.parametrize("script", ASSIGNED.values(), ids=ASSIGNED)
@pytest.mark.parametrize("written", [json.dumps(VALUE), AS_SCRIPT], ids=["JSON", "JavaScript"])
def test_data_that_a_script_assigns_are_found(
    page_part: Callable[..., str], script: str, written: str
) -> None:
    text = page_part(f"<p>{PROSE}</p><script>{script % written}</script>", "data")
    name, _, value = text.partition("\n")
    assert name.endswith("story]")
    assert json.loads(value) == VALUE


@pytest.mark.parametrize(
    "script",
    [
        "var story = {title: name, text: 'Opening hours of the gate and of the lock'}",
        "var story = {title: load('Opening hours of the gate and of the lock')}",
        "var story = {a: `Opening hours of the ${gate} and of the lock, all of them`}",
        "var story = {a: 'Opening hours of the gate and of the lock, without an end",
        "var story = [1, 2}; // Opening hours of the gate and of the lock, all of them",
        "var few = {a: 1}",
    ],
)
def test_what_has_to_be_run_is_no_data(page_part: Callable[..., str], script: str) -> None:
    assert page_part(f"<p>{PROSE}</p><script>{script}</script>", "data") == ""


def test_a_page_that_shows_some_text_is_not_read_from_unknown_data(read_page: Read) -> None:
    data = json.dumps({"events": [{"title": f"Week {n}", "text": f"{n} {LONG}"} for n in range(9)]})
    page = f"<h1>Schedule</h1><p>{PROSE * 3}</p><script>window.__setup__ = {data}</script>"
    _, text = read_page(page)
    assert text.startswith("# Schedule\n\nThe reservoir")
    assert "Week 3" not in text
