"""RTF: paragraphs, headings, tables, and characters in any encoding."""

# ruff: noqa: E501 - a document on one line reads better than in pieces

import pytest

from tests.handlers.conftest import Read, reads, unreadable

HEAD = rb"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\froman Times;}}{\colortbl;\red0\green0\blue0;}{\*\generator Word;}"


def rtf(body: bytes) -> bytes:
    return HEAD + body + b"}"


TEXTS = {
    "text": (rb"One.\par Two.\par", "One.\n\nTwo.\n\n"),
    "heading": (rb"\pard\outlinelevel0 Title\par\pard Text\par", "# Title\n\nText\n\n"),
    "codes": (rb"caf\'e9 \ldblquote quoted\rdblquote\par", "café “quoted”\n\n"),
    "unicode": (rb"\uc1\u8364 ?5 \u-10179 ?\u-8704 ?\par", "€5 😀\n\n"),
    "fallback": (rb"{\uc2\u12354 \'82\'a0}after\par", "あafter\n\n"),
    "codepage": (rb"\ansicpg932 \'82\'a0\'82\'a2\par", "あい\n\n"),
    "symbols": (rb"braces \{ \} and \\ and a\~b\_c\par", "braces { } and \\ and a b-c\n\n"),
    "picture": (rb"{\pict\pngblip 89504e47}shown\par", "shown\n\n"),
    "field": (rb"{\field{\*\fldinst HYPERLINK x}{\fldrslt link}}\par", "link\n\n"),
    "binary": (rb"{\pict\bin5 }}}}}}shown\par", "shown\n\n"),
    "table": (rb"\trowd\pard\intbl N\cell V\cell\row\trowd\pard\intbl a\par b\cell 1\cell\row\pard after\par", "| N | V |\n| --- | --- |\n| a b | 1 |\n\nafter\n\n"),
    "break": (rb"split \li" + b"\r\n" + rb"ne\par", "split ne\n\n"),
}  # fmt: skip
test_the_text_is_read = reads(
    "rtf", {name: (rtf(body), text) for name, (body, text) in TEXTS.items()}
)


UNSEEN = {
    "formula settings": (rb"{\mmathPr\mmathFont34\mbrkBin0\mdefJc1\mintLim0\mnaryLim1}Text\par", "Text\n\n"),
    "theme": (rb"{\themedata 504b0304}{\colorschememapping 3c3f786d6c}Text\par", "Text\n\n"),
    "styles": (rb"{\latentstyles\lsdstimax267{\lsdlockedexcept \lsdpriority0 Normal;}}Text\par", "Text\n\n"),
    "lists": (rb"{\listtable{\list{\listlevel{\leveltext\'01-;}}}}{\rsidtbl\rsid1}Text\par", "Text\n\n"),
    "properties": (rb"{\userprops{\propname Office}\proptype30{\staticval Rome}}Text\par", "Text\n\n"),
    "capitals": (rb"\ApplyBrkRules\snapToGridInCell Text\par", "Text\n\n"),
    "index entry": (rb"Ash{\xe Trees} tree\par", "Ash tree\n\n"),
    "list mark": (rb"{\listtext\tab \u8226 \tab}First\par", "First\n\n"),
    "fallback at a brace": (rb"{\uc2 a\u8226 -}b\u8226 \tab c\u8226 {d}\par", "a•b•c•d\n\n"),
}  # fmt: skip
test_what_a_word_processor_does_not_show_is_no_text = reads(
    "rtf", {name: (rtf(body), text) for name, (body, text) in UNSEEN.items()}
)


def test_the_title_comes_from_the_information_group(read: Read) -> None:
    extracted, text = read("rtf", rtf(rb"{\info{\title A plan}{\author Ada}}Text\par"))
    assert extracted.facts.title == "A plan"
    assert text == "Text\n\n"


def test_hidden_text_is_left_out_and_counted(read: Read) -> None:
    extracted, text = read("rtf", rtf(rb"{\v obey}seen\v  too\v0  end\par"))
    assert text == "seen end\n\n"
    assert extracted.facts.hidden_removed == 2


test_a_document_without_text_gives_one_clear_line = unreadable("rtf", {
    "empty": (b"", "no RTF"),
    "text": (b"plain", "no RTF"),
    "nothing": (rtf(b""), "holds no text"),
    "a million groups": (rb"{\rtf1" + b"{" * 1_000_000, "holds no text"),
})  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        b"\\",
        b"}" * 10_000 + b"x",
        rb"\bin999999999 x",
        rb"\u99999999 x",
        rb"\ansicpg99999 x",
        b"\\'zz x",
        b"\\u-1" * 10_000,
    ],
    ids=[
        "backslash", "closed too often", "long binary", "far character", "no codepage", "bad code",
        "surrogates",
    ],
)  # fmt: skip
def test_odd_control_words_do_no_harm(read: Read, body: bytes) -> None:
    _, text = read("rtf", rtf(b"before " + body))
    assert text.startswith("before")
    text.encode("utf-8")


def test_a_title_of_many_words_takes_linear_time(read: Read) -> None:
    extracted, _ = read("rtf", rtf(rb"{\info{\title " + rb"x\tab " * 300_000 + rb"}}Text\par"))
    assert extracted.facts.title.count("x") == 300_000


def test_an_unknown_code_page_is_not_looked_up(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        pytest.fail(f"looks for {name}")

    text = b"".join(rb"\ansicpg%d " % number for number in range(900_000, 900_009))
    monkeypatch.setattr("codecs.lookup", refuse)
    assert read("rtf", rtf(text + rb"caf\'e9\par"))[1] == "café\n\n"


def test_headers_and_footers_of_pages_stand_once_at_the_end(read: Read) -> None:
    header = r"{\header\pard Annual \b report\par}{\footerl\pard Page {\field{\*\fldinst PAGE}{\fldrslt 1}}\par}"
    data = rf"{{\rtf1{header}{header} One.\par Two.\par}}".encode()
    assert read("rtf", data)[1] == ("One.\n\nTwo.\n\nHeader: Annual report\n\nFooter: Page 1\n\n")
