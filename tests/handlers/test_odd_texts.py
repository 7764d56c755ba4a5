"""Uncommon texts are routed as text and decoded."""
# ruff: noqa: E501 - quotes texts

import codecs
import json
from pathlib import Path

import pytest

from fetchstash.handlers import decode, detect_content_kind, read_text

JAPANESE = (
    "これは日本語の文章です。漢字とかなが混ざっています。東京は日本の首都で、とても大きな町です。\n"
    * 3
)
CHINESE = "这是一个用中文写的句子。北京是中国的首都，也是一座很大的城市。我们今天学习汉字。\n" * 3
TAIWANESE = "這是一個用繁體中文寫的句子。臺北是一座很大的城市，我們今天學習漢字。\n" * 3
KOREAN = "이것은 한국어로 쓴 문장입니다. 서울은 한국의 수도이며 매우 큰 도시입니다.\n" * 3
RUSSIAN = (
    "Это предложение написано по-русски. Москва является столицей России и очень большим городом.\n"
    * 3
)
GREEK = "Αυτή είναι μια πρόταση στα ελληνικά. Η Αθήνα είναι η πρωτεύουσα της Ελλάδας.\n" * 3
HEBREW = "זהו משפט שנכתב בעברית. ירושלים היא עיר גדולה ויפה מאוד.\n" * 3
ARABIC = "هذه جملة مكتوبة باللغة العربية. القاهرة مدينة كبيرة جدا وجميلة.\n" * 3
THAI = "นี่คือประโยคที่เขียนเป็นภาษาไทย กรุงเทพเป็นเมืองหลวงของประเทศไทย\n" * 3
POLISH = (
    "Zażółć gęślą jaźń. Łódź jest dużym miastem w środkowej Polsce, a Kraków był stolicą.\n" * 3
)
GERMAN = (
    "Größere Städte an der Donau: Ulm, Regensburg, Linz. Die Straße führt über schöne Brücken.\n"
    * 3
)
FRENCH = "L’élève a reçu une pièce à l’école — déjà très tôt. Voilà où ça mène.\n" * 3
TURKISH = "İstanbul çok büyük bir şehirdir. Bugün hava güneşli ve ılık, ağaçlar yeşil.\n" * 3
BASE64 = (
    "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5ejAxMjM0NTY3ODkrLw==\n" * 4
)
LOG = "2024-05-01 12:00:00 INFO started\n2024-05-01 12:00:01 WARN slow\n"

ODD: dict[str, tuple[bytes, str, str]] = {
    # charsets, with the label that a server sends and without one
    "Shift_JIS": (JAPANESE.encode("shift_jis"), "", "日本語の文章"),
    "Shift_JIS, labelled": (JAPANESE.encode("shift_jis"), "text/plain; charset=shift_jis", "日本語の文章"),
    "Shift_JIS, labelled UTF-8": (JAPANESE.encode("shift_jis"), "text/plain; charset=utf-8", "日本語の文章"),
    "Shift_JIS in a meta tag": (f"<html><meta charset=shift_jis><p>{JAPANESE}".encode("shift_jis"), "text/html", "日本語の文章"),
    "Shift_JIS with half-width kana": (f"{JAPANESE}ｱｲｳｴｵ\n".encode("cp932"), "text/plain; charset=x-sjis", "ｱｲｳｴｵ"),
    "EUC-JP": (JAPANESE.encode("euc_jp"), "", "日本語の文章"),
    "ISO-2022-JP": (JAPANESE.encode("iso2022_jp"), "text/plain; charset=iso-2022-jp", "日本語の文章"),
    "ISO-2022-JP without a label": (JAPANESE.encode("iso2022_jp"), "", "日本語の文章"),
    "ISO-2022-KR": (KOREAN.encode("iso2022_kr"), "text/plain; charset=iso-2022-kr", "한국어로"),
    "GB2312": (CHINESE.encode("gb2312"), "text/plain; charset=gb2312", "中国的首都"),
    "GBK without a label": (CHINESE.encode("gbk"), "", "中国的首都"),
    "GB18030": (f"{CHINESE}𠀀\n".encode("gb18030"), "text/plain; charset=gb18030", "𠀀"),
    "HZ": (CHINESE.encode("hz"), "text/plain; charset=hz-gb-2312", "中国的首都"),
    "Big5": (TAIWANESE.encode("big5"), "text/plain; charset=big5", "臺北是一座"),
    "Big5 without a label": (TAIWANESE.encode("big5"), "", "臺北是一座"),
    "EUC-KR": (KOREAN.encode("euc_kr"), "", "한국어로"),
    "windows-949": (f"{KOREAN}똠방각하\n".encode("cp949"), "text/plain; charset=ks_c_5601-1987", "똠방각하"),
    "windows-1251": (RUSSIAN.encode("cp1251"), "", "столицей России"),
    "KOI8-R": (RUSSIAN.encode("koi8_r"), "text/plain; charset=koi8-r", "столицей России"),
    "KOI8-R without a label": (RUSSIAN.encode("koi8_r"), "", "столицей России"),
    "CP866": (RUSSIAN.encode("cp866"), "text/plain; charset=ibm866", "столицей России"),
    "ISO-8859-5": (RUSSIAN.encode("iso8859_5"), "text/plain; charset=iso-8859-5", "столицей России"),
    "ISO-8859-7": (GREEK.encode("iso8859_7"), "text/plain; charset=iso-8859-7", "πρωτεύουσα"),
    "windows-1253 without a label": (GREEK.encode("cp1253"), "", "πρωτεύουσα"),
    "windows-1255": (HEBREW.encode("cp1255"), "", "ירושלים"),
    "windows-1256": (ARABIC.encode("cp1256"), "", "القاهرة"),
    "TIS-620": (THAI.encode("tis_620"), "text/plain; charset=tis-620", "ภาษาไทย"),
    "windows-1250": (POLISH.encode("cp1250"), "text/plain; charset=windows-1250", "Zażółć gęślą"),
    "ISO-8859-2": (POLISH.encode("iso8859_2"), "text/plain; charset=iso-8859-2", "Zażółć gęślą"),
    "windows-1254 under its old name": (TURKISH.encode("cp1254"), "text/plain; charset=iso-8859-9", "İstanbul çok"),
    "Latin-1": (GERMAN.encode("latin-1"), "", "Größere Städte"),
    "Latin-1, labelled UTF-8": (GERMAN.encode("latin-1"), "text/plain; charset=utf-8", "Größere Städte"),
    "windows-1252 labelled Latin-1": (FRENCH.encode("cp1252"), "text/plain; charset=iso-8859-1", "L’élève a reçu"),
    "Mac Roman": (GERMAN.encode("mac_roman"), "text/plain; charset=macintosh", "Größere Städte"),
    "CP437": (GERMAN.encode("cp437"), "text/plain; charset=ibm437", "Größere Städte"),
    "EBCDIC": (("THE QUICK BROWN FOX JUMPS OVER " * 20).encode("cp037"), "", "QUICK BROWN FOX"),
    "UTF-8 with a mark": (codecs.BOM_UTF8 + GERMAN.encode(), "", "Größere Städte"),
    "UTF-8, labelled Latin-1": (GERMAN.encode(), "text/plain; charset=iso-8859-1", "Größere Städte"),
    "UTF-8 with a broken byte": (GERMAN.encode() + b"\xff" + GERMAN.encode(), "", "Größere Städte"),
    "UTF-8 cut in a character": (JAPANESE.encode()[:-2], "", "日本語の文章"),
    "UTF-16 LE with a mark": (codecs.BOM_UTF16_LE + GERMAN.encode("utf-16-le"), "", "Größere Städte"),
    "UTF-16 BE with a mark": (codecs.BOM_UTF16_BE + JAPANESE.encode("utf-16-be"), "", "日本語の文章"),
    "UTF-16 LE without a mark": (GERMAN.encode("utf-16-le"), "", "Größere Städte"),
    "UTF-16 BE without a mark": (RUSSIAN.encode("utf-16-be"), "text/plain; charset=utf-16be", "столицей России"),
    "UTF-32 LE with a mark": (codecs.BOM_UTF32_LE + GERMAN.encode("utf-32-le"), "", "Größere Städte"),
    "UTF-32 BE without a mark": (GERMAN.encode("utf-32-be"), "", "Größere Städte"),
    "an unknown charset in the label": (GERMAN.encode(), "text/plain; charset=x-none-such", "Größere Städte"),
    "a charset that is none": (GERMAN.encode(), "text/plain; charset=rot13", "Größere Städte"),
    # content that has looked binary to one tool or another
    "one-line JavaScript": (b"!function(){" + b"var a=1;a+=2;" * 20_000 + b"}();", "application/javascript", "var a=1"),
    "one line without an end": (b"x" * 100_000, "text/plain", "xxxx"),
    "PEM": (f"-----BEGIN KEY-----\n{BASE64}-----END KEY-----\n".encode(), "application/x-x509-ca-cert", "BEGIN KEY"),
    "PGP": (f"-----BEGIN PGP-----\n\n{BASE64}-----END PGP-----\n".encode(), "application/octet-stream", "BEGIN PGP"),
    "Base64 alone": (BASE64.encode(), "application/octet-stream", "QUJDREVGR0"),
    "diff": (b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n", "application/octet-stream", "+new"),
    "format-patch": (b"From 1 Mon Sep 17 00:00:00 2001\nFrom: a\nDate: x\nSubject: y\n\ndiff --git a/x b/x\n", "", "diff --git"),
    "log with holes of NULs": (LOG.encode() * 20 + b"\0" * 500 + LOG.encode() * 20, "text/plain", "WARN slow"),
    "log with a single NUL": (LOG.encode() * 20 + b"\0" + LOG.encode() * 20, "text/plain", "WARN slow"),
    "log with colours": (b"\x1b[31mERROR\x1b[0m failed\n" * 30, "text/plain", "failed"),
    "typescript of a terminal": (b"ls\b\b \a\x1b]0;title\x07done\r\n" * 30, "application/octet-stream", "done"),
    "man page with overstrikes": (b"N\bNA\bAM\bME\bE\n     ls - list\n" * 20, "text/plain", "list"),
    "text with form feeds": (b"RFC 1\x0c\n\nPage 2\n" * 30, "text/plain", "Page 2"),
    "DOS text with its end mark": (b"hello\r\nworld\r\n\x1a", "text/plain", "world"),
    "Mac line ends": (b"one\rtwo\rthree\r" * 20, "text/plain", "two\nthree"),
    "text that begins with %PDF-": (b"%PDF-1.7 is how a PDF begins, they say.\n" * 5, "text/plain", "they say"),
    "text that begins with BM": (b"BMW is a maker of cars.\n" * 5, "text/plain", "maker of cars"),
    "text that begins with MZ": (b"MZ was a maker of motorcycles.\n" * 5, "text/plain", "motorcycles"),
    "text that begins with GIF89a": (b"GIF89a is the signature of an image.\n" * 5, "text/plain", "signature"),
    "text that begins with ID3": (b"ID3 tags are metadata.\n" * 5, "text/plain", "metadata"),
    "text that begins with PK": (b"PK is short for primary key.\n" * 5, "text/plain", "primary key"),
    "text with ustar at 257": (b"x" * 256 + b"\nustar is an archive format\n", "text/plain", "archive format"),
    "INI": (b"[section]\nkey = value\n[other]\nlist = 1, 2\n", "application/octet-stream", "key = value"),
    "Markdown that begins with a link": (b"[link](https://example.org) and text\n", "", "and text"),
    "template that begins with a brace": (b"{{ page.title }}\n{% for x in y %}\n{{ x }}\n{% endfor %}\n", "", "page.title"),
    "CSS that begins with a comment": (b"/* <html> */ body { color: red }\n", "text/css", "color: red"),
    "subtitles": (b"1\n00:00:01,000 --> 00:00:02,000\nHello\n\n", "application/octet-stream", "Hello"),
    "PostScript": (b"%!PS-Adobe-3.0\n/Times-Roman findfont\nshowpage\n", "application/postscript", "findfont"),
    "uuencoded": (b"begin 644 x\n#0V%T\n`\nend\n", "application/octet-stream", "begin 644"),
    "quoted-printable": (b"Gr=C3=B6=C3=9Fe =3D\n" * 9, "", "Gr=C3"),
    "Fortran cards": (b"C     COMMENT\n      PROGRAM HELLO\n      END\n" * 9, "", "PROGRAM HELLO"),
    "emoji": ("👩‍👩‍👧‍👦 family 🏳️‍🌈\n".encode() * 9, "", "family"),
    "private-use and unassigned characters": ("\ue000\U0010fffd text \u0378\n".encode() * 9, "", "text"),
    "a single character": (b"x", "", "x"), "only line feeds": (b"\n\n\n", "", "\n\n\n"),
    "one letter of Latin-1": (b"a caf\xe9\n", "", "café"),
    "JSON text sequence": (b'\x1e{"a": 1}\n\x1e{"a": 2}\n', "application/json-seq", '{"a": 2}'),
    "JSON in UTF-16": (codecs.BOM_UTF16_LE + json.dumps({"a": "ö"}, ensure_ascii=False).encode("utf-16-le"), "", '"ö"'),
    "late bytes beyond ASCII": (b"plain ascii line\n" * 20_000 + GERMAN.encode("latin-1"), "", "Größere Städte"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "label", "words"), ODD.values(), ids=ODD)
def test_an_odd_text_is_routed_as_text_and_decoded(
    data: bytes, label: str, words: str, tmp_path: Path
) -> None:
    head, is_whole = data[:65_536], len(data) <= 65_536
    decision = detect_content_kind({"content-type": label}, head, "", complete=is_whole)
    assert decision.kind != "unknown_binary", decision
    charset = label.partition("charset=")[2]
    path = tmp_path / "body"
    path.write_bytes(data)
    assert words in "".join(read_text(path, charset))
    assert words in decode(data, charset).replace("\r", "\n")
