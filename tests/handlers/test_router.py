"""The router: what bytes are, whatever they are called."""

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from fetchstash.handlers import Decision, detect_content_kind, route_file

OOXML = "application/vnd.openxmlformats-officedocument."
DOCX, XLSX, PPTX = f"{OOXML}wordprocessingml.document", f"{OOXML}spreadsheetml.sheet", f"{OOXML}presentationml.presentation"
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
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500) + "WordDocument".encode("utf-16-le") + bytes(500)
MP3 = b"\xff\xfb\x90\x64" + bytes(range(256)) * 4
MP4 = b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + bytes(300)
HTML = b"<!DOCTYPE html>\n<html><head><title>t</title></head><body><p>hello</p></body></html>"
JSON = json.dumps({"a": [1, 2, {"b": None}], "text": "x [y] {z}"}).encode()
JSONL = b'{"a": 1}\n{"a": 2}\n{"a": 3}\n'
CSV = b"name,age,town\nann,3,ulm\nbob,4,bonn\ncy,5,kiel\ndee,6,graz\n"
RSS = b'<?xml version="1.0"?>\n<rss version="2.0"><channel><title>t</title></channel></rss>'
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"><rect/></svg>'
MAIL = b"Received: from a by b\r\nFrom: a@example.org\r\nTo: b@example.org\r\nSubject: hi\r\n\r\nhello\r\n"
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
    "ODS as octets": (ODS, OCTETS, "/a", "spreadsheet", "application/vnd.oasis.opendocument.spreadsheet"),
    "DOCX as DOC": (DOCX_BYTES, "application/msword", "/a.doc", "office_doc", DOCX),
    "DOC as octets": (OLE, OCTETS, "/a", "office_doc", "application/msword"),
    "PDF as HTML": (PDF, "text/html", "/a", "pdf", "application/pdf"),
    "PDF as text": (PDF, "text/plain", "/a.txt", "pdf", "application/pdf"),
    "PDF as octets": (PDF, OCTETS, "/a", "pdf", "application/pdf"),
    "PDF without a label": (PDF, "", "/a", "pdf", "application/pdf"),
    "PDF after a mark and a line": (b"\xef\xbb\xbf\n" + PDF, "text/plain", "/a", "pdf", "application/pdf"),
    "PNG as PDF": (PNG, "application/pdf", "/a.pdf", "image", "image/png"),
    "JPEG as PNG": (JPEG, "image/png", "/a.png", "image", "image/jpeg"),
    "GIF as HTML": (GIF, "text/html", "/a.html", "image", "image/gif"),
    "MP3 as text": (MP3, "text/plain", "/a", "audio", "audio/mpeg"),
    "MP4 as octets": (MP4, OCTETS, "/a", "video", "video/mp4"),
    "TAR as text": (tarred(), "text/plain", "/a.txt", "archive", "application/x-tar"),
    "gzip as JSON": (b"\x1f\x8b\x08\0" + NOISE, "application/json", "/a.json", "archive", "application/gzip"),
    "JSON as HTML": (JSON, "text/html; charset=utf-8", "/api", "json", "application/json"),
    "JSON as text": (JSON, "text/plain", "/api", "json", "application/json"),
    "JSON as JavaScript": (JSON, "application/javascript", "/api", "json", "application/json"),
    "JSON Lines as JSON": (JSONL, "application/json", "/a", "jsonl", "application/jsonl"),
    "JSON Lines as octets": (JSONL, OCTETS, "/a", "jsonl", "application/jsonl"),
    "notebook as JSON": (NOTEBOOK, "application/json", "/a", "notebook", "application/x-ipynb+json"),
    "notebook as text": (NOTEBOOK, "text/plain", "/a.ipynb", "notebook", "application/x-ipynb+json"),
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
        {"Content-Type": label} if label else {}, data, f"https://example.org{url}", complete=True, shadow=shadow
    )


@pytest.mark.parametrize("case", MISLABELLED)
def test_a_mislabelled_file_is_routed_by_what_it_is(case: str) -> None:
    data, label, url, kind, media_type = MISLABELLED[case]
    decision = route(data, label, url)
    assert (decision.kind, decision.media_type) == (kind, media_type), decision


@pytest.mark.parametrize("case", MISLABELLED)
def test_a_file_on_disk_is_routed_like_its_bytes(case: str, tmp_path: Path) -> None:
    data, label, url, kind, media_type = MISLABELLED[case]
    path = tmp_path / "body"
    path.write_bytes(data)
    decision = route_file(path, {"content-type": label}, f"https://example.org{url}")
    assert (decision.kind, decision.media_type) == (kind, media_type), decision


@pytest.mark.parametrize(
    ("data", "label", "url", "by", "mismatch"),
    [
        pytest.param(PDF, "application/pdf", "/a", "mime", False, id="a specific label and the bytes agree"),
        pytest.param(PDF, OCTETS, "/a", "magic", False, id="a signature without a label"),
        pytest.param(PDF, "text/html", "/a", "magic", True, id="a signature against the label"),
        pytest.param(PDF, "text/plain", "/a", "magic", True, id="a signature against text"),
        pytest.param(DOCX_BYTES, "application/zip", "/a", "magic", False, id="members say more than a ZIP"),
        pytest.param(JSON, "", "/a", "structure", False, id="structure without a label"),
        pytest.param(JSON, "text/html", "/a", "structure", True, id="structure against the label"),
        pytest.param(JSON, "application/ld+json", "/a", "mime", False, id="a more specific label of one family"),
        pytest.param(TEXT, "", "/a.md", "extension", False, id="the extension of a text"),
        pytest.param(TEXT, "", "/a", "structure", False, id="the text test alone"),
        pytest.param(NOISE, "", "/a", "fallback", False, id="nothing"),
        pytest.param(NOISE, "text/plain", "/a", "fallback", True, id="noise that claims to be text"),
        pytest.param(NOISE, "audio/x-foo", "/a", "mime", False, id="a label of a format without signature"),
    ],
)
def test_the_reason_and_the_mismatch_are_on_record(data: bytes, label: str, url: str, by: str, *, mismatch: bool) -> None:
    decision = route(data, label, url)
    assert (decision.decided_by, decision.mismatch) == (by, mismatch), decision
    assert decision.evidence
    assert decision.declared_type == label
