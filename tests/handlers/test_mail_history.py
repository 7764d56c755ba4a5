"""A reply shows its newest answer first; what it quotes is kept apart."""

from collections.abc import Mapping
from email.message import EmailMessage

import pytest

from fetchstash.errors import OutOfRange
from tests.handlers.compounds import compound
from tests.handlers.conftest import PartOf, Read

ANSWER = "Tuesday suits me."
MARKED = "> Shall we meet\n> on Tuesday\n> at ten?"
HEADER = "From: Ada\nSent: Monday\nTo: Bob\nSubject: Plan\n\nShall we meet?"
CASES: Mapping[str, tuple[str, str, str]] = {
    "marks": (
        f"{ANSWER}\n\nOn Monday, Ada wrote:\n{MARKED}\n",
        ANSWER,
        f"On Monday, Ada wrote:\n{MARKED}",
    ),
    "wrapped line above": (
        f"{ANSWER}\n\nOn Monday, 2 March 2026 Ada\n<ada@example.org> wrote:\n\n{MARKED}",
        ANSWER,
        f"On Monday, 2 March 2026 Ada\n<ada@example.org> wrote:\n\n{MARKED}",
    ),
    "marks alone": (f"{ANSWER}\n\n{MARKED}", ANSWER, MARKED),
    "Outlook": (f"{ANSWER}\n\n{HEADER}", ANSWER, HEADER),
    "Outlook's line": (
        f"{ANSWER}\n\n-----Original Message-----\n{HEADER}",
        ANSWER,
        f"-----Original Message-----\n{HEADER}",
    ),
    "German": (
        f"{ANSWER}\n\nVon: Ada\nGesendet: Montag\nAn: Bob\nBetreff: Plan\n\nTreffen?",
        ANSWER,
        "Von: Ada\nGesendet: Montag\nAn: Bob\nBetreff: Plan\n\nTreffen?",
    ),
    "Polish": (
        f"{ANSWER}\n\nOd: Ada\nWysłano: wtorek\nDo: Bob\nTemat: Plan\n\nKiedy?",
        ANSWER,
        "Od: Ada\nWysłano: wtorek\nDo: Bob\nTemat: Plan\n\nKiedy?",
    ),
    "Russian": (
        f"{ANSWER}\n\nОт: Ada\nОтправлено: вторник\nКому: Bob\nТема: Plan\n\nКогда?",
        ANSWER,
        "От: Ada\nОтправлено: вторник\nКому: Bob\nТема: Plan\n\nКогда?",
    ),
    "Chinese": (
        f"{ANSWER}\n\n发件人： Ada\n发送时间： 周二\n收件人： Bob\n主题： Plan\n\n何时？",
        ANSWER,
        "发件人： Ada\n发送时间： 周二\n收件人： Bob\n主题： Plan\n\n何时？",
    ),
    "answers between": (f"{MARKED}\n\n{ANSWER}\n\n{MARKED}\n\nBye.", "", ""),
    "nothing but a quotation": (MARKED, "", ""),
    "a short quotation": (f"{ANSWER}\n\n> ten?", "", ""),
    "a letter with From": ("From: the office.\nDear Bob, we write to you.\nYours", "", ""),
}


def mail(body: str, subject: str = "Re: Plan", subtype: str = "plain") -> bytes:
    message = EmailMessage()
    message["From"], message["Subject"] = "bob@example.org", subject
    message.set_content(body, subtype=subtype)
    return bytes(message)


@pytest.mark.parametrize(("body", "own", "quoted"), list(CASES.values()), ids=list(CASES))
def test_history_is_read_by_its_path_alone(
    read: Read, part: PartOf, body: str, own: str, quoted: str
) -> None:
    for handler, data in (("email", mail(body)), ("msg", msg(body))):
        shown = read(handler, data)[1]
        if quoted:
            lines = quoted.count("\n") + 1
            assert f'\n\n{own}\n\n(quoted history: {lines} lines, path="quoted")\n' in shown
            assert part(handler, data, "quoted").text.rstrip("\n") == quoted  # type: ignore[union-attr]
        else:
            assert body.strip() in shown
            assert "quoted history" not in shown


def msg(body: str) -> bytes:
    return compound(
        {
            "__properties_version1.0": bytes(32),
            "__substg1.0_0037001F": "Re: Plan".encode("utf-16-le"),
            "__substg1.0_1000001F": body.encode("utf-16-le"),
        }
    )


def test_what_a_mail_forwards_is_no_history(read: Read) -> None:
    assert "Shall we meet?" in read("email", mail(f"FYI\n\n{HEADER}", "Fwd: Plan"))[1]


def test_history_of_html_is_kept_apart(read: Read, part: PartOf) -> None:
    quoted = "<p>Shall we meet</p><p>on Tuesday</p><p>at ten?</p>"
    data = mail(
        f"<p>{ANSWER}</p><div>On Monday, Ada wrote:</div><blockquote>{quoted}</blockquote>",
        subtype="html",
    )
    shown = read("email", data)[1]
    assert ANSWER in shown
    assert "at ten?" not in shown
    assert "at ten?" in part("email", data, "quoted").text  # type: ignore[union-attr]


def test_history_in_a_mailbox_is_read_by_the_number_of_its_mail(read: Read, part: PartOf) -> None:
    bodies = [f"{ANSWER}\n\n{MARKED}", "Hello.", f"No.\n\n{HEADER}"]
    box = b"".join(b"From a Mon Mar  2 10:00:00 2026\n" + mail(body) + b"\n" for body in bodies)
    shown = read("mbox", box)[1]
    assert '(quoted history: 3 lines, path="1/quoted")' in shown
    assert '(quoted history: 6 lines, path="3/quoted")' in shown
    assert "Shall we meet" not in shown
    assert part("mbox", box, "1/quoted").text.rstrip("\n") == MARKED  # type: ignore[union-attr]
    assert part("mbox", box, "3/quoted").text.rstrip("\n") == HEADER  # type: ignore[union-attr]
    for path in ("2/quoted", "4/quoted", "quoted", "0/quoted", f"{'9' * 5_000}/quoted"):
        with pytest.raises(OutOfRange):
            part("mbox", box, path)
