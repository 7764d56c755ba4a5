"""Formulas of Office documents (Office Math, ECMA-376-1, section 22.1) as LaTeX."""

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fetchstash.handlers._shared import _tex
from fetchstash.handlers._shared._xml_events import attribute

FORMULA = "oMath"
"""The element of one formula."""

_MAX_NODES = 5_000
_MAX_DEPTH = 40
_ESCAPED = str.maketrans({
    "\\": "\\backslash ", "{": "\\{", "}": "\\}", "#": "\\#", "$": "\\$", "%": "\\%", "_": "\\_",
    "^": "\\^{}", "~": "\\sim ", "\u2212": "-", "\u2061": "", "\u2062": "", "\u2063": "",
    "\u2064": "",
})  # fmt: skip
_FENCES = {"{": "\\{", "}": "\\}", "": "."}
_ACCENTS = {
    "\u0300": "grave", "\u0301": "acute", "\u0302": "hat", "\u0303": "tilde", "\u0304": "bar",
    "\u0305": "overline", "\u0306": "breve", "\u0307": "dot", "\u0308": "ddot",
    "\u030c": "check", "\u20d7": "vec",
}  # fmt: skip
_BRACES = {"\u23df": "underbrace", "\u23de": "overbrace"}
_ON = {"", "1", "on", "true"}


@dataclass(slots=True)
class _Node:
    name: str
    value: str = ""
    text: list[str] = field(default_factory=list[str])
    children: list["_Node"] = field(default_factory=list["_Node"])


class Formula:
    """Takes the events within one formula."""

    def __init__(self) -> None:
        self._open = [_Node(FORMULA)]
        self._nodes = 0
        self._skipped = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag."""
        self._nodes += 1
        if self._skipped or self._nodes > _MAX_NODES or len(self._open) > _MAX_DEPTH:
            self._skipped += 1
            return
        node = _Node(name, attribute(attributes, "val"))
        self._open[-1].children.append(node)
        self._open.append(node)

    def end(self) -> bool:
        """Take an end tag. Return whether it is that of the formula itself."""
        if self._skipped:
            self._skipped -= 1
        elif len(self._open) > 1:
            self._open.pop()
        else:
            return True
        return False

    def add(self, data: str) -> None:
        """Take character data."""
        self._open[-1].text.append(data)

    def latex(self) -> str:
        """Return the formula between dollar signs, "" if it is empty."""
        tex = " ".join(_all(self._open[0].children).split())
        return f"${tex}$" if tex else ""


def _all(nodes: list[_Node]) -> str:
    return "".join(map(_write, nodes))


def _write(node: _Node) -> str:
    writer = _WRITERS.get(node.name)
    if writer:
        return writer(node)
    return "" if node.name.endswith("Pr") else _all(node.children)


def _part(node: _Node, name: str) -> str:
    """Return the content of the first child of this name."""
    return next((_all(child.children) for child in node.children if child.name == name), "")


def _property(node: _Node, name: str, default: str = "") -> str:
    """Return a property of an element; ``default`` where it is not set."""
    for properties in node.children:
        if properties.name == f"{node.name}Pr":
            for child in properties.children:
                if child.name == name:
                    return child.value
    return default


def _run(node: _Node) -> str:
    raw = "".join(data for child in node.children if child.name == "t" for data in child.text)
    text = "".join(
        unicodedata.normalize("NFKC", char) if "\U0001d400" <= char <= "\U0001d7ff" else char
        for char in raw
    )
    properties = [p for p in node.children if p.name == "rPr"]
    is_text = any(child.name == "nor" for p in properties for child in p.children)
    if is_text and text.strip():
        return _tex.prose(text)
    return text.translate(_ESCAPED)


def _fraction(node: _Node) -> str:
    top, bottom = _part(node, "num"), _part(node, "den")
    match _property(node, "type"):
        case "noBar":
            return f"{{{top} \\atop {bottom}}}"
        case "lin" | "skw":
            return f"{_tex.whole(top)}/{_tex.whole(bottom)}"
        case _:
            return _tex.fraction(top, bottom)


def _root(node: _Node) -> str:
    degree = _part(node, "deg")
    base = _part(node, "e")
    hidden = _property(node, "degHide", "0") in _ON
    return _tex.root(base, degree) if degree and not hidden else f"\\sqrt{{{base}}}"


def _large(node: _Node) -> str:
    sign = _property(node, "chr", "\u222b")
    down, up = _part(node, "sub"), _part(node, "sup")
    scripts = (f"_{_tex.group(down)}" if down else "") + (f"^{_tex.group(up)}" if up else "")
    return f"{sign}{scripts} {_part(node, 'e')}"


def _delimited(node: _Node) -> str:
    begin, end = _property(node, "begChr", "("), _property(node, "endChr", ")")
    separator = _property(node, "sepChr", "|")
    inner = separator.join(_all(child.children) for child in node.children if child.name == "e")
    return f"{_fence('left', begin)}{inner}{_fence('right', end)}"


def _fence(side: str, sign: str) -> str:
    return sign if sign in {"(", ")", "[", "]", "|"} else f"\\{side}{_FENCES.get(sign, sign)} "


def _function(node: _Node) -> str:
    return f"{_named(_part(node, 'fName'))} {_part(node, 'e')}"


def _named(name: str) -> str:
    return _tex.identifier(name) if name.isalpha() else name


def _accent(node: _Node) -> str:
    sign, base = _property(node, "chr", "\u0302"), _part(node, "e")
    return f"\\{_ACCENTS[sign]}{{{base}}}" if sign in _ACCENTS else _tex.over(base, sign)


def _brace(node: _Node) -> str:
    sign, base = _property(node, "chr", "\u23df"), _part(node, "e")
    return f"\\{_BRACES[sign]}{{{base}}}" if sign in _BRACES else _tex.under(base, sign)


def _bar(node: _Node) -> str:
    name = "overline" if _property(node, "pos") == "top" else "underline"
    return f"\\{name}{{{_part(node, 'e')}}}"


def _matrix(node: _Node) -> str:
    rows = " \\\\ ".join(
        " & ".join(_all(cell.children) for cell in row.children if cell.name == "e")
        for row in node.children
        if row.name == "mr"
    )
    return f"\\begin{{matrix}} {rows} \\end{{matrix}}"


def _equations(node: _Node) -> str:
    rows = " \\\\ ".join(_all(child.children) for child in node.children if child.name == "e")
    return f"\\begin{{aligned}} {rows} \\end{{aligned}}"


def _before(node: _Node) -> str:
    down, up = _tex.group(_part(node, "sub")), _tex.group(_part(node, "sup"))
    return f"{{}}_{down}^{up}{_part(node, 'e')}"


def _hidden(node: _Node) -> str:
    return _part(node, "e") if _property(node, "show", "1") in _ON else ""


_WRITERS: dict[str, Callable[[_Node], str]] = {
    "r": _run,
    "f": _fraction,
    "sSup": lambda node: _tex.superscript(_part(node, "e"), _part(node, "sup")),
    "sSub": lambda node: _tex.subscript(_part(node, "e"), _part(node, "sub")),
    "sSubSup": lambda node: _tex.both_scripts(
        _part(node, "e"), _part(node, "sub"), _part(node, "sup")
    ),
    "sPre": _before,
    "rad": _root,
    "nary": _large,
    "d": _delimited,
    "func": _function,
    "limLow": lambda node: _tex.under(_named(_part(node, "e")), _part(node, "lim")),
    "limUpp": lambda node: _tex.over(_named(_part(node, "e")), _part(node, "lim")),
    "acc": _accent,
    "groupChr": _brace,
    "bar": _bar,
    "m": _matrix,
    "eqArr": _equations,
    "phant": _hidden,
}
