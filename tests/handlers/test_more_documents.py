"""EPUB, RTF and rarer documents: recognised and read."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import gzip
import lzma
import random
import struct
from contextlib import suppress
from pathlib import Path

import pytest

from fetchstash.errors import NoText
from fetchstash.handlers import ExtractLimits, Hints, PartText, format_of, handler_of, route_file
from fetchstash.handlers._pdf import PdfReason
from tests.handlers.compounds import compound
from tests.handlers.conftest import Pack, PartOf, Read, Save, check_facts, reads, unreadable
from tests.handlers.hostile.documents import packed
from tests.handlers.parts import handler_named

JATS = b"""<!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96) Journal Archiving DTD v1.2//EN" "JATS.dtd"><article><front>
<journal-meta><journal-title>Rivers</journal-title></journal-meta><article-meta><title-group><article-title>On <italic>gates</italic></article-title></title-group>
<contrib-group><contrib><name><surname>Lovelace</surname><given-names>Ada</given-names></name></contrib></contrib-group><pub-date><year>2026</year></pub-date>
<abstract><p>Short.</p></abstract></article-meta></front><body><sec><title>Methods</title><p>We looked.</p>
<table-wrap><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table></table-wrap></sec></body>
<back><ref-list><title>References</title><ref><mixed-citation>One, 2020.</mixed-citation></ref></ref-list></back></article>"""
OPML = b"""<opml version="2.0"><head><title>Feeds</title></head><body><outline text="News"><outline text="A blog" xmlUrl="https://example.org/feed"/></outline></body></opml>"""
MHTML = b"""From: <Saved by Blink>\r\nSnapshot-Content-Location: https://example.org/page\r\nSubject: A page\r\nDate: Fri, 1 May 2026 10:00:00 -0000\r
MIME-Version: 1.0\r\nContent-Type: multipart/related;\r\n\ttype="text/html";\r\n\tboundary="b"\r\n\r\n\r\n--b\r\nContent-Type: text/html; charset=utf-8\r
Content-Transfer-Encoding: quoted-printable\r\nContent-Location: https://example.org/page\r\n\r\n<title>A page</title><main><h1>Gates</h1><p>They are open =C3=BCber noon. <a href=3D"/more">More</a> about the gates and who opens them.</p></main>\r\n--b--\r\n"""


@pytest.mark.parametrize(
    ("data", "word", "text"),
    [
        (
            JATS,
            "JATS article",
            "# On *gates*\n\nShort.\n\n## Methods\n\nWe looked.\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n## References\n\n- One, 2020.\n\n",
        ),
        (OPML, "OPML outline", "# Feeds\n\n- News\n  - [A blog](https://example.org/feed)\n\n"),
        (
            MHTML,
            "web archive (MHTML)",
            "# Gates\n\nThey are open über noon. [More](https://example.org/more) about the gates and who opens them.\n",
        ),
    ],
    ids=["JATS", "OPML", "MHTML"],
)
def test_the_format_is_recognised_and_read(save: Save, data: bytes, word: str, text: str) -> None:
    source = save(data)
    decision = route_file(source, {}, "document")
    declared = format_of(decision)
    assert declared.name(decision.media_type) == word
    name = "mhtml" if word.startswith("web") else "xml_text"
    extracted = handler_named(name).extract(source, Hints(), ExtractLimits())
    assert "".join(part.text for part in extracted.parts or ()) == text


def test_rows_and_columns_of_a_cals_table_that_a_cell_spans_keep_their_places(read: Read) -> None:
    table = (
        b"<article><table><tgroup cols='3'><colspec colname='a'/><colspec colname='b'/>"
        b"<colspec colname='c'/><thead><row><entry namest='a' nameend='b'>ab</entry>"
        b"<entry>c</entry></row></thead><tbody><row><entry morerows='1'>x</entry>"
        b"<entry>1</entry><entry>2</entry></row><row><entry>3</entry><entry>4</entry></row>"
        b"</tbody></tgroup></table></article>"
    )
    rows = "| ab |  | c |\n| --- | --- | --- |\n| x | 1 | 2 |\n| x | 3 | 4 |\n\n"
    assert read("xml_text", table)[1] == rows


def test_notes_of_an_outline_stand_below_their_items(read: Read) -> None:
    outline = b"""<opml version="2.0"><body><outline text="Plan" _note="Ask Ada&#10;&#10;by May">
<outline text="Step" _note="not before noon"/><outline text="" _note="a note alone"/></outline></body></opml>"""
    assert read("xml_text", outline)[1] == (
        "- Plan\n  Ask Ada\n  by May\n  - Step\n    not before noon\n  - a note alone\n\n"
    )


def test_what_an_article_says_of_itself_is_known(read: Read) -> None:
    facts = read("xml_text", JATS)[0].facts
    assert (facts.title, facts.author, facts.published) == ("On *gates*", "Lovelace Ada", "2026")


def test_links_of_a_saved_page_are_a_part(part: PartOf) -> None:
    links = part("mhtml", MHTML, "links")
    assert links == PartText("- [More](https://example.org/more)\n", 1)


def test_an_opendocument_file_with_a_late_mimetype_is_none_the_less_one(
    save: Save, pack: Pack
) -> None:
    source = save(
        pack(
            {
                "content.xml": '<o:d xmlns:o="o" xmlns:t="t"><t:p>Text.</t:p></o:d>',
                "META-INF/manifest.xml": "<manifest/>",
                "mimetype": "application/vnd.oasis.opendocument.text",
            }
        )
    )
    decision = route_file(source, {}, "x.zip")
    assert (decision.kind, format_of(decision).word) == ("office_doc", "office document")


DBF_HEAD = bytes([3, 126, 5, 1, 0, 0, 0, 0, 65, 0, 10, 0]) + bytes(20)
DBF = DBF_HEAD + b"NAME".ljust(32, b"\0") + b"\r" + bytes(40)


UNREAD = {
    "OneNote file": bytes.fromhex("e4525c7b8cd8a74daeb15378d02996d3") + bytes(64),
    "Outlook mailbox (PST)": b"!BDN" + bytes(range(256)),
    "Compiled HTML Help file (CHM)": b"ITSF" + bytes(range(96)),
    "AutoCAD drawing (DWG)": b"AC1032\0\0" + bytes(range(96)),
    "dBASE table (DBF)": DBF,
    "Parquet file": b"PAR1" + bytes(64),
    "Matroska video": b"\x1a\x45\xdf\xa3\x9fB\x82\x88matroska" + bytes(64),
    "AVI video": b"RIFF\0\0\0\0AVI LIST" + bytes(64),
}


@pytest.mark.parametrize(("word", "data"), UNREAD.items(), ids=list(UNREAD))
def test_a_document_that_no_reader_knows_is_named(save: Save, data: bytes, word: str) -> None:
    source = save(data)
    decision = route_file(source, {}, "file.bin")
    assert format_of(decision).name(decision.media_type) == word
    extracted = handler_of(format_of(decision)).extract(source, Hints(), ExtractLimits())
    assert extracted.parts is None
    assert extracted.cause is not None
    assert extracted.cause.words() == "no reader for it; its bytes are kept"


@pytest.mark.parametrize(
    ("members", "word"),
    [
        (("[Content_Types].xml", "visio/document.xml"), "Visio drawing"),
        (("Index/Document.iwa", "QuickLook/Preview.pdf"), "iWork document"),
        (("index.apxl",), "iWork document"),
    ],
    ids=["Visio", "Pages", "Keynote '09"],
)
def test_a_container_that_no_reader_knows_is_named(
    save: Save, pack: Pack, members: tuple[str, ...], word: str
) -> None:
    decision = route_file(save(pack(dict.fromkeys(members, "<x/>"))), {}, "plan.bin")
    assert format_of(decision).word == word
    assert handler_of(format_of(decision)).name == "unread"


CONTAINER = '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
PACKAGE = """<package xmlns:dc="dc"><metadata><dc:title>The Book</dc:title><dc:creator>Ada</dc:creator><dc:language>en</dc:language>
<dc:date>2026-05-01</dc:date></metadata>
<manifest><item id="b" href="two.xhtml"/><item id="a" href="zero%20one.xhtml"/>
<item id="gone" href="gone.xhtml"/></manifest>
<spine><itemref idref="a"/><itemref idref="b"/>
<itemref idref="a"/><itemref idref="gone"/><itemref idref="unknown"/></spine></package>"""
ONE = '<!DOCTYPE html><html><body><h1>One</h1><p>First&nbsp;text.</p><p style="display:none">hidden order</p></body></html>'
TWO = "<html><body><h1>Two</h1><ul><li>a</li><li>b</li></ul></body></html>"
BOOK = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": CONTAINER,
    "OPS/book.opf": PACKAGE,
    "OPS/two.xhtml": TWO,
    "OPS/zero one.xhtml": ONE,
}


def locked(algorithm: str) -> dict[str, str]:
    method = f'<e:EncryptionMethod Algorithm="{algorithm}"/>'
    return {
        "META-INF/encryption.xml": f'<encryption xmlns:e="e"><e:EncryptedData>{method}</e:EncryptedData></encryption>'
    }


def test_chapters_come_in_reading_order_each_once_without_hidden_text(read: Read) -> None:
    extracted, text = read("epub", packed(BOOK))
    assert "".join(text.split()) == "#OneFirsttext.#Two-a-b"
    assert extracted.facts.hidden_removed == 1
    check_facts(extracted, title="The Book", author="Ada", language="en", published="2026-05-01")


def test_notes_of_a_book_lead_to_their_text(read: Read) -> None:
    first = '<a epub:type="noteref" href="#n1">1</a>'
    second = '<sup><a role="doc-noteref" href="two.xhtml#n2">2</a></sup>'
    note = '<aside epub:type="footnote" id="n1"><p>First.</p></aside>'
    one = f'<p>Claim{first}, and{second} x<a href="#n1">y</a></p>{note}'
    chapters = {
        "OPS/zero one.xhtml": f"<html><body>{one}</body></html>",
        "OPS/two.xhtml": '<html><body><p id="n2">Second.</p></body></html>',
    }
    text = read("epub", packed(BOOK | chapters))[1]
    assert "Claim[^1], and[^2] x[y](#n1)\n\n[^1]: First.\n" in text
    assert "[^2]: Second.\n" in text


def test_a_book_whose_fonts_alone_are_obfuscated_is_read(read: Read) -> None:
    obfuscated = locked("http://www.idpf.org/2008/embedding")
    assert "# One" in read("epub", packed(BOOK | obfuscated))[1]


test_a_file_that_is_no_book_gives_one_clear_line = unreadable(
    "epub",
    {
        "no package": (
            packed(BOOK | {"META-INF/container.xml": "<container/>"}),
            "the container holds no book",
        ),
        "rights management": (
            packed(BOOK | locked("http://www.w3.org/2001/04/xmlenc#aes256-cbc")),
            "locked by rights management",
        ),
        "open end": (packed(BOOK | {"OPS/book.opf": "<package>"}), "its XML is damaged"),
        "no chapters": (packed(BOOK | {"OPS/book.opf": "<package/>"}), "the book holds no text"),
    },
)


@pytest.mark.parametrize("names", [list(BOOK), list(BOOK)[::-1]], ids=["compressed", "late"])
def test_a_book_is_recognised_wherever_its_type_is(save: Save, names: list[str]) -> None:
    source = save(packed({name: BOOK[name] for name in names}))
    assert route_file(source, {}, "").media_type == "application/epub+zip"


HEAD = rb"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\froman Times;}}{\colortbl;\red0\green0\blue0;}{\*\generator Word;}"


def rtf(body: bytes) -> bytes:
    return HEAD + body + b"}"


def form(properties: bytes, code: bytes = b"FORMCHECKBOX") -> bytes:
    inner = rb"{\*\formfield{" + properties + rb"}}"
    return rb"{\field{\*\fldinst " + code + b" " + inner + rb"}{\fldrslt }}"


TEXTS = {
    "text": (rb"One.\par Two.\par", "One.\n\nTwo.\n\n"),
    "heading": (rb"\pard\outlinelevel0 Title\par\pard Text\par", "# Title\n\nText\n\n"),
    "codes": (rb"caf\'e9 \ldblquote quoted\rdblquote\par", "café “quoted”\n\n"),
    "unicode": (rb"\uc1\u8364 ?5 \u-10179 ?\u-8704 ?\par", "€5 😀\n\n"),
    "fallback": (rb"{\uc2\u12354 \'82\'a0}after\par", "あafter\n\n"),
    "codepage": (rb"\ansicpg932 \'82\'a0\'82\'a2\par", "あい\n\n"),
    "symbols": (rb"braces \{ \} and \\ and a\~b\_c\par", "braces { } and \\ and a b-c\n\n"),
    "picture": (rb"{\pict\pngblip 89504e47}shown\par", "shown\n\n"),
    "link": (
        rb'{\field{\*\fldinst HYPERLINK "https://example.org/a b"}{\fldrslt the {\b link}}} ends\par',
        "[the link](https://example.org/a%20b) ends\n\n",
    ),
    "link over paragraphs": (
        rb"{\field{\*\fldinst HYPERLINK x}{\fldrslt a\par b}}\par",
        "a\n\nb\n\n",
    ),
    "date": (rb"{\field{\*\fldinst DATE}{\fldrslt 3 May}}\par", "3 May\n\n"),
    "field in a field": (
        rb"{\field{\*\fldinst IF {\field{\*\fldinst PAGE}{\fldrslt 1}}}{\fldrslt yes}}\par",
        "yes\n\n",
    ),
    "box with a tick": (form(rb"\fftype1\ffres1\ffdefres0") + rb" Member\par", "[x] Member\n\n"),
    "box as it was made": (form(rb"\fftype1\ffres25\ffdefres1") + rb" A\par", "[x] A\n\n"),
    "box without a tick": (form(rb"\fftype1\ffres0\ffdefres1") + rb" B\par", "[ ] B\n\n"),
    "list": (
        rb"Urgency: "
        + form(rb"\fftype2\ffres1{\*\ffname U}{\*\ffl Low}{\*\ffl H\'f6her}", b"FORMDROPDOWN")
        + rb" now\par",
        "Urgency: Höher now\n\n",
    ),
    "form of text": (
        rb"Name: {\field{\*\fldinst FORMTEXT {\*\formfield{\fftype0}}}{\fldrslt Ada}}\par",
        "Name: Ada\n\n",
    ),
    "form that is cut off": (rb"a\par {\field{\*\fldinst FORMCHECKBOX {\*\formfield{", "a\n\n"),
    "properties of no form": (rb"\fftype1\ffres1{\*\ffl x}a\par", "a\n\n"),
    "binary": (rb"{\pict\bin5 }}}}}}shown\par", "shown\n\n"),
    "table": (
        rb"\trowd\pard\intbl N\cell V\cell\row\trowd\pard\intbl a\par b\cell 1\cell\row\pard after\par",
        "| N | V |\n| --- | --- |\n| a b | 1 |\n\nafter\n\n",
    ),
    "break": (rb"split \li" + b"\r\n" + rb"ne\par", "split ne\n\n"),
}
test_the_text_is_read = reads(
    "rtf", {name: (rtf(body), text) for name, (body, text) in TEXTS.items()}
)


UNSEEN = {
    "formula settings": (
        rb"{\mmathPr\mmathFont34\mbrkBin0\mdefJc1\mintLim0\mnaryLim1}Text\par",
        "Text\n\n",
    ),
    "theme": (rb"{\themedata 504b0304}{\colorschememapping 3c3f786d6c}Text\par", "Text\n\n"),
    "styles": (
        rb"{\latentstyles\lsdstimax267{\lsdlockedexcept \lsdpriority0 Normal;}}Text\par",
        "Text\n\n",
    ),
    "lists": (
        rb"{\listtable{\list{\listlevel{\leveltext\'01-;}}}}{\rsidtbl\rsid1}Text\par",
        "Text\n\n",
    ),
    "properties": (
        rb"{\userprops{\propname Office}\proptype30{\staticval Rome}}Text\par",
        "Text\n\n",
    ),
    "capitals": (rb"\ApplyBrkRules\snapToGridInCell Text\par", "Text\n\n"),
    "index entry": (rb"Ash{\xe Trees} tree\par", "Ash tree\n\n"),
    "list mark": (rb"{\listtext\tab \u8226 \tab}First\par", "- First\n\n"),
    "list labels": (
        rb"{\listtext\pard\plain 1.\tab}\pard\ls1\ilvl0 one\par{\listtext a)\tab}\pard\ilvl1 in\par\pard end\par",
        "1. one\n  a) in\n\nend\n\n",
    ),
    "a ticked bullet": (
        rb"{\fonttbl{\f3 Wingdings;}}{\pntext\f3\'fc\tab}done\par",
        "- \u2713 done\n\n",
    ),
    "a label in a cell": (
        rb"\intbl a\cell{\listtext 1.\tab}\intbl x\cell\row\intbl b\cell y\cell\row\pard",
        "| a | 1. x |\n| --- | --- |\n| b | y |\n\n",
    ),
    "a font's charset": (
        rb"{\fonttbl{\f0 Arial;}{\f1\fcharset204 Arial;}}{\f1 \'e4\'e0}\'e4\par",
        "\u0434\u0430ä\n\n",
    ),
    "fallback at a brace": (rb"{\uc2 a\u8226 -}b\u8226 \tab c\u8226 {d}\par", "a•b•c•d\n\n"),
}
test_what_a_word_processor_does_not_show_is_no_text = reads(
    "rtf", {name: (rtf(body), text) for name, (body, text) in UNSEEN.items()}
)


def test_the_title_comes_from_the_information_group(read: Read) -> None:
    extracted, text = read("rtf", rtf(rb"{\info{\title A plan}{\author Ada}}Text\par"))
    assert extracted.facts.title == "A plan"
    assert text == "Text\n\n"


def test_hidden_text_is_left_out_and_counted(read: Read) -> None:
    extracted, text = read("rtf", rtf(rb"{\v obey}seen\v  too\v0  end\par"))
    assert text == "seen end\n\n"
    assert extracted.facts.hidden_removed == 2


test_a_document_without_text_gives_one_clear_line = unreadable(
    "rtf",
    {
        "empty": (b"", "no RTF"),
        "text": (b"plain", "no RTF"),
        "nothing": (rtf(b""), "holds no text"),
        "a hundred thousand groups": (rb"{\rtf1" + b"{" * 100_000, "holds no text"),
    },
)


@pytest.mark.parametrize(
    "body",
    [
        b"\\",
        b"}" * 10_000 + b"x",
        rb"\bin999999999 x",
        rb"\u99999999 x",
        rb"\ansicpg99999 x",
        b"\\'zz x",
        b"\\u-1" * 10_000,
    ],
    ids=[
        "backslash",
        "closed too often",
        "long binary",
        "far character",
        "no codepage",
        "bad code",
        "surrogates",
    ],
)
def test_odd_control_words_do_no_harm(read: Read, body: bytes) -> None:
    _, text = read("rtf", rtf(b"before " + body))
    assert text.startswith("before")
    text.encode("utf-8")


@pytest.mark.long
def test_a_title_of_many_words_takes_linear_time(read: Read) -> None:
    extracted, _ = read("rtf", rtf(rb"{\info{\title " + rb"x\tab " * 300_000 + rb"}}Text\par"))
    assert extracted.facts.title.count("x") == 300_000


def test_an_unknown_code_page_is_not_looked_up(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        pytest.fail(f"looks for {name}")

    text = b"".join(rb"\ansicpg%d " % number for number in range(900_000, 900_009))
    monkeypatch.setattr("codecs.lookup", refuse)
    assert read("rtf", rtf(text + rb"caf\'e9\par"))[1] == "café\n\n"


def test_headers_and_footers_of_pages_stand_once_at_the_end(read: Read) -> None:
    header = r"{\header\pard Annual \b report\par}{\footerl\pard Page {\field{\*\fldinst PAGE}{\fldrslt 1}}\par}"
    data = rf"{{\rtf1{header}{header} One.\par Two.\par}}".encode()
    assert read("rtf", data)[1] == ("One.\n\nTwo.\n\nHeader: Annual report\n\nFooter: Page 1\n\n")


def test_notes_comments_and_boxes_of_rtf_leave_their_paragraph_whole(read: Read) -> None:
    note = r"{\super\chftn{\footnote\pard\plain\chftn  A note.\par Its end.}}"
    words = r"{\*\atrfstart 1}120 euros{\*\atrfend 1}"
    comment = r"{\*\atnid A}{\*\atnauthor Ann}\chatn{\*\annotation{\*\atnref 1}\pard\plain Net\par or gross?}"
    box = r"{\shp{\*\shpinst{\sp{\sn fillColor}{\sv 1}}{\shptxt\pard In a box\par Two\par}}{\shprslt{\*\do In a box}}}"
    cells = rf"\pard\intbl {words}{comment} a day\cell b{note}\cell\row"
    text = rf"\pard The{note} fee is {words}{comment} a day.\par {box}Below.\par{cells}{cells}\pard end\par"
    assert read("rtf", rf"{{\rtf1 {text}}}".encode())[1] == (
        "The[^1] fee is 120 euros a day.\n\n"
        'Comment by Ann on "120 euros": Net or gross?\n\n'
        "Below.\n\n"
        "In a box\nTwo\n\n"
        '| 120 euros a day Comment by Ann on "120 euros": Net or gross? | b[^2] |\n'
        "| --- | --- |\n"
        '| 120 euros a day Comment by Ann on "120 euros": Net or gross? | b[^3] |\n\n'
        "end\n\n"
        "[^1]: A note. Its end.\n\n[^2]: A note. Its end.\n\n[^3]: A note. Its end.\n\n"
    )


def test_a_form_field_of_rtf_keeps_its_own_entries_and_state(read: Read) -> None:
    def form(code: str, data: str) -> str:
        return rf"{{\field{{\*\fldinst {code}{{\*\formfield{{{data}}}}}}}{{\fldrslt}}}} "

    fields = (
        form("FORMCHECKBOX", r"\fftype1\ffres1")
        + form("FORMDROPDOWN", r"\fftype2\ffres0{\*\ffl Low}{\*\ffl High}")
        + form("FORMDROPDOWN", r"\fftype2\ffres1{\*\ffl Rome}{\*\ffl Oslo}")
        + form("FORMCHECKBOX", r"\fftype1\ffdefres0")
        + r"{\field{\*\fldinst TIME}{\fldrslt}}"
    )
    assert read("rtf", rf"{{\rtf1 {fields}\par}}".encode())[1] == "[x] Low Oslo [ ]\n\n"


def test_a_box_to_tick_without_its_state_is_named(read: Read) -> None:
    # As LibreOffice writes it, be it ticked or not.
    field = rb"{\field{\*\fldinst { FORMCHECKBOX }}{\fldrslt {}}}"
    assert read("rtf", rb"{\rtf1 " + field + rb" signed\par}")[1] == "[checkbox] signed\n\n"


# --- Word and PowerPoint 97 to 2003; encrypted, older and damaged files are reported.

# Converted by LibreOffice 7.4 from files by python-docx and python-pptx.
DATA = Path(__file__).parent / "data"
REPORT = (DATA / "report.doc").read_bytes()
TALK = lzma.decompress((DATA / "talk.ppt.xz").read_bytes())


def test_a_document_keeps_headings_lists_and_tables(read: Read) -> None:
    extracted, text = read("old_office", REPORT)
    assert text == (
        "# Quarterly report\n\n"
        "# Results\n\n"
        "Sales rose by 12 % in Łódź and “Zürich”.\n\n"
        "A line\nbroken, then a tab\tand a  end.\n\n"
        "- First item\n- Second item\n1. Step one\n\n"
        "| Town | Sales | Note |\n| --- | --- | --- |\n| Łódź | 12 |  |\n| Zürich | 7 | low |\n\n"
        "## Outlook\n\n"
        "日本語 and emoji 😀 at the end.\n\n"
    )
    check_facts(
        extracted,
        title="Quarterly report",
        author="Ann Example",
        published="2013-12-23",
        hidden_removed=1,
    )


def test_slides_are_pages_with_titles_notes_and_pictures(read: Read) -> None:
    extracted, text = read("old_office", TALK)
    assert [part.starts_page for part in extracted.parts or ()] == [True, True, True]
    assert text == (
        "## Slide 1: Results of 2026\n\n- By Ann Example\n\n"
        "## Slide 2: Sales\n\nŁódź rose\n\nby 12 %\n\nNotes: Say this slowly.\n\n"
        "## Slide 3: Figures\n\nTown\n\nSales\n\nZürich\n\n7\n\nA box of text\n\n(1 picture)\n\n"
    )
    check_facts(extracted, pages=3, structure_info="3 slides, 1 picture")


def word(text: bytes, *, version: int = 0xC1, flags: int = 0x200) -> bytes:
    """Return a document of one piece of 8-bit text without properties."""
    header = bytearray(0x800)
    struct.pack_into("<HH6xH", header, 0, 0xA5EC, version, flags)
    struct.pack_into("<l", header, 0x4C, len(text))
    pieces = b"\2" + struct.pack("<L2LHLH", 16, 0, len(text), 0, 0x40000000 | 2 * len(header), 0)
    struct.pack_into("<2L", header, 0x1A2, 0, len(pieces))
    return compound({"WordDocument": bytes(header) + text + bytes(4_096), "1Table": pieces})


MARKS = {
    "breaks": (b"one\rtwo\x0bthree\x0cfour", "one\n\ntwo\nthree\n\nfour\n\n"),
    "link": (
        b'see \x13HYPERLINK "https://example.org/"\x14the site\x15.\r',
        "see [the site](https://example.org/).\n\n",
    ),
    "fields in fields": (
        b"page \x13PAGE\x147\x15 of \x13NUMPAGES \x13X\x14in\x15\x149\x15\r",
        "page 7 of 9\n\n",
    ),
    "field over paragraphs": (b"\x13TOC\rcode\x14one\rtwo\x15 three\r", "one\n\ntwo three\n\n"),
    "signs": (b"non\x1ebreaking so\x1fft \x01\x02\x05", "non-breaking soft\n\n"),
    "cp1252": (b"quotes \x93so\x94", "quotes “so”\n\n"),
}
test_marks_within_the_text_are_read = reads(
    "old_office", {name: (word(body), text) for name, (body, text) in MARKS.items()}
)


test_an_unreadable_document_gives_its_reason = unreadable(
    "old_office",
    {
        "package": (
            compound({"EncryptedPackage": b"x"}),
            "encrypted and opens only with its password",
        ),
        "Word": (word(b"x", flags=0x300), "encrypted and opens only with its password"),
        "Word 95": (word(b"x", version=0x65), "documents of Word before 97 are not read"),
        "Word cut": (compound({"WordDocument": b"x"}), "damaged or cut short"),
        "PowerPoint cut": (compound({"PowerPoint Document": b"x"}), "damaged or cut short"),
        "PowerPoint encrypted": (
            compound(
                {
                    "PowerPoint Document": b"x",
                    "Current User": struct.pack("<8xLLL", 20, 0xF3D1C4DF, 0),
                }
            ),
            "encrypted",
        ),
        "Word empty": (word(b"\r\r"), "holds no text"),
    },
)


def test_a_text_that_a_thousand_pieces_share_is_not_read(read: Read) -> None:
    header = bytearray(0x800)
    struct.pack_into("<HH6xH", header, 0, 0xA5EC, 0xC1, 0x200)
    bounds = struct.pack("<1001L", *range(0, 4_004_000, 4_000))
    shared = struct.pack("<HLH", 0, 0x40000000 | 2 * len(header), 0) * 1_000
    pieces = b"\2" + struct.pack("<L", len(bounds + shared)) + bounds + shared
    struct.pack_into("<2L", header, 0x1A2, 0, len(pieces))
    data = compound({"WordDocument": bytes(header) + b"x" * 4_096, "1Table": pieces})
    with pytest.raises(NoText, match="damaged or cut short"):
        read("old_office", data)


def test_a_compound_file_of_something_else_has_no_text(read: Read) -> None:
    assert read("old_office", compound({"Thumbs": b"x"}))[0].parts is None


@pytest.mark.parametrize("whole", [REPORT, TALK[:60_000] + TALK[-20_000:]], ids=["doc", "ppt"])
def test_damage_does_no_harm(read: Read, whole: bytes) -> None:
    chance = random.Random(7)
    for _ in range(100):
        broken = bytearray(whole)
        for _ in range(20):
            broken[chance.randrange(512, len(broken))] = chance.randrange(256)
        with suppress(NoText):
            read("old_office", bytes(broken))


BEFORE_97 = {
    "Word 2": (b"\xdb\xa5\x2d\0", "document of Word before 97"),
    "Word 1": (b"\x9b\xa5\x21\0", "document of Word before 97"),
    "Word for Macintosh 5": (b"\xfe\x37\0\x23", "document of Word before 97"),
    "PowerPoint 4": (compound({"PP40": bytes(5_000)}), "presentation of PowerPoint before 97"),
    "PowerPoint 3": (b"\xed\xde\xad\x0b", "presentation of PowerPoint before 97"),
}


@pytest.mark.parametrize(("data", "word"), list(BEFORE_97.values()), ids=list(BEFORE_97))
@pytest.mark.parametrize("label", ["application/msword", "application/octet-stream"])
def test_a_document_of_an_office_before_97_is_named_and_says_that_it_is_not_read(
    save: Save, data: bytes, word: str, label: str
) -> None:
    source = save(data + bytes(600))
    decision = route_file(source, {"content-type": label}, "https://example.org/plan.doc")
    declared = format_of(decision)
    assert (decision.kind, declared.name(decision.media_type)) == ("office_doc", word)
    with pytest.raises(NoText, match=f"{word.partition(' ')[2]} are not read"):
        handler_named("old_office").extract(source, Hints(), ExtractLimits())


@pytest.mark.parametrize(
    ("handler", "data", "words"),
    [
        ("json", b'{"a": [1]}', "object of 1 key: a"),
        ("json", b"[7]", "array of 1 item"),
        ("jsonl", b'{"a": 1}\n', "1 record: a"),
        ("markdown", b"# A\n", "1 heading"),
        ("xml", b"<a/>", "root a, depth 1, 1 element: a 1"),
        ("archive", gzip.compress(b"x", mtime=0), "1 member, 0 bytes unpacked"),
    ],
)
def test_one_of_a_kind_is_worded_in_the_singular(
    read: Read, handler: str, data: bytes, words: str
) -> None:
    assert read(handler, data)[0].facts.structure_info == words


def test_a_reason_with_a_count_of_one_is_worded_in_the_singular() -> None:
    at_one, at_two = (PdfReason.PDF_SCANNED.cause(count=count).words() for count in (1, 2_000))
    assert at_one.endswith("pictures of 1 page")
    assert at_two.endswith("pictures of 2,000 pages")
