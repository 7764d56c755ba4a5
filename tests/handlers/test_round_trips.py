"""The same words in the same order, whether a document is of Word or LibreOffice made it of one.

LibreOffice converts small generated files there and back. Where it is not installed these are
skipped; `scripts/ci extras` installs it.
"""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import io
import re
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from fetchstash.handlers import ExtractLimits, Hints
from tests.handlers.hostile.documents import packed
from tests.handlers.parts import data_file, handler_named
from tests.handlers.test_docx import STYLES, TYPES, W, item, paragraph, run, table
from tests.handlers.test_sheet_formats import NUMBERS, row, workbook
from tests.handlers.test_slide_order import SLIDES, sp
from tests.handlers.test_word_marks import FIELDS, FORMS, commented, field, levels, p, sym

PROGRAM = shutil.which("soffice")
SECONDS = 300
PARTS = "application/vnd.openxmlformats-officedocument.wordprocessingml."
CONTENT = "http://schemas.openxmlformats.org/package/2006"


def _levels(form: str, sign: str) -> str:
    return "".join(
        f'<w:lvl w:ilvl="{n}"><w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{sign.format(n + 1)}"/></w:lvl>'
        for n in range(2)
    )


NUMBERING = f"""<w:numbering {W}><w:abstractNum w:abstractNumId="7">{_levels("bullet", "•")}</w:abstractNum>
<w:abstractNum w:abstractNumId="8">{_levels("decimal", "%{}.")}</w:abstractNum>
{levels(9, ("upperRoman", "%1.", ""), ("lowerLetter", "%2)", ""))}
{levels(10, ("decimal", "Part %1", ""), ("decimal", "%1.%2", ""))}
<w:num w:numId="3"><w:abstractNumId w:val="9"/></w:num><w:num w:numId="4"><w:abstractNumId w:val="10"/></w:num>
<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num></w:numbering>"""


def word(body: str, comments: str = "") -> bytes:
    """Return a document with all that LibreOffice wants of one."""
    kinds = ["styles", "numbering", "comments"]
    overrides = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{PARTS}{kind}+xml"/>'
        for name, kind in [("document", "document.main"), *((kind, kind) for kind in kinds)]
    )
    related = "".join(
        f'<Relationship Id="r{kind}" Type="{TYPES}/{kind}" Target="{kind}.xml"/>' for kind in kinds
    )
    return packed(
        {
            "[Content_Types].xml": f'<Types xmlns="{CONTENT}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>{overrides}</Types>',
            "_rels/.rels": f'<Relationships xmlns="{CONTENT}/relationships"><Relationship Id="d" Type="{TYPES}/officeDocument" Target="word/document.xml"/></Relationships>',
            "word/_rels/document.xml.rels": f'<Relationships xmlns="{CONTENT}/relationships">{related}</Relationships>',
            "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
            "word/styles.xml": STYLES,
            "word/numbering.xml": NUMBERING,
            "word/comments.xml": f"<w:comments {W}>{comments}</w:comments>",
        }
    )


def slide_show(content: str) -> bytes:
    """Return a presentation of one slide."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data_file("b-06-order.pptx"))) as old,
        zipfile.ZipFile(out, "w") as new,
    ):
        for name in old.namelist():
            data = old.read(name)
            if name == "ppt/slides/slide1.xml":
                start, _, rest = data.decode().partition("<p:grpSpPr/>")
                end = rest[rest.index("</p:spTree>") :]
                data = f"{start}<p:grpSpPr/>{content}{end}".encode()
            new.writestr(name, data)
    return out.getvalue()


def form(name: str) -> str:
    inner, words, _ = FORMS[name]
    return p(field(words, "", inner), run(" after"))


COMMENT = f'<w:comment w:id="1" w:author="Bob" w:initials="B">{paragraph("Really so?")}</w:comment>'
TARGET = p(
    '<w:bookmarkStart w:id="1" w:name="_Ref1"/>', run("Table 2"), '<w:bookmarkEnd w:id="1"/>'
)
DOCUMENTS: Mapping[str, bytes] = {
    "headings": word(paragraph("Big", "Titel") + paragraph("One", "H1") + paragraph("Text here.")),
    "lists": word(
        item("a", 1) + item("b", 1, 1) + item("one", 2) + item("two", 2) + item("inner", 2, 1)
    ),
    "table": word(table(["Name", "Age"], ["Ada", "36"], ["Bob", "41"]) + paragraph("after")),
    "table in table": word(
        table(["A", table(["x", "y"]) + paragraph("end")], ["B", "C"]) + paragraph("z")
    ),
    "link": word(FIELDS["link"][0] + paragraph("more")),
    "reference": word(FIELDS["reference"][0] + TARGET),
    "forms": word(form("ticked") + form("not ticked") + form("an entry")),
    "signs": word(p(sym("Wingdings", "F0FC"), run(" passed; "), sym("Symbol", "F0B3"), run(" 5"))),
    "letters": word(item("x", 3) + item("a", 3, 1) + item("b", 3, 1) + item("y", 3)),
    "clauses": word(item("x", 4) + item("a", 4, 1) + item("b", 4, 1) + item("y", 4)),
    "comment": word(p(run("The fee is "), commented(1, "120 euros"), run(" a day.")), COMMENT),
    "scripts": word(p(run("10"), run("-3", '<w:vertAlign w:val="superscript"/>'), run(" m"))),
}
SHOWS: Mapping[str, bytes] = {
    name: slide_show("".join(sp(text, place) for text, place in drawn.items()))
    for name, drawn in list(SLIDES.items())[:10]
}


def sheet(rows: str) -> bytes:
    return workbook(packed, rows)


BOOKS: Mapping[str, bytes] = {
    "formats": sheet(NUMBERS),
    "names": sheet(row(1, "name", "age") + row(2, "Ada", 36) + row(3, "Bob", 41)),
    "title": sheet(row(1, "Sales") + row(2, "town", "sold") + row(3, "Rome", 1)),
    "two tables": sheet(row(1, "a", "b") + row(2, "x", 1) + row(5, "c", "d") + row(6, "y", 2)),
    "gaps": sheet(row(1, "a", "", "c") + row(2, "x", "", "z")),
    "one column": sheet(row(1, "only") + row(2, "this") + row(3, "that")),
    "one cell": sheet(row(1, "alone")),
    "signs": sheet(row(1, "≥ 5", "µm") + row(2, "é", "ß")),
    "numbers": sheet("".join(row(n, n, n * n) for n in range(1, 9))),
    "far": sheet(row(9, "far", "down") + row(10, "x", 1)),
}
# Documents of a kind and their reader, and the reader of what LibreOffice makes of them.
KINDS = {
    ("docx", "odt"): (DOCUMENTS, "docx", "odf"),
    ("docx", "doc"): (DOCUMENTS, "docx", "old_office"),
    ("pptx", "odp"): (SHOWS, "pptx", "odf"),
    ("xlsx", "ods"): (BOOKS, "sheets", "sheets"),
    ("xlsx", "xls"): (BOOKS, "sheets", "sheets"),
}


def convert(files: list[Path], form: str, into: Path) -> list[Path]:
    """Let LibreOffice convert files, with a profile of its own."""
    into.mkdir()
    profile = f"-env:UserInstallation=file://{into.parent / 'profile'}"
    command = [str(PROGRAM), profile, "--headless", "--convert-to", form, "--outdir", str(into)]
    subprocess.run([*command, *map(str, files)], check=True, capture_output=True, timeout=SECONDS)
    return [into / f"{file.stem}.{form}" for file in files]


def words_of(handler: str, file: Path) -> list[str]:
    """Return the words that our reader finds, numbers of lines and slides too."""
    found = handler_named(handler).extract(file, Hints(name=file.name), ExtractLimits())
    text = "".join(part.text for part in found.parts or ())
    return re.findall(r"\w+|[✓≥]", text.replace("[x]", "ticked").replace("[ ]", "open"))


@pytest.mark.skipif(PROGRAM is None, reason="LibreOffice is not installed")
@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "other"), KINDS)
def test_words_stay_in_their_order_there_and_back(tmp_path: Path, kind: str, other: str) -> None:
    documents, reader, other_reader = KINDS[kind, other]
    (tmp_path / "made").mkdir()
    made: list[Path] = []
    for name, data in documents.items():
        made.append(tmp_path / "made" / f"{name.replace(' ', '-')}.{kind}")
        made[-1].write_bytes(data)
    there = convert(made, other, tmp_path / "there")
    back = convert(there, kind, tmp_path / "back")
    for ours, theirs, again in zip(made, there, back, strict=True):
        expected = words_of(reader, ours)
        assert (ours.name, words_of(other_reader, theirs)) == (ours.name, expected)
        assert (ours.name, words_of(reader, again)) == (ours.name, expected)
