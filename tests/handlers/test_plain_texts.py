"""Plain texts, code and Markdown, and texts without a true label."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import codecs
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st

from fetchstash.handlers import (
    ExtractLimits,
    Handler,
    Hints,
    charset_named,
    decode,
    detect_content_kind,
    read_text,
)
from tests.handlers.conftest import Read, Save
from tests.handlers.parts import handler_named

EXTENSIONS = {
    "python": "py",
    "javascript": "js",
    "typescript": "ts",
    "rust": "rs",
    "c++": "cpp",
    "ruby": "rb",
    "shell": "sh",
    "brainfuck": "bf",
}


def outline(handler: Handler, source: Path, hints: Hints) -> list[tuple[str, int, int]]:
    """Return title, level and line of all headings, counted in the whole text."""
    found = handler.extract(source, hints, ExtractLimits())
    lines, headings = 0, list[tuple[str, int, int]]()
    for part in found.parts or ():
        headings += [(h.title, h.level, h.start + lines) for h in part.headings]
        lines += part.text.count("\n")
    return headings + [(h.title, h.level, h.start) for h in found.facts.outline]


def test_line_ends_become_line_feeds(read: Read) -> None:
    assert read(handler_named("text"), b"a\r\nb\rc\nd")[1] == "a\nb\nc\nd"


def test_a_long_text_comes_in_parts_of_whole_lines(save: Save) -> None:
    source = save(b"0123456789abcde\r\n" * 200_000)
    parts = list(handler_named("text").extract(source, Hints(), ExtractLimits()).parts or ())
    assert len(parts) > 2
    assert all(part.text.endswith("\n") for part in parts)
    assert "".join(part.text for part in parts) == "0123456789abcde\n" * 200_000


def test_structure_info_names_one_long_line(read: Read) -> None:
    found, text = read(handler_named("text"), b"x" * 3_000_000)
    assert len(text) == 3_000_000
    assert found.facts.structure_info.endswith("characters")


def test_structure_info_names_a_log(read: Read) -> None:
    lines = [f"2024-05-01 12:00:{i % 60:02} INFO event {i}" for i in range(10_000)]
    found, _ = read(handler_named("text"), "\n".join(lines).encode())
    assert found.facts.structure_info == "log of 10,000 lines"
    assert read(handler_named("text"), b"Dear reader,\n" * 100)[0].facts.structure_info == ""


MARKDOWN = """---
title: "A title"
---
# One #
text
```python
# a comment, no heading
```
~~~
## no heading
```
~~~
Two
===
Three
-----
- list
- ---
#hashtag
   ### Four
    # code
"""


def test_markdown_headings_are_found_and_code_is_not(save: Save) -> None:
    source = save(MARKDOWN.encode())
    found = handler_named("markdown").extract(source, Hints(), ExtractLimits())
    assert outline(handler_named("markdown"), source, Hints()) == [
        ("One", 1, 4),
        ("Two", 1, 13),
        ("Three", 2, 15),
        ("Four", 3, 20),
    ]
    list(found.parts or ())
    assert found.facts.title == "A title"


def test_a_fence_stays_open_from_one_chunk_to_the_next(save: Save) -> None:
    source = save(b"# One\n````\n" + b"# code\n```\n" * 300_000 + b"````\n# Two\n")
    headings = outline(handler_named("markdown"), source, Hints())
    assert headings == [("One", 1, 1), ("Two", 1, 600_004)]


@pytest.mark.parametrize(
    ("language", "source", "symbols"),
    [
        (
            "python",
            "import x\nclass A(B):\n    async def f(self):\n        pass\ndef g():\n",
            ["class A", "async def f", "def g"],
        ),
        (
            "javascript",
            "export class A {}\nasync function f() {}\nconst g = async (x) => x;\nlet h = 1;\n",
            ["class A", "function f", "const g"],
        ),
        (
            "typescript",
            "export interface A {}\ntype B = string;\nenum C {}\n",
            ["interface A", "type B", "enum C"],
        ),
        (
            "go",
            "func (s *S) Get(id int) error {\ntype S struct {\nfunc main() {\n",
            ["func (s *S) Get", "type S", "func main"],
        ),
        (
            "rust",
            "pub(crate) async fn f() {\nimpl<T> Foo for Bar<T> {\nstruct S;\n",
            ["fn f", "impl<T> Foo for Bar<T", "struct S"],
        ),
        (
            "java",
            "public class A {\n    private static int f(int x) {\n        if (x) {\n",
            ["class A", "int f"],
        ),
        (
            "c",
            "#define MAX(a) a\nstatic int\nint main(int argc, char **argv)\n{\n    return f(x);\nstruct s {\n",
            ["#define MAX", "int main", "struct s"],
        ),
        (
            "c++",
            "namespace n {\nclass A : B {\nvoid A::f() const {\n",
            ["namespace n", "class A", "void A::f"],
        ),
        ("ruby", "module M\n  class A\n    def f?\n", ["module M", "class A", "def f?"]),
        ("shell", "f() {\nfunction g {\n", ["f()", "function g"]),
        (
            "sql",
            "create table if not exists t (\nSELECT 1;\nCREATE OR REPLACE VIEW v AS\n",
            ["create table if not exists t", "CREATE OR REPLACE VIEW v"],
        ),
        (
            "diff",
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n",
            ["diff --git a/x b/x", "+++ b/x"],
        ),
        ("brainfuck", "def f():\n", []),
    ],
)
def test_symbols_are_found(save: Save, language: str, source: str, symbols: list[str]) -> None:
    hints = Hints(name=f"a.{EXTENSIONS.get(language, language)}")
    headings = outline(handler_named("code"), save(source.encode()), hints)
    assert [title for title, _, _ in headings] == symbols


def test_symbols_are_deeper_by_their_indent_and_stand_on_their_line(save: Save) -> None:
    source = save(b"class A:\n\n    def f(self):\n")
    headings = outline(handler_named("code"), source, Hints(name="a.py"))
    assert headings == [("class A", 1, 1), ("def f", 2, 3)]


@pytest.mark.parametrize(
    ("hints", "source"),
    [
        pytest.param(Hints(name="x.py"), b"def f():\n", id="by its name"),
        pytest.param(Hints(url="https://example.org/x.py?raw=1"), b"def f():\n", id="by its URL"),
        pytest.param(Hints(media_type="text/x-python"), b"def f():\n", id="by its media type"),
        pytest.param(Hints(), b"#!/usr/bin/env -S python3.12\ndef f():\n", id="by its first line"),
    ],
)
def test_structure_info_names_the_language_of_code(save: Save, hints: Hints, source: bytes) -> None:
    found = handler_named("code").extract(save(source), hints, ExtractLimits())
    list(found.parts or ())
    assert found.facts.structure_info == "python, 1 symbols"


def test_yaml_keys_are_found_and_blocks_of_text_are_not(save: Save) -> None:
    source = save(
        b'a: 1\nb:\n  c: |\n    x: y\n  d: &x\n"e f": >-\n  no: key\n# g: 1\nurl: http://x\n'
    )
    found = [("a", 1, 1), ("b", 1, 2), ("c", 2, 3), ("d", 2, 5), ("e f", 1, 6), ("url", 1, 9)]
    assert outline(handler_named("yaml"), source, Hints()) == found


def test_toml_tables_are_found(save: Save) -> None:
    source = save(b"[project]\nname = 'x'\nlist = [\n  1,\n]\n[[tool.a.b]]\n")
    assert outline(handler_named("yaml"), source, Hints(media_type="application/toml")) == [
        ("project", 1, 1),
        ("tool.a.b", 3, 6),
    ]


def test_xml_on_one_line_is_broken_between_its_tags_alone(read: Read) -> None:
    source = (
        "<r>" + "<a id='1'><b>x > y</b><!-- <c><d> --><e><![CDATA[<f><g>]]></e></a>" * 3 + "</r>"
    )
    found, text = read(handler_named("xml"), source.encode())
    assert text.replace("\n", "") == source
    assert "\n<b>x > y</b><!-- <c><d> --><e><![CDATA[<f><g>]]></e></a>\n" in text
    assert found.facts.structure_info == "root r, depth 3, 10 elements: a 3, b 3, e 3, r 1"
    assert [(h.title, text.split("\n")[h.start - 1][:2]) for h in found.facts.outline] == [
        ("a 1", "<a")
    ] * 3


def test_xml_of_short_lines_is_kept_as_it_is(read: Read) -> None:
    source = "<r>\n  <a/><b/>\n</r>\n"
    assert read(handler_named("xml"), source.encode())[1] == source


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        pytest.param(
            '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><l>&b;</l>',
            "declares entities",
            id="entities",
        ),
        pytest.param(
            '<!DOCTYPE l SYSTEM "file:///etc/passwd"><l/>',
            "root l, depth 1",
            id="an external subset",
        ),
        pytest.param("<a>" * 100_000, "nested more than 1,000 deep", id="depth"),
        pytest.param("<a><b></a>", "not well-formed", id="broken"),
        pytest.param("<a " + "x='1' " * 100_000 + "/>", "not well-formed", id="attributes"),
    ],
)
def test_hostile_xml_is_text_and_says_how_far_it_was_counted(
    read: Read, source: str, reason: str
) -> None:
    found, text = read(handler_named("xml"), source.encode())
    assert text.replace("\n", "") == source
    assert reason in found.facts.structure_info
    assert "root:x:" not in text


@pytest.mark.slow
def test_a_binary_is_named_by_libmagic_and_never_read_as_text(save: Save) -> None:
    if find_spec("pylibmagic") is None or find_spec("magic") is None:
        pytest.skip("the extra is not installed")
    found = handler_named("binary").extract(
        save(b"NES\x1a\1\1\0\0" + bytes(range(256))), Hints(), ExtractLimits()
    )
    assert (found.parts, found.facts.media_type) == (None, "application/x-nes-rom")


@pytest.mark.slow
def test_naming_a_binary_leaves_ctypes_alone(save: Save) -> None:
    source = save(b"NES\x1a\1\1\0\0" + bytes(range(256)))
    program = (
        "import ctypes, sys; before = ctypes.CDLL.__init__\n"
        "from pathlib import Path\n"
        "from fetchstash.handlers import ExtractLimits, Hints, built_in, handler_of\n"
        "binary = next(h for h in map(handler_of, built_in().all) if h.name == 'binary')\n"
        f"binary.extract(Path({str(source)!r}), Hints(), ExtractLimits())\n"
        "assert ctypes.CDLL.__init__ is before and 'pylibmagic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-P", "-c", program], check=True)


ENGLISH = "It’s a “quoted” café."
BROKEN = {
    "one bad byte, labelled": (f"{ENGLISH}\n".encode() + b"\xff", "utf-8"),
    "a lone surrogate, labelled": (f"{ENGLISH}\n".encode() + b"\xed\xa0\x80", "utf-8"),
    "one bad byte in a longer text": (f"{ENGLISH}\n".encode() * 3 + b"\xff", ""),
    "cut inside of a character": (f"{ENGLISH}\n".encode() + "é".encode()[:1], "utf-8"),
}


@pytest.mark.parametrize(("data", "label"), BROKEN.values(), ids=BROKEN)
def test_a_broken_character_makes_no_other_charset_of_utf_8(data: bytes, label: str) -> None:
    assert decode(data, label).startswith(ENGLISH)


def test_a_label_of_utf_8_is_not_believed_where_nothing_bears_it_out() -> None:
    assert decode("café naïve résumé".encode("latin-1"), "utf-8") == "café naïve résumé"


def test_an_outline_ends_where_headings_are_too_many(save: Save) -> None:
    found = handler_named("markdown").extract(save(b"# x\n" * 700_000), Hints(), ExtractLimits())
    assert sum(len(part.headings) for part in found.parts or ()) == 10_000
    assert found.facts.structure_info == "10,000 headings or more"


TEXTS = {
    "French": (
        "cp1252 mac_roman cp850",
        "Le café déjà fermé, il a été décidé que la réunion aura lieu près de la gare à midi. ",
    ),
    "German": (
        "cp1252 mac_roman cp850",
        "Die Fähre fährt über den großen Fluß, während die Mädchen schöne Lieder hören. ",
    ),
    "Spanish": ("cp1252", "¿Dónde está la estación? El niño comió una manzana el año pasado. "),
    "Italian": ("cp1252", "Perché la città è così bella? L'università è più grande, però no. "),
    "Portuguese": ("cp1252", "A reunião será amanhã às três. Não há razão para a exceção. "),
    "Swedish": ("cp1252", "Färjan går på lördag från Göteborg. Höga vågor är vanliga på hösten. "),
    "Danish": ("cp1252", "Færgen går på lørdag til København. Søndag er der også en tur på åen. "),
    "Icelandic": (
        "cp1252",
        "Fólkið bíður á bryggjunni þar til það fær að fara um borð í ferjuna. ",
    ),
    "English with signs": ("cp1252", "“It’s a naïve café,” she said — twice… The résumé cost £5. "),
    "Polish": (
        "cp1250 iso8859_2",
        "Zażółć gęślą jaźń. Książki są na półce, a łódź śpi przy brzegu. ",
    ),
    "Czech": ("cp1250 iso8859_2", "Příliš žluťoučký kůň úpěl ďábelské ódy, až večer odešel domů. "),
    "Hungarian": ("cp1250 iso8859_2", "Árvíztűrő tükörfúrógép. A komp este hatkor indul éjfélig. "),
    "Romanian": ("cp1250", "Feribotul pleacă la ora şase din port şi soseşte în oraşul vecin. "),
    "Turkish": ("cp1254", "Feribot akşam altıda limandan ayrılıyor, çünkü hava güzel değil mi? "),
    "Lithuanian": ("cp1257", "Žmonės laukia ąžuolų pavėsyje, kol įlips į keltą šeštą valandą. "),
    "Russian": ("cp1251 koi8_r", "Паром отходит вечером из порта, и люди ждут на причале. "),
}
CASES = [
    (language, charset) for language, (charsets, _) in TEXTS.items() for charset in charsets.split()
]


@pytest.mark.parametrize(("language", "charset"), CASES)
@pytest.mark.parametrize("label", ["", "utf-8"])
def test_a_text_is_read_in_the_charset_of_its_letters(
    language: str, charset: str, label: str
) -> None:
    text = TEXTS[language][1] * 3
    assert decode(text.encode(charset), label) == text


def test_prices_and_fractions_between_ascii_words_are_no_letters() -> None:
    text = "Rooms from €90 to €120, breakfast €12½; 3 × 4 m, café and piñata. ©\n" * 4
    assert decode(text.encode("cp1252")) == text


ANY_TEXT = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=300)
LABELS = st.one_of(
    st.just(""),
    st.sampled_from(["utf-8", "iso-8859-1", "shift_jis", "gbk", "uu", "rot13", "hex", "\x00"]),
    st.text(max_size=40),
)


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), LABELS)
def test_any_bytes_under_any_label_become_text(data: bytes, label: str) -> None:
    decode(data, label).encode("utf-8", "surrogatepass")
    charset_named(label)


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(ANY_TEXT)
@example("\ufffd")
def test_utf_8_with_its_label_stays_as_it_is(text: str) -> None:
    assert decode(text.encode(), "utf-8") == text.removeprefix("\ufeff")


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
    "EBCDIC of small letters": (("The quick brown fox jumps " * 20).encode("cp037"), "", "quick brown fox"),
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
