"""Format: the one declaration of a format; router, registry and facts read it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from fetchstash.handlers._contract import ContentKind, Handler


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a document, for sniffers.

    ``data`` is its first 64 KiB. ``is_text``: they passed the text test. Sniffers of texts get the
    first 4,096 characters as ``text`` too; ``whole``: there are no more.
    """

    data: bytes
    is_text: bool = False
    text: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Sniffed:
    """The format that a sniffer recognised, and the evidence.

    ``full``: the structure is so plain that it outweighs a label of another family.
    """

    media_type: str
    evidence: str
    full: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """All that fetchstash knows of a format.

    ``word`` names it in the facts line ("PDF"); ``{}`` in it stands for the media subtype.
    ``media_types``: the first is that of its files; ``image/*`` and ``*+json`` are patterns.
    ``handler`` is a class or a function that returns a Handler, or ``module:name`` where importing
    that costs much: the server imports declarations alone, the worker imports handlers.

    A format is recognised by ``signatures`` (offset and bytes), by the members that a ZIP or OLE
    container must have (a ZIP's by how they begin), by ``sniff``, by its label, or by
    ``extensions`` and ``file_names``. ``signed``: there is no such file without its signature, so
    that a label alone proves nothing. If two formats fit, the one of higher ``priority``
    reads the document.

    ``is_text``: the text is the document itself, and is kept whole. ``is_markup``: the bytes are
    text, from which the handler reads another. ``paths`` are the paths that ``Handler.part``
    answers, with ``*`` for anything ("links", "/*"); a heading of that title goes first, but for
    ``*`` alone.
    ``unit`` suits reading it in parts, ``page_word`` names its pages. ``pictures``: the handler
    renders its pages, or all of it.
    """

    kind: ContentKind
    word: str
    handler: str | Callable[[], Handler]
    media_types: tuple[str, ...]
    extensions: tuple[str, ...] = ()
    file_names: tuple[str, ...] = ()
    signatures: tuple[tuple[int, bytes], ...] = ()
    zip_members: tuple[str, ...] = ()
    ole_members: tuple[str, ...] = ()
    sniff: Callable[[Head], Sniffed | None] | None = None
    signed: bool = False
    priority: int = 0
    is_text: bool = False
    is_markup: bool = False
    paths: tuple[str, ...] = ()
    unit: str = "lines"
    page_word: str = "pages"
    pictures: bool = False

    @property
    def bytes_are_text(self) -> bool:
        """Whether a file of this format passes the text test."""
        return self.is_text or self.is_markup

    def facts(self, media_type: str) -> dict[str, Any]:
        """Return the facts of a document that its format alone decides."""
        return {
            "content_kind": self.kind,
            "word": self.name(media_type),
            "is_text": self.is_text,
            "paths": self.paths,
            "unit": self.unit,
            "page_word": self.page_word,
            "pictures": self.pictures,
        }

    def name(self, media_type: str) -> str:
        """Return the word for a document of this media type: "PNG image".

        Of a media type that is not declared nothing is shown: a server may have written it.
        """
        subtype = media_type.partition("/")[2] if media_type in self.media_types else ""
        return self.word.replace("{}", subtype.upper() if subtype.isalnum() else "").strip()

    def declared_name(self, media_type: str) -> str:
        """Return ``media_type`` if it is declared, else the pattern that it matches."""
        return media_type if media_type in self.media_types else self.media_types[-1]


Row = tuple[str, str, str] | tuple[str, str, str, bytes]
"""Word, media types, extensions (each a list parted by spaces), and a signature at offset 0."""


def family(base: Format, *rows: Row) -> Iterator[Format]:
    """Yield a format for each row, which is like ``base`` in all else."""
    for row in rows:
        word, media_types, extensions, *magic = row
        yield replace(
            base,
            word=word,
            media_types=tuple(media_types.split()),
            extensions=tuple(extensions.split()),
            signatures=tuple((0, signature) for signature in magic) or base.signatures,
        )
