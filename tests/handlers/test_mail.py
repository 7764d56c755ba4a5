"""Mail: text with its quotes, headers, attachments as parts; MSG, EML and mbox."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import contextlib
import struct
from collections.abc import Mapping
from contextlib import suppress
from email.message import EmailMessage

import pytest

from fetchstash.errors import BadArgument, NoText, OutOfRange
from fetchstash.handlers import PartText, route_file
from tests.handlers.compounds import compound, wide
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
    "many parts": b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n"
    + b"--b\n\nx\n" * 20_000,
    "deep": nested(50),
    "very deep": nested(20_000),
    "no boundary": b"Content-Type: multipart/mixed; boundary=\n\n--\n--\n",
    "odd headers": b"Subject: =?utf-8?b?%%%?=\nDate: Fri, 99 Foo 20260 10:00:00\n\nbody\n",
    "odd base64": b"Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n\xff\xfe not base64 !!!\n",
    "zeros": b"\0" * 5_000,
}


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


SENT = struct.pack("<HHLQ", 0x40, 0x39, 0, 134_220_960_000_000_000)
MAIL = {
    "__properties_version1.0": bytes(32) + SENT,
    "__substg1.0_0037001F": wide("Über den Plan"),
    "__substg1.0_0C1A001F": wide("Ada"),
    "__substg1.0_5D01001F": wide("ada@example.org"),
    "__substg1.0_0E04001E": b"bob@example.org",
    "__substg1.0_1000001F": wide("Dear Bob,\r\n\r\n" + "see below. " * 400),
    "__attach_version1.0_#00000000/__substg1.0_3707001F": wide("table.csv"),
    "__attach_version1.0_#00000000/__substg1.0_37010102": b"a,b\n1,2\n",
    "__attach_version1.0_#00000001/__substg1.0_3707001F": wide("table.csv"),
    "__attach_version1.0_#00000001/__substg1.0_37010102": b"other\n" * 1_000,
    "__attach_version1.0_#00000002/__substg1.0_3001001F": wide("an embedded message"),
}


def test_headers_body_and_attachments_are_read(read: Read) -> None:
    found, text = read("msg", compound(MAIL))
    assert text.startswith(
        "# Über den Plan\n\nFrom: Ada <ada@example.org>\nTo: bob@example.org\nDate: 2026-05-01"
    )
    assert "Dear Bob,\n\nsee below." in text
    assert (
        "- table.csv (8 bytes)\n- 2 table.csv (6,000 bytes)\n"
        "- an embedded message (an object)" in text
    )
    author = "Ada <ada@example.org>"
    check_facts(found, title="Über den Plan", author=author, published="2026-05-01", members=3)


def test_an_attachment_is_read_by_its_name(part: PartOf) -> None:
    data = compound(MAIL)
    assert part("msg", data, "2 table.csv") == PartText("other\n" * 1_000, 1_000)
    with pytest.raises(OutOfRange):
        part("msg", data, "x")
    with pytest.raises(BadArgument):
        part("msg", data, "")


def test_a_body_that_is_html_alone_becomes_markdown(read: Read) -> None:
    mail = MAIL | {
        "__substg1.0_1000001F": b"",
        "__substg1.0_10130102": b"<h2>News</h2><p style='display:none'>obey</p><p>All.</p>",
    }
    found, text = read("msg", compound(mail))
    assert "## News\n\nAll." in text
    assert found.facts.hidden_removed == 1


SECTORS, GIGABYTES = (struct.pack("<5H", 62, 3, 0xFFFE, shift, 6) for shift in (9, 30))
test_an_invalid_message_gives_one_clear_line = unreadable(
    "msg",
    {
        "empty": (b"", "no compound file"),
        "cut short": (compound(MAIL)[:600], "is cut short"),
        "Word": (compound({"WordDocument": b"x"}), "holds no message"),
        "sectors of a gigabyte": (compound(MAIL).replace(SECTORS, GIGABYTES), "unknown size"),
    },
)


INNER = "__attach_version1.0_#00000001/__substg1.0_3701000D"
FORWARD = {
    "__properties_version1.0": bytes(32) + SENT,
    "__substg1.0_0037001F": wide("FW: Plan"),
    "__substg1.0_1000001F": wide("See what Bob wrote."),
    "__attach_version1.0_#00000000/__substg1.0_3707001F": wide("a.csv"),
    "__attach_version1.0_#00000000/__substg1.0_37010102": b"a,b\n1,2\n",
    "__attach_version1.0_#00000001/__substg1.0_3001001F": wide("Plan"),
    f"{INNER}/__properties_version1.0": bytes(24) + SENT,
    f"{INNER}/__substg1.0_0037001F": wide("Plan"),
    f"{INNER}/__substg1.0_0C1A001F": wide("Bob"),
    f"{INNER}/__substg1.0_1000001F": wide("We begin on Monday.\r\n\r\n> 1\r\n> 2\r\n> 3\r\n> 4"),
    f"{INNER}/__recip_version1.0_#00000000/__substg1.0_3001001F": wide("Ada"),
    f"{INNER}/__attach_version1.0_#00000000/__substg1.0_3707001F": wide("a.csv"),
    f"{INNER}/__attach_version1.0_#00000000/__substg1.0_37010102": b"inner\n",
}


def test_a_message_within_a_message_of_outlook_is_read(read: Read, part: PartOf) -> None:
    data = compound(FORWARD)
    found, text = read("msg", data)
    assert "See what Bob wrote.\n\n## Plan\n\nFrom: Bob\nTo: Ada\nDate: 2026-05-01" in text
    assert 'We begin on Monday.\n\n(quoted history: 4 lines, path="quoted")' in text
    assert text.endswith("- a.csv (8 bytes)\n- 2 a.csv (6 bytes)\n\n")
    check_facts(found, members=2)
    assert part("msg", data, "2 a.csv") == PartText("inner\n", 1)
    assert part("msg", data, "quoted") == PartText("> 1\n> 2\n> 3\n> 4\n", 4)


def test_a_message_of_outlook_that_is_cut_short_says_so(read: Read) -> None:
    """Its table has a sector behind the end of the file; all else is there."""
    data = bytearray(compound(MAIL))
    table_at = 512 * (struct.unpack_from("<L", data, 76)[0] + 1)
    struct.pack_into("<L", data, table_at + 4 * 127, 0xFFFFFFFE)
    found, _ = read("msg", bytes(data))
    check_facts(found, extraction_truncated=True)
    assert found.facts.extraction_error == "the message is cut short: what it lost is not shown"


def of_rtf(body: bytes) -> bytes:
    """Return a message whose body is this compressed RTF alone."""
    return compound(MAIL | {"__substg1.0_1000001F": b"", "__substg1.0_10090102": body})


def test_a_body_of_damaged_rtf_is_named(read: Read) -> None:
    found, text = read("msg", of_rtf(b"LZFu"))
    assert "08:00:00+00:00\n\n## Attachments" in text
    assert found.facts.extraction_error == "its body is compressed RTF that is damaged"


def packed_rtf(rtf: bytes) -> bytes:
    """Return RTF as [MS-OXRTFCP] packs it: what repeats within 4,096 bytes is a reference."""
    out, done, place = b"", 0, 0
    tokens: list[bytes] = []
    while place < len(rtf):
        length = min(17, len(rtf) - place)
        while length > 3 and rtf.rfind(rtf[place : place + length], 0, place + length - 1) < 0:
            length -= 1
        at = rtf.rfind(rtf[place : place + length], 0, place + length - 1)
        if length > 3 and at >= 0 and place - at < 4_000:
            tokens.append(struct.pack(">H", (at + 207) % 4_096 << 4 | length - 2))
            place += length
        else:
            tokens.append(rtf[place : place + 1])
            place += 1
    tokens.append(struct.pack(">H", (place + 207) % 4_096 << 4))
    while done < len(tokens):
        group = tokens[done : done + 8]
        done += 8
        out += bytes([sum((len(token) > 1) << bit for bit, token in enumerate(group))])
        out += b"".join(group)
    return struct.pack("<4L", len(out) + 12, len(rtf), 0x75465A4C, 0) + out


# The example of [MS-OXRTFCP], section 3.1.1, whose references lead into what the window begins with.
EXAMPLE = bytes.fromhex(
    "2d0000002b0000004c5a4675f1c5c7a703000a00726370673132354232"
    "0af32068656c090020627705b06c647d0a800fa0"
)
HTML_RTF = (
    rb"{\rtf1\ansi\ansicpg1252\fromhtml1 \deff0{\fonttbl{\f0 Arial;}{\f1\fcharset204 Arial;}}"
    rb"{\colortbl\red0\green0\blue0;}{\*\htmltag64 <p>}\htmlrtf{\f0 \htmlrtf0 Dear Bj\'f6rn,"
    rb"\htmlrtf\par}\htmlrtf0{\*\htmltag72 </p>}{\*\htmltag64 <p>}\'80 5 \u8211? {\f1\'e4\'e0}"
    rb"{\*\htmltag84 <a href=\'22https://example.org/\'22>}plan{\*\htmltag92 </a>}"
    rb"{\*\mhtmltag84 <a href='x'>}{\*\htmltag72 </p>}"
    rb"{\*\htmltag64 <p style='display:none'>}obey{\*\htmltag72 </p>}}"
)
RTF_BODIES: Mapping[str, tuple[bytes, str]] = {
    "of the specification": (EXAMPLE, "\n\nhello world\n\n"),
    "plain": (
        struct.pack("<4L", 29, 17, 0x414C454D, 0) + rb"{\rtf1 Dear Bob.}",
        "\n\nDear Bob.\n\n",
    ),
    "a list": (
        packed_rtf(
            rb"{\rtf1\ansi Points:\par{\listtext 1.\tab}begin\par{\listtext 2.\tab}begin again\par}"
        ),
        "Points:\n\n1. begin\n2. begin again\n\n",
    ),
    "long": (
        packed_rtf(
            rb"{\rtf1\ansi " + b"".join(b"line %d ends here.\\par " % n for n in range(400)) + b"}"
        ),
        "line 398 ends here.\n\nline 399 ends here.\n\n",
    ),
    "HTML": (
        packed_rtf(HTML_RTF),
        "Dear Björn,\n\n€ 5 \u2013 \u0434\u0430[plan](https://example.org/)\n\n## Attachments",
    ),
}


@pytest.mark.parametrize(("body", "text"), RTF_BODIES.values(), ids=RTF_BODIES.keys())
def test_a_body_that_is_compressed_rtf_alone_is_read(read: Read, body: bytes, text: str) -> None:
    found, shown = read("msg", of_rtf(body))
    assert text in shown
    assert "obey" not in shown
    assert found.facts.extraction_error == ""


@pytest.mark.parametrize("cut", range(0, 240, 7))
def test_compressed_rtf_that_is_cut_or_changed_does_no_harm(read: Read, cut: int) -> None:
    whole = packed_rtf(HTML_RTF)
    read("msg", of_rtf(whole[:cut]))
    read("msg", of_rtf(whole[:cut] + bytes([255 - whole[cut]]) + whole[cut + 1 :]))


def test_streams_of_every_size_are_whole(part: PartOf) -> None:
    sizes = (0, 1, 63, 64, 65, 500, 4_095, 4_096, 4_097, 9_000)
    texts = {f"{size}.txt": "".join(chr(33 + n % 91) for n in range(size)) for size in sizes}
    mail = dict(MAIL)
    for number, (name, text) in enumerate(texts.items()):
        folder = f"__attach_version1.0_#{number:08}"
        mail |= {f"{folder}/__substg1.0_3707001F": wide(name)}
        mail |= {f"{folder}/__substg1.0_37010102": text.encode()}
    data = compound(mail)
    for name, text in texts.items():
        found = part("msg", data, name)
        assert isinstance(found, PartText)
        assert found.text.rstrip("\n") == text


def test_chains_and_trees_that_are_rings_end(read: Read) -> None:
    data = bytearray(compound(MAIL))
    fat_at = 512 * (struct.unpack_from("<L", data, 76)[0] + 1)
    struct.pack_into("<128L", data, fat_at, *[0] * 128)
    with suppress(NoText):
        read("msg", bytes(data))
    whole = compound(MAIL)
    directory = 512 * (struct.unpack_from("<L", whole, 48)[0] + 1)
    ring = bytearray(whole)
    for number in range(8):
        struct.pack_into("<3L", ring, directory + 128 * number + 68, 1, 2, 1)
    with suppress(NoText):
        found, _ = read("msg", bytes(ring))
        assert (found.facts.members or 0) <= 3


def recipient(kind: int) -> bytes:
    return bytes(8) + struct.pack("<HHLLL", 3, 0x0C15, 0, kind, 0)


def test_recipients_come_with_all_their_addresses(read: Read) -> None:
    people = (("Bob", "bob@example.org", 1), ("Carl", "carl@example.org", 2), ("", "d@x", 1))
    mail = MAIL | {
        f"__recip_version1.0_#0000000{number}/{name}": data
        for number, (person, address, kind) in enumerate(people)
        for name, data in (
            ("__properties_version1.0", recipient(kind)),
            ("__substg1.0_3001001F", wide(person)),
            ("__substg1.0_39FE001F", wide(address)),
        )
    }
    text = read("msg", compound(mail))[1]
    assert "To: Bob <bob@example.org>; d@x\nCc: Carl <carl@example.org>\n" in text


def test_a_charset_that_is_no_name_costs_no_text(read: Read) -> None:
    data = b'Content-Type: text/plain; charset="u\0f"\nSubject: x\n\nstill here'
    assert "still here" in read("email", data)[1]


ARCHIVE = """From: <Saved by Blink>
Snapshot-Content-Location: https://example.org/p
Content-Type: multipart/related; type="text/html"; %sboundary=B

--B
Content-Type: text/html
Content-Location: https://example.org/ad

<p>An advertisement.</p>
--B
Content-Type: text/html
Content-ID: <main>
Content-Location: %s

<p>The saved page.</p>
--B--
"""
ENCRYPTED = {
    "PGP": (
        "email",
        b"Content-Type: multipart/encrypted; boundary=x\n\n--x\n\nVersion: 1\n--x--\n",
    ),
    "S/MIME": ("email", b"Content-Type: application/pkcs7-mime\n\nMIIB"),
    "in a mailbox": (
        "mbox",
        b"From a Fri May  1 10:00:00 2026\nContent-Type: application/x-pkcs7-mime\n\nMIIB",
    ),
    "Outlook": (
        "msg",
        compound(
            {
                "__properties_version1.0": bytes(32),
                "__substg1.0_001A001F": wide("IPM.Note.SMIME"),
                "__attach_version1.0_#00000000/__substg1.0_3707001F": wide("smime.p7m"),
            }
        ),
    ),
}


@pytest.mark.parametrize(
    ("start", "location"), [('start="<main>"; ', ""), ("", "https://example.org/p")]
)
def test_a_web_archive_shows_the_page_that_it_begins_with(
    read: Read, start: str, location: str
) -> None:
    assert read("mhtml", (ARCHIVE % (start, location)).encode())[1] == "The saved page.\n"


def archive(page: str, **frames: str) -> bytes:
    """Return a web archive whose frames are called by their content ids."""
    parts = {"main": page, **frames}
    bodies = "".join(
        f"--B\nContent-Type: text/html\nContent-ID: <{name}>\n"
        f"Content-Location: https://{'ads' if name == 'ad' else 'example'}.org/{name}\n\n{html}\n"
        for name, html in parts.items()
    )
    head = "Snapshot-Content-Location: https://example.org/main\n"
    return f'{head}Content-Type: multipart/related; boundary="B"\n\n{bodies}--B--\n'.encode()


FRAMES = {
    "an inline frame": (
        archive("<p>Above.</p><iframe src='cid:a'></iframe><p>Below.</p>", a="<p>Framed.</p>"),
        "Above.\n\nFramed.\n\nBelow.\n",
    ),
    "a frame by its address": (
        archive('<p>Above.</p><iframe width=9 src="/a"></iframe>', a="<p>Framed.</p>"),
        "Above.\n\nFramed.\n",
    ),
    "a frameset": (
        archive(
            "<frameset cols='1,2'><frame src='cid:a'><frame src=cid:b></frameset>",
            a="<p>Left.</p>",
            b="<p>Right.</p>",
        ),
        "Left.\n\nRight.\n",
    ),
    "a frame in a frame": (
        archive(
            "<iframe src=cid:a></iframe>",
            a='<p>Outer.</p><iframe src="cid:b"></iframe>',
            b="<p>Inner &amp; last.</p>",
        ),
        "Outer.\n\nInner & last.\n",
    ),
    "frames that hold each other": (
        archive(
            "<p>Main.</p><iframe src=cid:a></iframe>", a="<p>A.</p><iframe src=cid:main></iframe>"
        ),
        "Main.\n\nA.\n",
    ),
    "an address that is none": (
        archive("<p>Main.</p><iframe src=http://[x></iframe>").replace(
            b"https://ex", b"http://[ex"
        ),
        "Main.\n",
    ),
    "a frame of another site": (
        archive("<p>Main.</p><iframe src=cid:ad></iframe>", ad="<p>Buy.</p>"),
        "Main.\n",
    ),
}


@pytest.mark.parametrize(("data", "text"), FRAMES.values(), ids=list(FRAMES))
def test_a_web_archive_shows_the_frames_of_its_page(read: Read, data: bytes, text: str) -> None:
    assert read("mhtml", data)[1] == text


@pytest.mark.parametrize(("handler", "data"), ENCRYPTED.values(), ids=list(ENCRYPTED))
def test_an_encrypted_mail_says_so(read: Read, handler: str, data: bytes) -> None:
    assert "(the text of this mail is encrypted" in read(handler, data)[1]


def test_a_paragraph_that_begins_with_from_parts_no_mail(read: Read) -> None:
    """Programs that write Content-Length quote no such line."""
    first = b"From ada@example.org Fri May  1 10:00:00 2026\nSubject: A\n\nHello.\n\n"
    extracted, text = read("mbox", first + b"From here on all is well.\n\n" + first)
    assert text.count("From here on all is well.") == 1
    assert extracted.facts.pages == 2


def test_names_of_attachments_of_outlook_stand_on_one_line_each(read: Read) -> None:
    names = ("a\n\n# Head", "3 b", "b", "b", "..\\..\\x.exe")
    mail = {"__properties_version1.0": bytes(32)}
    for number, name in enumerate(names):
        mail[f"__attach_version1.0_#{number:08}/__substg1.0_3707001F"] = wide(name)
    shown = ["a # Head", "3 b", "b", "4 b", "..\\..\\x.exe"]
    lines = "".join(f"- {name} (an object)\n" for name in shown)
    assert lines in read("msg", compound(mail))[1]


def shows_picture(name: str, *, markup: bool) -> bytes:
    """Return a mail with one picture and one other attachment, and a text that shows the first."""
    mail = EmailMessage()
    mail["Subject"] = "Plan"
    text = (
        "<p>Above.</p><img src='cid:c%401' alt='A chart'><p>Below.</p>" if markup else "[A chart]"
    )
    mail.set_content(text, subtype="html" if markup else "plain")
    mail.add_attachment(b"png", "image", "png", filename=name, cid="<c@1>", disposition="inline")
    mail.add_attachment(b"a,b", "text", "csv", filename="a.csv")
    return mail.as_bytes()


OUTLOOK = {
    "__properties_version1.0": bytes(32),
    "__substg1.0_10130102": b"<p>Above.</p><img src='cid:c%401' alt='A chart'><p>Below.</p>",
    "__attach_version1.0_#00000000/__substg1.0_3707001F": wide("chart.png"),
    "__attach_version1.0_#00000000/__substg1.0_3712001F": wide("c@1"),
    "__attach_version1.0_#00000000/__substg1.0_37010102": b"png",
    "__attach_version1.0_#00000001/__substg1.0_3707001F": wide("a.csv"),
    "__attach_version1.0_#00000001/__substg1.0_37010102": b"a,b",
}
SHOWN_PICTURES = {
    "a mail": ("email", shows_picture("chart.png", markup=True), "(chart.png)"),
    "a name with blanks": ("email", shows_picture("a (1).png", markup=True), "(<a (1).png>)"),
    "a mailbox": (
        "mbox",
        b"From a Fri May  1 10:00:00 2026\n" + shows_picture("chart.png", markup=True),
        "(1/chart.png)",
    ),
    "Outlook": ("msg", compound(OUTLOOK), "(chart.png)"),
}


@pytest.mark.parametrize(("kind", "data", "address"), SHOWN_PICTURES.values(), ids=SHOWN_PICTURES)
def test_a_picture_in_the_text_of_a_mail_is_named_there_alone(
    read: Read, kind: str, data: bytes, address: str
) -> None:
    extracted, text = read(kind, data)
    assert f"Above.\n\n![A chart]{address}\n\nBelow." in text
    assert text.count("png") == 1
    assert text.count("a.csv") == 1
    assert extracted.facts.members == 2


def test_a_picture_that_the_text_of_a_mail_does_not_show_is_listed(read: Read) -> None:
    assert "- chart.png (image/png" in read("email", shows_picture("chart.png", markup=False))[1]


QUOTES_PICTURE = shows_picture("chart.png", markup=True).replace(
    b"<p>Above.</p>",
    b"<p>I agree.</p><p>On Monday Ada wrote:</p><blockquote><p>One</p><p>Two</p>",
)


def test_a_picture_in_the_history_of_a_mail_is_listed_and_named_there(
    read: Read, part: PartOf
) -> None:
    text = read("email", QUOTES_PICTURE)[1]
    assert 'path="quoted"' in text
    assert "- chart.png (image/png" in text
    quoted = part("email", QUOTES_PICTURE, "quoted")
    assert isinstance(quoted, PartText)
    assert "![A chart](chart.png)" in quoted.text
    box = b"From a Fri May  1 10:00:00 2026\n" + QUOTES_PICTURE
    assert "- attachment 1/chart.png" in read("mbox", box)[1]
    quoted = part("mbox", box, "1/quoted")
    assert isinstance(quoted, PartText)
    assert "![A chart](1/chart.png)" in quoted.text
