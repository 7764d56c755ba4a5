"""Word and PowerPoint 97 to 2003; encrypted, older and damaged files are reported."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import lzma
import random
import struct
from contextlib import suppress
from pathlib import Path

import pytest

from fetchstash.errors import NoText
from fetchstash.handlers import ExtractLimits, Hints, format_of, handler_named, route_file
from tests.handlers.compounds import compound
from tests.handlers.conftest import Read, Save, check_facts, reads, unreadable

# Converted by LibreOffice 7.4 from files by python-docx and python-pptx.
DATA = Path(__file__).parent / "data"
REPORT = (DATA / "report.doc").read_bytes()
TALK = lzma.decompress((DATA / "talk.ppt.xz").read_bytes())


def test_a_document_keeps_headings_lists_and_tables(read: Read) -> None:
    extracted, text = read("old_office", REPORT)
    assert text == (
        "Quarterly report\n\n"
        "# Results\n\n"
        "Sales rose by 12 % in Łódź and “Zürich”.\n\n"
        "A line\nbroken, then a tab\tand a  end.\n\n"
        "- First item\n- Second item\n- Step one\n\n"
        "| Town | Sales | Note |\n| --- | --- | --- |\n| Łódź | 12 |  |\n| Zürich | 7 | low |\n\n"
        "## Outlook\n\n"
        "日本語 and emoji 😀 at the end.\n\n"
    )
    check_facts(
        extracted,
        title="Quarterly report",
        author="Ann Example",
        published="2013-12-23",
        hidden_removed=1,
    )


def test_slides_are_pages_with_titles_notes_and_pictures(read: Read) -> None:
    extracted, text = read("old_office", TALK)
    assert [part.starts_page for part in extracted.parts or ()] == [True, True, True]
    assert text == (
        "## Slide 1: Results of 2026\n\n- By Ann Example\n\n"
        "## Slide 2: Sales\n\nŁódź rose\n\nby 12 %\n\nNotes: Say this slowly.\n\n"
        "## Slide 3: Figures\n\nTown\n\nSales\n\nZürich\n\n7\n\nA box of text\n\n(1 picture)\n\n"
    )
    check_facts(extracted, pages=3, structure_info="3 slides, 1 picture")


def word(text: bytes, *, version: int = 0xC1, flags: int = 0x200) -> bytes:
    """Return a document of one piece of 8-bit text without properties."""
    header = bytearray(0x800)
    struct.pack_into("<HH6xH", header, 0, 0xA5EC, version, flags)
    struct.pack_into("<l", header, 0x4C, len(text))
    pieces = b"\2" + struct.pack("<L2LHLH", 16, 0, len(text), 0, 0x40000000 | 2 * len(header), 0)
    struct.pack_into("<2L", header, 0x1A2, 0, len(pieces))
    return compound({"WordDocument": bytes(header) + text + bytes(4_096), "1Table": pieces})


MARKS = {
    "breaks": (b"one\rtwo\x0bthree\x0cfour", "one\n\ntwo\nthree\n\nfour\n\n"),
    "link": (b'see \x13HYPERLINK "https://example.org/"\x14the site\x15.\r', "see [the site](https://example.org/).\n\n"),
    "fields in fields": (b"page \x13PAGE\x147\x15 of \x13NUMPAGES \x13X\x14in\x15\x149\x15\r", "page 7 of 9\n\n"),
    "field over paragraphs": (b"\x13TOC\rcode\x14one\rtwo\x15 three\r", "one\n\ntwo three\n\n"),
    "signs": (b"non\x1ebreaking so\x1fft \x01\x02\x05", "non-breaking soft\n\n"),
    "cp1252": (b"quotes \x93so\x94", "quotes “so”\n\n"),
}  # fmt: skip
test_marks_within_the_text_are_read = reads(
    "old_office", {name: (word(body), text) for name, (body, text) in MARKS.items()}
)


test_an_unreadable_document_gives_its_reason = unreadable("old_office", {
    "package": (compound({"EncryptedPackage": b"x"}), "encrypted and opens only with its password"),
    "Word": (word(b"x", flags=0x300), "encrypted and opens only with its password"),
    "Word 95": (word(b"x", version=0x65), "documents of Word before 97 are not read"),
    "Word cut": (compound({"WordDocument": b"x"}), "damaged or cut short"),
    "PowerPoint cut": (compound({"PowerPoint Document": b"x"}), "damaged or cut short"),
    "PowerPoint encrypted": (compound( { "PowerPoint Document": b"x", "Current User": struct.pack("<8xLLL", 20, 0xF3D1C4DF, 0) } ), "encrypted"),
    "Word empty": (word(b"\r\r"), "holds no text"),
})  # fmt: skip


def test_a_text_that_a_thousand_pieces_share_is_not_read(read: Read) -> None:
    header = bytearray(0x800)
    struct.pack_into("<HH6xH", header, 0, 0xA5EC, 0xC1, 0x200)
    bounds = struct.pack("<1001L", *range(0, 4_004_000, 4_000))
    shared = struct.pack("<HLH", 0, 0x40000000 | 2 * len(header), 0) * 1_000
    pieces = b"\2" + struct.pack("<L", len(bounds + shared)) + bounds + shared
    struct.pack_into("<2L", header, 0x1A2, 0, len(pieces))
    data = compound({"WordDocument": bytes(header) + b"x" * 4_096, "1Table": pieces})
    with pytest.raises(NoText, match="damaged or cut short"):
        read("old_office", data)


def test_a_compound_file_of_something_else_has_no_text(read: Read) -> None:
    assert read("old_office", compound({"Thumbs": b"x"}))[0].parts is None


@pytest.mark.parametrize("whole", [REPORT, TALK[:60_000] + TALK[-20_000:]], ids=["doc", "ppt"])
def test_damage_does_no_harm(read: Read, whole: bytes) -> None:
    chance = random.Random(7)
    for _ in range(100):
        broken = bytearray(whole)
        for _ in range(20):
            broken[chance.randrange(512, len(broken))] = chance.randrange(256)
        with suppress(NoText):
            read("old_office", bytes(broken))


BEFORE_97 = {
    "Word 2": (b"\xdb\xa5\x2d\0", "document of Word before 97"),
    "Word 1": (b"\x9b\xa5\x21\0", "document of Word before 97"),
    "Word for Macintosh 5": (b"\xfe\x37\0\x23", "document of Word before 97"),
    "PowerPoint 4": (compound({"PP40": bytes(5_000)}), "presentation of PowerPoint before 97"),
    "PowerPoint 3": (b"\xed\xde\xad\x0b", "presentation of PowerPoint before 97"),
}


@pytest.mark.parametrize(("data", "word"), list(BEFORE_97.values()), ids=list(BEFORE_97))
@pytest.mark.parametrize("label", ["application/msword", "application/octet-stream"])
def test_a_document_of_an_office_before_97_is_named_and_says_that_it_is_not_read(
    save: Save, data: bytes, word: str, label: str
) -> None:
    source = save(data + bytes(600))
    decision = route_file(source, {"content-type": label}, "https://example.org/plan.doc")
    declared = format_of(decision)
    assert (decision.kind, declared.name(decision.media_type)) == ("office_doc", word)
    with pytest.raises(NoText, match=f"{word.partition(' ')[2]} are not read"):
        handler_named("old_office").extract(source, Hints(), ExtractLimits())
