"""Feeds, calendars, notebooks and databases."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import json
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from fetchstash.errors import BadArgument, NoText, OutOfRange
from fetchstash.handlers import ExtractLimits, Hints, detect_content_kind, format_of
from fetchstash.handlers._data import _feeds
from fetchstash.text.tokens import count
from tests.handlers.conftest import Read, Save
from tests.handlers.parts import handler_named, text_part

RSS = """<?xml version="1.0"?><rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>Gate news</title>
<link>https://example.org/</link><description>What the wardens do.</description><language>en</language>
<item><title>Gate &amp; key</title><link>https://example.org/1</link><pubDate>Mon, 02 Nov 2026 08:00:00 GMT</pubDate>
<dc:creator>A. Warden</dc:creator><description>&lt;p&gt;It &lt;b&gt;opened&lt;/b&gt;.&lt;/p&gt;</description></item>
<item><title>Closed</title></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en"><title>Gate log</title><link rel="self" href="https://example.org/feed"/>
<entry><title>Mark reached</title><link rel="enclosure" href="https://example.org/x.mp3"/><link href="https://example.org/2"/>
<updated>2026-11-02T08:00:00Z</updated><author><name>B. Warden</name></author><summary>Four metres.</summary></entry></feed>"""
SITEMAP = """<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://example.org/a</loc><lastmod>2026-11-01</lastmod></url>
<url><loc>https://example.org/b</loc></url></urlset>"""
INDEX = "<sitemapindex><sitemap><loc>https://example.org/s1.xml</loc></sitemap></sitemapindex>"

CASES = {
    "RSS": (
        "application/rss+xml",
        RSS,
        (
            "Gate news — What the wardens do.\n\n"
            "- [Gate & key](https://example.org/1) · Mon, 02 Nov 2026 08:00:00 GMT · A. Warden\n  It **opened**.\n- Closed\n"
        ),
        "RSS feed of 2 entries",
    ),
    "Atom": (
        "application/atom+xml",
        ATOM,
        "Gate log\n\n- [Mark reached](https://example.org/2) · 2026-11-02T08:00:00Z · B. Warden\n  Four metres.\n  [Enclosure](https://example.org/x.mp3)\n",
        "Atom feed of 1 entry",
    ),
    "a sitemap": (
        "application/x-sitemap+xml",
        SITEMAP,
        "- https://example.org/a · 2026-11-01\n- https://example.org/b\n",
        "sitemap of 2 entries",
    ),
    "an index of sitemaps": (
        "application/x-sitemap+xml",
        INDEX,
        "- https://example.org/s1.xml\n",
        "sitemap of 1 entry",
    ),
}


@pytest.mark.parametrize(("media_type", "xml", "text", "info"), CASES.values(), ids=CASES.keys())
def test_each_entry_is_one_list_item(
    read: Read, media_type: str, xml: str, text: str, info: str
) -> None:
    extracted, found = read("feed", xml.encode(), media_type=media_type)
    assert found == text
    assert extracted.facts.structure_info == info


WORDS = "word " * 300
LONG = f"{WORDS}KESTREL"
MARKUP = f"&lt;p&gt;{LONG}&lt;/p&gt;"
XHTML = f'<div xmlns="http://www.w3.org/1999/xhtml"><p>{LONG}<br/>A &amp;lt;b&amp;gt; &amp; c.</p></div>'


def rss(inside: str) -> tuple[str, str]:
    names = "xmlns:content='c' xmlns:media='m' xmlns:itunes='i'"
    item = f"<item><title>Wall</title>{inside}</item>"
    return "application/rss+xml", f"<rss {names}><channel><title>N</title>{item}</channel></rss>"


def atom(inside: str, title: str = "<title>Wall</title>") -> tuple[str, str]:
    entry = f"<entry>{title}{inside}</entry>"
    return (
        "application/atom+xml",
        f'<feed xmlns="http://www.w3.org/2005/Atom"><title>N</title>{entry}</feed>',
    )


LONGEST = {
    "content:encoded": rss(
        f"<description>Short</description><content:encoded><![CDATA[<p>{LONG}</p>]]>"
        "</content:encoded>"
    ),
    "a long description": rss(f"<description>{MARKUP}</description>"),
    "a description longer than its content": rss(
        f"<content:encoded>Short</content:encoded><description>{LONG}</description>"
    ),
    "markup that is not escaped": rss(f"<description><p>{LONG}</p></description>"),
    "a description of a film": rss(
        f"<media:group><media:description>{LONG}</media:description></media:group>"
    ),
    "a summary of a podcast": rss(f"<itunes:summary>{LONG}</itunes:summary>"),
    "html": atom(f"<summary>Short</summary><content type='html'>{MARKUP}</content>"),
    "xhtml": atom(f"<content type='xhtml'>{XHTML}</content>"),
    "text": atom(f"<content type='text'>{LONG}</content><summary>Short</summary>"),
    "a summary alone": atom(f"<summary type='html'>{MARKUP}</summary>"),
    "a picture and words": rss(
        f"<content:encoded>&lt;img src='https://a.example/{'x' * 3000}'&gt;</content:encoded>"
        f"<description>{LONG}</description>"
    ),
}


@pytest.mark.parametrize(("media_type", "xml"), LONGEST.values(), ids=LONGEST)
def test_the_longest_text_of_an_entry_is_read_in_full(
    read: Read, media_type: str, xml: str
) -> None:
    extracted, text = read("feed", xml.encode(), media_type=media_type)
    assert text.count("word") == 300
    assert "KESTREL" in text
    assert "Short" not in text
    assert not extracted.facts.extraction_truncated


MARKDOWN = {
    "html": (
        rss(f"<description>{'&lt;h2&gt;A&lt;/h2&gt;&lt;p&gt;b&lt;/p&gt;'}</description>"),
        ("- Wall\n\n  ## A\n\n  b\n\n"),
    ),
    "code": (
        rss("<description><![CDATA[<p>a</p><pre>x = 1\n\ny = 2</pre>]]></description>"),
        "- Wall\n\n  a\n\n  ```\n  x = 1\n\n  y = 2\n  ```\n\n",
    ),
    "a relative link": (
        rss(
            "<link>https://a.example/x/1</link><description>&lt;a href='2'&gt;b&lt;/a&gt;</description>"
        ),
        "- [Wall](https://a.example/x/1)\n  [b](https://a.example/x/2)\n",
    ),
    "text with angle brackets": (
        atom("<content type='text'>a &lt;b&gt; c</content>"),
        ("- Wall\n  a <b> c\n"),
    ),
    "xhtml with breaks": (
        atom("<content type='xhtml'><div>a<br/>b &lt;i&gt;</div></content>"),
        "- Wall\n\n  a\n  b <i>\n\n",
    ),
    "hidden words": (
        rss(
            "<description>&lt;p&gt;a&lt;/p&gt;&lt;p style='display:none'&gt;obey&lt;/p&gt;</description>"
        ),
        "- Wall\n  a\n",
    ),
    "a title with markup": (
        atom("<id>x</id>", "<title type='xhtml'><div>A <em>wall</em> &amp; more</div></title>"),
        "- A wall & more\n",
    ),
    "bytes": (atom("<content type='image/png'>iVBORw0KGgo=</content>"), "- Wall\n"),
    "a source": (
        atom("<source><title>Other</title><updated>2001</updated></source><id>x</id>"),
        "- Wall\n",
    ),
}


@pytest.mark.parametrize("name", MARKDOWN)
def test_an_entry_is_markdown_of_its_kind(read: Read, name: str) -> None:
    (media_type, xml), shown = MARKDOWN[name]
    _, text = read("feed", xml.encode(), media_type=media_type)
    entry = text.removeprefix("N\n\n")
    assert entry == shown


def test_links_enclosures_and_dates_of_an_entry_stay(read: Read) -> None:
    inside = (
        "<id>https://a.example/1</id><published>2026-03-04</published><updated>2026-03-06</updated>"
        "<link rel='enclosure' type='audio/mpeg' length='1200' href='https://a.example/1.mp3'/>"
        "<link rel='via' href='https://b.example/'/><summary>Talk</summary>"
    )
    media_type, xml = atom(inside)
    _, text = read("feed", xml.encode(), media_type=media_type)
    assert text == (
        "N\n\n- [Wall](https://a.example/1) · 2026-03-04 · updated 2026-03-06\n  Talk\n"
        "  [Enclosure: audio/mpeg, 1,200 bytes](https://a.example/1.mp3)\n"
        "  [Via](https://b.example/)\n"
    )
    media_type, xml = rss(
        "<enclosure url='https://a.example/1.mp3' length='0' type='audio/mpeg'/>"
        "<media:content url='https://a.example/1.jpg' medium='image'/>"
        "<comments>https://a.example/1#c</comments>"
    )
    _, text = read("feed", xml.encode(), media_type=media_type)
    assert text.splitlines()[3:] == [
        "  [Enclosure: audio/mpeg](https://a.example/1.mp3)",
        "  [Enclosure: image](https://a.example/1.jpg)",
        "  [Comments](https://a.example/1#c)",
    ]


@pytest.mark.parametrize(
    ("base", "below"),
    [
        ("", "https://a.example/feeds/"),
        (" xml:base='/blog/'", "https://a.example/blog/"),
        (" xml:base='https://b.example/x/'", "https://b.example/x/"),
    ],
)
def test_a_relative_address_of_a_feed_is_below_its_base_or_its_own_address(
    base: str, below: str, read: Read
) -> None:
    _, text = read(
        "feed",
        f"<feed xmlns='http://www.w3.org/2005/Atom'{base}><title>N</title><entry>"
        "<title>Wall</title><link href='1.html'/><link rel='enclosure' href='1.mp3'/>"
        "<content type='html'>See &lt;a href='2.html'>two&lt;/a>.</content></entry></feed>".encode(),
        media_type="application/atom+xml",
        url="https://a.example/feeds/all.xml",
    )
    assert text == (
        f"N\n\n- [Wall]({below}1.html)\n  See [two]({below}2.html).\n  [Enclosure]({below}1.mp3)\n"
    )


def test_what_is_cut_of_an_entry_is_said_with_its_path(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_feeds, "MAX_ENTRY_CHARS", 1_000)
    for (media_type, xml), handler, path in (
        (LONGEST["a long description"], "feed", "//item[1]"),
        (LONGEST["text"], "feed", "//entry[1]"),
        (("application/feed+json", json.dumps(JSON_FEED)), "jsonfeed", "/items/0"),
    ):
        extracted, text = read(handler, xml.encode(), media_type=media_type)
        assert re.search(
            rf'… \d+ more characters: path="{re.escape(path)}"', " ".join(text.split())
        )
        assert extracted.facts.extraction_truncated
        assert "its end says where the rest is" in extracted.facts.extraction_error


JSON_FEED: dict[str, Any] = {
    "version": "https://jsonfeed.org/version/1.1",
    "title": "N",
    "language": "en",
    "home_page_url": "https://a.example/",
    "authors": [{"name": "Ada North"}],
    "items": [
        {
            "id": "1",
            "url": "https://a.example/1",
            "title": "Wall",
            "summary": "Short",
            "content_html": f"<p>{LONG}</p>",
            "date_published": "2026-03-04T10:00:00Z",
            "authors": [{"name": "Ben South"}, {"name": "Cy West"}],
            "attachments": [{"url": "https://a.example/1.mp3", "mime_type": "audio/mpeg"}],
        },
        {
            "id": "https://a.example/2",
            "content_text": "Two <b>",
            "image": "https://a.example/2.png",
        },
        7,
    ],
}


def test_a_json_feed_is_read_as_other_feeds(read: Read, save: Save) -> None:
    data = json.dumps(JSON_FEED).encode()
    decision = detect_content_kind({"content-type": "application/json"}, data, "")
    assert (decision.kind, decision.media_type) == ("json", "application/feed+json")
    extracted, text = read("jsonfeed", data, media_type=decision.media_type)
    assert text == (
        "N\n\n- [Wall](https://a.example/1) · 2026-03-04T10:00:00Z · Ben South, Cy West\n"
        f"  {LONG}\n  [Enclosure: audio/mpeg](https://a.example/1.mp3)\n"
        "- https://a.example/2\n  Two <b>\n  [Image](https://a.example/2.png)\n"
    )
    facts = extracted.facts
    assert (facts.title, facts.author, facts.language) == ("N", "Ada North", "en")
    assert facts.structure_info == "JSON Feed of 2 entries"
    assert text_part("jsonfeed", save(data), "/items/1/content_text").text == '"Two <b>"\n'


def test_json_that_is_no_feed_is_read_as_json(read: Read) -> None:
    assert read("jsonfeed", b'{"a": 1}\n')[1] == '{"a": 1}\n'
    assert read("jsonfeed", b"{")[1] == "{"


def test_the_head_of_a_feed_is_its_facts(read: Read) -> None:
    head = (
        "<id>x</id><author><name>Ada North</name></author><updated>2026-03-04T10:00:00Z</updated>"
        "<link rel='next' href='https://a.example/p2'/>"
    )
    media_type, xml = atom("<author><name>Ben South</name></author>")
    extracted, _ = read(
        "feed", xml.replace("<entry>", f"{head}<entry>").encode(), media_type=media_type
    )
    facts = extracted.facts
    assert (facts.author, facts.modified) == ("Ada North", "2026-03-04T10:00:00Z")
    assert facts.next_url == "https://a.example/p2"


@pytest.mark.slow
def test_entries_of_a_long_feed_stand_under_its_title(read: Read) -> None:
    items = "<item><title>Gate</title></item>" * 90_000
    extracted, text = read("feed", f"<rss><title>News</title>{items}</rss>".encode())
    assert text == "News\n\n" + "- Gate\n" * 90_000
    assert extracted.facts.structure_info == "feed of 90,000 entries"


def test_entities_of_its_own_are_refused(read: Read) -> None:
    with pytest.raises(NoText, match="it declares entities"):
        read("feed", f'<!DOCTYPE rss [<!ENTITY a "b">]>{RSS[21:]}'.encode())


def test_a_feed_that_is_slightly_broken_is_read_and_says_so(read: Read) -> None:
    xml = RSS.replace("Closed", "Closed & locked&nbsp;\x0b").replace(
        "</channel>", "<item><title>Later</title></item></channel>"
    )
    extracted, text = read("feed", xml.encode(), media_type="application/rss+xml")
    assert text.endswith("- Closed & locked\n- Later\n")
    assert extracted.facts.structure_info == "RSS feed of 3 entries; repaired in 3 places"


def test_a_feed_that_breaks_off_keeps_the_entries_before_that(save: Save) -> None:
    source = save(RSS.replace("Closed</title>", "Closed</b>").encode())
    hints = Hints(media_type="application/rss+xml")
    extracted = handler_named("feed").extract(source, hints, ExtractLimits())
    parts: list[str] = []
    with pytest.raises(NoText, match="its XML is damaged at line 5"):
        parts.extend(part.text for part in extracted.parts or ())
    assert "Gate & key" in "".join(parts)
    assert extracted.facts.structure_info == "RSS feed of 1 entry"


def test_a_document_type_without_entities_of_its_own_is_no_danger(read: Read) -> None:
    dtd = '<!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://localhost/rss-0.91.dtd">'
    xml = RSS.replace("<rss", f"{dtd}<rss", 1)
    assert read("feed", xml.encode(), media_type="application/rss+xml")[1].count("\n- ") == 2


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
SUMMARY:alarm
END:VALARM
END:VEVENT
BEGIN:VTODO
UID:two
DUE:20260601
SUMMARY:Pay
END:VTODO
END:VCALENDAR
""".replace("\n", "\r\n")


def test_a_calendar_is_kept_and_its_entries_are_outline_and_preview(read: Read) -> None:
    extracted, text = read("ics", CALENDAR.encode())
    assert text == CALENDAR.replace("\r\n", "\n")
    assert extracted.facts.structure_info == "1 event, 1 to-do"
    assert [(h.title, h.start) for h in extracted.facts.outline] == [
        ("Board meeting, with a long title; folded", 3),
        ("Pay", 15),
    ]
    assert extracted.preview.text == (
        "2026-05-01 10:00 Europe/Berlin · Board meeting, with a long title; folded · Room 5\n"
        "2026-06-01 · Pay"
    )


@pytest.mark.parametrize("path", ["/1", "/one@example.org"])
def test_a_part_is_an_entry_unfolded_and_without_escapes(save: Save, path: str) -> None:
    assert text_part("ics", save(CALENDAR.encode()), path).text == (
        "UID: one@example.org\n"
        'DTSTART;TZID="Europe/Berlin": 2026-05-01 10:00 Europe/Berlin\n'
        "SUMMARY: Board meeting, with a long title; folded\n"
        "LOCATION: Room 5\n"
        "DESCRIPTION: first line\n  second line\\\n"
        "BEGIN: VALARM\n"
        "  DESCRIPTION: ring\n"
        "  SUMMARY: alarm\n"
        "END: VALARM\n"
    )


PICTURE = "iVBORw0KGgoAAAANSUhEUgAA" * 10  # 180 bytes


FILE = (
    'ATTACH;X-NAME="a: long name of a file\\, with 2 signs";FMTTYPE=application/pdf;'
    "ENCODING=BASE64;VALUE=BINARY:"
)


def folded(line: str) -> str:
    return "\n ".join(line[n : n + 60] for n in range(0, len(line), 60))


@pytest.mark.parametrize(
    ("line", "note"),
    [
        (folded(f"PHOTO:data:image/png;base64,{PICTURE}"), "PHOTO:(image/png, 180 bytes)"),
        (
            folded(f"item1.LOGO;TYPE=PNG;ENCODING=b:{PICTURE}"),
            "item1.LOGO;TYPE=PNG;ENCODING=b:(image/png, 180 bytes)",
        ),
        (
            "PHOTO;PNG;ENCODING=BASE64:\n" + PICTURE.replace("A", "A\n"),
            "PHOTO;PNG;ENCODING=BASE64:(image, 180 bytes)",
        ),
        (folded(f"{FILE}{PICTURE}"), f"{FILE}(application/pdf, 180 bytes)"),
        ("PHOTO:https://example.org/a.png", "PHOTO:https://example.org/a.png"),
        ("NOTE:ENCODING=b:\n  two\n lines", "NOTE:ENCODING=b:\n  two\n lines"),
    ],
    ids=["data URI", "vCard 3", "vCard 2.1", "folded parameters", "address", "words"],
)
def test_a_picture_of_a_card_or_a_calendar_is_told_by_type_and_size(
    read: Read, line: str, note: str
) -> None:
    source = "BEGIN:VCARD\nFN:Ann\n{}\nEND:VCARD\nBEGIN:VEVENT\n{}\nSUMMARY:A\nEND:VEVENT"
    extracted, text = read("ics", source.format(line, line).encode())
    assert text == source.format(note, note)
    start = extracted.facts.outline[0].start  # its lines are those of the text
    assert text.split("\n")[start - 1] == "BEGIN:VEVENT"


def test_an_entry_that_is_not_there_and_a_picture_are_errors(save: Save) -> None:
    source = save(CALENDAR.encode())
    with pytest.raises(OutOfRange, match="the calendar has 2"):
        text_part("ics", source, "/3")
    with pytest.raises(BadArgument):
        text_part("ics", source, "/1", render="image")


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


def notebook(*cells: dict[str, Any]) -> bytes:
    return json.dumps(
        {"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4}
    ).encode()


def code(source: object, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs)}


def test_cells_come_in_order_with_their_outputs(read: Read) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "Some text."]},
        code(["a = 1\n", "print(a)"], {"output_type": "stream", "text": ["1\n"]}),
        code(
            "plot()",
            {
                "output_type": "display_data",
                "data": {"text/plain": "<Figure>", "image/png": "iVBORw0"},
            },
        ),
        code("1/0", {"output_type": "error", "traceback": ["Traceback", "ZeroDivisionError"]}),
        {"cell_type": "raw", "source": "raw"},
    ]
    found, text = read("notebook", notebook(*cells))
    assert text.split("\n\n") == [
        "# Title\nSome text.",
        "```python\na = 1\nprint(a)\n```",
        "```output\n1\n```",
        "```python\nplot()\n```",
        "```output\n<Figure>\n```",
        "(output: image/png)",
        "```python\n1/0\n```",
        "```output\nTraceback\nZeroDivisionError\n```",
        "```\nraw\n```",
        "",
    ]
    assert found.facts.structure_info == "5 cells, 3 of them code in python"


def test_headings_of_cells_are_the_outline(save: Callable[[bytes], Any]) -> None:
    one, two = ({"cell_type": "markdown", "source": source} for source in ("# One", "## Two"))
    cells = [one, code("x = '''\n# no heading\n'''"), two]
    found = handler_named("notebook").extract(save(notebook(*cells)), Hints(), ExtractLimits())
    assert found.parts is not None
    [part] = found.parts
    assert [
        (heading.title, heading.level, part.text.split("\n")[heading.start - 1])
        for heading in part.headings
    ] == [("One", 1, "# One"), ("Two", 2, "## Two")]


@pytest.mark.parametrize(("size", "cut"), [(2_000, False), (2_001, True), (5_000_000, True)])
def test_an_output_is_bounded(read: Read, size: int, cut: bool) -> None:
    _, text = read("notebook", notebook(code("x", {"output_type": "stream", "text": "y" * size})))
    assert ("…" in text) is cut
    assert len(text) < 2_100


def test_a_fence_within_code_does_not_end_the_block(read: Read) -> None:
    _, text = read("notebook", notebook(code("s = '''\n```\n'''")))
    assert text.startswith("````python\n")


def test_the_older_format_with_worksheets_is_read(read: Read) -> None:
    cells: list[dict[str, Any]] = [
        {"cell_type": "heading", "level": 2, "source": "Part"},
        {"cell_type": "code", "input": "x", "outputs": []},
    ]
    data = json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3}).encode()
    assert read("notebook", data)[1] == "## Part\n\n```\nx\n```\n\n"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "its JSON is damaged or cut short"),
        (notebook(code("x"))[:-5], "its JSON is damaged or cut short"),
        (b"[" * 200_000, "its JSON is nested too deeply"),
        (b"[]", "it holds no cells"),
        (b'{"cells": 7}', "the document holds no text"),
        (
            b'{"cells": [null, {"cell_type": "markdown", "source": 4}]}',
            "the document holds no text",
        ),
    ],
    ids=["empty", "cut short", "deep", "list", "number", "odd cells"],
)
def test_a_broken_notebook_gives_one_clear_line(read: Read, data: bytes, reason: str) -> None:
    with pytest.raises(NoText, match=reason):
        read("notebook", data)


def database(folder: Path, *statements: str) -> bytes:
    path = folder / "made.sqlite"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path.read_bytes()


def test_each_table_comes_with_its_definition_its_count_and_its_rows(
    read: Read, tmp_path: Path
) -> None:
    extracted, text = read(
        "sqlite",
        database(
            tmp_path,
            "CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT, flag BLOB)",
            "INSERT INTO towns VALUES (1, 'Łódź', x'0102'), (2, 'two' || char(9, 10) || 'lines', NULL)",
            'CREATE TABLE "odd "" name" ("a b" REAL)',
            "CREATE VIEW big AS SELECT * FROM towns",
            "CREATE INDEX i ON towns (name)",
        ),
    )
    assert text == (
        "## towns (2 rows)\nCREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT, flag BLOB)\n\n"
        "id\tname\tflag\n1\tŁódź\t(2 bytes)\n2\ttwo ⏎lines\t\n\n"
        '## odd " name (0 rows)\nCREATE TABLE "odd "" name" ("a b" REAL)\n\na b\n\n'
        "## big (view)\nCREATE VIEW big AS SELECT * FROM towns\n\n"
    )
    assert extracted.facts.sheets == 2
    assert extracted.facts.structure_info == (
        'towns (2 rows): id, name, flag; odd " name (0 rows): a b; big (view)'
    )


def test_a_computed_column_is_no_damage(read: Read, tmp_path: Path) -> None:
    _, text = read(
        "sqlite",
        database(
            tmp_path,
            "CREATE TABLE plain (a INTEGER)",
            "CREATE TABLE twice (a INTEGER, b AS (a * 2) STORED)",
            "CREATE TABLE inner (a TEXT, b AS (json_extract(a, '$.n')))",
            "CREATE TABLE own (a INTEGER, b AS (a + 1))",
            "INSERT INTO plain VALUES (1)",
            "INSERT INTO twice VALUES (2)",
            """INSERT INTO inner VALUES ('{"n": 7}')""",
            "INSERT INTO own VALUES (3)",
            "PRAGMA writable_schema = ON",
            "UPDATE sqlite_master SET sql = replace(sql, '(a + 1)', '(ours(a))') WHERE name = 'own'",
        ),
    )
    assert "## plain (1 row)" in text
    assert "a\tb\n2\t4\n" in text
    assert 'a\tb\n{"n": 7}\t7\n' in text
    assert "## own (1 row, without what an unknown function computes: b)" in text
    assert "a\n3\n" in text


def test_each_table_and_its_rows_are_parts(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(database(tmp_path, "CREATE TABLE t (a)", "INSERT INTO t VALUES (1), (2)"))
    parts = list(handler_named("sqlite").extract(source, Hints(), ExtractLimits()).parts or ())
    assert [(part.table, part.columns, part.rows, part.headings[:1] != ()) for part in parts] == [
        (None, 0, 0, True),
        ("t", 1, 0, False),
        (None, 0, 2, False),
        (None, 0, 0, False),
    ]


def test_the_first_thousand_of_many_rows_are_read(read: Read, tmp_path: Path) -> None:
    extracted, text = read(
        "sqlite",
        database(
            tmp_path,
            "CREATE TABLE t (a)",
            "INSERT INTO t WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n WHERE a < 2345) SELECT a FROM n",
        ),
    )
    assert text.startswith("## t (2,345 rows, the first 1,000 of them here)\n")
    assert text.endswith("\n999\n1000\n\n")
    assert extracted.facts.extraction_truncated


def test_long_text_is_cut(read: Read, tmp_path: Path) -> None:
    _, text = read(
        "sqlite",
        database(tmp_path, "CREATE TABLE t (a)", "INSERT INTO t VALUES (printf('%.5000c', 'x'))"),
    )
    assert text.splitlines()[-2] == "x" * 1_000 + "…"


ENDLESS = "WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a FROM n) SELECT a FROM n"
BLOWN_UP = "replace(" * 20 + "'aaaaaaaaaa'" + ", 'a', 'aaaaaaaaaa')" * 20


def computed(expression: str) -> tuple[str, ...]:
    """Return statements for a table with a generated column that SQLite would refuse."""
    return (
        "CREATE TABLE t (a, b AS (a))",
        "INSERT INTO t VALUES (1)",
        "PRAGMA writable_schema = ON",
        f"""UPDATE sqlite_master SET sql = "CREATE TABLE t (a, b AS ({expression}))" """,
    )


@pytest.mark.parametrize(
    ("statements", "line"),
    [
        ((f"CREATE VIEW v AS {ENDLESS}",), "## v (view)"),
        (computed(BLOWN_UP), "## t (its rows cannot be read)"),
        (
            ("CREATE VIRTUAL TABLE f USING fts5(a)", "INSERT INTO f VALUES ('words')"),
            "## f (virtual table)",
        ),
    ],
    ids=["an endless view", "a column of 10^20 characters", "a virtual table and what it keeps"],
)
def test_a_definition_in_a_schema_is_never_run(
    read: Read, tmp_path: Path, statements: tuple[str, ...], line: str
) -> None:
    data = database(tmp_path, *statements)
    before = time.process_time()
    extracted, text = read("sqlite", data)
    assert text.startswith(line)
    assert extracted.facts.structure_info.count("(") == 1
    assert time.process_time() - before < 5


def test_a_schema_that_would_load_code_is_refused(read: Read, tmp_path: Path) -> None:
    with pytest.raises(NoText, match="damaged"):
        read("sqlite", database(tmp_path, *computed("load_extension('/tmp/evil')")))


def test_a_database_with_a_journal_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "wal.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (a)")
        connection.commit()
    source = tmp_path / "alone" / "name #% .sqlite"
    source.parent.mkdir()
    source.write_bytes(path.read_bytes())
    parts = handler_named("sqlite").extract(source, Hints(), ExtractLimits()).parts or ()
    assert "".join(part.text for part in parts).startswith("## t (0")
    assert [entry.name for entry in source.parent.iterdir()] == [source.name]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"SQLite format 3\0" + b"\xff" * 200, "damaged"),
        (b"SQLite format 3\0", "no tables|damaged"),
        (b"", "no tables"),
    ],
    ids=["garbage", "header alone", "empty"],
)
def test_a_file_that_is_no_database_is_reported(read: Read, data: bytes, reason: str) -> None:
    with pytest.raises(NoText, match=reason):
        read("sqlite", data)


def test_damage_does_no_harm(read: Read, tmp_path: Path) -> None:
    rows = ", ".join(f"({n}, 'name {n}')" for n in range(500))
    whole = database(tmp_path, "CREATE TABLE t (a, b)", f"INSERT INTO t VALUES {rows}")
    for seed in range(200):
        broken = bytearray(whole)
        for step in range(4):
            at = (seed * 7_919 + step * 104_729) % (len(broken) - 100) + 100
            broken[at] = (seed * 31 + step) % 256
        with suppress(NoText):
            read("sqlite", bytes(broken))
