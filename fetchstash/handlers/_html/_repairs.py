"""Landmarks of a page, and content that the scorer missed or took in too much.

HTML Standard, 4.3; WAI-ARIA 1.2, 5.3.4.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Sequence
from functools import cache, lru_cache, partial
from itertools import chain, compress, groupby, islice, pairwise, takewhile
from typing import NamedTuple

from fetchstash.handlers._html._blocks import (
    CODE,
    HEADING,
    MEDIUM,
    PARAGRAPH,
    TABLE,
    Block,
    size_of,
)
from fetchstash.handlers._html._element import Element, elements_in, names
from fetchstash.handlers._html._tables import has_heads

_CHROME = names("nav header footer aside form menu search")
_QUOTING = names("blockquote figure")  # elements whose own header and footer name the source
_FIXED = names("nav footer menu")  # chrome even on a page that has little else, such as a form
_MIN_OUTSIDE = 0.2
"""Of the page's text. If less stands outside the chrome, only _FIXED chrome is left out."""
_CHROME_ROLES = names("navigation banner contentinfo complementary search menu menubar dialog")
_FOOTER = re.compile(r"(?:^|[\s_-])footer(?:$|[\s_-])", re.IGNORECASE)
_CONTENT = names("main article")
_TELLING = _CHROME | _CONTENT
_MIN_SHARE = 0.3
"""Of the text outside the chrome. If ``main`` and ``article`` hold less, they are ignored."""


class Place(NamedTuple):
    """Whether a block stands in the chrome, and whether in an element marked as content.

    ``fixed``: the chrome is navigation or a footer.
    """

    chrome: bool
    content: bool
    fixed: bool


_NOWHERE = Place(chrome=False, content=False, fixed=False)


def places(blocks: Sequence[Block], *, by_name: bool = False) -> list[Place]:
    """Return where each block stands. ``by_name``: a class or an id may say "footer", too."""
    known: dict[Element | None, Place] = {None: _NOWHERE}
    for block in blocks:
        if block.parent not in known:
            for element in new_around(block.parent, known):
                known[element] = _inside(element, known[element.parent], by_name)
    return [known[block.parent] for block in blocks]


def _inside(element: Element, around: Place, by_name: bool) -> Place:
    tag = element.tag
    role = element.attributes.get("role", "")
    if by_name and _FOOTER.search(f"{element.get('class')} {element.get('id')}"):
        return Place(chrome=True, content=False, fixed=True)
    if not role and tag not in _TELLING:
        return around
    # The header of an article is its title and author; the footer of a quotation its source.
    is_own = tag in {"header", "footer"} and (
        (tag == "header" and around.content) or any(e.tag in _QUOTING for e in element.outward())
    )
    content = around.content or tag in _CONTENT or role == "main"
    is_chrome = role in _CHROME_ROLES or (tag in _CHROME and not is_own)
    is_fixed = is_chrome and (tag in _FIXED or role in {"navigation", "contentinfo"})
    return Place(around.chrome or is_chrome, content, around.fixed or is_fixed)


def by_rules(blocks: Sequence[Block], where: Sequence[Place]) -> list[bool]:
    """Return which blocks are content.

    Blocks in the chrome are not. Where enough text is marked as content, only that is.
    """
    outside = [not place.chrome for place in where]
    if not any(outside):
        return [True] * len(blocks)
    inside = [place.content and not place.chrome for place in where]
    sizes = [block.size for block in blocks]
    is_marked = sum(compress(sizes, inside)) > _MIN_SHARE * sum(compress(sizes, outside))
    return inside if is_marked else outside


def by_rules_alone(blocks: Sequence[Block]) -> list[bool]:
    """Return which blocks are content where no scorer decides.

    If little stands outside the chrome, the page is a form, and only fixed chrome is left out.
    """
    where = places(blocks, by_name=True)
    if all(place.fixed for place in where):  # the class is that of all of the page
        where = places(blocks)
    outside = [not place.fixed for place in where]
    text = size_of(block for block, place in zip(blocks, where, strict=True) if not place.chrome)
    if text > _MIN_OUTSIDE * size_of(compress(blocks, outside)):
        return by_rules(blocks, where)
    return outside if any(outside) else [True] * len(blocks)


TITLE_REACH = 20  # the title is searched in this many blocks above the first kept block
CONTENT_SHARE = 0.5  # of the kept text; an element that holds as much is the content's
TABLE_REACH = 5  # elements above a table in which the content is searched
MAX_LINK_SHARE = 0.6  # of a table's text; one with more is navigation
REGION_REACH = 4  # elements, from the parent of a block up, that hold the region of the block
MAX_GAP, MAX_GAP_CHARS = 3, 80
"""Blocks in a row, or their characters, that are kept between kept blocks of the same region."""
CARD_WORDS = 60  # words inside one link that are a card of a product, a post or an event
BYLINE_WORDS = 12
LEAST_COPIED = 12  # words in a row that are worth leaving out where they stand again
MAX_MEDIA = 500  # blocks of pictures that are placed; the listing has all of them
NEIGHBOURS = 20  # blocks on either side in which a picture's text is searched
FIGURE_REACH = 4  # elements above a picture in which its figure is searched
CAPTION_WORDS = 100
POST_REACH = 6  # elements above a block in which its post is searched
_POST = re.compile(
    r"(?<![a-z])(?:post|comment|message|reply|answer|topic)(?![a-rt-z])"
    r"(?!-(?:author|meta|metadata|head|header|byline|info|date))"
)
_AUTHOR = re.compile(r"(?<![a-z])(?:author|byline|(?:post-|pub)?date)(?![a-z])")
_BYLINE = re.compile(
    r"author|user|byline|poster|nick|vcard|(?<![a-z])(?:fn|date|time|name|score|points|votes)(?![a-z])"
)


def keep_title(blocks: list[Block], keep: list[bool]) -> None:
    """Keep the main heading above the first kept block."""
    first = keep.index(True) if True in keep else 0
    for number in range(first - 1, max(first - TITLE_REACH, 0) - 1, -1):
        if blocks[number].level == 1:
            keep[number] = True
            return


def keep_tables(blocks: list[Block], keep: list[bool]) -> None:
    """Keep tables with header cells inside the content, such as an infobox."""
    candidates = [
        number
        for number, block in enumerate(blocks)
        if block.kind == TABLE and not keep[number] and has_heads(block.parent)
    ]
    if not candidates:
        return
    sizes: Counter[Element] = Counter()
    kept = list(compress(blocks, keep))
    for block in kept:
        for element in islice(block.parent.outward(), 1, None):
            sizes[element] += block.size
    enough = CONTENT_SHARE * size_of(kept)
    where = places([blocks[number] for number in candidates])
    for number, place in zip(candidates, where, strict=True):
        table = blocks[number].parent
        near = table.nearest(TABLE_REACH + 1)[1:]
        linked = sum(len(link.text()) for link in table.descendants() if link.tag == "a")
        keep[number] = (
            not place.chrome
            and any(sizes[element] >= enough for element in near)
            and linked <= MAX_LINK_SHARE * len(blocks[number].words)
        )


def fill_gaps(blocks: list[Block], keep: list[bool]) -> None:
    """Keep code beside kept text, and code, tables, headings and small gaps between kept blocks.

    What stands below its main heading says what it is about, and is kept unless it is a menu.
    """
    beside = {e for block in compress(blocks, keep) for e in block.parent.nearest(REGION_REACH)}
    for number, block in enumerate(blocks):
        if block.kind == CODE and not beside.isdisjoint(block.parent.nearest(REGION_REACH + 1)):
            keep[number] = True
    kept = list(compress(range(len(keep)), keep))
    for before, after in pairwise(kept):
        gap = range(before + 1, after)
        near = blocks[before].parent.nearest(REGION_REACH)
        if gap and not set(near).isdisjoint(blocks[after].parent.outward()):
            inside = blocks[before + 1 : after]
            is_text = sum(block.count - 2 * block.linked for block in inside) > 0
            is_lead = before == kept[0] and blocks[before].level == 1 and is_text
            is_small = len(gap) <= MAX_GAP or size_of(inside) <= MAX_GAP_CHARS or is_lead
            for number in gap:
                keep[number] = is_small or blocks[number].kind in {CODE, TABLE, HEADING}


def complete_cards(blocks: list[Block], keep: list[bool]) -> None:
    """Keep all of a card of which some is kept: its price and its date stand in the same link."""
    cards: defaultdict[Element, list[int]] = defaultdict(list)
    for number, block in enumerate(blocks):
        if block.link:
            link = next((e for e in block.parent.outward() if e.tag == "a"), block.parent)
            cards[link].append(number)
    for numbers in cards.values():
        words = sum(blocks[number].count for number in numbers)
        if words <= CARD_WORDS and any(keep[number] for number in numbers):
            for number in numbers:
                keep[number] = True


LEAST_FOLDS, MOST_FOLDED, MIN_SAID_AGAIN = 5, 1 / 3, 0.6
"""Closed ``details`` of one summary, and their share of the page's words and of words that most of
them say, from which on they are the list of a program, such as all instances of a class."""


def drop_folds(blocks: list[Block], keep: list[bool]) -> None:
    """Leave out most of a page that is folded and says the same each time; answers differ."""
    folds: defaultdict[str, set[Element]] = defaultdict(set)
    for block in blocks:
        fold = block.parent.parent if block.parent.tag == "summary" else None
        if fold is not None and fold.tag == "details" and "open" not in fold.attributes:
            folds[block.words].add(fold)
    for alike in folds.values():
        if len(alike) < LEAST_FOLDS:
            continue
        inside = list(_held(blocks, alike.__contains__).values())
        said = [{w for n in fold for w in blocks[n].words.split()} for fold in inside]
        often = Counter(chain.from_iterable(said))
        again = (sum(2 * often[word] >= len(said) for word in own) / len(own) for own in said)
        folded = set(chain.from_iterable(inside))
        size = sum(blocks[n].count for n in folded)
        is_most = size >= MOST_FOLDED * sum(block.count for block in blocks)
        if is_most and sum(again) >= MIN_SAID_AGAIN * len(said):
            for number in folded:
                keep[number] = False


_BAR = re.compile(r"(?:^|\s)(?:\w+-){0,3}nav(?:bar|box|igation|header|footer)?(?:-\w+)?(?:$|\s)")
_PANEL = r"(?<![a-z])(?:related|modal|popup|dropdown|disclaimer)(?![a-z])"
_AROUND = {
    "": re.compile(_PANEL),
    "article": re.compile(
        rf"{_PANEL}|(?<![a-z])(?:comments?|disqus|respond|recommended|newsletter|sign-?up)(?![a-z])"
    ),
    "product": re.compile(rf"{_PANEL}|(?<!p)review|bazaarvoice|yotpo|judgeme|loox"),
}
"""What classes and ids call what stands around the text, by what the page says that it is."""


def drop_around(blocks: list[Block], keep: list[bool], kind: str) -> None:
    """Leave out navigation, panels, comments on an article and reviews of a product by their names.

    A third of navigation is links. What is left out is less than half of what is kept.
    """
    half = sum(block.count for block in compress(blocks, keep)) / 2
    for name in (_BAR, _AROUND[kind]):
        for inside in _held(blocks, partial(_has_name, name)).values():
            size = sum(blocks[n].count for n in inside)
            is_told = name is not _BAR or 3 * sum(blocks[n].linked for n in inside) >= size
            if is_told and sum(blocks[n].count for n in inside if keep[n]) < half:
                for number in inside:  # code is no panel: its language is chosen in one
                    keep[number] = keep[number] and blocks[number].kind == CODE


MENU_LINKS, MIN_LINKED, LEAST_BESIDE = 5, 0.75, 20
"""Links of a menu in a cell, their share of its words, and the words of text beside it."""


def drop_menus(blocks: list[Block], keep: list[bool]) -> None:
    """Leave out cells that list links beside a cell of text, as pages laid out in tables do.

    A cell with a heading is no menu.
    """
    held = _held(blocks, lambda element: element.tag == "td")
    unlinked = {c: sum(blocks[n].count - blocks[n].linked for n in held[c]) for c in held}
    beside: Counter[Element | None] = Counter()
    for cell, words in unlinked.items():
        beside[cell.parent] = max(beside[cell.parent], words)
    for cell, inside in held.items():
        if (
            max(LEAST_BESIDE - 1, unlinked[cell]) < beside[cell.parent]
            and unlinked[cell] <= (1 - MIN_LINKED) * sum(blocks[n].count for n in inside)
            and all(blocks[n].kind != HEADING for n in inside)
            and sum(element.tag == "a" for element in cell.descendants()) >= MENU_LINKS
        ):
            for number in inside:
                keep[number] = False


def _has_name(name: re.Pattern[str], element: Element) -> bool:
    attributes = element.attributes
    if not attributes:
        return False
    ids = "" if name is _BAR else attributes.get("id", "")  # a heading on menus has the id "nav"
    classes = attributes.get("class", "")
    return bool(classes or ids) and _is_in(name, f"{classes} {ids}")


@lru_cache(10_000)
def _is_in(name: re.Pattern[str], names: str) -> bool:
    return name.search(names.lower()) is not None


def _held(blocks: list[Block], is_meant: Callable[[Element], bool]) -> dict[Element, list[int]]:
    """Return the numbers of the blocks in each element that is meant."""
    meant: dict[Element | None, tuple[Element, ...]] = {None: ()}  # those around an element
    held: defaultdict[Element, list[int]] = defaultdict(list)
    for number, block in enumerate(blocks):
        parent = block.parent
        if parent not in meant:
            for element in new_around(parent, meant):
                around = meant[element.parent]
                meant[element] = (element, *around) if is_meant(element) else around
        for element in meant[parent]:
            held[element].append(number)
    return held


def new_around(element: Element, known: Container[Element | None]) -> list[Element]:
    """Return an element and those around it that are not known yet, the outermost first."""
    new: list[Element] = []
    around: Element | None = element
    while around is not None and around not in known:
        new.append(around)
        around = around.parent
    new.reverse()
    return new


_FOOT = re.compile(r"(?:^|\s)(?:(?:site|page|main|global)-)?(?:footer|sidebar)(?:$|\s)")


def drop_foot(blocks: list[Block], keep: list[bool]) -> None:
    """Leave out what a class or an id calls footer or sidebar below all text, which is longer."""
    kept = list(compress(range(len(keep)), keep))
    foot = list(takewhile(lambda n: _is_in_foot(blocks[n].parent), reversed(kept)))
    if foot and 2 * sum(blocks[n].count for n in foot) < sum(blocks[n].count for n in kept):
        for number in foot:
            keep[number] = False


def _is_in_foot(element: Element) -> bool:
    return any(_has_name(_FOOT, around) for around in element.outward())


LEAST_ENTRIES, MIN_NAMED = 3, 0.8
"""Links to places of this page in a row, and the share of them that say what a heading says."""
_NUMBERING = re.compile(r"^(?:\d+(?:\.\d+)*|[ivx]+|[a-z])[.)]?\s+")
_NO_WORD = re.compile(r"[\W_]+")
_CONTENTS = re.compile(
    r"(?:table of )?contents|(?:on|in) this (?:page|article|section|guide|document|post|topic)|"
    r"toc|jump to(?: section)?|inhalt(?:sverzeichnis)?|auf dieser seite|in diesem artikel|"
    r"sommaire|table des matières|sur cette page|dans cet article|índice|contenidos?|"
    r"tabla de contenidos|en esta página|en este artículo|sumário|neste artigo|nesta página|"
    r"indice|contenuti|in questa pagina|in questo articolo|inhoud(?:sopgave)?|op deze pagina|"
    r"spis treści|содержание|оглавление|目次|目录|目錄|本页(?:目录|内容)|목차"
)


def drop_contents(blocks: list[Block], keep: list[bool]) -> None:
    """Leave out tables of contents: each entry is a heading of the text, and the outline has all.

    The line above that calls it so goes with it, and a heading that has nothing else below it.
    """
    entries = [_is_entry(block) for block in blocks]
    if sum(entries) < LEAST_ENTRIES:
        return
    headings = {_named(block) for block in compress(blocks, keep) if block.level}
    start = 0
    for is_entry, run in groupby(entries):
        end = start + len(list(run))
        named = sum(_named(block) in headings for block in blocks[start:end]) if is_entry else 0
        if named >= max(LEAST_ENTRIES, MIN_NAMED * (end - start)):
            keep[start:end] = [False] * (end - start)
            if start and _is_above_alone(blocks[start - 1], blocks[end : end + 1]):
                keep[start - 1] = False
        start = end


def _is_above_alone(block: Block, after: list[Block]) -> bool:
    """Return whether a block is the heading of a table of contents and of nothing else."""
    if _CONTENTS.fullmatch(block.words.casefold().strip(" :.")):
        return True
    return block.level > 1 and all(0 < other.level <= block.level for other in after)


def _is_entry(block: Block) -> bool:
    """Return whether a block is one link to a place of a page."""
    if not block.count or block.linked < block.count - 1 or block.level:
        return False
    if block.link:
        return "#" in block.link
    links = [element for element in elements_in(block.nodes) if element.tag == "a"]
    return len(links) == 1 and "#" in links[0].attributes.get("href", "")


def _named(block: Block) -> str:
    words = block.words.casefold()
    return _NO_WORD.sub("", _NUMBERING.sub("", words) or words)


LEAST_SUMMED = 3  # words of a summary


def drop_summaries(blocks: list[Block], keep: list[bool]) -> None:
    """Leave out a paragraph if the next one, deeper beside it, begins with it word for word.

    It is the summary that a script shows in place of the whole.
    """
    for before, after in pairwise(compress(range(len(keep)), keep)):
        short, whole = blocks[before], blocks[after]
        if (
            short.kind == whole.kind == PARAGRAPH
            and short.count >= LEAST_SUMMED
            and f"{whole.words} ".startswith(f"{short.words} ")
            and any(e is short.parent.parent for e in islice(whole.parent.outward(), 2, None))
        ):
            keep[before] = False


LEAST_LEADS, LEAD_WORDS = 2, 15  # paragraphs of running text below a main heading, their words


def keep_lead(blocks: list[Block], keep: list[bool]) -> None:
    """Keep running text between the main heading and the first block that is kept below it."""
    kept = list(compress(range(len(keep)), keep))
    if len(kept) < 2 or blocks[kept[0]].level != 1:
        return
    title, after = kept[:2]
    region = set(blocks[title].parent.nearest(REGION_REACH))
    gap = range(title + 1, after)
    if (
        not region.isdisjoint(blocks[after].parent.outward())
        and sum(_is_running(blocks[number]) for number in gap) >= LEAST_LEADS
    ):
        for number in gap:
            keep[number] = True


def _is_running(block: Block) -> bool:
    """Return whether a block is a paragraph of sentences."""
    return (
        block.kind == PARAGRAPH
        and block.count >= LEAD_WORDS
        and block.linked * 3 < block.count
        and block.words.endswith((".", "!", "?", ":"))
    )


MANY_COPIED = 200
"""Words in a row that are no hours of another branch, whatever heading they stand under."""


def drop_copies(blocks: list[Block], keep: list[bool]) -> None:
    """Leave out text that stands above word for word: a quoted post, a copy for small screens.

    What is said again under another heading may be of something else, such as the hours of another
    branch, and documentation with code says the same of several things: there only menus go. What
    is said again to the same parent is a refrain.
    """
    kept = list(compress(range(len(keep)), keep))
    under: list[int] = []
    for number in kept:
        is_first = not under or blocks[number].kind == HEADING
        under.append(number if is_first else under[-1])
    has_code = any(blocks[number].kind == CODE for number in kept)
    places: dict[str, int] = {}
    at = 0
    while at < len(kept):
        above = places.setdefault(blocks[kept[at]].words, at)
        copied: list[int] = []
        for step in range(min(at - above, len(kept) - at)):
            block, before = blocks[kept[at + step]], blocks[kept[above + step]]
            if block.words != before.words or block.parent.parent is before.parent.parent:
                break
            copied.append(kept[at + step])
        words = sum(blocks[number].count for number in copied)
        is_menu = 2 * sum(blocks[number].linked for number in copied) >= words
        heading, other = under[at], under[above]
        is_quoted = any(around.tag == "blockquote" for around in blocks[kept[at]].containers)
        is_whole = is_quoted or heading in {other, kept[at], kept[at - 1]}
        is_of_same = not has_code and (
            words >= MANY_COPIED or (is_whole and blocks[heading].words == blocks[other].words)
        )
        for number in copied if words >= LEAST_COPIED and (is_menu or is_of_same) else ():
            keep[number] = False
        at += max(len(copied), 1)


def keep_bylines(blocks: list[Block], keep: list[bool]) -> None:
    """Keep author and date of each post of a thread of which text is kept."""
    is_post = cache(_is_post)

    def post_of(block: Block) -> Element | None:
        return next(filter(is_post, block.parent.nearest(POST_REACH)), None)

    bylines = [
        (number, post)
        for number, block in enumerate(blocks)
        if not keep[number] and block.count <= BYLINE_WORDS
        if (post := post_of(block)) is not None and _is_byline(block)
    ]
    if not bylines:
        return
    kept = set(map(post_of, compress(blocks, keep))) - {None}
    if len(kept) > 1:
        for number, post in bylines:
            keep[number] = post in kept


def _is_post(element: Element) -> bool:
    """Return whether an element is a post of a thread."""
    attributes = element.attributes
    if "itemtype" in attributes or "itemprop" in attributes:
        kind = element.get("itemtype") + element.get("itemprop")
        if "Comment" in kind or "Posting" in kind or kind == "comment":
            return True
    return (
        "class" in attributes
        and element.tag in {"article", "li", "div"}
        and _POST.search(attributes["class"].lower()) is not None
        and any(child.tag != "a" for child in element.elements())
    )


def _is_byline(block: Block) -> bool:
    inner = (node for node in block.nodes if not isinstance(node, str))
    return any(
        element.tag == "time" or _BYLINE.search(element.get("class").lower())
        for element in (*inner, *block.parent.nearest(2))
    )


def has_byline(element: Element) -> bool:
    """Return whether an element holds a time, or is classed as author or date."""
    return any(
        inner.tag == "time" or _AUTHOR.search(inner.get("class").lower())
        for inner in element.descendants()
    )


def keep_media(blocks: list[Block], keep: list[bool]) -> None:
    """Keep pictures and films beside kept blocks, and the captions of their figures."""
    numbers = [number for number, block in enumerate(blocks) if block.kind == MEDIUM]
    for number in numbers[:MAX_MEDIA]:
        parent = blocks[number].parent
        near = parent.nearest(FIGURE_REACH)
        figure = next((element for element in near if element.tag == "figure"), None)
        beside = _neighbours(blocks, number, figure)
        around = list(islice((figure or parent).outward(), 1, None))
        holders = [set(blocks[n].parent.outward()) for n in beside]
        common = next((e for e in around if any(e in held for held in holders)), None)
        closest = [n for n, held in zip(beside, holders, strict=True) if common in held]
        keep[number] = any(keep[n] for n in closest or beside) or not beside
        caption = number + 1
        if keep[number] and figure is not None and caption < len(blocks):
            is_short = blocks[caption].count <= CAPTION_WORDS
            if is_short and figure in blocks[caption].parent.outward():
                keep[caption] = True


def _neighbours(blocks: list[Block], number: int, figure: Element | None) -> list[int]:
    """Return the numbers of the blocks with words before and after a block and its figure."""

    def is_text(n: int) -> bool:
        inside = figure is not None and figure in blocks[n].parent.outward()
        return blocks[n].kind != MEDIUM and not inside

    sides = (range(number - 1, -1, -1), range(number + 1, len(blocks)))
    nearest = (next((n for n in islice(side, NEIGHBOURS) if is_text(n)), -1) for side in sides)
    return [n for n in nearest if n >= 0]
