"""Archives: members are listed and read as documents; hostile ones are refused."""

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest
from PIL import Image

from fetchstash.errors import BadArgument, FetchstashError, NoText, OutOfRange
from fetchstash.handlers import ExtractLimits, Hints, PartRequest, PartText, Picture
from fetchstash.handlers._xml import XmlRepair
from fetchstash.handlers._zip import Zip, is_unsafe
from tests.handlers.conftest import Pack, Read, Save
from tests.handlers.parts import handler_named
from tests.scanned import png

FILES = {"docs/a.txt": b"alpha\nbeta\n", "b.bin": bytes(1_000)}
LISTING = "Size\tName\n11\tdocs/a.txt\n1000\tb.bin\n"


def tar_of(files: Mapping[str, bytes], *special: tarfile.TarInfo) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for info in special:
            archive.addfile(info)
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zstd(data: bytes) -> bytes:
    from backports import zstd as library

    return library.compress(data)


def part(source: Path, path: str, **asked: object) -> PartText | Picture:
    return handler_named("archive").part(PartRequest(source=source, path=path, **asked))  # type: ignore[arg-type]


@pytest.mark.parametrize("squeeze", [bytes, gzip.compress, bz2.compress, lzma.compress, zstd])
def test_a_tar_is_listed_with_any_compression(
    read: Read, squeeze: Callable[[bytes], bytes]
) -> None:
    extracted, text = read("archive", squeeze(tar_of(FILES)))
    assert text == LISTING
    assert (extracted.facts.members, extracted.facts.rows, extracted.facts.columns) == (2, 2, 2)
    assert extracted.facts.structure_info == "2 members, 1,011 bytes unpacked"


@pytest.mark.parametrize("program", [b"", b"MZ" + bytes(3_000)], ids=["alone", "behind one"])
def test_a_zip_is_listed_behind_a_program_too(read: Read, pack: Pack, program: bytes) -> None:
    assert read("archive", program + pack(FILES))[1] == LISTING


def test_one_compressed_file_is_one_member(save: Save) -> None:
    out = io.BytesIO()
    with gzip.GzipFile("notes.txt", "wb", fileobj=out) as file:
        file.write(b"some notes\n")
    source = save(out.getvalue())
    extracted = handler_named("archive").extract(source, Hints(), ExtractLimits())
    assert "".join(piece.text for piece in extracted.parts or ()) == "Size\tName\n?\tnotes.txt\n"
    assert part(source, "notes.txt") == PartText("some notes\n", 1)


@pytest.mark.parametrize("make", [tar_of, None], ids=["tar", "zip"])
def test_a_member_is_read_as_a_document_of_its_own(
    save: Save, pack: Pack, make: Callable[..., bytes] | None
) -> None:
    picture = png(Image.new("RGB", (30, 20)))
    source = save((make or pack)(FILES | {"p.png": picture}))
    assert part(source, "docs/a.txt", start=2, end=2) == PartText("beta\n", 2)
    shown = part(source, "p.png", render="image")
    assert isinstance(shown, Picture)
    assert (shown.width, shown.height) == (30, 20)
    with pytest.raises(NoText, match=r"'p\.png' has no text: it is image/png.*render="):
        part(source, "p.png")
    with pytest.raises(OutOfRange, match=r"There is no member 'c'.*inner\.zip!/name"):
        part(source, "c")


def test_a_member_without_a_name_is_a_bad_argument(save: Save, pack: Pack) -> None:
    with pytest.raises(BadArgument):
        part(save(pack(FILES)), "")


def test_a_member_of_a_damaged_stream_gives_one_clear_line(save: Save) -> None:
    data = gzip.compress(b"".join(f"line {number}\n".encode() for number in range(100_000)))
    with pytest.raises(NoText, match="damaged or cut short"):
        part(save(data[:-5_000]), "content")


def test_members_are_read_through_at_most_two_archives(save: Save, pack: Pack) -> None:
    once = pack({"text.txt": "deep\n"})
    twice = pack({"one.zip": once})
    source = save(pack({"two.zip": pack({"three.zip": twice, "one.zip": once})}))
    assert part(source, "two.zip!/one.zip!/text.txt") == PartText("deep\n", 1)
    listing = part(source, "two.zip!/one.zip")
    assert isinstance(listing, PartText)
    assert "text.txt" in listing.text
    with pytest.raises(NoText, match="through at most 2 nested archives"):
        part(source, "two.zip!/three.zip!/one.zip!/text.txt")


@pytest.mark.parametrize(
    ("member", "why"),
    [
        (special("../../etc/cron.d/x", tarfile.REGTYPE), "its name leads out of the archive"),
        (special("/etc/passwd", tarfile.REGTYPE), "its name leads out of the archive"),
        (special("link", tarfile.SYMTYPE, "/etc/shadow"), "it is a link"),
        (special("hard", tarfile.LNKTYPE, "../x"), "it is a link"),
        (special("zero", tarfile.CHRTYPE), "it is a device"),
    ],
    ids=["traversal", "absolute", "symbolic link", "hard link", "device"],
)
def test_a_hostile_member_is_listed_and_not_read(
    save: Save, member: tarfile.TarInfo, why: str
) -> None:
    source = save(tar_of(FILES, member))
    extracted = handler_named("archive").extract(source, Hints(), ExtractLimits())
    listing = "".join(piece.text for piece in extracted.parts or ())
    assert f"\t{member.name} (" in listing
    assert "docs/a.txt" in listing
    with pytest.raises(NoText, match=f"is not read: {why}"):
        part(source, member.name)


def test_a_link_in_a_zip_is_not_followed(save: Save) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo("link")
        info.create_system, info.external_attr = 3, 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(NoText, match="'link' is not read: it is a link"):
        part(save(out.getvalue()), "link")


def test_members_that_overlap_are_refused(save: Save, pack: Pack, read: Read) -> None:
    data = bytearray(pack({"a": bytes(5_000), "b": bytes(5_000)}))
    second = data.rindex(b"PK\x01\x02")
    data[second + 42 : second + 46] = struct.pack("<L", 0)  # b begins where a does
    with pytest.raises(NoText, match="its members overlap"):
        read("archive", bytes(data))
    with pytest.raises(NoText, match="its members overlap"):
        part(save(bytes(data)), "a")


def test_a_quine_ends(save: Save) -> None:
    """A gzip file in itself would never end; here each level needs a name in the path."""
    inner = gzip.compress(b"end")
    for _ in range(5):
        inner = gzip.compress(inner)
    source = save(inner)
    with pytest.raises(FetchstashError):
        part(source, "document!/member!/member!/member")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"neither this nor that",
        b"7z\xbc\xaf\x27\x1c" + bytes(26),
        gzip.compress(tar_of(FILES))[:60],
        bz2.compress(tar_of(FILES))[:60],
        lzma.compress(tar_of(FILES))[:-30],
        b"\x1f\x8b" + b"\xff" * 100,
        tar_of(FILES)[:700],
        zlib.compress(b"x"),
    ],
    ids=["empty", "text", "7z", "gzip", "bzip2", "xz", "garbage", "tar", "zlib"],
)
def test_an_unreadable_archive_gives_one_clear_line(read: Read, data: bytes) -> None:
    with pytest.raises(NoText, match=r"damaged or cut short|are not listed"):
        read("archive", data)


def tar_that_says(size: bytes) -> bytes:
    """Return a tar of one member of 512 bytes, whose header says that it has ``size``."""
    header = bytearray(tarfile.TarInfo("member").tobuf())
    header[124:136] = size
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + b"x" * 512 + bytes(1_024)


def in_base_256(size: int) -> bytes:
    return (size % 256**12).to_bytes(12, "big") if size < 0 else b"\x80" + size.to_bytes(11, "big")


@pytest.mark.parametrize("squeeze", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    "size",
    [in_base_256(2**60), in_base_256(-512), in_base_256(-1_024), b"77777777777\0"],
    ids=["2^60", "-512", "-1,024", "8 GiB"],
)
def test_a_size_that_no_member_can_have_ends_the_list(
    read: Read, size: bytes, squeeze: Callable[[bytes], bytes]
) -> None:
    with pytest.raises(NoText, match=r"damaged or cut short|unpacks to more than"):
        read("archive", squeeze(tar_that_says(size)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "squeeze",
    [gzip.compress, bz2.compress, lzma.compress, zstd],
    ids=["gzip", "bzip2", "xz", "zstd"],
)
def test_streams_in_a_row_are_one_content_unless_they_are_too_many(
    save: Save, squeeze: Callable[[bytes], bytes]
) -> None:
    several = save(b"".join(squeeze(b"line %d\n" % number) for number in range(1_000)))
    assert part(several, "content", start=1_000) == PartText("line 999\n", 1_000)
    too_many = save(squeeze(b"") * 3_000)
    with pytest.raises(NoText, match=r"more than \d,\d{3} compressed streams"):
        part(too_many, "content")


def test_padding_behind_a_stream_is_passed_over(save: Save) -> None:
    assert part(save(gzip.compress(b"text\n") + bytes(512)), "content") == PartText("text\n", 1)


# --- What several formats are read with: zip containers, and the repair of XML.


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


@pytest.mark.parametrize("squeeze", [gzip.compress, bz2.compress, lzma.compress, zstd])
@pytest.mark.parametrize(
    ("name", "url", "inner"),
    [
        ("page.html.GZ", "", "page.html"),
        ("page.html.xz", "https://a.test/page.html.xz", "page.html"),
        ("export", "https://a.test/export?of=1", "export"),
        ("a.test", "https://a.test/", "content"),
        ("", "", "content"),
    ],
)
def test_what_was_packed_alone_is_named_after_its_file(
    save: Save, squeeze: Callable[[bytes], bytes], name: str, url: str, inner: str
) -> None:
    source, hints = save(squeeze(b"<!doctype html><p>Gates open.</p>")), Hints(name=name, url=url)
    handler = handler_named("archive")
    rows = handler.extract(source, hints, ExtractLimits()).parts or ()
    assert "".join(row.text for row in rows).endswith(f"\t{inner}\n")
    assert part(source, inner, hints=hints) == PartText("Gates open.\n", 1)


def test_a_member_without_text_says_how_its_bytes_are_had(save: Save, pack: Pack) -> None:
    with pytest.raises(NoText, match=r"'a\.bin' has no text.*get --raw -o FILE.* and unpack it"):
        part(save(pack({"a.bin": bytes(range(256))})), "a.bin")
