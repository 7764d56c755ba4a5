"""Outlook messages (MSG): headers, body, attachments as members ([MS-OXMSG])."""

import datetime as dt
import struct
from collections.abc import Iterator
from pathlib import Path

from fetchstash.handlers._charset import decode
from fetchstash.handlers._contract import Extracted, Part, PartRequest, PartText, Picture
from fetchstash.handlers._mail import MailReason
from fetchstash.handlers._mail._eml import ENCRYPTED, write_body
from fetchstash.handlers._mail._history import QUOTED, History
from fetchstash.handlers._parts import MemberParts, Streamed, part_text
from fetchstash.handlers._prose import Prose
from fetchstash.handlers._zip import CompoundFile
from fetchstash.text import counted

_MAX_BYTES = 128 * 1024 * 1024
# Property tags ([MS-OXPROPS]) of texts, as they stand in the names of streams.
_SUBJECT, _SENDER, _SENDER_ADDRESS, _TO = "0037", "0C1A", "5D01", "0E04"
_CC, _BODY, _HTML, _CLASS = "0E03", "1000", "1013", "001A"
_RTF = "__substg1.0_10090102"  # compressed ([MS-OXRTFCP])
_FILE_NAMES = ("3707", "3704", "3001")
_DATA = "37010102"
_SUBMITTED = 0x0039
_RECIPIENT, _RECIPIENT_TYPE = "__recip_version1.0_#", 0x0C15
_RECIPIENTS = {1: "To", 2: "Cc", 3: "Bcc"}
_ADDRESSES = ("39FE", "3003")
_MAX_RECIPIENTS = 1_000


class MsgHandler(Streamed, MemberParts):
    """Reads messages that Outlook saved."""

    name = "msg"

    def read(self, source: Path, extracted: Extracted) -> Iterator[Part]:
        """Yield the parts of ``source``. Raises NoText for what cannot be read."""
        message = _open(source)
        title = _text(message, _SUBJECT)
        author = _mailbox(_text(message, _SENDER), _text(message, _SENDER_ADDRESS))
        date = _submitted(message.read("__properties_version1.0"))
        extracted.learn(title=title, author=author, published=date[:10])
        prose = Prose()
        prose.heading(title or "(no subject)", 1)
        headers = {
            "From": author,
            "To": _text(message, _TO),
            "Cc": _text(message, _CC),
            **_recipients(message),
            "Date": date,
        }
        prose.paragraph("\n".join(f"{name}: {value}" for name, value in headers.items() if value))
        body, is_markup = _body(message)
        if body.strip():
            hidden = write_body(body, prose, title, History(), markup=is_markup)
            extracted.learn(hidden_removed=hidden)
        elif (_RTF,) in message.streams:
            extracted.fail(MailReason.MAIL_RTF.cause())
        elif _text(message, _CLASS).startswith("IPM.Note.SMIME"):
            prose.paragraph(ENCRYPTED)
        attachments = list(_attachments(message))
        extracted.learn(members=len(attachments))
        if attachments:
            prose.heading("Attachments", 2)
            for name, storage in attachments:
                stream = message.streams.get((storage, f"__substg1.0_{_DATA}"))
                size = counted(stream.size, "byte") if stream else "a message or an object"
                prose.item(f"{name} ({size})")
        yield from prose.end()

    def part(self, request: PartRequest) -> PartText | Picture:
        """Return an attachment, or the history that the mail quotes."""
        if request.path == QUOTED and (history := _history(_open(request.source))):
            return part_text(history, request)
        return super().part(request)

    def member(self, request: PartRequest, name: str) -> Iterator[bytes]:
        """Yield the content of an attachment. Raises OutOfRange if there is none of that name."""
        message = _open(request.source)
        for attached, storage in _attachments(message):
            if attached == name:
                yield message.read(storage, f"__substg1.0_{_DATA}")
                return
        raise MailReason.NO_ATTACHMENT.error(name=name)


def _open(source: Path) -> CompoundFile:
    with source.open("rb") as file:
        data = file.read(_MAX_BYTES)
    message = CompoundFile(data)
    if ("__properties_version1.0",) not in message.streams:
        raise MailReason.MAIL_MISSING.error()
    return message


def _body(message: CompoundFile) -> tuple[str, bool]:
    """Return the body, and whether it is HTML, which is taken where there is no plain text."""
    if (body := _text(message, _BODY)).strip():
        return body, False
    return decode(message.read(f"__substg1.0_{_HTML}0102")) or _text(message, _HTML), True


def _history(message: CompoundFile) -> str:
    """Return the quoted history, "" if there is none or an attachment has its name."""
    body, is_markup = _body(message)
    history = History()
    write_body(body, Prose(), _text(message, _SUBJECT), history, markup=is_markup)
    named = any(name == QUOTED for name, _ in _attachments(message))
    return "" if named else "".join(history.texts)


def _text(message: CompoundFile, tag: str, storage: str = "") -> str:
    """Return a text property: Unicode, or in a code page that is detected; "" if none."""
    path = (storage,) if storage else ()
    wide = message.read(*path, f"__substg1.0_{tag}001F")
    if wide:
        return wide.decode("utf-16-le", "replace").rstrip("\0")
    return decode(message.read(*path, f"__substg1.0_{tag}001E")).rstrip("\0")


def _recipients(message: CompoundFile) -> dict[str, str]:
    """Return the recipients with their addresses, by header ([MS-OXMSG], section 2.2.1)."""
    found: dict[str, list[str]] = {}
    storages = {path[0] for path in message.streams if path[0].startswith(_RECIPIENT)}
    for storage in sorted(storages)[:_MAX_RECIPIENTS]:
        # Entries of 16 bytes follow a header of 8 (section 2.4.2.1).
        properties = message.read(storage, "__properties_version1.0")[8:]
        entries = struct.iter_unpack("<HH4xI4x", properties[: len(properties) // 16 * 16])
        kind = next((value for _, tag, value in entries if tag == _RECIPIENT_TYPE), 1)
        name = _text(message, _FILE_NAMES[-1], storage)
        address = next((text for tag in _ADDRESSES if (text := _text(message, tag, storage))), "")
        found.setdefault(_RECIPIENTS.get(kind, "To"), []).append(_mailbox(name, address))
    return {header: "; ".join(filter(None, names)) for header, names in found.items()}


def _mailbox(name: str, address: str) -> str:
    both = name and address and name != address
    return f"{name} <{address}>" if both else name or address


def _attachments(message: CompoundFile) -> Iterator[tuple[str, str]]:
    """Yield a unique name and the storage of each attachment."""
    storages = sorted(
        {path[0] for path in message.streams if path[0].startswith("__attach_version1.0_#")}
    )
    taken: set[str] = set()
    for place, storage in enumerate(storages, start=1):
        names = (" ".join(_text(message, tag, storage).split()) for tag in _FILE_NAMES)
        name = next(filter(None, names), f"attachment {place}")
        number, unique = place, name
        while unique in taken:
            unique, number = f"{number} {name}", number + 1
        taken.add(unique)
        yield unique, storage


def _submitted(properties: bytes) -> str:
    """Return when the message was sent.

    Entries of 16 bytes follow a header of 32 ([MS-OXMSG], section 2.4).
    """
    entries = properties[32 : 32 + (len(properties) - 32) // 16 * 16]
    epoch = dt.datetime(1601, 1, 1, tzinfo=dt.UTC)
    for kind, tag, ticks in struct.iter_unpack("<HH4xQ", entries):
        if tag == _SUBMITTED and kind == 0x0040:  # tenths of microseconds since 1601
            try:
                sent = epoch + dt.timedelta(microseconds=ticks // 10)
            except OverflowError:
                return ""
            return sent.isoformat(" ", "seconds")
    return ""
