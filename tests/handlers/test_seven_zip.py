"""7z archives: the directory, and one member read; damaged and encrypted ones reported."""

import base64
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from fetchstash.errors import NoText, OutOfRange
from fetchstash.handlers import Extracted, PartRequest, PartText, handler_named
from fetchstash.handlers._archive import _seven_zip
from fetchstash.handlers._archive._members import MAX_UNPACKED, members, opened

Read = Callable[..., tuple[Extracted, str]]
Save = Callable[[bytes], Path]

# The same folder packed by py7zr: with its directory packed (as usual), plain, and encrypted.
PACKED = (
    "N3q8ryccAATLLASEygAAAAAAAAAWAAAAAAAAAEGL+z3gFXsAKF0AMJsKZySYCvnr8rddDU/J/OtUPgZ3TLj16gdIjK0FZW/6pesa4CoAAADgAPoAkl0AAIEz"
    "B64P0QDUPKCKabC54UquoYjvQYSvtLf3EgpiXx+4KQd9ePnLoy6lfBrbeKfpmlbOhIIE57hPxXWk0U1VBvWWkMv8R0bVCb68EHk7JQm6Sni9cYDrKI15c//e"
    "uQXvejIdqNLUV1uYAIz9m5IIJEe+6h+atUfPG/n8Ykro8T5TRXw/KiferGKYBZfc2dwAAAAAFwYwAQmAmgAHCwEAASEhARgMgPsAAA=="
)
PLAIN = (
    "N3q8ryccAAQNJbOAMAAAAAAAAAD7AAAAAAAAAHaDLk/gFXsAKF0AMJsKZySYCvnr8rddDU/J/OtUPgZ3TLj16gdIjK0FZW/6pesa4CoAAAABBAYAAQkwAAcL"
    "AQACISEBGAQDAwEDAQAMlXyVfAAIDQMJgfQACgEszHgoAAAAACbw2wAAAAUGDgGYGQQAAAAAEWcAegAAAHoALwBhAC4AdAB4AHQAAAB6AC8AZQBtAHAAdAB5"
    "AAAAegAvAHMAdQBiAAAAegAvAHMAdQBiAC8AZQBtAHAAdAB5AGQAaQByAAAAegAvAHMAdQBiAC8A/AAuAHQAeAB0AAAAFDIBAEBNCCjPed0BUEYIKM953QFA"
    "TQgoz3ndAVBGCCjPed0BcKcHKM953QFATQgoz3ndARUaAQAQgO1BIICkgSCApIEQgO1BEIDtQSCApIEAAA=="
)
ENCRYPTED = (
    "N3q8ryccAAQpoVGCUAEAAAAAAAAqAAAAAAAAAOVeJuOOlzBwskpCUBLxCat76CZj/GbJU1ckkU1RfR86qw4zLVcbORVuI9FArmxGtTJF5niSTv7tHUEXP99y"
    "254balccFoQdJQshfCB1VjvWbmRba0RO4qgT7vfwBVAsjZWcvg+/k8Y0A1FU2qwsPeEWcH1QJuPsabF3RpKTLLXXlv5PeBlWn79HETVaMVgOB2y77rVXumEm"
    "5G8nOLJ3H0t6BKVTCM+Q/gwgbWgwvHrm6VtIiZnt943kmd6QEwbblwTXT8B4Al2K0nlUVirhdhbrc0b9eBuIoL3HLiHk6hdh/tYTUKxTq7WxW2C5UqFErVrl"
    "BgwGQAdp9IKXO1vJtlG47BBKfRff/EsMtzvlqCZfBgNBPAm/y1Ez/Ll+VELKxa4YTp7RHlInJ5CvJlLQw8e1bz7+ndj5pW0NuVvFraQV8sRbEcSAvM6QByyA"
    "NuBNePKsgewXBjABCYEgAAcLAQABJAbxBwESUw9n+LCeS7aJkIIlJZ0F/H/ODIETAAA="
)


# The same folder packed by 7-Zip 26.02 with the methods in the names.
DATA = Path(__file__).parent / "data"
READ = ["lzma", "lzma2", "bzip2", "deflate", "delta", "bcj-lzma", "bcj-lzma2"]
LONG_TEXT = "".join(f"line {number} of the long text\n" for number in range(1, 4_001))
PROGRAM = b"".join(
    b"\xe8"
    + (7 * n * n & 0xFFFF).to_bytes(4, "little")
    + b"\x90\x0f\x84"
    + (3 * n).to_bytes(4, "little")
    for n in range(300)
)
CONTENTS = {
    "docs/long.txt": LONG_TEXT.encode(),
    "notes.txt": b"some notes\n",
    "empty": b"",
    "program": PROGRAM,
}


def part(source: Path, path: str) -> str:
    part_text = handler_named("archive").part(PartRequest(source=source, path=path))
    assert isinstance(part_text, PartText)
    return part_text.text


@pytest.mark.parametrize("method", READ)
def test_every_member_reads_as_it_was_packed(method: str) -> None:
    source = DATA / f"{method}.7z"
    for name, wanted in CONTENTS.items():
        with opened(source, name) as pieces:
            assert b"".join(pieces) == wanted


def test_a_member_is_read_as_a_document_of_its_own() -> None:
    assert part(DATA / "lzma2.7z", "notes.txt") == "some notes\n"


def test_a_missing_member_is_out_of_range() -> None:
    with pytest.raises(OutOfRange, match="There is no member 'missing'"):
        part(DATA / "lzma2.7z", "missing")


@pytest.mark.parametrize(
    ("archive", "member", "reason"),
    [
        ("encrypted", "notes.txt", "it is encrypted"),
        ("ppmd", "notes.txt", "it is packed with PPMd"),
        ("bcj2", "notes.txt", "it is packed with BCJ2"),
        ("lzma2", "link", "it is a link"),
        ("lzma2", "docs/", "it is a folder"),
    ],
)
def test_a_member_that_is_not_read_is_listed_with_the_reason(
    read: Read, archive: str, member: str, reason: str
) -> None:
    source = DATA / f"{archive}.7z"
    refused = next(one for one in members(source) if one.name == member).refused
    assert refused
    assert refused.what == reason
    with pytest.raises(NoText, match=reason):
        part(source, member)


def test_a_member_with_changed_bytes_is_reported(save: Save) -> None:
    packed = bytearray((DATA / "deflate.7z").read_bytes())
    packed[40:48] = bytes(8)
    with pytest.raises(NoText, match="damaged"):
        part(save(bytes(packed)), "docs/long.txt")


def test_a_member_far_inside_a_block_is_not_unpacked() -> None:
    source = DATA / "lzma2.7z"
    last = next(member for member in _seven_zip.members(source) if member.name == "program")
    assert last.stream
    assert last.stream.offset > 0
    with pytest.raises(NoText, match="more than 1,000 bytes must be unpacked"):
        list(_seven_zip.content(source, last.stream, 1_000))
    assert sum(map(len, _seven_zip.content(source, last.stream, MAX_UNPACKED))) == len(PROGRAM)


@pytest.mark.parametrize("data", [PACKED, PLAIN], ids=["packed directory", "plain directory"])
def test_members_are_listed_with_their_sizes(read: Read, data: str) -> None:
    part_text, text = read(handler_named("archive"), base64.b64decode(data))
    assert text.splitlines() == [
        "Size\tName",
        "0\tz/",
        "500\tz/a.txt",
        "0\tz/empty",
        "0\tz/sub/",
        "0\tz/sub/emptydir/",
        "5000\tz/sub/ü.txt",
    ]
    assert part_text.facts.members == 6


def test_an_archive_with_encrypted_names_is_reported(read: Read) -> None:
    with pytest.raises(NoText, match="its directory is not read: it is encrypted"):
        read(handler_named("archive"), base64.b64decode(ENCRYPTED))


def _archives() -> list[bytes]:
    return [
        base64.b64decode(PACKED),
        base64.b64decode(PLAIN),
        *((DATA / f"{method}.7z").read_bytes() for method in READ),
    ]


@pytest.mark.parametrize("whole", _archives(), ids=["packed directory", "plain directory", *READ])
def test_damage_does_no_harm(save: Save, whole: bytes) -> None:
    chance = random.Random(7)
    for _ in range(60):
        broken = bytearray(whole)
        for _ in range(3):
            broken[chance.randrange(12, len(broken))] = chance.randrange(256)
        source = save(bytes(broken))
        with suppress(NoText):
            for member in list(members(source))[:4]:
                with suppress(NoText), opened(source, member.name) as pieces:
                    assert sum(map(len, pieces)) == member.size
