"""Calendars: entries with their dates become preview, outline and parts."""

from pathlib import Path

import pytest

from fetchstash.errors import BadArgument, OutOfRange
from fetchstash.handlers import ExtractLimits, PartRequest, PartText, detect_content_kind, format_of
from fetchstash.text.tokens import count
from tests.handlers.conftest import Read, Save
from tests.handlers.parts import text_part

CALENDAR = """BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VEVENT
UID:one@example.org
DTSTART;TZID="Europe/Berlin":20260501T100000
SUMMARY:Board meeting\\, with a long
  title\\; folded
LOCATION:Room 5
DESCRIPTION:first line\\nsecond line\\\\
BEGIN:VALARM
DESCRIPTION:ring
END:VALARM
END:VEVENT
BEGIN:VTODO
UID:two
DUE:20260601
SUMMARY:Pay
END:VTODO
END:VCALENDAR
""".replace("\n", "\r\n")


def part(source: Path, path: str, **asked: object) -> PartText:
    return text_part("ics", PartRequest(source=source, path=path, **asked))  # type: ignore[arg-type]


def test_a_calendar_is_kept_and_its_entries_are_outline_and_preview(read: Read) -> None:
    extracted, text = read("ics", CALENDAR.encode())
    assert text == CALENDAR.replace("\r\n", "\n")
    assert extracted.facts.structure_info == "1 event, 1 to-do"
    assert [(h.title, h.start) for h in extracted.facts.outline] == [
        ("Board meeting, with a long title; folded", 3),
        ("Pay", 14),
    ]
    assert extracted.preview.text == (
        "2026-05-01 10:00 Europe/Berlin · Board meeting, with a long title; folded · Room 5\n"
        "2026-06-01 · Pay"
    )


@pytest.mark.parametrize("path", ["/1", "/one@example.org"])
def test_a_part_is_an_entry_unfolded_and_without_escapes(save: Save, path: str) -> None:
    assert part(save(CALENDAR.encode()), path).text == (
        "UID: one@example.org\n"
        'DTSTART;TZID="Europe/Berlin": 2026-05-01 10:00 Europe/Berlin\n'
        "SUMMARY: Board meeting, with a long title; folded\n"
        "LOCATION: Room 5\n"
        "DESCRIPTION: first line\n  second line\\\n"
        "BEGIN: VALARM\n"
        "  DESCRIPTION: ring\n"
        "END: VALARM\n"
    )


def test_an_entry_that_is_not_there_and_a_picture_are_errors(save: Save) -> None:
    source = save(CALENDAR.encode())
    with pytest.raises(OutOfRange, match="the calendar has 2"):
        part(source, "/3")
    with pytest.raises(BadArgument):
        part(source, "/1", render="image")


def test_a_calendar_is_recognised_by_its_first_line() -> None:
    decision = detect_content_kind({"content-type": "text/plain"}, CALENDAR.encode(), "/download")
    assert (decision.kind, decision.media_type) == ("text", "text/calendar")
    assert format_of(decision).word == "calendar"


@pytest.mark.parametrize(
    "hostile",
    [
        b"BEGIN:VCALENDAR\nBEGIN:VEVENT\n" + b"BEGIN:VALARM\n" * 20_000,
        b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:x\n" + b" folded\n" * 100_000,
        b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY" + b';P="' * 50_000 + b":x\n",
        b"BEGIN:VEVENT\nSUMMARY:event\nEND:VEVENT\n" * 10_000,
        b"BEGIN:VEVENT\nEND:VEVENT\nEND:VEVENT\n:\n;\n BEGIN\n",
        b"",
    ],
    ids=["nested", "folded", "quotes", "many", "unbalanced", "empty"],
)
def test_hostile_calendars_are_bounded(read: Read, hostile: bytes) -> None:
    extracted, text = read("ics", hostile)
    assert text == hostile.decode()
    assert len(extracted.facts.outline) <= 2_000
    assert count(extracted.preview.text).tokens <= ExtractLimits().preview.structured_tokens
    assert all(len(heading.title) <= 100 for heading in extracted.facts.outline)
