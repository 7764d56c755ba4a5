"""Pages of scripts: which are rendered, what stays where that fails, and screenshots."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from fetchstash.config import load
from fetchstash.errors import BadArgument, FetchFailed, TimedOut, UnknownRef
from fetchstash.fetch import Rendered
from fetchstash.render import as_shown
from fetchstash.service import for_clients_elsewhere
from tests.loopback import Page, Site
from tests.stash.conftest import OpenStash

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

SHELL = """<html><head><title>App</title></head><body><div id="root"></div>
<script src="/a.js"></script></body></html>"""
DOM = f"<html><body><main><h1>Prices</h1><p>{'A boat costs seven euros. ' * 20}</p></main></body>"


class Renderer:
    """Stands for a browser: ``dom`` is what every page becomes, an error what is raised."""

    def __init__(self) -> None:
        self.dom: str | Exception = DOM
        self.asked: list[tuple[str, int, float]] = []

    async def render(
        self, url: str, folder: Path, *, seconds: float, edge: int = 0, max_bytes: int = 0
    ) -> Rendered:
        del max_bytes
        self.asked.append((url, edge, seconds))
        if isinstance(self.dom, Exception):
            raise self.dom
        path = folder / "rendered"
        path.write_text(self.dom)
        return Rendered(path, url, "Chromium 156.0", "text/html", edge, edge)


@pytest.fixture
def renderer() -> Renderer:
    return Renderer()


@pytest.fixture
def opened(open_stash: OpenStash, renderer: Renderer) -> OpenStash:
    """Return a function that opens a Stash with ``renderer`` for a browser, or with none."""

    def open_it(*browser: str, renderer: Renderer | None = renderer) -> Any:
        chosen = None if "off" in browser else renderer
        return open_stash(fetch__browser=list(browser), renderer=chosen)

    return open_it


@pytest.mark.parametrize(("control", "is_kept"), [("no-store", False), ("max-age=60", True)])
async def test_a_rendered_page_is_kept_beyond_the_run_unless_its_server_says_no(
    control: str, is_kept: bool, opened: OpenStash, site: Site
) -> None:
    url = site.put("/app", SHELL, headers={"Cache-Control": control})
    async with opened("auto") as stash:
        ref = (await stash.fetch(url)).ref
    async with opened("auto") as stash:
        with nullcontext() if is_kept else pytest.raises(UnknownRef):
            assert "Prices" in await (await stash.get(ref)).text()


async def test_a_page_that_is_only_scripts_is_read_as_rendered(
    opened: OpenStash, site: Site, renderer: Renderer
) -> None:
    url = site.put("/app", SHELL)
    async with opened("auto") as stash:
        artifact = await stash.fetch(url)
        text = await artifact.text()
        assert "# Prices" in text
        assert "A boat costs seven euros." in text
        assert artifact.facts.rendered == "Chromium 156.0"
        assert artifact.facts.page_verdict == ""
        assert "[Rendered by Chromium 156.0.]" in as_shown(artifact)
        assert [facts.artifact_ref for facts in await stash.list()] == [artifact.ref]
        assert not (stash.store.spool / "rendered").exists()
    assert [asked[0] for asked in renderer.asked] == [url]
    assert 0 < renderer.asked[0][2] < 45


async def test_a_page_with_content_is_not_rendered(
    opened: OpenStash, site: Site, renderer: Renderer
) -> None:
    async with opened("auto") as stash:
        artifact = await stash.fetch(site.put("/plain", DOM))
        await stash.fetch(site.put("/data", b'{"a": 1}', "application/json"))
    assert artifact.facts.rendered == ""
    assert renderer.asked == []


@pytest.mark.parametrize(
    ("browser", "is_rendered"),
    [
        (("127.0.0.1",), True),
        (("example.org",), False),
        (("auto", "127.0.0.1"), True),
        (("off", "127.0.0.1"), False),
    ],
)
async def test_pages_of_named_domains_are_always_rendered(
    browser: tuple[str, ...], is_rendered: bool, opened: OpenStash, site: Site, renderer: Renderer
) -> None:
    async with opened(*browser) as stash:
        await stash.fetch(site.put("/plain", DOM))
    assert bool(renderer.asked) is is_rendered


@pytest.mark.parametrize(
    ("dom", "reason"),
    [
        (TimedOut("The page was not rendered in time.", "x"), "The page was not rendered in time."),
        (FetchFailed("There is no Chromium on this machine.", "x"), "There is no Chromium"),
        (SHELL, "it has no text then either"),
    ],
    ids=["time-out", "none", "still empty"],
)
async def test_a_page_that_cannot_be_rendered_stays_as_it_came_and_says_why(
    dom: str | Exception, reason: str, opened: OpenStash, site: Site, renderer: Renderer
) -> None:
    renderer.dom = dom
    async with opened("auto") as stash:
        artifact = await stash.fetch(site.put("/app", SHELL))
        shown = as_shown(artifact)
        assert "[The page is an empty shell" in shown
        assert f"[A browser could not render it: {reason}" in shown
        assert len((await stash.list()).facts) == 1


@pytest.mark.parametrize(
    ("browser", "advice"),
    [("off", "change fetch.browser"), ("auto", "add one by `fetchstash register --browser`")],
)
async def test_without_a_browser_the_page_says_how_to_get_one(
    browser: str,
    advice: str,
    opened: OpenStash,
    site: Site,
    renderer: Renderer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lack = "There is no Chromium on this machine."
    monkeypatch.setattr("fetchstash.fetch._browser.missing", lambda: lack)
    async with opened(browser, renderer=None) as stash:
        artifact = await stash.fetch(site.put("/app", SHELL))
        plain = await stash.fetch(site.put("/plain", DOM))
    assert f"[A browser could show more: the operator can {advice}.]" in as_shown(artifact)
    assert artifact.facts.rendered == ("none" if browser == "auto" else "")
    assert plain.facts.rendered == ""
    assert renderer.asked == []


def test_auto_is_the_default_where_a_browser_is_there_and_a_service_needs_to_be_told() -> None:
    limits = load().fetch
    assert limits.browser == ("auto",)
    assert for_clients_elsewhere(load()).fetch.browser == ("off",)
    assert for_clients_elsewhere(load({"fetch.browser": ["auto"]})).fetch.browser == ("auto",)


async def test_a_rendered_copy_that_is_still_fresh_is_used(
    opened: OpenStash, site: Site, renderer: Renderer
) -> None:
    headers = {"Content-Type": "text/html", "Cache-Control": "max-age=600"}
    site.pages["/app"] = Page(SHELL.encode(), headers)
    async with opened("auto") as stash:
        first = await stash.fetch(site.url("/app"))
        again = await stash.fetch(site.url("/app"))
    assert again.ref == first.ref
    assert again.cache is not None
    assert len(renderer.asked) == 1


async def test_the_picture_of_a_page_is_its_screenshot(
    opened: OpenStash, site: Site, renderer: Renderer
) -> None:
    async with opened("auto") as stash:
        ref = (await stash.fetch(site.put("/plain", DOM))).ref
        picture = await stash.picture(ref)
        assert (picture.width, picture.page) == (1_568, None)
        assert renderer.asked[0][1] == 1_568
        assert not (stash.store.spool / "rendered").exists()
    async with opened("off") as stash:
        ref = (await stash.fetch(site.put("/plain", DOM))).ref
        with pytest.raises(BadArgument):
            await stash.picture(ref)


async def test_a_page_whose_address_held_a_secret_is_not_shown_later(
    opened: OpenStash, site: Site, renderer: Renderer
) -> None:
    site.put("/plain?api_key=s3cr3tvalue12345", DOM)
    async with opened("auto") as stash:
        ref = (await stash.fetch(site.url("/plain?api_key=s3cr3tvalue12345"))).ref
        with pytest.raises(BadArgument, match="holds a secret that is not kept"):
            await stash.picture(ref)
    assert renderer.asked == []
