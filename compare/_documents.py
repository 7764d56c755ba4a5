"""Make the documents of the cases: each a few lines of what its format needs at least."""

import io
import zipfile
from collections.abc import Callable, Mapping
from typing import Any
from xml.sax.saxutils import escape

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_MIME = "application/vnd.openxmlformats-officedocument"


def pdf(page: Mapping[str, Any]) -> bytes:
    """Return a PDF with ``pages``, each a text of short lines, in Helvetica.

    ``filler`` puts so many pages of nothing before them.
    """
    filler = [
        f"Page {n} of the register\nNo ship was entered." for n in range(page.get("filler", 0))
    ]
    texts: list[str] = [*filler, *page["pages"]]
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    kids: list[str] = []
    for text in texts:
        shown = [
            "({}) Tj T*".format(line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)"))
            for line in text.strip().splitlines()
        ]
        stream = "\n".join(("BT /F1 11 Tf 14 TL 60 780 Td", *shown, "ET")).encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        kids.append(f"{len(objects) + 1} 0 R")
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    file, offsets = io.BytesIO(b"%PDF-1.4\n"), list[int]()
    file.seek(0, io.SEEK_END)
    for number, content in enumerate(objects, 1):
        offsets.append(file.tell())
        file.write(b"%d 0 obj\n%s\nendobj\n" % (number, content))
    start = file.tell()
    file.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    file.write(b"".join(b"%010d 00000 n \n" % offset for offset in offsets))
    end = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    file.write(end % (len(objects) + 1, start))
    return file.getvalue()


def _zipped(members: Mapping[str, str], kinds: Mapping[str, str], main: str) -> bytes:
    overrides = "".join(
        f'<Override PartName="/{part}" ContentType="{_MIME}.{kind}+xml"/>'
        for part, kind in kinds.items()
    )
    types = (
        f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{overrides}</Types>'
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", types)
        archive.writestr("_rels/.rels", _relations({"rId1": ("officeDocument", main)}))
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def _relations(targets: Mapping[str, tuple[str, str]]) -> str:
    each = "".join(
        f'<Relationship Id="{name}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for name, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{each}</Relationships>'


def docx(page: Mapping[str, Any]) -> bytes:
    """Return a DOCX of ``paragraphs`` and, after them, the rows of ``table``."""

    def paragraph(text: str) -> str:
        style = '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>' if text.startswith("# ") else ""
        return f"<w:p>{style}<w:r><w:t>{escape(text.removeprefix('# '))}</w:t></w:r></w:p>"

    rows = "".join(
        "<w:tr>{}</w:tr>".format("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row))
        for row in page.get("table", ())
    )
    body = "".join(map(paragraph, page["paragraphs"])) + (f"<w:tbl>{rows}</w:tbl>" if rows else "")
    document = f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>'
    part = "word/document.xml"
    return _zipped({part: document}, {part: "wordprocessingml.document.main"}, part)


def xlsx(page: Mapping[str, Any]) -> bytes:
    """Return an XLSX with ``sheets``, each a name and its rows; ``filler`` adds numbered rows."""
    members: dict[str, str] = {}
    kinds = {"xl/workbook.xml": "spreadsheetml.sheet.main"}
    listed, relations = "", dict[str, tuple[str, str]]()
    for number, (name, rows) in enumerate(page["sheets"].items(), 1):
        filler = [[f"Filler {n}", str(n)] for n in range(page.get("filler", 0))]
        lines = "".join(
            "<row>{}</row>".format(
                "".join(f'<c t="inlineStr"><is><t>{escape(cell)}</t></is></c>' for cell in row)
            )
            for row in filler + rows
        )
        part = f"xl/worksheets/sheet{number}.xml"
        members[part] = f'<worksheet xmlns="{_SHEET}"><sheetData>{lines}</sheetData></worksheet>'
        kinds[part] = "spreadsheetml.worksheet"
        relations[f"rId{number}"] = ("worksheet", f"worksheets/sheet{number}.xml")
        listed += f'<sheet name="{escape(name)}" sheetId="{number}" r:id="rId{number}"/>'
    members["xl/workbook.xml"] = (
        f'<workbook xmlns="{_SHEET}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>'
    )
    members["xl/_rels/workbook.xml.rels"] = _relations(relations)
    return _zipped(members, kinds, "xl/workbook.xml")


def archive(page: Mapping[str, Any]) -> bytes:
    """Return a ZIP of ``members``."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in page["members"].items():
            packed.writestr(name, content)
    return file.getvalue()


MAKERS: dict[str, Callable[[Mapping[str, Any]], bytes]] = {
    "pdf": pdf,
    "docx": docx,
    "xlsx": xlsx,
    "zip": archive,
}
