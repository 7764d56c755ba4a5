"""Formulas as LaTeX: pieces that web pages and Office documents share, and those of Office.

Pure functions.
"""

import unicodedata
from collections.abc import Iterator

from fetchstash.handlers._xml import Node

_FUNCTIONS = frozenset((
    "arccos", "arcsin", "arctan", "arg", "cos", "cosh", "cot", "det", "dim", "exp", "gcd", "hom",
    "inf", "ker", "lg", "lim", "ln", "log", "max", "min", "mod", "Pr", "sec", "sin", "sinh", "sup",
    "tan", "tanh",
))  # fmt: skip
_ACCENTS = {
    "\u00af": "overline",
    "\u203e": "overline",
    "^": "hat",
    "\u02c6": "hat",
    "~": "tilde",
    "\u02dc": "tilde",
    "\u2192": "vec",
    "\u20d7": "vec",
    "\u02d9": "dot",
    ".": "dot",
    "\u00a8": "ddot",
}
_BIG = frozenset("\u2211\u220f\u222b\u222e\u22c3\u22c2\u2210")  # sum, product, integrals, ...


def identifier(name: str) -> str:
    """Return a variable or the name of a function."""
    if len(name) < 2:
        return name
    return f"\\{name} " if name in _FUNCTIONS else f"\\mathrm{{{name}}}"


def prose(words: str) -> str:
    """Return words within a formula."""
    return f"\\text{{{words}}}" if words else ""


def group(tex: str) -> str:
    """Return an exponent or index, in braces where it is longer than a character."""
    return tex if len(tex) == 1 else f"{{{tex}}}"


def whole(tex: str) -> str:
    """Return the base of an exponent, in braces if it could be read in several ways."""
    return tex if len(tex) == 1 or tex.startswith("\\") or tex.isalnum() else f"{{{tex}}}"


def over(base: str, mark: str) -> str:
    """Return a base with a mark or a limit over it."""
    if mark in _ACCENTS:
        return f"\\{_ACCENTS[mark]}{{{base}}}"
    return f"{base}^{group(mark)}" if base in _BIG else f"\\overset{{{mark}}}{{{base}}}"


def under(base: str, mark: str) -> str:
    """Return a base with a mark or a limit under it."""
    is_big = base in _BIG or base.startswith("\\")
    return f"{base.strip()}_{group(mark)}" if is_big else f"\\underset{{{mark}}}{{{base}}}"


def fraction(top: str, bottom: str) -> str:
    """Return a fraction."""
    return f"\\frac{{{top}}}{{{bottom}}}"


def scripts(base: str, down: str = "", up: str = "") -> str:
    """Return a base with an index or limit below it, an exponent or limit above it, or both."""
    down, up = f"_{group(down)}" if down else "", f"^{group(up)}" if up else ""
    return f"{whole(base).strip()}{down}{up}"


def power(base: str, up: str) -> str:
    """Return a base with an exponent."""
    return scripts(base, "", up)


def root(base: str, index: str) -> str:
    """Return a root with its index."""
    return f"\\sqrt[{index}]{{{base}}}"


_ESCAPED = str.maketrans(
    {
        "\\": "\\backslash ",
        "{": "\\{",
        "}": "\\}",
        "#": "\\#",
        "$": "\\$",
        "%": "\\%",
        "_": "\\_",
        "^": "\\^{}",
        "~": "\\sim ",
        "\u2212": "-",
        "\u2061": "",
        "\u2062": "",
        "\u2063": "",
        "\u2064": "",
    }
)
_FENCES = {"{": "\\{", "}": "\\}", "": "."}
_MARKS = {
    "\u0300": "grave",
    "\u0301": "acute",
    "\u0302": "hat",
    "\u0303": "tilde",
    "\u0304": "bar",
    "\u0305": "overline",
    "\u0306": "breve",
    "\u0307": "dot",
    "\u0308": "ddot",
    "\u030c": "check",
    "\u20d7": "vec",
}
_BRACES = {"\u23df": "underbrace", "\u23de": "overbrace"}
_ON = {"", "1", "on", "true"}
_ROW_END = " \\\\ "


def latex_of(formula: Node) -> str:
    """Return a formula of Office as LaTeX between dollar signs, "" for an empty one."""
    tex = " ".join(_inside(formula.iter()[0]).split())
    return f"${tex}$" if tex else ""


def _inside(node: Node) -> str:
    return "".join(map(_latex, node.iter()))


def _latex(node: Node) -> str:
    """Return an element as LaTeX (section 22.1.2). Each part is written once: they nest."""

    def parts(name: str) -> Iterator[str]:
        return (_inside(child) for child in node.iter() if child.tag == name)

    def part(name: str) -> str:
        return next(parts(name), "")

    def setting(name: str, default: str = "") -> str:
        own = (inner for n in node.iter() if n.tag == f"{node.tag}Pr" for inner in n.iter())
        return next((inner.get("val") for inner in own if inner.tag == name), default)

    match node.tag:
        case "r":
            return _run(node)
        case "f":
            top, bottom = part("num"), part("den")
            match setting("type"):
                case "noBar":
                    return f"{{{top} \\atop {bottom}}}"
                case "lin" | "skw":
                    return f"{whole(top)}/{whole(bottom)}"
                case _:
                    return fraction(top, bottom)
        case "sSup" | "sSub" | "sSubSup":
            return scripts(part("e"), part("sub"), part("sup"))
        case "sPre":
            return f"{{}}_{group(part('sub'))}^{group(part('sup'))}{part('e')}"
        case "rad":
            base, degree = part("e"), part("deg")
            hidden = setting("degHide", "0") in _ON
            return root(base, degree) if degree and not hidden else f"\\sqrt{{{base}}}"
        case "nary":
            sign = scripts(setting("chr", "\u222b"), part("sub"), part("sup"))
            return f"{sign} {part('e')}"
        case "d":
            begin, end = setting("begChr", "("), setting("endChr", ")")
            inner = setting("sepChr", "|").join(parts("e"))
            return f"{_fence('left', begin)}{inner}{_fence('right', end)}"
        case "func":
            return f"{_named(part('fName'))} {part('e')}"
        case "limLow":
            return under(_named(part("e")), part("lim"))
        case "limUpp":
            return over(_named(part("e")), part("lim"))
        case "acc":
            sign, base = setting("chr", "\u0302"), part("e")
            return f"\\{_MARKS[sign]}{{{base}}}" if sign in _MARKS else over(base, sign)
        case "groupChr":
            sign, base = setting("chr", "\u23df"), part("e")
            return f"\\{_BRACES[sign]}{{{base}}}" if sign in _BRACES else under(base, sign)
        case "bar":
            line = "overline" if setting("pos") == "top" else "underline"
            return f"\\{line}{{{part('e')}}}"
        case "m":
            lines = (
                " & ".join(_inside(cell) for cell in row.iter() if cell.tag == "e")
                for row in node.iter()
                if row.tag == "mr"
            )
            return f"\\begin{{matrix}} {_ROW_END.join(lines)} \\end{{matrix}}"
        case "eqArr":
            rows = _ROW_END.join(parts("e"))
            return f"\\begin{{aligned}} {rows} \\end{{aligned}}"
        case "phant":
            return part("e") if setting("show", "1") in _ON else ""
        case name:
            return "" if name.endswith("Pr") else _inside(node)


def _run(node: Node) -> str:
    raw = "".join(child.text() for child in node.iter() if child.tag == "t")
    text = "".join(
        unicodedata.normalize("NFKC", char) if "\U0001d400" <= char <= "\U0001d7ff" else char
        for char in raw
    )
    properties = (
        inner
        for child in node.iter()
        for inner in (child.iter() if child.tag == "rPr" else [child])
    )  # Word's reader takes no notice of rPr itself
    is_text = any(inner.tag == "nor" for inner in properties)
    return prose(text) if is_text and text.strip() else text.translate(_ESCAPED)


def _fence(side: str, sign: str) -> str:
    return sign if sign in {"(", ")", "[", "]", "|"} else f"\\{side}{_FENCES.get(sign, sign)} "


def _named(name: str) -> str:
    return identifier(name) if name.isalpha() else name
