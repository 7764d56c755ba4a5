"""7z archives: names and sizes out of the directory, plain or packed; damaged and encrypted ones named."""

import base64
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from fetchstash.errors import NoText
from fetchstash.handlers import Extracted
from fetchstash.handlers._archive import ArchiveHandler
from fetchstash.handlers._seven_zip import seven_zip

Read = Callable[..., tuple[Extracted, str]]
Save = Callable[[bytes], Path]

# One and the same folder, packed by py7zr: with its directory packed (as usual), as it is, and encrypted.
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


@pytest.mark.parametrize("data", [PACKED, PLAIN], ids=["packed directory", "plain directory"])
def test_members_are_listed_with_their_sizes(read: Read, data: str) -> None:
    found, text = read(ArchiveHandler(), base64.b64decode(data))
    lines = [line.removesuffix(" (members of 7z archives are listed alone)") for line in text.splitlines()]
    assert lines == ["Size\tName", "0\tz/", "500\tz/a.txt", "0\tz/empty", "0\tz/sub/", "0\tz/sub/emptydir/", "5000\tz/sub/ü.txt"]
    assert found.members == 6


def test_an_archive_whose_names_are_encrypted_is_named(read: Read) -> None:
    with pytest.raises(NoText, match="the names of its members are encrypted"):
        read(ArchiveHandler(), base64.b64decode(ENCRYPTED))


@pytest.mark.parametrize("data", [PACKED, PLAIN], ids=["packed directory", "plain directory"])
def test_a_damaged_directory_does_no_harm(save: Save, data: str) -> None:
    chance = random.Random(7)
    whole = base64.b64decode(data)
    for _ in range(300):
        broken = bytearray(whole)
        for _ in range(3):
            broken[chance.randrange(12, len(broken))] = chance.randrange(256)
        with suppress(NoText):
            seven_zip(save(bytes(broken)))
