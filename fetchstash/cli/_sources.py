"""What a person names on the command line: a reference, a URL, a site, a file, or stdin."""

import os
import re
import stat
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fetchstash.cli._terminal import screen_of
from fetchstash.errors import BadArgument, Call, TooLarge

if TYPE_CHECKING:
    from fetchstash.config import Settings

Kind = Literal["newest", "prefix", "url", "file"]

_NEWEST = re.compile(r"@([1-9][0-9]{0,5})")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_BARE_PREFIX = re.compile(r"[a-z2-7]{4,26}")
_HOST = re.compile(
    r"(?:(?P<local>localhost|\d+(?:\.\d+){3}|\[[0-9A-Fa-f:.]+\]|[\w-]+(?=:))"
    r"|(?:[\w-]+\.)+[^\W\d][\w-]+)\.?(?::\d{1,5})?(?:[/?#]\S*)?"
)
# No top-level domain is called like these, so such a name without a file is a slip.
_EXTENSIONS = re.compile(
    r"[^/]+\.(?:csv|docx?|epub|eml|gif|html?|ipynb|jpe?g|json|jsonl|log|odt|ods|parquet|pdf|png|"
    r"pptx?|rtf|sqlite|tsv|txt|webp|xlsx?|xml|ya?ml)"
)
# Files seldom are called like these, and notes.md is no site to whoever has a file of that name.
_SITE = re.compile(r"\.(?:com|org|net|edu|gov|io|dev|app|info|ai)\Z")
_COPY_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Source:
    """What one word of the command line names.

    ``value`` is a number for "newest", the beginning of a reference for "prefix", else the URL or
    the path. ``hint`` says what else the word may have meant ("": nothing).
    """

    word: str
    kind: Kind
    value: str
    hint: str = ""


def is_plain_source(word: str) -> bool:
    """Return whether a word can only be a source: @1, art_…, or a URL with its scheme."""
    return bool(_NEWEST.fullmatch(word)) or word.startswith(("art_", "http://", "https://"))


@contextmanager
def sources(words: Sequence[str], settings: "Settings") -> Generator[list[Source]]:
    """Give the source of each word; what comes out of a pipe is in a file meanwhile.

    Raises BadArgument for a word that names nothing, and TooLarge. A pipe is read here, outside of
    any event loop, so that Ctrl-C ends it.
    """
    if words.count("-") > 1:
        raise BadArgument("stdin is named twice.", "Give - once.")
    with tempfile.TemporaryDirectory(prefix="fetchstash-") as folder:
        limit = settings.fetch.max_decoded_bytes
        yield [_source(word, Path(folder, str(n)), limit) for n, word in enumerate(words)]


def _source(word: str, folder: Path, max_bytes: int) -> Source:
    if word == "-":
        if screen_of("stdin").is_terminal:
            sys.stderr.write("Reading what you type; Ctrl-D ends it.\n")
        return Source(word, "file", str(_spooled(sys.stdin.fileno(), folder / "stdin", max_bytes)))
    if number := _NEWEST.fullmatch(word):
        return Source(word, "newest", number[1])
    if word.startswith("art_"):
        return Source(word, "prefix", word.removeprefix("art_"))
    if _SCHEME.match(word):
        return Source(word, "url", word)
    url = _url_of(word)
    path = Path(word).expanduser()
    mode = _mode(path)
    if mode and (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):  # <(command), /dev/stdin
        descriptor = os.open(path, os.O_RDONLY)
        try:
            return Source(word, "file", str(_spooled(descriptor, folder / path.name, max_bytes)))
        finally:
            os.close(descriptor)
    if mode and not stat.S_ISDIR(mode):
        is_site = bool(_SITE.search(word.lower()))
        also = f"{word} is a file here; {url} is the site." if url and is_site else ""
        return Source(word, "file", str(path), also)
    if word and stat.S_ISDIR(mode) and not url:
        raise BadArgument(f"{word} is a folder.", "Name the files in it.")
    if word.startswith((".", "/", "~", os.sep)) or _EXTENSIONS.fullmatch(word.lower()):
        raise BadArgument(f"There is no file {word}.", "Give the path of one.")
    if url:
        return Source(word, "url", url, f"There is no file {word}; it was taken for a site.")
    if _BARE_PREFIX.fullmatch(word):
        return Source(word, "prefix", word)
    raise BadArgument(
        f"{word!r} is no URL, no file and no reference.", "{} lists what is kept.", Call("list")
    )


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0


def _url_of(word: str) -> str:
    """Return the URL of a site without a scheme, "" if it is none.

    https, as browsers do; http for an address, localhost, and a name of this network with a port.
    """
    host = _HOST.fullmatch(word)
    if not host:
        return ""
    return f"http://{word}" if host["local"] else f"https://{word}"


def _spooled(descriptor: int, path: Path, max_bytes: int) -> Path:
    """Copy a stream to a file. Raises TooLarge."""
    path.parent.mkdir(exist_ok=True)
    size = 0
    with path.open("wb") as file:
        while data := os.read(descriptor, _COPY_BYTES):
            size += len(data)
            if size > max_bytes:
                what = f"What comes in has more than {max_bytes:,} bytes."
                allow = Call("setting", {"name": "fetch.max_decoded_bytes", "value": 2**30})
                raise TooLarge(what, "Give less, or allow more: {}.", allow)
            file.write(data)
    return path
