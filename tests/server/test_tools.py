"""The six tools, through an MCP client in both protocol eras."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import CallToolResult, TextContent

from fetchstash import __version__
from fetchstash.cli.demo.site import make_pdf
from fetchstash.config import load
from fetchstash.errors import BadArgument
from fetchstash.server.tools import tool_specs
from fetchstash.server.tools._arguments import checked
from fetchstash.server.tools._specs import NO_REPORTS
from fetchstash.stash import Passages
from fetchstash.store import Passage
from fetchstash.text import tokens
from tests.loopback import Site
from tests.server.conftest import Connect
from tests.service.pages import Hanging
from tests.stores import both_stores

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]
ERAS = ["legacy", "2026-07-28"]
REF = re.compile(r"art_[a-z2-7]{26}")
REPORT = make_pdf(
    [f"Chapter {n}.\n\nThe number of this page is {n * 7}." for n in range(1, 49)], title="A report"
)
"""Forty-eight pages, each with a sentence that no other has."""


def text_of(result: Any) -> str:
    assert isinstance(result, CallToolResult)
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


def body_of(text: str) -> str:
    found = re.search(r"<untrusted-\w+ [^\n]*>\n(.*)\n</untrusted-\w+>", text, re.DOTALL)
    assert found is not None, text
    return found[1]


def facts_of(result: Any) -> list[dict[str, Any]]:
    facts: list[dict[str, Any]] = result.meta["fetchstash/artifact"]
    return facts


async def call(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    text = text_of(result)
    assert not result.is_error, text
    return text


async def fetched(client: Client, url: str, **options: Any) -> str:
    return await call(client, "fetch_content", url=url, **options)


async def fail(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    text = text_of(result)
    assert result.is_error, text
    line, _, quoted = text.partition("\n")  # what a server answered stands beneath, fenced
    assert quoted.startswith("What follows was fetched: ") == line.startswith("[http_error] ")
    assert "Traceback" not in text
    return line


def ref_in(text: str) -> str:
    found = REF.search(text)
    assert found is not None, text
    return found[0]


@pytest.mark.parametrize("mode", ERAS)
async def test_one_pdf_under_five_labels_gives_the_same_text(
    mode: str, connect: Connect, site: Site
) -> None:
    bodies: set[str] = set()
    async with connect(mode=mode) as client:
        for label in (
            "application/pdf",
            "text/html",
            "text/plain",
            "application/octet-stream",
            None,
        ):
            text = await fetched(client, site.put("/report.pdf", REPORT, label))
            assert re.match(
                r"\[Fetched PDF artifact: report\.pdf, \d+ KB, pages 48\. "
                r"Extracted \d+ chars \(truncated=false\)\. "
                r"Use artifact_ref=art_[a-z2-7]{26} for targeted follow-up\.\]\n",
                text,
            )
            bodies.add(body_of(text))
    assert len(bodies) == 1
    assert "The number of this page is 210." in bodies.pop()


@pytest.mark.parametrize("mode", ERAS)
async def test_a_result_repeats_no_icon(mode: str, connect: Connect, site: Site) -> None:
    async with connect(mode=mode) as client:
        result = await client.call_tool("fetch_content", {"url": site.put("/a.txt", b"A line.\n")})
    named = (result.meta or {}).get("io.modelcontextprotocol/serverInfo", {})
    modern = {"name": "fetchstash", "version": __version__}
    assert named == (modern if mode == "2026-07-28" else {})


def long_text(chars: int) -> str:
    lines = "".join(
        f"line {n}: the quick brown fox jumps over the lazy dog\n" for n in range(1, chars // 40)
    )
    return lines[:chars]


@both_stores
async def test_reading_on_is_bounded_exact_and_complete(connect: Connect, site: Site) -> None:
    text = long_text(250_000)
    async with connect() as client:
        ref = ref_in(await fetched(client, site.put("/long.txt", text, "text/plain")))
        got, offset = "", 0
        while True:
            result = await call(
                client, "get_search_content", artifact_ref=ref, offset=offset, maxChars=60_000
            )
            got += body_of(result)
            going_on = re.search(
                r"get_search_content\(artifact_ref=\"\w+\", offset=(\d+), maxChars=60000\)", result
            )
            if not going_on:
                break
            offset = int(going_on[1])
        assert got == text


async def test_grep_and_sed_on_the_saved_path_give_the_same_lines(
    connect: Connect, site: Site
) -> None:
    async with connect() as client:
        preview = await fetched(client, site.put("/long.txt", long_text(90_000), "text/plain"))
        path = re.search(r"saved to (\S+)", preview)
        assert path
        ref = ref_in(preview)
        theirs = subprocess.run(
            ["grep", "-n", "77", path[1]], check=True, capture_output=True, text=True
        ).stdout
        ours = await call(
            client, "artifact_grep", pattern="77", artifact_ref=ref, context=0, max_matches=1_000
        )
        assert body_of(ours).replace("--\n", "").splitlines() == theirs.splitlines()
        theirs = subprocess.run(
            ["sed", "-n", "200,260p", path[1]], check=True, capture_output=True, text=True
        ).stdout
        ours = await call(client, "artifact_slice", artifact_ref=ref, start=200, end=260)
        assert body_of(ours) == theirs
        assert ours.startswith(f"[{ref}: lines 200 to 260 of ")


async def test_all_that_a_model_may_see_of_the_list_stays_under_1300_tokens(
    connect: Connect,
) -> None:
    """Icons are for people, and _meta is for hosts: neither is handed to a model."""
    async with connect() as client:
        tools = (await client.list_tools()).tools
    listed = [
        tool.model_dump(by_alias=True, exclude_none=True, mode="json", exclude={"icons", "meta"})
        for tool in tools
    ]
    text = json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
    assert tokens.count(text).tokens <= 1_300
    assert [tool["name"] for tool in listed] == [
        "fetch_content",
        "get_search_content",
        "artifact_grep",
        "artifact_slice",
        "artifact_search",
        "artifact_info",
    ]
    for tool in listed:
        assert tokens.count(tool["description"]).tokens <= 110
        assert "title" not in json.dumps(tool["inputSchema"])
        assert tool["inputSchema"]["additionalProperties"] is False


async def test_results_are_text_alone_and_structured_content_comes_on_request(
    connect: Connect, site: Site
) -> None:
    url = site.put("/a.txt", "hello", "text/plain")
    async with connect() as client:
        result: Any = await client.call_tool("fetch_content", {"url": url})
        assert result.structured_content is None
        assert all(tool.output_schema is None for tool in (await client.list_tools()).tools)
    async with connect(views__structured=True) as client:
        result = await client.call_tool("fetch_content", {"url": url})
        assert result.structured_content == {"result": text_of(result)}
        assert all(tool.output_schema for tool in (await client.list_tools()).tools)


@both_stores
async def test_the_facts_travel_in_meta_without_the_outline(connect: Connect, site: Site) -> None:
    async with connect() as client:
        result = await client.call_tool(
            "fetch_content", {"url": site.put("/report.pdf", REPORT, "text/html")}
        )
        (facts,) = facts_of(result)
        assert facts["content_kind"] == "pdf"
        assert facts["decided_by"] == "magic"
        assert facts["mismatch"] is True
        assert facts["declared_type"] == "text/html"
        assert facts["pages"] == 48
        assert facts["page_range"] == [1, 48]
        assert facts["http_status"] == 200
        assert "outline" not in facts
        assert facts_of(await client.call_tool("artifact_info", {})) == [facts]


# fmt: off
MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("fetch_contents", {},
     "[bad_argument] There is no tool 'fetch_contents'. Did you mean fetch_content?"),
    ("fetch_content", {"url": "http://127.0.0.1/", "max_chars": 5},
     ("[bad_argument] fetch_content has no argument 'max_chars'. Did you mean maxChars? "
      'fetch_content(url="http://127.0.0.1/", maxChars=200)')),
    ("fetch_content", {},
     "[bad_argument] fetch_content needs exactly one of url and urls. Give url or urls."),
    ("get_search_content", {"artifact_ref": "REF", "maxChars": "all"},
     "[bad_argument] maxChars is 'all'. It must be a whole number."),
    ("get_search_content", {"artifact_ref": "REF", "offset": True},
     "[bad_argument] offset is true. It must be a whole number."),
    ("get_search_content", {"artifact_ref": "REF", "maxChars": 199},
     "[bad_argument] maxChars is 199. It must be 200 or more."),
    ("artifact_slice", {"artifact_ref": "REF", "unit": "words"},
     "[bad_argument] unit is 'words'. It must be one of lines, chars, bytes, pages, rows."),
    ("artifact_grep", {"pattern": "x", "artifact_refs": [f"REF{n}" for n in range(11)]},
     "[bad_argument] artifact_refs has 11 items. Give 1 to 10."),
    ("artifact_grep", {"artifact_ref": "REF"},
     "[bad_argument] artifact_grep needs pattern. Give pattern."),
    ("artifact_grep", {"pattern": "x"},
     ("[bad_argument] artifact_grep needs exactly one of artifact_ref and artifact_refs. "
     "Give artifact_ref or artifact_refs.")),
    ("artifact_grep", {"artifact_ref": "REF", "pattern": "x" * 1_001},
     "[bad_argument] pattern has 1001 characters. Give 1000 at the most."),
    ("artifact_slice", {"artifact_ref": "REF", "start": 9},
     "[out_of_range] There are 2 lines, and start is 9. Use a start up to 2."),
    ("get_search_content", {"artifact_ref": "REF", "offset": 8},
     "[out_of_range] There are 8 characters, and offset is 8. Use an offset under 8."),
    ("artifact_slice", {"artifact_ref": "REF", "unit": "pages"},
     ("[bad_argument] This text has no pages. "
     'Try artifact_slice(artifact_ref="REF", unit="lines").')),
]
# fmt: on


@pytest.mark.parametrize("mode", ERAS)
async def test_every_mistake_of_a_model_is_one_line_and_the_server_lives_on(
    mode: str, connect: Connect, site: Site
) -> None:
    async with connect(mode=mode) as client:
        ref = ref_in(await fetched(client, site.put("/a.txt", "one\ntwo\n", "text/plain")))
        for tool, arguments, line in MISTAKES:
            given = {
                name: json.loads(json.dumps(value).replace("REF", ref))
                for name, value in arguments.items()
            }
            assert await fail(client, tool, **given) == line.replace("REF", ref)
        assert "two" in await call(client, "get_search_content", artifact_ref=ref)


@pytest.mark.parametrize("half", ["\ud800", "a\udc80b"])
def test_half_a_character_in_an_argument_is_refused_in_one_line(half: str) -> None:
    grep = next(tool for tool in tool_specs(load({})) if tool.name == "artifact_grep")
    with pytest.raises(BadArgument, match="half a character"):
        checked(grep, {"artifact_ref": "art_a", "pattern": half})


async def test_a_page_of_lone_surrogates_does_not_kill_the_server(
    connect: Connect, site: Site
) -> None:
    async with connect() as client:
        page = b"<p>before \\ud800 &#xD800;&#55357; after</p>" + b"<p>\xed\xa0\x80 raw</p>"
        text = await fetched(client, site.put("/s.html", page))
        assert "before" in text
        text.encode()
        data = '{"a": "\\ud800", "b": "fine"}'
        assert "fine" in await fetched(client, site.put("/s.json", data, "application/json"))


@both_stores
async def test_ten_urls_stay_within_one_budget_and_one_that_fails_spoils_none(
    connect: Connect, site: Site
) -> None:
    urls = [
        site.put(f"/{n}.txt", long_text(3_000 * (n + 1)).replace("fox", f"fox {n}"), "text/plain")
        for n in range(9)
    ]
    urls.insert(4, site.url("/none"))
    async with connect() as client:
        result = await client.call_tool("fetch_content", {"urls": urls})
        text = text_of(result)
        assert not result.is_error
        assert len(text) <= 30_000 + 1_200
        assert len(set(REF.findall(text))) == 9
        assert "[http_error] " in text
        assert len(facts_of(result)) == 9
        small = await call(client, "fetch_content", urls=urls, maxChars=2_000)
        assert len(small) <= 3_200
        assert len(set(REF.findall(small))) == 9
        for url in urls[:2]:
            assert "fox" in await call(client, "get_search_content", artifact_ref=url)


async def test_focus_shows_the_passages_that_match(connect: Connect, site: Site) -> None:
    words = "".join(
        f"Paragraph {n} speaks of nothing in particular, at some length.\n" for n in range(2_000)
    )
    text = words.replace(
        "Paragraph 1234 speaks of nothing", "Paragraph 1234 explains the torque of the flywheel"
    )
    async with connect() as client:
        result = await fetched(
            client, site.put("/p.txt", text, "text/plain"), focus="flywheel torque"
        )
        body = body_of(result)
        assert "explains the torque of the flywheel" in body
        assert "lines 12" in body
        found = await call(client, "artifact_search", query="flywheel")
        assert "explains the torque of the flywheel" in found
        assert re.search(r"-- art_[a-z2-7]{26}, lines? 12\d\d", found)


@pytest.mark.parametrize("mode", ERAS)
async def test_cancelling_a_call_closes_the_upstream_socket(
    mode: str, connect: Connect, site: Site
) -> None:
    page = Hanging(site)
    async with connect(mode=mode) as client:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "fetch_content", {"url": page.url})
                with anyio.fail_after(60):
                    await page.begun.wait()
                scope.cancel()
        with anyio.fail_after(60):
            await page.left.wait()
        assert "no artifacts yet" in await call(client, "artifact_info")


async def test_stash_file_is_there_only_with_a_folder_to_read(
    connect: Connect, tmp_path: Path
) -> None:
    inside = tmp_path / "docs"
    inside.mkdir()
    (inside / "note.md").write_text("# Title\n\nhello\n")
    (tmp_path / "secret.txt").write_text("secret")
    (inside / "link.txt").symlink_to(tmp_path / "secret.txt")
    async with connect() as client:
        assert "There is no tool 'stash_file'" in await fail(
            client, "stash_file", path=str(inside / "note.md")
        )
    async with connect(ingest__read_roots=[str(inside)]) as client:
        assert "hello" in await call(client, "stash_file", path=str(inside / "note.md"))
        for path in (inside / "link.txt", inside / ".." / "secret.txt", Path("/etc/passwd")):
            assert (await fail(client, "stash_file", path=str(path))).startswith("[refused] ")
        assert (await fail(client, "stash_file", path=str(inside / "none"))).startswith(
            "[bad_argument] "
        )


async def test_stash_file_tells_nothing_of_what_lies_outside_its_folders(
    connect: Connect, tmp_path: Path
) -> None:
    inside = tmp_path / "docs"
    inside.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    async with connect(ingest__read_roots=[str(inside)]) as client:
        there, not_there = [
            await fail(client, "stash_file", path=str(tmp_path / name))
            for name in ("secret.txt", "nothing.txt")
        ]
    assert there.replace("secret", "nothing") == not_there


@pytest.mark.parametrize(
    "path",
    ["loop", "~nobody-of-this-name/file", "n" * 3_000, "a\0b"],
    ids=["loop", "user", "long", "NUL"],
)
async def test_a_path_that_leads_nowhere_is_a_file_that_is_not_there(
    path: str, connect: Connect, tmp_path: Path
) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    asked = path if path.startswith("~") else f"{tmp_path}/{path}"
    async with connect(ingest__read_roots=[str(tmp_path)]) as client:
        assert (await fail(client, "stash_file", path=asked)).startswith(
            "[bad_argument] There is no file "
        )


def test_a_profile_shows_its_own_defaults() -> None:
    specs = {
        spec.name: spec
        for spec in tool_specs(load(environment={"FETCHSTASH_VIEWS_PROFILE": "vscode"}))
    }
    assert specs["fetch_content"].properties["maxChars"]["default"] == 6_800
    assert specs["artifact_grep"].properties["maxChars"]["default"] == 6_800


def test_no_argument_is_bound_to_a_header_so_that_the_sdk_need_not_look_for_one() -> None:
    specs = tool_specs(load({"ingest.read_roots": ["/tmp"]}, {}))
    assert "stash_file" in {spec.name for spec in specs}
    assert "x-mcp-header" not in json.dumps([spec.input_schema for spec in specs])


# --- Progress with messages, while downloading and while reading, in both eras.


class Reports(list[tuple[float, float | None, str]]):
    """What was reported."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.append((progress, total, message or ""))


@pytest.mark.long
@pytest.mark.parametrize("mode", ERAS)
async def test_a_download_says_how_much_came_and_a_pdf_which_page_is_read(
    mode: str, site: Site, connect: Connect
) -> None:
    reports = Reports()
    pages = [f"Page {n}. " + long_text(200) for n in range(300)]
    report_url = site.put("/r.pdf", make_pdf(pages, title="A report"), "application/pdf")
    async with connect(mode=mode) as client:
        arguments = {"url": report_url}
        await client.call_tool("fetch_content", arguments, progress_callback=reports)
    messages = [message for _, _, message in reports]
    assert any(re.fullmatch(r"received [\d.]+ of [\d.]+ [KM]B", message) for message in messages)
    assert any(re.fullmatch(r"reading page \d+ of 300", message) for message in messages)
    assert messages[-1] == "reading page 300 of 300"
    numbers = [number for number, _, _ in reports]
    assert numbers == sorted(set(numbers))
    assert all(total is None or number <= total for number, total, _ in reports)
    assert len(reports) < 200


@pytest.mark.long
@pytest.mark.parametrize("mode", ERAS)
async def test_several_urls_are_counted(mode: str, site: Site, connect: Connect) -> None:
    reports = Reports()
    urls = [site.put(f"/{n}.txt", f"words {n}", "text/plain") for n in range(3)]
    async with connect(mode=mode) as client:
        await client.call_tool("fetch_content", {"urls": urls}, progress_callback=reports)
    assert [message for _, _, message in reports] == [f"fetched {n} of 3 URLs" for n in (1, 2, 3)]


class Indexing:
    """A stash whose first searches find texts that are not indexed yet."""

    def __init__(self, *, searches: int, finds: bool) -> None:
        self.left, self._finds = searches, finds

    async def search(self, *_: Any, **__: Any) -> Passages:
        self.left -= 1
        found = (Passage("art_a", 1, 1, "words", 1.0),) if self._finds else ()
        return Passages(found, {}, 1, pending=max(self.left, 0))


@pytest.mark.parametrize(
    ("finds", "refs", "left"), [(False, None, 0), (True, None, 2), (False, ["art_a"], 2)]
)
async def test_a_search_of_new_texts_waits_for_a_passage_and_for_nothing_else(
    finds: bool, refs: list[str] | None, left: int
) -> None:
    [search] = [spec for spec in tool_specs(load()) if spec.name == "artifact_search"]
    stash: Any = Indexing(searches=3, finds=finds)
    await search.run(stash, {"query": "words", "artifact_refs": refs, "max_results": 8}, NO_REPORTS)
    assert stash.left == left
