"""Word and PowerPoint 97 to 2003; encrypted, older and damaged files are reported."""

import lzma
import random
import struct
from contextlib import suppress
from pathlib import Path

import pytest

from fetchstash.errors import NoText
from fetchstash.handlers import ExtractLimits, Hints, format_of, handler_named, route_file
from tests.handlers.compounds import compound
from tests.handlers.conftest import Read, Save

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
    facts = extracted.facts
    assert (facts.title, facts.author) == ("Quarterly report", "Ann Example")
    assert (facts.published, facts.hidden_removed) == ("2013-12-23", 1)


def test_slides_are_pages_with_titles_notes_and_pictures(save: Save) -> None:
    extracted = handler_named("old_office").extract(save(TALK), Hints(), ExtractLimits())
    parts = list(extracted.parts or ())
    assert [part.starts_page for part in parts] == [True, True, True]
    assert "".join(part.text for part in parts) == (
        "## Slide 1: Results of 2026\n\n- By Ann Example\n\n"
        "## Slide 2: Sales\n\nŁódź rose\n\nby 12 %\n\nNotes: Say this slowly.\n\n"
        "## Slide 3: Figures\n\nTown\n\nSales\n\nZürich\n\n7\n\nA box of text\n\n(1 picture)\n\n"
    )
    assert (extracted.facts.pages, extracted.facts.structure_info) == (3, "3 slides, 1 picture")


def word(text: bytes, *, version: int = 0xC1, flags: int = 0x200) -> bytes:
    """Return a document of one piece of 8-bit text without properties."""
    header = bytearray(0x800)
    struct.pack_into("<HH6xH", header, 0, 0xA5EC, version, flags)
    struct.pack_into("<l", header, 0x4C, len(text))
    pieces = b"\2" + struct.pack("<L2LHLH", 16, 0, len(text), 0, 0x40000000 | 2 * len(header), 0)
    struct.pack_into("<2L", header, 0x1A2, 0, len(pieces))
    return compound({"WordDocument": bytes(header) + text + bytes(4_096), "1Table": pieces})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b"one\rtwo\x0bthree\x0cfour", "one\n\ntwo\nthree\n\nfour\n\n"),
        (b'see \x13HYPERLINK "https://example.org/"\x14the site\x15.\r', "see [the site](https://example.org/).\n\n"),
        (b"page \x13PAGE\x147\x15 of \x13NUMPAGES \x13X\x14in\x15\x149\x15\r", "page 7 of 9\n\n"),
        (b"\x13TOC\rcode\x14one\rtwo\x15 three\r", "one\n\ntwo three\n\n"),
        (b"non\x1ebreaking so\x1fft \x01\x02\x05", "non-breaking soft\n\n"),
        (b"quotes \x93so\x94", "quotes “so”\n\n"),
    ],
    ids=["breaks", "link", "fields in fields", "field over paragraphs", "signs", "cp1252"],
)  # fmt: skip
def test_marks_within_the_text_are_read(read: Read, text: bytes, shown: str) -> None:
    assert read("old_office", word(text))[1] == shown


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (compound({"EncryptedPackage": b"x"}), "encrypted and opens only with its password"),
        (word(b"x", flags=0x300), "encrypted and opens only with its password"),
        (word(b"x", version=0x65), "documents of Word before 97 are not read"),
        (compound({"WordDocument": b"x"}), "damaged or cut short"),
        (compound({"PowerPoint Document": b"x"}), "damaged or cut short"),
        (
            compound(
                {
                    "PowerPoint Document": b"x",
                    "Current User": struct.pack("<8xLLL", 20, 0xF3D1C4DF, 0),
                }
            ),
            "encrypted",
        ),
        (word(b"\r\r"), "holds no text"),
    ],
    ids=[
        "package",
        "Word",
        "Word 95",
        "Word cut",
        "PowerPoint cut",
        "PowerPoint encrypted",
        "Word empty",
    ],
)
def test_an_unreadable_document_gives_its_reason(read: Read, data: bytes, reason: str) -> None:
    with pytest.raises(NoText, match=reason):
        read("old_office", data)


def test_a_text_that_a_thousand_pieces_share_is_not_read(read: Read) -> None:
    header = bytearray(0x800)
    struct.pack_into("<HH6xH", header, 0, 0xA5EC, 0xC1, 0x200)
    bounds = struct.pack("<1001L", *range(0, 4_004_000, 4_000))
    pieces = (
        b"\2"
        + struct.pack("<L", len(bounds) + 8_000)
        + bounds
        + struct.pack("<HLH", 0, 0x40000000 | 2 * len(header), 0) * 1_000
    )
    struct.pack_into("<2L", header, 0x1A2, 0, len(pieces))
    with pytest.raises(NoText, match="damaged or cut short"):
        read(
            "old_office", compound({"WordDocument": bytes(header) + b"x" * 4_096, "1Table": pieces})
        )


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


@pytest.mark.parametrize(
    ("data", "word", "reason"),
    [
        (b"\xdb\xa5\x2d\0" + bytes(600), "document of Word before 97", "of Word before 97"),
        (b"\x9b\xa5\x21\0" + bytes(600), "document of Word before 97", "of Word before 97"),
        (b"\xfe\x37\0\x23" + bytes(600), "document of Word before 97", "of Word before 97"),
        (
            compound({"PP40": bytes(5_000)}),
            "presentation of PowerPoint before 97",
            "of PowerPoint before 97",
        ),
        (
            b"\xed\xde\xad\x0b" + bytes(600),
            "presentation of PowerPoint before 97",
            "of PowerPoint before 97",
        ),
    ],
    ids=["Word 2", "Word 1", "Word for Macintosh 5", "PowerPoint 4", "PowerPoint 3"],
)
@pytest.mark.parametrize("label", ["application/msword", "application/octet-stream"])
def test_a_document_of_an_office_before_97_is_named_and_says_that_it_is_not_read(
    save: Save, data: bytes, word: str, reason: str, label: str
) -> None:
    source = save(data)
    decision = route_file(source, {"content-type": label}, "https://example.org/plan.doc")
    declared = format_of(decision)
    assert (decision.kind, declared.name(decision.media_type)) == ("office_doc", word)
    with pytest.raises(NoText, match=f"{reason} are not read"):
        handler_named("old_office").extract(source, Hints(), ExtractLimits())
