"""Progress with messages, while downloading and while reading, in both eras."""

import re

import pytest

from fetchstash.cli.demo.site import make_pdf
from tests.loopback import Site
from tests.server.conftest import Connect
from tests.server.test_tools import ERAS, long_text

pytestmark = [pytest.mark.anyio, pytest.mark.long]


class Reports(list[tuple[float, float | None, str]]):
    """What was reported."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.append((progress, total, message or ""))


@pytest.mark.parametrize("mode", ERAS)
async def test_a_download_says_how_much_came_and_a_pdf_which_page_is_read(
    mode: str, site: Site, connect: Connect
) -> None:
    reports = Reports()
    pages = [f"Page {n}. " + long_text(2_000) for n in range(300)]
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


@pytest.mark.parametrize("mode", ERAS)
async def test_several_urls_are_counted(mode: str, site: Site, connect: Connect) -> None:
    reports = Reports()
    urls = [site.put(f"/{n}.txt", f"words {n}", "text/plain") for n in range(3)]
    async with connect(mode=mode) as client:
        await client.call_tool("fetch_content", {"urls": urls}, progress_callback=reports)
    assert [message for _, _, message in reports] == [f"fetched {n} of 3 URLs" for n in (1, 2, 3)]
