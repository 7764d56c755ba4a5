"""What a person sees on a terminal, at the width that it has."""

import re

import anyio
import pytest
from PIL import Image

import fetchstash
from fetchstash.cli import cells
from fetchstash.cli.demo.site import documents
from fetchstash.config import load
from tests.cli.terminal import Terminal, plain
from tests.loopback import Site
from tests.scanned import png

pytestmark = pytest.mark.long

TEXT = "".join(f"line {n}\n" for n in range(1, 10_001))
PAGE = "<title>Tide gauges</title><h1>Gauges</h1><p>The tide gauge stands on the mole.</p>"


def test_a_long_text_is_a_preview_with_commands_as_next_steps(run: Terminal, site: Site) -> None:
    url = site.put("/long.txt", TEXT, "text/plain")
    shown = plain(run.on_terminal("fetch", url))
    short = run.ref(url)[4:11]
    assert f"text · 97 KB · 98,894 characters · {short}\n" in shown
    assert f"  fetchstash get {short} | less\n" in shown
    assert f"  fetchstash slice {short} --start 1 --end 100\n" in shown
    for words in ("untrusted", "What follows", "artifact_ref", "[Preview", "[Fetched"):
        assert words not in shown


OF_THE_MODELS = re.compile(r"untrusted|What follows|artifact_ref|^\[", re.MULTILINE)


def test_no_command_prints_a_fence_or_a_notice_of_the_models(run: Terminal, site: Site) -> None:
    url = site.put("/page.html", PAGE)
    run("fetch", url)
    for arguments in (
        ["get", url],
        ["slice", url],
        ["grep", "gauge", url],
        ["search", "tide", "gauge"],
        ["info", url],
        ["ls"],
    ):
        shown = plain(run.on_terminal(*arguments))
        assert "gauge" in shown.lower()
        done = run(*arguments)
        assert not OF_THE_MODELS.search(shown + done.stdout), arguments
        assert done.stderr == ""


NONCE = re.compile(r"untrusted-[0-9a-f]{8}")


def test_as_model_shows_exactly_what_the_tools_answer(run: Terminal, site: Site) -> None:
    url = site.put("/long.txt", TEXT, "text/plain")
    ref = run.ref(url)
    none = site.url("/none")

    async def answers() -> list[str]:
        async with fetchstash.open_stash(load(environment=run.env)) as stash:
            tools = {tool.__name__: tool for tool in fetchstash.tool_functions(stash)}
            return [
                await tools["artifact_info"](artifact_ref=ref),
                await tools["get_search_content"](artifact_ref=ref),
                await tools["artifact_grep"](artifact_ref=ref, pattern="7$"),
                await tools["artifact_slice"](artifact_ref=ref, start=7, maxChars=500),
                await tools["artifact_search"](artifact_refs=[ref], query="line 77"),
                await tools["get_search_content"](artifact_ref=ref, offset=200_000),
                await tools["fetch_content"](url=none),
            ]

    for arguments, answer in zip(
        (
            ["info", "@1"],  # first: a source that is a URL counts as fetched, which it tells
            ["get", url],
            ["grep", "7$", "@1"],
            ["slice", ref[4:11], "--start", "7", "--max-chars", "500"],
            ["search", "line", "77", "--in", url],
            ["get", url, "--offset", "200000"],
            ["fetch", none],
        ),
        anyio.run(answers),
        strict=True,
    ):
        code = 3 if none in arguments or "200000" in arguments else 0
        shown = run(*arguments, "--as-model", code=code).stdout
        assert NONCE.sub("", shown) == NONCE.sub("", f"{answer}\n"), arguments
    assert run("fetch", url, "--as-model").stdout.startswith("[Fetched text artifact: long.txt, ")
    assert run("ls", "--as-model").stdout.startswith("[Run ")


def test_the_list_is_a_table_that_fits_the_terminal(run: Terminal, site: Site) -> None:
    wide = "<title>日本語の長い題名が続く記録と説明の頁、その二</title><p>文</p>"
    run("fetch", site.put("/page.html", PAGE))
    run("fetch", site.put("/wide.html", wide))
    run("pin", "@2")
    for width in (60, 80, 160):
        lines = plain(run.on_terminal("ls", columns=width)).splitlines()
        assert len(lines) == 3
        assert max(map(cells, lines)) <= width
        assert lines[0].split()[-6:] == ["age", "size", "kind", "title", "from", "expires"]
        assert lines[1].startswith("@1")
        assert " HTM" in lines[1]
        assert "127.0." in lines[1]
        assert lines[1].endswith("7 d")
        assert "Tide gauges" in lines[2]
        assert lines[2].endswith("pinned")
    assert "日本語の長い題名が続く記録と説明の頁、その二" in lines[1]


def test_colour_and_links_are_on_a_terminal_alone_and_no_color_takes_them(
    run: Terminal, site: Site
) -> None:
    url = site.put("/page.html", PAGE)
    run("fetch", url)
    styled = run.on_terminal("ls")
    assert f"\x1b]8;;{url}\x1b\\" in styled
    assert "\x1b[2m" in styled
    assert "\x1b[1;31mgauge\x1b[0m" in run.on_terminal("grep", "gauge", url)
    assert "\x1b" not in run("ls").stdout + run("grep", "gauge", url).stdout
    run.env["NO_COLOR"] = "1"
    assert "\x1b" not in run.on_terminal("ls") + run.on_terminal("grep", "gauge", url)


def test_what_a_document_holds_never_steers_the_terminal(run: Terminal, site: Site) -> None:
    evil = "a\x1b]0;owned\x07b \x1b[2J\u202egauge\u2066 \x9b31m"
    url = site.put("/evil.html", f"<title>{evil}</title><p>{evil} gauge</p>")
    (run.folder / "evil\x1b[2J.txt").write_text(evil + " gauge")
    shown = "".join(
        run.on_terminal(*command)
        for command in (
            ["fetch", url, "evil\x1b[2J.txt"],
            ["get", "@1"],
            ["get", "@2"],
            ["grep", "gauge", "@1", "@2"],
            ["search", "gauge"],
            ["slice", "@1"],
            ["info", "@1"],
            ["ls"],
            ["pin", "@1"],
        )
    )
    assert not re.search(
        "[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", plain(shown)
    )
    assert "\x1b" not in plain(shown)


def test_matches_on_a_terminal_fit_a_line_and_each_source_has_its_title(
    run: Terminal, site: Site
) -> None:
    long = site.put(
        "/long.html", f"<title>Long</title><p>{'長文 ' * 500} needle {'word ' * 500}</p>"
    )
    other = site.put("/other.html", "<title>Other</title><p>A needle.</p>")
    lines = plain(run.on_terminal("grep", "needle", long, other)).splitlines()
    assert lines[0] == "Long"
    assert lines[1].startswith("1:…")
    assert "needle" in lines[1]
    assert max(map(cells, lines)) <= 80
    assert lines[2:] == ["", "Other", "1:A needle."]


def test_a_document_without_text_is_opened_or_shown_as_a_picture(run: Terminal, site: Site) -> None:
    url = site.put("/red.png", png(Image.new("RGB", (40, 30), "red")), "image/png")
    shown = plain(run.on_terminal("fetch", url))
    short = run.ref(url)[4:11]
    assert "PNG image · " in shown
    assert "40×30 px" in shown
    for arguments in (["get", url, "--raw"], ["fetch", url, "--raw", "-o", "-"]):
        assert "upset a terminal" in run.on_terminal(*arguments, code=2)
    assert f"  fetchstash open {short}\n" in shown
    assert f"  fetchstash slice {short} --render picture.png\n" in shown
    assert f"Try `fetchstash open {short}` or " in run("get", url, code=3).stderr


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp"])
def test_render_writes_a_page_as_a_picture(suffix: str, run: Terminal) -> None:
    (run.folder / "report.pdf").write_bytes(documents()["/report.pdf"].body)
    run("slice", "report.pdf", "--start", "2", "--render", f"page.{suffix}")
    with Image.open(run.folder / f"page.{suffix}") as picture:
        assert picture.format == {"png": "PNG", "jpg": "JPEG", "webp": "WEBP"}[suffix]
        assert picture.height == 1_568
    assert "end the file's name so" in run("slice", "@1", "--render", "page.txt", code=2).stderr


def test_prose_is_wrapped_between_words_and_code_is_left_to_be_copied(run: Terminal) -> None:
    words = "several words " * 20
    (run.folder / "page.html").write_text(f"<h1>Title</h1><p>{words}</p>")
    (run.folder / "run.sh").write_text(f"#!/bin/sh\necho {words}\n")
    prose = plain(run.on_terminal("get", "page.html", columns=60))
    assert max(map(cells, prose.splitlines())) <= 60
    assert f"echo {words}".rstrip() in plain(run.on_terminal("get", "run.sh", columns=60))
