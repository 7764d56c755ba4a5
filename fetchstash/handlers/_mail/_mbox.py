"""Mailboxes (mbox, RFC 4155): each mail a page, attachments as members by the mail's number."""

import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path

from fetchstash.errors import NoText
from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._mail import MailReason, _eml
from fetchstash.handlers._shared._member import MemberParts
from fetchstash.handlers._shared._prose import Prose
from fetchstash.handlers._shared._streamed import Streamed
from fetchstash.handlers._shared._words import counted

_MAX_MAILS = 20_000
_MAX_LINE = 1024 * 1024
# A line of a body that begins with "From " was quoted by a ">" more than it had.
_QUOTED = re.compile(rb">+From ")


class MboxHandler(Streamed, MemberParts):
    """Reads mailboxes; of a mail larger than 64 MiB its beginning."""

    name = "mbox"

    def read(self, source: Path, extracted: Extracted) -> Iterator[Part]:
        """Yield the parts of ``source``. Raises NoText for what cannot be read."""
        prose = Prose()
        count = members = 0
        for count, raw in enumerate(islice(mails(source), _MAX_MAILS), start=1):
            prose.page()
            try:
                message = _eml.parse(raw)
                yield from _eml.write(message, prose, extracted)
                attachments = [f"{count}/{name}" for name, _ in _eml.attachments(message)]
            except NoText:
                prose.paragraph("(a mail that cannot be read)")
                attachments = []
            members += len(attachments)
            for name in attachments:
                prose.item(f"attachment {name}")
            yield from prose.full()
        if count == _MAX_MAILS:
            extracted.fail(MailReason.MAILS_CUT.cause(limit=_MAX_MAILS))
            extracted.learn(extraction_truncated=True)
        extracted.learn(pages=count, members=members, structure_info=counted(count, "mail"))
        yield from prose.end()

    def open_member(self, source: Path, name: str) -> AbstractContextManager[Iterable[bytes]]:
        """Return the content of an attachment, "3/name" for one of the third mail.

        Raises OutOfRange if there is none of that name.
        """
        number, _, attached = name.partition("/")
        if number.isdecimal() and 1 <= int(number) <= _MAX_MAILS:
            for raw in islice(mails(source), int(number) - 1, int(number)):
                for there, part in _eml.attachments(_eml.parse(raw)):
                    if there == attached:
                        return nullcontext([_eml.payload(part)])
        raise MailReason.NO_ATTACHMENT.error(name=name)


def mails(source: Path) -> Iterator[bytes]:
    """Yield each mail of a mailbox without the line that parts it from the one before."""
    lines: list[bytes] = []
    size = 0
    after_blank = True
    begun = False
    with source.open("rb") as file:
        while line := file.readline(_MAX_LINE):
            if after_blank and line.startswith(b"From "):
                if begun:
                    yield b"".join(lines)
                lines, size, begun = [], 0, True
            elif size < _eml.MAX_BYTES:
                lines.append(line[1:] if _QUOTED.match(line) else line)
                size += len(line)
            after_blank = not line.strip()
    if lines:
        yield b"".join(lines)
