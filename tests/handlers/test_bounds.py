"""What a document may cost. Some bounds are set low here, so that little reaches them."""

import gzip

import pytest

from fetchstash.errors import NoText
from fetchstash.handlers import ExtractLimits, Hints, handler_named
from fetchstash.handlers._html._element import HARMLESS_TAGS, MAX_ATTRIBUTES, MAX_DEPTH, check
from tests.handlers.conftest import Pack, Read, Save
from tests.handlers.test_archive import part, tar_of
from tests.handlers.test_rtf import rtf
from tests.handlers.test_sheets import Workbook, number, xlsx

__all__ = ["xlsx"]  # a fixture of another module


def test_a_tar_bomb_stops_at_its_bound_and_keeps_what_was_listed(
    save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fetchstash.handlers._archive._members.MAX_UNPACKED", 5_000_000)
    source = save(gzip.compress(tar_of({"first": b"x", "bomb": bytes(20_000_000), "last": b"y"})))
    extracted = handler_named("archive").extract(source, Hints(), ExtractLimits())
    assert extracted.parts is not None
    texts: list[str] = []
    with pytest.raises(NoText, match="unpacks to more than 5,000,000 bytes"):
        texts.extend(piece.text for piece in extracted.parts)
    parts = iter(handler_named("archive").extract(source, Hints(), ExtractLimits()).parts or ())
    assert [next(parts).text, next(parts).text] == ["Size\tName\n", "1\tfirst\n20000000\tbomb\n"]


def test_a_member_that_is_a_bomb_stops_at_its_bound(
    save: Save, pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fetchstash.handlers._archive._members.MAX_MEMBER", 1_000_000)
    with pytest.raises(NoText, match=r"(larger|more) than 1,000,000 bytes"):
        part(save(pack({"bomb.txt": bytes(5_000_000)})), "bomb.txt")
    with pytest.raises(NoText, match=r"(larger|more) than 1,000,000 bytes"):
        part(save(tar_of({"bomb.txt": bytes(5_000_000)})), "bomb.txt")


def test_a_document_of_too_many_tokens_is_cut_and_says_so(
    save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fetchstash.handlers._office._rtf._MAX_TOKENS", 1_000)
    parts = (
        handler_named("rtf").extract(save(rtf(rb"x\par " * 2_000)), Hints(), ExtractLimits()).parts
    )
    texts: list[str] = []
    with pytest.raises(NoText, match="only its first 1,000 control words"):
        texts.extend(part.text for part in parts or ())
    assert "".join(texts).startswith("x\n\nx\n\n")


@pytest.mark.parametrize(("cell", "refused"), [("T50", False), ("T51", True), ("XFD1048576", True)])
def test_cells_that_lie_too_far_apart_are_refused(
    read: Read, xlsx: Workbook, monkeypatch: pytest.MonkeyPatch, cell: str, refused: bool
) -> None:
    monkeypatch.setattr("fetchstash.handlers._data._sheet_cells._MAX_SPAN", 1_000)
    data = xlsx({"S": f"<row>{number('A1', 1)}</row><row>{number(cell, 2)}</row>"})
    if refused:
        with pytest.raises(NoText, match="its cells lie too far apart"):
            read("sheets", data)
    else:
        assert read("sheets", data)[1].count("\n") == 4


@pytest.mark.parametrize("separator", [" ", "", "/", "\n"])
def test_attributes_beyond_the_limit_are_left_out(separator: str) -> None:
    attributes = separator.join(f'a{n}="{n}"' for n in range(5_000))
    checked, _ = check(f"<p {attributes}>The gate is open.</p>")
    assert checked.count("=") == MAX_ATTRIBUTES
    assert checked.endswith(">The gate is open.</p>")


@pytest.mark.parametrize(
    "attribute", ['a="b c" ', "a='b'", "a=b/c/d ", "a = ", "a=b/c='d e'/", 'a="', "a "]
)
def test_a_tag_of_few_attributes_costs_no_combinations(attribute: str) -> None:
    source = f"<p {attribute * (MAX_ATTRIBUTES // 2 - 9)}<>gate</p>"
    assert check(source)[0] == source


@pytest.mark.parametrize("equals", ["=", "='a'", '="'])
def test_a_tag_of_more_equals_signs_than_one_match_takes_is_one_tag(equals: str) -> None:
    source = "<div>" * 2 * HARMLESS_TAGS + f"<div {equals * 2_500}>gate"
    assert check(source)[0] == "<div>" * MAX_DEPTH + "gate"
