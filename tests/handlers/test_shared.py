"""What several formats are read with: zip containers, and the repair of XML."""

import io
import struct
import zipfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from fetchstash.errors import NoText
from fetchstash.handlers._xml import XmlRepair
from fetchstash.handlers._zip import Zip, is_unsafe
from tests.handlers.conftest import Pack, Save


def contents(source: Path, limit: int = 1_000_000) -> dict[str, bytes]:
    with Zip(source) as container:
        return {entry.name: container.read(entry, limit) for entry in container.entries()}


@pytest.mark.parametrize(
    "prefix", [b"", b"#!/bin/sh\nexit\n" * 100], ids=["plain", "behind a script"]
)
def test_members_are_found_and_read(save: Save, pack: Pack, prefix: bytes) -> None:
    members = {"a.txt": b"alpha", "folder/ü.txt": b"beta" * 100_000, "empty": b""}
    assert contents(save(prefix + pack(members))) == members


def test_a_zip64_archive_is_read(save: Save) -> None:
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w") as container,
        container.open("big", "w", force_zip64=True) as member,
    ):
        member.write(b"content")
    assert contents(save(out.getvalue())) == {"big": b"content"}


def test_sizes_and_offset_stand_in_the_extra_field_where_they_are_all_ones(
    save: Save, pack: Pack
) -> None:
    data = pack({"before": b"x", "big": b"content"})
    at = data.rindex(b"PK\1\2")
    entry = bytearray(data[at : data.index(b"PK\5\6")])
    packed, size, offset = struct.unpack_from("<20xLL14xL", entry)
    extra = struct.pack("<HH3Q", 1, 24, size, packed, offset)
    entry[20:28], entry[42:46] = b"\xff" * 8, b"\xff" * 4
    struct.pack_into("<H", entry, 30, len(extra))
    end = bytearray(data[data.index(b"PK\5\6") :])
    struct.pack_into("<L", end, 12, struct.unpack_from("<L", end, 12)[0] + len(extra))
    assert contents(save(data[:at] + entry + extra + end)) == {"before": b"x", "big": b"content"}


def test_more_entries_than_a_16_bit_count_holds_are_counted(save: Save) -> None:
    names = [f"{number}".encode() for number in range(66_000)]
    entries = [
        struct.pack("<4s6H3L5H2L", b"PK\1\2", *[0] * 9, len(name), *[0] * 6) + name
        for name in names
    ]
    directory = b"".join(entries)
    end64 = struct.pack(
        "<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, len(names), len(names), len(directory), 0
    )
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, len(directory), 1)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    with Zip(save(directory + end64 + locator + end)) as container:
        assert container.count == 66_000
        assert [entry.name for entry in container.entries()][-1] == "65999"


@pytest.mark.parametrize("excess", [-1, 0, 1])
def test_a_member_stops_at_its_bound(save: Save, pack: Pack, excess: int) -> None:
    source = save(pack({"zeros": bytes(200_000 + excess)}))
    if excess <= 0:
        assert len(contents(source, 200_000)["zeros"]) == 200_000 + excess
    else:
        with pytest.raises(NoText, match="unpacks to more than 200,000 bytes"):
            contents(source, 200_000)


def test_a_bomb_is_never_held_in_memory(save: Save, pack: Pack) -> None:
    with Zip(save(pack({"bomb": bytes(50_000_000)}))) as container:
        [entry] = container.entries()
        pieces = container.chunks(entry, 1_000_000)
        assert [len(next(pieces)) for _ in range(15)] == [65_536] * 15
        with pytest.raises(NoText):
            next(pieces)


@pytest.mark.parametrize("second", ["b", "a"], ids=["another member", "the same again"])
def test_the_members_of_a_document_are_bounded_together(
    save: Save, pack: Pack, second: str
) -> None:
    source = save(pack(dict.fromkeys("ab", bytes(12 * 2**20))))
    for is_document in (False, True):
        with Zip(source, is_document=is_document) as container:
            members = {entry.name: entry for entry in container.entries()}
            assert len(container.read(members["a"], 2**24)) == 12 * 2**20
            with pytest.raises(NoText, match="in all") if is_document else nullcontext():
                container.read(members[second], 2**24)


FAR_END = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 9, 9, 2**31, 2**31, 0)


@pytest.mark.parametrize(
    ("place", "spoilt", "reason"),
    [
        (b"PK\x01\x02", b"PK\x09\x09", "its directory breaks off"),
        (b"PK\x03\x04", b"PK\x09\x09", "is not where the directory says"),
        (b"plain", b"blank", "the checksum of a member is wrong"),
        (b"plain text", b"plain", "cut short"),
        (b"PK\x05\x06", FAR_END, "cut short"),
        (b"PK\x05\x06", b"", "cut short: it has no directory"),
    ],
    ids=["directory", "local header", "content", "bytes lost", "far directory", "no end"],
)
def test_a_damaged_container_gives_one_clear_line(
    save: Save, place: bytes, spoilt: bytes, reason: str
) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as container:
        container.writestr("member", b"plain text " * 10)
    with pytest.raises(NoText, match=reason):
        contents(save(out.getvalue().replace(place, spoilt)))


def test_a_damaged_stream_gives_one_clear_line(save: Save, pack: Pack) -> None:
    data = pack({"text": bytes(range(256)) * 40})
    with pytest.raises(NoText, match="cannot be unpacked"):
        contents(save(data[:34] + b"\xff" * 30 + data[64:]))


def test_an_encrypted_member_is_said(save: Save, pack: Pack) -> None:
    data = bytearray(pack({"secret.txt": b"content"}))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(NoText, match="a member of the zip container is encrypted"):
        contents(save(bytes(data)))


@pytest.mark.parametrize(
    "name", ["../a", "a/../../b", "/etc/passwd", "..\\a", "C:\\a", "a\0b", "a\nb"]
)
def test_names_that_lead_elsewhere_are_unsafe(name: str) -> None:
    assert is_unsafe(name)
    assert not is_unsafe("a/b.txt")
    assert not is_unsafe("a..b/c")


BROKEN = {
    "a bare ampersand": ("Gate & key", "Gate &amp; key"),
    "one in an address": ('<a href="/?a=1&b=2">', '<a href="/?a=1&amp;b=2">'),
    "a name of HTML": ("Gate&nbsp;&amp;&hellip;", "Gate\xa0&amp;…"),
    "a name of HTML for a mark of XML": ("a &LT; b", "a &lt; b"),
    "a name that nobody knows": ("Gate &keeper; key", "Gate &amp;keeper; key"),
    "a control character": ("Gate \x0bkey", "Gate key"),
    "a control character by number": ("Gate &#11;key&#x0;", "Gate key"),
}
RIGHT = "<!-- a & b --><![CDATA[c & d&nbsp;]]> &#8364;&#x20AC;&lt;&amp;<a b='&quot;&apos;&gt;'/>"


@pytest.mark.parametrize(("broken", "repaired"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_xml_is_repaired_wherever_it_is_cut_into_chunks(broken: str, repaired: str) -> None:
    for at in range(len(broken)):
        assert "".join(XmlRepair()([broken[:at], broken[at:]])) == repaired


def test_well_formed_xml_stays_unchanged() -> None:
    for at in range(len(RIGHT)):
        repair = XmlRepair()
        assert "".join(repair([RIGHT[:at], RIGHT[at:]])) == RIGHT
        assert repair.summary() == ""
