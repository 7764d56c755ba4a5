"""Ten small files of each kind: the same words in the same order in all of them.

Each is made of HTML, whole or in the kind's own words. Ten files of Word, PowerPoint and Excel are
in test_round_trips, with those of DOC, XLS and OpenDocument that LibreOffice makes of them.
"""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import re
from collections.abc import Callable, Mapping
from email.message import EmailMessage
from html import unescape
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

import pytest

from tests.handlers.compounds import compound, wide
from tests.handlers.conftest import Read
from tests.handlers.hostile.documents import packed
from tests.handlers.test_docx import odf, opendocument_table
from tests.handlers.test_mail import packed_rtf
from tests.handlers.test_more_documents import BOOK
from tests.handlers.test_opendocument import (
    document as text_document,
    h,
    list_style,
    number_level,
    p,
    style,
)

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


def blocks(markup: str) -> list[ET.Element]:
    return list(ET.fromstring(f"<body>{markup}</body>"))


def rows_of(table: ET.Element) -> list[list[str]]:
    return [["".join(cell.itertext()) for cell in row] for row in table]


def inline(block: ET.Element, link: Callable[[str, str], str]) -> str:
    """Return the text of a block, in which ``link`` writes the links."""
    links = [link(a.attrib["href"], a.text or "") + escape(a.tail or "") for a in block]
    return escape(block.text or "") + "".join(links)


def of_opendocument(markup: str) -> str:
    """Return the blocks in the words of OpenDocument."""

    def link(target: str, text: str) -> str:
        return f'<text:a xlink:href="{escape(target)}">{text}</text:a>'

    written = ""
    for block in blocks(markup):
        if block.tag == "table":
            written += opendocument_table(*rows_of(block))
        elif block.tag == "h2":
            written += h(block.text or "", 2)
        elif block.tag == "p":
            written += p(inline(block, link), "Hidden" if block.attrib else "")
        else:
            entries = "".join(
                f"<text:list-item>{p(item.text or '')}</text:list-item>" for item in block
            )
            written += f'<text:list text:style-name="{block.tag}">{entries}</text:list>'
    return written


STYLES = list_style("ol", number_level(1, "3").replace("/>", ' style:num-suffix="."/>')) + style(
    "Hidden", '<style:text-properties text:display="none"/>'
)


def text(markup: str) -> bytes:
    return text_document(of_opendocument(markup), STYLES)


def slide(markup: str) -> bytes:
    box = f"<draw:frame><draw:text-box>{of_opendocument(markup)}</draw:text-box></draw:frame>"
    table = of_opendocument(markup) if "<table" in markup else ""
    shown = f"<draw:frame>{table}</draw:frame>" if table else box
    page = f'<draw:page draw:name="1">{shown}</draw:page>'
    return text_document(f"<office:presentation>{page}</office:presentation>", STYLES)


def rich_text(markup: str) -> bytes:
    """Return the blocks as RTF writes them."""

    def coded(text: str) -> str:
        text = re.sub(r"([\\{}])", r"\\\1", unescape(text))
        units = text.encode("utf-16-le")
        return "".join(
            chr(unit) if (unit := int.from_bytes(units[at : at + 2], "little")) < 128
            else rf"\u{unit - 65_536 if unit > 32_767 else unit}?"
            for at in range(0, len(units), 2)
        )  # fmt: skip

    def link(target: str, text: str) -> str:
        return f"\0{target}\1{text}\2"

    written = ""
    for block in blocks(markup):
        if block.tag == "table":
            for row in rows_of(block):
                written += (
                    r"\trowd"
                    + "".join(rf"\pard\intbl {coded(cell)}\cell" for cell in row)
                    + r"\row"
                )
            written += r"\pard "
        elif block.tag == "h2":
            written += rf"\pard\outlinelevel1 {coded(block.text or '')}\par"
        elif block.tag == "p":
            said = coded(inline(block, link))
            said = said.replace("\0", r'{\field{\*\fldinst HYPERLINK "')
            said = said.replace("\1", r'"}{\fldrslt ').replace("\2", "}}")
            written += rf"\pard{{\v {said}\par}}" if block.attrib else rf"\pard {said}\par"
        else:
            for number, item in enumerate(block, 3):
                label = f"{number}." if block.tag == "ol" else r"\u8226?"
                written += rf"\pard{{\listtext {label}\tab}}{coded(item.text or '')}\par"
    return rf"{{\rtf1\ansi {written}}}".encode()


KINDS: Mapping[str, tuple[str, Callable[[str], bytes]]] = {
    "EML": ("email", mail),
    "mbox": ("mbox", mailbox),
    "MHTML": ("mhtml", saved_page),
    "MSG of HTML": ("msg", of_html),
    "MSG of RTF": ("msg", of_rtf),
    "EPUB": ("epub", book),
    "ODT": ("odf", text),
    "ODP": ("odf", slide),
    "RTF": ("rtf", rich_text),
}


@pytest.mark.parametrize(("markup", "expected"), CONTENTS.values(), ids=CONTENTS.keys())
@pytest.mark.parametrize(("handler", "make"), KINDS.values(), ids=KINDS.keys())
def test_the_same_words_stand_in_every_kind(
    read: Read, handler: str, make: Callable[[str], bytes], markup: str, expected: str
) -> None:
    shown = " ".join(read(handler, make(markup))[1].split())
    assert expected in shown
    assert "obey" not in shown


def cells(*values: str | tuple[str, str, str]) -> str:
    """Return a row; a cell is its text, or its type, its value and its text."""
    row = ""
    for value in values:
        kind, attribute, shown = value if isinstance(value, tuple) else ("string", 'x=""', value)
        row += f'<table:table-cell office:value-type="{kind}" office:{attribute}><text:p>{shown}</text:p></table:table-cell>'
    return f"<table:table-row>{row}</table:table-row>"


# Cells of OpenDocument by their types, and what a person sees of them.
SHEETS: Mapping[str, tuple[str, str]] = {
    "words": (cells("name", "age") + cells("Ada", "Łódź"), "name\tage\nAda\tŁódź"),
    "a number": (cells(("float", 'value="1234.5"', "1,234.50")), "1,234.50"),
    "a share": (cells(("percentage", 'value="0.256"', "25.6%")), "25.6%"),
    "money": (cells(("currency", 'currency="EUR" office:value="-3"', "-€3.00")), "-€3.00"),
    "a day": (cells(("date", 'date-value="2026-03-04"', "04.03.2026")), "04.03.2026"),
    "a duration": (cells(("time", 'time-value="PT30H05M00S"', "30:05")), "30:05"),
    "yes and no": (cells(("boolean", 'boolean-value="true"', "TRUE"), "x"), "TRUE\tx"),
    "repeated cells": (
        cells(("string", 'x="" table:number-columns-repeated="3"', "a"), "b"),
        "a\ta\ta\tb",
    ),
    "a hidden row": (
        cells("a", "b") + cells("c", "d").replace("row>", 'row table:visibility="collapse">', 1),
        "a\tb\nc\td\t(hidden row)",
    ),
    "a comment": (
        cells("a", "b").replace(
            "<text:p>b",
            "<office:annotation><dc:creator>Ann</dc:creator><text:p>why</text:p></office:annotation><text:p>b",
        ),
        "a\tb",
    ),
}


@pytest.mark.parametrize(("rows", "expected"), SHEETS.values(), ids=SHEETS.keys())
def test_a_sheet_of_opendocument_shows_what_people_see(
    read: Read, rows: str, expected: str
) -> None:
    table = f'<table:table table:name="S">{rows}</table:table>'
    body = f"<office:spreadsheet>{table}</office:spreadsheet>"
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = '<manifest:manifest xmlns:manifest="m"/>'
    data = odf(body, **{"mimetype": kind, "META-INF/manifest.xml": manifest})
    assert expected in read("sheets", data)[1]
