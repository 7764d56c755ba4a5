"""Elements of a page: names, attributes, and addresses that are safe to show.

lexbor's time grows with the square of the nesting depth, of the attributes of one tag and of the
options of one select. Its memory grows with the number of elements; an unclosed formatting tag is
copied into every block after it (HTML Standard, 13.2.4.3). Tags and attributes beyond a limit are
removed; their text stays.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator


def names(text: str) -> frozenset[str]:
    """Return the set of the words of ``text``."""
    return frozenset(text.split())


BLOCKS = names(
    "address article aside blockquote body caption center dd details dialog dir div dl dt "
    "fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu "
    "nav ol p pre search section summary table tbody td tfoot th thead tr ul"
)
"""Block-level elements: each begins a line of its own."""
CODE_TAGS = frozenset(("code", "tt", "kbd", "samp"))
_MAY_BE_VERBATIM = frozenset(("code", "samp", "div"))
_OF_LANGUAGE = re.compile(r"(?:^|\s)(?:language-|lang-|hljs\b|prettyprint\b|sourceCode\b)")
_EDITOR_LINES = frozenset(
    ("cm-line", "CodeMirror-line", "ace_line", "crayon-line", "view-line"),
)
"""Lines in CodeMirror, Ace, Crayon and Monaco, which set code without one ``pre``."""
_OF_CODE = _EDITOR_LINES | {"line", "foldopen", "ttc"}
_OF_SCRIBBLE = frozenset(("RktBlk", "SCodeFlow", "SVerbatim", "prototype"))
_HOLDS_CODE = re.compile(r"code|fragment|highlight|listing|syntax", re.IGNORECASE)
_KEEPS_SPACES = re.compile(r"white-space\s*:\s*(?:pre|break-spaces)", re.IGNORECASE)
_IS_BLOCK = frozenset(("block", "code-block", "codeblock"))
_FRAGMENTS = frozenset(("code", "pre"))
_TIP = re.compile(r"(?:^|\s)(?:hover-info|twoslash-popup)(?![a-z])")
TIP_REACH = 6  # elements above a ``code`` in which the code around it is searched
HEADINGS = {f"h{level}": level for level in range(1, 7)}


class Element:
    """An element of a page.

    ``children`` are elements and texts in document order. ``holds_blocks`` says whether a
    block-level element is inside.
    """

    __slots__ = ("attributes", "children", "holds_blocks", "parent", "tag")

    def __init__(self, tag: str, attributes: dict[str, str], parent: "Element | None") -> None:
        self.tag = tag
        self.attributes = attributes
        self.parent = parent
        self.children: list[Element | str] = []
        self.holds_blocks = False

    def hold_blocks(self) -> None:
        """Note that a block-level element is inside of this one and of those around it."""
        element: Element | None = self
        while element is not None and not element.holds_blocks:
            element.holds_blocks = True
            element = element.parent

    def elements(self) -> Iterator["Element"]:
        """Yield the child elements."""
        return (child for child in self.children if not isinstance(child, str))

    def descendants(self) -> Iterator["Element"]:
        """Yield all elements inside, in document order."""
        pending = self.children[::-1]
        while pending:
            child = pending.pop()
            if not isinstance(child, str):
                yield child
                pending += child.children[::-1]

    def subtree(self) -> Iterator["Element"]:
        """Yield this element and all elements inside, in document order."""
        yield self
        yield from self.descendants()

    def outward(self) -> Iterator["Element"]:
        """Yield this element and those around it, the nearest first."""
        element: Element | None = self
        while element is not None:
            yield element
            element = element.parent

    def nearest(self, count: int) -> list["Element"]:
        """Return this element and those around it, the nearest first, at most ``count``."""
        elements: list[Element] = []
        element: Element | None = self
        for _ in range(count):
            if element is None:
                break
            elements.append(element)
            element = element.parent
        return elements

    def get(self, attribute: str) -> str:
        """Return the value of an attribute, "" if it has none."""
        return self.attributes.get(attribute, "")

    def classes(self) -> list[str]:
        """Return the names of its classes."""
        return self.attributes.get("class", "").split()

    def raw(self) -> str:
        """Return the text inside as it stands."""
        return "".join([c if isinstance(c, str) else c.raw() for c in self.children])

    def text(self) -> str:
        """Return the text inside, its white space collapsed."""
        return " ".join(self.raw().split())


def is_read(element: Element) -> bool:
    """Return whether an element is text, and not a control or the stand-in for scripts.

    A button is text if it opens a panel: a question of a FAQ, the label of a tab.
    """
    if element.tag != "button":
        return element.tag != "noscript"
    opens = not element.attributes.keys().isdisjoint(("aria-controls", "aria-expanded"))
    return opens or element.get("role") == "tab" or "accordion" in element.get("class")


def is_verbatim(element: Element) -> bool:
    """Return whether an element that is no ``pre`` shows code in which white space counts.

    Its style says so, or its class that it is a block; a ``code`` of a language has lines, too.
    """
    if element.tag not in _MAY_BE_VERBATIM or not element.attributes:
        return False
    keeps = _KEEPS_SPACES.search(element.get("style")) is not None
    if element.tag == "div":
        return keeps and not element.holds_blocks and bool(_HOLDS_CODE.search(element.get("class")))
    if keeps or not _IS_BLOCK.isdisjoint(element.classes()):
        return True
    return _OF_LANGUAGE.search(element.get("class")) is not None and "\n" in element.raw().strip()


def is_code(element: Element) -> bool:
    """Return whether an element is a block of code: a ``pre``, or one of an element a line.

    Doxygen writes ``div.fragment > div.line``, SyntaxHighlighter ``td.code > div > div.line``,
    Scribble tables and quotations, and Verso an example as fragments.
    """
    if element.tag in {"table", "blockquote"}:
        return not _OF_SCRIBBLE.isdisjoint(element.classes())
    if element.tag in _MAY_BE_VERBATIM and is_verbatim(element):
        return True
    if element.tag != "div":
        return element.tag == "pre"
    if "CodeMirror-code" in element.classes():
        return True
    for first in element.children:
        if not isinstance(first, str):
            break
    else:
        return False
    if first.tag in _FRAGMENTS:
        return bool(code_fragments(element))
    if "class" not in first.attributes or _OF_CODE.isdisjoint(first.classes()):
        return False
    is_of_editor = not _EDITOR_LINES.isdisjoint(first.classes())
    if not is_of_editor and not any(
        _HOLDS_CODE.search(holder.get("class")) for holder in element.nearest(2)
    ):
        return False
    return all(
        child.isspace() if isinstance(child, str) else not _OF_CODE.isdisjoint(child.classes())
        for child in element.children
    )


def code_fragments(element: Element) -> list[Element]:
    """Return the pieces of an example that is nothing but code and its output, [] for any other.

    A ``pre`` stands for itself: one piece at least is a ``code`` that its class calls a block.
    """
    pieces: list[Element] = []
    for child in element.children:
        if isinstance(child, str):
            if not child.isspace():
                return []
        elif child.tag == "pre" or (child.tag == "code" and is_verbatim(child)):
            pieces.append(child)
        else:
            return []
    has_code = any(piece.tag == "code" for piece in pieces)
    return pieces if has_code and len(pieces) > 1 else []


def is_tip(element: Element) -> bool:
    """Return whether an element inside code is a tooltip over a name, such as its type.

    Its class says so, or it is code inside of code (Twoslash, Verso), which HTML has no use for.
    """
    if _TIP.search(element.get("class")):
        return True
    return element.tag == "code" and any(
        around.tag == "code" and around.text() != element.text()
        for around in element.nearest(TIP_REACH)[1:]
    )


def lines_of_code(element: Element) -> Iterator[Element]:
    """Yield the lines of a ``div`` of code, without the tips that Doxygen shows over names."""
    for child in element.elements():
        if "line" in (classes := child.classes()) or not _EDITOR_LINES.isdisjoint(classes):
            yield child
        elif "ttc" not in classes:
            yield from lines_of_code(child)


Node = Element | str
"""A child of an element: an element or a text."""


def elements_in(nodes: Iterable[Node]) -> Iterator[Element]:
    """Yield all elements among and inside of nodes, in document order."""
    pending = [*nodes][::-1]
    while pending:
        node = pending.pop()
        if not isinstance(node, str):
            yield node
            pending += node.children[::-1]


MAX_SOURCE_CHARS = 16_000_000
MAX_ELEMENTS = 200_000
MAX_TAGS = 4 * MAX_ELEMENTS  # start tags, end tags and comments
MAX_DEPTH = 2_000
"""Open tags; one without an end tag counts to the end of the page. Parsed in some 30 ms."""
MAX_ATTRIBUTES = 200
MAX_OPTIONS = 2_000
MAX_COPIES = 100_000  # copies of formatting elements; after so many, formatting tags are removed

# A page with fewer tags, and fewer tags times formatting tags, cannot exceed a limit.
HARMLESS_TAGS, HARMLESS_PRODUCT = 4 * MAX_OPTIONS, 1_000_000

# A quote opens a value only after an equals sign (HTML Standard, 13.2.5.35). Neither pattern can
# fail after its first character, so that no character is tried twice; ``re`` keeps some hundred
# bytes for each repetition, so their number is bounded.
_REST = r"[^=>]*(?:=\s*(?:\"[^\"]*\"|'[^']*')?[^=>]*){0,1000}"
_TAG = re.compile(rf"<(?:(/)?([a-zA-Z][^\s/>]*)({_REST})|!--)")
_MORE = re.compile(_REST)
# There is one way to match an attribute: a name ends before what is none of it, a value without
# quotes at a space or at the tag's end. Behind a closing quote no space is needed.
_VALUE = r"\"[^\"]*\"|'[^']*'|[^\s\"'>][^\s>]*(?![^\s>])|(?=>|\Z)"
_BEFORE = r"(?:[\s/]+|(?<=[\"']))"
_ATTRIBUTE = rf"{_BEFORE}[^\s/=>]+(?![^\s/=>])(?:\s*=\s*(?:{_VALUE}))?"
_MANY_ATTRIBUTES = re.compile(
    rf"<[a-zA-Z][^\s/>]*(?:{_ATTRIBUTE}){{0,{MAX_ATTRIBUTES}}}(?P<more>{_ATTRIBUTE})?"
)
# A tag of so many attributes is long, or a value of it holds the sign that ends other tags.
_MAY_BE_CROWDED = re.compile(
    rf"<[a-zA-Z](?=[^>]{{{2 * MAX_ATTRIBUTES}}}|[^>]*=\s*(?:\"[^\">]*>|'[^'>]*>))"
)
_FIRST_ATTRIBUTES = re.compile(rf"(?:{_ATTRIBUTE}){{{MAX_ATTRIBUTES}}}(?={_BEFORE}[^\s/>])")
_END_OF_RAW_TEXT = {
    name: re.compile(f"</{name}", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}
# Void elements, and elements that the next of their kind closes: they do not nest.
_FLAT = names(
    "area base br col embed hr img input link meta param source track wbr "
    "p li dd dt option tr td th thead tbody tfoot"
)
_FORMATTING = names("b big code em font i nobr s small strike strong tt u")
# The first letters alone pass over most tags in a quarter of the time.
_FORMATTING_TAG = re.compile(rf"<(?=[bcefinstu])(?:{'|'.join(_FORMATTING)})[\s/>]", re.IGNORECASE)
_OPTIONS = names("option optgroup")
_FOREIGN = names("svg math")


# A browser that runs scripts reads noscript as raw text (HTML Standard, 13.2.6.4.4): a frame that
# is left open in it does not swallow the page.
_OPEN_FRAME = re.compile(r"<iframe\b[^>]*>(?=(?:[^<]|<!--)*</noscript\b)", re.IGNORECASE)


def check(source: str) -> tuple[str, bool]:
    """Return ``source`` safe to parse, and whether its end was cut off.

    Tags and attributes beyond the limits are removed.
    """
    cut = len(source) > MAX_SOURCE_CHARS
    source = source[:MAX_SOURCE_CHARS]
    if source.count("<iframe") > source.count("</iframe"):
        source = _OPEN_FRAME.sub("", source)
    if is_harmless(source):
        return source, cut
    source, cut_by_tags = _Scan().run(source)
    return source, cut or cut_by_tags


def is_harmless(source: str) -> bool:
    """Return whether a source is too small to exceed a limit; most pages are."""
    tags = source.count("<")
    if tags > HARMLESS_TAGS:
        return False
    chars = 0
    for tag in _MAY_BE_CROWDED.finditer(source):
        # A tag may stand in another's value, and be read with each of them: the scan reads it once.
        if (read := _MANY_ATTRIBUTES.match(source, tag.start())) is None:
            continue
        chars += read.end() - read.start()
        if read["more"] is not None or chars > 4 * len(source):
            return False
    return tags * len(_FORMATTING_TAG.findall(source)) <= HARMLESS_PRODUCT


class _Scan:
    """Counts open elements and removes tags beyond the limits."""

    def __init__(self) -> None:
        self._depth = self._elements = self._paragraphs = 0
        self._copies = self._options = self._foreign = 0
        self._open: defaultdict[str, int] = defaultdict(int)
        self._left_out: defaultdict[str, int] = defaultdict(int)
        self._formatting: set[tuple[str, str]] = set()

    def run(self, source: str) -> tuple[str, bool]:
        """Return ``source`` up to the last element that fits, and whether that is not all."""
        kept: list[str] = []
        kept_to = skip_to = 0
        for number, tag in enumerate(_TAG.finditer(source)):
            start, end = tag.span()
            if number > MAX_TAGS:
                return "".join((*kept, source[kept_to:start])), True
            if start < skip_to:
                continue
            closing, name, rest = tag.groups()
            if name is None:  # a comment
                end = source.find("-->", start + 2)
                skip_to = end if end >= 0 else len(source)
                continue
            name = name.lower()
            if not source.startswith(">", end):  # the end of the source, or a very long tag
                while end < len(source) and source[end] != ">" and (m := _MORE.match(source, end)):
                    end = m.end()
                rest = source[tag.start(3) : end]
            skip_to = end = end + source.startswith(">", end)
            replacement: str | None = None
            if closing:
                if name not in _FLAT and self._closes_left_out(name):
                    replacement = ""
            elif name in _END_OF_RAW_TEXT and not self._foreign:
                raw_end = _END_OF_RAW_TEXT[name].search(source, end)
                skip_to = raw_end.start() if raw_end else len(source)
            elif self._is_too_much(name, rest):
                replacement = ""
            elif len(rest) > 2 * MAX_ATTRIBUTES and (first := _FIRST_ATTRIBUTES.match(rest)):
                replacement = f"<{name}{first[0]}>"
            if replacement != "":
                self._elements += self._makes_element(name, closing=bool(closing))
                if self._elements > MAX_ELEMENTS:
                    return "".join((*kept, source[kept_to:start])), True
            if replacement is not None:
                kept += (source[kept_to:start], replacement)
                kept_to = end
        return "".join((*kept, source[kept_to:])) if kept else source, False

    def _makes_element(self, name: str, *, closing: bool) -> bool:
        """Return whether a tag makes an element.

        The end tag of a paragraph that is not open does, too (HTML Standard, 13.2.6.4.7).
        """
        if name != "p":
            return not closing or name == "br"
        if closing and self._paragraphs:
            self._paragraphs -= 1
            return False
        self._paragraphs += not closing
        return True

    def _is_too_much(self, name: str, rest: str) -> bool:
        if name in _FORMATTING:
            self._formatting.add((name, rest))
        else:
            self._copies += len(self._formatting)
        if name in _OPTIONS:
            self._options += 1
            return self._options > MAX_OPTIONS
        if name in _FLAT or (self._foreign and rest.endswith("/")):
            return False
        if self._depth >= MAX_DEPTH or (self._copies > MAX_COPIES and name in _FORMATTING):
            self._left_out[name] += 1
            return True
        self._open[name] += 1
        self._depth += 1
        self._foreign += name in _FOREIGN
        return False

    def _closes_left_out(self, name: str) -> bool:
        if self._left_out[name]:
            self._left_out[name] -= 1
            return True
        if self._open[name]:
            self._open[name] -= 1
            self._depth -= 1
            self._foreign -= name in _FOREIGN
            if name in _FORMATTING and not self._open[name]:
                self._formatting = {
                    (other, rest) for other, rest in self._formatting if other != name
                }
        return False
