"""A file that a source host shows as a page is fetched itself."""

from typing import Any

import pytest

from fetchstash.errors import FetchFailed
from fetchstash.fetch import Fetched
from fetchstash.stash import Stash, open_stash
from tests.loopback import Site

pytestmark = pytest.mark.anyio


class Away:
    """A fetcher that notes what is asked for, and reaches nothing."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def fetch(self, url: str, *_: Any, **__: Any) -> Fetched:
        self.asked.append(url)
        raise FetchFailed("Nothing is reached.", "Look elsewhere.")

    async def check(self, url: str, final_url: str = "") -> None:
        pass

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize(
    ("page", "raw"),
    [
        ("https://github.com/o/r/blob/main/a/b.py", "https://raw.githubusercontent.com/o/r/main/a/b.py"),
        ("https://gitlab.com/g/s/r/-/blob/v1/b.py", "https://gitlab.com/g/s/r/-/raw/v1/b.py"),
        ("https://codeberg.org/o/r/src/branch/main/b.py", "https://codeberg.org/o/r/raw/branch/main/b.py"),
        ("https://github.com/o/r/blob/main/b.py?plain=1", ""),
        ("https://github.com/o/r/tree/main/a", ""),
        ("https://github.com/o/r/issues/7", ""),
        ("https://example.org/blob/main/b.py", ""),
        ("https://user@gitlab.com/g/r/-/blob/v1/b.py", ""),
    ],
)  # fmt: skip
async def test_the_page_of_a_file_has_a_raw_address(page: str, raw: str) -> None:
    fetcher = Away()
    async with open_stash({"store.url": "memory:"}, fetcher=fetcher) as stash:
        with pytest.raises(FetchFailed):
            await stash.fetch(page)
    assert fetcher.asked == ([raw, page] if raw else [page])


async def test_the_file_is_fetched_and_known_by_the_address_of_its_page(
    stash: Stash, site: Site
) -> None:
    page = site.put("/g/r/-/blob/v1/b.py", "<main><p>print</p></main>")
    site.put("/g/r/-/raw/v1/b.py", "print(1)\n", "text/plain; charset=utf-8")
    artifact = await stash.fetch(page)
    assert await artifact.text() == "print(1)\n"
    assert (artifact.facts.content_kind, artifact.facts.source_url) == ("code", page)
    assert (await stash.fetch(page)).ref == artifact.ref


@pytest.mark.parametrize("raw", [None, "<form>Sign in</form>"], ids=["missing", "a form"])
async def test_a_file_that_is_not_there_leaves_its_page(
    stash: Stash, site: Site, raw: str | None
) -> None:
    page = site.put("/g/r/-/blob/v1/b.py", "<main><p>A file of the gates, as a page.</p></main>")
    if raw:
        site.put("/g/r/-/raw/v1/b.py", raw)
    assert "A file of the gates" in await (await stash.fetch(page)).text()
