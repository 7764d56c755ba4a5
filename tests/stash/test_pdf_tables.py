"""Tables of a PDF are found by rows and by their names."""

import pytest

from fetchstash.render import as_shown
from fetchstash.stash import Stash
from tests.handlers.pdf_pages import pages, text, unmapped
from tests.loopback import Site

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]


def table(first: int, name: str) -> bytes:
    """Return a page that is a table of 30 rows under a header."""
    numbered = [(str(n), f"{name} {n}", str(n * n)) for n in range(first, first + 30)]
    rows = [("Number", "Name", "Square"), *numbered]
    return b"".join(
        text(60 + 120 * column, 760 - 20 * line, cell)
        for line, row in enumerate(rows)
        for column, cell in enumerate(row)
    )


async def test_rows_of_a_table_across_pages_count_on(stash: Stash, site: Site) -> None:
    data = pages(table(1, "gate"), table(31, "gate"))
    artifact = await stash.fetch(site.put("/gates.pdf", data, "application/pdf"))
    found = await artifact.slice(unit="rows", start=30, end=31)
    assert found.text == "| 30 | gate 30 | 900 |\n| 31 | gate 31 | 961 |\n"
    assert (await artifact.slice(unit="pages", start=2)).text.startswith("| 31 | gate 31 |")


async def test_one_of_several_tables_is_named_as_the_path(stash: Stash, site: Site) -> None:
    data = pages(table(1, "gate"), b"", table(100, "sluice"))
    artifact = await stash.fetch(site.put("/gates.pdf", data, "application/pdf"))
    assert artifact.facts.structure_info == (
        "2 tables: Table 1 (page 1), 30 rows; Table 2 (page 3), 30 rows"
    )
    found = await artifact.slice(path="Table 2 (page 3)", unit="rows", start=1, end=1)
    assert found.text == "| 100 | sluice 100 | 10000 |\n"


async def test_a_page_of_garbage_comes_with_the_call_for_its_picture(
    stash: Stash, site: Site
) -> None:
    data = unmapped("The wardens open the lower gate at the mark, and it fills slowly. " * 6)
    artifact = await stash.fetch(site.put("/old.pdf", data, "application/pdf"))
    look = f'artifact_slice(artifact_ref="{artifact.ref}", render="image", unit="pages", start=2)'
    assert f"[Fonts without a mapping to text: 1 page. {look}]" in as_shown(artifact)
