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
from pathlib import Path

import pytest
from PIL import Image

from fetchstash.errors import BadArgument, FetchstashError, NoText, OutOfRange
from fetchstash.handlers import ExtractLimits, Hints, PartRequest, PartText, Picture, handler_named
from tests.handlers.conftest import Pack, Read, Save

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


def test_a_zip_is_listed(read: Read, pack: Pack) -> None:
    assert read("archive", pack(FILES))[1] == LISTING


def test_a_zip_behind_a_program_is_listed(read: Read, pack: Pack) -> None:
    assert read("archive", b"MZ" + bytes(3_000) + pack(FILES))[1] == LISTING


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
    picture = io.BytesIO()
    Image.new("RGB", (30, 20)).save(picture, "PNG")
    source = save((make or pack)(FILES | {"p.png": picture.getvalue()}))
    assert part(source, "docs/a.txt", start=2, end=2) == PartText("beta\n", 2)
    shown = part(source, "p.png", render="image")
    assert isinstance(shown, Picture)
    assert (shown.width, shown.height) == (30, 20)
    with pytest.raises(NoText, match=r"'p\.png' has no text: it is image/png"):
        part(source, "p.png")
    with pytest.raises(OutOfRange, match="There is no member 'c'"):
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
