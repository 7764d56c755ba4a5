"""Audio and video: duration, codecs and tags of the container; broken ones have no facts."""

import io
import struct
import wave
from collections.abc import Callable
from pathlib import Path

import pytest

from fetchstash.handlers import Extracted, ExtractLimits, Hints, handler_named
from tests.handlers.conftest import Save


def facts(source: Path) -> Extracted:
    return handler_named("media").extract(source, Hints(), ExtractLimits())


def wav() -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setparams((2, 2, 8_000, 0, "NONE", "not compressed"))
        sound.writeframes(bytes(4 * 8_000 * 3))
    info = b"INFO" + b"INAM" + struct.pack("<L", 5) + b"Song\0\0"
    return out.getvalue() + b"LIST" + struct.pack("<L", len(info)) + info


def comment(**tags: str) -> bytes:
    fields = [f"{name}={value}".encode() for name, value in tags.items()]
    return struct.pack("<LL", 0, len(fields)) + b"".join(
        struct.pack("<L", len(field)) + field for field in fields
    )


def flac() -> bytes:
    packed = 44_100 << 44 | 1 << 41 | 15 << 36 | 44_100 * 65
    stream_info = bytes(10) + packed.to_bytes(8) + bytes(16)
    tags = comment(TITLE="Song", ARTIST="Ada")
    return (
        b"fLaC"
        b"\0" + len(stream_info).to_bytes(3) + stream_info + b"\x84" + len(tags).to_bytes(3) + tags
    )


def ogg() -> bytes:
    def page(granule: int, packet: bytes, kind: int = 0) -> bytes:
        lengths = bytes([1, len(packet)])
        return b"OggS" + struct.pack("<BBQ", 0, kind, granule) + bytes(12) + lengths + packet

    head = b"OpusHead" + struct.pack("<BBHLH", 1, 2, 0, 48_000, 0) + bytes(1)
    return (
        page(0, head) + page(0, b"OpusTags" + comment(TITLE="Song")) + page(48_000 * 3_723, b"x", 4)
    )


def mp3() -> bytes:
    title = b"\x03Song"
    frame = b"TIT2" + len(title).to_bytes(4) + b"\0\0" + title
    sound = (
        b"\xff\xfb\x90\x00"
        + bytes(32)
        + b"Xing"
        + struct.pack(">LLL", 3, 1_000, 417_000)
        + bytes(400)
    )
    return b"ID3\x04\0\0" + bytes([0, 0, 0, len(frame)]) + frame + sound


def box(name: bytes, data: bytes) -> bytes:
    return struct.pack(">L", len(data) + 8) + name + data


def mp4() -> bytes:
    header = box(b"mvhd", struct.pack(">12xLL", 1_000, 65_000) + bytes(80))
    track = box(b"tkhd", bytes(76) + struct.pack(">LL", 1_920 << 16, 1_080 << 16))
    description = box(b"mp4a", bytes(16) + struct.pack(">HHHHH", 2, 16, 0, 0, 44_100) + bytes(70))
    sound = box(b"stsd", struct.pack(">4xL", 1) + description)
    title = box(
        b"udta",
        box(
            b"meta",
            bytes(4)
            + box(b"ilst", box(b"\xa9nam", box(b"data", b"\0\0\0\1" + bytes(4) + b"Film"))),
        ),
    )
    media = box(b"mdia", box(b"minf", box(b"stbl", sound)))
    return (
        box(b"ftyp", b"isom")
        + box(b"mdat", bytes(5_000))
        + box(b"moov", header + box(b"trak", track + media) + title)
    )


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (wav(), "0:03, 8,000 Hz, 2 channels, title Song"),
        (flac(), "1:05, 44,100 Hz, 2 channels, FLAC, title Song, artist Ada"),
        (ogg(), "1:02:03, 48,000 Hz, 2 channels, Opus, title Song"),
        (mp3(), "0:26, 44,100 Hz, 2 channels, MP3, title Song"),
        (mp4(), "1:05, 44,100 Hz, 2 channels, title Film"),
    ],
    ids=["wav", "flac", "ogg", "mp3", "mp4"],
)
def test_a_container_tells_its_facts(save: Save, data: bytes, line: str) -> None:
    found = facts(save(data))
    assert found.parts is None
    assert found.facts.structure_info == line


@pytest.mark.parametrize("make", [wav, flac, ogg, mp3, mp4], ids=lambda make: make.__name__)
def test_a_container_cut_anywhere_does_no_harm(save: Save, make: Callable[[], bytes]) -> None:
    whole = make()
    for end in {*range(0, min(len(whole), 400), 3), len(whole) - 1}:
        facts(save(whole[:end]))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"RIFF" + bytes(4) + b"WAVE" + b"fmt \xff\xff\xff\xff",
        box(b"ftyp", b"isom") + struct.pack(">L4s", 1, b"moov") + b"\xff" * 8,
        box(b"ftyp", b"isom") + struct.pack(">L", 0) + b"moov" + struct.pack(">L", 2) + b"trak",
        b"\0\0\0\x08ftyp" + b"\0\0\0\x08free" * 30_000,
        b"fLaC" + b"\x04\xff\xff\xff" + b"\xff" * 300,
        b"ID3\x04\0\0\x7f\x7f\x7f\x7f" + b"TIT2\xff\xff\xff\xff" * 30,
        b"OggS" + b"\x03vorbis" + b"\xff" * 64,
    ],
    ids=["empty", "chunk", "far box", "small box", "boxes", "block", "tag", "comment"],
)
def test_a_hostile_container_has_no_facts_and_ends(save: Save, data: bytes) -> None:
    assert facts(save(data)).parts is None
