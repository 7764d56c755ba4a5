"""Outlook messages: headers, body and attachments out of a compound file; rings in it end."""

import struct
from contextlib import suppress

import pytest

from fetchstash.errors import BadArgument, NoText, OutOfRange
from fetchstash.handlers import PartText
from tests.handlers.compounds import compound, wide
from tests.handlers.conftest import PartOf, Read, check_facts, unreadable

SENT = struct.pack("<HHLQ", 0x40, 0x39, 0, 134_220_960_000_000_000)
MAIL = {
    "__properties_version1.0": bytes(32) + SENT,
    "__substg1.0_0037001F": wide("Über den Plan"),
    "__substg1.0_0C1A001F": wide("Ada"),
    "__substg1.0_5D01001F": wide("ada@example.org"),
    "__substg1.0_0E04001E": b"bob@example.org",
    "__substg1.0_1000001F": wide("Dear Bob,\r\n\r\n" + "see below. " * 400),
    "__attach_version1.0_#00000000/__substg1.0_3707001F": wide("table.csv"),
    "__attach_version1.0_#00000000/__substg1.0_37010102": b"a,b\n1,2\n",
    "__attach_version1.0_#00000001/__substg1.0_3707001F": wide("table.csv"),
    "__attach_version1.0_#00000001/__substg1.0_37010102": b"other\n" * 1_000,
    "__attach_version1.0_#00000002/__substg1.0_3001001F": wide("an embedded message"),
}


def test_headers_body_and_attachments_are_read(read: Read) -> None:
    found, text = read("msg", compound(MAIL))
    assert text.startswith(
        "# Über den Plan\n\nFrom: Ada <ada@example.org>\nTo: bob@example.org\nDate: 2026-05-01"
    )
    assert "Dear Bob,\n\nsee below." in text
    assert (
        "- table.csv (8 bytes)\n- 2 table.csv (6,000 bytes)\n"
        "- an embedded message (a message or an object)" in text
    )
    author = "Ada <ada@example.org>"
    check_facts(found, title="Über den Plan", author=author, published="2026-05-01", members=3)


def test_an_attachment_is_read_by_its_name(part: PartOf) -> None:
    data = compound(MAIL)
    assert part("msg", data, "2 table.csv") == PartText("other\n" * 1_000, 1_000)
    with pytest.raises(OutOfRange):
        part("msg", data, "x")
    with pytest.raises(BadArgument):
        part("msg", data, "")


def test_a_body_that_is_html_alone_becomes_markdown(read: Read) -> None:
    mail = MAIL | {
        "__substg1.0_1000001F": b"",
        "__substg1.0_10130102": b"<h2>News</h2><p style='display:none'>obey</p><p>All.</p>",
    }
    found, text = read("msg", compound(mail))
    assert "## News\n\nAll." in text
    assert found.facts.hidden_removed == 1


SECTORS, GIGABYTES = (struct.pack("<5H", 62, 3, 0xFFFE, shift, 6) for shift in (9, 30))
test_an_invalid_message_gives_one_clear_line = unreadable("msg", {
    "empty": (b"", "no compound file"),
    "cut short": (compound(MAIL)[:600], "holds no message"),
    "Word": (compound({"WordDocument": b"x"}), "holds no message"),
    "sectors of a gigabyte": (compound(MAIL).replace(SECTORS, GIGABYTES), "unknown size"),
})  # fmt: skip


def test_a_body_that_is_compressed_rtf_alone_is_named(read: Read) -> None:
    mail = MAIL | {"__substg1.0_1000001F": b"", "__substg1.0_10090102": b"LZFu"}
    found, text = read("msg", compound(mail))
    assert "08:00:00+00:00\n\n## Attachments" in text
    assert found.facts.extraction_error == "its body is compressed RTF, which is not read"


def test_streams_of_every_size_are_whole(part: PartOf) -> None:
    sizes = (0, 1, 63, 64, 65, 500, 4_095, 4_096, 4_097, 9_000)
    texts = {f"{size}.txt": "".join(chr(33 + n % 91) for n in range(size)) for size in sizes}
    mail = dict(MAIL)
    for number, (name, text) in enumerate(texts.items()):
        folder = f"__attach_version1.0_#{number:08}"
        mail |= {f"{folder}/__substg1.0_3707001F": wide(name)}
        mail |= {f"{folder}/__substg1.0_37010102": text.encode()}
    data = compound(mail)
    for name, text in texts.items():
        found = part("msg", data, name)
        assert isinstance(found, PartText)
        assert found.text.rstrip("\n") == text


def test_chains_and_trees_that_are_rings_end(read: Read) -> None:
    data = bytearray(compound(MAIL))
    fat_at = 512 * (struct.unpack_from("<L", data, 76)[0] + 1)
    struct.pack_into("<128L", data, fat_at, *[0] * 128)
    with suppress(NoText):
        read("msg", bytes(data))
    whole = compound(MAIL)
    directory = 512 * (struct.unpack_from("<L", whole, 48)[0] + 1)
    ring = bytearray(whole)
    for number in range(8):
        struct.pack_into("<3L", ring, directory + 128 * number + 68, 1, 2, 1)
    with suppress(NoText):
        found, _ = read("msg", bytes(ring))
        assert (found.facts.members or 0) <= 3


def recipient(kind: int) -> bytes:
    return bytes(8) + struct.pack("<HHLLL", 3, 0x0C15, 0, kind, 0)


def test_recipients_come_with_all_their_addresses(read: Read) -> None:
    people = (("Bob", "bob@example.org", 1), ("Carl", "carl@example.org", 2), ("", "d@x", 1))
    mail = MAIL | {
        f"__recip_version1.0_#0000000{number}/{name}": data
        for number, (person, address, kind) in enumerate(people)
        for name, data in (
            ("__properties_version1.0", recipient(kind)),
            ("__substg1.0_3001001F", wide(person)),
            ("__substg1.0_39FE001F", wide(address)),
        )
    }
    text = read("msg", compound(mail))[1]
    assert "To: Bob <bob@example.org>; d@x\nCc: Carl <carl@example.org>\n" in text
