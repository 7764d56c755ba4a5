"""Members of 7z archives are listed and read, or named with the reason why they are not."""

# ruff: noqa: E501 - an archive on one line reads better than in pieces

import base64
import random
import struct
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from fetchstash.errors import FetchstashError, NoText
from fetchstash.handlers import PartRequest, PartText
from tests.handlers.conftest import Read, Save
from tests.handlers.parts import handler_named

# As py7zr packs three small files, with each of its methods.
ARCHIVES: Mapping[str, str] = {
    "LZMA2": "N3q8ryccAARPEokOmgAAAAAAAAAWAAAAAAAAADg52ykBABFhLGIKMSwyCiMgSGkKCm1vcmUA4ACcAHxdAACBMweuD89dLwwHyEN/QYiam2dvGkQ5FB6fsoo06u5yFIEx3EXEPWp70jUNfenBZuVPP+LxDcZFLH7gmCUojC59ycbxVkubfGE80bOizrlkmdyWgHksCxTQDd83FMioCZ/T3pAsVcd6qqZ4pMlyDWJGaIQ3vwemfnWAAAAAFwYWAQmAhAAHCwEAASEhARgMgJ0AAA==",
    "LZMA": "N3q8ryccAARZG+NtrwAAAAAAAAAWAAAAAAAAAHa4fY0AMIsIQKZ00q0ICdHodd314izTuo+fq+b/+bJgAOAAqACKXQAAgTMHrg/P2W+8D+vqngENYgON00xCPw55V1VH0JbR/PXDlh2CQmhBYyblwbyQXcUZBJcM0bBjOSTm/idlp5/9Cpmfo9qzHTgzyLr7VQyvb91TvTNjKNg2EzgkhMRPO8rfqqf2Otz0dybARWsUUBjIjx6jys/h58VawQSGI9JgKHarfSm1+DAAAAAAFwYdAQmAkgAHCwEAASEhARgMgKkAAA==",
    "stored": "N3q8ryccAATdfnrbmgAAAAAAAAAWAAAAAAAAAF0dZe1hLGIKMSwyCiMgSGkKCm1vcmXgAKAAgF0AAIEzB64PzxYxDAfIRA/b+KxfHO0VG+Bfb5qhR+NEoyBBbkQnNOl/W1S62rG7aijt19ox+OIpaiBQqxbOv4IuqlGMms7fYBnDMEkCVj2JSG3fLiPiEm+ekDk8ixNvbVrJWIUhrQyB/cdGLgQeHROHG01uQDUVIpFsHrSZgYQAAAAAFwYSAQmAiAAHCwEAASEhARgMgKEAAA==",
    "bzip2": "N3q8ryccAATnqwf7vwAAAAAAAAAWAAAAAAAAAJ5vdoVCWmg5MUFZJlNZ49G19AAABd2AABBIBDAAAEAyIpAAIAAiAAAQAALekYoo5mz7G3vF3JFOFCQ49G19AOAAnAB8XQAAgTMHrg/Rp0+UoJCgckPUseKF22Dyjv/pBId1AiuaLCl90qWznb7frYVRnuJlSStb9dbFPqccfqWYOnwmnmtHeLbv3hi6kmpSat7TaTgE0MND0pfRtRsxEQ3sGDqP9JKXiMUz6AQtOKBSytRxib6pnSS1aMwulOKmAAAAABcGOwEJgIQABwsBAAEhIQEYDICdAAA=",
    "deflate": "N3q8ryccAATMqHwdmAAAAAAAAAAWAAAAAAAAALRPFeNL1EniMtQx4lJW8Mjk4srNL0oFAOAAnAB8XQAAgTMHrg/PObAMB8hDbALXhToeSnZXmQoeQ8lzYmJwXfWhfH88mnszFeQMNiuRgNFcYcGRQLDU5Sp4UCQCAeY1iy1b/46Yna55wEvezdO5WBr7Ru1o0fyILTRQ1wY/eGm8BsVviS5pXSC0dou8iQLjPdnTdZGqp4tuAAAAABcGFAEJgIQABwsBAAEhIQEYDICdAAA=",
    "x86": "N3q8ryccAARUAj9vogAAAAAAAAAWAAAAAAAAAF8SsHABABFhLGIKMSwyCiMgSGkKCm1vcmUA4ACkAIRdAACBMweuD89dLwwHsMPaKtdGNcBd664jzxPO2mfUSHLP53o5AtD1oNYBf+5lZ6dgxYhgVESYwTND6l1ydjAxGVBPy6hHtAgrT3RAKIVoTv10alsdUYEu8rqrxxh4lFbu64xf4wv5TG0V4yVihzV85JCJOTfVYgucEe+i8tmAg1nkWAAAAAAXBhYBCYCMAAcLAQABISEBGAyApQAA",
    "delta": "N3q8ryccAAS3FYLVpwAAAAAAAAAWAAAAAAAAAPyXx5YBABFhyzaoJ/sG2Bn9KCGhAGMCA/MA4ACoAIldAACBMweuD89dLwwHsMPaKtdGfE64ln3EDLI66c52spJvGhy8pKYS+VEeM4eqq0rQVETxbW9YMTDlavIpTN1JbAq2Ibu55rHqCTAg5KQLyiNmhRwW9x2m2/H1vH3ox5GvWNsm9NevhD6dRXWk7Z9nU5fWbxaqaLrnswFNZiRsJpDlKGOajKgsAAAAABcGFgEJgJEABwsBAAEhIQEYDICpAAA=",
    "Zstandard": "N3q8ryccAASFPxAXrQAAAAAAAAAWAAAAAAAAAKMlXgkotS/9AFiRAABhLGIKMSwyCiMgSGkKCm1vcmXgAKgAil0AAIEzB64Pz7XvEA/r6p6nZCfYcwbYoZM5DV6DKptmUD+fcPr26MbPexS2LnSrW5Vx5hHRtVwMRXhz3xZmJN9QmSiD2P7veuxjwKcJ86U7kXP/bAS9kyYOK96dNH4ypheGWBXJYxGWBuwIF4KiSvfJTe4gG/Me09V2jptkiBS2GSbFtTNk15nIAAAAABcGGwEJgJIABwsBAAEhIQEYDICpAAA=",
    "AES": "N3q8ryccAATEUkYNywAAAAAAAAAWAAAAAAAAAFCUsasegKZJC/UAsn8AkN2534o8NsdruCITn6d6boamVyYdwOAAwACjXQAAgTMHrg/QDv4UfZVwf7xlBZ4fVq+fFjgMZCFQI2VNoyQSbD4jgG9t0D74PJOn2H+SexyYyMyVTzm8YC/hOx+jAriqCuLDIOiNR71QKgGHmizbiuyxzefM+zndYFEOEYl1W/hdyrbRq2BhzJYN1Fjab4sQ93WlpOApBUXyKtrzMZQixno41kBIvA+EMnhnEgIoQjb2bQMNb+NfTX4ES7EHQAAAABcGIAEJgKsABwsBAAEhIQEYDIDBAAA=",
    "names too": "N3q8ryccAARtcbJR8AAAAAAAAAAqAAAAAAAAAAPetjyMzetI85fiCeavmwKJ2qayA4UT+f2m+0XNmJzfOwrQ2RZO5NzeOv12DeKLvl/2tvCXooRJ5CrQgXSL4qfAcKAobhau0BF2SxEnXAJDfY3jri61kJcL7ghTCPwqDAUNCPT68yU1OoWkiMB1EEHMXWvHfnOBV/xcrdgGbclVYmfuXXnNzLbi4a5Zo+1C7vnMcKG/mdWURo/o1oo6USDON9ButMKKKp7aBsay0GYhZDVVPymVGn2szVd3RC+tz9jpWrXRmfaNOcOGJ+7P5l2qcvLWeiUuDWqyqV8iurS3OgIgNIZ4eLmf62Ysy63rixmnAUcXBiABCYDQAAcLAQABJAbxBwESUw8nqBKHO6dTe6RvMxLXbylaDIDBAAA=",
}
PACKED = ["LZMA2", "LZMA", "stored", "bzip2", "deflate", "x86", "delta"]
LISTING = "Size\tName\n8\ttable.csv\n0\tempty.txt\n10\tdü/notes.md\n"


def part(source: Path, path: str) -> str:
    found = handler_named("archive").part(PartRequest(source=source, path=path))
    assert isinstance(found, PartText)
    return found.text


@pytest.mark.parametrize("method", PACKED)
def test_members_are_listed_and_read(save: Save, read: Read, method: str) -> None:
    data = base64.b64decode(ARCHIVES[method])
    found, text = read("archive", data)
    assert text == LISTING
    assert (found.facts.members, found.facts.structure_info) == (3, "3 members, 18 bytes unpacked")
    source = save(data)
    assert part(source, "dü/notes.md") == "# Hi\n\nmore\n"
    assert part(source, "table.csv").split() == ["a,b", "1,2"]


@pytest.mark.parametrize(
    ("method", "why"),
    [("Zstandard", "it is packed in a way that is not read"), ("AES", "it is encrypted")],
)
def test_members_that_are_not_read_are_listed_with_the_reason(
    save: Save, read: Read, method: str, why: str
) -> None:
    data = base64.b64decode(ARCHIVES[method])
    assert f"8\ttable.csv ({why})\n" in read("archive", data)[1]
    with pytest.raises(NoText, match=f"'table.csv' is not read: {why}"):
        part(save(data), "table.csv")


def test_encrypted_names_are_said(read: Read) -> None:
    with pytest.raises(NoText, match="the names of its members are encrypted"):
        read("archive", base64.b64decode(ARCHIVES["names too"]))


def number(value: int) -> bytes:
    return b"\xff" + struct.pack("<Q", value)


def archive(
    members: Mapping[str, int],
    content: bytes = b"",
    coder: bytes = b"\1\0",
    size: int | None = None,
) -> bytes:
    """Return an archive of members, each with its attributes, whose content is one folder.

    All but the last have a byte each; ``size`` is what the folder claims to unpack to.
    """
    size = len(content) if size is None else size
    names = "".join(f"{name}\0" for name in members).encode("utf-16-le")
    flags = b"\1\0" + b"".join(struct.pack("<L", flag) for flag in members.values())
    header = b"\1\4\6\0\1\x09" + number(len(content)) + b"\0"
    header += b"\7\x0b\1\0\1" + coder + b"\x0c" + number(size) + b"\0"
    header += b"\x08\x0d" + number(len(members)) + b"\x09" + b"\1" * (len(members) - 1) + b"\0\0"
    header += b"\5" + number(len(members)) + b"\x11" + number(len(names) + 1) + b"\0" + names
    header += b"\x15" + number(len(flags)) + flags + b"\0\0"
    return sealed(content, header)


def sealed(content: bytes, header: bytes) -> bytes:
    rest = struct.pack("<QQL", len(content), len(header), zlib.crc32(header))
    start = b"7z\xbc\xaf\x27\x1c\0\4" + struct.pack("<L", zlib.crc32(rest)) + rest
    return start + content + header


LINK, FOLDER = 0xA1FF << 16 | 0x8000, 0x10


def test_what_leads_elsewhere_is_listed_and_not_read(save: Save, read: Read) -> None:
    data = archive({"../x": 0, "link": LINK, "folder": FOLDER, "a.txt": 0}, b"123four")
    assert read("archive", data)[1] == (
        "Size\tName\n1\t../x (its name leads out of the archive)\n1\tlink (it is a link)\n"
        "1\tfolder (it is a folder)\n4\ta.txt\n"
    )
    source = save(data)
    assert part(source, "a.txt") == "four\n"
    for name in ("../x", "link", "folder"):
        with pytest.raises(FetchstashError):
            part(source, name)


@pytest.mark.parametrize(
    "data",
    [
        archive({"a": 0}, b"abc", size=9),
        archive({"a": 0}, b"\0\0abc", coder=b"\x23\3\1\1\5\x5d\0\0\0\xff", size=2**20),
        archive({"a": 0}, b"abc", coder=b"\x21\x21\1\x28", size=2**20),
        archive({"a": 0}, b"abc", size=2**40),
    ],
    ids=["cut short", "a large dictionary", "an unknown dictionary", "a terabyte"],
)
def test_a_member_that_is_no_content_gives_one_clear_line(save: Save, data: bytes) -> None:
    with pytest.raises(NoText, match=r"damaged|packed in a way|larger than"):
        part(save(data), "a")


def test_damage_is_found_by_the_checksum(save: Save) -> None:
    data = bytearray(base64.b64decode(ARCHIVES["stored"]))
    data[34] ^= 1
    with pytest.raises(NoText, match="damaged"):
        part(save(bytes(data)), "table.csv")


def test_a_changed_header_does_no_harm(save: Save, read: Read) -> None:
    chosen = random.Random(7)
    whole = archive({"b": 0, "link": LINK, "a.txt": 0}, b"12four")
    for _ in range(300):
        header = bytearray(whole[32 + 6 :])
        for _ in range(chosen.randint(1, 3)):
            header[chosen.randrange(len(header))] = chosen.choice([0, 1, 9, 127, 255])
        data = sealed(b"12four", bytes(header))
        with suppress(NoText):
            read("archive", data)
        with suppress(FetchstashError):
            part(save(data), "a.txt")
