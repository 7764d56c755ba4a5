"""Compute the block scorer's features: a block's text, place, neighbours and surroundings."""

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from operator import mul
from typing import cast

from fetchstash.handlers._html._blocks import CODE, HEADING, PARAGRAPH, TABLE, Block
from fetchstash.handlers._html._element import Element, Node
from fetchstash.handlers._html._landmarks import Place, by_rules, places

Row = list[float]
FAR = 9
"""The distance that means "nowhere above"."""

# Words in tags, roles, classes and ids. Each group is one feature: how many elements above the
# block one of its words stands.
GROUPS: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "main": r"\bmain\b|(?<![a-z])main[-_]|maincontent",
        "article": r"\barticle\b|(?:article|post)[-_]?(?:body|content|text)|entry[-_]?content|"
        r"story[-_]?body",
        "content": r"content|(?<![a-z])body|markdown|prose|richtext|rich-text|rte\b|wysiwyg|"
        r"(?<![a-z])text(?![a-z])|copy(?!right)",
        "documentation": r"\bdoc|documentation|theme-|sphinx|refentry|section\b",
        "post": r"\bpost|entry|story|blog|message|thread|topic|answer|question|review",
        "product": r"product|price|spec|description|detail|feature|summary",
        "card": r"card|tile|teaser|grid|list-item|listing|result|item\b|carousel|slide",
        "navigation": r"\bnav|navigation|menu|\bmnu|breadcrumb|crumb|pagination|pager|\btabs?\b|"
        r"skip",
        "header": r"header|\bhead\b|masthead|banner|topbar|top-bar|\btop\b|hero|logo|branding",
        "footer": r"footer|\bfoot\b|bottom|colophon|contentinfo|copyright|legal|imprint",
        "aside": r"aside|sidebar|side-bar|\bside\b|complementary|rail|widget|secondary|sidenav|"
        r"right-?col|left-?col",
        "comments": r"comment|discuss|disqus|reply|respond|reactions?\b",
        "related": r"related|recommend|more-|also|similar|suggest|popular|trending|latest|recent|"
        r"next|prev|upsell|cross-sell",
        "promotion": r"promo|\bads?\b|[-_]ad[-_]|advert|sponsor|newsletter|subscri|"
        r"sign-?up|\bcta\b|call-to|donat|outbrain|taboola",
        "sharing": r"share|sharing|social|follow|facebook|twitter|addthis",
        "meta": r"meta|byline|author|\bdate|time\b|tags?\b|categor|posted|info|bio\b|credit|"
        r"caption",
        "dialog": r"modal|popup|pop-up|dialog|overlay|cookie|consent|gdpr|alert|notice|toast|"
        r"drawer|offcanvas|tooltip",
        "form": r"\bform\b|search|login|filter|sort|select|input|field|toolbar|button|\bbtn|"
        r"control|action",
        "contents": r"\btoc\b|table-of-contents|contents\b|toctree|on-this-page|page-?index|"
        r"indextable|localtoc",
        "hidden": r"hidden|hide\b|collapse|invisible|print|mobile|sr-only|visually|no-?print|"
        r"noscript",
    }.items()
}
# The second group of signs ends a sentence in Chinese and Japanese.
_SENTENCE_END = re.compile(r"[.!?。！？…][\"'”’)\]]?(?:\s|$)")  # noqa: RUF001
_ENDING = re.compile(
    r"related|recommend|you (?:may|might) (?:also )?(?:like|be)|"
    r"more (?:from|in|on|stories|posts|articles|news)|comments?\b|repl(?:y|ies)|share|follow|"
    r"subscribe|newsletter|latest|popular|trending|recent|read next|up next|see also|"
    r"further reading|about the author|categories|tags|archives?|navigation|menu|search|contact|"
    r"footer|quick links|sign up|get in touch|also viewed|similar",
    re.IGNORECASE,
)
_KINDS = {PARAGRAPH: 0.0, HEADING: 1.0, CODE: 2.0, TABLE: 3.0}
_PLACES = (
    "div", "p", "li", "td", "th", "dd", "dt", "span", "section", "article", "main", "aside",
    "header", "footer", "nav", "form", "figcaption", "blockquote", "body", "a", "label", "summary",
    "center", "address", "caption",
)  # fmt: skip
_TAGS = {tag: float(number) for number, tag in enumerate(_PLACES, 1)}
_GENERATIONS = 4
MAX_NAMES = 300
"""Characters of an element's tag, role, classes and id that are searched."""
_SHARES = (0.6, 0.8, 0.95)
"""Shares of the page's running text; the innermost element that holds one is a region."""
_RUNNING = 10
"""Words; a paragraph with as many is running text."""


@dataclass(slots=True)
class _Text:
    """Measures of the text of one block."""

    words: int
    linked: int  # words inside links
    ends: bool  # ends as a sentence does


@dataclass(slots=True)
class _Span:
    """The numbers of the first and last block inside an element, and the words above them."""

    first: int
    last: int
    depth: int
    distances: list[int]  # for each of GROUPS: how far above one of its words stands


@dataclass(slots=True)
class _Region:
    """The element that holds the running text or the title."""

    span: _Span
    share: float  # of the page's running text
    common_depths: dict[Element, int]


def features(blocks: list[Block]) -> list[Row]:
    """Return one row of numbers for each block of a page. Their order is the model's."""
    if not blocks:
        return []
    texts = [_measure(block) for block in blocks]
    words = [0, *accumulate(text.words for text in texts)]
    spans = _spans(blocks)
    block_places = places(blocks)
    own = [_own_row(block, text) for block, text in zip(blocks, texts, strict=True)]
    landmarks = _landmark_rows(blocks, texts, block_places)
    regions = _regions(blocks, texts, block_places, spans)
    edges = [(region.span.first, region.span.last) for region in regions]
    no_title = [0] * (len(_SHARES) + 1 - len(regions))
    around = _surrounding_rows(blocks, texts, spans, regions)
    page = _page_row(blocks, texts)
    alike = Counter(map(_signature, blocks))
    same_text = Counter(block.words for block in blocks)
    first_h1 = next((number for number, block in enumerate(blocks) if block.level == 1), -1)
    rows: list[Row] = []
    heading = -1
    ending = 0.0
    for number, (block, text) in enumerate(zip(blocks, texts, strict=True)):
        if block.kind == HEADING:
            heading = number
            ending = float(_ENDING.search(block.words) is not None)
        span = spans[block.parent]
        rows.append(
            [
                *own[number],
                *landmarks[number],
                *[_clamp(min(number - first, 0) + max(number - last, 0)) for first, last in edges],
                *no_title,
                *around[block.parent],
                text.words / (words[span.last + 1] - words[span.first] or 1),
                len(block.containers),
                words[number] / (words[-1] or 1),
                number / len(blocks),
                min(number, 50),
                min(len(blocks) - number, 50),
                _clamp(number - first_h1) if first_h1 >= 0 else -60,
                _clamp(number - heading) if heading >= 0 else 60,
                ending,
                math.log1p(alike[_signature(block)]),
                same_text[block.words],
                *page,
            ]
        )
    return rows


def _measure(block: Block) -> _Text:
    words = len(block.words.split())
    if block.link:
        return _Text(words, words, ends=False)
    return _Text(
        words,
        min(linked_words(block.nodes), words),
        _SENTENCE_END.search(block.words[-4:]) is not None,
    )


def linked_words(nodes: list[Node]) -> int:
    """Return the number of words inside links."""
    words = 0
    for node in nodes:
        if isinstance(node, str):
            continue
        if node.tag == "a":
            words += len("".join(node.texts()).split())
        elif node.children:
            words += linked_words(node.children)
    return words


def _own_row(block: Block, text: _Text) -> Row:
    words = block.words
    size = len(words) or 1
    return [
        _KINDS[block.kind],
        float(block.level),
        _TAGS.get(block.parent.tag, 0.0),
        math.log1p(text.words),
        size / (text.words or 1),
        text.linked / (text.words or 1),
        float(text.ends),
        sum(map(str.isupper, words[:200])) / min(size, 200),
    ]


def _page_row(blocks: list[Block], texts: list[_Text]) -> Row:
    words, linked = sum(text.words for text in texts), sum(text.linked for text in texts)
    long_blocks = sum(text.words > 25 and text.linked * 3 < text.words for text in texts)
    return [
        math.log1p(words),
        linked / (words or 1),
        math.log1p(len(blocks)),
        math.log1p(sum(block.kind == CODE for block in blocks)),
        math.log1p(long_blocks),
        sum(text.words for text in texts if text.ends) / (words or 1),
        math.log1p(sum(block.kind == HEADING for block in blocks)),
    ]


def _landmark_rows(blocks: list[Block], texts: list[_Text], block_places: list[Place]) -> list[Row]:
    """Return the decisions of the rules for each block, and the share of text of each decision."""
    columns = [
        [float(kept) for kept in by_rules(blocks, block_places)],
        [float(not place.chrome) for place in block_places],
        [float(place.content) for place in block_places],
    ]
    words = [text.words for text in texts]
    shares = [sum(map(mul, words, column)) / (sum(words) or 1) for column in columns]
    return [[*row, *shares] for row in zip(*columns, strict=True)]


def _regions(
    blocks: list[Block], texts: list[_Text], block_places: list[Place], spans: dict[Element, _Span]
) -> list[_Region]:
    """Return a region for each of the shares, and the region of the title if there is one."""
    running = [
        0,
        *accumulate(_running(*row) for row in zip(blocks, texts, block_places, strict=True)),
    ]
    held = {
        element: running[span.last + 1] - running[span.first] for element, span in spans.items()
    }
    elements: list[Element] = []
    for share in _SHARES:
        most = [element for element, words in held.items() if words >= share * running[-1]]
        elements.append(max(most, key=lambda element: spans[element].depth))
    elements += [block.parent for block in blocks if block.level == 1][:1]
    return [
        _Region(spans[element], held[element] / (running[-1] or 1), _common_depths(element, spans))
        for element in elements
    ]


def _common_depths(region: Element, spans: dict[Element, _Span]) -> dict[Element, int]:
    """Return for each element the depth of the innermost element that holds it and the region."""
    around = {region, *region.ancestors()}
    depths: dict[Element, int] = {}
    for element, span in spans.items():  # a parent comes before its children
        is_common = element in around or element.parent is None
        depths[element] = span.depth if is_common else depths[cast("Element", element.parent)]
    return depths


def _running(block: Block, text: _Text, place: Place) -> int:
    """Return the number of words of running text in a block outside the chrome."""
    is_text = text.words >= _RUNNING or block.kind in {CODE, TABLE}
    return max(text.words - text.linked, 0) if is_text and not place.chrome else 0


def _surrounding_rows(
    blocks: list[Block], texts: list[_Text], spans: dict[Element, _Span], regions: list[_Region]
) -> dict[Element, Row]:
    """Return for each parent of blocks its distance from the regions, its words and contents."""
    words = [0, *accumulate(text.words for text in texts)]
    linked = [0, *accumulate(text.linked for text in texts)]
    sentences = [0, *accumulate(text.ends and text.words > 9 for text in texts)]
    rows: dict[Element, Row] = {}
    for parent in {block.parent for block in blocks}:
        depth = spans[parent].depth
        row = rows[parent] = [*spans[parent].distances, depth]
        for region in regions:
            common = region.common_depths[parent]
            row += [region.span.depth - common, depth - common, region.share]
        row += [-1] * 3 * (len(_SHARES) + 1 - len(regions))
        element = parent
        inside = 0
        for _ in range(_GENERATIONS):
            span = spans[element]
            held = words[span.last + 1] - words[span.first]
            count = span.last + 1 - span.first
            row += [
                held / (words[-1] or 1),
                (linked[span.last + 1] - linked[span.first]) / (held or 1),
                math.log1p(held / count),
                (sentences[span.last + 1] - sentences[span.first]) / count,
                inside / (held or 1),
            ]
            inside = held
            element = element.parent or element
    return rows


def _spans(blocks: list[Block]) -> dict[Element, _Span]:
    """Return for each element around a block its span."""
    spans: dict[Element, _Span] = {}
    for number, block in enumerate(blocks):
        chain: list[Element] = []
        element: Element | None = block.parent
        while element is not None and element not in spans:
            chain.append(element)
            element = element.parent
        above = spans[element] if element is not None else None
        for new in reversed(chain):
            depth = 0
            distances = [FAR] * len(GROUPS)
            if above is not None:
                depth = above.depth + 1
                distances = [near + 1 if near < FAR else FAR for near in above.distances]
            for group in groups(new):
                distances[group] = 0
            above = spans[new] = _Span(number, number, depth, distances)
        while element is not None:
            spans[element].last = number
            element = element.parent
    return spans


def groups(element: Element) -> tuple[int, ...]:
    """Return the numbers of GROUPS that the element's names match."""
    get = element.attributes.get
    names = f"{element.tag} {get('role', '')} {get('class', '')} {get('id', '')}"
    return _groups_in(names[:MAX_NAMES].lower())


@lru_cache(30_000)
def _groups_in(names: str) -> tuple[int, ...]:
    # No pattern reaches over a blank, and the same words stand in the names of many pages.
    return tuple(sorted({number for word in names.split() for number in _groups_of(word)}))


@lru_cache(20_000)
def _groups_of(word: str) -> tuple[int, ...]:
    return tuple(number for number, pattern in enumerate(GROUPS.values()) if pattern.search(word))


def _signature(block: Block) -> tuple[str, str, str]:
    parent = block.parent
    above = parent.parent
    return (
        parent.tag,
        parent.attributes.get("class", ""),
        above.attributes.get("class", "") if above is not None else "",
    )


def _clamp(distance: int) -> float:
    return float(max(-60, min(distance, 60)))
