"""Leave out the teasers of other pages that stand around an article: repeated subtrees of links."""

from collections import defaultdict
from itertools import islice

from fetchstash.handlers._html._blocks import HEADING, PARAGRAPH, Block
from fetchstash.handlers._html._element import Element
from fetchstash.handlers._html._features import linked_words

LEAST_ITEMS = 3
REACH = 6
"""Elements above the title of a teaser in which its item is searched."""
LEAST_TITLE_WORDS, MOST_ITEM_WORDS = 4, 70
"""Mean words of the titles and of the items of a list."""
MIN_SHARE = 0.8
"""Of the elements of one kind beside each other; a list has titles in as many."""
RUNNING_WORDS, RUNNING_PARAGRAPHS, RUNNING_IN_ALL = 15, 4, 150
"""Words of a paragraph of running text, and how much of it an article has."""

_Kind = tuple[Element, str, str]


def drop_teasers(blocks: list[Block], keep: list[bool]) -> None:
    """Leave out lists of teasers before and after the running text of an article."""
    words = [len(block.words.split()) for block in blocks]
    lists = _lists(blocks, words)
    if not lists:
        return
    listed = {number for numbers in lists for number in numbers}
    running = [
        number
        for number, block in enumerate(blocks)
        if keep[number]
        and number not in listed
        and block.kind == PARAGRAPH
        and not block.link
        and words[number] >= RUNNING_WORDS
        and linked_words(block.nodes) * 3 < words[number]
    ]
    if len(running) < RUNNING_PARAGRAPHS or sum(words[n] for n in running) < RUNNING_IN_ALL:
        return
    for numbers in lists:
        if numbers[0] > running[-1] or numbers[-1] < running[0]:
            title = numbers[0] - 1
            if title >= 0 and blocks[title].kind == HEADING and blocks[title].level > 1:
                keep[title] = False
            for number in numbers:
                keep[number] = False


def _lists(blocks: list[Block], words: list[int]) -> list[list[int]]:
    """Return the numbers of the blocks of each list of teasers."""
    titles: defaultdict[_Kind, dict[Element, int]] = defaultdict(dict)
    for number, block in enumerate(blocks):
        if _is_title(block, words[number]):
            for element in islice((block.parent, *block.parent.ancestors()), REACH):
                if element.parent is not None:
                    titles[_kind(element.parent, element)].setdefault(element, words[number])
    items: dict[Element, _Kind] = {}
    for kind, by_item in titles.items():
        if len(by_item) >= LEAST_ITEMS and sum(by_item.values()) >= LEAST_TITLE_WORDS * len(
            by_item
        ):
            beside = sum(_kind(kind[0], element) == kind for element in kind[0].elements())
            if len(by_item) >= MIN_SHARE * beside:
                items.update(dict.fromkeys(by_item, kind))
    numbers: defaultdict[_Kind, list[int]] = defaultdict(list)
    for number, block in enumerate(blocks if items else ()):
        near = islice((block.parent, *block.parent.ancestors()), REACH + 2)
        item = next((element for element in near if element in items), None)
        if item is not None:
            numbers[items[item]].append(number)
    return [
        inside
        for kind, inside in numbers.items()
        if sum(words[n] for n in inside) <= MOST_ITEM_WORDS * len(titles[kind])
    ]


def _kind(parent: Element, element: Element) -> _Kind:
    return parent, element.tag, element.attributes.get("class", "")


def _is_title(block: Block, words: int) -> bool:
    """Return whether a block is all link, and leads to another page."""
    if block.link:
        return not block.link.startswith("#")
    if linked_words(block.nodes) < MIN_SHARE * words:
        return False
    elements = (node for node in block.nodes if not isinstance(node, str))
    links = (
        inner for node in elements for inner in (node, *node.descendants()) if inner.tag == "a"
    )
    return any(not link.attributes.get("href", "#").startswith("#") for link in links)
