"""Text within a block as Markdown: emphasis, links, code."""

import re
from itertools import islice
from urllib.parse import urljoin

from fetchstash.handlers._html import _element
from fetchstash.handlers._html._element import BLOCKS, Element, Node, is_code, names
from fetchstash.handlers._html._media import MEDIA, labelled, shown
from fetchstash.handlers._html._tables import code_lines
from fetchstash.handlers._prose import script

_STRUCK = frozenset(("del", "s", "strike"))
_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", **dict.fromkeys(_STRUCK, "~~")}
MAX_LINKED_ALT_CHARS = 100
QUOTE_REACH = 4  # elements above a quotation in which another one is searched
_QUOTES = (
    ("\N{LEFT DOUBLE QUOTATION MARK}", "\N{RIGHT DOUBLE QUOTATION MARK}"),
    ("\N{LEFT SINGLE QUOTATION MARK}", "\N{RIGHT SINGLE QUOTATION MARK}"),
)
_NOT_SHOWN = frozenset(("button", "noscript"))
# The text of a link that copies the address of a heading. An operator, as in "(.)", is a name.
_PERMALINK = re.compile(r"(?:_|[^\w(])*$|(?:permalink|link|anchor|\[?edit\]?)$", re.IGNORECASE)
_TAG_START = re.compile(r"<(?=[a-zA-Z/!?])(?!/?ins>)")  # HTML to Markdown (CommonMark 0.31, 6.6)
_SPACES = re.compile(r"[ \t\r\n]+")
_GUTTER = re.compile(
    r"(?:^|[-_ ])(?:linenos?|line-?num(?:ber)?s?(?:-rows)?|lineno-container|line-?nr|gutter|lnt?|"
    r"blob-num)(?:$|[-_ ])",
    re.IGNORECASE,
)
_UNSELECTABLE = re.compile(r"user-select\s*:\s*none")
_LINE = re.compile(r"(?:^|\s)(?:(?:code|cm|view|token|hljs)-)?line(?:\s|$)")
_SHOWN_AS_LINE = re.compile(r"display\s*:\s*(?:block|flex|grid|table-row)")
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language|lang|highlight|sourceCode|brush:?|src)[-: ]\s*([\w+#.-]+)"
)
_GRAMMAR = re.compile(r"^(?:highlight-)?(?:source|text)-|-basic$")  # of an editor's grammar
_NO_LANGUAGE = names(
    "none default text plain plaintext source notranslate nohighlight code auto tab-size"
)
_WEB = ("http://", "https://")
_ORIGIN = re.compile(r"https?://[\w.-]+(?::\d+)?(?=[/?#]|$)", re.ASCII)
# A path from the root that means another one when it is resolved (RFC 3986, 5.2).
_NOT_ROOTED = re.compile(r"^//|/\.|[?#](?:[?#]|$)|[;\s\\]")
_NO_ADDRESS = names("javascript vbscript data blob about")
# An address may hold one level of parentheses (CommonMark 0.31, 6.3); others need angle brackets.
_PLAIN = re.compile(r"[^()]*(?:\([^()]*\)[^()]*)*")


LISTING_REACH = 10  # elements above a ``pre`` in a table with a column of line numbers


class Inline:
    """Writes inline nodes as Markdown.

    Links are resolved against ``base``. Absolute addresses may add ``spare`` characters to the
    text; after that addresses stay relative.
    """

    def __init__(self, base: str, spare: int) -> None:
        self._base = base
        self._page = base.partition("#")[0]
        origin = _ORIGIN.match(base)
        self._origin = origin[0] if origin else ""
        self._spare = spare
        self._known: dict[str, str] = {}
        self._media: set[str] = set()  # the addresses that were written

    def text(self, nodes: list[Node], *, breaks: str = "\n", emphasis: bool = True) -> str:
        """Return the nodes as Markdown, with ``breaks`` for each line break."""
        match nodes:
            case [str() as only]:
                return " ".join(only.split())
            case _:
                pass
        pieces: list[str] = []
        self._write(nodes, pieces, emphasis)
        lines = ("".join(pieces)).split("\n")
        return breaks.join(line for line in (" ".join(line.split()) for line in lines) if line)

    def link(self, text: str, href: str) -> str:
        """Return a Markdown link, or the text alone if the address leads nowhere else."""
        address = self.destination(href) if text else ""
        return f"[{_TAG_START.sub('&lt;', text)}]({address})" if address else text

    def destination(self, href: str) -> str:
        """Return the address of a link as it stands between parentheses."""
        address = self.absolute(href)
        if ("(" in address or ")" in address) and not _PLAIN.fullmatch(address):
            return f"<{address}>"
        return address

    def absolute(self, href: str) -> str:
        """Return the address of a link: "#name" on the same page, "" for a script or data."""
        known = self._known.get(href)
        if known is None:
            known = self._known[href] = self._resolve(href)
        if len(known) > len(href):
            self._spare -= len(known) - len(href)
            if self._spare < 0:
                return _escape(href.strip())
        return known

    def _resolve(self, href: str) -> str:
        href = "".join(href.split()) if "\n" in href else href.strip()
        if not href.strip("#"):
            return ""
        if href.startswith("#"):
            return _escape(href)
        if self._origin and href[0] == "/" and not _NOT_ROOTED.search(href):
            href = self._origin + href
        elif not href.startswith(_WEB):
            try:
                href = urljoin(self._base, href)
            except ValueError:
                return ""
            scheme, colon, _ = href.partition(":")
            if colon and scheme.lower() in _NO_ADDRESS:
                return ""
        page, mark, place = href.partition("#")
        return _escape(f"#{place}" if mark and page == self._page else href)

    def medium(self, element: Element) -> str:
        """Return a picture as Markdown, a film or sound as a link; each once, "" from then on."""
        label, source = shown(element) or ("", "")
        if not source or source in self._media:
            return ""
        self._media.add(source)
        mark = "!" if element.tag == "img" else ""
        return f"{mark}[{_whole_brackets(label)}]({self.destination(source)})"

    def _write(self, nodes: list[Node], out: list[str], emphasis: bool) -> None:
        for node in nodes:
            if isinstance(node, str):
                out.append(node.replace("\n", " ") if "\n" in node else node)
                continue
            tag = node.tag
            if tag == "br":
                out.append("\n")
            elif tag == "a":
                self._write_link(node, out, emphasis)
            elif tag in _element.CODE_TAGS:
                self._write_code(node, out)
            elif tag in _MARKS and (emphasis or tag in _STRUCK):
                text, mark = self.text(node.children, breaks=" ", emphasis=False), _MARKS[tag]
                is_marked = text and mark not in text
                out.append(_keep_spaces(node, f"{mark}{text}{mark}") if is_marked else text)
            elif tag in MEDIA:
                out.append(self.medium(node) if emphasis else "")
            elif is_code(node):
                out.append(_code_spans(code_text(node)))
            elif tag in {"sup", "sub"}:
                self._write_script(node, out, emphasis)
            elif tag == "q":  # a browser writes the marks (HTML Standard, 15.3.4)
                is_inner = any(
                    around.tag == "q" for around in islice(node.outward(), 1, QUOTE_REACH)
                )
                text = self.text(node.children, breaks=" ", emphasis=emphasis)
                opened, closed = _QUOTES[is_inner]
                out.append(_keep_spaces(node, f"{opened}{text}{closed}") if text else "")
            elif tag == "ins":  # no mark of Markdown, which takes HTML (CommonMark, 6.6)
                text = self.text(node.children, breaks=" ", emphasis=emphasis)
                out.append(_keep_spaces(node, f"<ins>{text}</ins>") if text else "")
            elif _element.is_read(node):
                is_apart = tag in BLOCKS or tag == "button"
                if is_apart:
                    out.append(" • " if tag == "li" else " ")
                self._write(node.children, out, emphasis)
                if is_apart:
                    out.append(" ")

    def _write_link(self, node: Element, out: list[str], emphasis: bool) -> None:
        href = node.get("href")
        text = self.text(node.children, breaks=" ", emphasis=False)
        image = None if text else next((e for e in node.descendants() if e.tag == "img"), None)
        if image is not None:
            if emphasis and shown(image):
                out.append(self.medium(image))
                return
            text = labelled(image)[0][:MAX_LINKED_ALT_CHARS]
        if href.startswith("#") and _PERMALINK.match(text):
            return
        if not href:
            self._write(node.children, out, emphasis)
        else:
            out.append(_keep_spaces(node, self.link(_whole_brackets(text), href)))

    def _write_code(self, node: Element, out: list[str]) -> None:
        links = [e for e in node.descendants() if e.tag == "a" and e.get("href")]
        if len(links) == 1 and links[0].text() == node.text():
            out.append(self.link(f"`{node.text()}`", links[0].get("href")))
        elif links:
            self._write(node.children, out, emphasis=False)
        else:
            out.append(_keep_spaces(node, _code_spans(code_text(node))))

    def _write_script(self, node: Element, out: list[str], emphasis: bool) -> None:
        """Write ``x^2``, ``10^{-3}``, ``CO_2``; references and endings of ordinals as they are."""
        text = node.text()
        is_reference = any(inner.tag == "a" for inner in node.descendants())
        marked = script("^" if node.tag == "sup" else "_", text)
        if is_reference or marked == text or not "".join(out).strip():
            self._write(node.children, out, emphasis)
        else:
            out.append(marked)


def _whole_brackets(text: str) -> str:
    """Return the text of a link; brackets that have no partner are escaped."""
    if text.count("[") == text.count("]"):
        return text
    return text.replace("[", "\\[").replace("]", "\\]")


def _keep_spaces(node: Element, text: str) -> str:
    """Return ``text`` with the white space that the element begins and ends with."""
    match node.children:
        case [str() as raw]:
            pass
        case _:
            raw = node.raw()
    return f"{' ' if raw[:1].isspace() else ''}{text}{' ' if raw[-1:].isspace() else ''}"


def _escape(address: str) -> str:
    """Return an address without blanks and angle brackets, which end a link (CommonMark 6.3)."""
    return address.replace(" ", "%20").replace("<", "%3C").replace(">", "%3E")


def _code_spans(code: str) -> str:
    """Return a code span for each line of code, since a span has no lines (CommonMark, 6.1)."""
    spans: list[str] = []
    for line in filter(None, map(str.strip, code.split("\n"))):
        fence = "``" if "`" in line else "`"
        pad = " " if line.startswith("`") or line.endswith("`") else ""
        spans.append(f"{fence}{pad}{line}{pad}{fence}")
    return "\n".join(spans)


def code_text(code: Element) -> str:
    """Return the text of an element of code, without line numbers and buttons.

    It may be a table that shows one line of code in each row. White space counts in a ``pre`` and
    in the lines of a ``div``; a ``code`` has only the line breaks of its ``br``.
    """
    pieces: list[str] = []
    if code.tag == "table" and not _element.is_code(code):
        pieces.append("\n".join(code_lines(code) or ()))
    elif code.tag == "div" and (fragments := _element.code_fragments(code)):
        for fragment in fragments:
            _begin_line(pieces)
            _write_verbatim(fragment, pieces)
    elif code.tag == "div" and not _element.is_verbatim(code):
        for line in _element.lines_of_code(code):
            _write_verbatim(line, pieces)
            pieces.append("\n")
    else:
        folds = code.tag in _element.CODE_TAGS and not _element.is_verbatim(code)
        _write_verbatim(code, pieces, folds=folds)
    if code.tag in _element.CODE_TAGS and not _element.is_verbatim(code):
        pieces = ["\n".join(line.strip(" ") for line in "".join(pieces).split("\n"))]
    text = "".join(pieces).replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")
    return text.strip("\n").rstrip()


def _write_verbatim(element: Element, out: list[str], *, folds: bool = False) -> None:
    """Add the text of an element; ``folds``: each run of white space becomes a space."""
    lines_touch = _touching_lines(element)
    _mark_numbers(element)
    for child in element.children:
        if isinstance(child, str):
            out.append(_SPACES.sub(" ", child) if folds else child)
        elif child.tag == "br":
            out.append("\n")
        elif child.tag in _NOT_SHOWN or is_gutter(child) or _element.is_tip(child):
            continue
        elif (
            (child.tag in BLOCKS and child.tag != "td")
            or (lines_touch and child.tag == "span")
            or ("style" in child.attributes and _SHOWN_AS_LINE.search(child.attributes["style"]))
        ):
            _begin_line(out)
            _write_verbatim(child, out, folds=folds and child.tag != "pre")
            _begin_line(out)
        else:
            _write_verbatim(child, out, folds=folds)


def _begin_line(out: list[str]) -> None:
    if out and not out[-1].endswith("\n"):
        out.append("\n")


def _mark_numbers(code: Element) -> None:
    """Mark the numbers that lines of code begin with, if each line has the next one."""
    numbers: list[Element] = []
    for line in code.elements():
        if not _SHOWN_AS_LINE.search(line.get("style")):
            return
        first = next(line.elements(), None)
        if first is None or line.children[0] is not first:
            return
        number = first.raw().strip()
        start = int(numbers[0].raw()) if numbers else 0
        if (
            not number.isdecimal()
            or len(number) > 6
            or (numbers and int(number) != start + len(numbers))
        ):
            return
        numbers.append(first)
    for element in numbers if len(numbers) > 1 else ():
        element.attributes["data-line-number"] = ""


def _touching_lines(code: Element) -> bool:
    """Return whether the elements in this one are lines of code without line ends."""
    lines = list(islice(code.elements(), 2))
    are_lines = len(lines) == 2 and all(_LINE.search(line.get("class")) for line in lines)
    return are_lines and "\n" not in code.raw().strip()


def is_gutter(element: Element) -> bool:
    """Return whether an element numbers lines of code."""
    attributes = element.attributes
    if not attributes:
        return _is_number_cell(element)
    is_told = (
        _GUTTER.search(attributes.get("class", "")) is not None
        or _UNSELECTABLE.search(attributes.get("style", "")) is not None
        or "data-line-number" in attributes
        or _is_number_cell(element)
    )
    return is_told and not any(map(str.isalpha, element.raw()))


def _is_number_cell(element: Element) -> bool:
    """Return whether this is the first cell of a line of code in a ``pre``, a number."""
    if element.tag != "td" or element.parent is None or not element.raw().strip().isdecimal():
        return False
    cells = list(islice(element.parent.elements(), 2))
    is_first = len(cells) > 1 and cells[0] is element
    return is_first and any(around.tag == "pre" for around in element.nearest(6))


def language(pre: Element) -> str:
    """Return the programming language named in and around a ``pre``, "" if none."""
    inside = [child for child in pre.elements() if child.tag == "code"]
    in_cell = any(around.tag == "td" for around in pre.nearest(3))
    for element in (*inside, *pre.nearest(LISTING_REACH if in_cell else 4)):
        if value := element.get("data-lang") or element.get("data-language"):
            return value.split()[0].lower() if value.split() else ""
        match = _LANGUAGE.search(element.get("class"))
        name = _GRAMMAR.sub("", match[1].lower()) if match else ""
        if name and name not in _NO_LANGUAGE:
            return name
    return ""
