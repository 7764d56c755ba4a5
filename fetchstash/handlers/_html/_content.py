"""Find the content of a page: score blocks, cut regions, leave teasers out.

scripts/make/train_html.py writes ``_trees.py``; ``model.LICENSE.md`` names the data.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain, compress
from operator import not_
from urllib.parse import unquote

from fetchstash.handlers._html import _features, _repairs
from fetchstash.handlers._html._blocks import CODE, MEDIUM, PARAGRAPH, TABLE, Block, size_of, texts
from fetchstash.handlers._html._element import HEADINGS, Element, elements_in
from fetchstash.handlers._html._features import GROUPS, Kind, groups, kind_of
from fetchstash.handlers._html._trees import ROUNDS
from fetchstash.text.facts import STORIES

_SETTLED = 2.5
"""Log odds beyond which the remaining trees are skipped: they would not change the decision."""


def log_odds(blocks: list[Block]) -> list[float]:
    """Return for each block the log odds that it is content."""
    rows, page = _features.features(blocks)
    scores: list[float] = []
    for of_block in rows:
        row, score = of_block + page, 0.0
        for add in ROUNDS:
            score = add(row, score)
            if not -_SETTLED < score < _SETTLED:
                break
        scores.append(score)
    return scores


MAX_REGIONS = 8
_NAMED = {
    "navigation": "navigation",
    "contents": "contents",
    "footer": "footer",
    "comments": "comments",
    "related": "related",
    "promotion": "promotion",
    "sharing": "sharing",
    "dialog": "dialog",
    "form": "form",
    "aside": "sidebar",
    "header": "header",
}
"""The names of regions by the GROUPS that tell them, the most telling first."""
_NUMBERS = {list(GROUPS).index(group): name for group, name in _NAMED.items()}


def left_out(blocks: Sequence[Block], keep: Sequence[bool]) -> tuple[int, str]:
    """Return the characters of the blocks that are not kept, and those of each region in words.

    Articles of which nothing is kept, each with a heading of its own, are counted: other stories.
    """
    gone = list(compress(blocks, map(not_, keep)))
    shown: set[Element] = set()
    for block in compress(blocks, keep):
        for element in block.parent.outward():
            if element in shown:
                break  # with all that is around it
            shown.add(element)
    region: dict[Element | None, str] = {None: "other"}
    story: dict[Element | None, Element | None] = {None: None}
    for block in gone:
        if block.parent not in region:
            for element in _repairs.new_around(block.parent, region):
                around = element.parent
                region[element] = _named(groups(element)) or region[around]
                is_story = element.tag == "article" and element not in shown and bool(shown)
                story[element] = story[around] or (element if is_story else None)
    sizes: Counter[str] = Counter()
    stories = {story[block.parent] for block in gone if block.level} - {None}
    for block in gone:
        if story[block.parent] not in stories:
            sizes[region[block.parent]] += len(block.words)
    named = [f"{name} {size:,}" for name, size in sizes.most_common(MAX_REGIONS)]
    named += [f"{STORIES} {len(stories):,}"] if stories else []
    return sum(len(block.words) for block in gone), ", ".join(named)


@lru_cache(10_000)
def _named(numbers: tuple[int, ...]) -> str:
    """Return the region's name by the first of _NAMED that these groups have, or ""."""
    return next((region for number, region in _NUMBERS.items() if number in numbers), "")


def section(blocks: Sequence[Block], body: Element, fragment: str) -> range | None:
    """Return the numbers of the blocks that a URL's fragment points to, None if it points nowhere.

    They go from the element of that id or name (HTML Standard, 7.4.2.3.3) to the next heading of
    the same level or above. Of one that has no heading, such as a post, its own are taken.
    """
    elements = list(body.subtree())
    names = {fragment, unquote(fragment)}
    by_id = (e for e in elements if e.attributes.get("id") in names)
    by_name = (e for e in elements if e.tag == "a" and e.attributes.get("name") in names)
    target = next(by_id, None) or next(by_name, None)
    if target is None:
        return None
    behind = set(elements[elements.index(target) :])

    def is_there(block: Block) -> bool:
        inside = (node for node in block.nodes if not isinstance(node, str))
        held = (target in node.outward() or target in node.subtree() for node in inside)
        return block.parent in behind or any(held)

    start = next((number for number, block in enumerate(blocks) if is_there(block)), None)
    if start is None:
        return None
    level = blocks[start].level or len(HEADINGS)
    following = range(start + 1, len(blocks))
    end = next((n for n in following if 0 < blocks[n].level <= level), len(blocks))
    own = sum(target in block.parent.outward() for block in blocks[start:end])
    return range(start, start + own if own > 1 and not blocks[start].level else end)


LEAST_ITEMS = 3
REACH = 6  # elements above the title of a teaser in which its item is searched
LEAST_TITLE_WORDS, MOST_ITEM_WORDS = 4, 70  # mean words of the titles and of the items of a list
MIN_SHARE = 0.8  # of the elements of one kind beside each other; a list has titles in as many
RUNNING_WORDS, RUNNING_PARAGRAPHS, RUNNING_IN_ALL = 15, 3, 80
"""Words of a paragraph of running text, and how much of it an article has."""


def drop_teasers(blocks: list[Block], keep: list[bool], kind: str) -> None:
    """Leave out lists of teasers before and after the running text of an article.

    A page that does not say that it is one, and has more in its lists than in its running text,
    is a list: of products, of posts.
    """
    lists = _lists(blocks)
    if not lists:
        return
    listed = {number for numbers in lists for number in numbers}
    running = [
        number
        for number, block in enumerate(blocks)
        if keep[number]
        and number not in listed
        and block.kind == PARAGRAPH
        and block.count >= RUNNING_WORDS
        and block.linked * 3 < block.count
    ]
    words = sum(blocks[n].count for n in running)
    if len(running) < RUNNING_PARAGRAPHS or words < RUNNING_IN_ALL:
        return
    around = [n for n in lists if n[0] > running[-1] or n[-1] < running[0]]
    if not kind and sum(blocks[n].count for numbers in around for n in numbers if keep[n]) > words:
        return
    for numbers in around:
        title = numbers[0] - 1
        is_titled = title >= 0 and blocks[title].level > 1
        for number in (title, *numbers) if is_titled else numbers:
            keep[number] = False


def _lists(blocks: list[Block]) -> list[list[int]]:
    """Return the numbers of the blocks of each list of teasers."""
    titles: defaultdict[Kind, dict[Element, int]] = defaultdict(dict)
    for block in blocks:
        if _is_title(block):
            for element in block.parent.nearest(REACH):
                titles[kind_of(element)].setdefault(element, block.count)
    items: dict[Element, Kind] = {}
    for kind, by_item in titles.items():
        count = len(by_item)
        if count >= LEAST_ITEMS and sum(by_item.values()) >= LEAST_TITLE_WORDS * count:
            siblings = kind[0].elements() if kind[0] is not None else ()
            beside = sum(kind_of(element) == kind for element in siblings)
            if count >= MIN_SHARE * beside:
                items.update(dict.fromkeys(by_item, kind))
    numbers: defaultdict[Kind, list[int]] = defaultdict(list)
    for number, block in enumerate(blocks if items else ()):
        near = block.parent.nearest(REACH + 2)
        item = next((element for element in near if element in items), None)
        if item is not None:
            numbers[items[item]].append(number)
    return [
        inside
        for kind, inside in numbers.items()
        if sum(blocks[n].count for n in inside) <= MOST_ITEM_WORDS * len(titles[kind])
    ]


def _is_title(block: Block) -> bool:
    """Return whether a block is all link, and leads to another page."""
    if block.link:
        return not block.link.startswith("#")
    links = (element for element in elements_in(block.nodes) if element.tag == "a")
    return block.linked >= MIN_SHARE * block.count and any(
        not link.attributes.get("href", "#").startswith("#") for link in links
    )


LEAST_ALIKE = 3  # blocks at one place of a template
PLACE_REACH = 5  # elements above a block whose tags and classes say its place


def at_places(blocks: list[Block], scores: list[float]) -> list[float]:
    """Return the scores; blocks at one place of a page's template have their mean, by words.

    The bodies of posts, the bylines above them and the labels of fields are content, or are not.
    """

    @cache
    def place(element: Element) -> tuple[tuple[str, str], ...]:
        near = element.nearest(PLACE_REACH)
        return tuple([(e.tag, e.attributes.get("class", "")) for e in near])

    alike: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for number, block in enumerate(blocks):
        alike[block.kind, bool(block.link), place(block.parent)].append(number)
    averaged = list(scores)
    for numbers in alike.values():
        if len(numbers) >= LEAST_ALIKE:
            words = [blocks[number].count + 1 for number in numbers]
            weighted = (scores[n] * size for n, size in zip(numbers, words, strict=True))
            mean = sum(weighted) / sum(words)
            for number in numbers:
                averaged[number] = mean
    return averaged


MIN_SISTERS, MIN_KEPT = 5, 0.9  # items of a list of which text is kept, and their share
MAX_CLASSES = 10  # of an element


def keep_sisters(blocks: list[Block], keep: list[bool]) -> None:
    """Keep an item of a list whose sisters are nearly all kept, such as a pinned post.

    Sisters share parent, tag and a class. Of the item, the blocks are kept that are kept in them.
    """
    near: dict[Element, int] = {}  # with how far above a block it stands
    for block in blocks:
        for distance, element in enumerate(block.parent.nearest(REACH)):
            if near.get(element, REACH) <= distance:
                break  # with all that is around it
            near[element] = distance
    holders = [element for element in near if element.holds_blocks]
    beside = Counter((element.parent, element.tag) for element in holders)
    inside: dict[Element, list[int]] = {
        e: [] for e in holders if beside[e.parent, e.tag] > MIN_SISTERS
    }
    for number, block in enumerate(blocks if inside else ()):
        for element in block.parent.nearest(REACH):
            if element in inside:
                inside[element].append(number)
    lists: defaultdict[Kind, list[Element]] = defaultdict(list)
    for element in inside:
        for name in dict.fromkeys(element.classes()[:MAX_CLASSES]):
            lists[element.parent, element.tag, name].append(element)
    for items in lists.values():
        kept = [item for item in items if any(keep[number] for number in inside[item])]
        if len(kept) == len(items) or len(kept) < max(MIN_SISTERS, MIN_KEPT * len(items)):
            continue
        told = {group for item in kept for group in groups(item)}
        shapes = {_shape(blocks[n], item) for item in kept for n in inside[item] if keep[n]}
        for item in set(items).difference(kept):
            if told.issuperset(groups(item)):  # a sister that is an advertisement says so
                for number in inside[item]:
                    keep[number] = _shape(blocks[number], item) in shapes


def _shape(block: Block, item: Element) -> tuple[str, str, str]:
    """Return the shape that blocks at one place of the items of a list share."""
    parent = block.parent
    return block.kind, parent.tag, "" if parent is item else parent.get("class")


MAX_SCORED = 5_000  # blocks. Rules choose on a longer page: they are cheaper and leave out less
MIN_SCORED_CHARS = 500  # rules choose on a page with less text: the scorer has too little to go by
SHORT_PAGE_CHARS = 2_000
_LESS = 0.5  # log odds of a block on a page that says what it is: the rest is of other things
MIN_AGREED = 0.75
"""Of what the rules keep of a short page; if the scorer keeps less, the rules choose."""


_PRICE = re.compile(
    r"(?:[$€£¥₹₽₩]|\b(?:USD|EUR|GBP|CHF|kr|zł))\s?\d*[1-9]|"
    r"[1-9]\d*[\d.,\s]*\s?(?:[$€£¥₹₽₩]|(?:USD|EUR|GBP|CHF|kr|zł)\b)"
)
PRICE_WORDS, PRICE_REACH = 5, 3  # of a block that is a price; elements above it that hold facts
FACT_WORDS, MOST_FACT_WORDS = 12, 120  # of one fact, and of all that stand beside a price
MOST_PRICED = 2  # elements of the price of one product: one for small screens is the second
FACTS_NEAR = 40  # blocks before and after a price
_OTHERS = re.compile(
    r"(?<![a-z])(?:cart|basket|related|similar|upsell|recommend(?:ed|ations?)|recent|filters?|facets?|refine(?:ments?)?)(?![a-z])"
)
_NO_PRODUCT = frozenset(("a", "nav", "footer", "dialog", "li", "article"))


def keep_product_facts(blocks: list[Block], keep: list[bool]) -> None:
    """Keep a price and the short facts beside it: mileage and fuel, rooms, dimensions.

    More than two prices with facts belong to a list of products, and stay as they are.
    """
    regions: dict[Element, list[int]] = {}
    for number, block in enumerate(blocks):
        if _is_price(block):
            region, inside = _facts_around(blocks, number)
            if region is not None:
                regions[region] = inside
    if len(regions) <= MOST_PRICED:
        for number in chain.from_iterable(regions.values()):
            keep[number] = keep[number] or _is_fact(blocks[number])


def _is_price(block: Block) -> bool:
    """Return whether a block is a price, or begins with one and says facts behind it."""
    if not 0 < block.count <= FACT_WORDS or block.linked or block.link:
        return False
    match = _PRICE.search(block.words)
    return match is not None and (block.count <= PRICE_WORDS or match.start() == 0)


def _is_fact(block: Block) -> bool:
    return block.kind == TABLE or (block.count <= FACT_WORDS and not block.linked)


def _facts_around(blocks: list[Block], price: int) -> tuple[Element | None, list[int]]:
    """Return the largest element around a price that holds short facts alone, and its blocks."""
    chosen: tuple[Element | None, list[int]] = None, []
    outward = list(blocks[price].parent.outward())
    if any(
        e.tag in _NO_PRODUCT or _OTHERS.search(f"{e.get('class')} {e.get('id')}".lower())
        for e in outward
    ):
        return chosen
    for element in outward[: PRICE_REACH + 1]:
        if element.tag in {"main", "body"}:
            break
        inside = [
            number
            for number in range(max(price - FACTS_NEAR, 0), min(price + FACTS_NEAR, len(blocks)))
            if element in blocks[number].parent.outward()
        ]
        words = sum(blocks[number].count for number in inside)
        linked = sum(blocks[number].linked for number in inside)
        if words > MOST_FACT_WORDS or linked * 3 > words:
            break
        if len(inside) > 1 or blocks[price].count > 2:  # an amount and its currency
            chosen = element, inside
    return chosen


STORY_REACH = 8  # elements above a main heading in which its story is searched
STORY_WORDS = 60  # of a story; less is a teaser


def drop_following(blocks: list[Block], keep: list[bool], title: str) -> None:
    """Leave out the stories that an endless scroll adds after the one that the page is named after.

    Stories have the same tag and classes, stand beside each other, and have a main heading each.
    """
    heads = [number for number, block in enumerate(blocks) if block.level == 1]
    if len(heads) < 2 or not blocks[heads[0]].words or blocks[heads[0]].words not in title:
        return
    _drop_stories_below(blocks, keep, heads)
    near = [dict.fromkeys(blocks[number].parent.nearest(STORY_REACH)) for number in heads]
    kinds = [{kind_of(element): element for element in around} for around in near]
    shared = next(
        (k for k, e in kinds[0].items() if kinds[1].get(k, e) is not e and k[0] is not None), None
    )
    if shared is None or sum(blocks[n].words == blocks[heads[0]].words for n in heads) > 1:
        return
    first = kinds[0][shared]
    others = {of[shared] for of in kinds[1:] if shared in of and of[shared] is not first}
    inside: defaultdict[Element, list[int]] = defaultdict(list)
    for number, block in enumerate(blocks):
        for element in block.parent.outward():
            if element is first or element in others:
                inside[element].append(number)
                break
    if sum(blocks[number].count for number in inside[first]) < STORY_WORDS:
        return
    for story in others:
        if inside[story][0] > heads[0]:
            for number in inside[story]:
                keep[number] = False


def _drop_stories_below(blocks: list[Block], keep: list[bool], heads: list[int]) -> None:
    """Leave out stories that are built otherwise than the one that the page is named after.

    There are two or more in elements of one kind beside each other, each with a main heading and
    an author or a date of its own: chapters of one text have none.
    """
    around = set(blocks[heads[0]].parent.outward())
    alike: defaultdict[Kind, set[Element]] = defaultdict(set)
    for number in heads[1:]:
        for element in blocks[number].parent.nearest(STORY_REACH):
            if element not in around:
                alike[kind_of(element)].add(element)
    stories = next(
        (
            elements
            for elements in alike.values()
            if len(elements) > 1 and all(map(_repairs.has_byline, elements))
        ),
        None,
    )
    if stories is None:
        return
    inside = [n for n, block in enumerate(blocks) if not stories.isdisjoint(block.parent.outward())]
    own = sum(blocks[number].count for number in range(inside[0]) if keep[number])
    if own >= STORY_WORDS and inside[0] > heads[0]:
        for number in inside:
            keep[number] = False


def _is_title_shown(blocks: list[Block], keep: list[bool], title: str) -> bool:
    """Return whether the first main heading that is kept is what the page is named after."""
    heads = (block.words for block in compress(blocks, keep) if block.level == 1)
    return bool(first := next(heads, "")) and first in title


def content(blocks: list[Block], kind: str = "", title: str = "") -> list[bool]:
    """Return which blocks are the content; at least one is if there are any blocks.

    ``kind`` is what the page says that it is; teasers around an article are of other pages.
    ``title`` is that of the page; stories with other titles that follow its own are, too.
    """
    with_words = texts(blocks)
    chosen = _choose(with_words, kind)
    _repairs.keep_lead(with_words, chosen)
    _repairs.drop_folds(with_words, chosen)
    _repairs.drop_around(with_words, chosen, kind)
    _repairs.drop_menus(with_words, chosen)
    _repairs.drop_foot(with_words, chosen)
    # Behind drop_foot: the price of the product may stand in a sidebar.
    if kind != "article" and _is_scored(with_words):
        keep_product_facts(with_words, chosen)
    _repairs.drop_contents(with_words, chosen)
    _repairs.drop_summaries(with_words, chosen)
    _repairs.drop_copies(with_words, chosen)
    if title:
        drop_following(with_words, chosen, title)
    if kind == "article" or (not kind and _is_title_shown(with_words, chosen, title)):
        drop_teasers(with_words, chosen, kind)
    kept = iter(chosen)
    keep = [block.kind != MEDIUM and next(kept) for block in blocks]
    if len(with_words) < len(blocks):
        _repairs.keep_media(blocks, keep)
    return keep


def _is_scored(blocks: list[Block]) -> bool:
    return len(blocks) <= MAX_SCORED and size_of(blocks) >= MIN_SCORED_CHARS


def _choose(blocks: list[Block], kind: str) -> list[bool]:
    if not _is_scored(blocks):
        return _repairs.by_rules_alone(blocks)
    less = _LESS if kind else 0
    scores = [score - less for score in at_places(blocks, log_odds(blocks))]
    keep = likeliest(scores, [block.count for block in blocks])
    if size_of(blocks) < SHORT_PAGE_CHARS:
        by_place = _repairs.by_rules_alone(blocks)
        agreed = MIN_AGREED * size_of(compress(blocks, by_place))
        keep = by_place if size_of(compress(blocks, keep)) < agreed else keep
    if any(block.kind == CODE for block in blocks):
        _repairs.keep_title(blocks, keep)
        _repairs.fill_gaps(blocks, keep)
    _repairs.keep_tables(blocks, keep)
    _repairs.complete_cards(blocks, keep)
    keep_sisters(blocks, keep)
    _repairs.keep_bylines(blocks, keep)
    _repairs.keep_title(blocks, keep)
    return keep


def likeliest(scores: Sequence[float], sizes: Sequence[float]) -> list[bool]:
    """Return which blocks to keep: those at or above the score that maximizes the expected F1.

    ``scores`` are log odds, ``sizes`` are words. The threshold is lower on a page where the scorer
    is in doubt: a block is worth keeping from half of the best F1 on (Lipton, Elkan and
    Naryanaswamy, 2014, "Thresholding classifiers to maximize F1 score").
    """
    ranked = sorted(zip(scores, sizes, strict=True), reverse=True)
    expected_words = [words / (1 + math.exp(-score)) for score, words in ranked]
    expected = sum(expected_words)
    best = threshold = right = kept = 0.0
    for (score, words), likely_words in zip(ranked, expected_words, strict=True):
        right += likely_words
        kept += words
        if right > best * (kept + expected):
            best, threshold = right / (kept + expected), score
    return [score >= threshold for score in scores]
