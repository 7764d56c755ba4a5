"""Who wrote a page and when: its head, its data, marks of standards, words near its heading."""

import pytest

from fetchstash.handlers._dates import dates, moment
from tests.handlers.conftest import Read
from tests.handlers.parts import PROSE

TEXT = f"<p>{PROSE}</p>" * 4
BOTH = ("Ada North", "2026-03-04")


def page(byline: str, *, head: str = "", lang: str = "en", tail: str = "") -> str:
    return (
        f"<!doctype html><html lang={lang}><head><meta charset=utf-8>"
        f"<title>Harbour wall | The Paper</title>{head}</head><body><article>"
        f"<h1>Harbour wall</h1>{byline}{TEXT}</article>{tail}</body></html>"
    )


def data(text: str) -> str:
    return f'<script type="application/ld+json">{text}</script>'


PERSON = '"author":{"@type":"Person","name":"Ada North"}'
ARTICLE = '{"@type":"NewsArticle","headline":"Harbour wall",%s,"datePublished":"2026-03-04"}'
IN_DATA = ARTICLE % PERSON

MARKED = {
    "classes": (
        '<div class="entry-meta"><time class="entry-date" datetime="2026-03-04T10:00:00+00:00">'
        'March 4</time> <span class="byline">by <span class="author vcard">Ada North</span></span>'
        "</div>"
    ),
    "words": "<p class=post-meta>By Ada North · March 4, 2026 · 5 min read</p>",
    "elements that touch": (
        "<div class=meta><span class=author>Ada North</span>"
        "<span class=date>March 4, 2026</span></div>"
    ),
    "a handle behind the name": (
        "<p class=author>Ada North <a href=https://social.example/a>@ada</a></p>"
        "<time datetime=2026-03-04>March 4</time>"
    ),
    "a sentence of a program": "<p>Written by Ada North on March 4, 2026</p>",
    "words without a class": "<p>By Ada North | 4 March 2026</p>",
    "microdata": (
        "<span itemprop=author>Ada North</span>"
        "<time itemprop=datePublished datetime=2026-03-04>4 Mar</time>"
    ),
    "a person in microdata": (
        '<p itemprop=author itemscope itemtype="http://schema.org/Person">By '
        "<span itemprop=name>Ada North</span></p><meta itemprop=datePublished content=2026-03-04>"
    ),
    "a link to the author": (
        "<a rel=author href=/a>Ada North</a> <time datetime=2026-03-04>a day ago</time>"
    ),
    "camel case classes": (
        '<div class="Post_authorName">Ada North</div><div class="PostDate">Mar. 4th, 2026</div>'
    ),
    "a name before its date": "<div><a href=/ada>Ada North</a> on March 4, 2026</div>",
    "glued to the name": (
        "<p class=byline><span>By</span><span>Ada North</span></p><p>2026-03-04</p>"
    ),
    "a role behind": "<p class=byline>By Ada North, Senior Reporter</p><p>Published 4 Mar 2026</p>",
    "an address that leads to a person (HTML 4.3.10)": (
        "<address><a href=/authors/ada-north>Ada North</a></address><p>4 March 2026</p>"
    ),
    "an address to write to": (
        "<address><a href=mailto:ada@example.org>Ada North</a></address>4 March 2026"
    ),
    "a label": "<p>Published: 4 March 2026 10:30 GMT · Written by Ada North</p>",
    "an abbreviation": (
        '<p class="author">Posted by Ada North</p><abbr class=published title=2026-03-04>4</abbr>'
    ),
    "a list": "<ul class=meta><li class=author>Ada North<li class=date>March 4, 2026</ul>",
}


@pytest.mark.parametrize("byline", MARKED.values(), ids=MARKED)
def test_a_byline_below_the_heading_says_who_and_when(read_page: Read, byline: str) -> None:
    facts = read_page(page(byline))[0].facts
    assert (facts.author, facts.published[:10]) == BOTH


def test_a_byline_stays_in_the_text(read_page: Read) -> None:
    _, text = read_page(page(MARKED["words"]))
    assert "By Ada North · March 4, 2026" in text


HEADS = {
    "linked data with a comma too many": data(IN_DATA[:-1] + ",}"),
    "linked data": data(IN_DATA),
    "linked data in CDATA": data(f"\n//<![CDATA[\n{IN_DATA}\n//]]>\n"),
    "linked data in a comment": data(f"<!--{IN_DATA}-->"),
    "linked data with line ends in strings": data(IN_DATA.replace("wall", "wall\n")),
    "references in linked data": data(
        '{"@graph":[%s,{"@type":["Person"],"@id":"#ada","name":"Ada North"}]}'
        % (ARTICLE % '"author":{"@id":"#ada"}')
    ),
    "several stories in linked data": data(
        '[{"@type":"NewsArticle","headline":"Tides","author":"Ben South",'
        f'"datePublished":"2020-01-01"}},{IN_DATA}]'
    ),
    "meta": "<meta name=author content='Ada North'><meta name=date content=2026-03-04>",
    "an address before a name": (
        "<meta property=article:author content=https://social.example/ada>"
        "<meta name=byl content='By Ada North'><meta name=pdate content=20260304>"
    ),
    "a card": (
        "<meta name=twitter:label1 content='Written by'><meta name=twitter:data1 "
        "content='Ada North'><meta property=article:published_time content=2026-03-04T23:00:00Z>"
    ),
    "citation": (
        "<meta name=citation_author content='Ada North'>"
        "<meta name=citation_publication_date content=2026/03/04>"
    ),
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_the_head_says_who_and_when(read_page: Read, head: str) -> None:
    facts = read_page(page("", head=head))[0].facts
    assert (facts.author, facts.published[:10]) == BOTH


NOBODY = {
    "an admin": "<p class=byline>By admin</p>",
    "an editorial staff": "<p class=author>Editorial Staff</p>",
    "a profile": "<a rel=author href=/x>View my complete profile</a>",
    "a comment": "<section class=comments><p class=author>Ben South</p><time datetime=2020-01-01>",
    "a related story": (
        "<aside class=related><a href=/x><h3>Tides</h3></a><p>By Ben South · January 1, 2020</p>"
        "</aside>"
    ),
    "another article": (
        "<article><h2><a href=/x>The tides of May</a></h2><p>By Ben South · 1 January 2020</p>"
        "</article>"
    ),
    "a copyright": "<p>© 2020 The Paper. Copyright January 1, 2020 by the Paper</p>",
    "an order": "<p>Sort by Relevance</p><p>Powered by Press Works</p><p>By Subject</p>",
    "an event": "<p>Starts: 1 January 2020, 10:00</p>",
    "an address of a place": "<address>Town Hall</address>",
    "an address of a place on a map": "<address><a href=/map?q=1>Town Hall</a>, Quay</address>",
    "an address of a house": "<address><a href=mailto:info@example.org>info@example.org</a>",
    "a deadline": "<dl><dt>Deadline 1 January 2020</dl>",
    "a short sentence": "<p>The fair is on 5 May 2020.</p>",
    "a sentence": "<p>The wall by Ben South was opened on January 1, 2020 and it still stands.</p>",
    "a sentence that begins with a name": (
        "<p>By Ben South and the crew, who sailed on January 1, 2020 to the isle.</p>"
    ),
    "a version": "<p>2020-01-01.clover</p>",
    "month or day": "<p>Posted 01/02/2020</p>",
    "a handle": "<meta name=twitter:creator content=@thepaper>",
    "an address": "<meta name=author content=https://thepaper.example/>",
    "a category": "<p class=post-meta><a href=/1>1</a> · <a href=/2>Harbours</a></p>",
    "a book": (
        "<div itemscope itemtype=http://schema.org/Book><span itemprop=author>Ben South</span>"
        "<time itemprop=datePublished datetime=2020-01-01>2020</time></div>"
    ),
}


@pytest.mark.parametrize("byline", NOBODY.values(), ids=NOBODY)
def test_what_is_not_the_pages_is_no_fact(read_page: Read, byline: str) -> None:
    facts = read_page(page(byline))[0].facts
    assert (facts.author, facts.published) == ("", "")


def test_an_update_is_no_publication(read_page: Read) -> None:
    both = "<p>Published 4 March 2026 · Last updated: 6 March 2026</p>"
    facts = read_page(page(both))[0].facts
    assert (facts.published, facts.modified) == ("2026-03-04", "2026-03-06")
    facts = read_page(page("<p>Last updated on March 6, 2026</p>"))[0].facts
    assert (facts.published, facts.modified) == ("", "2026-03-06")


def test_several_authors_are_all_named(read_page: Read) -> None:
    line = "<p class=byline>By Ada North, Ben van South and Cy West, the Paper's reporters</p>"
    assert read_page(page(line))[0].facts.author == "Ada North, Ben van South, Cy West"


ABROAD = {
    "de": "<p>Von Ada North, 4. März 2026</p>",
    "fr": "<p>Par Ada North — publié le 4 mars 2026 à 10h30</p>",
    "es": "<p>Por Ada North | 4 de marzo de 2026</p>",
    "pt": "<p>Por Ada North • 04/03/2026</p>",
    "it": "<p>di Ada North · 4 marzo 2026</p>",
    "nl": "<p>Door Ada North · 4 maart 2026</p>",
    "pl": "<p>Autor: Ada North · 4 marca 2026</p>",
    "ru": "<p>Автор: Ada North · 4 марта 2026 г.</p>",
    "ja": "<p>著者：Ada North · 2026年3月4日</p>",
    "zh": "<p>作者：Ada North | 2026-03-04</p>",
}


@pytest.mark.parametrize("lang", ABROAD)
def test_a_byline_is_read_in_the_pages_language(read_page: Read, lang: str) -> None:
    facts = read_page(page(ABROAD[lang], lang=lang))[0].facts
    assert (facts.author, facts.published) == BOTH


DATES = {
    "26 February 2026": "2026-02-26",
    "Thursday, 26th of February, 2026": "2026-02-26",
    "Feb. 26, 2026": "2026-02-26",
    "26. helmikuuta 2026": "2026-02-26",
    "26 Şubat 2026": "2026-02-26",
    "26 فبراير 2026": "2026-02-26",
    "26 फ़रवरी 2026": "2026-02-26",
    "2026. február 26.": "2026-02-26",
    "26 בפברואר 2026": "2026-02-26",
    "26 tháng 2, 2026": "2026-02-26",
    "ngày 26 tháng 2 năm 2026": "2026-02-26",
    "26 กุมภาพันธ์ 2569": "2026-02-26",
    "26 de febrer de 2026": "2026-02-26",
    "26. veljače 2026.": "2026-02-26",
    "26. veebruar 2026": "2026-02-26",
    "26. februára 2026": "2026-02-26",
    "2026. gada 26. februāris": "2026-02-26",
    "2026년 2월 26일": "2026-02-26",
    "26.2.2026": "2026-02-26",
    "26/02/2026": "2026-02-26",
    "02/26/2026": "2026-02-26",
    "2026/2/26": "2026-02-26",
    "31 February 2026": "",
    "26 Brumaire 2026": "",
    "February 26": "",
    "version 1.2.26.2026": "",
    "26 February 1889": "",
    "1 January 1970": "",
}


@pytest.mark.parametrize("text", DATES)
def test_a_date_in_words_names_day_month_and_year(text: str) -> None:
    assert "".join(found.iso for found in dates(text)) == DATES[text]


def test_a_month_of_two_languages_is_read_in_the_pages() -> None:
    text = "4. listopada 2025"
    assert [[found.iso for found in dates(text, language)] for language in ("pl", "hr")] == [
        ["2025-11-04"],
        ["2025-10-04"],
    ]


def test_the_language_says_which_small_number_is_the_day() -> None:
    text = "04/03/2026"
    languages = ("", "en", "en-US", "en-GB", "fr")
    assert [[found.iso for found in dates(text, language)] for language in languages] == [
        [],
        [],
        ["2026-04-03"],
        ["2026-03-04"],
        ["2026-03-04"],
    ]


MOMENTS = {
    "2026-03-04T10:00:00.123Z": "2026-03-04T10:00:00Z",
    "2026-03-04 10:00": "2026-03-04T10:00",
    "20260304": "2026-03-04",
    "Wed, 04 Mar 2026 10:00:00 GMT": "2026-03-04T10:00:00+00:00",
    "February 26, 2026": "2026-02-26",
    "0001-01-01T00:00:00": "",
    "1970-01-01": "",
    "soon": "",
}


@pytest.mark.parametrize("value", MOMENTS)
def test_a_value_of_metadata_becomes_iso_8601(value: str) -> None:
    assert moment(value) == MOMENTS[value]


def test_a_date_in_the_address_is_the_last_resort(read_page: Read) -> None:
    url = "https://paper.example/2026/03/04/wall"
    assert read_page(page(""), url=url)[0].facts.published == BOTH[1]
