"""A whole site: its pages by sitemap, llms.txt or links, one index, and the bounds of the work."""

import gzip
import json
import re
from collections.abc import AsyncGenerator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest

from fetchstash.errors import BadArgument, NoText, OutOfRange
from fetchstash.handlers import page_links
from fetchstash.render import as_shown
from fetchstash.stash import Artifact, Stash
from tests.loopback import Quiet, Site, serving
from tests.stash.conftest import OpenStash

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]
BOUNDS = {"ingest__site_rate": 0}


@pytest.fixture
async def stash(open_stash: OpenStash) -> AsyncGenerator[Stash]:
    """Open a Stash that need not wait between two pages."""
    async with open_stash(**BOUNDS) as it:
        yield it


def page(title: str, text: str = "", links: str = "", head: str = "") -> str:
    words = text or f"All about {title}, which is explained here at some length in a paragraph."
    return f"<title>{title}</title>{head}<main><h1>{title}</h1><p>{words}</p>{links}</main>"


def link(*paths: str) -> str:
    return "".join(f'<p><a href="{path}">{path}</a></p>' for path in paths)


def sitemap(*urls: str, kind: str = "urlset") -> str:
    item = "sitemap" if kind == "sitemapindex" else "url"
    rows = "".join(f"<{item}><loc>{url}</loc></{item}>" for url in urls)
    return f'<?xml version="1.0"?><{kind} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</{kind}>'


def put_pages(site: Site, count: int, folder: str = "/docs/") -> list[str]:
    """Put a start page and numbered pages, and a sitemap of them all; return their paths."""
    paths = [f"{folder}{n}.html" for n in range(1, count)]
    site.put(folder, page("Start"))
    for n, path in enumerate(paths, start=1):
        site.put(path, page(f"Page {n}", f"The word of page {n} is wort{n * 7}. It has no other."))
    site.put("/sitemap.xml", sitemap(*map(site.url, paths)), "application/xml")
    return [folder, *paths]


async def listed(stash: Stash, index: Artifact) -> list[str]:
    """Return the paths of the pages that an index lists."""
    text = (await stash.read(index.ref)).text
    return re.findall(r"^- art_\w+ \d+ chars http://[^/]+(\S+)", text, re.MULTILINE)


@pytest.mark.long
async def test_200_pages_come_in_one_call_and_any_passage_in_two(site: Site, stash: Stash) -> None:
    paths = put_pages(site, 200)
    seen: list[tuple[int, int | None]] = []

    def report(done: int, total: int | None) -> None:
        seen.append((done, total))

    index = await stash.fetch_site(site.url("/docs/"), progress=report)
    assert await listed(stash, index) == paths
    assert index.facts.members == 200
    assert not index.facts.incomplete
    assert seen[-1] == (200, 200)
    assert [done for done, _ in seen] == list(range(1, 201))
    # Any passage in two calls.
    matches = await stash.grep(r"wort1351\b", [index.ref])
    (found,) = matches
    shown = as_shown(matches)
    assert f"[{index.ref}: matches 1 to 1 of 1, in 1 of 200 pages]" in shown
    assert f"-- {found.artifact_ref} {site.url('/docs/193.html')}" in shown
    part = await stash.slice(found.artifact_ref, start=found.line, end=found.line)
    assert "The word of page 193 is wort1351." in part.text
    best = (await stash.search("wort770", [index.ref])).best_first[0]
    assert "page 110" in best.text
    assert {path for path in site.asked if site.asked.count(path) > 1} == set()
    again = await stash.fetch_site(site.url("/docs/"))
    assert again.ref == index.ref
    assert again.cache
    assert len([path for path in site.asked if path.startswith("/docs/")]) == 201  # a sitemap


async def test_links_are_followed_below_the_address_alone_and_each_page_comes_once(
    site: Site, open_stash: OpenStash
) -> None:
    site.put(
        "/docs/", page("Start", links=link("a.html", "/docs/b.html#x", "/blog/", "/docs/i.png"))
    )
    canonical = f'<link rel="canonical" href="{site.url("/docs/a.html")}">'
    site.put("/docs/a.html", page("A", links=link("b.html", "a.html?print=1", "/docs/", "old")))
    site.put("/docs/a.html?print=1", page("A to print", head=canonical))
    site.put("/docs/b.html", page("B", links=link("a.html", "gone.html", "broken.html", "out")))
    site.put("/docs/old", status=301, headers={"Location": "/docs/b.html"})
    site.put("/docs/out", status=302, headers={"Location": "/blog/"})
    site.put("/docs/broken.html", b"sorry", status=500)
    site.put("/blog/", page("Blog"))
    async with open_stash(**BOUNDS, fetch__per_host_concurrency=1) as stash:
        index = await stash.fetch_site(site.url("/docs/"))
        assert sorted(await listed(stash, index)) == ["/docs/", "/docs/a.html", "/docs/b.html"]
        text = (await stash.read(index.ref)).text
        assert "/docs/gone.html [http_error 404] 127.0.0.1 answered 404 Not Found" in text
        assert "/docs/broken.html [http_error 500]" in text
        assert "/docs/out [refused] The address leads out of the site" in text
        assert "/docs/a.html?print=1 [duplicate] the same page as art_" in text
        assert "/docs/old [duplicate]" in text
        assert not {"/blog/", "/docs/i.png"} & set(site.asked)
        # The index, three pages, and nothing of a duplicate.
        assert (await stash.list()).total == 4
        # What failed for a while alone is asked again.
        asked = len(site.asked)
        site.put("/docs/broken.html", page("Mended"))
        index = await stash.fetch_site(site.url("/docs/"))
        assert "/docs/broken.html" in await listed(stash, index)
        assert site.asked[asked:] == ["/docs/broken.html"]


async def test_an_endless_calendar_ends_at_the_limit_of_pages_behind_the_other_pages(
    site: Site, open_stash: OpenStash
) -> None:
    class Calendar(dict[str, Any]):
        def get(self, path: str, default: Any = None) -> Any:
            if match := re.fullmatch(r"/cal/\?month=(\d+)", path):
                n = int(match[1])
                site.put(path, page(f"Month {n}", links=link(f"?month={n + 1}", f"?month={n + 2}")))
            return super().get(path, default)

    site.pages = Calendar(site.pages)
    site.put("/cal/", page("Start", links=link("?month=1", "one", "two")))
    site.put("/cal/one", page("One", links=link("three")))
    for name in ("two", "three"):
        site.put(f"/cal/{name}", page(name))
    async with open_stash(**BOUNDS, ingest__site_pages=12) as stash:
        index = await stash.fetch_site(site.url("/cal/"))
        paths = await listed(stash, index)
        assert len(paths) == 12
        assert {"/cal/", "/cal/one", "/cal/two"} <= set(paths[:7])
        assert "/cal/three" in paths  # behind the months that came before it was known
        assert "a call fetches 12 pages at the most" in index.facts.incomplete
        assert "[To go on: " in as_shown(index)
        asked = len(site.asked)
        index = await stash.fetch_site(site.url("/cal/"))  # the same call goes on
        assert len(await listed(stash, index)) == 24
        assert len(site.asked) - asked <= 13
        assert (await stash.fetch_site(site.url("/cal/"), max_pages=1)).facts.members == 25


async def test_a_page_whose_links_go_aside_says_where_to_begin(
    site: Site, open_stash: OpenStash
) -> None:
    for name in ("Tide", "Moon", "Gauge"):
        others = link(*(f"/wiki/{other}" for other in ("Tide", "Moon", "Gauge", "Sea")))
        site.put(f"/wiki/{name}", page(name, links=others))
    async with open_stash(**BOUNDS) as stash:
        index = await stash.fetch_site(site.url("/wiki/Tide"))
        assert index.facts.members == 1
        shown = as_shown(index)
        above = site.url("/wiki/")
        assert f'[3 links outside of this path. To begin above it: fetch_site(url="{above}")]' in (
            shown
        )


def bomb(site: Site) -> None:
    """Put sitemaps without an end: each index names two more, and one is 60 MB of addresses."""
    for n in range(1, 200):
        maps = [site.url(f"/map{2 * n + side}.xml") for side in (0, 1)]
        site.put(f"/map{n}.xml", sitemap(*maps, kind="sitemapindex"), "application/xml")
    site.put("/robots.txt", f"Sitemap: {site.url('/map1.xml')}\nSitemap: {site.url('/big.gz')}")
    many = b"".join(b"<url><loc>http://other.example/%d</loc></url>" % n for n in range(1000))
    body = gzip.compress(b"<urlset>" + many * 1400)  # 57 MB
    site.put("/big.gz", body, "application/gzip")


async def test_sitemaps_that_name_ever_more_or_are_very_large_end_soon(
    site: Site, stash: Stash
) -> None:
    bomb(site)
    site.put("/docs/", page("Start", links=link("a")))
    site.put("/docs/a", page("A"))
    index = await stash.fetch_site(site.url("/docs/"))
    assert sorted(await listed(stash, index)) == ["/docs/", "/docs/a"]
    assert len([path for path in site.asked if path.startswith("/map")]) == 7  # three levels


@pytest.mark.parametrize(
    "body",
    [
        "<html>" + "<loc>" * 1000,
        "<urlset><loc>" + " " * 2_000_000,
        "<!DOCTYPE x [<!ENTITY a 'b'>]>&a;",
    ],
    ids=["unclosed", "blanks", "entities"],
)
async def test_a_sitemap_that_is_none_is_passed_over(body: str, site: Site, stash: Stash) -> None:
    site.put("/sitemap.xml", body, "application/xml")
    site.put("/docs/", page("Start", links=link("a")))
    site.put("/docs/a", page("A"))
    index = await stash.fetch_site(site.url("/docs/"))
    assert sorted(await listed(stash, index)) == ["/docs/", "/docs/a"]


async def test_sitemaps_packed_plain_and_nested_in_an_index_give_their_pages(
    site: Site, stash: Stash
) -> None:
    site.put("/robots.txt", f"User-agent: *\nSitemap: {site.url('/index.xml')}")
    maps = [site.url(path) for path in ("/a.xml.gz", "/b.txt")]
    site.put("/index.xml", sitemap(*maps, kind="sitemapindex"), "application/xml")
    images = f"<image:loc>{site.url('/docs/picture')}</image:loc>"
    packed = sitemap(site.url("/docs/1?a=1&amp;b=2")).replace("</url>", f"{images}</url>")
    site.put("/a.xml.gz", gzip.compress(packed.encode()), "application/gzip")
    site.put("/b.txt", f"{site.url('/docs/2')}\n{site.url('/elsewhere')}\n", "text/plain")
    for path in ("/docs/", "/docs/1?a=1&b=2", "/docs/2"):
        site.put(path, page(path))
    index = await stash.fetch_site(site.url("/docs/"))
    assert await listed(stash, index) == ["/docs/", "/docs/1?a=1&b=2", "/docs/2"]
    assert index.facts.structure_info == "3 pages by sitemap"


async def test_no_address_of_another_host_or_a_private_network_is_asked(
    site: Site, open_public: OpenStash
) -> None:
    private = [
        "http://10.0.0.1/docs/",
        "http://169.254.169.254/latest/",
        "http://127.0.0.1:1/docs/",
    ]
    site.put("/docs/", page("Start", links=link(*private, "http://other.example/docs/", "a")))
    site.put("/docs/a", page("A"))
    site.put("/docs/out", status=302, headers={"Location": private[0]})
    names = [*private, "https://site.example/docs/a", "https://site.example/docs/out"]
    site.put("/robots.txt", "".join(f"Sitemap: {url}s.xml\n" for url in private))
    site.put("/sitemap.xml", sitemap(*names).replace("https", "http"), "application/xml")
    site.put("/llms.txt", "\n".join(f"- [x]({url})" for url in private), "text/plain")
    async with open_public(**BOUNDS) as stash:
        index = await stash.fetch_site("http://site.example/docs/")
        assert await listed(stash, index) == ["/docs/", "/docs/a"]
        assert "/docs/out [refused]" in (await stash.read(index.ref)).text
    assert set(site.asked) == {
        "/docs/",
        "/robots.txt",
        "/sitemap.xml",
        "/docs/sitemap.xml",
        "/docs/a",
        "/docs/out",
    }


async def test_robots_txt_is_obeyed_with_its_delay_between_requests(
    site: Site, open_stash: OpenStash, monkeypatch: pytest.MonkeyPatch
) -> None:
    minutes: list[int] = []
    sleep = anyio.sleep

    async def note(seconds: float) -> None:
        minutes.append(round(seconds / 60))
        await sleep(0)

    monkeypatch.setattr("fetchstash.stash._site.anyio.sleep", note)
    put_pages(site, 4)
    rules = "User-agent: *\nCrawl-delay: 60\nDisallow: /docs/2.html\nDisallow: /sitemap.xml\n"
    site.put("/robots.txt", f"{rules}Sitemap: {site.url('/maps.xml')}\n", "text/plain")
    site.put("/maps.xml", site.pages["/sitemap.xml"].body, "application/xml")
    async with open_stash(**BOUNDS, fetch__respect_robots=True) as stash:
        index = await stash.fetch_site(site.url("/docs/"))
        assert await listed(stash, index) == ["/docs/", "/docs/1.html", "/docs/3.html"]
        assert "/docs/2.html [robots]" in (await stash.read(index.ref)).text
    assert not {"/docs/2.html", "/sitemap.xml"} & set(site.asked)
    # Of the sitemap and three pages each waits a minute longer, as nobody really sleeps.
    assert [minute for minute in minutes if minute] == [1, 2, 3]


@pytest.mark.parametrize("end", ["cancelled", "out of time"])
async def test_what_was_cut_goes_on_where_it_ended_and_asks_for_nothing_twice(
    end: str, site: Site, open_stash: OpenStash, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = put_pages(site, 12)
    token, begun = anyio.lowlevel.current_token(), anyio.Event()
    slow = site.pages["/docs/7.html"]

    def hang(handler: BaseHTTPRequestHandler) -> None:
        anyio.from_thread.run_sync(begun.set, token=token)
        handler.rfile.read(1)  # returns when the client closes

    site.put("/docs/7.html", script=hang)
    scopes: list[anyio.CancelScope] = []

    def move_on_after(_: float) -> anyio.CancelScope:
        scopes.append(anyio.CancelScope())
        return scopes[-1]

    monkeypatch.setattr("fetchstash.stash._site.anyio.move_on_after", move_on_after)
    async with open_stash(**BOUNDS, fetch__per_host_concurrency=1) as stash:
        with anyio.fail_after(60), anyio.CancelScope() as whole:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stash.fetch_site, site.url("/docs/"))
                await begun.wait()
                (whole if end == "cancelled" else scopes[0]).cancel()
        monkeypatch.undo()
        facts = next(facts for facts in (await stash.list()).facts if facts.site_prefix)
        reason = "300 s have passed" if end == "out of time" else "it is not all fetched yet"
        assert facts.incomplete == f"5 pages not fetched: {reason}"
        site.pages["/docs/7.html"] = slow
        index = await stash.fetch_site(site.url("/docs/"))
        assert await listed(stash, index) == paths
        assert not index.facts.incomplete
        pages = [path for path in site.asked if re.fullmatch(r"/docs/\d*(\.html)?", path)]
        assert sorted(pages) == sorted([*paths, "/docs/7.html"])  # it never answered
        assert index.ref == facts.artifact_ref


async def test_a_site_that_answers_no_more_is_left_and_its_pages_wait(
    site: Site, open_stash: OpenStash
) -> None:
    put_pages(site, 40)
    for n in range(1, 40):
        site.put(f"/docs/{n}.html", b"", None, status=500)
    async with open_stash(**BOUNDS, fetch__per_host_concurrency=1) as stash:
        index = await stash.fetch_site(site.url("/docs/"))
        assert "the site answers no more" in index.facts.incomplete
        assert len([path for path in site.asked if path.endswith(".html")]) == 10


async def test_bytes_are_bounded(site: Site, open_stash: OpenStash) -> None:
    put_pages(site, 10)
    async with open_stash(**BOUNDS, ingest__site_bytes=1_000) as stash:
        index = await stash.fetch_site(site.url("/docs/"))
        assert "1,000 bytes were fetched, which is the limit" in index.facts.incomplete
        assert 1 <= (index.facts.members or 0) < 10


async def test_a_refresh_asks_for_all_again_and_says_what_changed(site: Site, stash: Stash) -> None:
    put_pages(site, 4)
    first = await stash.fetch_site(site.url("/docs/"))
    site.put("/docs/2.html", page("Page 2", "Another word stands here by now, all alone."))
    again = await stash.fetch_site(site.url("/docs/"), refresh=True)
    assert again.ref != first.ref
    assert again.facts.earlier_ref == first.ref
    assert again.facts.changed_passages == 1
    changes = (await again.slice(path="changes")).text
    assert "/docs/2.html Page 2" in changes
    assert site.asked.count("/docs/3.html") == 2


async def test_a_site_whose_address_redirects_to_another_port_is_refused(
    site: Site, open_stash: OpenStash
) -> None:
    class Other(Quiet):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(page("Start").encode())

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Other)) as port:
        there = f"http://127.0.0.1:{port}/docs/"
        url = site.put("/go", status=302, headers={"Location": there})
        hosts = [f"127.0.0.1:{allowed}" for allowed in (site.port, port)]
        async with open_stash(**BOUNDS, fetch__allow_hosts=hosts) as stash:
            with pytest.raises(BadArgument, match="redirects to another site"):
                await stash.fetch_site(url)


async def test_a_site_whose_address_redirects_to_another_host_is_refused(
    site: Site, open_stash: OpenStash
) -> None:
    there = f"http://localhost:{site.port}/docs/"
    site.put("/docs/", page("Start"))
    url = site.put("/go", status=302, headers={"Location": there})
    hosts = [f"127.0.0.1:{site.port}", f"localhost:{site.port}"]
    async with open_stash(**BOUNDS, fetch__allow_hosts=hosts) as stash:
        with pytest.raises(BadArgument, match="redirects to another site"):
            await stash.fetch_site(url)


@pytest.mark.parametrize(
    ("body", "canonical", "links"),
    [
        ('<base href="/b/"><a href=c>c</a> <area href="d#e">', "", "/b/c /b/d#e"),
        ('<a href=c rel="noopener NoFollow">c</a> <a href="d">d</a>', "", "/docs/d"),
        ('<meta name=Robots content="noindex, nofollow"><a href=c>c</a>', "", ""),
        ('<!-- <a href=c> --><script>"<a href=d>"</script><a href="mailto:a@b.example">', "", ""),
        ('<link rel=canonical href="/c"><a href="/c">c</a>', "/c", "/c"),
        ('<link rel=canonical href="/c"><link rel=canonical href="/d">', "", ""),
    ],
    ids=["base", "nofollow", "page nofollow", "no links", "canonical", "two canonicals"],
)
def test_links_are_read_out_of_the_bytes_of_a_page(
    body: str, canonical: str, links: str, tmp_path: Path
) -> None:
    file = tmp_path / "page"
    file.write_text(body)
    host = "https://site.example"
    found = page_links(file, "html", "utf-8", f"{host}/docs/a")
    plain = [link.removeprefix(host) for link in found.addresses]
    assert not found.has_more
    assert (found.canonical.removeprefix(host), plain) == (canonical, links.split())


# --- llms.txt ---------------------------------------------------------------------------------


async def test_the_outline_of_a_site_is_read_by_path_of_any_page(
    site: Site, open_stash: OpenStash
) -> None:
    url = site.put("/docs/a/b.html", page("B"))
    site.put("/docs/llms.txt", "# Docs\n\n- [A](/docs/a/)\n", "text/plain")
    site.put("/llms-full.txt", "# All of it\n\nEvery word.\n", "text/markdown")
    async with open_stash() as stash:
        artifact = await stash.fetch(url)
        assert "site" in artifact.facts.paths
        outline = await artifact.slice(path="site")
        assert outline.text.startswith("# Docs\n")
        assert outline.facts.final_url == site.url("/docs/llms.txt")
        assert (await artifact.slice(path="site/full")).text.startswith("# All of it")
        assert site.asked == [
            "/docs/a/b.html",
            "/docs/llms.txt",
            "/docs/llms-full.txt",
            "/llms-full.txt",
        ]


@pytest.mark.parametrize(
    ("body", "media_type", "status", "headers"),
    [
        (page("Not found"), "text/html", 200, {}),
        (page("Labelled as text"), "text/plain", 200, {}),
        ("", "text/plain", 200, {}),
        (json.dumps({"error": "none"}), "application/json", 200, {}),
        ("gone", "text/plain", 404, {}),
        ("", None, 302, {"Location": "http://localhost:1/login"}),
    ],
    ids=["page", "page as text", "empty", "json", "404", "away"],
)
async def test_a_site_without_an_outline_says_so_and_keeps_nothing(
    body: str,
    media_type: str | None,
    status: int,
    headers: dict[str, str],
    site: Site,
    open_stash: OpenStash,
) -> None:
    url = site.put("/a.html", page("A"))
    for name in ("/llms.txt", "/llms-full.txt"):
        site.put(name, body, media_type, status=status, headers=headers)
    async with open_stash() as stash:
        artifact = await stash.fetch(url)
        for _ in range(2):
            with pytest.raises(NoText, match=r"has no llms\.txt and no llms-full\.txt"):
                await artifact.slice(path="site")
        assert (await stash.list()).total == 1


async def test_llms_txt_names_the_pages_of_a_site_without_a_sitemap(
    site: Site, stash: Stash
) -> None:
    site.put("/docs/", page("Start"))
    site.put("/docs/1", page("One"))
    site.put("/llms.txt", "- [One](/docs/1): the first\n- [Other](/blog/1)\n", "text/plain")
    index = await stash.fetch_site(site.url("/docs/"))
    assert await listed(stash, index) == ["/docs/", "/docs/1"]
    assert index.facts.structure_info == "2 pages by llms.txt"


async def test_a_page_that_was_fetched_once_has_no_changes(
    site: Site, open_stash: OpenStash
) -> None:
    async with open_stash() as stash:
        artifact = await stash.fetch(site.put("/a.html", page("A")))
        with pytest.raises(OutOfRange, match="no earlier text"):
            await artifact.slice(path="changes")
