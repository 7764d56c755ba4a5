"""What a page may ask of the parser: one linear pass over the source, before a tree is built.

lexbor's time grows with the square of the nesting depth and of the attributes of one tag, and its memory with the number of
elements, among them the copies that unclosed formatting tags make of themselves in every block that follows (HTML Standard,
13.2.4.3). Tags and attributes that are too many are left out; the text between them stays.
"""

import re
from collections import Counter
from dataclasses import dataclass

from fetchstash.handlers._html._names import names

MAX_SOURCE_CHARS = 16_000_000
MAX_ELEMENTS = 300_000
MAX_DEPTH = 4_000
"""Counted from tags alone, so an unclosed one counts to the end: far more than a real page has, and parsed in some 30 ms."""
MAX_ATTRIBUTES = 200
MAX_COPIES = 100_000
"""Of formatting elements; after so many all formatting but links is left out."""

# A quote opens a value only after an equals sign (HTML Standard, 13.2.5.35). Possessive, so that no character is tried twice.
_TAG = re.compile(r"<(?:(/)?([a-zA-Z][^\s/>]*+)((?:[^=>]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')?+)*+)>|!--)")
_ATTRIBUTE = re.compile(r"[\s/]++[^\s/=>]++(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>]*+))?+")
_END_OF_RAW_TEXT = {
    name: re.compile(f"</{name}", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}
# Void elements, and those that the next of their kind closes: many of them make no depth.
_FLAT = names("area base br col embed hr img input link meta param source track wbr p li dd dt option tr td th thead tbody tfoot")
_FORMATTING = names("b big code em font i nobr s small strike strong tt u")
_FOREIGN = frozenset(("svg", "math"))


@dataclass(frozen=True, slots=True)
class Checked:
    """A source that is safe to parse; ``cut``: the end of the page was too much and is not in it."""

    source: str
    cut: bool


def check(source: str) -> Checked:
    """Return ``source`` without what would cost the parser more than its length is worth."""
    cut = len(source) > MAX_SOURCE_CHARS
    source = source[:MAX_SOURCE_CHARS]
    kept: list[str] = []
    kept_to = skip_to = depth = elements = copies = 0
    opened: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    formatting: set[str] = set()
    foreign = 0
    for tag in _TAG.finditer(source):
        start = tag.start()
        if start < skip_to:
            continue
        closing, name, rest = tag.groups()
        if name is None:  # a comment
            end = source.find("-->", start + 2)
            skip_to = end if end >= 0 else len(source)
            continue
        name = name.lower()
        replacement = None
        if closing:
            if left_out[name]:
                left_out[name] -= 1
                replacement = ""
            elif opened[name]:
                opened[name] -= 1
                depth -= 1
                foreign -= name in _FOREIGN
                if name in _FORMATTING and not opened[name]:
                    formatting = {text for text in formatting if not text.startswith(f"{name} ")}
        else:
            elements += 1
            if elements > MAX_ELEMENTS:
                return Checked("".join((*kept, source[kept_to:start])), cut=True)
            if name in _FORMATTING:
                formatting.add(f"{name} {rest}")
            else:
                copies += len(formatting)
            if name in _END_OF_RAW_TEXT and not foreign:
                found = _END_OF_RAW_TEXT[name].search(source, tag.end())
                skip_to = found.start() if found else len(source)
            elif name not in _FLAT and not (foreign and rest.endswith("/")):
                if depth >= MAX_DEPTH or (copies > MAX_COPIES and name in _FORMATTING):
                    left_out[name] += 1
                    replacement = ""
                else:
                    opened[name] += 1
                    depth += 1
                    foreign += name in _FOREIGN
            if replacement is None and len(rest) > 2 * MAX_ATTRIBUTES:
                replacement = _with_fewer_attributes(name, rest)
        if replacement is not None:
            kept += (source[kept_to:start], replacement)
            kept_to = tag.end()
    return Checked("".join((*kept, source[kept_to:])) if kept else source, cut)


def _with_fewer_attributes(name: str, rest: str) -> str | None:
    """Return the tag with its first attributes alone if it has too many, else None."""
    for number, attribute in enumerate(_ATTRIBUTE.finditer(rest)):
        if number == MAX_ATTRIBUTES:
            return f"<{name}{rest[: attribute.start()]}>"
    return None
