"""Formulas of DOCX and PPTX are LaTeX between dollar signs, once."""

# ruff: noqa: E501 - a formula on one line reads better than in pieces

from collections.abc import Callable, Mapping

import pytest

from fetchstash.handlers import Extracted, handler_named

Read = Callable[..., tuple[Extracted, str]]
Pack = Callable[[Mapping[str, str | bytes]], bytes]

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
M = "http://schemas.openxmlformats.org/officeDocument/2006/math"


def r(text: str, properties: str = "") -> str:
    return (
        f'<m:r>{properties}<w:rPr><w:rFonts w:ascii="Cambria Math"/></w:rPr><m:t>{text}</m:t></m:r>'
    )


def part(name: str, *inner: str) -> str:
    return f"<m:{name}>{''.join(inner)}</m:{name}>"


def sign(owner: str, value: str, name: str = "chr") -> str:
    return f'<m:{owner}Pr><m:{name} m:val="{value}"/></m:{owner}Pr>'


SQUARED = part("sSup", part("e", r("x")), part("sup", r("2")))
FORMULAS = {
    "fraction": (part("f", part("num", r("a+b")), part("den", r("2"))), r"\frac{a+b}{2}"),
    "exponent": (SQUARED, "x^2"),
    "long exponent": (part("sSup", part("e", r("10")), part("sup", r("\u22123"))), "10^{-3}"),
    "index": (part("sSub", part("e", r("a")), part("sub", r("ij"))), "a_{ij}"),
    "both": (part("sSubSup", part("e", r("a")), part("sub", r("i")), part("sup", r("2"))), "a_i^2"),
    "square root": (part("rad", '<m:radPr><m:degHide m:val="1"/></m:radPr>', part("deg"), part("e", SQUARED)), r"\sqrt{x^2}"),
    "cube root": (part("rad", part("deg", r("3")), part("e", r("x"))), r"\sqrt[3]{x}"),
    "sum": (part("nary", sign("nary", "∑"), part("sub", r("i=1")), part("sup", r("n")), part("e", r("i"))), "∑_{i=1}^n i"),
    "integral": (part("nary", part("sub", r("0")), part("sup", r("1")), part("e", r("f(x)dx"))), "∫_0^1 f(x)dx"),
    "brackets": (part("d", sign("d", "[", "begChr"), part("e", r("x"))), "[x)"),
    "braces": (part("d", '<m:dPr><m:begChr m:val="{"/><m:endChr m:val=""/></m:dPr>', part("e", r("x"))), r"\left\{ x\right."),
    "function": (part("func", part("fName", r("sin")), part("e", r("x"))), r"\sin x"),
    "limit": (part("func", part("fName", part("limLow", part("e", r("lim", "<m:rPr/>")), part("lim", r("x→0")))), part("e", r("x"))), r"\lim_{x→0} x"),
    "accent": (part("acc", sign("acc", "\u20d7"), part("e", r("v"))), r"\vec{v}"),
    "bar": (part("bar", sign("bar", "top", "pos"), part("e", r("x"))), r"\overline{x}"),
    "matrix": (part("m", part("mr", part("e", r("a")), part("e", r("b"))), part("mr", part("e", r("c")), part("e", r("d")))), r"\begin{matrix} a & b \\ c & d \end{matrix}"),
    "system": (part("eqArr", part("e", r("x=1")), part("e", r("y=2"))), r"\begin{aligned} x=1 \\ y=2 \end{aligned}"),
    "letters": (r("𝑥𝛼"), "xα"),
    "words": (r("if", "<m:rPr><m:nor/></m:rPr>"), r"\text{if}"),
    "signs": (r("50% {a}"), r"50\% \{a\}"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_of_a_document_is_latex(read: Read, pack: Pack, name: str) -> None:
    omml, latex = FORMULAS[name]
    body = (
        f"<w:p><w:r><w:t>We have </w:t></w:r><m:oMath>{omml}</m:oMath><w:r><w:t>.</w:t></w:r></w:p>"
    )
    document = f'<w:document xmlns:w="{W}" xmlns:m="{M}"><w:body>{body}</w:body></w:document>'
    text = read(handler_named("docx"), pack({"word/document.xml": document}))[1]
    assert text == f"We have ${latex}$.\n\n"


def test_a_formula_of_a_slide_stands_once(read: Read, pack: Pack) -> None:
    formula = f'<a14:m xmlns:a14="a14"><m:oMathPara xmlns:m="{M}" xmlns:w="w"><m:oMath>{SQUARED}</m:oMath></m:oMathPara></a14:m>'
    shape = "<p:sp><p:txBody><a:p>{}</a:p></p:txBody></p:sp>"
    choice = f"<mc:Choice>{shape.format(formula)}</mc:Choice>"
    fallback = f"<mc:Fallback>{shape.format('<a:r><a:t>x2</a:t></a:r>')}</mc:Fallback>"
    slide = f'<p:sld xmlns:p="p" xmlns:a="a" xmlns:mc="mc"><mc:AlternateContent>{choice}{fallback}</mc:AlternateContent></p:sld>'
    rels = '<Relationships><Relationship Id="r1" Type="x/slide" Target="slides/slide1.xml"/></Relationships>'
    main = '<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst><p:sldId r:id="r1"/></p:sldIdLst></p:presentation>'
    members = {"ppt/presentation.xml": main, "ppt/_rels/presentation.xml.rels": rels}
    text = read(handler_named("pptx"), pack({**members, "ppt/slides/slide1.xml": slide}))[1]
    assert text == "## Slide 1\n\n$x^2$\n\n"


def test_raised_and_struck_text_of_a_slide_keeps_its_meaning(read: Read, pack: Pack) -> None:
    runs = '<a:r><a:t>10</a:t></a:r><a:r><a:rPr baseline="30000"/><a:t>-3</a:t></a:r><a:r><a:t> </a:t></a:r><a:r><a:rPr strike="sngStrike"/><a:t>old</a:t></a:r>'
    slide = f'<p:sld xmlns:p="p" xmlns:a="a"><p:sp><p:txBody><a:p>{runs}</a:p></p:txBody></p:sp></p:sld>'
    rels = '<Relationships><Relationship Id="r1" Type="x/slide" Target="slides/slide1.xml"/></Relationships>'
    main = '<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst><p:sldId r:id="r1"/></p:sldIdLst></p:presentation>'
    members = {"ppt/presentation.xml": main, "ppt/_rels/presentation.xml.rels": rels}
    text = read(handler_named("pptx"), pack({**members, "ppt/slides/slide1.xml": slide}))[1]
    assert text == "## Slide 1\n\n10^{-3} ~~old~~\n\n"


def test_a_formula_nested_without_end_keeps_what_stands_beside_it(read: Read, pack: Pack) -> None:
    deep = "<m:sSup><m:e>" * 400 + r("x") + "</m:e></m:sSup>" * 400
    body = f"<w:p><w:r><w:t>Before </w:t></w:r><m:oMath>{deep}{r('y')}</m:oMath><w:r><w:t>after</w:t></w:r></w:p>"
    document = f'<w:document xmlns:w="{W}" xmlns:m="{M}"><w:body>{body}</w:body></w:document>'
    text = read(handler_named("docx"), pack({"word/document.xml": document}))[1]
    assert text.startswith("Before $")
    assert text.endswith("y$after\n\n")
