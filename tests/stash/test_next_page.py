"""The next page of a list is named, with the call that fetches it, and never fetched unasked."""

import json
from typing import Any

import pytest

from fetchstash.fetch import next_page
from fetchstash.render import as_shown
from fetchstash.stash import Stash
from tests.loopback import Site

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ('<https://e.org/?page=2>; rel="next", <https://e.org/?page=9>; rel="last"', "?page=2"),
        ('</?page=9>; rel="last", </?page=2>; rel=next', "/?page=2"),
        ('</?page=2>; title="a, b"; rel="prefetch next"', "/?page=2"),
        ('</style.css>; rel="preload"; as=style', ""),
        ('</a>; rel="nextgen"', ""),
        ("", ""),
        ("<" * 60_000, ""),
        ("</a>;" * 20_000, ""),
    ],
)
def test_the_link_header_names_the_next_page(link: str, target: str) -> None:
    found = next_page({"link": link})
    assert found.endswith(target) if target else found == ""


BODIES: dict[str, Any] = {
    "Django REST": {"count": 90, "next": "/list?page=2", "results": []},
    "JSON:API": {"links": {"next": "/list?page=2"}, "data": []},
    "JSON:API with an object": {"links": {"next": {"href": "/list?page=2"}}, "data": []},
    "HAL": {"_links": {"self": {"href": "/list"}, "next": {"href": "/list?page=2"}}},
    "OData": {"@odata.nextLink": "/list?page=2", "value": []},
    "Laravel": {"data": [], "next_page_url": "/list?page=2"},
    "Facebook": {"paging": {"next": "/list?page=2"}, "data": []},
}


@pytest.mark.parametrize("shape", BODIES)
async def test_the_body_of_an_api_names_the_next_page(shape: str, stash: Stash, site: Site) -> None:
    url = site.put("/list", json.dumps(BODIES[shape]), "application/json")
    artifact = await stash.fetch(url)
    assert artifact.facts.next_url == site.url("/list?page=2")
    call = f'[Next page: fetch_content(url="{site.url("/list?page=2")}")]'
    assert call in as_shown(artifact).splitlines()
    assert site.asked == ["/list"]


async def test_the_head_of_a_page_and_the_header_name_it_too(stash: Stash, site: Site) -> None:
    page = '<link rel="next" href="/b/3"><h1>Part 2</h1><p>Some words that are a text.</p>'
    shown = as_shown(await stash.fetch(site.put("/b/2", page)))
    assert f'[Next page: fetch_content(url="{site.url("/b/3")}")]' in shown
    headers = {"Link": '</issues?after=Y3Vyc29yOnYyOpK5MjAyNg%3D%3D&page=2>; rel="next"'}
    listed = site.put("/issues", "[1, 2]", "application/json", headers=headers)
    assert "after=Y3Vyc29yOnYyOpK5MjAyNg%3D%3D&page=2" in as_shown(await stash.fetch(listed))


@pytest.mark.parametrize(
    "target",
    ["https://evil.test/list?page=2", "/obey-me?page=2", "/list?a=" + "x" * 400, "/list"],
)
async def test_words_of_a_server_do_not_stand_outside_the_fence(
    target: str, stash: Stash, site: Site
) -> None:
    headers = {"Link": f'<{target}>; rel="next"'}
    url = site.put("/list", "one\ntwo\n", "text/plain", headers=headers)
    assert "[Next page:" not in as_shown(await stash.fetch(url))


async def test_a_secret_in_its_address_is_not_kept(stash: Stash, site: Site) -> None:
    headers = {"Link": '</list?page=2&access_token=abcdefghijkl>; rel="next"'}
    url = site.put("/list", "one\ntwo\n", "text/plain", headers=headers)
    assert (await stash.fetch(url)).facts.next_url == ""
