"""Binary formats by the bytes at fixed places of a file."""

from fetchstash.handlers._format import Head, Sniffed
from fetchstash.handlers._formats import Formats


def find_signature(head: Head, formats: Formats) -> Sniffed | None:
    """Return the binary format that a file begins as, None if none; containers are not opened.

    Of a text only its sniffers count: any text may begin with a signature of printable characters.
    """
    for sniff in formats.binary_sniffers:
        if sniffed := sniff(head):
            return sniffed
    if head.is_text:
        return None
    for at, magic, media_type in formats.signatures:
        if head.data.startswith(magic, at):
            place = f" at {at}" if at else ""
            return Sniffed(media_type, f"signature {printable(magic)}{place}")
    return None


def printable(magic: bytes) -> str:
    """Return the ASCII letters of a signature, or hexadecimal where there are fewer than two."""
    letters = bytes(b for b in magic if 0x20 < b < 0x7F).decode("ascii")
    return letters if len(letters) >= 2 else magic.hex()
