"""What nobody reads: facts only. No byte of it is ever decoded as text.

Where our own rules have no name for it, libmagic may have one (the extra "magic"); everything works
without.
"""

import ctypes
import os
from importlib.util import find_spec
from pathlib import Path

from fetchstash.facts import DocumentFacts
from fetchstash.handlers._contract import ContentKind, Extracted, ExtractLimits, Hints

_OCTETS = "application/octet-stream"
_HEAD_BYTES = 64 * 1024


class BinaryHandler:
    """The last in line: takes everything, and knows that there is no text."""

    name = "binary"

    def can_handle(self, kind: ContentKind, media_type: str) -> bool:  # noqa: ARG002 - it takes everything
        """Return True."""
        return True

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - no text, no limits
        """Return no text, and a media type where libmagic knows one that we do not."""
        media_type = _named_by_libmagic(source) if hints.media_type in {"", _OCTETS} else ""
        return Extracted(None, DocumentFacts(media_type=media_type))


def _named_by_libmagic(source: Path) -> str:
    """Return the media type that libmagic gives the file, "" if it is missing or knows no better; never a text's."""
    try:
        database = _prepare_library()
        import magic  # noqa: PLC0415 - an extra, and a C library behind it

        with source.open("rb") as file:
            found = magic.Magic(mime=True, magic_file=database).from_buffer(file.read(_HEAD_BYTES))
    except Exception:  # noqa: BLE001 - whatever is wrong with an optional library, there is a document to answer for
        return ""
    return (
        ""
        if found == _OCTETS or found.startswith(("text/", "inode/", "application/x-empty"))
        else found
    )


def _prepare_library() -> str | None:
    """Let python-magic find the library in the wheel pylibmagic, and return its database; None where that is not installed.

    The wheel is located without importing it: the import replaces ctypes.CDLL for the whole
    process.
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
