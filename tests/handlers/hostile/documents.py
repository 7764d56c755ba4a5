"""Hostile documents, images, archives and films."""

# ruff: noqa: E501 - a hostile file on one line reads better than in pieces

import bz2
import gzip
import io
import json
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Mapping

from PIL import Image

from fetchstash.cli.demo.site import make_pdf
from tests.handlers.pdf_pages import stream, write_objects

MEGABYTE = 2**20
ENTITIES = "".join(
    f'<!ENTITY {name} "{f"&{of};" * 10}">' for of, name in zip("abcdefgh", "bcdefghi", strict=True)
)
LAUGHS = f'<!DOCTYPE x [<!ENTITY a "haha">{ENTITIES}]>'


def packed(members: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as container:
        for name, content in members.items():
            container.writestr(name, content)
    return out.getvalue()


def pdf(
    page: str,
    *more: bytes,
    pages: str = "<< /Type /Pages /Kids [3 0 R] /Count 1 /MediaBox [0 0 200 200] >>",
    root: str = "",
) -> bytes:
    """Return a PDF of one page (object 3); ``more`` objects begin at 4."""
    return write_objects(
        [f"<< /Type /Catalog /Pages 2 0 R {root} >>".encode(), pages.encode(), page.encode(), *more]
    )


def page(contents: str, resources: str = "") -> str:
    return f"<< /Type /Page /Parent 2 0 R /Contents {contents} /Resources << /Font << /F 5 0 R >> {resources} >> >>"


FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
SHOWN = stream(b"BT /F 12 Tf 20 100 Td (Shown all the same) Tj ET")


def pdfs() -> dict[str, bytes]:
    whole = make_pdf([f"Page {n}" for n in range(20)], "t")
    form = "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 4 0 R >> >>"
    return {
        "PDF: pages that are their own parents": pdf(
            "<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 9 >>",
            pages="<< /Type /Pages /Kids [3 0 R] /Count 9 >>",
        ),
        "PDF: a billion pages": pdf(
            page("4 0 R"), SHOWN, FONT, pages="<< /Type /Pages /Kids [3 0 R] /Count 1000000000 >>"
        ),
        "PDF: a page ten thousand times": pdf(
            page("4 0 R"),
            SHOWN,
            FONT,
            pages=f"<< /Type /Pages /Kids [{'3 0 R ' * 10_000}] /Count 10000 >>",
        ),
        "PDF: content that unpacks to 20 MB": pdf(
            page("4 0 R"), stream(b"q Q " * 5 * MEGABYTE), FONT
        ),
        "PDF: unpacked three times": pdf(page("4 0 R"), thrice(), FONT),
        "PDF: a form that draws itself": pdf(
            page("5 0 R", "/XObject << /X 4 0 R >>"), stream(b"/X Do " * 50, form), stream(b"/X Do")
        ),
        "PDF: brackets": pdf(page("4 0 R"), stream(b"[" * MEGABYTE), FONT),
        "PDF: saved states": pdf(
            page("4 0 R"), stream(b"q " * MEGABYTE + b"BT /F 12 Tf (x) Tj ET"), FONT
        ),
        "PDF: nested dictionaries": pdf("<< /A " * 50_000 + ">> " * 50_000),
        "PDF: a page of astronomic size": pdf(
            page("4 0 R").replace("/Contents", "/MediaBox [0 0 1e38 1e38] /Contents"), SHOWN, FONT
        ),
        "PDF: a page of no size": pdf(
            page("4 0 R").replace("/Contents", "/MediaBox [0 0 0 0] /Contents"), SHOWN, FONT
        ),
        "PDF: bookmarks in a ring": pdf(
            page("4 0 R"),
            SHOWN,
            FONT,
            b"<< /Type /Outlines /First 7 0 R /Last 7 0 R >>",
            b"<< /Title (ring) /Parent 6 0 R /First 7 0 R /Last 7 0 R /Next 7 0 R /Dest [3 0 R /Fit] >>",
            root="/Outlines 6 0 R",
        ),
        "PDF: a font that is none": pdf(
            page("4 0 R"),
            SHOWN,
            b"<< /Type /Font /Subtype /TrueType /FontFile2 6 0 R >>",
            stream(b"\xff" * 999),
        ),
        "PDF: characters that map to garbage": pdf(
            page("4 0 R"),
            SHOWN,
            FONT[:-2] + b"/ToUnicode 6 0 R >>",
            stream(b"beginbfrange <00> <FF> [" * 999),
        ),
        "PDF: a table of references to itself": whole.replace(
            b"trailer\n<<", b"trailer\n<< /Prev 15"
        ),
        "PDF: half of it": whole[: len(whole) // 2],
        "PDF: the other half": b"%PDF-1.7\n" + whole[len(whole) // 2 :],
        "PDF: each tenth byte lost": bytes(b for n, b in enumerate(whole) if n % 10 or n < 9),
        "PDF: a header and zeros": b"%PDF-1.7\n" + bytes(MEGABYTE),
        "PDF: a header and percent signs": b"%PDF-1.7\n" + b"%" * MEGABYTE,
    }


def thrice() -> bytes:
    data = bytes(20 * MEGABYTE)
    for _ in range(3):
        data = zlib.compress(data, 9)
    return (
        f"<< /Filter [/FlateDecode /FlateDecode /FlateDecode] /Length {len(data)} >>\nstream\n".encode()
        + data
        + b"\nendstream"
    )


def documents() -> dict[str, bytes]:
    types = {"[Content_Types].xml": "<Types/>"}
    sheet = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    )
    far = f'{sheet}<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row></sheetData></worksheet>'
    slides = '<p:sldId r:id="s"/>' * 100_000
    return {
        "DOCX: a billion laughs": packed(
            types | {"word/document.xml": f"{LAUGHS}<w:document><w:t>&i;</w:t></w:document>"}
        ),
        "DOCX: a hundred thousand levels": packed(types | {"word/document.xml": "<w:p>" * 100_000}),
        "DOCX: 30 MB of paragraphs": packed(
            types | {"word/document.xml": "<w:d>" + "<w:p><w:r><w:t>x</w:t></w:r></w:p>" * MEGABYTE}
        ),
        "DOCX: one run of 20 MB": packed(
            types
            | {
                "word/document.xml": f"<w:d><w:p><w:r><w:t>{'x' * 20 * MEGABYTE}</w:t></w:r></w:p></w:d>"
            }
        ),
        "DOCX: a table in a table in a table": packed(
            types | {"word/document.xml": "<w:d>" + "<w:tbl><w:tr><w:tc>" * 300}
        ),
        "DOCX: an attribute of 20 MB": packed(
            types | {"word/document.xml": f'<w:d a="{"x" * 20 * MEGABYTE}"/>'}
        ),
        "DOCX: no document": packed(types | {"word/other.xml": "<x/>"}),
        "DOCX: cut short": packed(types | {"word/document.xml": "<w:d/>"})[:-40],
        "PPTX: one slide a hundred thousand times": packed(
            types
            | {
                "ppt/presentation.xml": f'<p:presentation xmlns:r="r" xmlns:p="p"><p:sldIdLst>{slides}</p:sldIdLst></p:presentation>',
                "ppt/_rels/presentation.xml.rels": '<R><Relationship Id="s" Type="x/slide" Target="slides/s.xml"/></R>',
                "ppt/slides/s.xml": "<p:sld><a:p><a:r><a:t>again</a:t></a:r></a:p></p:sld>",
            }
        ),
        "XLSX: two far cells": packed(types | workbook() | {"xl/worksheets/sheet1.xml": far}),
        "XLSX: two far cells behind five megabytes": packed(
            types
            | workbook()
            | {"xl/worksheets/sheet1.xml": far.replace("<row", " " * 5 * MEGABYTE + "<row", 1)}
        ),
        "XLSX: shared strings that unpack to 50 MB": packed(
            types
            | workbook()
            | {"xl/sharedStrings.xml": "<sst>" + "<si><t>x</t></si>" * 3 * MEGABYTE}
        ),
        "XLSX: no sheets": packed(types | {"xl/workbook.xml": "<workbook/>"}),
        "ODT: a billion laughs": odf("text", f"{LAUGHS}<o><text:p>&i;</text:p></o>"),
        "ODT: blanks without end": odf(
            "text", "<o>" + '<text:p><text:s text:c="999999999"/>x</text:p>' * 10_000 + "</o>"
        ),
        "ODS: a row that repeats": odf(
            "spreadsheet",
            '<o><table:table table:name="a"><table:table-row table:number-rows-repeated="1048576"><table:table-cell office:value-type="float" office:value="1" table:number-columns-repeated="16384"/></table:table-row></table:table></o>',
        ),
        "EPUB: a chapter of one tag": epub("<div>" * 200_000),
        "EPUB: a package that points out of it": epub("<p>x</p>", href="../../../../etc/passwd"),
        "RTF: groups": b"{\\rtf1 " + b"{" * MEGABYTE,
        "RTF: control words": b"{\\rtf1 " + b"\\par\\pard\\intbl\\cell\\row" * 20_000,
        "IPYNB: deep": b'{"nbformat": 4, "cells": ' + b"[" * MEGABYTE,
        "IPYNB: a picture of 20 MB": json.dumps(
            {
                "nbformat": 4,
                "cells": [
                    {
                        "cell_type": "code",
                        "source": "x",
                        "outputs": [{"data": {"image/png": "A" * 20 * MEGABYTE}}],
                    }
                ],
            }
        ).encode(),
        "EML: a subject of 700 KB": b"From: a@b\nSubject: "
        + b"=?utf-8?q?=41?= " * 45_000
        + b"\n\nbody\n",
        "EML: parts in parts": b"From: a@b\nSubject: x\n"
        + b"".join(
            b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n)
            for n in range(20_000)
        ),
    }


def wasteful() -> dict[str, bytes]:
    """Return small files that name one part, or try one thing, again and again."""
    types = {"[Content_Types].xml": "<Types/>"}
    again = "".join(
        f'<Relationship Id="a{n}" Type="x/KIND" Target="again.xml"/>' for n in range(3_000)
    )
    ids = "".join(f'<p:sldId r:id="s{n}"/>' for n in range(300))
    slides = "".join(
        f'<Relationship Id="s{n}" Type="x/slide" Target="slides/s{n}.xml"/>' for n in range(300)
    )
    sheets = "".join(f'<sheet name="s{n}" sheetId="{n + 1}" r:id="r{n}"/>' for n in range(300))
    parts = "".join(
        f'<Relationship Id="r{n}" Type="x/worksheet" Target="worksheets/s{n}.xml"/>'
        for n in range(300)
    )
    slow = "b div div div div div div i, div:has(b) div div i { display: none }"
    return {
        "PPTX: each slide has one chart 3,000 times": packed(
            types
            | {
                "ppt/presentation.xml": f'<p:presentation xmlns:r="r" xmlns:p="p"><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>',
                "ppt/_rels/presentation.xml.rels": f"<R>{slides}</R>",
                "ppt/slides/again.xml": "<c>" + "<d/>" * 100_000 + "</c>",
            }
            | {
                f"ppt/slides/s{n}.xml": "<p:sld><a:p><a:r><a:t>Shown</a:t></a:r></a:p></p:sld>"
                for n in range(300)
            }
            | {
                f"ppt/slides/_rels/s{n}.xml.rels": f"<R>{again.replace('KIND', 'chart')}</R>"
                for n in range(300)
            }
        ),
        "DOCX: one part of styles 3,000 times": packed(
            types
            | {
                "word/document.xml": "<w:d><w:p><w:r><w:t>Shown</w:t></w:r></w:p></w:d>",
                "word/_rels/document.xml.rels": f"<R>{again.replace('KIND', 'styles')}</R>",
                "word/again.xml": "<s>" + "<d/>" * 100_000 + "</s>",
            }
        ),
        "XLSX: 300 sheets with one part of comments": packed(
            types
            | workbook()
            | {
                "xl/workbook.xml": f'<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>{sheets}</sheets></workbook>',
                "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{parts}</Relationships>',
                "xl/comments.xml": "<c>" + "<comment/>" * 100_000 + "</c>",
            }
            | {
                f"xl/worksheets/s{n}.xml": '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row r="1"><c r="A1" t="str"><v>Shown</v></c></row></sheetData></worksheet>'
                for n in range(300)
            }
            | {
                f"xl/worksheets/_rels/s{n}.xml.rels": '<R><Relationship Id="c" Type="x/comments" Target="../comments.xml"/></R>'
                for n in range(300)
            }
        ),
        "HTML: selectors that try every ancestor": (
            f"<!doctype html><style>{slow}</style>" + "<div>" * 100 + "<p>Shown</p><i>too</i>" * 300
        ).encode(),
        "HTML: values that are none": b"<!doctype html><script>"
        + b"window.__DATA__ = {" * 100_000
        + b"</script><p>Shown</p>",
        "HTML: quotes behind backslashes": b"<!doctype html><style>"
        + b'\\"' * 300_000
        + b"</style><p>Shown</p>",
    }


def workbook() -> dict[str, str]:
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    links = "".join(
        f'<Relationship Id="r{n}" Type="{relations}/{kind}" Target="{target}"/>'
        for n, (kind, target) in enumerate(
            [("worksheet", "worksheets/sheet1.xml"), ("sharedStrings", "sharedStrings.xml")]
        )
    )
    root = f'<Relationship Id="r" Type="{relations}/officeDocument" Target="xl/workbook.xml"/>'
    return {
        "_rels/.rels": f'<Relationships xmlns="{package}">{root}</Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{relations}"><sheets><sheet name="a" sheetId="1" r:id="r0"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}">{links}</Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData/></worksheet>',
    }


def odf(kind: str, content: str, more: Mapping[str, str] | None = None) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as container:
        container.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        for name, text in {"content.xml": content, **(more or {})}.items():
            container.writestr(name, text, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def epub(chapter: str, href: str = "c.xhtml", package: str = "") -> bytes:
    package = package or f'<p><item id="c" href="{href}"/><itemref idref="c"/></p>'
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as container:
        container.writestr("mimetype", "application/epub+zip")
        container.writestr("META-INF/container.xml", '<c><rootfile full-path="b.opf"/></c>')
        container.writestr("b.opf", package)
        container.writestr("c.xhtml", chapter, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def archives() -> dict[str, bytes]:
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 400 * MEGABYTE
    overlapping = bytearray(packed({"a": bytes(9_999), "b": bytes(9_999)}))
    at = overlapping.rindex(b"PK\x01\x02")
    overlapping[at + 42 : at + 46] = bytes(4)
    return {
        "ZIP: overlapping members": bytes(overlapping),
        "ZIP: thirty thousand members": packed(
            {f"{n}": b"" for n in range(30_000)}, zipfile.ZIP_STORED
        ),
        "ZIP: names that lead out": packed(
            {"../" * 50 + "etc/passwd": b"x", "/etc/shadow": b"x", "C:\\x": b"x"}
        ),
        "ZIP: a name of 60,000 characters": packed({"x" * 60_000: b"x"}),
        "TAR: a header of 400 MB": header.tobuf() + bytes(MEGABYTE),
        "TAR: bzip2 of zeros": bz2.compress(bytes(100 * MEGABYTE)),
        "TAR: links to themselves": links(),
        "GZIP: within gzip within gzip": gzip.compress(
            gzip.compress(gzip.compress(bytes(50 * MEGABYTE)))
        ),
        "GZIP: ten thousand members": gzip.compress(b"") * 10_000,
        "7Z: a header alone": b"7z\xbc\xaf\x27\x1c" + bytes(26),
    }


def links() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            info = tarfile.TarInfo("loop")
            info.type, info.linkname = kind, "loop"
            archive.addfile(info)
    return out.getvalue()


def pictures() -> dict[str, bytes]:
    def png(width: int, height: int) -> bytes:
        head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
        data = b"IDAT" + zlib.compress(bytes(MEGABYTE))
        chunks = (
            struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
            for chunk in (head, data, b"IEND")
        )
        return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)

    gif = io.BytesIO()
    Image.new("P", (4, 4)).save(gif, "GIF")
    frame = gif.getvalue()[gif.getvalue().index(b",") : -1]
    tiff = b"II*\0" + struct.pack("<LHHHLLL", 8, 1, 256, 4, 1, 10, 8)
    return {
        "PNG: 2^31 x 2^31": png(2**31 - 1, 2**31 - 1),
        "PNG: 30,000 x 30,000": png(30_000, 30_000),
        "PNG: no rows": png(0, 0),
        "GIF: fifty thousand frames": gif.getvalue()[:-1] + frame * 50_000 + b";",
        "TIFF: a directory that follows itself": tiff,
        "JPEG: a header alone": b"\xff\xd8\xff\xe0" + bytes(20),
        "WEBP: a size that lies": b"RIFF\xff\xff\xff\xffWEBPVP8 \xff\xff\xff\xff" + bytes(40),
        "MP4: boxes in boxes": struct.pack(">L4s4s", 12, b"ftyp", b"isom")
        + b"".join(struct.pack(">L4s", 8 * (20_000 - n), b"moov") for n in range(20_000)),
        "MP4: boxes without end": struct.pack(">L4s4s", 12, b"ftyp", b"isom")
        + struct.pack(">L4s", 8, b"free") * 200_000,
        "Matroska: sizes unknown": b"\x1a\x45\xdf\xa3\x80"
        + b"\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff" * 1_000,
        "WAV: chunks of no size": b"RIFF\0\0\0\0WAVE" + b"fmt \0\0\0\0" * 100_000,
        "MP3: a tag of 256 MB": b"ID3\4\0\0\x7f\x7f\x7f\x7f" + bytes(1_000),
    }
