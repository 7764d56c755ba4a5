"""Audio and video: facts that tinytag reads from their headers; no stream is decoded."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from fetchstash.handlers._binary import UnreadHandler
from fetchstash.handlers._contract import Extracted, Format, Head, Hints, Sniffed, family, variant
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._sniffers import printable
from fetchstash.text.facts import clock

_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}

# ISO base media files (ISO/IEC 14496-12, section 4.3) by the beginning of the major brand.
_BRANDS = (
    (b"avif", "image/avif"),
    (b"avis", "image/avif"),
    (b"hei", "image/heic"),
    (b"hev", "image/heic"),
    (b"mif1", "image/heic"),
    (b"M4A", "audio/mp4"),
    (b"M4B", "audio/mp4"),
    (b"qt", "video/quicktime"),
    (b"3g", "video/3gpp"),
    (b"", "video/mp4"),
)
# Sync words of streams without a header.
_MPEG_AUDIO = (b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"\xff\xfa")
_ADTS = (b"\xff\xf1", b"\xff\xf9")
_TRANSPORT_PACKET = 188


def sniff(head: Head) -> Sniffed | None:
    """Recognise a container by its type field, or a bare stream by its frames."""
    if head.is_text:
        return None
    data = head.data
    if data.startswith(b"FORM") and data[8:12] in {b"AIFF", b"AIFC"}:
        return Sniffed("audio/aiff", "signature FORM AIFF")
    if data.startswith(b"RIFF") and data[8:12] in _RIFF:
        return Sniffed(_RIFF[data[8:12]], f"signature RIFF {printable(data[8:12])}")
    if data[4:8] == b"ftyp":
        media_type = next(media for brand, media in _BRANDS if data.startswith(brand, 8))
        return Sniffed(media_type, f"signature ftyp {printable(data[8:12])}")
    if data.startswith(b"OggS"):
        if b"\x80theora" in data[:512]:
            return Sniffed("video/ogg", "signature OggS, theora")
        return Sniffed("audio/ogg", "signature OggS")
    if data.startswith(b"\x1a\x45\xdf\xa3"):
        webm = b"webm" in data[:64]
        return Sniffed("video/webm" if webm else "video/x-matroska", "signature EBML")
    return _frames(data)


def _frames(data: bytes) -> Sniffed | None:
    if data.startswith(_MPEG_AUDIO):
        return Sniffed("audio/mpeg", "sync of MPEG audio")
    if data.startswith(_ADTS):
        return Sniffed("audio/aac", "sync of ADTS")
    packets = data[: 2 * _TRANSPORT_PACKET + 1 : _TRANSPORT_PACKET]
    if packets == b"\x47" * 3 and not data.startswith(b"GIF8"):
        return Sniffed("video/mp2t", "sync of an MPEG transport stream")
    return None


# Codecs by how a file begins, and by what stands in its first bytes.
_CODECS = {b"fLaC": "FLAC", b"ID3": "MP3", b"\xff": "MP3"}
_OGG_CODECS = {b"\x01vorbis": "Vorbis", b"OpusHead": "Opus", b"\x80theora": "Theora"}
_TAGS = ("title", "artist", "album", "year", "genre", "comment")
_MAX_SECONDS = 10**9


class MediaHandler:
    """Reads duration, sampling, codecs and tags. There is no text."""

    name = "media"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - the file is enough
        """Return the facts, those that were read of a damaged file."""
        from tinytag import TinyTag  # noqa: PLC0415 - for sound alone

        seconds: float | None = None
        facts: list[str] = []
        tags: dict[str, str] = {}
        with source.open("rb") as file:
            head = file.read(512)
            file.seek(0)
            with suppress(Exception):
                read = TinyTag.get(file_obj=file)
                values = {name: getattr(read, name) for name in _TAGS}
                tags = {name: str(value).strip("\0 ") for name, value in values.items() if value}
                if read.duration is not None and 0 <= read.duration < _MAX_SECONDS:
                    seconds = read.duration
                    facts.append(clock(seconds))
                facts += [f"{read.samplerate:,} Hz"] if read.samplerate else []
                if read.channels:
                    facts.append(f"{read.channels} channels" if read.channels > 1 else "mono")
        facts += [name for magic, name in _CODECS.items() if head.startswith(magic)]
        facts += [name for mark, name in _OGG_CODECS.items() if mark in head]
        facts += [f"{'date' if name == 'year' else name} {tags[name]}" for name in tags]
        extracted = Extracted(None)
        extracted.learn(title=tags.get("title", ""), author=tags.get("artist", ""))
        extracted.learn(published=tags.get("year", "")[:10], structure_info=", ".join(facts))
        extracted.learn(seconds=None if seconds is None else round(seconds))
        return extracted


_AUDIO = Format(kind="audio", word="{} audio", handler=MediaHandler, media_types=())
_VIDEO = replace(_AUDIO, kind="video", word="{} video")

FORMATS = (
    variant(_AUDIO, "MP3 audio", "audio/mpeg", "mp3", b"ID3", sniff=sniff),
    *family(
        _AUDIO,
        ("M4A audio", "audio/mp4", "m4a"),
        ("WAV audio", "audio/x-wav", ""),
        ("MIDI audio", "audio/midi", "", b"MThd\0\0\0\6"),
        ("{} audio", "audio/basic", "", b".snd\0\0\0"),
        ("{} audio", "audio/amr", "", b"#!AMR"),
        ("{} audio", "audio/aac", "aac"),
        ("{} audio", "audio/aiff", ""),
        ("{} audio", "audio/*", ""),
    ),
    *family(
        replace(_AUDIO, signed=True),
        ("{} audio", "audio/wav", "wav"),
        ("{} audio", "audio/flac", "flac", b"fLaC"),
        ("{} audio", "audio/ogg", "ogg opus"),
        ("audio", "application/ogg", ""),
    ),
    *family(
        _VIDEO,
        ("QuickTime video", "video/quicktime", "mov"),
        ("{} video", "video/x-ms-asf", "", b"\x30\x26\xb2\x75\x8e\x66\xcf\x11"),
        ("{} video", "video/x-flv", "", b"FLV\1"),
        ("{} video", "video/ogg", ""),
        ("{} video", "video/3gpp", ""),
        ("{} video", "video/mp2t", ""),
        ("{} video", "video/*", ""),
    ),
    variant(_VIDEO, "{} video", "video/mpeg", "mpg mpeg", b"\0\0\1\xba", b"\0\0\1\xb3"),
    variant(_VIDEO, "{} video", "video/mp4", "mp4 m4v", signed=True),
    variant(_VIDEO, "AVI video", "video/x-msvideo", "avi", handler=UnreadHandler),
    *family(
        replace(_VIDEO, handler=UnreadHandler, signed=True),
        ("{} video", "video/webm", "webm"),
        ("Matroska video", "video/x-matroska", "mkv"),
    ),
)
