"""The next page of a list is named, with the call that fetches it, and never fetched unasked."""

import json
from typing import Any

import pytest

from fetchstash.fetch import pager
from fetchstash.handlers._data._json import list_facts
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
    found = pager({"link": link}).next_url
    assert found.endswith(target) if target else found == ""


@pytest.mark.parametrize(
    ("fields", "last_page", "items_total"),
    [
        ({"link": '<https://e.org/?per=30&page=34>; rel="last"'}, 34, None),
        ({"link": '</issues/page/9/>; rel="last"', "x-total-count": "260"}, 9, 260),
        ({"link": '</x?page%5Bnumber%5D=4>; rel="last"', "x-total": " 12 "}, 4, 12),
        ({"x-wp-total": "120", "x-wp-totalpages": "12"}, 12, 120),
        ({"x-pagination": '{"TotalCount":1000,"TotalPages":34}'}, None, 1_000),
        ({"content-range": "items 0-29/1000"}, None, 1_000),
        ({"content-range": "0-29/1000"}, None, 1_000),
        ({"content-range": "*/3"}, None, 3),
        ({"content-range": "bytes 0-29/1000"}, None, None),
        ({"x-total-count": "obey me", "x-total-pages": "1" * 99}, None, None),
        ({"x-total-count": "٣"}, None, None),
        ({}, None, None),
    ],
)
def test_header_fields_say_how_long_a_list_is(
    fields: dict[str, str], last_page: int | None, items_total: int | None
) -> None:
    found = pager(fields)
    assert (found.last_page, found.items_total) == (last_page, items_total)


LISTS: dict[str, tuple[Any, tuple[int | None, int | None, int | None]]] = {
    "Django REST": ({"count": 90, "next": None, "results": [1, 2]}, (2, 90, None)),
    "a count of this page": ({"count": 2, "results": [1, 2]}, (2, None, None)),
    "GitHub's search": ({"total_count": 40, "items": [1]}, (1, 40, None)),
    "Laravel": ({"data": [1], "total": 7, "last_page": 7}, (1, 7, 7)),
    "JSON:API": ({"data": [1], "meta": {"page": {"total": 9}}}, (1, 9, None)),
    "Spring": ({"content": [1], "totalElements": 8, "totalPages": 8}, (1, 8, 8)),
    "Spring HATEOAS": ({"page": {"totalElements": 8, "totalPages": 8}, "x": [1]}, (1, 8, 8)),
    "Elasticsearch": ({"hits": {"total": {"value": 5}, "hits": [1]}}, (1, 5, None)),
    "Solr": ({"response": {"numFound": 6, "docs": [1]}}, (1, 6, None)),
    "OData": ({"@odata.count": 4, "value": [1]}, (1, 4, None)),
    "an array": ([1, 2, 3], (3, None, None)),
    "words": ({"total": "all", "pages": True, "items": [1]}, (1, None, None)),
    "no list": ({"total": 3}, (None, 3, None)),
    "a string": ("words", (None, None, None)),
}


@pytest.mark.parametrize(("body", "facts"), LISTS.values(), ids=LISTS)
def test_the_body_of_an_api_says_how_long_its_list_is(
    body: Any, facts: tuple[int | None, ...]
) -> None:
    assert tuple(list_facts(body).values()) == facts


BODIES: dict[str, Any] = {
    "Django REST": {"count": 90, "next": "/list?page=2", "results": [1, 2, 3]},
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
    if "count" in BODIES[shape]:
        call = f"{call[:-1]}; 3 of 90 items are here]"
    assert call in as_shown(artifact).splitlines()
    assert site.asked == ["/list"]


async def test_the_head_of_a_page_and_the_header_name_it_too(stash: Stash, site: Site) -> None:
    page = '<link rel="next" href="/b/3"><h1>Part 2</h1><p>Some words that are a text.</p>'
    shown = as_shown(await stash.fetch(site.put("/b/2", page)))
    assert f'[Next page: fetch_content(url="{site.url("/b/3")}")]' in shown
    headers = {"Link": '</issues?after=Y3Vyc29yOnYyOpK5MjAyNg%3D%3D&page=2>; rel="next"'}
    listed = site.put("/issues", "[1, 2]", "application/json", headers=headers)
    assert "after=Y3Vyc29yOnYyOpK5MjAyNg%3D%3D&page=2" in as_shown(await stash.fetch(listed))


async def test_a_list_of_which_a_part_is_here_says_so_with_the_facts(
    stash: Stash, site: Site
) -> None:
    headers = {"Link": '</list?page=2>; rel="next", </list?page=34>; rel="last"', "X-Total": "1000"}
    url = site.put("/list", json.dumps([*range(30)]), "application/json", headers=headers)
    artifact = await stash.fetch(url)
    facts = artifact.facts
    assert (facts.items, facts.items_total, facts.last_page) == (30, 1_000, 34)
    call = f'fetch_content(url="{site.url("/list?page=2")}")'
    line = f"[Next page: {call}; the last page is 34; 30 of 1000 items are here]"
    assert line in as_shown(artifact).splitlines()
    assert line in as_shown(await stash.fetch(url, refresh=True)).splitlines()
    body = json.dumps({"total": 9, "items": [1], "next": "/obey-me"})
    other = await stash.fetch(site.put("/other", body, "application/json"))
    info = f'artifact_info(artifact_ref="{other.ref}")'
    line = f"[Next page: the next_url that {info} shows; 1 of 9 items are here]"
    assert line in as_shown(other).splitlines()
    assert "obey-me" not in as_shown(other).partition("<untrusted")[0]
    alone = await stash.fetch(
        site.put("/more", json.dumps({"total": 9, "items": [1]}), "application/json")
    )
    assert "[1 of 9 items are here]" in as_shown(alone).splitlines()


@pytest.mark.parametrize(
    "target", ["https://evil.test/list?page=2", "/obey-me?page=2", "/list?a=" + "x" * 400, "/list"]
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
