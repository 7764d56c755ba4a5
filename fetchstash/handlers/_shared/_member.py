"""Documents within documents: members of archives, attachments of mails, read as any other."""

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from fetchstash.handlers._contract import Extracted, Hints, PartRequest, PartText, Picture
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._shared._part_text import part_text

WITHIN = "!/"
"""Separates a member from a member of it, as in the URLs of Java archives."""

MAX_NESTING = 2


class MemberParts(ABC):
    """Base of handlers whose parts are documents: a subclass opens a member, this reads it."""

    @abstractmethod
    def open_member(self, source: Path, name: str) -> AbstractContextManager[Iterable[bytes]]:
        """Open a member; give its content in pieces.

        Raises OutOfRange if there is no such member, NoText if it is not read.
        """

    def part(self, request: PartRequest) -> PartText | Picture:
        """Return a member's text or picture.

        The path is its name; ``inner.zip!/name`` is a member of a member.
        """
        if not request.path:
            raise Reason.MEMBER_WANTED.error()
        name, within = split_path(request.path)
        with self.open_member(request.source, name) as pieces:
            return read_member(pieces, name, replace(request, path=within))


def split_path(path: str) -> tuple[str, str]:
    """Return the name of a member, and the path within it ("": all of it).

    Raises NoText if the path goes through too many documents.
    """
    if path.count(WITHIN) > MAX_NESTING:
        raise Reason.NESTED_MEMBERS.error(limit=MAX_NESTING)
    name, _, within = path.partition(WITHIN)
    return name, within


def read_member(pieces: Iterable[bytes], name: str, request: PartRequest) -> PartText | Picture:
    """Return text or picture of the document in ``pieces``, or of its part ``request.path``.

    Raises NoText if it has no text, and what its handler raises.
    """
    from fetchstash.handlers import _registry  # noqa: PLC0415 - it imports the caller
    from fetchstash.handlers._routing import _router  # noqa: PLC0415 - it imports the caller

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
            known = _registry.built_in().declares(decision.media_type)
            media_type = decision.media_type if known else ""
            raise Reason.MEMBER_WITHOUT_TEXT.error(name=name, media_type=media_type)
        return part_text(_text(extracted, request.limits), request)


def _text(extracted: Extracted, limits: ExtractLimits) -> str:
    """Return the text of a document, up to max_chars."""
    pieces: list[str] = []
    room = limits.max_chars
    for part in extracted.parts or ():
        pieces.append(part.text[:room])
        room -= len(part.text)
        if room <= 0:
            break
    return "".join(pieces)
