"""Pictures, players and formulas of a page, as Markdown.

The sources are MathML with its annotations, KaTeX, MathJax and the pictures of Wikipedia. All but
the MathML itself is text that a reader does not see, so that it must look like a formula.

HTML Standard, 4.8; WAI-ARIA 1.2. Icons, spacers and trackers are no pictures.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import unquote_plus

from fetchstash.handlers import _tex
from fetchstash.handlers._html._element import Element, names

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

MAX_TEX_CHARS = 5_000
MAX_DEPTH = 40
MAX_NODES = 5_000
MAX_PROSE_WORDS = 4  # words in a row; TeX with more of them is prose

_TEX = ("tex", "latex")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_PROSE = re.compile(rf"(?:\b[^\W\d_]{{2,}}\b[\s,.:;]+){{{MAX_PROSE_WORDS}}}[^\W\d_]{{2,}}")
_STYLED = re.compile(r"\{\\(?:display|text)style\s*(.*)\}", re.DOTALL)
_COMMENT = re.compile(r"(?<!\\)%[^\n]*\n")
_DELIMITED = re.compile(r"\\\(((?:[^\\$]|\\[^()])*)\\\)|\\\[((?:[^\\$]|\\[^\[\]])*)\\\]")
_PICTURE = re.compile(r"(?:^|[\s_-])(?:latex|tex|mathjax|math|equation)(?:$|[\s_-])", re.IGNORECASE)
MATH_ATTRIBUTES = names("data-math data-tex data-latex data-formula data-expr")
"""Attributes that state a formula as TeX."""
# Servers that draw the formula in an address: CodeCogs, WordPress, Google Charts, mimeTeX.
_SERVED = re.compile(
    r"(?:https?:)?//(?:[\w-]+\.)*(?:latex\.codecogs\.com/[\w.]+\?|s0\.wp\.com/latex\.php\?latex=|"
    r"(?:chart|www)\.(?:googleapis|google)\.com/chart\?(?:[^#]*&)?chl=|"
    r"[^/]+/cgi-bin/mime?tex(?:\.cgi)?\?)([^&#]+)",
    re.IGNORECASE,
)
_SIZE = re.compile(r"^(?:\\(?:dpi\{\d+\}|bg_\w+|fn_\w+|inline|large|small|huge|tiny|LARGE)\s*)+")
# Two commands of TeX, or one that has an argument; a path of Windows has no braces.
_LOOKS_LIKE_TEX = re.compile(
    r"\\(?:frac|sqrt|sum|int|prod|lim|exp|log|ln|sin|cos|tan|left|right|text|math\w+|overline|vec|"
    r"hat|bar|cdot|times|leq?|geq?|neq|infty|partial|nabla|alpha|beta|gamma|delta|epsilon|theta|"
    r"lambda|mu|pi|sigma|phi|omega|Delta|Sigma|Omega|binom|begin|in|to|forall|exists)(?![a-zA-Z])"
)
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


def picture(image: Element) -> str:
    """Return the formula that an image shows, "" for any other image."""
    source, alt = image.get("src"), image.get("alt")
    named = f"{image.get('class')} {image.get('id')}"
    if "/math/render/" in source or "latex" in source or _PICTURE.search(named):
        if match := _SERVED.match(source[: 2 * MAX_TEX_CHARS]):
            return marked(_SIZE.sub("", unquote_plus(match[1].replace("+", "%20"))))
        return marked(alt)
    for name in MATH_ATTRIBUTES.intersection(image.attributes):
        if tex := marked(image.get(name)):
            return tex
    return marked(alt) if _LOOKS_LIKE_TEX.search(alt[:MAX_TEX_CHARS]) else ""


def rendered(element: Element, node: "LexborNode", *, has_sources: bool) -> str | None:
    """Return the formula of an element that KaTeX or MathJax made, None for any other element.

    ``node`` is the same with all that it holds. ``has_sources``: the page holds the TeX in scripts,
    which are read instead.
    """
    classes = element.get("class")
    if element.tag == "mjx-container" or _RENDERED.search(classes):
        math = node.css_first("math")
        if has_sources:
            return ""
        return formula(math) if math is not None else _stated(node) or _of_mathjax(node) or None
    if "katex" in classes.split():
        math = node.css_first("math")
        if math is not None:
            return formula(math)
        drawn = node.css_first(".katex-html")
        return _stated(node) or (_drawn(drawn) if drawn is not None else None)
    if not MATH_ATTRIBUTES.isdisjoint(element.attributes) and (tex := _stated(node)):
        return tex
    return "" if "MathJax_Preview" in classes else None


def _stated(node: "LexborNode") -> str:
    """Return the formula in an attribute of an element or of its parent."""
    for element in (node, node.parent):
        if element is not None:
            for name in MATH_ATTRIBUTES:
                if tex := marked(element.attributes.get(name) or ""):
                    return tex
    return ""


_GLYPH = re.compile(r"mjx-c([0-9A-F]{2,5})(?![\w-])")


def _of_mathjax(node: "LexborNode") -> str:
    """Return the formula that MathJax 3 drew with glyphs of its own, "" if it has none.

    Their characters stand in classes (CHTML) or in ``data-c`` (SVG).
    """

    def write(node: "LexborNode", depth: int) -> str:
        attributes = node.attributes
        glyph = _GLYPH.fullmatch(attributes.get("class") or "") if node.tag == "mjx-c" else None
        code = glyph[1] if glyph else attributes.get("data-c") or ""
        if code:
            number = int(code, 16) if re.fullmatch("[0-9A-Fa-f]{1,5}", code) else 0
            return unicodedata.normalize("NFKC", chr(number)) if number else ""
        kind = attributes.get("data-mml-node") or (node.tag or "").removeprefix("mjx-")
        if depth > MAX_DEPTH or kind in {"assistive-mml", "defs"}:
            return ""
        parts = [part for child in node.iter() if (part := write(child, depth + 1))]
        if kind == "mfrac" and len(parts) == 2:
            return _tex.fraction(*parts)
        if kind in {"msup", "msub"} and len(parts) == 2:
            return _tex.power(*parts) if kind == "msup" else _tex.scripts(*parts)
        if kind in {"frac", "dbox", "dtable"} and len(parts) == 2:
            return _tex.fraction(*parts)
        return f"\\sqrt{{{''.join(parts)}}}" if kind == "msqrt" else "".join(parts)

    tex = write(node, 0)
    return f"${tex}$" if tex else ""


def _drawn(node: "LexborNode") -> str:
    """Return KaTeX's drawing as TeX: its letters and signs, with scripts, fractions and roots.

    It stacks them from below: the index before the exponent, the denominator before the numerator.
    """

    def stacked(node: "LexborNode", depth: int) -> list[str]:
        stack = node.css_first(".vlist")
        rows = (write(row, depth + 1) for row in stack.iter()) if stack is not None else ()
        return [row for row in rows if row.strip()]

    def write(node: "LexborNode", depth: int) -> str:
        classes = (node.attributes.get("class") or "").split() if node.is_element_node else []
        if node.is_text_node or depth > MAX_DEPTH:
            return (node.text(deep=True) or "").replace("\u200b", "")
        if "msupsub" in classes and (rows := stacked(node, depth)):
            if len(rows) == 1:
                has_depth = node.css_first(".vlist-t2") is not None
                return ("_" if has_depth else "^") + _tex.group(rows[0].strip())
            return f"_{_tex.group(rows[0].strip())}^{_tex.group(rows[-1].strip())}"
        if "mfrac" in classes and len(rows := stacked(node, depth)) == 2:
            return _tex.fraction(rows[1].strip(), rows[0].strip())
        if "sqrt" in classes and (rows := stacked(node, depth)):
            return f"\\sqrt{{{rows[0].strip()}}}"
        pieces = [write(child, depth + 1) for child in node.iter(include_text=True)]
        apart = {"base", "mrel", "mbin"}.intersection(classes)
        return f" {''.join(pieces)} " if apart else "".join(pieces)

    return " ".join(write(node, 0).split())


def formula(math: "LexborNode") -> str:
    """Return a math element as LaTeX, by its annotation, its alttext or itself."""
    for note in math.css("annotation"):
        encoding = (note.attributes.get("encoding") or "").lower()
        if encoding.removeprefix("application/x-") in _TEX and (tex := marked(note.text())):
            return tex
    if tex := marked((math.attributes.get("alttext") or "").replace("\u2061", "")):
        return tex
    return latex(math)


class _MathNode(Protocol):
    """An element of MathML, its name without a prefix."""

    @property
    def tag(self) -> str | None: ...
    @property
    def attributes(self) -> Mapping[str, str | None]: ...
    def text(self, *, deep: bool = True) -> str: ...
    def iter(self) -> "Iterable[_MathNode]": ...


def latex(math: _MathNode) -> str:
    """Return presentation MathML (MathML Core) as LaTeX between dollar signs, "" if it is empty."""
    spare = MAX_NODES

    def write(node: _MathNode, depth: int) -> str:
        nonlocal spare
        spare -= 1
        tag = node.tag or ""
        if depth > MAX_DEPTH or spare < 0:
            return node.text(deep=True)
        if tag in {"annotation", "annotation-xml", "mphantom"}:
            return ""
        if tag in _TOKENS:
            return _TOKENS[tag](node.text(deep=True).strip())
        parts = [write(child, depth + 1) for child in node.iter()]
        if tag == "mfrac" and len(parts) == 2 and _NO_LINE.match(_thickness(node)):
            return f"\\binom{{{parts[0].strip()}}}{{{parts[1].strip()}}}"
        if tag in _LAYOUTS and len(parts) == _LAYOUTS[tag][0]:
            return _LAYOUTS[tag][1](*parts)
        match tag:
            case "msqrt":
                return f"\\sqrt{{{''.join(parts)}}}"
            case "mtable":
                return "\\begin{matrix} " + " \\\\ ".join(parts) + " \\end{matrix}"
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

    tex = _BINOMIAL.sub(r"\1", " ".join(write(math, 0).split()))
    return f"${tex}$" if tex else ""


def _thickness(fraction: _MathNode) -> str:
    return fraction.attributes.get("linethickness") or ""


_NO_LINE = re.compile(r"0+(?:\.0*)?(?:[a-z]{2}|%)?$")
# A binomial brings its own parentheses.
_BINOMIAL = re.compile(r"\( ?(\\binom\{[^{}]*\}\{[^{}]*\}) ?\)")
_TOKENS: dict[str, Callable[[str], str]] = {
    "mi": _tex.identifier,
    "mn": str,
    "mo": lambda text: f" {text} " if text in {*"=<>\u2264\u2265"} else _OPERATORS.get(text, text),
    "ms": _tex.prose,
    "mtext": _tex.prose,
}


_LAYOUTS: dict[str, tuple[int, Callable[..., str]]] = {
    "mfrac": (2, _tex.fraction),
    "msup": (2, _tex.power),
    "msub": (2, _tex.scripts),
    "msubsup": (3, _tex.scripts),
    "mroot": (2, _tex.root),
    "mover": (2, _tex.over),
    "munder": (2, _tex.under),
    "munderover": (3, _tex.scripts),
}


MEDIA = names("img video audio iframe")
"""Elements that are kept for what they show; they have no text."""
LEAST_PIXELS = 50  # width and height; a smaller picture is an icon
MAX_ALT_CHARS = 300
MAX_LISTED = 1_000
CAPTION_REACH = 20  # children of a figure, and of each of these, among which its caption is

_SOURCES = ("data-src", "data-original", "data-lazy-src", "data-lazy", "data-url", "src")
"""Where the address of a picture is: scripts that load it late set ``src`` from the others."""
_SOURCE_SETS = ("srcset", "data-srcset", "data-lazy-srcset")
_NO_PICTURE = re.compile(
    r"(?<![a-z])(?:icons?|avatars?|gravatar|emojis?|smil(?:ey|ies)|logos?|spacer|pixel|blank|"
    r"sprites?|badges?|spinner|loading|loader|placeholder|tracking|tracker|beacon|1x1)(?![a-z])",
    re.IGNORECASE,
)
_TRACKER = re.compile(
    r"doubleclick\.net|facebook\.com/tr|google-analytics|scorecardresearch|quantserve|"
    r"/(?:pixel|beacon|collect|track)(?:[/.?]|$)|img\.shields\.io",
    re.IGNORECASE,
)
# The name of a file, and the signs of buttons and items.
_NO_LABEL = re.compile(
    r"(?:image|img|photo|picture|untitled|dsc)?[\s\d_-]*|\S+\.[a-z]{3,4}|"
    r"[\s!-/:-@\[-`{-~•·▪»›–—]+",  # noqa: RUF001 - signs
    re.IGNORECASE,
)
_PLAYERS = re.compile(
    r"(?:https?:)?//(?:[\w-]+\.)*(?:youtube(?:-nocookie)?\.com/embed/|player\.vimeo\.com/|"
    r"dailymotion\.com/embed/|loom\.com/embed/|wistia\.(?:com|net)/embed/|embed\.ted\.com/|"
    r"players\.brightcove\.net/|archive\.org/embed/|player\.twitch\.tv/|bitchute\.com/embed/|"
    r"w\.soundcloud\.com/player|open\.spotify\.com/embed|embed\.podcasts\.apple\.com/|"
    r"bandcamp\.com/EmbeddedPlayer)",
    re.IGNORECASE,
)
_SOUNDS = re.compile(r"soundcloud|spotify|podcasts|bandcamp", re.IGNORECASE)
_DURATION = re.compile(r"P(?:(\d+)D)?T?(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.\d+)?S)?", re.IGNORECASE)
_SCHEMA_TYPES = names("VideoObject AudioObject Clip Movie PodcastEpisode MusicRecording")
_ADDRESSES = ("contentUrl", "embedUrl", "url")
_IMAGE_FILE = re.compile(r"\.(?:jpe?g|png|gif|webp|avif|svg|bmp|tiff?)(?:[?#]|$)", re.IGNORECASE)
_WIKI_PAGE = re.compile(r"/[A-Za-z]+:[^/]*$")
_REACH = 6  # elements above a picture in which its link and its figure are searched


def is_medium(element: Element) -> bool:
    """Return whether an element shows a picture, a film or a sound that a listing names."""
    source = _source(element)
    if not source or element.tag != "img":
        return bool(source)
    if element.get("role") in {"presentation", "none"}:
        return False
    if _is_small(element.get("width")) or _is_small(element.get("height")):
        return False
    named = f"{element.get('class')} {element.get('id')} {source.partition('?')[0]}"
    return not _names_icon(named[:1_000]) and not _TRACKER.search(source[:1_000])


@lru_cache(1_000)  # asked several times of each picture
def _names_icon(names: str) -> bool:
    return _NO_PICTURE.search(names) is not None


def shown(element: Element) -> tuple[str, str] | None:
    """Return the label and address of a medium that the text shows, None if it shows none.

    A picture informs if it has a text of its own or stands in a figure, and is not the thumbnail
    of what a link leads to.
    """
    label, source = labelled(element)
    if element.tag != "img":
        return (label, source) if source else None
    if not label and not _is_figure(element):
        return None
    around = _around(element, "a")
    link = around.get("href").strip() if around is not None else ""
    if (link and not _IMAGE_FILE.search(link)) or not is_medium(element):
        return None
    return label, source if not link or _WIKI_PAGE.search(link) else link


def labelled(element: Element) -> tuple[str, str]:
    """Return the label and the address of a medium; a label may be ""."""
    source = _source(element)
    if element.tag == "img":
        alt = " ".join(element.get("alt").split())[:MAX_ALT_CHARS]
        return "" if _NO_LABEL.fullmatch(alt) else alt, source
    is_sound = element.tag == "audio" or (element.tag == "iframe" and _SOUNDS.search(source))
    title = " ".join((element.get("title") or element.get("aria-label")).split())[:MAX_ALT_CHARS]
    about = ", ".join(filter(None, (title, element.get("data-duration"))))
    kind = "Audio" if is_sound else "Video"
    return f"{kind}: {about}" if about else kind, source


def is_player(frame: Element) -> bool:
    """Return whether a frame plays films or sounds."""
    return _PLAYERS.match(frame.get("src") or frame.get("data-src")) is not None


def describe(media: Iterable[Element], linked_data: Iterable[dict[str, Any]]) -> str:
    """Give the media of a page the names and durations that its linked data state.

    Returns a line on a film or sound that no element of the page plays, as scripts insert it.
    """
    records = [record for record in linked_data if _is_media_object(record)][:MAX_LISTED]
    players = [element for element in media if element.tag != "img"] if records else []
    by_source: defaultdict[str, list[Element]] = defaultdict(list)
    for element in players:
        by_source[_source(element)].append(element)
    line = ""
    for record in records:
        addresses = [str(record[name]) for name in _ADDRESSES if name in record]
        name = " ".join(str(record.get("name", "")).split())[:MAX_ALT_CHARS]
        duration = clock(str(record.get("duration", "")))
        playing = [element for address in addresses for element in by_source.get(address, ())]
        if not playing and len(records) == len(players) == 1:
            playing = players
        for element in playing:
            element.attributes.setdefault("title", name)
            element.attributes["data-duration"] = duration
        if not playing and not line:
            address = addresses[0] if addresses else ""
            kind = "audio" if "Audio" in str(record.get("@type")) else "video"
            line = f"{kind}: {', '.join(filter(None, (name, duration, address[:500])))}"
    return line


def _is_media_object(record: dict[str, Any]) -> bool:
    kinds = record.get("@type")
    named = cast("list[object]", kinds) if isinstance(kinds, list) else [kinds]
    return not _SCHEMA_TYPES.isdisjoint(map(str, named))


def clock(duration: str) -> str:
    """Return an ISO 8601 duration as people write it: 3:45 or 1:02:03, "" for anything else."""
    match = _DURATION.fullmatch(duration.strip()[:60])
    if match is None or not any(match.groups()):
        return ""
    days, hours, minutes, seconds = (int((part or "0")[:6]) for part in match.groups())
    minutes, seconds = divmod(((days * 24 + hours) * 60 + minutes) * 60 + seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _source(element: Element) -> str:
    """Return the address of a medium as the page spells it, "" if it holds its own data."""
    get = element.attributes.get
    for name in _SOURCES:
        value = get(name, "").strip()
        if value and not value.startswith(("data:", "blob:", "javascript:", "about:", "#")):
            return value
    for name in _SOURCE_SETS:
        first = get(name, "").strip()[:2_000].split(maxsplit=1)[:1]
        if first and not first[0].startswith("data:"):
            return first[0].rstrip(",")
    return ""


def _is_small(size: str) -> bool:
    digits = size.strip().removesuffix("px")
    return digits.isdecimal() and len(digits) < 6 and int(digits) < LEAST_PIXELS


def _is_figure(picture: Element) -> bool:
    """Return whether a picture stands in a figure that has a caption."""
    figure = _around(picture, "figure")
    if figure is None:
        return False
    inside = [child for child in figure.children[:CAPTION_REACH] if not isinstance(child, str)]
    inside += [inner for child in inside for inner in islice(child.elements(), CAPTION_REACH)]
    return any(element.tag == "figcaption" for element in inside)


def _around(picture: Element, tag: str) -> Element | None:
    near = picture.nearest(_REACH + 1)[1:]
    return next((element for element in near if element.tag == tag), None)
