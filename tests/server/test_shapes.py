"""Arguments in the shapes that models give them are understood, or answered with the right call."""

from typing import Any

import pytest

from fetchstash.errors import BadArgument
from fetchstash.text.urls import parse, urls_in, without_ending
from tests.loopback import Site
from tests.server.conftest import Connect
from tests.server.test_next_calls import next_call
from tests.server.test_tools import ERAS, call, fail, ref_in

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

UNDERSTOOD: list[tuple[str, str, dict[str, Any], int]] = [
    ("a Markdown link", "fetch_content", {"url": "[the page](URL)"}, 1),
    ("a link with a title", "fetch_content", {"url": '[the page](URL "Title")'}, 1),
    ("angle brackets", "fetch_content", {"url": "<URL>"}, 1),
    ("quotes and a comma", "fetch_content", {"url": '"URL",'}, 1),
    ("backticks", "fetch_content", {"url": "`URL`"}, 1),
    ("words around", "fetch_content", {"url": "the page: URL for details"}, 1),
    ("a full stop", "fetch_content", {"url": "URL."}, 1),
    ("a bracket at the end", "fetch_content", {"url": "URL)"}, 1),
    ("two URLs in one string", "fetch_content", {"url": "URL OTHER"}, 2),
    ("two URLs in lines", "fetch_content", {"url": "- URL\n- OTHER\n"}, 2),
    ("a list as JSON", "fetch_content", {"urls": '["URL", "OTHER"]'}, 2),
    ("a list as Python", "fetch_content", {"urls": "['URL', 'OTHER']"}, 2),
    ("a list as url", "fetch_content", {"url": ["URL", "OTHER"]}, 2),
    ("a list of one as url", "fetch_content", {"url": ["URL"]}, 1),
    ("a string as urls", "fetch_content", {"urls": "URL"}, 1),
    ("url and urls alike", "fetch_content", {"url": "URL", "urls": ["URL", "OTHER"]}, 2),
    ("an empty urls beside url", "fetch_content", {"url": "URL", "urls": []}, 1),
    ("numbers as strings", "fetch_content", {"url": "URL", "maxChars": "2,000"}, 1),
    ("a number with a point", "fetch_content", {"url": "URL", "maxChars": 2000.0}, 1),
    ("a flag as a string", "fetch_content", {"url": "URL", "refresh": "False"}, 1),
    ("a reference in brackets", "get_search_content", {"artifact_ref": "[REF]"}, 1),
    ("a reference with its name", "get_search_content", {"artifact_ref": "artifact_ref=REF"}, 1),
    ("a reference from a list", "artifact_slice", {"artifact_ref": "[REF: HTML page, 2 KB]"}, 1),
    ("the beginning of one", "get_search_content", {"artifact_ref": "BEGINNING"}, 1),
    ("a beginning with dots", "artifact_info", {"artifact_ref": "BEGINNING…"}, 1),
    ("references as JSON", "artifact_grep", {"artifact_refs": '["REF"]', "pattern": "body"}, 1),
    ("a list as reference", "artifact_grep", {"artifact_ref": ["REF"], "pattern": "body"}, 1),
    ("references as a string", "artifact_search", {"artifact_refs": "REF", "query": "body"}, 1),
    ("a linked artifact", "artifact_grep", {"artifact_ref": "<URL>", "pattern": "body"}, 1),
    ("a list as pattern", "artifact_grep", {"artifact_ref": "REF", "pattern": ["body"]}, 1),
    ("a name before it", "fetch_content", {"url": "url=URL"}, 1),
    ("a scheme before it", "fetch_content", {"url": "view-source:URL"}, 1),
    ("a link of HTML", "fetch_content", {"url": '<a href="URL">the page</a>'}, 1),
    ("a tag at the end", "fetch_content", {"url": "URL</url>"}, 1),
    ("an invisible character", "fetch_content", {"url": "URL\u200b"}, 1),
    ("an object as url", "fetch_content", {"url": {"url": "URL"}}, 1),
    ("objects as urls", "fetch_content", {"urls": [{"url": "URL"}, {"url": "OTHER"}]}, 2),
    ("url beside other urls", "fetch_content", {"url": "URL", "urls": ["OTHER"]}, 2),
    ("thousands", "fetch_content", {"url": "URL", "maxChars": "2k"}, 1),
    ("a list as focus", "fetch_content", {"url": "URL", "focus": ["body", "one"]}, 1),
    ("a number as flag", "fetch_content", {"url": "URL", "refresh": 0}, 1),
    ("an object as reference", "artifact_slice", {"artifact_ref": {"artifact_ref": "REF"}}, 1),
    ("a resource", "get_search_content", {"artifact_ref": "fetchstash://artifact/REF"}, 1),
    ("a reference in capitals", "get_search_content", {"artifact_ref": "UPPER"}, 1),
    ("a bare reference", "get_search_content", {"artifact_ref": "BARE"}, 1),
    ("a unit in the singular", "artifact_slice", {"artifact_ref": "REF", "unit": "Line"}, 1),
    ("a unit in full", "artifact_slice", {"artifact_ref": "REF", "unit": "characters"}, 1),
    ("a line with its letter", "artifact_slice", {"artifact_ref": "REF", "start": "L1"}, 1),
    ("patterns", "artifact_grep", {"artifact_ref": "REF", "pattern": ["nothing", "body"]}, 1),
    ("all of them", "artifact_search", {"query": "body", "artifact_refs": "all"}, 2),
    ("words as a list", "artifact_search", {"query": ["body", "one"]}, 1),
]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_shape_that_can_mean_one_thing_is_understood(
    mode: str, connect: Connect, site: Site
) -> None:
    url = site.put("/a/page.txt", "the body of one\n", "text/plain")
    other = site.put("/b.txt", "the body of the other\n", "text/plain")
    async with connect(mode=mode) as client:
        ref = ref_in(await call(client, "fetch_content", url=url))
        words = {
            "URL": url,
            "OTHER": other,
            "REF": ref,
            "BEGINNING": ref[:12],
            "UPPER": ref.upper(),
            "BARE": ref[4:],
        }

        def real(value: Any) -> Any:
            if isinstance(value, list):
                items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
                return [real(item) for item in items]
            if isinstance(value, dict):
                named: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
                return {name: real(item) for name, item in named.items()}
            for name, word in words.items() if isinstance(value, str) else ():
                value = value.replace(name, word)
            return value

        for kind, tool, arguments, count in UNDERSTOOD:
            text = await call(client, tool, **{n: real(v) for n, v in arguments.items()})
            assert ("the body of one" in text) or tool == "artifact_info", (kind, text)
            assert ("the body of the other" in text) == (count == 2), (kind, text)


async def test_a_url_with_a_sign_at_its_end_is_tried_with_it_first(
    connect: Connect, site: Site
) -> None:
    bare = site.put("/bare", "without", "text/plain")
    dotted = site.put("/dotted.", "with", "text/plain")
    site.put("/dotted", "without", "text/plain")
    async with connect() as client:
        text = await call(client, "fetch_content", url=f"{bare}.")
        assert "[Fetched without the '.' at its end: with it the server answers 404.]" in text
        assert "at its end" not in await call(client, "fetch_content", url=dotted)
        line = await fail(client, "fetch_content", url=site.url("/nowhere."))
        assert line.startswith("[http_error] ")
        several = await call(client, "fetch_content", urls=[f"{bare}).", dotted])
        assert "without" in several
        assert "Fetched without the ').'" in several


CORRECTED: list[tuple[str, dict[str, Any]]] = [
    ("fetch", {"url": "[x](URL)"}),
    ("web_fetch", {"urls": ["URL"]}),
    ("grep", {"pattern": "body", "path": "x", "artifact_ref": "URL"}),
    ("read", {"artifact_ref": "URL"}),
    ("search", {"query": "body"}),
    ("list", {}),
    ("mcp__fetchstash__fetch_content", {"url": "URL"}),
    ("fetchstash.artifact_grep", {"artifact_ref": "URL", "pattern": "body"}),
    ("curl", {"url": "URL"}),
    ("artifact_read", {"artifact_ref": "URL"}),
    ("artifact_list", {}),
]
RENAMED: list[tuple[str, dict[str, Any], str]] = [
    ("get_search_content", {"artifact_ref": "URL", "max_chars": "500"}, "maxChars=500"),
    ("get_search_content", {"artifact_refs": ["URL"]}, "get_search_content(artifact_ref="),
    ("get_search_content", {"artifact_ref": "URL", "pattern": "body"}, "artifact_grep("),
    ("get_search_content", {"artifact_ref": "URL", "query": "body"}, "artifact_search("),
    ("get_search_content", {"artifact_ref": "URL", "path": ""}, "artifact_slice("),
    ("artifact_grep", {"artifact_ref": "URL", "pattern": "BODY", "ignoreCase": True}, "ignore_"),
    ("artifact_grep", {"artifact_ref": "URL", "pattern": "BODY", "flags": "i"}, "ignore_case=true"),
    (
        "artifact_grep",
        {"artifact_ref": "URL", "pattern": "BODY", "case_sensitive": False},
        "ignore_case=true",
    ),
    ("artifact_grep", {"artifact_ref": "URL", "pattern": "body", "before": 1}, "context=1"),
]


async def test_an_argument_that_a_tool_has_not_is_answered_with_the_call(
    connect: Connect, site: Site
) -> None:
    url = site.put("/page.txt", "the body\n", "text/plain")
    async with connect() as client:
        await call(client, "fetch_content", url=url)
        for tool, arguments, words in RENAMED:
            given: dict[str, Any] = {
                name: [url] if isinstance(value, list) else url if value == "URL" else value
                for name, value in arguments.items()
            }
            line = await fail(client, tool, **given)
            assert words in line, line
            better, right = next_call(line)
            assert "the body" in await call(client, better, **right), line


async def test_a_tool_by_another_name_is_answered_with_the_call(
    connect: Connect, site: Site
) -> None:
    url = site.put("/page.txt", "the body\n", "text/plain")
    async with connect() as client:
        await call(client, "fetch_content", url=url)
        for tool, arguments in CORRECTED:
            given: dict[str, Any] = {
                name: [url] if isinstance(value, list) else value.replace("URL", url)
                for name, value in arguments.items()
            }
            line = await fail(client, tool, **given)
            assert line.startswith(f"[bad_argument] There is no tool '{tool}'. Try ")
            better, right = next_call(line)
            await call(client, better, **right)


async def test_a_beginning_of_two_references_names_both(connect: Connect, site: Site) -> None:
    async with connect() as client:
        urls = [site.put(f"/{n}.txt", f"text {n}", "text/plain") for n in range(40)]
        refs = [ref_in(await call(client, "fetch_content", url=url)) for url in urls]
        beginnings = [ref[:9] for ref in refs]
        line = await fail(client, "artifact_info", artifact_ref="art_aaaaaaaaaa")
        assert line.startswith("[unknown_ref] ")
        twice = [b for b in beginnings if beginnings.count(b) > 1]
        for beginning in twice[:1]:
            line = await fail(client, "artifact_info", artifact_ref=beginning)
            assert "references begin with" in line


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("https://a.org/x_(y)", ["https://a.org/x_(y)"]),
        ("[y](https://a.org/x_(y))", ["https://a.org/x_(y)"]),
        ("![y](<https://a.org/x>)", ["https://a.org/x"]),
        ("https://web.archive.org/web/2020/https://a.org/", 1),
        ("https://a.org/?u=https://b.org/,https://c.org/", 1),
        ("https://a.org/one two", ["https://a.org/one two"]),
        ("https://a.org/,https://b.org/", ["https://a.org/", "https://b.org/"]),
        ("\u201chttps://a.org/\u201d", ["https://a.org/"]),
        ("art_abc", ["art_abc"]),
        ("no URL", ["no URL"]),
        ("a.org/x?u=https://b.org/", 1),
        ("@https://a.org/", ["https://a.org/"]),
        ("<" * 9_000, 1),
    ],
)
async def test_the_urls_of_a_text(text: str, urls: list[str] | int) -> None:
    found = urls_in(text)
    assert found == ([text] if urls == 1 else urls)


async def test_an_ending_is_no_part_of_a_word() -> None:
    assert without_ending("https://a.org/x_(y)") == ""
    assert without_ending("https://a.org/x_(y).") == "https://a.org/x_(y)"
    for ending in ("\\n", "%20", ").", " (read today)"):
        assert without_ending(f"https://a.org/x{ending}") == "https://a.org/x"
    assert without_ending("https://a.org/x") == ""
    assert without_ending("...") == ""


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http:/a.org/x", "http://a.org/x"),
        ("https//a.org/x", "https://a.org/x"),
        ("http:\\\\a.org\\x", "http://a.org/x"),
        ("htp://a.org/x", "http://a.org/x"),
        ("http://https://a.org/x", "https://a.org/x"),
        ("https://https//a.org", "https://a.org"),
        ("//a.org/x", "https://a.org/x"),
        ("a.org:8080/x", "https://a.org:8080/x"),
        ("doi:10.1000/182", "https://doi.org/10.1000/182"),
        ("10.1000/182", "https://doi.org/10.1000/182"),
        ("arXiv:2101.00001", "https://arxiv.org/abs/2101.00001"),
    ],
)
async def test_what_is_almost_a_url_is_answered_with_the_url(text: str, url: str) -> None:
    with pytest.raises(BadArgument) as raised:
        parse(text, 1_000)
    assert [known.arguments["url"] for known in raised.value.calls] == [url]
    assert parse(url, 1_000)
