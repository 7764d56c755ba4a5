"""Pieces of LaTeX that formulas of web pages and of Office documents share. Pure functions."""

_FUNCTIONS = frozenset(
    (
        "arccos", "arcsin", "arctan", "arg", "cos", "cosh", "cot", "det", "dim", "exp", "gcd",
        "hom", "inf", "ker", "lg", "lim", "ln", "log", "max", "min", "mod", "Pr", "sec", "sin",
        "sinh", "sup", "tan", "tanh",
    )
)  # fmt: skip
_ACCENTS = {
    "\u00af": "overline", "\u203e": "overline", "^": "hat", "\u02c6": "hat", "~": "tilde",
    "\u02dc": "tilde", "\u2192": "vec", "\u20d7": "vec", "\u02d9": "dot", ".": "dot",
    "\u00a8": "ddot",
}  # fmt: skip
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
    """Return what an exponent belongs to, in braces where it could be read as several things."""
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


def under_and_over(base: str, down: str, up: str) -> str:
    """Return a base with limits under and over it."""
    return f"{base.strip()}_{group(down)}^{group(up)}"


def fraction(top: str, bottom: str) -> str:
    """Return a fraction."""
    return f"\\frac{{{top}}}{{{bottom}}}"


def superscript(base: str, up: str) -> str:
    """Return a base with an exponent."""
    return f"{whole(base)}^{group(up)}"


def subscript(base: str, down: str) -> str:
    """Return a base with an index."""
    return f"{whole(base)}_{group(down)}"


def both_scripts(base: str, down: str, up: str) -> str:
    """Return a base with an index and an exponent."""
    return f"{whole(base)}_{group(down)}^{group(up)}"


def root(base: str, index: str) -> str:
    """Return a root with its index."""
    return f"\\sqrt[{index}]{{{base}}}"
