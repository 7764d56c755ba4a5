"""Find the rules of a page's own style sheets for its elements."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from math import comb
from operator import attrgetter
from typing import NamedTuple

from fetchstash.handlers._html import _style
from fetchstash.handlers._html._element import names
from fetchstash.handlers._html._style import EVERYWHERE, Rule, Style, rules

MAX_RULES_ALIKE = 200  # rules looked up by one class, id or tag; a real sheet has fewer
MAX_SELECTOR_CHARS = 300
MAX_SELECTOR_COST = 50_000_000
"""Elements visited for the selectors of several elements: about 0.1 s."""
MAX_STEPS = 100_000_000
"""Ancestors and siblings that lexbor may try for them: it tries all combinations, 40 ns each."""

_SIMPLE = re.compile(r"([a-z][a-z0-9-]*)?((?:[.#](?:[\w-]|\\.)+)*)", re.IGNORECASE)
_NAME = re.compile(r"[.#](?:[\w-]|\\.)+")
_SHOWS = re.compile(r"display\s*:(?!\s*none)|opacity\s*:|visibility\s*:\s*visible")
_ARGUMENTS = re.compile(r"\([^()]*\)|\[[^\]]*\]")
_COMBINATOR = re.compile(r"[\s>+~]+")
_TAG = re.compile(r"[a-z][a-z0-9-]*", re.IGNORECASE)
_PSEUDO = re.compile(r":+[\w-]*")
_STATIC = names(
    ":has :is :where :not :first-child :last-child :only-child :nth-child :nth-last-child "
    ":first-of-type :last-of-type :only-of-type :nth-of-type :empty :root"
)
"""Pseudo-classes that do not depend on what a reader does."""
_COSTLY = re.compile(r":has|:nth|:only|:last|~")
_NOT_CLASS = re.compile(r":not\(\s*\.((?:[\w-]|\\.)+)")
_BRACKETS = re.compile(r"\[[^\]]*\]")
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_INVALID = re.compile(r"[;!$%?{}<@`\"']|^[>+~]|[>+~]$|[>+~]\s*[>+~]|^$|::?-(?:moz|ms|o)-")
# What a pattern begins with is searched at once: so the look behind stands after it.
_CUSTOM_PROPERTY = re.compile(r"(--(?<![\w-]--)[\w-]+)\s*:([^;{}]*)")
_CONDITION = re.compile(r"[\s>+~:\[]|[.#].*[.#]", re.DOTALL)
_OF_CODE = re.compile(r"(white-space\s*:\s*pre(?![\w-]))|user-select\s*:\s*none")
_COUNTS = re.compile(
    r"list-style[\w-]*\s*:[^;]*\b(?:lower|upper)-(?:alpha|latin|roman)", re.IGNORECASE
)
MAX_COUNTING = 100  # selectors that say how lists count
_LAST_CLASS = re.compile(r"\.([\w-]+)\s*(?:,|$)")

Select = Callable[[str], frozenset[int]]
"""Returns the ids of the elements that a selector matches."""


@dataclass
class _Entry:
    """A rule for one selector. ``matches``: the elements of a complex selector, once selected."""

    selector: str
    tag: str
    names: frozenset[str]
    rule: Rule
    is_complex: bool
    precedence: tuple[int, int, int]
    read: Callable[[str], Style | None]
    matches: frozenset[int] | None = None

    @cached_property
    def style(self) -> Style | None:
        """The style of its declarations, read when an element first asks."""
        return self.read(self.rule.declarations)


class _Rules(NamedTuple):
    """The rules for elements of one tag with the same classes and id; ``style`` of the simple."""

    style: Style | None
    simple: list[_Entry]
    complex: list[_Entry]


class StyleSheet:
    """The rules of the page's own style sheets.

    A rule that shows an element of the same class or id in some context cancels the hiding: it is
    a tab or a menu that opens. ``select`` runs a selector over the page of ``size`` elements, which
    are nested as deep as ``depth`` says. ``inline`` returns the style attributes of the page.
    ``complete``: the page has no other style sheets. If it has, only those colours count that are
    set together with their background: others may overrule the rest.
    """

    def __init__(
        self,
        sources: Iterable[str],
        select: Select,
        size: int,
        depth: Callable[[], int],
        inline: Callable[[], Iterable[str]] = tuple,
        *,
        complete: bool,
    ) -> None:
        def counted(compound: str) -> int:
            return len(select(compound))

        self.complete = complete
        self._sources = tuple(sources)
        self._inline = inline
        self._select = select
        self._size = max(size, 1)
        self._spare, self._steps = MAX_SELECTOR_COST, MAX_STEPS
        self._depth = cache(depth)
        self._count = cache(counted)
        self._entries: dict[str, list[_Entry]] = {}
        self._known: dict[tuple[str, str, str], _Rules] = {}
        self._merged: dict[tuple[int, ...], Style] = {}
        self._shown: set[str] = set()
        self._shown_for_sure: set[str] = set()  # by an important declaration
        self._keep_spaces: set[str] = set()  # classes
        self._unselectable: set[str] = set()
        self._of_lists: list[tuple[int, Rule]] = []
        matters = _style.may_matter if complete else _style.may_hide
        every = (rule for source in self._sources for rule in rules(source))
        for order, rule in enumerate(every):
            declared = rule.declarations
            if "white-space" in declared or "user-select" in declared:
                self._note_code(rule)
            if "list-style" in declared and rule.widths == EVERYWHERE:
                self._of_lists.append((order, rule))
            if ("color:" in declared and "backgr" in declared) or matters(declared):
                shows = _shows(declared)
                selectors = split_selectors(rule.selectors)
                # One that is no selector spoils the list (Selectors 4, 4.1).
                if not any(map(_is_invalid, selectors)):
                    for selector in selectors:
                        self._add(selector, rule, order, shows=shows)

    def read(self, declarations: str) -> Style | None:
        """Return the style of declarations of this page, None if they leave visibility alone."""
        if "var(" in declarations:
            declarations = _style.with_variables(_style.compact(declarations), self._variable)
        return _style.read_style(declarations)

    def _variable(self, name: str) -> str | None:
        values = self._variables.get(name, {""})
        return next(iter(values)) if len(values) == 1 else None

    @cached_property
    def _variables(self) -> dict[str, set[str]]:
        """The values of each custom property, wherever it is declared."""
        found: dict[str, set[str]] = {}
        for text in (*self._sources, *self._inline()):
            for name, value in _CUSTOM_PROPERTY.findall(text):
                found.setdefault(name.lower(), set()).add(_style.compact(value).strip(","))
        return found

    def _note_code(self, rule: Rule) -> None:
        if rule.widths == EVERYWHERE:
            for said in _OF_CODE.finditer(rule.declarations):
                classes = self._keep_spaces if said[1] else self._unselectable
                classes.update(_LAST_CLASS.findall(rule.selectors))

    @property
    def says_code(self) -> bool:
        """Whether rules make elements of some classes code, or numbers of its lines."""
        return bool(self._keep_spaces or self._unselectable)

    def of_code(self, tag: str, classes: str) -> str:
        """Return the declarations that make an element code, or the number of a line of code."""
        own = set(classes.split())
        keeps = tag == "div" and not own.isdisjoint(self._keep_spaces)
        says = "white-space:pre;" if keeps else ""
        return says if own.isdisjoint(self._unselectable) else f"{says}user-select:none;"

    @cached_property
    def counting(self) -> dict[int, str]:
        """The declarations that say how lists count, by the ids of lists and of items."""
        if not any(_COUNTS.search(rule.declarations) for _, rule in self._of_lists):
            return {}
        entries: list[_Entry] = []
        for order, rule in self._of_lists:
            for selector in split_selectors(rule.selectors):
                if len(selector) <= MAX_SELECTOR_CHARS and not _is_invalid(selector):
                    last = _last_compound(selector)
                    tag = _TAG.match(last)
                    own = frozenset(map(_style.unescape, _NAME.findall(last)))
                    at = _precedence(selector, _NAME.findall(selector), order)
                    named = tag[0].lower() if tag else ""
                    entries.append(_Entry(selector, named, own, rule, True, at, self.read))
        said: dict[int, str] = {}
        for entry in sorted(entries[:MAX_COUNTING], key=attrgetter("precedence")):
            said |= dict.fromkeys(self._matches(entry), entry.rule.declarations)
        return said

    def _add(self, selector: str, rule: Rule, order: int, *, shows: bool) -> None:
        is_complex = " " in selector and "\\" not in selector
        match = None if is_complex else _SIMPLE.fullmatch(selector)
        applies = rule.widths and selector and len(selector) <= MAX_SELECTOR_CHARS
        if match is None and ":" in selector and applies:
            applies = _STATIC.issuperset(_PSEUDO.findall(selector.lower()))
        if not applies and not shows:
            return
        last = selector if match else _last_compound(selector)
        own = _NAME.findall(match[2] if match else last)
        names = frozenset(map(_style.unescape, own))
        # Without a condition the cascade decides. What fades, a script fades in.
        if shows and (
            rule.widths != EVERYWHERE
            or "opacity" in rule.declarations
            or _CONDITION.search(selector)
        ):
            self._shown |= names
            if "!important" in rule.declarations:
                self._shown_for_sure |= names
        if not applies:
            return
        tag_match = _TAG.match(last)
        tag = tag_match[0].lower() if tag_match else ""
        entries = self._entries.setdefault(min(names, default=tag or "*"), [])
        if len(entries) < MAX_RULES_ALIKE:
            named = own if match else _NAME.findall(selector)
            at = _precedence(selector, named, order)
            entries.append(_Entry(selector, tag, names, rule, match is None, at, self.read))

    def is_silent(self, tag: str, classes: str) -> bool:
        """Return whether no rule can apply to an element of these classes without an id."""
        known = self._rules(tag, classes, "")
        return known.style is None and not known.complex

    def has_rule_for(self, identifier: str) -> bool:
        """Return whether a rule names this id."""
        return f"#{identifier}" in self._entries

    def style(self, tag: str, classes: str, identifier: str, element: int) -> Style | None:
        """Return what the sheets say of an element, None if nothing.

        ``element`` is its id as ``select`` gives it.
        """
        known = self._rules(tag, classes, identifier if self.has_rule_for(identifier) else "")
        if not known.complex:
            return known.style
        also = [entry for entry in known.complex if element in self._matches(entry)]
        return self._merge([*known.simple, *also]) if also else known.style

    def _rules(self, tag: str, classes: str, identifier: str) -> _Rules:
        known = self._known.get((tag, classes, identifier))
        if known is None:
            own = {f".{name}" for name in classes.split()}
            own.add(f"#{identifier}")
            if (classes or identifier) and self._entries.keys().isdisjoint(own):
                known = self._rules(tag, "", "")
            else:
                named = sorted(own & self._entries.keys())
                known = self._find((tag, *named, "*"), tag, own)
            self._known[tag, classes, identifier] = known
        return known

    def _find(self, keys: tuple[str, ...], tag: str, own: set[str]) -> _Rules:
        """Return the rules under these keys for elements of a tag with ``own`` names."""
        simple: list[_Entry] = []
        complex_: list[_Entry] = []
        for key in keys:
            for entry in self._entries.get(key, ()):
                if entry.tag in {"", tag} and entry.names <= own and self._has_style(entry):
                    (complex_ if entry.is_complex else simple).append(entry)
        return _Rules(self._merge(simple) if simple else None, simple, complex_)

    def _has_style(self, entry: _Entry) -> bool:
        style = entry.style
        if style is None or self.complete or not entry.is_complex:
            return style is not None
        return _style.hides(style) or style.get("visible") is False

    def _merge(self, entries: list[_Entry]) -> Style:
        """Return one style of all entries, by precedence; hiding counts only at all WIDTHS."""
        key = tuple(map(id, entries))
        merged = self._merged.get(key)
        if merged is not None:
            return merged
        merged = self._merged[key] = Style()
        not_displayed = displayed = out_of_sight = invisible = 0  # masks of WIDTHS
        ordered = sorted(entries, key=attrgetter("precedence"))
        insisted = Style()
        for is_important, entry in product((False, True), ordered):
            style, widths = entry.style or Style(), entry.rule.widths
            if is_important:
                if "important" not in style:
                    continue
                style = style["important"]
                if widths == EVERYWHERE:
                    insisted.update(style)
            if widths == EVERYWHERE:
                merged.update(style)
            shown = self._shown_for_sure if is_important else self._shown
            is_kept = not entry.names & shown and entry.tag not in {"html", "body"}
            match style.get("displayed"):
                case True:
                    displayed, not_displayed = displayed | widths, not_displayed & ~widths
                case False if is_kept:
                    displayed, not_displayed = displayed & ~widths, not_displayed | widths
                case _:
                    pass
            if is_kept:
                out_of_sight |= widths if "out_of_sight" in style else 0
                invisible |= widths if style.get("visible") is False else 0
        is_visible = merged.pop("visible", False)
        merged.pop("displayed", None)
        merged.pop("out_of_sight", None)
        merged.pop("important", None)
        if EVERYWHERE in {not_displayed, displayed}:
            merged["displayed"] = displayed == EVERYWHERE
        if out_of_sight == EVERYWHERE:
            merged["out_of_sight"] = True
        if is_visible or invisible == EVERYWHERE:
            merged["visible"] = invisible != EVERYWHERE
        if insisted:
            merged["important"] = insisted
        return merged

    def _matches(self, entry: _Entry) -> frozenset[int]:
        if entry.matches is None:
            entry.matches = frozenset()
            cost = self._size * (self._size if _COSTLY.search(entry.selector) else 1)
            if cost <= self._spare:
                self._spare -= cost
                # A script takes the match back by a class, as carousels do.
                absent = _NOT_CLASS.findall(entry.selector)
                if not self._is_slow(entry) and not any(self._select(f".{n}") for n in absent):
                    entry.matches = self._select(entry.selector)
        return entry.matches

    def _is_slow(self, entry: _Entry) -> bool:
        """Return whether a selector may take more steps than are left; else take them off."""
        names = "".join(name[0] + re.escape(name[1:]) for name in entry.names)
        last = self._count(f"{entry.tag}{names}" or "*")
        steps = _worst(entry.selector, self._depth(), self._size) * (last or self._size)
        if steps > self._steps:
            return True
        self._steps -= steps
        return False


def _precedence(selector: str, named: list[str], order: int) -> tuple[int, int, int]:
    """Return the key by which rules overrule each other; ``named`` are ids and classes."""
    ids = sum(name[0] == "#" for name in named)
    return ids, len(named) - ids + selector.count("["), order


def _worst(selector: str, depth: int, size: int) -> int:
    """Return how many combinations of ancestors and siblings an element may be tried with."""
    combinators = _COMBINATOR.findall(_BRACKETS.sub("", selector).strip())
    ancestors = sum(not combinator.strip() for combinator in combinators)
    siblings = sum("~" in combinator for combinator in combinators)
    inside: int = size ** min(selector.count(":has"), 9)
    return comb(max(depth, 2 * ancestors), ancestors) * comb(size + siblings, siblings) * inside


def _shows(declarations: str) -> bool:
    text = _style.unescape(declarations).lower()
    may = "display" in text or "opacity" in text or "visibility" in text
    return may and _SHOWS.search(text) is not None


def _is_invalid(selector: str) -> bool:
    """Return whether a browser takes this for no selector (Selectors 4, 3.9)."""
    if _INVALID.search(selector) is None:
        return False
    return _INVALID.search(_BRACKETS.sub("", _ESCAPED.sub("", selector))) is not None


def split_selectors(selectors: str) -> list[str]:
    """Return the selectors of a list; a comma inside brackets separates nothing."""
    if "(" not in selectors and "[" not in selectors:
        return [selector.strip() for selector in selectors.split(",")]
    parts: list[str] = []
    depth = start = 0
    for number, mark in enumerate(selectors):
        depth += (mark in "([") - (mark in ")]")
        if mark == "," and depth == 0:
            parts.append(selectors[start:number].strip())
            start = number + 1
    return [*parts, selectors[start:].strip()]


def _last_compound(selector: str) -> str:
    while "(" in selector and (shorter := _ARGUMENTS.sub("", selector)) != selector:
        selector = shorter
    return _COMBINATOR.split(_ARGUMENTS.sub("", selector).strip())[-1]
