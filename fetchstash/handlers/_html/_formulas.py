"""Write the formulas of a page as LaTeX between dollar signs, once each.

The sources are MathML with its annotations, KaTeX, MathJax and the pictures of Wikipedia. All but
the MathML itself is text that a reader does not see, so that it must look like a formula.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from fetchstash.handlers._shared import _tex

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

MAX_TEX_CHARS = 5_000
MAX_DEPTH = 40
MAX_NODES = 5_000
MAX_PROSE_WORDS = 4
"""Words in a row; TeX with more of them is prose."""

_TEX = ("tex", "latex")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_PROSE = re.compile(rf"(?:\b[^\W\d_]{{2,}}\b[\s,.:;]+){{{MAX_PROSE_WORDS}}}[^\W\d_]{{2,}}")
_STYLED = re.compile(r"\{\\(?:display|text)style\s*(.*)\}", re.DOTALL)
_COMMENT = re.compile(r"(?<!\\)%[^\n]*\n")
_DELIMITED = re.compile(r"\\\(((?:[^\\$]|\\[^()])*)\\\)|\\\[((?:[^\\$]|\\[^\[\]])*)\\\]")
_PICTURE = re.compile(r"(?:^|[\s_-])(?:latex|tex|mathjax|math|equation)(?:$|[\s_-])", re.IGNORECASE)
_RENDERED = re.compile(r"(?:^|\s)MathJax(?:_(?:Display|SVG|CHTML|SVG_Display))?(?:\s|$)")
_OPERATORS = {"\u2212": "-", "\u2061": "", "\u2062": "", "\u2063": "", "\u2064": ""}


def marked(tex: str) -> str:
    """Return TeX between dollar signs on one line, "" if it does not look like a formula."""
    tex = _COMMENT.sub(" ", tex.strip())
    if match := _STYLED.fullmatch(tex):
        tex = match[1]
    tex = " ".join(tex.split())
    if not tex or len(tex) > MAX_TEX_CHARS or _PROSE.search(_COMMAND.sub(" ", tex)):
        return ""
    return f"${tex}$"


def with_dollars(text: str) -> str:
    r"""Return text whose formulas in \(…\) and \[…\] stand between dollar signs."""
    if "\\(" not in text and "\\[" not in text:
        return text
    return _DELIMITED.sub(lambda match: marked(match[1] or match[2] or "") or match[0], text)


def picture(attributes: dict[str, str]) -> str:
    """Return the formula that an image shows, "" for any other image."""
    names_ = f"{attributes.get('class', '')} {attributes.get('id', '')}"
    source = attributes.get("src", "")
    is_formula = _PICTURE.search(names_) or "/math/render/" in source or "latex" in source
    return marked(attributes.get("alt", "")) if is_formula else ""


def rendered(tag: str, classes: str, node: "LexborNode", *, has_sources: bool) -> str | None:
    """Return the formula of an element that KaTeX or MathJax made, None for any other element.

    ``has_sources``: the page holds the TeX in scripts, which are read instead.
    """
    if tag == "mjx-container" or _RENDERED.search(classes):
        math = node.css_first("math")
        return "" if has_sources else formula(math) if math is not None else None
    if "katex" in classes.split():
        math = node.css_first("math")
        return formula(math) if math is not None else None
    return "" if "MathJax_Preview" in classes else None


def formula(math: "LexborNode") -> str:
    """Return a math element as LaTeX, by its annotation, its alttext or itself."""
    for note in math.css("annotation"):
        encoding = (note.attributes.get("encoding") or "").lower()
        if encoding.removeprefix("application/x-") in _TEX and (tex := marked(note.text())):
            return tex
    if tex := marked((math.attributes.get("alttext") or "").replace("\u2061", "")):
        return tex
    return latex(math)


class MathNode(Protocol):
    """An element of MathML."""

    @property
    def tag(self) -> str | None:
        """Its name without a prefix."""
        ...

    @property
    def attributes(self) -> Mapping[str, str | None]:
        """Its attributes by name."""
        ...

    def text(self, *, deep: bool = True) -> str:
        """Return all text in it."""
        ...

    def iter(self) -> "Iterable[MathNode]":
        """Yield the elements in it."""
        ...


def latex(math: MathNode) -> str:
    """Return presentation MathML as LaTeX between dollar signs, "" if it is empty."""
    tex = " ".join(_Writer().write(math, 0).split())
    return f"${tex}$" if tex else ""


class _Writer:
    """Writes presentation MathML (MathML Core) as LaTeX."""

    def __init__(self) -> None:
        self._nodes = 0

    def write(self, node: MathNode, depth: int) -> str:
        """Return one element; beyond the limits only its text."""
        self._nodes += 1
        tag = node.tag or ""
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            return node.text(deep=True)
        if tag in {"annotation", "annotation-xml", "mphantom"}:
            return ""
        if tag in _TOKENS:
            return _TOKENS[tag](node.text(deep=True).strip())
        parts = [self.write(child, depth + 1) for child in node.iter()]
        if tag in _LAYOUTS and len(parts) == _LAYOUTS[tag][0]:
            return _LAYOUTS[tag][1](*parts)
        match tag:
            case "msqrt":
                return f"\\sqrt{{{''.join(parts)}}}"
            case "mtable":
                rows = " \\\\ ".join(parts)
                return f"\\begin{{matrix}} {rows} \\end{{matrix}}"
            case "mtr":
                return " & ".join(parts)
            case "mspace":
                return " "
            case "mfenced":
                opened = node.attributes.get("open") or "("
                closed = node.attributes.get("close") or ")"
                return f"{opened}{', '.join(parts)}{closed}"
            case _:
                return "".join(parts)


def _operator(text: str) -> str:
    return (
        f" {text} " if text in {"=", "<", ">", "\u2264", "\u2265"} else _OPERATORS.get(text, text)
    )


_TOKENS: dict[str, Callable[[str], str]] = {
    "mi": _tex.identifier,
    "mn": str,
    "mo": _operator,
    "ms": _tex.prose,
    "mtext": _tex.prose,
}


_LAYOUTS: dict[str, tuple[int, Callable[..., str]]] = {
    "mfrac": (2, _tex.fraction),
    "msup": (2, _tex.superscript),
    "msub": (2, _tex.subscript),
    "msubsup": (3, _tex.both_scripts),
    "mroot": (2, _tex.root),
    "mover": (2, _tex.over),
    "munder": (2, _tex.under),
    "munderover": (3, _tex.under_and_over),
}
