"""Binaries without a reader: facts only. No byte of them is decoded as text.

libmagic (the extra "magic") names what our own signatures do not know.
"""

import ctypes
import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from fetchstash.handlers._contract import Extracted, Format, Head, Hints, Sniffed, family, variant
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._reasons import Reason
from fetchstash.text.facts import DocumentFacts

_OCTETS = "application/octet-stream"
_HEAD_BYTES = 64 * 1024


class UnreadHandler:
    """Says that a known format has no reader here."""

    name = "unread"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - it is not read
        """Return no text, and the reason."""
        extracted = Extracted(None)
        extracted.fail(Reason.NO_READER.cause())
        return extracted


class BinaryHandler:
    """Names a binary that no other handler reads."""

    name = "binary"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - no text, no limits
        """Return no text, and libmagic's media type where we have none."""
        media_type = _named_by_libmagic(source) if hints.media_type in {"", _OCTETS} else ""
        return Extracted(None, DocumentFacts(media_type=media_type))


def _named_by_libmagic(source: Path) -> str:
    """Return libmagic's media type, "" if it is missing or knows no better; never a text's."""
    try:
        database = _prepare_library()
        import magic  # noqa: PLC0415 - an extra, and a C library behind it

        with source.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        media_type: str = magic.Magic(mime=True, magic_file=database).from_buffer(head)
    except Exception:  # noqa: BLE001 - an optional library must not cost the document its facts
        return ""
    vague = media_type == _OCTETS or media_type.startswith(("text/", "inode/", "application/x-emp"))
    return "" if vague else media_type


def _prepare_library() -> str | None:
    """Let python-magic find the library in the wheel pylibmagic, and return its database.

    None if the wheel is not installed. It is located without importing it: the import replaces
    ctypes.CDLL for the whole process.
    """
    spec = find_spec("pylibmagic")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    os.environ["DYLD_LIBRARY_PATH"] = str(folder)  # where python-magic looks on macOS
    library = folder / "libmagic.so.1"
    if library.exists():
        ctypes.CDLL(str(library))  # once loaded, Linux finds it by this name
    return str(folder / "magic.mgc")


_BINARY = Format(kind="unknown_binary", word="binary", handler=BinaryHandler, media_types=())

# Documents that somebody may want to read, and that have no reader here.
_UNREAD = Format(kind="unknown_binary", word="binary", handler=UnreadHandler, media_types=())


def _sniff_dbf(head: Head) -> Sniffed | None:
    """Recognise a dBASE table: its version, a date, the length of its header, and its end mark."""
    data = head.data
    if head.is_text or len(data) < 66 or data[0] not in _DBF_VERSIONS:
        return None
    month, day, length = data[2], data[3], int.from_bytes(data[8:10], "little")
    is_header = length % 32 in {0, 1} and 64 < length <= len(data) and data[length - 1] == 13
    is_header = is_header or data[length - 264 : length - 263] == b"\r"
    if is_header and 1 <= month <= 12 and 1 <= day <= 31:
        return Sniffed("application/vnd.dbf", "header of a dBASE table")
    return None


_DBF_VERSIONS = (0x02, 0x03, 0x04, 0x05, 0x30, 0x31, 0x32, 0x43, 0x7B, 0x83, 0x8B, 0x8E, 0xF5)
_VISIO = replace(_UNREAD, zip_members=("[Content_Types].xml", "visio/"))
_VISIO_TYPES = "application/vnd.ms-visio.drawing application/vnd.visio"
_MOBI, _PUBLISHER = "application/x-mobipocket-ebook", "application/x-mspublisher"
_DBF = "application/vnd.dbf application/x-dbf"
_INDESIGN = bytes.fromhex("0606edf5d81d46e5")
_ONENOTE = bytes.fromhex("e4525c7b8cd8a74daeb15378d02996d3")

FORMATS = (
    *family(
        _BINARY,
        ("binary", _OCTETS, ""),
        ("binary", "application/vnd.apache.arrow.file", "", b"ARROW1\0"),
        ("binary", "application/x-hdf5", "", b"\x89HDF\r\n\x1a\n"),
        ("binary", "application/x-npy", "", b"\x93NUMPY"),
        ("binary", "application/vnd.apache.avro", "", b"Obj\1"),
        ("binary", "application/vnd.tcpdump.pcap", "", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4"),
        ("binary", "application/x-python-pickle", "", b"\x80\4\x95"),
        ("ELF executable", "application/x-elf", "", b"\x7fELF"),
        ("Windows executable", "application/vnd.microsoft.portable-executable", "", b"MZ"),
        ("Java class", "application/java-vm", "", b"\xca\xfe\xba\xbe"),
        ("binary", "application/x-bplist", "", b"bplist0"),
        ("binary", "application/x-git-pack", "", b"PACK\0\0\0"),
        ("binary", "application/x-gettext-translation", "", b"\xde\x12\x04\x95"),
        ("binary", "application/x-lua-bytecode", "", b"\x1bLua"),
        ("WebAssembly module", "application/wasm", "wasm", b"\0asm"),
        ("binary", "application/vnd.android.dex", "", b"dex\n03"),
        ("{} font", "font/otf", "otf", b"OTTO\0"),
        ("{} font", "font/collection", "", b"ttcf\0"),
        ("{} font", "font/ttf", "ttf", b"\0\1\0\0\0"),
        ("{} font", "font/*", ""),
    ),
    *family(
        replace(_BINARY, signed=True),
        ("{} font", "font/woff", "woff", b"wOFF"),
        ("{} font", "font/woff2", "woff2", b"wOF2"),
    ),
    variant(
        _BINARY,
        "Mach-O executable",
        "application/x-mach-binary",
        "",
        b"\xcf\xfa\xed\xfe",
        b"\xfe\xed\xfa\xcf",
        b"\xce\xfa\xed\xfe",
        # For one processor or for two; as versions of Java such numbers never were.
        b"\xca\xfe\xba\xbe\0\0\0\1",
        b"\xca\xfe\xba\xbe\0\0\0\2",
    ),
    variant(_UNREAD, "Kindle book (MOBI)", _MOBI, "mobi azw3", b"BOOKMOBI", at=60),
    *family(
        _UNREAD,
        ("OneNote file", "application/onenote application/msonenote", "one", _ONENOTE),
        ("Outlook mailbox (PST)", "application/vnd.ms-outlook-pst", "pst ost", b"!BDN"),
        ("Compiled HTML Help file (CHM)", "application/vnd.ms-htmlhelp", "chm", b"ITSF"),
        ("AutoCAD drawing (DWG)", "image/vnd.dwg application/acad", "dwg", b"AC10"),
        ("Access database", "application/x-msaccess", "mdb accdb", b"\0\1\0\0Standard "),
        ("WordPerfect document", "application/vnd.wordperfect", "wpd", b"\xffWPC"),
        ("InDesign document", "application/x-indesign", "indd", _INDESIGN),
    ),
    variant(_UNREAD, "dBASE table (DBF)", _DBF, "dbf", sniff=_sniff_dbf, signed=True),
    variant(_VISIO, "Visio drawing", _VISIO_TYPES, "vsdx vsd", ole_members=("VisioDocument",)),
    variant(_UNREAD, "Publisher document", _PUBLISHER, "pub", ole_members=("Quill",)),
)
