"""Compute the block scorer's features: a block's text, place, neighbours and surroundings."""

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate, compress
from typing import TYPE_CHECKING, NamedTuple

from fetchstash.handlers._html._blocks import CODE, HEADING, PARAGRAPH, TABLE, Block
from fetchstash.handlers._html._element import Element
from fetchstash.handlers._html._repairs import Place, by_rules, new_around, places

if TYPE_CHECKING:
    import re2

Row = list[float]
FAR = 9
"""The distance that means "nowhere above"."""

# Words in tags, roles, classes and ids, and what they name. RE2 has no lookaround.
GROUPS = {
    "main": r"\bmain\b|(?:^|[^a-z])main[-_]|maincontent",
    "article": r"\barticle\b|(?:article|post)[-_]?(?:body|content|text)|entry[-_]?content|"
    r"story[-_]?body",
    "content": r"content|(?:^|[^a-z])body|markdown|prose|richtext|rich-text|rte\b|wysiwyg|"
    r"(?:^|[^a-z])text(?:[^a-z]|$)|copy(?:[^r]|r[^i]|r?$)",
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
}
# After ASCII's the signs of Chinese and Japanese, Hindi, Urdu, Arabic, Burmese and Khmer. Thai and
# Lao have none: whatever ends in their letters may be a sentence.
_SENTENCE_END = re.compile(
    r"(?:[.!?…。！？।۔؟။។][\"'”’)\]]?|[\u0e01-\u0eff])(?:\s|$)"  # noqa: RUF001
)
_ENDING = re.compile(
    r"related|recommend|you (?:may|might) (?:also )?(?:like|be)|"
    r"more (?:from|in|on|stories|posts|articles|news)|comments?\b|repl(?:y|ies)|share|follow|"
    r"subscribe|newsletter|latest|popular|trending|recent|read next|up next|see also|"
    r"further reading|about the author|categories|tags|archives?|navigation|menu|search|contact|"
    r"footer|quick links|sign up|get in touch|also viewed|similar|"
    # German, French, Spanish and Portuguese, Italian, Dutch, Polish, Russian, Turkish
    r"kommentare|ähnliche|auch interessant|mehr zum|meistgelesen|weitere artikel|teilen|"
    r"à lire aussi|même sujet|commentaire|partager|les plus lus|derniers articles|"
    r"relacionad|comentári|comentario|compart|te puede interesar|más leíd|lo más|leia também|"
    r"leia mais|mais lid|últimas|correlat|leggi anche|commenti|condividi|più letti|gerelateerd|"
    r"lees ook|reacties|meest gelezen|powiązane|czytaj (?:też|także|również)|komentarz|najnowsze|"
    r"по теме|похож|читайте также|комментари|поделиться|популярн|ilgili|benzer|yorum|paylaş|"
    # Arabic, Chinese, Japanese, Korean
    r"ذات صلة|اقرأ أيضا|التعليقات|الأكثر قراءة|"
    r"相关|相關|推荐|推薦|评论|評論|分享|热门|熱門|最新|头条|猜你喜欢|下一篇|上一篇|标签|"
    r"関連|おすすめ|あわせて|人気|ランキング|コメント|シェア|新着|次の記事|前の記事|"
    r"관련|추천|인기|댓글|공유|많이 본|최신"
)  # of lower-case text: to ignore case takes six times as long
_NEAR = tuple(
    number
    for number, name in enumerate(GROUPS)
    if name
    in {"article", "post", "navigation", "header", "footer", "comments", "meta", "form", "contents"}
)
"""The groups that are features: how many elements above a block one of their words stands."""
_KINDS = {PARAGRAPH: 0.0, HEADING: 1.0, CODE: 2.0, TABLE: 3.0}
_MOST = 60  # blocks; the largest distance that counts
_LEAST_ITEMS = 3
_LIST_REACH = 7  # elements, from the parent of a block up, in which a list is looked for
_NO_LIST: Row = [_LIST_REACH, 0, 0, 0, 0]
_PLACES = (
    "div",
    "p",
    "li",
    "td",
    "th",
    "dd",
    "dt",
    "span",
    "section",
    "article",
    "main",
    "aside",
    "header",
    "footer",
    "nav",
    "form",
    "figcaption",
    "blockquote",
    "body",
    "a",
    "label",
    "summary",
    "center",
    "address",
    "caption",
)
_TAGS = {tag: float(number) for number, tag in enumerate(_PLACES, 1)}
_GENERATIONS = 4
MAX_NAMES = 300  # characters of an element's tag, role, classes and id that are searched
_SHARES = (0.6, 0.8, 0.95)
"""Shares of the page's running text; the innermost element that holds one is a region."""
_RUNNING = 10  # words; a paragraph with as many is running text


@dataclass(slots=True)
class _Span:
    """The numbers of the first and last block inside an element, and the words above them."""

    first: int
    last: int
    depth: int
    distances: tuple[int, ...]  # for each of _NEAR: how far above one of its words stands


class _Region(NamedTuple):
    """The element that holds the running text or the title."""

    span: _Span
    share: float  # of the page's running text
    common_depths: dict[Element, int]


class _Sums:
    """Running sums over the blocks of a page, so that what an element holds is a difference."""

    def __init__(self, blocks: list[Block], ends: list[bool]) -> None:
        self.words = [0, *accumulate(block.count for block in blocks)]
        self.linked = [0, *accumulate(block.linked for block in blocks)]
        sentences = (end and block.count > 9 for block, end in zip(blocks, ends, strict=True))
        self.sentences = [0, *accumulate(sentences)]
        self.links = [0, *accumulate(block.linked * 2 > block.count for block in blocks)]


def features(blocks: list[Block]) -> tuple[list[Row], Row]:
    """Return a row of numbers for each block of a page, and one for the page as a whole.

    Their order is the model's, which numbers those of the page behind those of a block.
    """
    if not blocks:
        return [], []
    ends = [not block.link and bool(_SENTENCE_END.search(block.words[-4:])) for block in blocks]
    sums = _Sums(blocks, ends)
    words = sums.words
    spans = _spans(blocks)
    block_places = places(blocks)
    decisions = [
        by_rules(blocks, block_places),
        [not place.chrome for place in block_places],
        [place.content for place in block_places],
    ]
    landmarks = list(zip(*decisions, strict=True))
    regions = _regions(blocks, block_places, spans)
    edges = [(region.span.first, region.span.last) for region in regions]
    no_title = [0] * (len(_SHARES) + 1 - len(regions))
    around = _surrounding_rows(blocks, sums, spans, regions)
    counts = [block.count for block in blocks]
    page = [
        *(sum(compress(counts, column)) / (words[-1] or 1) for column in decisions),
        *(region.share for region in regions),
        *([-1] * len(no_title)),
        *_page_row(blocks, ends),
    ]
    kinds = [kind_of(block.parent) for block in blocks]
    signatures = [(*kind[1:], kind[0].get("class") if kind[0] else "") for kind in kinds]
    alike = {name: math.log1p(count) for name, count in Counter(signatures).items()}
    same_text = Counter(block.words for block in blocks)
    first_h1 = next((number for number, block in enumerate(blocks) if block.level == 1), -1)
    all_words, count = words[-1] or 1, len(blocks)
    rows: list[Row] = []
    heading = -1
    ending = 0
    for number, block in enumerate(blocks):
        kind, parent, own_words = block.kind, block.parent, block.count
        if kind == HEADING:
            heading = number
            ending = _ENDING.search(block.words.lower()) is not None
        span = spans[parent]
        row = [
            _KINDS[kind],
            _TAGS.get(parent.tag, 0),
            math.log1p(own_words),
            block.size / (own_words or 1),
            block.linked / (own_words or 1),
            ends[number],
        ]
        row += landmarks[number]
        for first, last in edges:
            if first <= number <= last:
                row.append(0)
            else:
                row.append(
                    max(number - first, -_MOST) if number < first else min(number - last, _MOST)
                )
        row += no_title
        row += around[parent]
        row += (
            own_words / (words[span.last + 1] - words[span.first] or 1),
            len(block.containers),
            words[number] / all_words,
            number / count,
            min(number, 50),
            min(count - number, 50),
            max(-_MOST, min(number - first_h1, _MOST)) if first_h1 >= 0 else -_MOST,
            min(number - heading, _MOST) if heading >= 0 else _MOST,
            ending,
            alike[signatures[number]],
            same_text[block.words],
        )
        rows.append(row)
    return rows, page


def _page_row(blocks: list[Block], ends: list[bool]) -> Row:
    words, linked = sum(block.count for block in blocks), sum(block.linked for block in blocks)
    long_blocks = sum(block.count > 25 and block.linked * 3 < block.count for block in blocks)
    return [
        math.log1p(words),
        linked / (words or 1),
        math.log1p(len(blocks)),
        math.log1p(sum(block.kind == CODE for block in blocks)),
        math.log1p(long_blocks),
        sum(block.count for block in compress(blocks, ends)) / (words or 1),
        math.log1p(sum(block.kind == HEADING for block in blocks)),
    ]


def _regions(
    blocks: list[Block], block_places: list[Place], spans: dict[Element, _Span]
) -> list[_Region]:
    """Return a region for each of the shares, and the region of the title if there is one."""
    running = [0, *accumulate(map(_running, blocks, block_places))]
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
    around = set(region.outward())
    depths: dict[Element, int] = {}
    for element, span in spans.items():  # a parent comes before its children
        above = element.parent
        depths[element] = span.depth if above is None or element in around else depths[above]
    return depths


def _running(block: Block, place: Place) -> int:
    """Return the number of words of running text in a block outside the chrome."""
    is_text = block.count >= _RUNNING or block.kind in {CODE, TABLE}
    return block.count - block.linked if is_text and not place.chrome else 0


def _surrounding_rows(
    blocks: list[Block], sums: _Sums, spans: dict[Element, _Span], regions: list[_Region]
) -> dict[Element, Row]:
    """Return for each parent of blocks its distance from the regions, its words and contents."""
    words, linked, sentences = sums.words, sums.linked, sums.sentences
    all_words = words[-1] or 1
    held: dict[Element, Row] = {}
    rows: dict[Element, Row] = {}
    lists = _lists(spans, sums)
    for parent in {block.parent for block in blocks}:
        depth = spans[parent].depth
        row: Row = [*spans[parent].distances, *lists[parent]]
        for region in regions:
            common = region.common_depths[parent]
            row += (region.span.depth - common, depth - common)
        row += [-1] * 2 * (len(_SHARES) + 1 - len(regions))
        element = parent
        for _ in range(_GENERATIONS):
            if element not in held:
                first, end = spans[element].first, spans[element].last + 1
                inside, count = words[end] - words[first], end - first
                held[element] = [
                    inside / all_words,
                    (linked[end] - linked[first]) / (inside or 1),
                    math.log1p(inside / count),
                    (sentences[end] - sentences[first]) / count,
                ]
            row += held[element]
            element = element.parent or element
        rows[parent] = row
    return rows


def _spans(blocks: list[Block]) -> dict[Element, _Span]:
    """Return for each element around a block its span."""
    spans: dict[Element, _Span] = {}
    outside = _Span(-1, -1, -1, (FAR,) * len(_NEAR))
    for number, block in enumerate(blocks):
        if block.parent not in spans:
            for element in new_around(block.parent, spans):
                above = outside if element.parent is None else spans[element.parent]
                distances = _inner(above.distances, groups(element))
                spans[element] = _Span(number, number, above.depth + 1, distances)
        spans[block.parent].last = number
    for element, span in reversed(spans.items()):  # children come before their parent
        if element.parent is not None:
            around = spans[element.parent]
            around.last = max(around.last, span.last)
    return spans


def _lists(spans: dict[Element, _Span], sums: _Sums) -> dict[Element | None, Row]:
    """Return for each element how far up it is part of a list, and what the list holds.

    A list is three or more elements of one kind beside each other, such as teasers: their mean
    words, their share of linked words, the share of them that have a link, and their share of the
    page.
    """
    words, linked, links = sums.words, sums.linked, sums.links
    alike: defaultdict[Kind, list[_Span]] = defaultdict(list)
    kinds = [kind_of(element) for element in spans]
    for kind, span in zip(kinds, spans.values(), strict=True):
        alike[kind].append(span)
    rows: dict[Element | None, Row] = {None: _NO_LIST}
    known: dict[Kind, Row] = {}
    for element, key in zip(spans, kinds, strict=True):  # a parent comes before its children
        items = alike[key]
        if len(items) < _LEAST_ITEMS:
            above = rows[element.parent]
            is_near = above[0] < _LIST_REACH - 1
            rows[element] = [above[0] + 1, *above[1:]] if is_near else _NO_LIST
            continue
        row = known.get(key)
        if row is None:
            inside = sum(words[item.last + 1] - words[item.first] for item in items)
            row = known[key] = [
                0,
                math.log1p(inside / len(items)),
                sum(linked[item.last + 1] - linked[item.first] for item in items) / (inside or 1),
                sum(links[item.last + 1] > links[item.first] for item in items) / len(items),
                inside / (words[-1] or 1),
            ]
        rows[element] = row
    return rows


@lru_cache(30_000)
def _inner(distances: tuple[int, ...], here: tuple[int, ...]) -> tuple[int, ...]:
    """Return the distances inside an element whose names match the groups ``here``."""
    return tuple(
        0 if group in here else min(near + 1, FAR)
        for group, near in zip(_NEAR, distances, strict=True)
    )


def groups(element: Element) -> tuple[int, ...]:
    """Return the numbers of GROUPS that the element's names match."""
    if not element.attributes:
        return _groups_in(element.tag)
    get = element.attributes.get
    names = f"{element.tag} {get('role', '')} {get('class', '')} {get('id', '')}"
    return _groups_in(names[:MAX_NAMES])


@lru_cache(30_000)
def _groups_in(names: str) -> tuple[int, ...]:
    return tuple(sorted(_patterns().Match(names.lower().encode("utf-8", "replace")) or ()))


@cache
def _patterns() -> "re2.Set":
    """Return the patterns of GROUPS, which RE2 looks for all at once."""
    import re2  # noqa: PLC0415 - heavy

    patterns = re2.Set.SearchSet()
    for pattern in GROUPS.values():
        patterns.Add(pattern)
    patterns.Compile()
    return patterns


Kind = tuple[Element | None, str, str]


def kind_of(element: Element) -> Kind:
    """Return the key that elements of one kind beside each other share: parent, tag and classes."""
    return element.parent, element.tag, element.attributes.get("class", "")
