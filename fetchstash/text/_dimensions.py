"""How large a picture is, read from the head of its bytes: nothing is decoded."""

_MAX_SEGMENTS = 1_000
"""Of a JPEG, before its frame header; cameras write about ten."""


def picture_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height of a PNG, GIF, JPEG or WebP; None for all else, and if one is 0."""
    size = None
    if data[:8] == b"\x89PNG\r\n\x1a\n":  # PNG, 5.2 and 11.2.2
        size = _big(data[16:20]), _big(data[20:24])
    elif data[:4] == b"GIF8":  # GIF89a, 18
        size = _little(data[6:8]), _little(data[8:10])
    elif data[:2] == b"\xff\xd8":
        size = _jpeg_size(data)
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        size = _webp_size(data)
    return size if size and all(size) else None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Follow the segments up to the frame header (ITU-T T.81, B.1.1 and B.2.2)."""
    at = 2
    for _ in range(_MAX_SEGMENTS):
        if at + 9 > len(data) or data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            return _big(data[at + 7 : at + 9]), _big(data[at + 5 : at + 7])
        at += 1 if marker == 0xFF else 2 + _big(data[at + 2 : at + 4])
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    """Read the first chunk of a WebP (RFC 9649, section 2)."""
    chunk = data[12:16]
    if chunk == b"VP8X":
        return 1 + _little(data[24:27]), 1 + _little(data[27:30])
    if chunk == b"VP8L":
        bits = _little(data[21:25])
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if chunk == b"VP8 ":
        return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
