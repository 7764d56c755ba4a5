"""Feeds and sitemaps become lists."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import pytest

from fetchstash.errors import NoText
from fetchstash.handlers import ExtractLimits, Hints, handler_named
from tests.handlers.conftest import Read, Save

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
            "- [Gate & key](https://example.org/1) · Mon, 02 Nov 2026 08:00:00 GMT · A. Warden\n  It opened .\n- Closed\n"
        ),
        "RSS feed of 2 entries",
    ),
    "Atom": (
        "application/atom+xml",
        ATOM,
        "Gate log\n\n- [Mark reached](https://example.org/2) · 2026-11-02T08:00:00Z · B. Warden\n  Four metres.\n",
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
