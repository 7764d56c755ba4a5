"""Mail: messages, mailboxes and Outlook's own format."""

import re
from dataclasses import replace
from enum import unique

from fetchstash.errors import OutOfRange
from fetchstash.handlers._contract import Format, Head, Sniffed, family
from fetchstash.handlers._reasons import KEPT, ReasonTable
from fetchstash.handlers._sniffers import sniff_mail


@unique
class MailReason(ReasonTable):
    """Why a mail is not read."""

    NO_ATTACHMENT = "There is no attachment {name}.", "The mail's text lists them all.", OutOfRange
    MAIL_RTF = "its body is compressed RTF that is damaged", KEPT
    MAIL_DEPTH = "its parts are nested too deeply", KEPT
    MHTML_NO_PAGE = "the web archive holds no page", KEPT
    MAILS_CUT = "only its first {limit:,} mails were read", KEPT
    MAIL_CUT = "the message is cut short: what it lost is not shown", "Fetch it again."
    MAIL_MISSING = "the compound file holds no message", KEPT


_MHTML = "application/x-mimearchive"
_SAVED = re.compile(
    r"^(?:Snapshot-)?Content-Location:|^From: .{0,10}Saved by|\btype=\"?text/html\b",
    re.IGNORECASE | re.MULTILINE,
)
_RELATED = re.compile(r"^Content-Type:\s*multipart/related\b", re.IGNORECASE | re.MULTILINE)


def _sniff_mhtml(head: Head) -> Sniffed | None:
    """Recognise the header that browsers write before a saved page."""
    header = re.split(r"\r?\n\r?\n", head.text, maxsplit=1)[0]
    if not re.match(r"[A-Za-z][A-Za-z0-9-]*:", header) or not _RELATED.search(header):
        return None
    # A mail may hold a page with its pictures, too: it has been received, and names who by.
    if not _SAVED.search(header) or re.search(r"^(?:Received|To):", header, re.MULTILINE):
        return None
    return Sniffed(_MHTML, "header of a saved web page")


_EML = Format(
    kind="email",
    word="email",
    handler="fetchstash.handlers._mail._eml:EmailHandler",
    media_types=(),
    is_markup=True,
    paths=("*",),
)

FORMATS = (
    Format(
        kind="office_doc",
        word="web archive (MHTML)",
        handler="fetchstash.handlers._mail._mhtml:MhtmlHandler",
        media_types=(_MHTML, "multipart/related"),
        extensions=("mhtml", "mht"),
        sniff=_sniff_mhtml,
        is_markup=True,
        paths=("page", "left_out", "links", "tables", "#*"),
    ),
    *family(replace(_EML, sniff=sniff_mail), ("email", "message/rfc822 message/*", "eml")),
    *family(
        replace(_EML, handler="fetchstash.handlers._mail._eml:MboxHandler", page_word="mails"),
        ("mailbox", "application/mbox", "mbox"),
    ),
    replace(
        _EML,
        word="Outlook message",
        handler="fetchstash.handlers._mail._msg:MsgHandler",
        media_types=("application/vnd.ms-outlook",),
        extensions=("msg",),
        ole_members=("__properties_version1.0", "__nameid_version1.0"),
        is_markup=False,
        signed=True,
    ),
)
