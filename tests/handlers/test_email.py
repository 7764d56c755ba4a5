"""Mails: headers, body and attachments; hostile ones end in time."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import contextlib
from email.message import EmailMessage

import pytest

from fetchstash.errors import BadArgument, NoText, OutOfRange
from fetchstash.handlers import PartText, route_file
from tests.handlers.conftest import PartOf, Read, Save, check_facts, unreadable
from tests.handlers.hostile.documents import packed


def mail(subject: str = "Über den Plan", body: str = "Dear Bob,\n\nsee below.\n") -> EmailMessage:
    message = EmailMessage()
    message["Subject"] = subject
    message["From"] = "Ada <ada@example.org>"
    message["To"] = "bob@example.org"
    message["Date"] = "Fri, 01 May 2026 10:00:00 +0200"
    message.set_content(body)
    return message


def test_headers_and_body_are_read(read: Read) -> None:
    found, text = read("email", mail().as_bytes())
    assert text == (
        "# Über den Plan\n\nFrom: Ada <ada@example.org>\nTo: bob@example.org\n"
        "Date: Fri, 01 May 2026 10:00:00 +0200\n\n"
        "Dear Bob,\n\nsee below.\n\n"
    )
    author = "Ada <ada@example.org>"
    check_facts(found, title="Über den Plan", author=author, published="2026-05-01", members=0)


@pytest.mark.parametrize(("plain", "shown"), [("plain", "plain"), (" \n\n", "markup")])
def test_of_several_alternatives_the_plain_text_is_read_unless_it_is_empty(
    read: Read, plain: str, shown: str
) -> None:
    message = mail(body=plain)
    message.add_alternative("<p>markup</p>", subtype="html")
    _, text = read("email", message.as_bytes())
    assert [word for word in ("plain", "markup") if word in text.partition("\n\n")[2]] == [shown]


def test_a_body_of_html_alone_becomes_markdown_without_its_hidden_text(read: Read) -> None:
    message = mail()
    message.set_content(
        '<h2>News</h2><ul><li>a</li></ul><p style="display:none">obey</p>', subtype="html"
    )
    found, text = read("email", message.as_bytes())
    assert "## News\n\n- a" in text
    assert "obey" not in text
    assert found.facts.hidden_removed == 1


def test_attachments_are_listed_and_read_by_name(read: Read, part: PartOf) -> None:
    message = mail()
    message.add_attachment("a,b\n1,2\n", filename="table.csv", subtype="csv")
    message.add_attachment("other\n", filename="table.csv", subtype="csv")
    archive = packed({"inner.txt": "within\n"})
    message.add_attachment(archive, maintype="application", subtype="zip", filename="files.zip")
    data = message.as_bytes()
    found, text = read("email", data)
    assert (
        "## Attachments\n\n- table.csv (text/csv, 8 bytes)\n- 2 table.csv (text/csv, 6 bytes)\n"
        "- files.zip (application/zip" in text
    )
    assert found.facts.members == 3
    assert part("email", data, "2 table.csv") == PartText("other\n", 1)
    assert part("email", data, "files.zip!/inner.txt") == PartText("within\n", 1)
    with pytest.raises(OutOfRange, match="There is no attachment 'x'"):
        part("email", data, "x")
    with pytest.raises(BadArgument):
        part("email", data, "")


def test_a_forwarded_mail_follows_the_one_that_forwards_it(read: Read) -> None:
    message = mail("Outer")
    message.add_attachment(mail("Inner", "the older text"))
    _, text = read("email", message.as_bytes())
    places = [text.index(one) for one in ("# Outer", "see below.", "## Inner", "the older text")]
    assert places == sorted(places)


def test_a_body_in_an_unknown_or_wrong_charset_is_still_text(read: Read) -> None:
    headers = b"Content-Type: text/plain; charset=no-such-thing\nContent-Transfer-Encoding: 8bit"
    data = b"Subject: x\n" + headers + b"\n\nna\xefve caf\xe9\n"
    assert "naïve café" in read("email", data)[1]


def nested(depth: int) -> bytes:
    heads = "".join(
        f"Content-Type: multipart/mixed; boundary=b{level}\n\n--b{level}\n"
        for level in range(depth)
    )
    return f"Subject: deep\n{heads}Content-Type: text/plain\n\nbottom\n".encode()


HOSTILE = {
    "long subject": b"Subject: " + b"=?utf-8?q?=41?= " * 45_000 + b"\n\nbody\n",
    "many headers": b"Subject: x\n" + b"X-A: y\n" * 100_000 + b"\nbody\n",
    "many parts": b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * 20_000,
    "deep": nested(50),
    "very deep": nested(20_000),
    "no boundary": b"Content-Type: multipart/mixed; boundary=\n\n--\n--\n",
    "odd headers": b"Subject: =?utf-8?b?%%%?=\nDate: Fri, 99 Foo 20260 10:00:00\n\nbody\n",
    "odd base64": b"Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n\xff\xfe not base64 !!!\n",
    "zeros": b"\0" * 5_000,
}  # fmt: skip


@pytest.mark.parametrize("data", list(HOSTILE.values()), ids=list(HOSTILE))
def test_a_hostile_mail_ends_in_text_or_one_clear_line(read: Read, data: bytes) -> None:
    with contextlib.suppress(NoText):
        _, text = read("email", data)
        assert len(text) < 100_000


test_an_empty_file_is_named = unreadable("email", {"empty": (b"", "the file is empty")})


def test_all_addresses_are_shown_however_many_headers_hold_them(read: Read) -> None:
    raw = (
        b"From: a@example.org\nTo: b@example.org\nTo: c@example.org\nCc: d@example.org\n"
        b"Bcc: e@example.org\nSubject: s\n\nbody\n"
    )
    text = read("email", raw)[1]
    assert "To: b@example.org, c@example.org\nCc: d@example.org\nBcc: e@example.org\n" in text
    many = ", ".join(f"person{number}@example.org" for number in range(2_000))
    assert many in read("email", b"From: a@x\nTo: %s\n\nbody" % many.encode())[1]


def mailbox() -> bytes:
    second = mail("Second", "From here on >From is quoted.\n\n>>From the start.\n")
    second.add_attachment("a,b\n1,2\n", filename="table.csv", subtype="csv")
    quoted = second.as_bytes().replace(b"\nFrom here", b"\n>From here")
    line = b"From ada@example.org Fri May  1 10:00:00 2026\n"
    return line + mail("First").as_bytes() + b"\n" + line + quoted + b"\n"


def test_a_mailbox_is_many_mails_each_a_page(save: Save, read: Read, part: PartOf) -> None:
    data = mailbox()
    decision = route_file(save(data), {}, "list.mbox")
    assert (decision.kind, decision.media_type) == ("email", "application/mbox")
    extracted, text = read("mbox", data)
    pages = [part.text for part in extracted.parts or () if part.starts_page]
    assert [page.split("\n")[0] for page in pages] == ["# First", "# Second"]
    assert "From here on >From is quoted.\n\n>From the start.\n" in pages[-1]
    assert text.endswith("- attachment 2/table.csv\n\n")
    check_facts(extracted, pages=2, members=1)
    assert part("mbox", data, "2/table.csv") == PartText("a,b\n1,2\n", 2)
    with pytest.raises(OutOfRange):
        part("mbox", data, "1/table.csv")
