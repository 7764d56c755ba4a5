"""File names: the server's or the path's, never one that leaves its folder."""

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from fetchstash.fetch import FetchLimits, HttpFetcher
from tests.fetch.sending import Answers, Make
from tests.loopback import Site

pytestmark = pytest.mark.anyio

DISPOSITIONS = {
    "plain": ('attachment; filename="report.pdf"', "report.pdf"),
    "token": ("attachment; filename=report.pdf", "report.pdf"),
    "inline": ('inline; filename="a b.txt"', "a b.txt"),
    "extended": ("attachment; filename*=UTF-8''na%C3%AFve.txt", "naïve.txt"),
    "extended goes first": (
        "attachment; filename=\"x.txt\"; filename*=UTF-8'en'%e2%82%ac.txt",
        "€.txt",
    ),
    "extended in Latin-1": ("attachment; filename*=iso-8859-1''%A3.txt", "£.txt"),
    "extended in an unknown charset": (
        "attachment; filename=x.txt; filename*=koi8-r''%A3.txt",
        "x.txt",
    ),
    "quoted characters": (r'attachment; filename="a\"b.txt"', 'a"b.txt'),
    "semicolon in quotes": ('attachment; filename="a;b.txt"', "a;b.txt"),
    "upper case": ('ATTACHMENT; FILENAME="x"', "x"),
    "none": ("attachment", ""),
    "first of two": ('attachment; filename="a"; filename="b"', "a"),
}


@pytest.fixture
def http(fetcher: Make) -> HttpFetcher:
    return fetcher()


async def name_under(site: Site, http: HttpFetcher, folder: Path, disposition: str) -> str:
    """Return the name of what comes with this header."""
    url = site.put("/x.bin", b"x", headers={"Content-Disposition": disposition})
    return (await http.fetch(url, folder)).name


@pytest.mark.parametrize(("header", "name"), DISPOSITIONS.values(), ids=DISPOSITIONS)
async def test_content_disposition_gives_the_name(
    site: Site, http: HttpFetcher, tmp_path: Path, header: str, name: str
) -> None:
    # That of the path where the header has none.
    expected = name.replace('"', "_") or "x.bin"
    assert await name_under(site, http, tmp_path, header) == expected


@pytest.mark.parametrize(
    ("given_name", "safe"),
    [
        ("../../etc/passwd", "passwd"), ("C:\\x\\y.txt", "y.txt"), ("..", ""), (".", ""),
        ("a\x00b\r\nc", "ab c"), ("a:b|c", "a_b_c"), ("  ", ""),
    ],
)  # fmt: skip
async def test_a_name_has_no_folders_and_no_control_characters(
    site: Site, http: HttpFetcher, tmp_path: Path, given_name: str, safe: str
) -> None:
    header = f"attachment; filename*=UTF-8''{quote(given_name, safe='')}"
    assert await name_under(site, http, tmp_path, header) == (safe or "x.bin")


async def test_a_long_name_keeps_its_extension(
    site: Site, http: HttpFetcher, tmp_path: Path
) -> None:
    name = await name_under(site, http, tmp_path, f"attachment; filename={'a' * 500}.pdf")
    assert len(name) == 200
    assert name.endswith("a.pdf")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/x/report%20final.pdf?v=1", "report final.pdf"),
        ("/x/", "x"),
        ("/", "a.test"),
        ("/%2e%2e%2f%2e%2e", "a.test"),
    ],
)
async def test_the_path_or_else_the_host_gives_the_name_if_no_header_does(
    site: Site, tmp_path: Path, path: str, name: str
) -> None:
    site.put(path, b"x")
    limits = FetchLimits(allow_hosts=("a.test",), respect_robots=False)
    http = HttpFetcher(limits, resolver=Answers("127.0.0.1"))
    fetched = await http.fetch(f"http://a.test:{site.port}{path}", tmp_path)
    await http.aclose()
    assert fetched.name == name


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=300), st.booleans())
async def test_any_header_gives_a_name_that_stays_in_its_folder(
    site: Site, http: HttpFetcher, tmp_path: Path, text: str, encoded: bool
) -> None:
    plain = "".join(char for char in text if char.isprintable() and char <= "\xff")
    value = f"*=UTF-8''{quote(text, errors='replace')}" if encoded else f"={plain}"
    name = await name_under(site, http, tmp_path, f"attachment; filename{value}")
    assert 0 < len(name) <= 200
    assert not set(name) & set('/\\\x00\n\r<>:"|?*')
    assert name not in {".", ".."}
