"""The formats that fetchstash reads, tables to look them up, and which of them reads a document.

A format of ours is one module and one line here. Importing this costs nothing: declarations are
imported when the first document is routed, handlers in the worker alone.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, cast

from fetchstash.handlers._contract import (
    ContentKind,
    Decision,
    Format,
    Handler,
    PartRequest,
    PartText,
    Picture,
)
from fetchstash.handlers._reasons import Reason, ReasonTable

GENERIC_MEDIA_TYPES = frozenset(
    {
        "",
        "text/plain",
        "application/octet-stream",
        "binary/octet-stream",
        "application/binary",
        "application/download",
        "application/x-download",
        "application/force-download",
        "application/unknown",
        "application/x-unknown",
        "content/unknown",
        "unknown/unknown",
        "*/*",
        "application/x-binary",
        "application/x-octet-stream",
    }
)
"""Labels that servers use for want of a better one (WHATWG MIME Sniffing, section 7)."""

# Sniffers are tried in this order, and the first format of a kind is the kind's own.
MODULES = tuple(
    f"fetchstash.handlers.{name}"
    for name in (
        "_binary",
        "_text",
        "_image",
        "_pdf",
        "_office",
        "_mail",
        "_html",
        "_data",
        "_code",
        "_media",
        "_archive",
        "_answers",
    )
)


class Formats:
    """Formats in the order of their priority, then as declared, with tables to look them up."""

    def __init__(self, formats: Iterable[Format]) -> None:
        self.all = tuple(sorted(formats, key=lambda f: -f.priority))
        self.text_sniffers = [f.sniff for f in self.all if f.sniff and f.bytes_are_text]
        self.binary_sniffers = [f.sniff for f in self.all if f.sniff and not f.bytes_are_text]
        # Longest first, because one signature begins another.
        self.signatures = sorted(
            ((at, magic, f.media_types[0]) for f in self.all for at, magic in f.signatures),
            key=lambda row: -len(row[1]),
        )
        self.zip_members = [(f.zip_members, f.media_types[0]) for f in self.all if f.zip_members]
        self.ole_members = [(m, f.media_types[0]) for f in self.all for m in f.ole_members]
        self._by_media_type: dict[str, list[Format]] = {}
        self._by_extension: dict[str, Format] = {}
        self._by_file_name: dict[str, Format] = {}
        for f in self.all:
            for media_type in f.media_types:
                self._by_media_type.setdefault(media_type, []).append(f)
            self._by_extension = dict.fromkeys(f.extensions, f) | self._by_extension
            self._by_file_name = dict.fromkeys(f.file_names, f) | self._by_file_name
        # Suffixes (RFC 6839) say more than a top-level type, and a longer prefix than a shorter.
        patterns = sorted((m for m in self._by_media_type if "*" in m), key=lambda m: -len(m))
        self._suffixes = [m for m in patterns if m.startswith("*")]
        self._prefixes = [m for m in patterns if m.endswith("*")]

    def by_media_type(self, media_type: str) -> tuple[Format, ...]:
        """Return the formats of a bare media type in lower case, best first."""
        if media_type in self._by_media_type:
            return tuple(self._by_media_type[media_type])
        for pattern in self._suffixes:
            if media_type.endswith(pattern[1:]):
                return tuple(self._by_media_type[pattern])
        for pattern in self._prefixes:
            if media_type.startswith(pattern[:-1]):
                return tuple(self._by_media_type[pattern])
        return ()

    def declares(self, media_type: str) -> bool:
        """Return whether a format declares this very media type, and no pattern for it."""
        return "*" not in media_type and media_type in self._by_media_type

    def by_label(self, media_type: str) -> Format | None:
        """Return the format that a label names, None if it is generic or says nothing to us."""
        formats = () if media_type in GENERIC_MEDIA_TYPES else self.by_media_type(media_type)
        return next((f for f in formats if f.kind != "unknown_binary"), None)

    def by_name(self, file_name: str) -> Format | None:
        """Return the format that a file name stands for, by all of it or by its extension."""
        name = file_name.lower()
        extension = name.rpartition(".")[2] if "." in name else ""
        return self._by_file_name.get(name) or self._by_extension.get(extension)

    def kind(self, media_type: str) -> ContentKind:
        """Return the kind of a media type that a sniffer or a signature found."""
        formats = self.by_media_type(media_type)
        return formats[0].kind if formats else "unknown_binary"

    def candidates(self, kind: ContentKind, media_type: str) -> tuple[Format, ...]:
        """Return the formats that may read such a document, best first; the kind's own is last."""
        named = [f for f in self.by_media_type(media_type) if f.kind == kind]
        own = next(f for f in self.all if f.kind == kind)
        return tuple(dict.fromkeys([*named, own]))


def check_claims(formats: Iterable[Format]) -> None:
    """Raise ValueError where two formats of one priority claim a name or a media type.

    The second would never be chosen. A format may be declared twice where it is recognised in two
    ways, as a text and by a signature.
    """
    claimed: dict[tuple[int, str], Format] = {}
    for f in formats:
        for claim in (*f.media_types, *f.file_names, *(f".{name}" for name in f.extensions)):
            first = claimed.setdefault((f.priority, claim), f)
            if (first.kind, first.word, first.handler) != (f.kind, f.word, f.handler):
                raise ValueError(f"{first.word} and {f.word} both claim {claim}")


def package_name(name: str) -> str:
    """Return the name of a package as PEP 503 normalises it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def words(formats: Sequence[Format]) -> str:
    """Return the names of formats, each once."""
    return ", ".join(dict.fromkeys(f.name("") for f in formats))


@cache
def built_in() -> Formats:
    """Return the formats of fetchstash itself. Raises ValueError where two claim the same."""
    formats = Formats(f for module in MODULES for f in import_module(module).FORMATS)
    check_claims(formats.all)
    return formats


@cache
def reasons() -> Mapping[str, ReasonTable]:
    """Return all reasons by code: those of our formats stand beside their declarations."""
    built_in()  # imports the declarations
    tables = ReasonTable.__subclasses__()
    return {reason.name.lower(): reason for table in tables for reason in table}


@cache
def handler_of(declared: Format) -> Handler:
    """Return the handler of a format, made once. Raises what importing it raises."""
    if not isinstance(declared.handler, str):
        return declared.handler()
    module, _, name = declared.handler.partition(":")
    return cast("Handler", getattr(import_module(module), name)())


def format_of(decision: Decision) -> Format:
    """Return the built-in format that reads a document."""
    return built_in().candidates(decision.kind, decision.media_type)[0]


def kind_of_name(file_name: str) -> ContentKind:
    """Return the kind of content that a file name stands for."""
    named = built_in().by_name(file_name)
    return named.kind if named else "unknown_binary"


def describe(kind: str, media_type: str) -> dict[str, Any]:
    """Return the facts that the built-in format of such a document declares.

    A ``kind`` of "" is that of the media type.
    """
    known = cast("ContentKind", kind) if kind else built_in().kind(media_type)
    return built_in().candidates(known, media_type)[0].facts(media_type)


def read_part(handler: Handler, request: PartRequest) -> PartText | Picture:
    """Return the part that was asked for. Raises what the handler raises, NoText if it has none."""
    part = getattr(handler, "part", None)
    if part is None:
        raise Reason.NO_PATHS.error()
    answer: PartText | Picture = part(request)
    return answer
