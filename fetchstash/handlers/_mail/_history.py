"""The quoted history below a reply's own text, which is kept apart from it."""

import re
from dataclasses import dataclass, field

QUOTED = "quoted"
"""The path that answers the quoted history of a mail; "3/quoted" of the third in a mailbox."""


@dataclass(slots=True)
class History:
    """The quoted history of a mail, and the path that answers it."""

    path: str = QUOTED
    texts: list[str] = field(default_factory=list[str])


_FORWARDED = re.compile(r"\s*(?:fwd?|wg|tr|rv|enc|i)\s*:", re.IGNORECASE)
_SEPARATOR = re.compile(
    r"\W*(?:original message|urspr\w+ nachricht|message d.origine|mensaje original"
    r"|mensagem original|messaggio originale|oorspronkelijk bericht|ursprungligt meddelande"
    r"|oprindelig meddelelse|oryginalna wiadomość|wiadomość oryginalna|původní zpráva"
    r"|исходное сообщение|原始邮件|原始郵件|元のメッセージ|원본 메시지)\W*$",
    re.IGNORECASE,
)
# The header that Outlook writes above what it quotes, in some languages.
_FROM = re.compile(
    r"[\s*>]*(?:from|von|de|da|van|från|fra|od|от|kimden|lähettäjä"
    r"|发件人|寄件者|差出人|보낸 사람)[\s*]*[:\uff1a]",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"[\s*>]*(?:sent|date|to|cc|subject|gesendet|datum|an|betreff|envoyé|à|objet|enviado"
    r"|fecha|para|asunto|data|assunto|inviato|oggetto|verzonden|aan|onderwerp|skickat|till|ämne"
    r"|sendt|til|emne|wysłano|do|temat|odesláno|komu|předmět|отправлено|дата|кому|копия|тема"
    r"|tarih|gönderildi|kime|konu|lähetetty|vastaanottaja|aihe|发送时间|日期|收件人|抄送|主题"
    r"|寄件日期|收件者|主旨|送信日時|日付|宛先|件名|보낸 날짜|날짜|받는 사람|제목)[\s*]*[:\uff1a]",
    re.IGNORECASE,
)
_HEADER_LINES = 8
_ATTRIBUTION_LINES = 3  # "On Monday … Ada wrote:", which mail programs wrap
_LEAST = 3  # lines; less is no history


def split_history(text: str, subject: str) -> tuple[str, str]:
    """Return the text of a mail and the history below it, "" if it quotes none at its end.

    Answers between quoted lines stay where they are, and so does what a mail forwards.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    starts = [at for at in (_by_header(lines), _by_marks(lines)) if at is not None]
    at = min(starts, default=len(lines))
    has_answer = any(line.strip() for line in lines[:at])
    history = "\n".join(lines[at:]).strip("\n")
    if not has_answer or history.count("\n") + 1 < _LEAST or _FORWARDED.match(subject):
        return text, ""
    return "\n".join(lines[:at]).rstrip(), history


def _by_header(lines: list[str]) -> int | None:
    """Return the first line of what Outlook quotes: a separator, or a header of three lines."""
    for at, line in enumerate(lines):
        if _SEPARATOR.match(line):
            return at
        if _FROM.match(line):
            below = [other for other in lines[at + 1 : at + 1 + _HEADER_LINES] if other.strip()]
            if sum(map(bool, map(_OTHERS.match, below))) >= 2:
                return at
    return None


def _by_marks(lines: list[str]) -> int | None:
    """Return the first line of the quoted lines at the end, with who wrote them above."""
    at = len(lines)
    while at and (lines[at - 1].startswith(">") or not lines[at - 1].strip()):
        at -= 1
    if not any(line.startswith(">") for line in lines[at:]):
        return None
    if at and lines[at - 1].rstrip(" *_").endswith(":"):
        above = at - 1
        while above and at - above < _ATTRIBUTION_LINES and lines[above - 1].strip():
            above -= 1
        at = above if above and not lines[above - 1].strip() else at - 1
    return at
