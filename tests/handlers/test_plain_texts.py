"""Text, logs, code, Markdown, YAML, TOML and XML: kept as written, with an outline."""
# ruff: noqa: E501 - quotes texts

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from fetchstash.handlers import Extracted, ExtractLimits, Handler, Hints, decode, handler_named

Read = Callable[..., tuple[Extracted, str]]
Save = Callable[[bytes], Path]


EXTENSIONS = {
    "python": "py", "javascript": "js", "typescript": "ts", "rust": "rs", "c++": "cpp",
    "ruby": "rb", "shell": "sh", "brainfuck": "bf",
}  # fmt: skip


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
        ("python", "import x\nclass A(B):\n    async def f(self):\n        pass\ndef g():\n", ["class A", "async def f", "def g"]),
        ("javascript", "export class A {}\nasync function f() {}\nconst g = async (x) => x;\nlet h = 1;\n",
         ["class A", "function f", "const g"]),
        ("typescript", "export interface A {}\ntype B = string;\nenum C {}\n", ["interface A", "type B", "enum C"]),
        ("go", "func (s *S) Get(id int) error {\ntype S struct {\nfunc main() {\n", ["func (s *S) Get", "type S", "func main"]),
        ("rust", "pub(crate) async fn f() {\nimpl<T> Foo for Bar<T> {\nstruct S;\n", ["fn f", "impl<T> Foo for Bar<T", "struct S"]),
        ("java", "public class A {\n    private static int f(int x) {\n        if (x) {\n", ["class A", "int f"]),
        ("c", "#define MAX(a) a\nstatic int\nint main(int argc, char **argv)\n{\n    return f(x);\nstruct s {\n",
         ["#define MAX", "int main", "struct s"]),
        ("c++", "namespace n {\nclass A : B {\nvoid A::f() const {\n", ["namespace n", "class A", "void A::f"]),
        ("ruby", "module M\n  class A\n    def f?\n", ["module M", "class A", "def f?"]),
        ("shell", "f() {\nfunction g {\n", ["f()", "function g"]),
        ("sql", "create table if not exists t (\nSELECT 1;\nCREATE OR REPLACE VIEW v AS\n",
         ["create table if not exists t", "CREATE OR REPLACE VIEW v"]),
        ("diff", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n", ["diff --git a/x b/x", "+++ b/x"]),
        ("brainfuck", "def f():\n", []),
    ],
)  # fmt: skip
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
        "from fetchstash.handlers import Hints, ExtractLimits, handler_named\n"
        f"handler_named('binary').extract(Path({str(source)!r}), Hints(), ExtractLimits())\n"
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
