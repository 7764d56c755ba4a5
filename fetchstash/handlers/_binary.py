"""Binaries without a reader: facts only. No byte of them is decoded as text.

libmagic (the extra "magic") names what our own signatures do not know.
"""

import ctypes
import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from fetchstash.facts import DocumentFacts
from fetchstash.handlers._contract import Extracted, ExtractLimits, Hints
from fetchstash.handlers._format import Format, family

_OCTETS = "application/octet-stream"
_HEAD_BYTES = 64 * 1024


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


_BINARY = Format(
    kind="unknown_binary",
    word="binary",
    handler=BinaryHandler,
    media_types=(),
)

FORMATS = (
    *family(
        _BINARY,
        ("binary", _OCTETS, ""),
        ("binary", "application/vnd.apache.arrow.file", "", b"ARROW1\0"),
        ("binary", "application/x-hdf5", "", b"\x89HDF\r\n\x1a\n"),
        ("binary", "application/x-npy", "", b"\x93NUMPY"),
        ("binary", "application/vnd.apache.avro", "", b"Obj\1"),
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
    replace(
        _BINARY,
        word="Mach-O executable",
        media_types=("application/x-mach-binary",),
        signatures=(
            (0, b"\xcf\xfa\xed\xfe"),
            (0, b"\xfe\xed\xfa\xcf"),
            (0, b"\xce\xfa\xed\xfe"),
            # For one processor or for two; as versions of Java such numbers never were.
            (0, b"\xca\xfe\xba\xbe\0\0\0\1"),
            (0, b"\xca\xfe\xba\xbe\0\0\0\2"),
        ),
    ),
    replace(
        _BINARY,
        media_types=("application/vnd.tcpdump.pcap",),
        signatures=((0, b"\xd4\xc3\xb2\xa1"), (0, b"\xa1\xb2\xc3\xd4")),
    ),
    replace(
        _BINARY,
        media_types=("application/x-mobipocket-ebook",),
        signatures=((60, b"BOOKMOBI"),),
    ),
)
