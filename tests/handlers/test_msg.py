"""Outlook messages: headers, body and attachments out of a compound file; rings in it end."""

import struct
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from fetchstash.errors import BadArgument, NoText, OutOfRange
from fetchstash.handlers import Extracted, ExtractLimits, PartText
from fetchstash.handlers._compound import CompoundFile
from fetchstash.handlers._msg import MsgHandler
from fetchstash.handlers._old_office import OldOfficeHandler

Read = Callable[..., tuple[Extracted, str]]
Save = Callable[[bytes], Path]

END, FREE, FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD


def entry(name: str, kind: int, right: int, child: int, start: int, size: int) -> bytes:
    raw = name.encode("utf-16-le")
    return struct.pack("<64sHBB3L36xLQ", raw, len(raw) + 2, kind, 1, FREE, right, child, start, size)


def compound(streams: Mapping[str, bytes]) -> bytes:
    """Return a compound file of streams by path: siblings in a list, small ones in the mini stream (version 3)."""
    folders = list(dict.fromkeys(path.rpartition("/")[0] for path in streams if "/" in path))
    names = [*folders, *streams]
    children = {folder: [n for n, name in enumerate(names, 1) if name.rpartition("/")[0] == folder] for folder in ("", *folders)}
    sectors: list[bytes] = []
    table: list[int] = []
    mini, mini_table = b"", list[int]()

    def put(data: bytes) -> int:
        start = len(sectors)
        count = max(-(-len(data) // 512), 1)
        sectors.extend(data[n * 512 : (n + 1) * 512].ljust(512, b"\0") for n in range(count))
        table.extend([*range(start + 1, start + count), END])
        return start

    places: dict[str, int] = {}
    for path, data in streams.items():
        if len(data) >= 4096:
            places[path] = put(data)
        else:
            places[path] = len(mini_table)
            count = max(-(-len(data) // 64), 1)
            mini_table.extend([*range(len(mini_table) + 1, len(mini_table) + count), END])
            mini += data.ljust(count * 64, b"\0")
    entries = [entry("Root Entry", 5, FREE, children[""][0], put(mini), len(mini))]
    for number, name in enumerate(names, 1):
        siblings = children[name.rpartition("/")[0]]
        place = siblings.index(number)
        right = siblings[place + 1] if place + 1 < len(siblings) else FREE
        if name in streams:
            entries.append(entry(name.rpartition("/")[2], 2, right, FREE, places[name], len(streams[name])))
        else:
            entries.append(entry(name, 1, right, children[name][0], 0, 0))
    directory = put(b"".join(entries))
    mini_at = put(struct.pack(f"<{len(mini_table)}L", *mini_table))
    fat_at = len(sectors)
    table.append(FAT)
    sectors.append(struct.pack(f"<{len(table)}L", *table).ljust(512, b"\xff"))
    assert len(table) <= 128
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<5H", 62, 3, 0xFFFE, 9, 6) + bytes(6)
    header += struct.pack("<9L", 0, 1, directory, 0, 4096, mini_at, 1, END, 0) + struct.pack("<109L", fat_at, *[FREE] * 108)
    return header + b"".join(sectors)


def wide(text: str) -> bytes:
    return text.encode("utf-16-le")


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


def part(source: Path, path: str) -> object:
    return MsgHandler().part(source, path, "lines", None, None, "text", ExtractLimits())


def test_headers_body_and_attachments_are_read(read: Read) -> None:
    found, text = read(MsgHandler(), compound(MAIL))
    assert text.startswith("# Über den Plan\n\nFrom: Ada <ada@example.org>\nTo: bob@example.org\nDate: 2026-05-01")
    assert "Dear Bob,\n\nsee below." in text
    assert "- table.csv (8 bytes)\n- 2 table.csv (6,000 bytes)\n- an embedded message (a message or an object)" in text
    assert (found.title, found.author, found.published) == ("Über den Plan", "Ada <ada@example.org>", "2026-05-01")
    assert found.members == 3


def test_an_attachment_is_read_by_its_name(save: Save) -> None:
    source = save(compound(MAIL))
    assert part(source, "2 table.csv") == PartText("other\n" * 1_000, 1_000)
    with pytest.raises(OutOfRange):
        part(source, "x")
    with pytest.raises(BadArgument):
        part(source, "")


def test_a_body_that_is_html_alone_becomes_markdown(read: Read) -> None:
    mail = MAIL | {"__substg1.0_1000001F": b"", "__substg1.0_10130102": b"<h2>News</h2><p style='display:none'>obey</p><p>All.</p>"}
    found, text = read(MsgHandler(), compound(mail))
    assert "## News\n\nAll." in text
    assert found.hidden_removed == 1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no compound file"),
        (compound(MAIL)[:600], "holds no message"),
        (compound({"WordDocument": b"x"}), "holds no message"),
        (compound(MAIL).replace(struct.pack("<5H", 62, 3, 0xFFFE, 9, 6), struct.pack("<5H", 62, 3, 0xFFFE, 30, 6)), "unknown size"),
    ],
    ids=["empty", "cut short", "Word", "sectors of a gigabyte"],
)
def test_what_is_no_message_gives_one_clear_line(read: Read, data: bytes, reason: str) -> None:
    with pytest.raises(NoText, match=reason):
        read(MsgHandler(), data)


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        ("EncryptedPackage", "the document is encrypted and opens only with its password"),
        ("WordDocument", "documents of Word before 2007 are not read"),
        ("PowerPoint Document", "presentations of PowerPoint before 2007 are not read"),
    ],
)
def test_a_document_that_is_not_read_is_told_why(read: Read, stream: str, reason: str) -> None:
    with pytest.raises(NoText, match=reason):
        read(OldOfficeHandler(), compound({stream: b"x"}))


def test_a_compound_file_of_something_else_has_no_text(read: Read) -> None:
    assert read(OldOfficeHandler(), compound({"Thumbs": b"x"}))[0].parts is None


def test_chains_and_trees_that_are_rings_end() -> None:
    data = bytearray(compound(MAIL))
    fat_at = 512 * (struct.unpack_from("<L", data, 76)[0] + 1)
    struct.pack_into("<128L", data, fat_at, *[0] * 128)
    CompoundFile(bytes(data)).read("__substg1.0_1000001F")
    whole = compound(MAIL)
    directory = 512 * (struct.unpack_from("<L", whole, 48)[0] + 1)
    ring = bytearray(whole)
    for number in range(8):
        struct.pack_into("<3L", ring, directory + 128 * number + 68, 1, 2, 1)
    assert len(CompoundFile(bytes(ring)).streams) <= len(MAIL)
