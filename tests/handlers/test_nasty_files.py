"""Files that look like something else: texts that begin like binaries, binaries called text."""
# ruff: noqa: E501 - quotes files

import lzma
import pickle
import plistlib
import random
import struct
import zlib

import pytest

from fetchstash.handlers import detect_content_kind

OCTETS = "application/octet-stream"
NOISE = random.Random(5).randbytes(4_000)
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
TRANSPORT = b"".join(b"\x47\x40\0\x10" + NOISE[:184] for _ in range(20))
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
    "binary property list": (plistlib.dumps({"a": [1, {"b": b"x" * 50}]}, fmt=plistlib.FMT_BINARY), "/a.plist", UNKNOWN),
    "Java class": (b"\xca\xfe\xba\xbe\0\0\0\x34" + NOISE, "/A.class", UNKNOWN),
    "Mach-O for two processors": (b"\xca\xfe\xba\xbe\0\0\0\2" + NOISE, "/a", UNKNOWN),
    "Mach-O of 64 bits": (b"\xcf\xfa\xed\xfe\7\0\0\1" + NOISE, "/a", UNKNOWN),
    "Mach-O of 32 bits": (b"\xce\xfa\xed\xfe\7\0\0\0" + NOISE, "/a", UNKNOWN),
    "ELF": (b"\x7fELF\2\1\1\0" + NOISE, "/a", UNKNOWN),
    "PE": (b"MZ\x90\0\3\0\0\0" + NOISE, "/a", UNKNOWN),
    "WebAssembly": (b"\0asm\1\0\0\0" + NOISE, "/a", UNKNOWN),
    "SQLite": (b"SQLite format 3\0\x10\0" + NOISE, "/a", "spreadsheet"),
    "Parquet": (b"PAR1\x15\4\x15" + NOISE, "/a", "spreadsheet"),
    "Avro": (b"Obj\1\4\x14avro.codec" + NOISE, "/a", UNKNOWN),
    "a pack of git": (b"PACK\0\0\0\2\0\0\1\0" + NOISE, "/a.pack", UNKNOWN),
    "an index of git": (b"DIRC\0\0\0\2\0\0\1\0" + NOISE, "/index", UNKNOWN),
    "ISO image": (bytes(32_768) + b"\1CD001\1\0" + NOISE, "/a.iso", "archive"),
    "Debian package": (b"!<arch>\ndebian-binary   1342943816  0     0     100644  4         `\n2.0\n" + NOISE, "/a.deb", "archive"),
    "RPM": (b"\xed\xab\xee\xdb\3\0\0\0" + NOISE, "/a.rpm", "archive"),
    "cabinet": (b"MSCF\0\0\0\0\1" + NOISE, "/a.cab", "archive"),
    "WOFF2": (b"wOF2\0\1\0\0" + NOISE, "/a", UNKNOWN),
    "TrueType": (b"\0\1\0\0\0\x0f\0\x80" + NOISE, "/a", UNKNOWN),
    "OpenType": (b"OTTO\0\x0b\0\x80" + NOISE, "/a", UNKNOWN),
    "HEIC": (b"\0\0\0\x18ftypheic\0\0\0\0" + NOISE, "/a", "image"),
    "AVIF": (b"\0\0\0\x1cftypavif\0\0\0\0" + NOISE, "/a", "image"),
    "WebP": (b"RIFF\0\1\0\0WEBPVP8 " + NOISE, "/a", "image"),
    "JPEG XL": (b"\xff\x0a\xfa\x1f" + NOISE, "/a", "image"),
    "JPEG XL in a box": (b"\0\0\0\x0cJXL \r\n\x87\n" + NOISE, "/a", "image"),
    "FLAC": (b"fLaC\0\0\0\x22" + NOISE, "/a", "audio"),
    "Opus": (b"OggS\0\2" + bytes(22) + b"OpusHead" + NOISE, "/a", "audio"),
    "WebM": (b"\x1aE\xdf\xa3\x9fB\x86\x81\1B\xf7\x81\1B\x82\x84webm" + NOISE, "/a", "video"),
    "MPEG-TS called TypeScript": (TRANSPORT, "/a.ts", "video"),
    "Python bytecode": (b"\xa7\r\r\n\0\0\0\0" + NOISE, "/a.pyc", UNKNOWN),
    "a pickle": (pickle.dumps({"a": list(range(999))}), "/a.pkl", UNKNOWN),
    "LZMA alone": (lzma.compress(b"abc" * 999, format=lzma.FORMAT_ALONE), "/a.lzma", UNKNOWN),
    "zlib": (zlib.compress(NOISE), "/a", UNKNOWN),
    "Flash": (b"CWS\x0a\0\0\1\0" + NOISE, "/a.swf", UNKNOWN),
    ".DS_Store": (b"\0\0\0\1Bud1\0\0" + NOISE, "/.DS_Store", UNKNOWN),
    "MO": (struct.pack("<7L", 0x950412DE, 0, 3, 28, 52, 0, 76) + bytes(60) + b"hello\0world\0", "/de.mo", UNKNOWN),
    "a capture of packets": (b"\xd4\xc3\xb2\xa1\2\0\4\0" + NOISE, "/a.pcap", UNKNOWN),
    "dBase": (TABLE, "/a.dbf", UNKNOWN),
    "Lua bytecode": (b"\x1bLua\x54\0\x19\x93" + NOISE, "/a.luac", UNKNOWN),
    "protocol buffers": (b"\x08\x96\x01\x12\x07testing\x1a\x03\x01\x02\x03" * 50, "/a.pb", UNKNOWN),
    "OpenPGP": (b"\x85\x02\x0c\x03" + NOISE, "/a.gpg", UNKNOWN),
    "a certificate in DER": (b"\x30\x82\x03\x7f\x30\x82\x02\x67" + NOISE[:900], "/a.crt", UNKNOWN),
    "zeros": (bytes(9_999), "/a", UNKNOWN), "ones": (b"\xff" * 9_999, "/a", UNKNOWN),
    "floats": (struct.pack("<999f", *(n / 7 for n in range(999))), "/a", UNKNOWN),
    "samples of sound": (struct.pack("<2000h", *(900 * (n % 50 - 25) for n in range(2_000))), "/a.raw", UNKNOWN),
    "small numbers of 32 bits": (struct.pack("<999L", *range(999)), "/a", UNKNOWN),
    "noise": (NOISE, "/a.txt", UNKNOWN),
    "noise among letters": (bytes(b if n % 3 else 32 + b % 95 for n, b in enumerate(NOISE)), "/a.txt", UNKNOWN),
}  # fmt: skip


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
