"""File names: the server's or the path's, never one that leaves its folder."""

import pytest
from hypothesis import given, strategies as st

from fetchstash.fetch._name import disposition_name, file_name, safe_name
from fetchstash.fetch._url import parse

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


@pytest.mark.parametrize(("header", "name"), DISPOSITIONS.values(), ids=DISPOSITIONS)
def test_content_disposition_gives_the_name(header: str, name: str) -> None:
    assert disposition_name(header) == name


@pytest.mark.parametrize(
    ("given_name", "safe"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\x\\y.txt", "y.txt"),
        ("..", ""),
        (".", ""),
        ("a\x00b\r\nc", "ab c"),
        ("a:b|c", "a_b_c"),
        ("  ", ""),
    ],
)
def test_a_name_has_no_folders_and_no_control_characters(given_name: str, safe: str) -> None:
    assert safe_name(given_name) == safe


def test_a_long_name_keeps_its_extension() -> None:
    assert len(safe_name("a" * 500 + ".pdf")) == 200
    assert safe_name("a" * 500 + ".pdf").endswith("a.pdf")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://a.org/x/report%20final.pdf?v=1", "report final.pdf"),
        ("https://a.org/x/", "x"),
        ("https://a.org/", "a.org"),
        ("https://a.org/%2e%2e%2f%2e%2e", "a.org"),
    ],
)
def test_the_path_or_else_the_host_gives_the_name_if_no_header_does(url: str, name: str) -> None:
    assert file_name({}, parse(url, 8_192)) == name


@given(st.text(max_size=300))
def test_any_header_gives_a_name_that_stays_in_its_folder(header: str) -> None:
    name = safe_name(disposition_name(f"attachment; filename={header}"))
    assert len(name) <= 200
    assert not set(name) & set('/\\\x00\n\r<>:"|?*')
    assert name not in {".", ".."}
