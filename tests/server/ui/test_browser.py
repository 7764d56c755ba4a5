"""The view in a real browser: Chromium, headless. scripts/ci extras has what this needs."""

import json
import os
import re
import shutil
import struct
import subprocess
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from fetchstash.config import load
from fetchstash.server import LazyStash, build_server
from fetchstash.server.ui import view_html
from fetchstash.stash import open_stash
from tests.handlers.hostile.documents import packed
from tests.handlers.test_sheets import MAIN, PACKAGE, RELATIONS, number, rows_of
from tests.server.ui.many import put_long, put_many, quick_folder
from tests.server.ui.test_server import PROSE, Opened, ask, saved, viewed

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("There is no Chromium here: scripts/ci extras installs it", allow_module_level=True)
playwright_api = pytest.importorskip(
    "playwright.async_api", reason="Playwright is not here: scripts/ci extras installs it"
)
if TYPE_CHECKING:
    from playwright.async_api import Browser, Page
expect = playwright_api.expect
expect.set_options(timeout=60_000)

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    "\x1b[31mred\x1b[0m \u202egnp.exe <svg onload=\"document.title='owned'\"> {{7*7}}"
)


chromiums: list["Browser"] = []


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", autouse=True)
async def chromium(anyio_backend: str) -> AsyncGenerator[None]:
    """Start one Chromium for all tests."""
    async with playwright_api.async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        chromiums.append(opened)
        yield
        await chromiums.pop().close()


@asynccontextmanager
async def new_page(**options: Any) -> AsyncGenerator["Page"]:
    """Open a page in a context of its own, which shares nothing with others of this Chromium."""
    context = await chromiums[0].new_context(**options)
    try:
        yield await context.new_page()
    finally:
        await context.close()


@asynccontextmanager
async def page_of(
    folder: Path, *files: Path, **context: Any
) -> AsyncGenerator[tuple[Opened, "Page"]]:
    """Open a second server's page in a browser, on a store with some files."""
    from fetchstash.server.ui import ViewServer

    settings = {"store.folder": str(folder / "store"), "store.run": "first"}
    async with (
        viewed(folder, **{"ingest.read_roots": [str(folder)]}) as view,
        new_page(**context) as page,
    ):
        for path in files:
            await ask(view.stash, "stash_file", path=str(path))
        async with ViewServer.open(load(settings)) as server:
            errors: list[str] = []

            def note(error: object) -> None:
                errors.append(str(error))

            page.on("pageerror", note)
            await page.goto(server.link)
            await expect(page.locator("#count")).to_contain_text("artifact")
            yield view, page
            assert errors == []


def axe_source() -> str:
    folder = os.environ.get("AXE_FOLDER")
    if folder:
        path = Path(folder, "node_modules", "axe-core", "axe.min.js")
        return path.read_text(encoding="utf-8")
    pytest.skip("axe-core is not here: scripts/ci extras installs it")


async def violations(page: "Page") -> list[str]:
    """Run axe in an isolated world: the page's own policy lets no other script in.

    All its rules in the light scheme, and in the dark one that of colours, the others being equal.
    """
    session = await page.context.new_cdp_session(page)
    tree = await session.send("Page.getFrameTree")
    frame = tree["frameTree"]["frame"]["id"]
    world = await session.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": "axe"})
    context = {"contextId": world["executionContextId"]}
    await session.send("Runtime.evaluate", {"expression": axe_source(), **context})
    found: list[str] = []
    schemes: dict[Any, str] = {"dark": "{runOnly: ['color-contrast']}", "light": "{}"}
    for scheme, rules in schemes.items():
        await page.emulate_media(color_scheme=scheme)
        run = (
            f"axe.run({rules}).then(r => r.violations.map(v => `${{v.id}}: ${{v.nodes[0].html}}`))"
        )
        answered = await session.send(
            "Runtime.evaluate",
            {"expression": run, "awaitPromise": True, "returnByValue": True, **context},
        )
        found += [f"{scheme}: {violation}" for violation in answered["result"]["value"]]
    return found


CUT = """[...document.querySelectorAll("button")].filter(button => button.offsetParent
  && !button.closest("#matches, #outline") && (button.scrollWidth > button.clientWidth + 1
  || button.getBoundingClientRect().right > innerWidth + 1)).map(button => button.textContent)"""


def png() -> bytes:
    """Return a red picture of 60 × 40 pixels."""
    rows = b"".join(b"\0" + b"\xff\0\0" * 60 for _ in range(40))
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", 60, 40, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def documents(folder: Path) -> list[Path]:
    """Return one document of each way to look at it."""
    from fetchstash.cli.demo.site import documents as demo

    report = next(d.body for path, d in demo().items() if path.endswith(".pdf"))
    lines = "\n\n".join(f"## Part {n}\n\nWords of part {n}." for n in range(1, 200))
    return [
        saved(folder, "tree.json", json.dumps({"a": {"b": [1, 2, {"deep": "value"}]}})),
        saved(folder, "table.csv", "name,height\n" + "".join(f"n{n},{n}\n" for n in range(300))),
        saved(folder, "report.pdf", report),
        saved(folder, "long.md", f"# Title\n\n{lines}\n"),
    ]


@pytest.mark.parametrize("size", [(360, 740), (1_440, 900)], ids=["360", "1440"])
async def test_every_way_to_look_has_names_and_contrast_for_everybody(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    axe_source()
    viewport = {"width": size[0], "height": size[1]}
    async with page_of(tmp_path, *documents(tmp_path), viewport=viewport) as (_, page):
        await page.keyboard.press("l")
        await expect(page.locator("#timeline .calls li")).to_have_count(4)
        assert await violations(page) == [], "timeline"
        await page.keyboard.press("h")
        await page.fill("textarea", "Words of part 7 are here. Nobody wrote of whales.")
        await page.click("text=Look for it")
        await expect(page.locator("#trace .calls li")).to_have_count(2)
        assert await violations(page) == [], "trace"
        await page.evaluate("overview()")
        await expect(page.locator("#overview .calls li")).to_have_count(4)
        assert await violations(page) == [], "overview"
        if size[0] < 720:
            await page.evaluate("backToList()")
        await page.fill("#query", "part 7")
        await page.press("#query", "Enter")
        await expect(page.locator("#results progress")).to_be_hidden()
        assert await violations(page) == [], "results"
        if size[0] < 720:
            await page.locator("#main .back:visible").click()
        for name in ("long.md", "report.pdf", "table.csv", "tree.json"):
            title = {"report.pdf": "Report on", "long.md": "Title"}.get(name, name)
            await page.locator(".item", has_text=title).first.click()
            await expect(page.locator("#title")).to_contain_text(title)
            for tab in await page.locator("#tabs button").all():
                await tab.click()
                await page.wait_for_timeout(150)
                assert await violations(page) == [], f"{name}, {await tab.text_content()}"
                assert await page.evaluate(CUT) == []
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert wide <= size[0]
            if size[0] < 720:
                await page.click("#back")


async def test_what_is_small_is_said_in_words(tmp_path: Path) -> None:
    archive = tmp_path / "members.zip"
    archive.write_bytes(packed({"one.txt": b"first\n", "two.txt": b"second\n"}))
    empty = saved(tmp_path, "empty.txt", "")
    table = saved(tmp_path, "table.csv", "name,height\na,1\n")
    one = saved(tmp_path, "one.txt", "One line.\n")
    async with page_of(tmp_path, archive, empty, table, one) as (_, page):
        source = page.locator("#source")
        await page.locator(".item", has_text="members.zip").click()
        await expect(source).to_contain_text("2 members")
        await page.locator(".item", has_text="empty.txt").click()
        await expect(page.locator("#body")).to_have_text("The text is empty.")
        await page.locator(".item", has_text="table.csv").click()
        await expect(source).to_contain_text("1 row of 2 columns")
        for name, lines in (("table.csv", "lines 1–2"), ("one.txt", "line 1")):
            await page.locator(".item", has_text=name).click()
            await page.get_by_role("tab", name="Shown to the model (1)").click()
            await expect(page.locator("#body .calls")).to_contain_text(f"all of it, {lines} ·")


async def test_the_overview_does_not_wait_for_a_long_list(tmp_path: Path) -> None:
    async with page_of(tmp_path, saved(tmp_path, "a.txt", "Some words.\n")) as (_, page):
        may_go_on = anyio.Event()

        async def hold(route: Any) -> None:
            await may_go_on.wait()
            await route.continue_()

        await page.route("**/api/list?*", hold)
        await page.reload()
        await expect(page.locator("#overview .calls li")).to_have_count(1)
        await expect(page.locator(".item")).to_have_count(0)
        may_go_on.set()
        await expect(page.locator(".item")).to_have_count(1)


async def test_the_keyboard_alone_reads_finds_pins_and_deletes(tmp_path: Path) -> None:
    text = saved(tmp_path, "long.txt", PROSE)
    other = saved(tmp_path, "other.txt", "Other words.\n")
    async with page_of(tmp_path, text, other) as (view, page):
        keys = page.keyboard
        await keys.press("j")
        await keys.press("j")
        await expect(page.locator("#title")).to_have_text("long.txt")
        await keys.press("/")
        await keys.type("Line 1500 ")
        await keys.press("Enter")
        await expect(page.locator(".line.here mark")).to_have_text("Line 1500 ")
        await expect(page.locator(".tools [role=status]")).to_have_text("1 match")
        await keys.press("Escape")
        await expect(page.locator(".rows")).to_be_focused()
        await keys.press("End")
        await expect(page.locator(".line").last).to_contain_text("Line 2000 ")
        await keys.press("g")
        await keys.type("42")
        await keys.press("Enter")
        await expect(page.locator(".line.here")).to_contain_text("Line 42 ")
        await keys.press("p")
        await expect(page.get_by_role("button", name="Pinned")).to_be_visible()
        await keys.press("Delete")
        await keys.press("Tab")
        await keys.press("Tab")
        await page.get_by_role("button", name="Delete", exact=True).last.focus()
        await keys.press("Enter")
        await expect(page.locator("#count")).to_have_text("1 artifact")
        assert [facts.name for facts in await view.stash.list()] == ["other.txt"]


async def focused(page: "Page") -> str:
    """Return the id or the label of what has the focus."""
    about = "document.activeElement.id || document.activeElement.getAttribute('aria-label')"
    return str(await page.evaluate(about))


async def test_keys_act_only_on_what_is_on_the_screen(tmp_path: Path) -> None:
    table = saved(
        tmp_path, "table.csv", "name,height\n" + "".join(f"n{n},{n}\n" for n in range(300))
    )
    picture = saved(tmp_path, "p.png", png())
    async with page_of(tmp_path, picture, table) as (view, page):
        keys, said = page.keyboard, page.locator("#said")

        async def say(key: str, words: str) -> None:
            await page.evaluate("$('said').textContent = ''")
            await keys.press(key)
            await expect(said).to_contain_text(words)

        await say("n", "nothing to go through")
        await keys.press("j")
        rows = page.locator("#body [role=status]")
        await expect(rows).to_have_text("Rows 1 to 100 of 300")
        await say("/", "t shows it")
        await say("w", "t shows it")
        await page.get_by_role("tab", name="Facts").click()
        await say("n", "nothing to go through")
        assert "first=101" not in page.url
        await keys.press("t")
        await expect(page.locator(".rows")).to_be_focused()
        await say("n", "Nothing is found")
        await keys.press("j")
        await expect(page.locator("#title")).to_have_text("p.png")
        for key in "/gwt":
            await say(key, "It has no text.")
        await keys.press("o")
        await expect(page.locator("#overview .calls li")).to_have_count(2)
        for key in ("p", "c", "Delete", "t", "g"):
            await say(key, "No artifact is on the screen.")
        assert not await page.locator("#dialog").is_visible()
        assert [facts.pinned for facts in await view.stash.list()] == [False, False]
        await page.set_viewport_size({"width": 360, "height": 740})
        await page.evaluate("backToList()")
        await keys.press("j")
        await expect(page.locator("#title")).to_be_visible()
        await say("f", "The list is not on the screen.")


async def test_escape_leaves_each_field(tmp_path: Path) -> None:
    async with page_of(tmp_path, saved(tmp_path, "long.txt", PROSE)) as (_, page):
        keys = page.keyboard
        await keys.press("h")
        await expect(page.locator("textarea")).to_be_focused()
        await keys.press("Escape")
        assert await focused(page) == "trace"
        await keys.press("j")  # a key again, and no letter
        await expect(page.locator("#title")).to_have_text("long.txt")
        for field in ("#grep", "#line"):
            await page.focus(field)
            await keys.press("Escape")
            assert await focused(page) == "rows", field
        for field in ("#filter", "#query", "#run", "#kind", "#age"):
            await page.focus(field)
            await keys.press("Escape")
            assert await focused(page) == "list", field


async def test_a_document_opens_as_it_is_and_a_choice_is_kept(tmp_path: Path) -> None:
    _, table, report, long = documents(tmp_path)
    files = [table, report, long, saved(tmp_path, "second.csv", "a,b\n1,2\n")]
    async with page_of(tmp_path, *files) as (_, page):
        chosen = page.locator("#tabs [aria-selected=true]")

        async def opened(name: str, tab: str) -> None:
            await page.locator(".item", has_text=name).click()
            await expect(page.locator("#title")).to_contain_text(name)
            await expect(chosen).to_have_text(tab)

        await opened("Report on", "Pages")
        await expect(page.locator(".shot")).to_be_visible()
        await page.locator("#outline button").last.click()
        await expect(page.locator("#body [role=status]")).not_to_have_text(re.compile("Page 1 of"))
        await expect(chosen).to_have_text("Pages")
        await opened("table.csv", "Table")
        await opened("Title", "Text")
        await page.get_by_role("tab", name="Facts").click()
        await opened("second.csv", "Table")
        await page.get_by_role("tab", name="Text").click()
        await opened("table.csv", "Text")
        await page.reload()
        await opened("second.csv", "Text")
        await opened("Report on", "Pages")
        await page.fill("#query", "Orlaholm")
        await page.press("#query", "Enter")
        hit = page.locator("#results li button", has_text="Report on").first
        await hit.click()  # a passage is a place in the text
        await expect(chosen).to_have_text("Text")


async def test_a_picture_that_cannot_be_shown_says_why(tmp_path: Path) -> None:
    files = [saved(tmp_path, "cut.png", png()[:40]), saved(tmp_path, "whole.png", png())]
    async with page_of(tmp_path, *files) as (_, page):
        await page.locator(".item", has_text="cut.png").click()
        await expect(page.locator("#body [role=status]")).to_contain_text(
            "This picture cannot be shown: the image is damaged"
        )
        await page.locator(".item", has_text="whole.png").click()
        await expect(page.locator("#body .shot")).to_be_visible()
        await expect(page.locator("#body [role=status]")).to_have_count(0)


async def test_the_list_names_artifacts_as_commands_do(tmp_path: Path) -> None:
    names = ("a.txt", "b.txt", "c.txt")
    files = [saved(tmp_path, name, f"Words of {name}.\n") for name in names]
    async with page_of(tmp_path, *files) as (view, page):
        refs = {facts.name: facts.artifact_ref for facts in await view.stash.list()}
        await page.fill("#filter", "@3")
        await expect(page.locator(".item .name")).to_have_text(["a.txt"])
        await page.press("#filter", "Enter")
        await expect(page.locator("#title")).to_have_text("a.txt")
        await page.fill("#filter", refs["b.txt"][:10])
        await expect(page.locator(".item .name")).to_have_text(["b.txt"])
        await ask(view.stash, "stash_file", path=str(files[0]))  # it is the last again
        await page.fill("#filter", "@1")
        await expect(page.locator(".item .name")).to_have_text(["a.txt"])
        await page.press("#filter", "Escape")
        await expect(page.locator(".item .name")).to_have_text(["a.txt", "c.txt", "b.txt"])


async def test_the_text_shows_what_the_model_was_shown(tmp_path: Path) -> None:
    text = "\n\n".join(PROSE.splitlines())
    async with page_of(tmp_path, saved(tmp_path, "long.md", text)) as (view, page):
        await page.keyboard.press("j")
        await expect(page.locator(".line.seen").first).to_contain_text("Line 1 ")
        await expect(page.locator(".cut")).to_have_count(0)
        ref = next(iter(await view.stash.list())).artifact_ref
        await ask(view.stash, "artifact_slice", artifact_ref=ref, start=2_001, end=2_003)
        tab = page.get_by_role("tab", name="Shown to the model (2)")
        await tab.click()
        await page.locator(".calls button").last.click()
        await expect(page.locator(".line.here.seen")).to_contain_text("Line 1001 ")


async def test_an_arrival_appears_in_two_tabs_without_a_touch(tmp_path: Path) -> None:
    first = saved(tmp_path, "first.txt", "First words.\n")
    async with page_of(tmp_path, first) as (view, page):
        other = await page.context.new_page()
        await other.goto(page.url)
        for tab in (page, other):
            await expect(tab.locator("#live")).to_have_text("live")
            await expect(tab.locator(".item")).to_have_count(1)
        await view.stash.add_file(saved(tmp_path, "second.txt", "Second words.\n"))
        for tab in (page, other):
            await expect(tab.locator(".item").first).to_contain_text("second.txt")


async def test_a_browser_that_was_not_let_in_is_told_what_to_do(tmp_path: Path) -> None:
    async with viewed(tmp_path) as view, new_page() as page:
        await page.goto(view.link)  # the token was spent by another
        await expect(page.locator("body")).to_contain_text("open the link that it prints")


async def test_hostile_content_is_only_ever_text(tmp_path: Path) -> None:
    files = [
        saved(tmp_path, "<img src=x onerror=alert(1)>.txt", f"{HOSTILE}\n" * 50),
        saved(tmp_path, "hostile.json", json.dumps({HOSTILE: HOSTILE})),
        saved(tmp_path, "hostile.csv", f'a,"{HOSTILE.replace(chr(34), "")}"\n' * 5),
        saved(tmp_path, "page.html", f"<title>{HOSTILE}</title><p>{HOSTILE} words</p>"),
        saved(tmp_path, "drawing.svg", f"<svg xmlns='http://www.w3.org/2000/svg'>{HOSTILE}</svg>"),
    ]
    asked: list[str] = []
    async with page_of(tmp_path, *files) as (_, page):

        def note(request_or_dialog: Any) -> None:
            asked.append(getattr(request_or_dialog, "url", "a dialog"))

        page.on("request", note)
        page.on("dialog", note)
        for item in range(len(files)):
            row = page.locator(".item").nth(item)
            await row.click()
            await expect(row).to_have_attribute("aria-selected", "true")
            for tab in await page.locator("#tabs button").all():
                await tab.click()
                await page.wait_for_timeout(100)
                assert await page.title() != "owned"
        await page.fill("#query", "red")
        await page.press("#query", "Enter")
        await expect(page.locator("#results mark").first).to_have_text("red")
        assert await page.title() != "owned"
        await page.keyboard.press("Escape")
        await page.evaluate("timeline()")
        await expect(page.locator("#timeline .calls li")).to_have_count(len(files))
        await page.evaluate("trace()")
        await page.fill("textarea", f"{HOSTILE} has red words.")
        await page.click("text=Look for it")
        await expect(page.locator("#trace .calls li").first).to_be_visible()
        assert await page.title() != "owned"
        async with page.expect_download() as download:
            await page.evaluate("timeline()")
            await page.click("text=Export as HTML")
        exported = await (await download.value).path()
        offline = await page.context.new_page()
        offline.on("dialog", note)
        await offline.set_content(exported.read_text(encoding="utf-8"))
        await expect(offline.locator("h2").last).to_have_text("Calls")
        assert await offline.title() == "Timeline of first"
        assert await offline.locator("img, svg, script, a").count() == 0
        await offline.close()
        assert (
            await page.locator("#main img:not(.shot):not(#plot), #main svg, #main script").count()
            == 0
        )
        origin = "/".join(page.url.split("/")[:4])
        assert [url for url in asked if not url.startswith(origin)] == []


async def test_an_arrival_takes_no_artifact_away_that_a_key_has_chosen(tmp_path: Path) -> None:
    arrived = anyio.Event()

    async def hold(route: Any) -> None:
        await arrived.wait()
        await route.continue_()

    async with page_of(tmp_path, saved(tmp_path, "long.txt", PROSE)) as (view, page):
        await page.route("**/api/artifact?*", hold)
        await page.keyboard.press("j")
        await ask(view.stash, "stash_file", path=str(saved(tmp_path, "new.txt", "New.\n")))
        await expect(page.locator("#count")).to_have_text("2 artifacts")
        await expect(page.locator("#overview")).to_contain_text("2")
        arrived.set()
        await expect(page.locator("#title")).to_have_text("long.txt")


async def test_enter_searches_again_where_time_stopped_the_search_before_a_match(
    tmp_path: Path,
) -> None:
    async def stop(route: Any) -> None:
        await route.fulfill(json={"total": 0, "stopped": "after 1 s", "matches": []})

    async with page_of(tmp_path, saved(tmp_path, "long.txt", PROSE)) as (_, page):
        await page.keyboard.press("j")
        await page.route("**/api/grep?*", stop, times=1)
        await page.fill("#grep", "Line 1500 ")
        await page.press("#grep", "Enter")
        await expect(page.locator(".tools [role=status]")).to_have_text("at least 0 matches")
        await page.press("#grep", "Enter")
        await expect(page.locator(".line.here mark")).to_have_text("Line 1500 ")


async def test_back_forward_and_reload_come_to_the_tab_and_the_line(tmp_path: Path) -> None:
    files = [
        saved(tmp_path, "a.csv", "name,height\n" + "".join(f"n{n},{n}\n" for n in range(300))),
        saved(tmp_path, "other.txt", "Words.\n"),
        saved(tmp_path, "long.txt", PROSE),
    ]
    async with page_of(tmp_path, *files) as (_, page):
        title = page.locator("#title")
        await page.keyboard.press("j")
        await expect(title).to_have_text("long.txt")
        address = page.url
        await page.keyboard.press("g")
        await page.keyboard.type("1500")
        await page.keyboard.press("Enter")
        with anyio.fail_after(60):
            while await page.evaluate("(history.state.line ?? 0) < 1400"):
                await page.wait_for_timeout(50)
        await page.keyboard.press("j")
        await expect(title).to_have_text("other.txt")
        await page.get_by_role("tab", name="Facts").click()
        await page.go_back()
        await expect(title).to_have_text("long.txt")
        await expect(page.locator(".line", has_text="Line 1500 ")).to_be_visible()
        await page.go_forward()
        await expect(title).to_have_text("other.txt")
        await page.reload()
        await expect(page.locator("dl")).to_contain_text("other.txt")
        await page.keyboard.press("j")
        await page.get_by_role("tab", name="Table").click()
        rows = page.locator("#body [role=status]")
        await expect(rows).to_have_text("Rows 1 to 100 of 300")
        await page.keyboard.press("n")
        await expect(rows).to_have_text("Rows 101 to 200 of 300")
        link = page.url
        await page.reload()
        await expect(rows).to_have_text("Rows 101 to 200 of 300")
        await page.evaluate("address => { location.href = address }", address)
        await expect(title).to_have_text("long.txt")
        await page.fill("#query", "lighthouses 77")
        await page.press("#query", "Enter")
        hit = page.locator("#results li button").first
        await expect(hit.locator("mark").first).to_have_text("lighthouses")
        await hit.click()
        await expect(page.locator(".line.here mark").first).to_have_text("77")
        found = page.url
        await page.go_back()
        await expect(hit).to_be_visible()
        await page.go_forward()
        await expect(page.locator(".line.here mark").first).to_have_text("77")
        other = await page.context.new_page()
        await other.goto(found)
        await expect(other.locator(".line.here mark").first).to_have_text("77")
        await expect(other.locator("#grep")).to_have_value("lighthouses|77")
        third = await page.context.new_page()
        await third.goto(link)
        await expect(third.locator("#body [role=status]")).to_have_text("Rows 101 to 200 of 300")


async def test_a_sentence_leads_to_its_passage_and_back(tmp_path: Path) -> None:
    async with page_of(tmp_path, saved(tmp_path, "a.md", "\n\n".join(PROSE.split("\n")))) as (
        _,
        page,
    ):
        await page.keyboard.press("h")
        await page.fill("textarea", "Line 1 tells of lighthouses. Line 1234 of a long text.")
        await page.click("text=Look for it")
        rows = page.locator("#trace .calls li")
        await expect(rows.first).to_contain_text("A model was shown it by stash_file(")
        await expect(rows.last).to_contain_text("No call showed it to a model.")
        await rows.last.locator("button").click()
        await expect(page.locator(".line.here")).to_contain_text("Line 1234 of")
        await page.go_back()
        await expect(rows.last).to_contain_text("No call showed it to a model.")
        await page.go_back()
        await expect(page.locator("#overview")).to_be_visible()


async def test_a_search_goes_on_until_all_texts_are_searched(tmp_path: Path) -> None:
    left = [3, 3, 3, 1]

    async def behind(route: Any) -> None:
        answered = await (await route.fetch()).json()
        await route.fulfill(json={**answered, "searched": 5, "pending": left.pop(0) if left else 0})

    async with page_of(tmp_path, saved(tmp_path, "a.txt", PROSE)) as (_, page):
        await page.route("**/api/search?*", behind)
        await page.fill("#query", "lighthouses")
        await page.press("#query", "Enter")
        about = page.locator("#results [role=status]")
        await expect(about).to_contain_text("2 of 5 texts are searched")
        await expect(about).to_have_text("All 5 texts are searched.")


async def test_a_narrow_screen_leads_back_to_the_list_from_everywhere(tmp_path: Path) -> None:
    narrow: dict[str, Any] = {"viewport": {"width": 360, "height": 740}}
    async with page_of(tmp_path, saved(tmp_path, "a.txt", PROSE), **narrow) as (view, page):
        for way in ("#home", ".item"):
            await page.locator(way).click()
            await page.locator("#main .back:visible").click()
            await expect(page.locator("#list")).to_be_visible()
        await page.fill("#query", "lighthouses")
        await page.press("#query", "Enter")
        await expect(page.locator("#results li").first).to_be_visible()
        await page.locator("#main .back:visible").click()
        await expect(page.locator("#list")).to_be_visible()
        await view.stash.delete(next(iter(await view.stash.list())).artifact_ref)
        await expect(page.locator("#count")).to_have_text(
            "0 artifacts. What agents fetch appears here."
        )


async def test_a_page_whose_server_or_artifact_went_says_so(tmp_path: Path) -> None:
    async with page_of(tmp_path, saved(tmp_path, "a.txt", PROSE)) as (view, page):
        await page.keyboard.press("j")
        await expect(page.locator("#actions")).to_contain_text("Delete")
        ref = next(iter(await view.stash.list())).artifact_ref
        await view.stash.delete(ref)
        await expect(page.locator("#source")).to_contain_text("It is not kept any more")
        await expect(page.locator("#actions")).to_be_empty()

        async def other(route: Any) -> None:  # another server took the port
            await route.fulfill(status=404, body="There is nothing here.")

        await page.route("**/api/stats?*", other)
        await page.keyboard.press("o")
        await expect(page.locator("#said")).to_contain_text("fetchstash ui has ended.")


async def test_an_artifact_is_found_by_its_reference_and_a_new_project_appears(
    tmp_path: Path,
) -> None:
    files = [saved(tmp_path, "a.txt", "Words."), saved(tmp_path, "b.bin", b"\0\1\2" * 500)]
    async with page_of(tmp_path, *files) as (view, page):
        values = {"store.folder": str(tmp_path / "store"), "store.run": "second"}
        async with open_stash({**values, "ingest.read_roots": [str(tmp_path)]}) as stash:
            await ask(stash, "stash_file", path=str(saved(tmp_path, "c.txt", "More words.")))
        await expect(page.locator("#run option")).to_have_text(
            ["All projects", "second (1)", "first (2)"]
        )
        (binary,) = [facts for facts in await view.stash.list() if facts.name == "b.bin"]
        await page.fill("#filter", binary.artifact_ref)
        await expect(page.locator(".item")).to_have_count(1)
        await page.locator(".item").click()
        await expect(page.locator("#actions")).not_to_contain_text("Download text")
        await expect(page.locator("#body")).to_contain_text("It has no text.")
        await page.select_option("#run", "second")
        await expect(page.locator(".item")).to_have_count(0)  # the filter stays
        await page.fill("#filter", "")
        await expect(page.locator(".item")).to_contain_text("c.txt")


async def test_all_matches_are_reached_and_a_wrong_pattern_leaves_none(tmp_path: Path) -> None:
    async with page_of(tmp_path, saved(tmp_path, "a.txt", PROSE)) as (_, page):
        await page.keyboard.press("j")
        await page.fill("#grep", "lighthouses")
        await page.press("#grep", "Enter")
        await expect(page.locator(".line.here")).to_contain_text("Line 1 ")
        await page.get_by_role("button", name="The first 200 of 2,000: show more").click()
        await expect(page.locator(".line.here")).to_contain_text("Line 201 ")
        await expect(page.locator("#matches button")).to_have_count(401)
        await page.fill("#grep", "(")
        await page.press("#grep", "Enter")
        await expect(page.locator(".tools [role=status]")).to_contain_text("[bad_pattern]")
        await expect(page.locator("#matches")).to_be_hidden()
        await expect(page.locator(".rows mark")).to_have_count(0)


async def test_a_member_of_an_archive_opens_under_its_name(tmp_path: Path) -> None:
    archive = packed({f"part {n}.txt": f"Words of part {n}.\n" for n in range(60)})
    async with page_of(tmp_path, saved(tmp_path, "a.zip", archive)) as (_, page):
        await page.keyboard.press("j")
        await page.get_by_role("tab", name="Members").click()
        await page.get_by_role("button", name="part 7.txt").click()
        await expect(page.locator("#body pre")).to_contain_text("Words of part 7.")
        await expect(page.locator("#body h2")).to_have_text("part 7.txt")
        await expect(page.locator("#body h2")).to_be_in_viewport()


async def test_a_pattern_that_takes_a_browser_for_ever_does_not_stop_the_page(
    tmp_path: Path,
) -> None:
    async with page_of(tmp_path, saved(tmp_path, "a.txt", f"{'a' * 60}b\n" * 30)) as (_, page):
        await page.keyboard.press("j")
        for pattern, found in ((r"(a+)+$", "0 matches"), (r"(a|a+)+b", "30 matches")):
            await page.fill("#grep", pattern)
            await page.press("#grep", "Enter")
            await expect(page.locator(".tools [role=status]")).to_have_text(found)


async def test_a_long_cell_hides_none_behind_it_and_a_long_line_is_read_on(tmp_path: Path) -> None:
    emoji = "\U0001f5fc" * 12_500
    files = [
        saved(tmp_path, "a.csv", f"id,text,end\n1,{'words ' * 700},last\n2,b,c\n"),
        saved(tmp_path, "emoji.txt", emoji + "the end"),
    ]
    async with page_of(tmp_path, *files) as (_, page):
        await page.keyboard.press("j")
        for _ in range(2):
            await page.locator(".line button").click()
        await expect(page.locator(".line .doc")).to_have_text(emoji + "the end")
        await page.keyboard.press("j")
        await page.get_by_role("tab", name="Table").click()
        await expect(page.locator("#body tbody tr").first.locator("td").last).to_have_text("last")


async def test_thousands_of_artifacts_are_one_list_on_a_wide_and_a_narrow_screen() -> None:
    with quick_folder() as folder:
        await put_many(folder / "store", "first", 3_000)
        async with page_of(folder) as (_, page):
            await expect(page.locator("#count")).to_have_text("3,000 artifacts")
            for width, key, title in ((1_440, "End", "document 0"), (360, "Home", "document 2999")):
                await page.set_viewport_size({"width": width, "height": 740})
                if width == 360:
                    await page.click("#back")
                await page.locator("#list").focus()
                await page.keyboard.press(key)
                await expect(page.locator("#title")).to_have_text(title)
                assert await page.locator(".item").count() < 60
                assert await page.evaluate("document.documentElement.scrollWidth") <= width


async def test_a_text_of_100_mb_is_read_at_both_ends(tmp_path: Path) -> None:
    ref = await put_long(tmp_path / "store", "first", 100_000_000)
    async with page_of(tmp_path) as (_, page):
        await page.keyboard.press("j")
        await expect(page.locator(".line").first).to_contain_text("000000001 the keeper")
        await page.locator(".rows").focus()
        await page.keyboard.press("End")
        await expect(page.locator(".line").last).to_contain_text("the keeper of the lamp")
        await page.fill("#grep", "^001000000 ")
        await page.press("#grep", "Enter")
        await expect(page.locator(".line.here")).to_contain_text("001000000 the keeper")
        assert ref in page.url


@asynccontextmanager
async def app_of(
    folder: Path, *documents: Path, height: int = 640
) -> AsyncGenerator[tuple["Page", Any, list[str]]]:
    """Show the app beside the results of some documents, in a frame of a fixed height."""
    from mcp import Client

    host_script()
    settings = {"store.folder": str(folder / "store"), "ingest.read_roots": [str(folder)]}
    server = build_server(LazyStash(load(settings)))
    async with Client(server) as client, new_page() as page:
        called: list[str] = []

        async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
            called.append(name)
            answered = await client.call_tool(name, arguments)
            return answered.model_dump(by_alias=True, exclude_none=True, mode="json")

        results = [await call_tool("stash_file", {"path": str(path)}) for path in documents]
        called.clear()
        shown = {"content": [part for result in results for part in result["content"]]}
        errors: list[str] = []

        def note(error: object) -> None:
            errors.append(str(error))

        page.on("pageerror", note)
        await page.expose_function("callTool", call_tool)
        await page.goto("about:blank")
        await page.add_script_tag(content=host_script())
        await page.evaluate("given => host(given)", [view_html(), shown, height])
        yield page, page.frame_locator("iframe"), called
        assert errors == []


async def test_the_mcp_app_works_by_tool_calls_alone(tmp_path: Path) -> None:
    lines = "\n\n".join(f"## Part {n}\n\nWords of part {n}." for n in range(1, 2_000))
    document = saved(tmp_path, "long.md", f"# Title\n\n{lines}\n")
    async with app_of(tmp_path, document) as (page, app, called):
        await expect(app.locator("#title")).to_have_text("Title")
        await expect(app.locator(".line").first).to_contain_text("# Title")
        await app.locator("#grep").fill("part 1500[.]")
        await app.locator("#grep").press("Enter")
        await expect(app.locator(".line.here mark")).to_have_text("part 1500.")
        await app.get_by_role("tab", name="Facts").click()
        await expect(app.locator("dl")).to_contain_text("markdown")
        await expect(app.locator("#outline")).to_contain_text("Part 3")
        await page.keyboard.press("o")  # a key of the browser's view alone
        await expect(app.locator("#title")).to_be_visible()
        assert set(called) <= {"artifact_info", "artifact_slice", "artifact_grep"}


async def test_the_mcp_app_shows_pages_and_tables(tmp_path: Path) -> None:
    _, table, report, _ = documents(tmp_path)
    async with app_of(tmp_path, report, table) as (_, app, _):
        choices = app.locator("#overview li button")
        await choices.first.click()
        await app.get_by_role("tab", name="Pages").click()
        await app.get_by_role("button", name="Next page").click()
        await expect(app.locator("#body [role=status]")).to_contain_text("Page 2 of")
        await expect(app.locator(".pages pre")).to_contain_text("[Page 2]")
        picture = app.locator(".shot")
        await expect(picture).to_have_attribute("src", re.compile("^data:image/"))
        width = await picture.evaluate("image => image.decode().then(() => image.naturalWidth)")
        assert width > 100
        await app.get_by_role("button", name="List").click()
        await choices.last.click()
        await app.get_by_role("tab", name="Table").click()
        await app.get_by_role("button", name="Next rows").click()
        await expect(app.locator("#body [role=status]")).to_have_text("Rows 101 to 200 of 300")
        await expect(app.locator("tbody tr").first).to_have_text("101n100100")


async def test_the_mcp_app_shows_the_end_of_a_text_that_no_result_can_hold(tmp_path: Path) -> None:
    text = "\n\n".join(f"{f'Words of paragraph {n}. ' * 150}" for n in range(60))
    async with app_of(tmp_path, saved(tmp_path, "long.txt", text), height=400) as (page, app, _):
        await app.locator(".rows").focus()
        await page.keyboard.press("End")
        last = app.locator(".line").last
        await expect(last).to_contain_text("Words of paragraph 59.")
        box, frame = await last.bounding_box(), await page.locator("iframe").bounding_box()
        assert box
        assert frame
        assert box["y"] + box["height"] == pytest.approx(frame["y"] + 400, abs=25)


def book(*sheets: str) -> bytes:
    """Return a workbook whose sheets have three rows of their number."""
    numbers = range(1, len(sheets) + 1)
    listed = "".join(f'<sheet name="{sheets[n - 1]}" sheetId="{n}" r:id="r{n}"/>' for n in numbers)
    targets = "".join(
        f'<Relationship Id="r{n}" Type="{RELATIONS}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in numbers
    )
    start = f'<Relationship Id="a" Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/>'
    parts = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": f"<Relationships {PACKAGE}>{start}</Relationships>",
        "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{RELATIONS}"><sheets>{listed}</sheets>'
        "</workbook>",
        "xl/_rels/workbook.xml.rels": f"<Relationships {PACKAGE}>{targets}</Relationships>",
    }
    for n in numbers:
        rows = rows_of(*(number(f"A{row}", n) for row in (1, 2, 3)))
        content = f"<worksheet {MAIN}><sheetData>{rows}</sheetData></worksheet>"
        parts[f"xl/worksheets/sheet{n}.xml"] = content
    return packed(parts)


async def test_the_mcp_app_shows_each_of_several_documents(tmp_path: Path) -> None:
    documents = [
        saved(tmp_path, "book.xlsx", book("Tides", "Winds")),
        saved(tmp_path, "many.json", json.dumps({f"key {n}": n for n in range(300)})),
        saved(tmp_path, "huge.json", json.dumps({f"key {n}": "word " * 50 for n in range(900)})),
    ]
    async with app_of(tmp_path, *documents) as (_, app, _):
        choices = app.locator("#overview li button")
        await choices.first.click()
        await app.get_by_role("tab", name="Table").click()
        await app.get_by_role("combobox").select_option("Winds")
        await expect(app.locator("thead")).to_have_text("#2")
        await expect(app.locator("tbody")).to_have_text("1222")
        await app.get_by_role("button", name="List").click()
        await choices.nth(1).click()
        await app.get_by_role("tab", name="Tree").click()
        await app.get_by_role("button", name="100 more").click()
        await expect(app.locator(".tree .key")).to_have_count(300)
        await expect(app.locator(".tree .key").last).to_have_text("key 299")
        await app.get_by_role("button", name="List").click()
        await choices.nth(2).click()
        await app.get_by_role("tab", name="Tree").click()
        await expect(app.locator("#body")).to_have_text(
            "This is too large for a tree here. Read its text."
        )


_HOST = """
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";
window.host = async ([html, result, height]) => {
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.style = `width: 600px; height: ${height}px; border: 0`;
  document.body.append(frame);
  const about = { name: "test", version: "1" }, can = { serverTools: {} };
  const bridge = new AppBridge(null, about, can, { hostContext: { theme: "dark" } });
  bridge.oncalltool = ({ name, arguments: given }) => callTool(name, given);
  bridge.oninitialized = async () => {
    await bridge.sendToolInput({ arguments: {} });
    await bridge.sendToolResult(result);
  };
  const view = frame.contentWindow;
  await bridge.connect(new PostMessageTransport(view, view));
  frame.srcdoc = html;
};
"""


@cache
def host_script() -> str:
    """Return a host of MCP Apps, made with the official SDK, as one script."""
    folder = os.environ.get("EXT_APPS_FOLDER")
    if not folder:
        pytest.skip("The SDK of MCP Apps is not here: scripts/ci extras installs it")
    modules = Path(folder, "node_modules")
    words = ["--bundle", "--format=iife", "--log-level=error"]
    built = subprocess.run(
        [modules / ".bin" / "esbuild", *words],
        input=_HOST,
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    return built.stdout
