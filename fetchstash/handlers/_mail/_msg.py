"""Outlook messages (MSG), and those within them: headers, bodies, attachments ([MS-OXMSG])."""

import datetime as dt
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fetchstash.errors import NoText
from fetchstash.handlers._charset import decode
from fetchstash.handlers._contract import Extracted, Part, PartRequest, PartText, Picture
from fetchstash.handlers._mail import MailReason
from fetchstash.handlers._mail._eml import (
    ENCRYPTED,
    write_html,
    write_markdown,
    write_plain,
)
from fetchstash.handlers._mail._history import QUOTED, History
from fetchstash.handlers._mail._inline import Inline
from fetchstash.handlers._mail._rtf_body import html_within, unpacked
from fetchstash.handlers._office._rtf import write_rtf
from fetchstash.handlers._parts import MemberParts, Streamed, part_text
from fetchstash.handlers._prose import Prose
from fetchstash.handlers._zip import CompoundFile
from fetchstash.text import counted

_MAX_BYTES = 128 * 1024 * 1024
# Property tags ([MS-OXPROPS]) of texts, as they stand in the names of streams.
_SUBJECT, _SENDER, _SENDER_ADDRESS, _TO = "0037", "0C1A", "5D01", "0E04"
_CC, _BODY, _HTML, _CLASS = "0E03", "1000", "1013", "001A"
_RTF = "__substg1.0_10090102"  # compressed ([MS-OXRTFCP])
_CONTENT_ID = "3712"  # of an attachment ([MS-OXCMSG], section 2.2.2.29)
_FILE_NAMES = ("3707", "3704", "3001")
_DATA, _EMBEDDED = "__substg1.0_37010102", "__substg1.0_3701000D"
_PROPERTIES, _ATTACHMENT = "__properties_version1.0", "__attach_version1.0_#"
_HEADER, _EMBEDDED_HEADER = 32, 24  # bytes before the properties ([MS-OXMSG], section 2.4.1)
_SUBMITTED = 0x0039
_RECIPIENT, _RECIPIENT_TYPE = "__recip_version1.0_#", 0x0C15
_RECIPIENTS = {1: "To", 2: "Cc", 3: "Bcc"}
_ADDRESSES = ("39FE", "3003")
_MAX_RECIPIENTS = 1_000
_MAX_DEPTH = 40  # of storages: two for each message within another
_MAX_MESSAGES = 1_000


class MsgHandler(Streamed, MemberParts):
    """Reads messages that Outlook saved."""

    name = "msg"

    def read(self, source: Path, extracted: Extracted) -> Iterator[Part]:
        """Yield the parts of ``source``. Raises NoText for what cannot be read."""
        message = _open(source)
        date = _submitted(message.read(_PROPERTIES), _HEADER)
        extracted.learn(title=message.text(_SUBJECT), author=_author(message), published=date[:10])
        if message.file.is_cut:
            extracted.learn(extraction_truncated=True)
            extracted.fail(MailReason.MAIL_CUT.cause())
        prose = Prose()
        attachments = list(_attachments(message))
        extracted.learn(members=len(attachments))
        inline = _inline(attachments)
        yield from _write(message, prose, extracted, History(), inline)
        if listed := [attached for attached in attachments if attached[0] not in inline.shown]:
            prose.heading("Attachments", 2)
            for name, mail, storage in listed:
                stream = message.file.streams.get((*mail.path, storage, _DATA))
                prose.item(f"{name} ({counted(stream.size, 'byte') if stream else 'an object'})")
        yield from prose.end()

    def part(self, request: PartRequest) -> PartText | Picture:
        """Return an attachment, or the history that the mail quotes."""
        if request.path == QUOTED and (history := _history(_open(request.source))):
            return part_text(history, request)
        return super().part(request)

    def member(self, request: PartRequest, name: str) -> Iterator[bytes]:
        """Yield the content of an attachment. Raises OutOfRange if there is none of that name."""
        for attached, mail, storage in _attachments(_open(request.source)):
            if attached == name:
                yield mail.read(storage, _DATA)
                return
        raise MailReason.NO_ATTACHMENT.error(name=name)


@dataclass(frozen=True, slots=True)
class _Mail:
    """The message at a path of a compound file: the file's own at (), or an embedded one."""

    file: CompoundFile
    storages: Mapping[tuple[str, ...], list[str]]
    """The storages directly within a path, in the order of their names."""
    path: tuple[str, ...] = ()

    def read(self, *path: str) -> bytes:
        """Return the content of a stream, b"" if there is none."""
        return self.file.read(*self.path, *path)

    def text(self, tag: str, *storage: str) -> str:
        """Return a text property: Unicode, or in a code page that is detected; "" if none."""
        if wide := self.read(*storage, f"__substg1.0_{tag}001F"):
            return wide.decode("utf-16-le", "replace").rstrip("\0")
        return decode(self.read(*storage, f"__substg1.0_{tag}001E")).rstrip("\0")

    def within(self, prefix: str) -> list[str]:
        """Return the storages of a prefix in it."""
        return [name for name in self.storages.get(self.path, ()) if name.startswith(prefix)]

    def embedded(self, storage: str) -> "_Mail | None":
        """Return the message that an attachment is ([MS-OXMSG], section 2.2.2.1), if it is one."""
        path = (*self.path, storage, _EMBEDDED)
        is_mail = (*path, _PROPERTIES) in self.file.streams
        return _Mail(self.file, self.storages, path) if is_mail else None


def _open(source: Path) -> _Mail:
    with source.open("rb") as file:
        data = file.read(_MAX_BYTES)
    message = CompoundFile(data)
    if (_PROPERTIES,) not in message.streams:
        missing = MailReason.MAIL_CUT if message.is_cut else MailReason.MAIL_MISSING
        raise missing.error()
    found: dict[tuple[str, ...], set[str]] = {}
    for path in message.streams:
        for depth, name in enumerate(path[:-1][:_MAX_DEPTH]):
            found.setdefault(path[:depth], set()).add(name)
    return _Mail(message, {path: sorted(names) for path, names in found.items()})


def _messages(message: _Mail) -> Iterator[_Mail]:
    """Yield the message and those that are embedded in it, each before those in it."""
    waiting = [message]
    for _ in range(_MAX_MESSAGES):
        if not waiting:
            return
        mail = waiting.pop()
        yield mail
        inner = (mail.embedded(storage) for storage in reversed(mail.within(_ATTACHMENT)))
        waiting += filter(None, inner)


def _write(
    message: _Mail, prose: Prose, extracted: Extracted, history: History, inline: Inline
) -> Iterator[Part]:
    """Write a message and those in it; what they quote at their ends goes to ``history``."""
    for number, mail in enumerate(_messages(message)):
        title = mail.text(_SUBJECT)
        prose.heading(title or "(no subject)", 1 if not number else 2)
        headers = {
            "From": _author(mail),
            "To": mail.text(_TO),
            "Cc": mail.text(_CC),
            **_recipients(mail),
            "Date": _submitted(mail.read(_PROPERTIES), _EMBEDDED_HEADER if number else _HEADER),
        }
        prose.paragraph("\n".join(f"{name}: {value}" for name, value in headers.items() if value))
        if (plain := mail.text(_BODY)).strip():
            write_plain(plain, prose, title, history)
        elif (html := _html(mail)).strip():
            hidden = write_html(html, prose, title, history, inline)
            extracted.learn(hidden_removed=extracted.facts.hidden_removed + hidden)
        elif (*mail.path, _RTF) in mail.file.streams:
            _write_rtf(unpacked(mail.read(_RTF)), prose, extracted, title, history, inline)
        elif mail.text(_CLASS).startswith("IPM.Note.SMIME"):
            prose.paragraph(ENCRYPTED)
        yield from prose.full()


def _write_rtf(
    rtf: bytes,
    prose: Prose,
    extracted: Extracted,
    title: str,
    history: History,
    inline: Inline,
) -> None:
    """Write a body that is RTF alone, or the HTML that it was made of."""
    inner, written = Extracted(None), Prose()
    if not rtf.lstrip().startswith(b"{\\rtf"):
        extracted.fail(MailReason.MAIL_RTF.cause())
    elif html := html_within(rtf):
        hidden = write_html(html, prose, title, history, inline)
        inner.learn(hidden_removed=hidden)
    else:
        texts: list[str] = []
        with suppress(NoText):  # too long: what was read is there
            texts += (part.text for part in write_rtf(rtf, written, inner))
        texts += (part.text for part in written.rest())
        write_markdown("".join(texts).strip(), prose, title, history)
    extracted.learn(hidden_removed=extracted.facts.hidden_removed + inner.facts.hidden_removed)


def _html(mail: _Mail) -> str:
    """Return the body of HTML, which is read where there is no plain text."""
    return decode(mail.read(f"__substg1.0_{_HTML}0102")) or mail.text(_HTML)


def _history(message: _Mail) -> str:
    """Return the quoted history, "" if there is none or an attachment has its name."""
    history = History()
    attachments = list(_attachments(message))
    for _ in _write(message, Prose(), Extracted(None), history, _inline(attachments)):
        pass
    named = any(name == QUOTED for name, _, _ in attachments)
    return "" if named else "\n\n".join(history.texts)


def _inline(attachments: Iterable[tuple[str, _Mail, str]]) -> Inline:
    """Return attachments by the ids by which the text shows them."""
    return Inline({mail.text(_CONTENT_ID, storage): name for name, mail, storage in attachments})


def _author(mail: _Mail) -> str:
    return _mailbox(mail.text(_SENDER), mail.text(_SENDER_ADDRESS))


def _recipients(mail: _Mail) -> dict[str, str]:
    """Return the recipients with their addresses, by header ([MS-OXMSG], section 2.2.1)."""
    found: dict[str, list[str]] = {}
    for storage in mail.within(_RECIPIENT)[:_MAX_RECIPIENTS]:
        # Entries of 16 bytes follow a header of 8 (section 2.4.2.1).
        properties = mail.read(storage, _PROPERTIES)[8:]
        entries = struct.iter_unpack("<HH4xI4x", properties[: len(properties) // 16 * 16])
        kind = next((value for _, tag, value in entries if tag == _RECIPIENT_TYPE), 1)
        name = mail.text(_FILE_NAMES[-1], storage)
        address = next((text for tag in _ADDRESSES if (text := mail.text(tag, storage))), "")
        found.setdefault(_RECIPIENTS.get(kind, "To"), []).append(_mailbox(name, address))
    return {header: "; ".join(filter(None, names)) for header, names in found.items()}


def _mailbox(name: str, address: str) -> str:
    both = name and address and name != address
    return f"{name} <{address}>" if both else name or address


def _attachments(message: _Mail) -> Iterator[tuple[str, _Mail, str]]:
    """Yield the attachments that are no message: a unique name, their mail, and their storage."""
    taken: set[str] = set()
    for mail in _messages(message):
        for storage in mail.within(_ATTACHMENT):
            if mail.embedded(storage):
                continue
            place = len(taken) + 1
            names = (" ".join(mail.text(tag, storage).split()) for tag in _FILE_NAMES)
            name = next(filter(None, names), f"attachment {place}")
            number, unique = place, name
            while unique in taken:
                unique, number = f"{number} {name}", number + 1
            taken.add(unique)
            yield unique, mail, storage


def _submitted(properties: bytes, header: int) -> str:
    """Return when the message was sent, by the entries of 16 bytes behind the header."""
    entries = properties[header : header + (len(properties) - header) // 16 * 16]
    epoch = dt.datetime(1601, 1, 1, tzinfo=dt.UTC)
    for kind, tag, ticks in struct.iter_unpack("<HH4xQ", entries):
        if tag == _SUBMITTED and kind == 0x0040:  # tenths of microseconds since 1601
            try:
                sent = epoch + dt.timedelta(microseconds=ticks // 10)
            except OverflowError:
                return ""
            return sent.isoformat(" ", "seconds")
    return ""
