"""Mails and mailboxes of MIME."""

import email
import email.errors
import email.header
import email.message
import email.policy
import email.utils
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import cast

from fetchstash.errors import NoText
from fetchstash.handlers._charset import decode
from fetchstash.handlers._contract import Extracted, Part, PartRequest, PartText, Picture
from fetchstash.handlers._mail import MailReason
from fetchstash.handlers._mail._history import QUOTED, History, split_history
from fetchstash.handlers._mail._inline import Inline
from fetchstash.handlers._parts import MemberParts, Streamed, part_text
from fetchstash.handlers._prose import Prose
from fetchstash.handlers._reasons import Reason
from fetchstash.text import counted

_MEDIA_TYPE = "message/rfc822"
# Attachments are base64 within the message; more than this is not held in memory.
MAX_BYTES = 64 * 1024 * 1024
_MAX_HEADER_CHARS = 100_000
MAX_PARTS = 1_000
ENCRYPTED = "(the text of this mail is encrypted, or signed so that it is not read)"
_SHOWN = (
    "From",
    "Sender",
    "To",
    "Cc",
    "Bcc",
    "Reply-To",
    "Resent-From",
    "Resent-To",
    "Resent-Cc",
    "Date",
)


class EmailHandler(Streamed, MemberParts):
    """Reads messages in Internet format, one a file."""

    name = "email"

    def read(self, source: Path, extracted: Extracted) -> Iterator[Part]:
        """Yield the parts of ``source``. Raises NoText for what cannot be read."""
        message = _load(source)
        extracted.learn(
            title=_header(message, "Subject"),
            author=_header(message, "From"),
            published=_date(message),
            extraction_truncated=source.stat().st_size > MAX_BYTES,
        )
        prose = Prose()
        attached = list(attachments(message))
        extracted.learn(members=len(attached))
        inline = _inline(attached)
        yield from write(message, prose, extracted, History(), inline)
        if listed := [(name, part) for name, part in attached if name not in inline.shown]:
            prose.heading("Attachments", 2)
            for name, part in listed:
                size = counted(len(payload(part)), "byte")
                prose.item(f"{name} ({part.get_content_type()}, {size})")
        yield from prose.end()

    def part(self, request: PartRequest) -> PartText | Picture:
        """Return an attachment, or the history that the mail quotes."""
        if request.path == QUOTED and (history := _history(_load(request.source))):
            return part_text(history, request)
        return super().part(request)

    def member(self, request: PartRequest, name: str) -> Iterator[bytes]:
        """Yield the content of an attachment. Raises OutOfRange if there is none of that name."""
        yield payload(_attachment(_load(request.source), name, name))


def _load(source: Path) -> email.message.Message:
    with source.open("rb") as file:
        raw = file.read(MAX_BYTES)
    if not raw.strip():
        raise Reason.EMPTY_FILE.error()
    return parse(raw)


def parse(raw: bytes) -> email.message.Message:
    """Read a message by the old policy: the newer one takes 22 seconds for a Subject of 700 KB.

    Raises NoText for one that is nested too deeply.
    """
    try:
        return email.message_from_bytes(raw, policy=email.policy.compat32)
    except RecursionError:
        raise MailReason.MAIL_DEPTH.error() from None


def write(
    message: email.message.Message,
    prose: Prose,
    extracted: Extracted,
    history: History,
    inline: Inline,
) -> Iterator[Part]:
    """Write a message and those that it forwards; yield the parts that are full.

    What they quote at their ends goes to ``history``, the pictures that they show to ``inline``.
    """
    for number, mail in enumerate(_messages(message)):
        prose.heading(_header(mail, "Subject") or "(no subject)", 1 if not number else 2)
        prose.paragraph(
            "\n".join(f"{name}: {value}" for name in _SHOWN if (value := _header(mail, name)))
        )
        for part in _bodies(mail):
            text = decode(payload(part), part.get_content_charset() or "")
            subject = _header(mail, "Subject")
            if part.get_content_type() == "text/html":
                hidden = write_html(text, prose, subject, history, inline)
                extracted.learn(hidden_removed=extracted.facts.hidden_removed + hidden)
            else:
                write_plain(text, prose, subject, history)
            yield from prose.full()
        if _is_encrypted(mail):
            prose.paragraph(ENCRYPTED)


def _history(message: email.message.Message, before: str = "") -> str:
    """Return the quoted history, "" if there is none or an attachment has its name.

    ``before`` stands before the names of attachments: "3/" in the third mail of a mailbox.
    """
    history = History()
    attached = [(f"{before}{name}", part) for name, part in attachments(message)]
    for _ in write(message, Prose(), Extracted(None), history, _inline(attached)):
        pass
    named = any(name == f"{before}{QUOTED}" for name, _ in attached)
    return "" if named else "\n\n".join(history.texts)


def _is_encrypted(mail: email.message.Message) -> bool:
    """Return whether a mail is encrypted by PGP (RFC 3156) or by S/MIME (RFC 8551)."""
    media_type = mail.get_content_type()
    is_smime = media_type in {"application/pkcs7-mime", "application/x-pkcs7-mime"}
    return media_type == "multipart/encrypted" or is_smime


def _inner(part: email.message.Message) -> list[email.message.Message]:
    """Return the parts that a part holds, none for a leaf."""
    payload = part.get_payload()
    return cast("list[email.message.Message]", payload) if isinstance(payload, list) else []


def _leaves(message: email.message.Message) -> Iterator[email.message.Message]:
    """Yield the parts that hold no others, in order; a forwarded message is not entered."""
    waiting = [message]
    for _ in range(MAX_PARTS):
        if not waiting:
            return
        part = waiting.pop()
        inner = _inner(part)
        if inner and part.get_content_type() != _MEDIA_TYPE:
            waiting += reversed(inner)
        else:
            yield part


def _messages(message: email.message.Message) -> Iterator[email.message.Message]:
    """Yield the message and those that it forwards."""
    waiting = [message]
    for _ in range(MAX_PARTS):
        if not waiting:
            return
        mail = waiting.pop()
        yield mail
        forwards = [part for part in _leaves(mail) if part.get_content_type() == _MEDIA_TYPE]
        for part in reversed(forwards):
            waiting += _inner(part)[:1]


def _bodies(message: email.message.Message) -> Iterator[email.message.Message]:
    """Yield the plain text, or else the HTML (alternatives, RFC 2046, section 5.1.4)."""
    texts = [part for part in _leaves(message) if _is_body(part)]
    plain = (part for part in texts if part.get_content_type() != "text/html")
    yield from [part for part in plain if payload(part).strip()] or texts


def _is_body(part: email.message.Message) -> bool:
    return part.get_content_maintype() == "text" and not part.get_filename()


def attachments(message: email.message.Message) -> Iterator[tuple[str, email.message.Message]]:
    """Yield the parts that have a name or are no text, each under a unique name."""
    taken: set[str] = set()
    for mail in _messages(message):
        for part in _leaves(mail):
            if part.get_content_type() == _MEDIA_TYPE or _is_body(part):
                continue
            name = _decoded(part.get_filename() or "") or part.get_content_type().replace("/", ".")
            number = 1
            while (unique := name if number == 1 else f"{number} {name}") in taken:
                number += 1
            taken.add(unique)
            yield unique, part


def _inline(attached: Iterable[tuple[str, email.message.Message]]) -> Inline:
    """Return attachments by the ids by which the text shows them (RFC 2045, section 7)."""
    return Inline({_header(part, "Content-ID").strip("<> "): name for name, part in attached})


def _attachment(message: email.message.Message, name: str, path: str) -> email.message.Message:
    """Return an attachment. Raises OutOfRange for ``path`` if there is none of that name."""
    for attached, part in attachments(message):
        if attached == name:
            return part
    raise MailReason.NO_ATTACHMENT.error(name=path)


def write_html(text: str, prose: Prose, subject: str, history: History, inline: Inline) -> int:
    """Write a body of HTML, its quoted history into ``history``; return how much was hidden."""
    from fetchstash.handlers._html._reading import whole  # noqa: PLC0415 - brings the HTML parser

    page = whole(text)
    own, quoted = split_history("".join(piece.text for piece in page.parts), subject)
    _write_own(inline.show(own), inline.addressed(quoted), prose.markdown, prose, history)
    return page.hidden


def write_plain(text: str, prose: Prose, subject: str, history: History) -> None:
    """Write a body of plain text, its quoted history into ``history``."""
    _write_own(*split_history(text, subject), prose.paragraph, prose, history)


def write_markdown(text: str, prose: Prose, subject: str, history: History) -> None:
    """Write a body that is Markdown already, its quoted history into ``history``."""
    _write_own(*split_history(text, subject), prose.markdown, prose, history)


def _write_own(
    own: str, quoted: str, write: Callable[[str], None], prose: Prose, history: History
) -> None:
    write(own.replace("\r\n", "\n"))
    if quoted:
        history.texts.append(quoted)
        lines = counted(quoted.count("\n") + 1, "line")
        prose.paragraph(f'(quoted history: {lines}, path="{history.path}")')


def payload(part: email.message.Message) -> bytes:
    """Return the bytes of a part; invalid base64 or quoted-printable stays as it is."""
    try:
        payload = part.get_payload(decode=True)
    except ValueError:  # a charset of NULs
        payload = str(part.get_payload()).encode("utf-8", "surrogateescape")
    return payload if isinstance(payload, bytes) else b""


def _header(message: email.message.Message, name: str) -> str:
    """Return all values of a header, such as several lists of recipients."""
    return _decoded(", ".join(map(str, message.get_all(name, []))))


def _decoded(value: str) -> str:
    """Return a header's value on one line, encoded words decoded (RFC 2047), and bounded."""
    value = value[:_MAX_HEADER_CHARS]
    try:
        pieces = email.header.decode_header(value)
    except (ValueError, email.errors.HeaderParseError):
        pieces = [(value, None)]
    texts = [
        decode(text, charset or "") if isinstance(text, bytes) else text for text, charset in pieces
    ]
    return " ".join("".join(texts).split())


def _date(message: email.message.Message) -> str:
    try:
        return email.utils.parsedate_to_datetime(str(message.get("Date", ""))).date().isoformat()
    except (ValueError, OverflowError):
        return ""


_MAX_MAILS = 20_000
_MAX_LINE = 1024 * 1024
# The line before a mail (RFC 4155); "From here on" begins a paragraph where nothing quotes it.
_DATED = re.compile(rb"From .*\d:\d\d")
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
                message = parse(raw)
                history = History(f"{count}/{QUOTED}")
                attached = [(f"{count}/{name}", part) for name, part in attachments(message)]
                inline = _inline(attached)
                yield from write(message, prose, extracted, history, inline)
                names = [name for name, _ in attached]
            except NoText:
                prose.paragraph("(a mail that cannot be read)")
                names, inline = [], Inline({})
            members += len(names)
            for name in names:
                if name not in inline.shown:
                    prose.item(f"attachment {name}")
            yield from prose.full()
        if count == _MAX_MAILS:
            extracted.fail(MailReason.MAILS_CUT.cause(limit=_MAX_MAILS))
            extracted.learn(extraction_truncated=True)
        extracted.learn(pages=count, members=members, structure_info=counted(count, "mail"))
        yield from prose.end()

    def part(self, request: PartRequest) -> PartText | Picture:
        """Return an attachment, or the history that a mail quotes ("3/quoted")."""
        number, _, name = (request.path or "").partition("/")
        mail = _numbered(request.source, number) if name == QUOTED else None
        if mail and (history := _history(mail, f"{number}/")):
            return part_text(history, request)
        return super().part(request)

    def member(self, request: PartRequest, name: str) -> Iterator[bytes]:
        """Yield the content of an attachment, "3/name" for one of the third mail.

        Raises OutOfRange if there is none of that name.
        """
        number, _, attached = name.partition("/")
        mail = _numbered(request.source, number)
        if mail is None:
            raise MailReason.NO_ATTACHMENT.error(name=name)
        yield payload(_attachment(mail, attached, name))


def _numbered(source: Path, number: str) -> email.message.Message | None:
    """Return a mail of a mailbox by its number from 1, None if there is none."""
    if not number.isdecimal() or len(number) > 5 or not 1 <= int(number) <= _MAX_MAILS:
        return None
    raw = next(islice(mails(source), int(number) - 1, None), None)
    return None if raw is None else parse(raw)


def mails(source: Path) -> Iterator[bytes]:
    """Yield each mail of a mailbox without the line that parts it from the one before."""
    lines: list[bytes] = []
    size = 0
    after_blank = True
    begun = is_dated = False
    with source.open("rb") as file:
        while line := file.readline(_MAX_LINE):
            has_date = _DATED.match(line) is not None
            if after_blank and line.startswith(b"From ") and (has_date or not is_dated):
                if begun:
                    yield b"".join(lines)
                lines, size, begun, is_dated = [], 0, True, has_date
            elif size < MAX_BYTES:
                lines.append(line[1:] if _QUOTED.match(line) else line)
                size += len(line)
            after_blank = not line.strip()
    if lines:
        yield b"".join(lines)
