"""The router: what bytes are, whatever they are called."""

# ruff: noqa: E501 - quotes files

import io
import json
import lzma
import pickle
import plistlib
import random
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest

from fetchstash.handlers import Decision, built_in, detect_content_kind, format_of, route_file

pytestmark = pytest.mark.whole

OOXML = "application/vnd.openxmlformats-officedocument."
DOCX, XLSX, PPTX = (
    f"{OOXML}wordprocessingml.document",
    f"{OOXML}spreadsheetml.sheet",
    f"{OOXML}presentationml.presentation",
)
OCTETS = "application/octet-stream"


def zipped(*names: str, mimetype: str = "") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        if mimetype:
            archive.writestr("mimetype", mimetype, zipfile.ZIP_STORED)
        for name in names:
            archive.writestr(name, name * 50)
    return file.getvalue()


def tarred() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"))
    return file.getvalue()


PDF = b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< >>\nstartxref\n9\n%%EOF\n"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(200))
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF" + bytes(range(200))
GIF = b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\4\1\0\0\0\0,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"
DOCX_BYTES = zipped("[Content_Types].xml", "_rels/.rels", "word/document.xml")
XLSX_BYTES = zipped("[Content_Types].xml", "_rels/.rels", "xl/workbook.xml")
PPTX_BYTES = zipped("[Content_Types].xml", "_rels/.rels", "ppt/presentation.xml")
EPUB = zipped("META-INF/container.xml", mimetype="application/epub+zip")
ODS = zipped("content.xml", mimetype="application/vnd.oasis.opendocument.spreadsheet")
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
OLE = OLE_MAGIC + bytes(500) + "WordDocument".encode("utf-16-le") + bytes(500)
MP3 = b"\xff\xfb\x90\x64" + bytes(range(256)) * 4
MP4 = b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + bytes(300)
HTML = b"<!DOCTYPE html>\n<html><head><title>t</title></head><body><p>hello</p></body></html>"
JSON = json.dumps({"a": [1, 2, {"b": None}], "text": "x [y] {z}"}).encode()
JSONL = b'{"a": 1}\n{"a": 2}\n{"a": 3}\n'
CSV = b"name,age,town\nann,3,ulm\nbob,4,bonn\ncy,5,kiel\ndee,6,graz\n"
RSS = b'<?xml version="1.0"?>\n<rss version="2.0"><channel><title>t</title></channel></rss>'
RSS_1 = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns="http://purl.org/rss/1.0/"><channel><title>t</title></channel></rdf:RDF>"""
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"><rect/></svg>'
MAIL = (
    b"Received: from a by b\r\nFrom: a@example.org\r\nTo: b@example.org\r\n"
    b"Subject: hi\r\n\r\nhello\r\n"
)
RTF = b"{\\rtf1\\ansi hello}"
TEXT = b"Dear reader,\n\nthis is a plain letter, with nothing more to it.\n"
NOTEBOOK = json.dumps({"cells": [{"cell_type": "code", "source": ["1"]}], "nbformat": 4}).encode()
NOISE = bytes((i * 197 + i * i * 31 + (i >> 3)) % 256 for i in range(4000))
PYTHON = b"#!/usr/bin/env python3\nprint('hi')\n"

MISLABELLED = {
    "DOCX as octets": (DOCX_BYTES, OCTETS, "/a", "office_doc", DOCX),
    "XLSX as ZIP": (XLSX_BYTES, "application/zip", "/a", "spreadsheet", XLSX),
    "PPTX as HTML": (PPTX_BYTES, "text/html", "/a", "office_doc", PPTX),
    "EPUB as ZIP": (EPUB, "application/zip", "/a.zip", "office_doc", "application/epub+zip"),
    "ODS as octets": (
        ODS,
        OCTETS,
        "/a",
        "spreadsheet",
        "application/vnd.oasis.opendocument.spreadsheet",
    ),
    "DOCX as DOC": (DOCX_BYTES, "application/msword", "/a.doc", "office_doc", DOCX),
    "DOC as octets": (OLE, OCTETS, "/a", "office_doc", "application/msword"),
    "PDF as HTML": (PDF, "text/html", "/a", "pdf", "application/pdf"),
    "PDF as text": (PDF, "text/plain", "/a.txt", "pdf", "application/pdf"),
    "PDF as octets": (PDF, OCTETS, "/a", "pdf", "application/pdf"),
    "PDF without a label": (PDF, "", "/a", "pdf", "application/pdf"),
    "PDF after a mark and a line": (
        b"\xef\xbb\xbf\n" + PDF,
        "text/plain",
        "/a",
        "pdf",
        "application/pdf",
    ),
    "PNG as PDF": (PNG, "application/pdf", "/a.pdf", "image", "image/png"),
    "JPEG as PNG": (JPEG, "image/png", "/a.png", "image", "image/jpeg"),
    "GIF as HTML": (GIF, "text/html", "/a.html", "image", "image/gif"),
    "MP3 as text": (MP3, "text/plain", "/a", "audio", "audio/mpeg"),
    "MP4 as octets": (MP4, OCTETS, "/a", "video", "video/mp4"),
    "TAR as text": (tarred(), "text/plain", "/a.txt", "archive", "application/x-tar"),
    "gzip as JSON": (
        b"\x1f\x8b\x08\0" + NOISE,
        "application/json",
        "/a.json",
        "archive",
        "application/gzip",
    ),
    "JSON as HTML": (JSON, "text/html; charset=utf-8", "/api", "json", "application/json"),
    "JSON as text": (JSON, "text/plain", "/api", "json", "application/json"),
    "JSON as JavaScript": (JSON, "application/javascript", "/api", "json", "application/json"),
    "JSON Lines as JSON": (JSONL, "application/json", "/a", "jsonl", "application/jsonl"),
    "JSON Lines as octets": (JSONL, OCTETS, "/a", "jsonl", "application/jsonl"),
    "notebook as JSON": (
        NOTEBOOK,
        "application/json",
        "/a",
        "notebook",
        "application/x-ipynb+json",
    ),
    "notebook as text": (
        NOTEBOOK,
        "text/plain",
        "/a.ipynb",
        "notebook",
        "application/x-ipynb+json",
    ),
    "HTML as text": (HTML, "text/plain", "/a", "html", "text/html"),
    "HTML as JSON": (HTML, "application/json", "/api", "html", "text/html"),
    "HTML as PDF": (HTML, "application/pdf", "/a.pdf", "html", "text/html"),
    "HTML as PNG": (HTML, "image/png", "/a.png", "html", "text/html"),
    "HTML as CSV": (HTML, "text/csv", "/a.csv", "html", "text/html"),
    "CSV as text": (CSV, "text/plain", "/a.csv", "csv", "text/csv"),
    "CSV as octets without a name": (CSV, OCTETS, "/download", "csv", "text/csv"),
    "CSV as HTML": (CSV, "text/html", "/a.csv", "csv", "text/csv"),
    "feed as HTML": (RSS, "text/html", "/feed", "xml", "application/rss+xml"),
    "feed as XML": (RSS, "text/xml", "/feed", "xml", "application/rss+xml"),
    "RSS 1.0": (RSS_1, "text/xml", "/feed", "xml", "application/rss+xml"),
    "RDF that knows RSS": (
        RSS_1.replace(b"xmlns=", b"xmlns:rss="),
        "text/xml",
        "/feed",
        "xml",
        "application/rdf+xml",
    ),
    "SVG as text": (SVG, "text/plain", "/a", "image", "image/svg+xml"),
    "SVG as PNG": (SVG, "image/png", "/a.png", "image", "image/svg+xml"),
    "mail as text": (MAIL, "text/plain", "/a", "email", "message/rfc822"),
    "RTF as DOC": (RTF, "application/msword", "/a.doc", "office_doc", "application/rtf"),
    "text as octets": (TEXT, OCTETS, "/a", "text", "text/plain"),
    "text as PDF": (TEXT, "application/pdf", "/a.pdf", "text", "text/plain"),
    "text as HTML": (TEXT, "text/html", "/a", "text", "text/plain"),
    "script as octets": (PYTHON, OCTETS, "/a", "code", "text/x-python"),
    "noise as text": (NOISE, "text/plain", "/a.txt", "unknown_binary", OCTETS),
    "noise as HTML": (NOISE, "text/html", "/a", "unknown_binary", OCTETS),
    "noise as PDF": (NOISE, "application/pdf", "/a.pdf", "unknown_binary", OCTETS),
    "noise as JSON": (NOISE, "application/json", "/a.json", "unknown_binary", OCTETS),
}


def route(data: bytes, label: str, url: str, *, shadow: bool = False) -> Decision:
    return detect_content_kind(
        {"Content-Type": label} if label else {},
        data,
        f"https://example.org{url}",
        complete=True,
        shadow=shadow,
    )


@pytest.mark.parametrize("case", MISLABELLED)
def test_a_mislabelled_file_is_routed_by_what_it_is(case: str, tmp_path: Path) -> None:
    data, label, url, kind, media_type = MISLABELLED[case]
    path = tmp_path / "body"
    path.write_bytes(data)
    of_file = route_file(path, {"content-type": label}, f"https://example.org{url}")
    for decision in (route(data, label, url), of_file):
        assert (decision.kind, decision.media_type) == (kind, media_type), decision


REASONS = {
    "a specific label and the bytes agree": (PDF, "application/pdf", "/a", "mime", False),
    "a signature without a label": (PDF, OCTETS, "/a", "magic", False),
    "a signature against the label": (PDF, "text/html", "/a", "magic", True),
    "a signature against text": (PDF, "text/plain", "/a", "magic", True),
    "members say more than a ZIP": (DOCX_BYTES, "application/zip", "/a", "magic", False),
    "structure without a label": (JSON, "", "/a", "structure", False),
    "structure against the label": (JSON, "text/html", "/a", "structure", True),
    "a more specific label of one family": (JSON, "application/ld+json", "/a", "mime", False),
    "a more specific name of one family": (JSON, "text/html", "/a.ipynb", "structure", True),
    "the extension of a text": (TEXT, "", "/a.md", "extension", False),
    "the text test alone": (TEXT, "", "/a", "structure", False),
    "nothing": (NOISE, "", "/a", "fallback", False),
    "noise that claims to be text": (NOISE, "text/plain", "/a", "fallback", True),
    "a label of a format without signature": (NOISE, "audio/x-foo", "/a", "mime", False),
}


@pytest.mark.parametrize(
    ("data", "label", "url", "by", "mismatch"), REASONS.values(), ids=REASONS.keys()
)
def test_the_decision_records_reason_and_mismatch(
    data: bytes, label: str, url: str, by: str, *, mismatch: bool
) -> None:
    decision = route(data, label, url)
    assert (decision.decided_by, decision.mismatch) == (by, mismatch), decision
    assert decision.evidence
    assert decision.declared_type == label


@pytest.mark.parametrize(
    ("value", "media_type", "charset"),
    [
        ("text/html; charset=UTF-8", "text/html", "utf-8"),
        ('Text/HTML;level=1; Charset="Shift_JIS"', "text/html", "shift_jis"),
        (" application/json ", "application/json", ""),
        ("text/html, text/plain", "text/html", ""),
        ("nonsense", "", ""),
        ("", "", ""),
        ("x" * 10_000 + "/y", "", ""),
    ],
)
def test_a_label_is_read_however_it_is_written(value: str, media_type: str, charset: str) -> None:
    decision = detect_content_kind({"CONTENT-type": value}, TEXT, "")
    assert (decision.declared_type, decision.charset) == (media_type, charset)


URLS = ("", "x y", "http://[bad", "https://a.org/a%2Fb.csv?x=.pdf#.html", "file.CSV", "/a/.csv")


@pytest.mark.parametrize("url", URLS)
def test_the_extension_is_read_from_any_url(url: str) -> None:
    decision = detect_content_kind({}, TEXT, url)
    assert (decision.kind == "csv") is url.lower().partition("?")[0].endswith(".csv")


@pytest.mark.parametrize(
    ("label", "url", "kind", "by"),
    [
        ("application/pdf", "/a.pdf", "pdf", "mime"),
        ("", "/a.csv", "csv", "extension"),
        ("", "/a", "text", "fallback"),
    ],
)
def test_an_empty_file_is_routed_by_label_and_name(
    label: str, url: str, kind: str, by: str
) -> None:
    decision = route(b"", label, url)
    assert (decision.kind, decision.decided_by, decision.mismatch) == (kind, by, False)


SHADOWED = {
    "PDF as HTML is not decoded": (
        PDF + NOISE,
        "text/html",
        "unknown_binary",
        "pdf (application/pdf, magic)",
    ),
    "PNG as text is not decoded": (PNG, "text/plain", "unknown_binary", "image (image/png, magic)"),
    "JSON as HTML is HTML": (JSON, "text/html", "html", "json (application/json, structure)"),
    "HTML as text is text": (HTML, "text/plain", "text", "html (text/html, structure)"),
    "HTML without a label is text": (HTML, "", "text", "html (text/html, structure)"),
    "noise": (NOISE, "", "unknown_binary", f"unknown_binary ({OCTETS}, fallback)"),
    "DOCX as ZIP is a ZIP": (
        DOCX_BYTES,
        "application/zip",
        "archive",
        f"office_doc ({DOCX}, magic)",
    ),
}


@pytest.mark.parametrize(("data", "label", "kind", "own"), SHADOWED.values(), ids=SHADOWED.keys())
def test_the_label_decides_in_shadow_mode_and_the_routers_decision_is_recorded(
    data: bytes, label: str, kind: str, own: str
) -> None:
    decision = route(data, label, "/a", shadow=True)
    assert (decision.kind, decision.shadow) == (kind, own)


def kind_of(media_type: str) -> str | None:
    named = built_in().by_label(media_type)
    return named.kind if named else None


def test_every_text_media_type_names_its_kind() -> None:
    assert all(
        kind_of(media_type) == declared.kind
        for declared in built_in().all
        if declared.bytes_are_text
        for media_type in declared.media_types
        if "*" not in media_type and media_type != "text/plain"
    )
    assert kind_of("application/vnd.api+json") == "json"
    assert kind_of("application/foo+xml") == "xml"
    assert kind_of("application/openapi+yaml") == "yaml"
    assert kind_of("text/x-anything") == "code"
    assert kind_of("text/anything") == "text"
    assert kind_of("text/plain") is None
    assert kind_of("application/unheard-of") is None


@pytest.mark.parametrize(
    ("case", "word"),
    [
        ("PDF as HTML", "PDF"),
        ("DOCX as octets", "DOCX"),
        ("XLSX as ZIP", "XLSX"),
        ("PPTX as HTML", "PPTX"),
        ("EPUB as ZIP", "EPUB"),
        ("ODS as octets", "ODS"),
        ("DOC as octets", "DOC"),
        ("PNG as PDF", "PNG image"),
        ("JPEG as PNG", "JPEG image"),
        ("MP3 as text", "MP3 audio"),
        ("MP4 as octets", "MP4 video"),
        ("TAR as text", "TAR"),
        ("gzip as JSON", "gzip archive"),
        ("JSON as HTML", "JSON"),
        ("JSON Lines as JSON", "JSON Lines"),
        ("HTML as text", "HTML page"),
        ("CSV as text", "CSV"),
        ("feed as HTML", "RSS feed"),
        ("SVG as text", "SVG image"),
        ("mail as text", "email"),
        ("RTF as DOC", "RTF"),
        ("text as octets", "text"),
        ("script as octets", "Python code"),
        ("noise as text", "binary"),
        ("notebook as JSON", "notebook"),
    ],
)
def test_a_document_has_a_word_for_people(case: str, word: str) -> None:
    data, label, url, _, _ = MISLABELLED[case]
    decision = route(data, label, url)
    assert format_of(decision).name(decision.media_type) == word


def test_members_are_found_behind_a_self_extractor_and_before_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "x"
    file = io.BytesIO(DOCX_BYTES)
    with zipfile.ZipFile(file, "a") as archive:
        archive.comment = b"a comment of some length" * 100
    path.write_bytes(b"PK\3\4 stub " * 9 + file.getvalue())
    decision = route_file(path, {}, "")
    assert (decision.kind, format_of(decision).word) == ("office_doc", "DOCX")


DAMAGED = {
    "cut in its first header": XLSX_BYTES[:30],
    "cut in its directory": XLSX_BYTES[:-30],
    "with an end that lies": XLSX_BYTES[:-10] + b"\xff" * 10,
    "of zeros": b"PK\3\4" + bytes(26),
    "without members": b"PK\5\6" + bytes(18),
    "of headers alone": (b"PK\3\4" + bytes(26)) * 3_000,
    "OLE, cut": OLE[:512],
    "OLE, cut in its header": OLE[:9],
    "OLE with sectors that are nowhere": OLE[:8] + b"\xff" * 1_000,
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_container_is_still_a_container(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    decision = route_file(path, {}, "")
    assert decision.decided_by == "magic"
    assert decision.kind in {"archive", "spreadsheet", "unknown_binary"}


# --- Files that look like something else: texts that begin like binaries, binaries called text.
BYTES_OF_NOISE = random.Random(5).randbytes(4_000)
MHTML = (
    b"From: <Saved by Blink>\r\nSubject: Page\r\nDate: Fri, 1 May 2026 00:00:00 -0000\r\nMIME-Version: 1.0\r\n"
    b'Content-Type: multipart/related;\r\n\ttype="text/html";\r\n\tboundary="b"\r\n\r\n'
    b"--b\r\n\r\n<html><p>hi</p></html>\r\n--b--\r\n"
)
XHTML = b'<?xml version="1.0"?><!DOCTYPE html PUBLIC "x" "y"><html xmlns="http://www.w3.org/1999/xhtml"><body><p>x</p></body></html>'
PO = b'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "a"\nmsgstr "b"\n'

# What it is: its bytes, the label, the URL's path, and the kind that it must get.
TEXTS: dict[str, tuple[bytes, str, str, str]] = {
    "JSON with a mark": (b'\xef\xbb\xbf{"a": [1, 2, 3]}', OCTETS, "/a", "json"),
    "JSON that is a number": (b"42", "application/json", "/api", "json"),
    "JSON that is a string": (b'"ok"', "application/json", "/api", "json"),
    "JSON behind a guard": (b")]}'\n{\"a\": 1}", "application/json", "/api", "json"),
    "JSON in a call": (b'callback({"a": 1});', "application/javascript", "/api", "code"),
    "a source map": (b'{"version":3,"sources":["a"],"mappings":"AAAA"}', OCTETS, "/a.js.map", "json"),
    "TypeScript as MPEG-TS": (b"export interface A { b: string }\nexport const c = 1;\n", "video/mp2t", "/src/a.ts", "code"),
    "TypeScript under another name of it": (b"import x from 'y';\n", "video/vnd.dlna.mpeg-tts", "/a.ts", "code"),
    "PO": (PO, OCTETS, "/de.po", "text"),
    "TeX": (b"\\documentclass{article}\n\\begin{document}\nHello $x^2$\n\\end{document}\n", OCTETS, "/a.tex", "text"),
    "SVG with a mark": (b'\xef\xbb\xbf<svg xmlns="http://www.w3.org/2000/svg"><text>a</text></svg>', "image/png", "/a", "image"),
    "XHTML as XML": (XHTML, "application/xml", "/a", "html"),
    "MHTML": (MHTML, "multipart/related", "/a.mhtml", "office_doc"),
    "mbox": (b"From a@b.c Fri May  1 00:00:00 2026\nFrom: a@b.c\nTo: d@e.f\nSubject: x\n\nhello\n", OCTETS, "/a", "email"),
    "vCard": (b"BEGIN:VCARD\r\nVERSION:4.0\r\nFN:Ann\r\nEND:VCARD\r\n", OCTETS, "/a.vcf", "text"),
    "a calendar as HTML": (b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nEND:VCALENDAR\r\n", "text/html", "/cal", "text"),
    "CSV with a NUL": (b"a,b,c\n1,\0,3\n" + b"4,5,6\n" * 200, "text/csv", "/a.csv", "csv"),
    "CSV as Excel": (b"a,b,c\n1,2,3\n4,5,6\n7,8,9\n", "application/vnd.ms-excel", "/a.csv", "csv"),
    "CSV of Excel in UTF-16": ("a\tb\n1\t2\n".encode("utf-16"), "application/vnd.ms-excel", "/a.csv", "csv"),
    "an HTML table as Excel": (b"<html><table><tr><td>1</td></tr></table></html>", "application/vnd.ms-excel", "/a.xls", "html"),
    "an XML spreadsheet as Excel": (b'<?xml version="1.0"?><Workbook xmlns="u"/>', "application/vnd.ms-excel", "/a.xls", "xml"),
    "CSV with spaces, of names": (b"Ann, Ulm, red\nBo, Bonn, blue\nCy, Kiel, green\nDi, Ulm, red\n", OCTETS, "/a", "csv"),
    "CSV with spaces, of figures": (b"Where the two rivers meet. North, 3, 5\n" * 4, OCTETS, "/a", "csv"),
    "CSV of sentences": (b"The gate is shut. Call,the ward is open. Come,No\n" * 4, OCTETS, "/a", "csv"),
    "prose of two commas a line": (b"When the gate opens, the ward fills, and no one\nin the town, or in the mill, can say why\n" * 3, OCTETS, "/a", "text"),
    "short prose of two commas a line": (b"Salt, wind, rain.\nMud, then night.,\n" * 3, OCTETS, "/a", "text"),
    "a Dockerfile": (b"FROM debian\nRUN true\n", OCTETS, "/Dockerfile", "code"),
    "a fragment of HTML": (b"<div class=x>hello <b>w</b></div>", "text/html", "/a", "html"),
    "a text of PACK": (b"PACK your bags\n" * 9, "text/plain", "/a", "text"),
    "a text of RIFF": (b"RIFFs and WAVEs of text\n" * 9, "text/plain", "/a", "text"),
    "a text of OggS": (b"OggS is how a container begins.\n" * 9, "text/plain", "/a", "text"),
    "a text of fLaC": (b"fLaC is lossless.\n" * 9, "text/plain", "/a", "text"),
    "a text of wOFF": (b"wOFF is a font.\n" * 9, "text/plain", "/a", "text"),
    "a text of PAR1": (b"PAR1 and PAR2 recovery files\n" * 9, "text/plain", "/a", "text"),
    "a text of 070701": (b"070701 was a day\n" * 9, "text/plain", "/a", "text"),
    "a text of 7z": (b"7z is an archiver\n" * 9, "text/plain", "/a", "text"),
    "a text of !<arch>": (b"!<arch> is what an archive begins with\n" * 3, "text/plain", "/a", "text"),
    "a text of G every 188": (b"G" * 188 * 3, "video/mp2t", "/a.ts", "code"),
}  # fmt: skip

UNKNOWN = "unknown_binary"
TRANSPORT = b"".join(b"\x47\x40\0\x10" + BYTES_OF_NOISE[:184] for _ in range(20))
TABLE = (
    b"\x03\x7e\x05\x01"
    + struct.pack("<LHH", 3, 65, 20)
    + bytes(20)
    + b"NAME"
    + bytes(7)
    + b"C"
    + bytes(20)
    + b"\r"
    + b" Ann       " * 30
)
# What it is: its bytes, the URL's path, and the kind that it must get; each is labelled text/plain.
BINARIES: dict[str, tuple[bytes, str, str]] = {
    "binary property list": (
        plistlib.dumps({"a": [1, {"b": b"x" * 50}]}, fmt=plistlib.FMT_BINARY),
        "/a.plist",
        UNKNOWN,
    ),
    "Java class": (b"\xca\xfe\xba\xbe\0\0\0\x34" + BYTES_OF_NOISE, "/A.class", UNKNOWN),
    "Mach-O for two processors": (b"\xca\xfe\xba\xbe\0\0\0\2" + BYTES_OF_NOISE, "/a", UNKNOWN),
    "Mach-O of 64 bits": (b"\xcf\xfa\xed\xfe\7\0\0\1" + BYTES_OF_NOISE, "/a", UNKNOWN),
    "Mach-O of 32 bits": (b"\xce\xfa\xed\xfe\7\0\0\0" + BYTES_OF_NOISE, "/a", UNKNOWN),
    "ELF": (b"\x7fELF\2\1\1\0" + BYTES_OF_NOISE, "/a", UNKNOWN),
    "PE": (b"MZ\x90\0\3\0\0\0" + BYTES_OF_NOISE, "/a", UNKNOWN),
    "WebAssembly": (b"\0asm\1\0\0\0" + BYTES_OF_NOISE, "/a", UNKNOWN),
    "SQLite": (b"SQLite format 3\0\x10\0" + BYTES_OF_NOISE, "/a", "spreadsheet"),
    "Parquet": (b"PAR1\x15\4\x15" + BYTES_OF_NOISE, "/a", "spreadsheet"),
    "Avro": (b"Obj\1\4\x14avro.codec" + BYTES_OF_NOISE, "/a", UNKNOWN),
    "a pack of git": (b"PACK\0\0\0\2\0\0\1\0" + BYTES_OF_NOISE, "/a.pack", UNKNOWN),
    "an index of git": (b"DIRC\0\0\0\2\0\0\1\0" + BYTES_OF_NOISE, "/index", UNKNOWN),
    "ISO image": (bytes(32_768) + b"\1CD001\1\0" + BYTES_OF_NOISE, "/a.iso", "archive"),
    "Debian package": (
        b"!<arch>\ndebian-binary   1342943816  0     0     100644  4         `\n2.0\n"
        + BYTES_OF_NOISE,
        "/a.deb",
        "archive",
    ),
    "RPM": (b"\xed\xab\xee\xdb\3\0\0\0" + BYTES_OF_NOISE, "/a.rpm", "archive"),
    "cabinet": (b"MSCF\0\0\0\0\1" + BYTES_OF_NOISE, "/a.cab", "archive"),
    "WOFF2": (b"wOF2\0\1\0\0" + BYTES_OF_NOISE, "/a", UNKNOWN),
    "TrueType": (b"\0\1\0\0\0\x0f\0\x80" + BYTES_OF_NOISE, "/a", UNKNOWN),
    "OpenType": (b"OTTO\0\x0b\0\x80" + BYTES_OF_NOISE, "/a", UNKNOWN),
    "HEIC": (b"\0\0\0\x18ftypheic\0\0\0\0" + BYTES_OF_NOISE, "/a", "image"),
    "AVIF": (b"\0\0\0\x1cftypavif\0\0\0\0" + BYTES_OF_NOISE, "/a", "image"),
    "WebP": (b"RIFF\0\1\0\0WEBPVP8 " + BYTES_OF_NOISE, "/a", "image"),
    "JPEG XL": (b"\xff\x0a\xfa\x1f" + BYTES_OF_NOISE, "/a", "image"),
    "JPEG XL in a box": (b"\0\0\0\x0cJXL \r\n\x87\n" + BYTES_OF_NOISE, "/a", "image"),
    "FLAC": (b"fLaC\0\0\0\x22" + BYTES_OF_NOISE, "/a", "audio"),
    "Opus": (b"OggS\0\2" + bytes(22) + b"OpusHead" + BYTES_OF_NOISE, "/a", "audio"),
    "WebM": (
        b"\x1aE\xdf\xa3\x9fB\x86\x81\1B\xf7\x81\1B\x82\x84webm" + BYTES_OF_NOISE,
        "/a",
        "video",
    ),
    "MPEG-TS called TypeScript": (TRANSPORT, "/a.ts", "video"),
    "Python bytecode": (b"\xa7\r\r\n\0\0\0\0" + BYTES_OF_NOISE, "/a.pyc", UNKNOWN),
    "a pickle": (pickle.dumps({"a": list(range(999))}), "/a.pkl", UNKNOWN),
    "LZMA alone": (lzma.compress(b"abc" * 999, format=lzma.FORMAT_ALONE), "/a.lzma", UNKNOWN),
    "zlib": (zlib.compress(BYTES_OF_NOISE), "/a", UNKNOWN),
    "Flash": (b"CWS\x0a\0\0\1\0" + BYTES_OF_NOISE, "/a.swf", UNKNOWN),
    ".DS_Store": (b"\0\0\0\1Bud1\0\0" + BYTES_OF_NOISE, "/.DS_Store", UNKNOWN),
    "MO": (
        struct.pack("<7L", 0x950412DE, 0, 3, 28, 52, 0, 76) + bytes(60) + b"hello\0world\0",
        "/de.mo",
        UNKNOWN,
    ),
    "a capture of packets": (b"\xd4\xc3\xb2\xa1\2\0\4\0" + BYTES_OF_NOISE, "/a.pcap", UNKNOWN),
    "dBase": (TABLE, "/a.dbf", UNKNOWN),
    "Lua bytecode": (b"\x1bLua\x54\0\x19\x93" + BYTES_OF_NOISE, "/a.luac", UNKNOWN),
    "protocol buffers": (b"\x08\x96\x01\x12\x07testing\x1a\x03\x01\x02\x03" * 50, "/a.pb", UNKNOWN),
    "OpenPGP": (b"\x85\x02\x0c\x03" + BYTES_OF_NOISE, "/a.gpg", UNKNOWN),
    "a certificate in DER": (
        b"\x30\x82\x03\x7f\x30\x82\x02\x67" + BYTES_OF_NOISE[:900],
        "/a.crt",
        UNKNOWN,
    ),
    "zeros": (bytes(9_999), "/a", UNKNOWN),
    "ones": (b"\xff" * 9_999, "/a", UNKNOWN),
    "floats": (struct.pack("<999f", *(n / 7 for n in range(999))), "/a", UNKNOWN),
    "samples of sound": (
        struct.pack("<2000h", *(900 * (n % 50 - 25) for n in range(2_000))),
        "/a.raw",
        UNKNOWN,
    ),
    "small numbers of 32 bits": (struct.pack("<999L", *range(999)), "/a", UNKNOWN),
    "noise": (BYTES_OF_NOISE, "/a.txt", UNKNOWN),
    "noise among letters": (
        bytes(b if n % 3 else 32 + b % 95 for n, b in enumerate(BYTES_OF_NOISE)),
        "/a.txt",
        UNKNOWN,
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_text_that_looks_like_a_binary_is_routed_as_text(case: str) -> None:
    data, label, path, kind = TEXTS[case]
    decision = detect_content_kind(
        {"content-type": label}, data, f"https://example.org{path}", complete=True
    )
    assert decision.kind == kind, decision


@pytest.mark.parametrize(
    "label", ["text/plain", "text/html; charset=iso-8859-1", "application/json", ""]
)
@pytest.mark.parametrize("case", BINARIES)
def test_a_binary_is_never_routed_as_text_whatever_its_label(case: str, label: str) -> None:
    data, path, kind = BINARIES[case]
    decision = detect_content_kind(
        {"content-type": label} if label else {},
        data[:65_536],
        f"https://example.org{path}",
        complete=True,
    )
    assert decision.kind == kind, decision
