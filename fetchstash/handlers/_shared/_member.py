"""A document within a document: a member of an archive, an attachment of a mail. It is routed and read as any other."""

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from fetchstash.errors import BadArgument, NoText
from fetchstash.handlers._contract import (
    Extracted,
    ExtractLimits,
    Hints,
    PartRequest,
    PartText,
    Picture,
)
from fetchstash.handlers._shared._part_text import part_text
from fetchstash.handlers._shared._reasons import KEPT
from fetchstash.text import clip

WITHIN = "!/"
"""Stands between the name of a member and that of a member of it, as in the URLs of Java archives."""

MAX_NESTING = 2
_SHOWN_NAME = 60


class MemberParts(ABC):
    """What handlers share whose parts are documents: a subclass opens one by its name, and this reads it."""

    @abstractmethod
    def open_member(self, source: Path, name: str) -> AbstractContextManager[Iterable[bytes]]:
        """Give the content of ``name`` in pieces. Raises OutOfRange if there is no such member, NoText for one that is not read."""

    def part(self, request: PartRequest) -> PartText | Picture:
        """Return a member's text or picture; the path is its name, ``inner.zip!/name`` a member of a member."""
        if not request.path:
            raise BadArgument("This has members.", "Name one of them as path; its text lists them.")
        name, within = split_path(request.path)
        with self.open_member(request.source, name) as pieces:
            return read_member(pieces, name, replace(request, path=within))


def shown_name(name: str) -> str:
    """Return the name of a member as an error shows it: quoted, with at most 60 characters."""
    return repr(clip(name, _SHOWN_NAME))


def split_path(path: str) -> tuple[str, str]:
    """Return the name of a member, and the path within it ("" for all of it). Raises NoText for one in too many documents."""
    if path.count(WITHIN) > MAX_NESTING:
        raise NoText(
            f"Members are read through {MAX_NESTING} archives or mails within one another at the most.",
            KEPT,
        )
    name, _, within = path.partition(WITHIN)
    return name, within


def read_member(pieces: Iterable[bytes], name: str, request: PartRequest) -> PartText | Picture:
    """Return text or picture of the document that ``pieces`` are, or of its own part ``request.path``.

    Raises NoText for a document without text, and what its handler raises.
    """
    from fetchstash.handlers import _registry  # noqa: PLC0415 - it may be of any format, also of the caller's
    from fetchstash.handlers._routing import _router  # noqa: PLC0415 - it may be of any format, also of the caller's

    with tempfile.TemporaryDirectory(prefix="member-") as folder:
        member = Path(folder) / "member"
        with member.open("wb") as file:
            file.writelines(pieces)
        decision = _router.route_file(member, {}, name)
        handler = _registry.handler_of(_registry.format_of(decision))
        hints = Hints(name=name, media_type=decision.media_type)
        if request.path or request.render == "image":
            return _registry.read_part(handler, replace(request, source=member, hints=hints))
        extracted = handler.extract(member, hints, request.limits)
        if extracted.parts is None:
            raise NoText(f"{shown_name(name)} has no text: it is {decision.media_type}.", KEPT)
        return part_text(_text(extracted, request.limits), request)


def _text(extracted: Extracted, limits: ExtractLimits) -> str:
    """Return the text of a document, as much of it as one document may have."""
    pieces: list[str] = []
    room = limits.max_chars
    for part in extracted.parts or ():
        pieces.append(part.text[:room])
        room -= len(part.text)
        if room <= 0:
            break
    return "".join(pieces)
