"""Images: facts, the picture within its bounds, and one clear line for what cannot be decoded."""

import io
import struct
import sys
import wave
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image, TiffImagePlugin

from fetchstash.errors import BadArgument, NoText, OutOfRange, TooLarge
from fetchstash.handlers import Extracted, ExtractLimits, Hints, PartRequest, PartText, Picture
from fetchstash.handlers._reasons import Reason
from fetchstash.text import PreviewLimits
from fetchstash.text.facts import DocumentFacts
from tests.handlers.conftest import PartOf, Save, unreadable
from tests.handlers.parts import handler_named


def encode(image: Image.Image, form: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def picture_of(source: Path, **bounds: int) -> tuple[Picture, Image.Image]:
    limits = ExtractLimits(preview=PreviewLimits(**bounds))
    request = PartRequest(source=source, render="image", limits=limits)
    picture = handler_named("image").part(request)
    assert isinstance(picture, Picture)
    image = Image.open(io.BytesIO(picture.data))
    assert image.size == (picture.width, picture.height)
    assert Image.MIME[str(image.format)] == picture.media_type
    return picture, image


def facts_of(source: Path) -> DocumentFacts:
    extracted = handler_named("image").extract(source, Hints(), ExtractLimits())
    assert extracted.parts is None
    return extracted.facts


def photo_with_exif() -> bytes:
    """Return a JPEG that was taken upright (orientation 6), on a day, by a camera, at a place."""
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x0110] = "Testcam 3000"
    exif.get_ifd(0x8769)[0x9003] = "2026:05:01 10:00:00"
    degrees = tuple(TiffImagePlugin.IFDRational(value) for value in (47, 11, 42))
    exif.get_ifd(0x8769)[0x927C] = b"\0\1\2\xff"
    west = tuple(TiffImagePlugin.IFDRational(value) for value in (8, 30, 0))
    exif.get_ifd(0x8825).update({1: "N", 2: degrees, 3: "W", 4: west})
    return encode(Image.new("RGB", (400, 300), "red"), "JPEG", exif=exif)


def png_header(width: int, height: int) -> bytes:
    """Return a PNG file that claims a size and holds no pixels."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    size, check = struct.pack(">I", 13), struct.pack(">I", zlib.crc32(header))
    return b"\x89PNG\r\n\x1a\n" + size + header + check + b"\0\0\0\x09IDAT"


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n"


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF", "ICO"])
def test_size_and_format_are_facts_and_the_picture_is_shown(save: Save, form: str) -> None:
    source = save(encode(Image.new("RGB", (64, 48)), form, sizes=[(64, 48)]))
    facts = facts_of(source)
    assert facts.structure_info.startswith(form)
    assert (facts.width, facts.height) == picture_of(source)[1].size == (64, 48)


def test_exif_is_among_the_facts_without_the_place_and_not_in_the_picture(save: Save) -> None:
    source = save(photo_with_exif())
    facts = facts_of(source)
    assert facts.structure_info == "JPEG, RGB, taken 2026:05:01 10:00:00, camera Testcam 3000"
    picture, image = picture_of(source)
    # Both as it is shown, the right way up.
    assert (facts.width, facts.height) == image.size == (300, 400)
    assert b"Testcam" not in picture.data
    assert not dict(image.getexif())


def test_the_path_exif_shows_all_of_it_with_the_place(part: PartOf) -> None:
    found = part("image", photo_with_exif(), "exif")
    assert isinstance(found, PartText)
    assert found.text == (
        "Model: Testcam 3000\nOrientation: 6\nDateTimeOriginal: 2026:05:01 10:00:00\n"
        "MakerNote: (4 bytes)\nGPSLatitudeRef: N\nGPSLatitude: 47.0, 11.0, 42.0\n"
        "GPSLongitudeRef: W\nGPSLongitude: 8.0, 30.0, 0.0\n"
        "Position: 47.195000, -8.500000\n"
    )


def test_an_image_without_exif_says_so_and_is_no_text(part: PartOf) -> None:
    plain = encode(Image.new("L", (3, 3)), "PNG")
    with pytest.raises(OutOfRange, match="no EXIF"):
        part("image", plain, "exif")
    with pytest.raises(BadArgument):
        part("image", plain, start=1, end=2)


def test_an_animation_is_shown_as_a_sheet_of_its_frames(save: Save) -> None:
    first, *more = (Image.new("RGB", (20, 10), name) for name in ("red", "lime", "blue", "black"))
    source = save(encode(first, "GIF", save_all=True, append_images=more))
    assert "4 frames" in facts_of(source).structure_info
    _, image = picture_of(source)
    assert image.size == (40, 20)
    shown = image.convert("RGB")
    assert [shown.getpixel(place) for place in ((5, 5), (25, 5), (5, 15), (25, 15))] == [
        (255, 0, 0),
        (0, 255, 0),
        (0, 0, 255),
        (0, 0, 0),
    ]


def test_a_heic_picture_is_shown() -> None:
    # Written by pillow-heif 1.8: 64 by 48 pixels, all red.
    source = Path(__file__).parent / "data" / "red.heic"
    facts = facts_of(source)
    assert (facts.width, facts.height) == (64, 48)
    _, image = picture_of(source)
    shown = image.convert("P", palette=Image.Palette.WEB).convert("RGB")
    assert shown.getpixel((5, 5)) == (255, 0, 0)


def test_without_its_extra_a_heic_picture_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pi_heif", None)
    with pytest.raises(ModuleNotFoundError) as missing:
        facts_of(Path(__file__).parent / "data" / "red.heic")
    told = Reason.LIBRARY.cause(library=str(missing.value.name)).words()
    assert told == "the library pi_heif (install fetchstash[heic]) is missing"


def test_a_drawing_is_text_and_a_picture(save: Save) -> None:
    drawn = '<rect width="40" height="20" fill="red"/>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20">{drawn}</svg>'
    source = save(svg.encode())
    handler = handler_named("svg")
    parts = handler.extract(source, Hints(), ExtractLimits()).parts
    assert "".join(part.text for part in parts or ()).startswith("<svg")
    shown = handler.part(PartRequest(source=source, render="image"))
    assert isinstance(shown, Picture)
    assert shown.width == 2 * shown.height
    with Image.open(io.BytesIO(shown.data)) as image:
        assert image.convert("RGB").getpixel((5, 5)) == (255, 0, 0)


@pytest.mark.parametrize("svg", ["<svg", '<svg xmlns="http://www.w3.org/2000/svg" width="1e9"'])
def test_a_damaged_drawing_is_one_clear_line(save: Save, svg: str) -> None:
    with pytest.raises(NoText, match="damaged"):
        handler_named("svg").part(PartRequest(source=save(svg.encode()), render="image"))


def test_the_bytes_are_bounded(save: Save) -> None:
    source = save(encode(Image.effect_noise((800, 800), 90), "PNG"))
    picture, _ = picture_of(source, max_image_size_bytes=20_000)
    assert len(picture.data) <= 20_000
    assert picture.media_type == "image/jpeg"
    with pytest.raises(TooLarge):  # not even a thumbnail
        picture_of(source, max_image_size_bytes=100)


def test_transparent_pixels_stay_transparent_or_become_white(save: Save) -> None:
    noise = Image.effect_noise((300, 300), 90).convert("RGB")
    clear = Image.merge("RGBA", [*noise.split(), Image.new("L", (300, 300))])
    source = save(encode(clear, "PNG"))
    _, kept = picture_of(source)
    assert kept.mode == "RGBA"
    _, white = picture_of(source, max_image_size_bytes=10_000)
    assert white.getpixel((100, 100)) == (255, 255, 255)


test_a_broken_image_gives_one_clear_line = unreadable(
    "image",
    {
        "empty": (b"", "the file is empty"),
        "HEIC cut short": (struct.pack(">L", 12) + b"ftypheic", "the image is damaged"),
        "text": (b"no image at all", "the image is damaged, or of a format that is not known here"),
        "bomb": (png_header(50_000, 50_000), "the picture has more than 89,478,485 pixels"),
        "small bomb": (png_header(10_000, 10_000), "the picture has more than 89,478,485 pixels"),
        # Pillow would hand PostScript to another program.
        "PostScript": (EPS, "the image is damaged, or of a format that is not known here"),
    },
)


def test_an_image_cut_short_keeps_its_facts_and_has_no_picture(save: Save) -> None:
    source = save(encode(Image.effect_noise((300, 300), 90), "PNG")[:5_000])
    assert facts_of(source).width == 300
    with pytest.raises(NoText, match="the image is damaged or cut short"):
        picture_of(source)


# --- Audio and video: duration, codecs and tags of the container; broken ones have no facts.


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
