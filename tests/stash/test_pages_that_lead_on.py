"""Pages without text that lead to another address: that is fetched instead, as a redirect."""

import pytest

from fetchstash.render import as_shown
from fetchstash.render._texts import SENTENCE
from fetchstash.stash import Stash
from tests.loopback import Site
from tests.public import NAME
from tests.stash.conftest import OpenStash

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]


def put(site: Site, path: str, *page: str) -> str:
    site.put(path, *page)
    return NAME + path


LEADING = {
    "a refresh": "<meta http-equiv=refresh content='0; url={}'>",
    "a lone frame": "<!DOCTYPE html><title>t</title><iframe src='{}'></iframe>",
}


@pytest.mark.parametrize("html", LEADING.values(), ids=LEADING)
async def test_a_page_that_only_leads_on_is_followed_to_the_text(
    html: str, site: Site, public: Stash
) -> None:
    url = put(site, "/a", html.format("/b"))
    site.put("/b", html.format("/c.txt"))
    end = put(site, "/c.txt", "the text", "text/plain")
    artifact = await public.fetch(url)
    assert await artifact.text() == "the text"
    assert (artifact.facts.source_url, artifact.facts.final_url) == (url, end)
    assert (await public.list()).total == 1
    assert (await public.get(url)).ref == artifact.ref
    again = await public.fetch(url, refresh=True)
    assert again.ref == artifact.ref


@pytest.mark.parametrize(
    ("header", "body", "media_type", "leads"),
    [
        ("0; url=/b", "", None, True),
        ("0;URL='/b'", "<p>One moment, please.</p>", "text/html", True),
        ("3, /b", "One moment, please.", "text/plain", True),
        ("0; url=/b", "<p>" + "Words that a reader came for. " * 20, "text/html", False),
        ("99; url=/b", "<p>Wait.</p>", "text/html", False),
        ("30", "<p>This page is read again.</p>", "text/html", False),
        ("0; url=javascript:x", "<p>Wait.</p>", "text/html", False),
        ("0; url=http://10.0.0.1/x", "<p>Wait.</p>", "text/html", False),
    ],
)
async def test_a_refresh_field_leads_on_as_the_element_does(
    header: str, body: str, media_type: str | None, leads: bool, site: Site, public: Stash
) -> None:
    site.put("/a", body, media_type, headers={"Refresh": header})
    put(site, "/b", "the text", "text/plain")
    artifact = await public.fetch(f"{NAME}/a")
    assert (artifact.facts.final_url == f"{NAME}/b") == leads
    assert (await public.list()).total == 1
    assert len(site.asked) == 1 + leads


@pytest.mark.parametrize(
    ("final", "words"),
    [("/", "led to a site's home page"), ("/login?next=%2Fa", "led to a page to sign in")],
)
async def test_a_landing_elsewhere_is_said_in_one_line_and_in_the_facts(
    final: str, words: str, site: Site, public: Stash
) -> None:
    site.put("/docs/a", status=302, headers={"Location": final})
    site.put("/other", "words")
    site.put(final, "<h1>Sign in</h1><form><input name=u><input type=password></form>")
    artifact = await public.fetch(f"{NAME}/docs/a")
    lines = [line for line in as_shown(artifact).splitlines() if words in line]
    assert len(lines) == 1
    assert artifact.facts.landed == ("home" if final == "/" else "login")
    signs = [line for line in as_shown(artifact).splitlines() if "cannot be fetched" in line]
    assert len(signs) == 1
    assert not (await public.fetch(f"{NAME}/other")).facts.landed


async def test_pages_that_lead_in_a_circle_end_with_the_page(
    site: Site, open_public: OpenStash
) -> None:
    url = put(site, "/a", LEADING["a refresh"].format("/a"))
    async with open_public(fetch__max_redirects=3) as stash:
        artifact = await stash.fetch(url)
        assert artifact.facts.page_verdict == "leads_on"
        assert (await stash.list()).total == 1
    assert len(site.asked) == 4


async def test_a_page_that_leads_to_itself_is_kept_when_it_is_fetched_again(
    site: Site, public: Stash
) -> None:
    site.put("/a", "<p>One moment, please.</p>", headers={"Refresh": "0; url=/a"})
    first = await public.fetch(f"{NAME}/a")
    again = await public.fetch(f"{NAME}/a", refresh=True)
    assert again.ref == first.ref
    assert await again.text() == "One moment, please.\n"


async def test_a_page_that_leads_inside_is_shown_and_not_followed(
    site: Site, public: Stash
) -> None:
    url = put(site, "/a", LEADING["a refresh"].format("http://10.0.0.1/x"))
    artifact = await public.fetch(url)
    assert artifact.facts.leads_to == "http://10.0.0.1/x"
    several = as_shown((artifact, artifact))
    for shown in (as_shown(artifact), several):
        assert "[The page leads to another address. Fetch that.]" in shown
        assert f'source="{url}">\nhttp://10.0.0.1/x\n</untrusted-' in shown


@pytest.mark.parametrize("exempted", ["fetch.allow_hosts", "fetch.allow_nets"])
@pytest.mark.parametrize("html", LEADING.values(), ids=LEADING)
async def test_a_page_of_a_host_that_the_operator_exempted_is_not_followed(
    html: str, exempted: str, site: Site, open_public: OpenStash
) -> None:
    url = put(site, "/a", html.format("/b"))
    put(site, "/b", "the text")
    value = ["site.example"] if exempted == "fetch.allow_hosts" else ["93.184.215.0/24"]
    async with open_public(**{exempted: value}) as stash:
        artifact = await stash.fetch(url)
    assert (artifact.facts.page_verdict, artifact.facts.leads_to) == ("leads_on", f"{NAME}/b")
    assert site.asked == ["/a"]


SHELL = "<title>t</title>{}<div id=root></div><script src=/app.js></script>"
MARKDOWN = "<link rel=alternate type=text/markdown href=/a.md>"


LINKS = "<a href=/x>Opening hours</a> " * 40
MENU, SCRIPT = f"<nav>{LINKS}</nav>", "<script src=/app.js></script>"
MENUS = {
    "an empty element for scripts": f"{{}}<div>{LINKS}</div><div id=root></div>{SCRIPT}",
    "nothing outside of the chrome": f"{{}}{MENU}<footer><a href=/i>Imprint</a></footer>{SCRIPT}",
}


@pytest.mark.parametrize("menu", MENUS.values(), ids=MENUS)
async def test_a_shell_of_menus_is_followed_to_its_markdown(
    menu: str, site: Site, public: Stash
) -> None:
    url = put(site, "/a", menu.format(MARKDOWN))
    end = put(site, "/a.md", "# Gates\n\nOpen at nine.\n", "text/markdown")
    artifact = await public.fetch(url)
    assert await artifact.text() == "# Gates\n\nOpen at nine.\n"
    assert artifact.facts.final_url == end


@pytest.mark.parametrize("menu", MENUS.values(), ids=MENUS)
async def test_a_shell_of_menus_names_the_markdown_that_is_not_there(
    menu: str, site: Site, public: Stash
) -> None:
    artifact = await public.fetch(put(site, "/a", menu.format(MARKDOWN)))
    assert artifact.facts.page_verdict == "empty_shell"
    assert artifact.facts.leads_to == f"{NAME}/a.md"
    shown = as_shown(artifact)
    assert "Opening hours" not in shown
    assert f"{NAME}/a.md" in shown


@pytest.mark.parametrize(
    "page",
    [
        f"<h1>Hours</h1>{LINKS}{SCRIPT}",
        MENU,
        f"{MENU}<p>The gate is open from nine to five each day.</p>{SCRIPT}",
    ],
    ids=["a list of links", "no scripts", "a sentence"],
)
async def test_links_with_more_than_menus_are_a_page(page: str, site: Site, public: Stash) -> None:
    artifact = await public.fetch(put(site, "/a", page))
    assert artifact.facts.page_verdict == ""


@pytest.mark.parametrize(
    ("field", "is_twin"),
    [
        ('</a.md>; rel="alternate"; type="text/markdown"', True),
        ("</b>; rel=next, </a.md>; rel=alternate; type=text/markdown", True),
        ('</a.md>; rel="alternate"; type="application/json"', False),
        ("<http://10.0.0.1/a.md>; rel=alternate; type=text/markdown", False),
    ],
)
async def test_the_link_field_names_the_markdown_as_the_page_does(
    field: str, is_twin: bool, site: Site, public: Stash
) -> None:
    site.put("/a", SHELL.format(""), headers={"Link": field})
    put(site, "/a.md", "# Gates\n\nOpen at nine.\n", "text/markdown")
    artifact = await public.fetch(f"{NAME}/a")
    assert (artifact.facts.final_url == f"{NAME}/a.md") is is_twin


async def test_a_page_of_scripts_is_followed_to_its_markdown(site: Site, public: Stash) -> None:
    url = put(site, "/a", SHELL.format(MARKDOWN))
    end = put(site, "/a.md", "# Gates\n\nOpen at nine.\n", "text/markdown")
    artifact = await public.fetch(url)
    assert "Open at nine." in await artifact.text()
    assert (artifact.facts.final_url, artifact.facts.page_verdict) == (end, "")
    assert (await public.list()).total == 1


@pytest.mark.parametrize(
    "link", [MARKDOWN, "<link rel=alternate type=application/rss+xml href=/a/f>"]
)
async def test_an_empty_page_names_its_markdown_or_feed_and_is_not_followed(
    link: str, site: Site, public: Stash
) -> None:
    url = put(site, "/a", f"<title>t</title>{link}")
    artifact = await public.fetch(url)
    assert site.asked == ["/a"]
    assert (artifact.facts.page_verdict, artifact.facts.extracted_chars) == ("no_text", None)
    address = NAME + ("/a.md" if link == MARKDOWN else "/a/f")
    shown = as_shown(artifact)
    assert f"Fetch that.]\n{SENTENCE}\n<untrusted-" in shown
    assert f">\n{address}\n</untrusted-" in shown
    assert artifact.facts.leads_to == address


@pytest.mark.parametrize("body", [SHELL.format(MARKDOWN), SHELL.format(""), ""])
async def test_a_page_of_scripts_stays_where_its_alternate_has_no_text(
    body: str, site: Site, public: Stash
) -> None:
    url = put(site, "/a", SHELL.format(MARKDOWN))
    site.put("/a.md", body)
    artifact = await public.fetch(url)
    assert (artifact.facts.final_url, artifact.facts.page_verdict) == (url, "empty_shell")
    assert (await public.list()).total == 1
    assert (await public.get(url)).ref == artifact.ref
    assert len(site.asked) == 2
