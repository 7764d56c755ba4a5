"""Declarative shadow trees as a reader sees them (HTML Standard, 4.12.3; DOM, 4.2.2).

A parser keeps the content of a template out of the tree. So the template of a shadow root becomes
an ordinary element before the page is parsed, and what its host holds moves into its slots after.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_ROOTS = 2_000
ROOT = "shadow-root"
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<style\b[^>]*>(?P<rules>.*?)(?:</style\b|\Z)|"
    r"<(?P<raw>script|textarea|title|xmp|iframe|noembed|noframes)\b.*?(?:</(?P=raw)\b|\Z)|"
    r"<template\b(?P<attributes>[^>]*)>|(?P<end></template\s*>)",
    re.IGNORECASE | re.DOTALL,
)
_TEMPLATE = re.compile(r"<template\b", re.IGNORECASE)
_IS_ROOT = re.compile(r"\bshadowroot(?:mode)?\s*=\s*[\"']?(?:open|closed)\b", re.IGNORECASE)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SELECTORS = re.compile(r"(^|[{};])([^{}@;]+)(?=\{)")
_HOST = re.compile(r":host(?:-context)?(?:\([^()]*\))?")


def opened(source: str) -> str:
    """Return the source with each shadow root's template as an element; its style stays inside."""
    if not _TEMPLATE.search(source):
        return source
    pieces: list[str] = []
    stack: list[str] = []  # of the open templates: the name of a root, "" for any other
    at = roots = 0
    for token in _TOKEN.finditer(source):
        pieces.append(source[at : token.start()])
        at, written = token.end(), token[0]
        around = next(filter(None, reversed(stack)), "")
        if token["attributes"] is not None:
            is_root = roots < MAX_ROOTS and _IS_ROOT.search(token["attributes"]) is not None
            roots += is_root
            stack.append(f"r{roots}" if is_root else "")
            written = f'<{ROOT} class="r{roots}">' if is_root else written
        elif token["end"] and stack:
            written = f"</{ROOT}>" if stack.pop() else written
        elif token["rules"] is not None and around:
            begin, end = (position - token.start() for position in token.span("rules"))
            written = written[:begin] + _scoped(token["rules"], around) + written[end:]
        pieces.append(written)
    return "".join((*pieces, source[at:]))


def _scoped(rules: str, root: str) -> str:
    """Return style rules that hold inside of one shadow root alone (CSS Scoping, 3.1)."""

    def scope(match: re.Match[str]) -> str:
        inside = (_HOST.sub("", selector).strip() for selector in match[2].split(","))
        return match[1] + ", ".join(f"{ROOT}.{root} {selector or '_'}" for selector in inside)

    return _SELECTORS.sub(scope, _COMMENT.sub("", rules))


def fill_slots(parser: "LexborHTMLParser") -> None:
    """Move what hosts hold into the slots of their shadow roots; drop what has no slot."""
    for root in parser.css(ROOT):
        host = root.parent
        if host is None:
            continue
        light = [child for child in host.iter(include_text=True) if child.mem_id != root.mem_id]
        slots: dict[str, LexborNode] = {}
        for slot in root.css("slot"):
            if _root_around(slot) == root.mem_id:
                slots.setdefault(slot.attributes.get("name") or "", slot)
        filled: set[str] = set()
        for child in light:
            attributes = child.attributes if child.is_element_node else {}
            name = attributes.get("slot") or ""
            is_blank = not child.is_element_node and not (child.text_content or "").strip()
            if name in slots and not is_blank and not child.is_comment_node:
                if name not in filled:
                    for fallback in list(slots[name].iter(include_text=True)):
                        fallback.decompose()
                    filled.add(name)
                slots[name].insert_child(child)
            child.decompose()


def _root_around(slot: "LexborNode") -> int:
    around = slot.parent
    while around is not None and around.tag != ROOT:
        around = around.parent
    return around.mem_id if around is not None else 0
