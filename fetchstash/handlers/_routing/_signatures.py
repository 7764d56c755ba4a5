"""Binary formats by the bytes at fixed places of a file: a table, and the few that need more than a table."""

import re
from dataclasses import dataclass

from fetchstash.handlers._contract import ContentKind


@dataclass(frozen=True, slots=True)
class Signature:
    """The bytes of a format, and what it is. ``evidence`` names what was seen, for people."""

    kind: ContentKind
    media_type: str
    evidence: str


# Where to look, what for, and what it is. Longest knowledge first where one signature begins
# another.
_TABLE: tuple[tuple[int, bytes, ContentKind, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image", "image/png"),
    (0, b"\xff\xd8\xff", "image", "image/jpeg"),
    (0, b"GIF87a", "image", "image/gif"),
    (0, b"GIF89a", "image", "image/gif"),
    (0, b"II*\0", "image", "image/tiff"),
    (0, b"MM\0*", "image", "image/tiff"),
    (0, b"\0\0\1\0", "image", "image/x-icon"),
    (0, b"8BPS\0", "image", "image/vnd.adobe.photoshop"),
    (0, b"\0\0\0\x0cjP  \r\n\x87\n", "image", "image/jp2"),
    (0, b"\0\0\0\x0cJXL \r\n\x87\n", "image", "image/jxl"),
    (0, b"\xff\x0a", "image", "image/jxl"),
    (0, b"qoif", "image", "image/qoi"),
    (0, b"DDS ", "image", "image/vnd.ms-dds"),
    (0, b"\x76\x2f\x31\x01", "image", "image/x-exr"),
    (0, b"gimp xcf", "image", "image/x-xcf"),
    (0, b"AT&TFORM", "image", "image/vnd.djvu"),
    (0, b"P4\n", "image", "image/x-portable-anymap"),
    (0, b"P5\n", "image", "image/x-portable-anymap"),
    (0, b"P6\n", "image", "image/x-portable-anymap"),
    (0, b"ID3", "audio", "audio/mpeg"),
    (0, b"fLaC", "audio", "audio/flac"),
    (0, b"MThd\0\0\0\6", "audio", "audio/midi"),
    (0, b".snd\0\0\0", "audio", "audio/basic"),
    (0, b"#!AMR", "audio", "audio/amr"),
    (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "video", "video/x-ms-asf"),
    (0, b"FLV\1", "video", "video/x-flv"),
    (0, b"\0\0\1\xba", "video", "video/mpeg"),
    (0, b"\0\0\1\xb3", "video", "video/mpeg"),
    (0, b"\x1f\x8b\x08", "archive", "application/gzip"),
    (0, b"BZh", "archive", "application/x-bzip2"),
    (0, b"\xfd7zXZ\0", "archive", "application/x-xz"),
    (0, b"\x28\xb5\x2f\xfd", "archive", "application/zstd"),
    (0, b"7z\xbc\xaf\x27\x1c", "archive", "application/x-7z-compressed"),
    (0, b"Rar!\x1a\x07", "archive", "application/vnd.rar"),
    (0, b"MSCF\0\0\0\0", "archive", "application/vnd.ms-cab-compressed"),
    (0, b"!<arch>\ndebian-binary", "archive", "application/vnd.debian.binary-package"),
    (0, b"!<arch>\n", "archive", "application/x-archive"),
    (0, b"070701", "archive", "application/x-cpio"),
    (0, b"070707", "archive", "application/x-cpio"),
    (0, b"\xed\xab\xee\xdb", "archive", "application/x-rpm"),
    (0, b"xar!", "archive", "application/x-xar"),
    (0, b"\x04\x22\x4d\x18", "archive", "application/x-lz4"),
    (0, b"LZIP\1", "archive", "application/x-lzip"),
    (0, b"\x1f\x9d", "archive", "application/x-compress"),
    (257, b"ustar", "archive", "application/x-tar"),
    (32769, b"CD001", "archive", "application/x-iso9660-image"),
    (0, b"SQLite format 3\0", "spreadsheet", "application/vnd.sqlite3"),
    (0, b"PAR1", "spreadsheet", "application/vnd.apache.parquet"),
    (0, b"ARROW1\0", "unknown_binary", "application/vnd.apache.arrow.file"),
    (0, b"\x89HDF\r\n\x1a\n", "unknown_binary", "application/x-hdf5"),
    (0, b"\x93NUMPY", "unknown_binary", "application/x-npy"),
    (0, b"Obj\1", "unknown_binary", "application/vnd.apache.avro"),
    (0, b"\x80\4\x95", "unknown_binary", "application/x-python-pickle"),
    (0, b"\x7fELF", "unknown_binary", "application/x-elf"),
    (0, b"MZ", "unknown_binary", "application/vnd.microsoft.portable-executable"),
    (0, b"\xcf\xfa\xed\xfe", "unknown_binary", "application/x-mach-binary"),
    (0, b"\xfe\xed\xfa\xcf", "unknown_binary", "application/x-mach-binary"),
    (0, b"\xce\xfa\xed\xfe", "unknown_binary", "application/x-mach-binary"),
    (
        0,
        b"\xca\xfe\xba\xbe\0\0\0\1",
        "unknown_binary",
        "application/x-mach-binary",
    ),  # for so many processors; as a version
    (
        0,
        b"\xca\xfe\xba\xbe\0\0\0\2",
        "unknown_binary",
        "application/x-mach-binary",
    ),  # of Java such numbers never were
    (0, b"\xca\xfe\xba\xbe", "unknown_binary", "application/java-vm"),
    (0, b"bplist0", "unknown_binary", "application/x-bplist"),
    (0, b"PACK\0\0\0", "unknown_binary", "application/x-git-pack"),
    (0, b"\xd4\xc3\xb2\xa1", "unknown_binary", "application/vnd.tcpdump.pcap"),
    (0, b"\xa1\xb2\xc3\xd4", "unknown_binary", "application/vnd.tcpdump.pcap"),
    (0, b"\xde\x12\x04\x95", "unknown_binary", "application/x-gettext-translation"),
    (0, b"\x1bLua", "unknown_binary", "application/x-lua-bytecode"),
    (0, b"\0asm", "unknown_binary", "application/wasm"),
    (0, b"dex\n03", "unknown_binary", "application/vnd.android.dex"),
    (0, b"wOFF", "unknown_binary", "font/woff"),
    (0, b"wOF2", "unknown_binary", "font/woff2"),
    (0, b"OTTO\0", "unknown_binary", "font/otf"),
    (0, b"ttcf\0", "unknown_binary", "font/collection"),
    (0, b"\0\1\0\0\0", "unknown_binary", "font/ttf"),
    (60, b"BOOKMOBI", "unknown_binary", "application/x-mobipocket-ebook"),
)

# Members of ISO base media files (ISO/IEC 14496-12, section 4.3) by their major brand.
_BRANDS: tuple[tuple[bytes, ContentKind, str], ...] = (
    (b"avif", "image", "image/avif"),
    (b"avis", "image", "image/avif"),
    (b"hei", "image", "image/heic"),
    (b"hev", "image", "image/heic"),
    (b"mif1", "image", "image/heic"),
    (b"M4A", "audio", "audio/mp4"),
    (b"M4B", "audio", "audio/mp4"),
    (b"qt", "video", "video/quicktime"),
    (b"3g", "video", "video/3gpp"),
)

_RIFF: dict[bytes, tuple[ContentKind, str]] = {
    b"WEBP": ("image", "image/webp"),
    b"WAVE": ("audio", "audio/wav"),
    b"AVI ": ("video", "video/x-msvideo"),
}

_PDF_HEADER = re.compile(rb"%PDF-\d")
_PDF_OBJECT = re.compile(rb"\d obj\b|\bstartxref\b")
# ISO 32000-1, annex H.3.4.1: readers look for the header in this many bytes.
_PDF_REACH = 1_024


def find_signature(head: bytes, *, is_text: bool) -> Signature | None:
    """Return the binary format that the first bytes of a file show, None if they show none. ZIP and OLE are left to the containers.

    ``is_text``: they read as text; then a signature of printable characters proves nothing, since
    any text may begin with it.
    """
    pdf = _pdf(head, is_text=is_text)
    if pdf:
        return pdf
    if head.startswith(b"{\\rtf"):
        return Signature("office_doc", "application/rtf", "signature {\\rtf")
    if is_text:
        return None
    for at, magic, kind, media_type in _TABLE:
        if head.startswith(magic, at):
            return Signature(
                kind, media_type, f"signature {_shown(magic)}" + (f" at {at}" if at else "")
            )
    return (
        _riff(head)
        or _iso_media(head)
        or _ogg(head)
        or _matroska(head)
        or _bmp(head)
        or _frames(head)
    )


def _pdf(head: bytes, *, is_text: bool) -> Signature | None:
    found = _PDF_HEADER.search(head, 0, _PDF_REACH)
    if not found or (
        is_text
        and (head[: found.start()].strip(b"\0\xef\xbb\xbf \t\r\n") or not _PDF_OBJECT.search(head))
    ):
        return None
    return Signature(
        "pdf",
        "application/pdf",
        "signature %PDF-" + (f" at {found.start()}" if found.start() else ""),
    )


def _riff(head: bytes) -> Signature | None:
    if head[:4] == b"FORM" and head[8:12] in {b"AIFF", b"AIFC"}:
        return Signature("audio", "audio/aiff", "signature FORM AIFF")
    if head[:4] != b"RIFF" or head[8:12] not in _RIFF:
        return None
    return Signature(*_RIFF[head[8:12]], f"signature RIFF {_shown(head[8:12])}")


def _iso_media(head: bytes) -> Signature | None:
    if head[4:8] != b"ftyp":
        return None
    brand = head[8:12]
    for prefix, kind, media_type in _BRANDS:
        if brand.startswith(prefix):
            return Signature(kind, media_type, f"signature ftyp {_shown(brand)}")
    return Signature("video", "video/mp4", f"signature ftyp {_shown(brand)}")


def _ogg(head: bytes) -> Signature | None:
    if head[:4] != b"OggS":
        return None
    return (
        Signature("video", "video/ogg", "signature OggS, theora")
        if b"\x80theora" in head[:512]
        else Signature("audio", "audio/ogg", "signature OggS")
    )


def _matroska(head: bytes) -> Signature | None:
    if head[:4] != b"\x1a\x45\xdf\xa3":
        return None
    return Signature(
        "video", "video/webm" if b"webm" in head[:64] else "video/x-matroska", "signature EBML"
    )


def _bmp(head: bytes) -> Signature | None:
    """BM is too short to believe alone: the size of the header behind it must be one that exists."""
    if head[:2] == b"BM" and int.from_bytes(head[14:18], "little") in {
        12,
        40,
        52,
        56,
        64,
        108,
        124,
    }:
        return Signature("image", "image/bmp", "signature BM")
    return None


def _frames(head: bytes) -> Signature | None:
    """Streams without a header: MPEG audio, ADTS and MPEG transport, by the sync of their frames."""
    if head[:1] == b"\xff" and head[1:2] in {b"\xfb", b"\xf3", b"\xf2", b"\xfa"}:
        return Signature("audio", "audio/mpeg", "sync of MPEG audio")
    if head[:1] == b"\xff" and head[1:2] in {b"\xf1", b"\xf9"}:
        return Signature("audio", "audio/aac", "sync of ADTS")
    if len(head) > 376 and all(head[at] == 0x47 for at in (0, 188, 376)):
        return Signature("video", "video/mp2t", "sync of an MPEG transport stream")
    return None


def _shown(magic: bytes) -> str:
    """Return signature bytes in print: their ASCII letters, or hexadecimal where there are not enough of them."""
    letters = bytes(b for b in magic if 0x20 < b < 0x7F).decode("ascii")
    return letters if len(letters) >= 2 else magic.hex()
