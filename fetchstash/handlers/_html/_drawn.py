"""Draw the data of a page of scripts as a page: its texts become elements, in their order.

Rich text is read in the shapes of React's elements, of ProseMirror, Contentful and Sanity, as HTML
and as Markdown. Settings, translations and styles are no text of the page.
"""

import re
from typing import Any

from fetchstash.handlers._html import _element, _tree
from fetchstash.handlers._html._element import BLOCKS, Element, names
from fetchstash.text.untyped import is_array, is_object

MAX_NODES = 60_000
MAX_DEPTH = 100
MAX_HTML_TEXTS = 300  # texts that are HTML of their own; each is parsed
PROSE_WORDS = 8  # words of a text that is prose whatever its key; less under one of _TEXT_KEYS
TEXT_WORDS = 3
MAX_FACT_CHARS = 120

_TITLES = ("title", "headline", "name", "heading", "question")
_TEXT_KEYS = re.compile(
    r"text|body|content|description|summary|paragraph|excerpt|html|markdown|caption|answer|quote|"
    r"abstract|intro|lead|dek|subtitle|children|value|message|step|ingredient",
    re.IGNORECASE,
)
_FACTS = names(
    "price lowPrice highPrice priceCurrency currency author date datePublished publishedAt "
    "published_at createdAt created_at sku brand ratingValue reviewCount rating availability "
    "location address jobTitle salary duration category startDate endDate"
)
_NO_TEXT = re.compile(
    r"i18n|locale|translation|messages|labels|intl|config|theme|css|style|feature|experiment|flags|"
    r"tracking|analytics|seo|meta(?!data$)|cookie|consent|footer|header|nav|menu|session|env|build|"
    r"query|redirect|script|schema|href|url|src|path|slug|class|token|hash|breadcrumb|sidebar|@",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?(?:p|br|div|h[1-6]|ul|ol|li|strong|em|b|i|a|span|table|blockquote)\b[^<>]*>")
_NO_PROSE = re.compile(r"^[\s{(<\[]|[{};]\s*$|^\w+://|=>|function\s*\(|[\w$]\s*\{[^}]*:|\w{60}")
_RICH = {
    "paragraph": "p",
    "p": "p",
    "text-block": "p",
    "block": "p",
    "blockquote": "blockquote",
    "quote": "blockquote",
    "bulletlist": "ul",
    "bullet_list": "ul",
    "unordered-list": "ul",
    "orderedlist": "ol",
    "ordered_list": "ol",
    "ordered-list": "ol",
    "listitem": "li",
    "list_item": "li",
    "list-item": "li",
    "codeblock": "pre",
    "code_block": "pre",
    "code": "pre",
}
_HEADING = re.compile(r"heading[-_]?([1-6])?|h([1-6])", re.IGNORECASE)
_INNER = ("content", "children", "nodes")
_SKIPPED_TAGS = names("script style link meta svg button nav footer head title template noscript")
_COMPONENT_TEXT = names("children dangerouslySetInnerHTML")


def drawn(value: Any) -> Element:
    """Return a body with the texts of a decoded value that a reader may want."""
    painter = _Painter()
    painter.add(value, painter.body, "", 0)
    return painter.body


class _Painter:
    def __init__(self) -> None:
        self.body = Element("body", {}, None)
        self._nodes = 0
        self._parsed = 0
        self._seen: set[str] = set()

    def add(self, value: Any, parent: Element, key: str, depth: int) -> None:
        """Add a value that stands under a key."""
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            return
        if isinstance(value, str):
            self._add_text(value, parent, key)
        elif is_array(value) and _is_element(value):
            self._add_component(value, parent, depth)
        elif is_array(value):
            for item in value:
                self.add(item, parent, key, depth + 1)
        elif is_object(value):
            self._add_object(value, parent, depth)

    def _add_text(self, text: str, parent: Element, key: str) -> None:
        if not _is_prose(text, key) or text in self._seen:
            return
        self._seen.add(text)
        if _TAG.search(text) and self._parsed < MAX_HTML_TEXTS:
            self._parsed += 1
            inner = _tree.parse(_element.check(text)[0]).body
            box = _new("div", parent)
            for child in inner.children:
                box.children.append(child)
                if not isinstance(child, str):
                    child.parent = box
            box.hold_blocks()
            return
        for paragraph in text.split("\n\n"):
            if paragraph.strip():
                _new("p", parent).children.append(paragraph)

    def _add_object(self, value: dict[str, Any], parent: Element, depth: int) -> None:
        kind = next((value[k] for k in ("type", "nodeType", "_type") if k in value), "")
        if isinstance(kind, str) and self._add_rich(kind, value, parent, depth):
            return
        box = _new("div", parent)
        title = next((value[k] for k in _TITLES if isinstance(value.get(k), str)), "")
        for key, inner in value.items():
            if key not in _TITLES and not (isinstance(inner, (str, list, dict)) and no_text(key)):
                self.add(inner, box, key, depth + 1)
        facts = [f"{key}: {fact}" for key in value if key in _FACTS and (fact := _fact(value[key]))]
        title = " ".join(title.split())[:MAX_FACT_CHARS]
        line = ", ".join(facts)
        if title and box.children:
            _new("h2", box, first=True).children.append(title)
        elif title:
            line = f"{title}: {line}"
        if facts and (title or box.children) and line not in self._seen:
            self._seen.add(line)
            _new("li", box).children.append(line)
        if not box.children:
            parent.children.remove(box)

    def _add_rich(self, kind: str, value: dict[str, Any], parent: Element, depth: int) -> bool:
        """Add a node of rich text; return whether the object is one."""
        inner = next((item for k in _INNER if is_array(item := value.get(k))), None)
        leaf = next((value[k] for k in ("text", "value") if isinstance(value.get(k), str)), None)
        heading = _HEADING.fullmatch(kind) or _HEADING.fullmatch(str(value.get("style", "")))
        tag = "" if inner is None else _RICH.get(kind.lower(), "")
        if inner is None and leaf is not None and kind in {"text", "span"}:
            parent.children.append(leaf)
            return True
        if inner is not None and heading:
            attributes: Any = value.get("attrs") or value.get("attributes") or value
            level = attributes.get("level") if is_object(attributes) else 2
            is_level = isinstance(level, int) and 1 <= level <= 6
            tag = f"h{heading[1] or heading[2] or (level if is_level else 2)}"
        if inner is None or not tag:
            return False
        element = _new(tag, parent)
        for item in inner:
            if isinstance(item, str):
                element.children.append(item)
            else:
                self.add(item, element, "content", depth + 1)
        return True

    def _add_component(self, items: list[Any], parent: Element, depth: int) -> None:
        """Add an element of React: ["$", tag or component, key, properties]."""
        tag, properties = items[1], items[3]
        if tag in _SKIPPED_TAGS:
            return
        is_html = isinstance(tag, str) and re.fullmatch(r"[a-z][a-z0-9]{0,10}", tag) is not None
        if not is_html:
            for key, inner in properties.items():
                if key in _COMPONENT_TEXT:
                    self._add_child(inner, parent, depth)
                elif not no_text(key) and isinstance(inner, (list, dict)):
                    self.add(inner, parent, key, depth + 1)
            return
        element = _new(tag, parent)
        element.attributes = {
            key: inner
            for key, inner in properties.items()
            if key in {"href", "src", "alt", "id", "start", "colspan", "rowspan"}
            and isinstance(inner, str)
        }
        for key in _COMPONENT_TEXT:
            if key in properties:
                self._add_child(properties[key], element, depth)

    def _add_child(self, value: Any, parent: Element, depth: int) -> None:
        if isinstance(value, str):
            if not value.startswith("$"):
                parent.children.append(value)
        elif is_array(value) and not _is_element(value):
            for item in value:
                self._add_child(item, parent, depth + 1)
        elif is_object(value) and isinstance(value.get("__html"), str):
            self._add_text(value["__html"], parent, "html")
        else:
            self.add(value, parent, "children", depth + 1)


def _new(tag: str, parent: Element, *, first: bool = False) -> Element:
    element = Element(tag, {}, parent)
    parent.children.insert(0 if first else len(parent.children), element)
    if tag in BLOCKS:
        parent.hold_blocks()
    return element


def _is_element(items: list[Any]) -> bool:
    return len(items) >= 4 and items[0] == "$" and is_object(items[3])


def no_text(key: str) -> bool:
    """Return whether settings, translations or styles stand under a key."""
    return _NO_TEXT.search(key[:60]) is not None


def _is_prose(text: str, key: str) -> bool:
    words = len(text[:10_000].split())
    least = TEXT_WORDS if _TEXT_KEYS.search(key[:60]) else PROSE_WORDS
    if words < least or len(text[:10_000]) > words * 40:
        return False
    return bool(_TAG.search(text)) or not _NO_PROSE.search(text[:2_000])


def _fact(value: Any) -> str:
    """Return a short value on one line; of an object its name, of a list its values."""
    if is_object(value):
        return _fact(next((value[k] for k in ("name", "title", "text") if k in value), ""))
    if is_array(value):
        return ", ".join(filter(None, map(_fact, value[:5])))
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    line = " ".join(str(value).split())
    return line if len(line) <= MAX_FACT_CHARS else ""
