"""Each call that a result offers reads something: a table of pages, and all their calls made."""

import json
import re
from typing import Any

import pytest

from fetchstash.errors import FetchstashError
from fetchstash.render import as_shown
from fetchstash.stash import Slice, Stash
from tests.stash.test_rules import open_recorded

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

URL = "https://site.example/page"
WORDS = "The reservoir fills slowly in spring, and the wardens open the lower gate then. "
APP = "<div id=root></div><script src=/app.js></script>"
DATA = "<script>window.story = " + json.dumps({"a": "x" * 60}) + "</script>"
OPEN_GRAPH = """<title>Gates</title><meta property=og:description content="How gates work.">
<meta property=og:image content=/gate.jpg><link rel=canonical href=/gates>"""
FORM = "<form><input type=password><button>Sign in</button></form>"

PAGES: dict[str, Any] = {
    "an article": f"<main><h1>Gates</h1><p>{WORDS * 20}</p></main>",
    "a long article": f"<nav><a href=/a>Menu</a></nav><main><h1>G</h1><p>{WORDS * 900}</p></main>",
    "a shell": f"<title>Gates</title>{APP}",
    "a shell without a title": APP,
    "a shell with data": f"<title>Gates</title>{APP}{DATA}",
    "a shell with words": f"<title>Gates</title>{APP}<noscript>Enable JavaScript.</noscript>",
    "a shell with a head": f"{OPEN_GRAPH}{APP}",
    "a login": f"<title>Sign in</title><p>Sign in to go on.</p>{FORM}",
    "a login with links": f"<title>Sign in</title><a href=/help>Help</a><p>Sign in.</p>{FORM}",
    "a consent wall": "<p>We use cookies. Accept all or reject all. <a href=/p>Privacy</a></p>",
    "a check": "<title>Just a moment</title><p>Verify you are human</p>",
    "a paywall": f"<p>{WORDS}</p><p>Subscribe to continue. Already a subscriber?</p>",
    "a soft 404": "<title>Page not found</title><p>The page was not found.</p>",
    "no text": "<title>Gates</title><img src=/gate.jpg>",
    "nothing": "<html></html>",
    "an empty body": (b"", {"content-type": "text/html"}),
    "a refresh to nowhere": "<meta http-equiv=refresh content='0; url=http://10.0.0.1/'>",
    "a binary": (bytes(range(256)), {"content-type": "application/octet-stream"}),
    "an empty text": (b"", {"content-type": "text/plain"}),
}
_CALL = re.compile(r"\b(artifact_\w+|get_search_content|fetch_content)\((.*?)\)(?=[ \]:.·]|$)")


def offered(shown: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of a result, but grep's, whose pattern the reader has to choose."""
    calls: list[tuple[str, dict[str, Any]]] = []
    for line in shown.splitlines():
        for name, written in _CALL.findall(line):
            pairs = re.findall(r'(\w+)=("(?:[^"\\\\]|\\\\.)*"|\[[^\]]*\]|[\w.-]+)', written)
            calls.append((name, {key: json.loads(value) for key, value in pairs}))
    return [call for call in calls if call[0] != "artifact_grep"]


async def made(stash: Stash, name: str, arguments: dict[str, Any]) -> str:
    ref = arguments.pop("artifact_ref", "")
    match name:
        case "artifact_slice":
            part: Slice = await stash.slice(ref, **arguments)
        case "get_search_content":
            part = await stash.read(ref, **arguments)
        case "fetch_content":
            return await (await stash.fetch(**arguments)).text()
        case _:
            return as_shown((await stash.get(ref)).facts)
    return part.text


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
async def test_each_call_that_a_result_offers_reads_something(page: Any) -> None:
    async with open_recorded({URL: page}) as stash:
        shown = as_shown(await stash.fetch(URL), 1_000)
        for name, arguments in offered(shown):
            try:
                text = await made(stash, name, dict(arguments))
            except FetchstashError as error:
                text = f"{error}"
                pytest.fail(f"{name}({arguments}): {text}\n{shown}")
            assert text.strip(), f"{name}({arguments}) reads nothing\n{shown}"


async def test_a_page_without_text_gives_what_its_head_says() -> None:
    async with open_recorded({URL: PAGES["a shell with a head"]}) as stash:
        artifact = await stash.fetch(URL)
        assert await artifact.text() == (
            "# Gates\n\nHow gates work.\n\n- Address: https://site.example/gates\n"
            "- Picture: ![](https://site.example/gate.jpg)\n"
        )
        assert artifact.facts.page_verdict == "empty_shell"
        assert [heading.title for heading in artifact.facts.outline] == ["Gates"]


async def test_the_calls_of_a_page_name_what_it_holds() -> None:
    shown: dict[str, list[str]] = {}
    for name in ("a shell", "a shell with data", "a shell with words", "a login with links"):
        async with open_recorded({URL: PAGES[name]}) as stash:
            calls = offered(as_shown(await stash.fetch(URL)))
            shown[name] = [call.get("path", call.get("unit", "")) for _, call in calls]
    assert shown == {
        "a shell": ["bytes"],
        "a shell with data": ["data"],
        "a shell with words": [],
        "a login with links": ["links"],
    }


DOCUMENTS = {
    "embed": "<embed src=/gates.txt type=application/pdf width=100%>",
    "object": "<object data=/gates.txt type=application/pdf>Your browser shows no PDF.</object>",
    "object around embed": "<object data=/gates.txt><embed src=/gates.txt></object>",
    "iframe": "<iframe src=/gates.txt></iframe>",
}


@pytest.mark.parametrize("element", DOCUMENTS.values(), ids=DOCUMENTS)
async def test_a_page_that_is_only_a_document_leads_there(element: str) -> None:
    there = URL.replace("/page", "/gates.txt")
    answers = {
        URL: f"<title>Gates</title>{element}",
        there: (b"All.\n", {"content-type": "text/plain"}),
    }
    async with open_recorded(answers) as stash:
        artifact = await stash.fetch(URL)
        assert (await artifact.text(), artifact.facts.final_url) == ("All.\n", there)


@pytest.mark.parametrize(
    "element",
    [
        "<embed src=/gates.swf>",
        "<embed src=/gates type=video/mp4>",
        "<object data=/gates.svg></object>",
        "<object data=/gates.txt hidden></object>",
        "<embed src=/a.txt><embed src=/b.txt>",
        f"<p>{WORDS * 9}</p><embed src=/gates.txt>",
    ],
)
async def test_other_pages_with_an_embed_lead_nowhere(element: str) -> None:
    async with open_recorded({URL: f"<title>Gates</title>{element}"}) as stash:
        assert (await stash.fetch(URL)).facts.leads_to == ""
