"""Ten small files of each kind that holds HTML: the same words in the same order in all of them.

Ten files of Word, PowerPoint and Excel are in test_round_trips, with LibreOffice's own of each.
"""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import re
from collections.abc import Callable, Mapping
from email.message import EmailMessage

import pytest

from tests.handlers.compounds import compound, wide
from tests.handlers.conftest import Read
from tests.handlers.hostile.documents import packed
from tests.handlers.test_mail import packed_rtf
from tests.handlers.test_more_documents import BOOK

CONTENTS: Mapping[str, tuple[str, str]] = {
    "paragraphs": ("<p>One thing.</p><p>Another thing.</p>", "One thing. Another thing."),
    "accents": ("<p>Über naïve Zoë: 5 € à Łódź</p>", "Über naïve Zoë: 5 € à Łódź"),
    "other scripts": ("<p>Привет, 世界</p>", "Привет, 世界"),
    "a heading": ("<h2>Points</h2><p>Below.</p>", "## Points Below."),
    "a list": ("<ul><li>left</li><li>right</li></ul>", "- left - right"),
    "numbers": ('<ol start="3"><li>third</li><li>fourth</li></ol>', "3. third 4. fourth"),
    "a table": (
        "<table><tr><th>Name</th><th>Age</th></tr><tr><td>Ada</td><td>36</td></tr></table>",
        "| Name | Age | | --- | --- | | Ada | 36 |",
    ),
    "a link": ('<p>See <a href="https://example.org/a?b=1&amp;c=2">it</a>.</p>', "See [it](https://example.org/a?b=1&c=2)."),
    "signs": ("<p>a &lt; b &amp;&amp; {c} \\ d</p>", "a < b && {c} \\ d"),
    "hidden text": ('<p>Seen.</p><p style="display:none">obey</p><p>Too.</p>', "Seen. Too."),
}  # fmt: skip


def mail(markup: str) -> bytes:
    message = EmailMessage()
    message["Subject"], message["From"] = "T", "ada@example.org"
    message.set_content(markup, subtype="html")
    return message.as_bytes()


def mailbox(markup: str) -> bytes:
    return b"From ada@example.org Fri May  1 10:00:00 2026\n" + mail(markup)


def saved_page(markup: str) -> bytes:
    page = EmailMessage()
    page.set_content(f"<html><body><main>{markup}</main></body></html>", subtype="html")
    page["Content-Location"] = "https://example.org/"
    archive = EmailMessage()
    archive["Snapshot-Content-Location"] = "https://example.org/"
    archive.make_related()
    archive.attach(page)
    return archive.as_bytes()


def message(**streams: bytes) -> bytes:
    return compound({"__properties_version1.0": bytes(32), "__substg1.0_0037001F": wide("T"), **{f"__substg1.0_{tag}": data for tag, data in streams.items()}})  # fmt: skip


def of_html(markup: str) -> bytes:
    return message(**{"10130102": markup.encode()})


def of_rtf(markup: str) -> bytes:
    """Return a message whose HTML is kept within compressed RTF, as Outlook keeps it."""

    def coded(text: str) -> str:
        text = re.sub(r"([\\{}])", r"\\\1", text)
        return "".join(c if ord(c) < 128 else f"\\u{ord(c)}?" for c in text)

    pieces = re.split(r"(<[^>]*>|&\w+;)", markup)
    body = "".join(
        f"{{\\*\\htmltag64 {coded(p)}}}" if n % 2 else coded(p) for n, p in enumerate(pieces)
    )
    return message(**{"10090102": packed_rtf(f"{{\\rtf1\\ansi\\fromhtml1{body}}}".encode())})


def book(markup: str) -> bytes:
    page = f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{markup}</body></html>'
    return packed(BOOK | {"OPS/zero one.xhtml": page, "OPS/two.xhtml": page.replace(markup, "")})


KINDS: Mapping[str, tuple[str, Callable[[str], bytes]]] = {
    "EML": ("email", mail),
    "mbox": ("mbox", mailbox),
    "MHTML": ("mhtml", saved_page),
    "MSG of HTML": ("msg", of_html),
    "MSG of RTF": ("msg", of_rtf),
    "EPUB": ("epub", book),
}


@pytest.mark.parametrize(("markup", "text"), CONTENTS.values(), ids=CONTENTS.keys())
@pytest.mark.parametrize(("handler", "make"), KINDS.values(), ids=KINDS.keys())
def test_the_same_words_stand_in_every_kind(
    read: Read, handler: str, make: Callable[[str], bytes], markup: str, text: str
) -> None:
    shown = " ".join(read(handler, make(markup))[1].split())
    assert text in shown
    assert "obey" not in shown
