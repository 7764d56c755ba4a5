"""Write the word for a picture where a cell, an item or a sentence lacks it.

A table of plans says yes and no by pictures, a rating shows stars, a number stands in a button.
Without their words a cell is empty, and a model reads "not supported". The words are those that a
screen reader says (WAI-ARIA 1.2; Accessible Name and Description Computation 1.2): the alternative
text, the label, the title, or text for screen readers alone. They are short, as a sign is, so that
they are no place for instructions; and they stand nowhere else, so that icons add no words.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from fetchstash.handlers._html._element import BLOCKS, Element, Node
from fetchstash.handlers._html._media import labelled, shown

SIGN = "sign"
"""The tag of an element that has a label and no text: it vanishes where no word is lacking."""
READERS = "for-readers"
"""The attribute of a sign whose label is text for screen readers alone."""
OF_ALL = "of-all"
"""The attribute of a sign whose label is that of the element around it, with all its icons."""
MAX_WORDS, MAX_CHARS = 10, 80
MAX_SIGNS = 5_000
REACH = 8  # elements above a sign in which its cell is searched
_CELLS = frozenset(("td", "th", "dd"))
_HOLDERS = _CELLS | {"li", "dt"}
_EMPHASIS = frozenset(("i", "em", "b"))
_CONTROLS = frozenset(("a", "button", "summary", "label"))
# A picture of one sign, such as an emoji, is text wherever it stands; so is its short name.
_EMOJI = re.compile(r"[^\x00-\xff]{1,12}|:[a-z0-9_+-]{2,40}:|[\xa9\xae\xb1\xd7]")
_AMOUNT = re.compile(
    r"\d(?:[.,]\d+)?\s*(?:%|/|of|out of|von|sur|de|stars?|Sterne|★)", re.IGNORECASE
)
_NO_WORD = re.compile(
    r"(?:opens? )?(?:in a )?new (?:tab|window)|external|permalink|anchor|tooltip|(?:more )?info"
    r"(?:rmation)?|help|copy|close|open|menu|edit|search|loading|advert|sponsored|logo|icon|image",
    re.IGNORECASE,
)
# What an icon before words says of them: whether, and which way.
_SAYS_WHETHER = re.compile(
    r"(?:yes|no|not?|non|none|never|true|false|without|lacks?|missing|absent|un\w+able|un\w+ed|"
    r"(?:in|ex)clu\w+|available|supported|enabled|disabled|allowed|forbidden|passed|failed|"
    r"(?:un|not )?check(?:ed|mark)?|tick|cross|up|down|(?:in|de)creas\w+|rise|rising|rose|fall|"
    r"falling|fell|gain|loss|positive|negative|ja|nein|kein\w*|nicht|ohne|oui|sans|sí|si|sin|não|"
    r"sim|sem|nee|niet|nie|tak|да|нет|[✓✔✗✘]|\[[ x]\])(?![-\w])",
    re.IGNORECASE,
)
_READERS_WORDS = 3  # of text for screen readers that says whether
DRAWN = ("\N{CHECK MARK}", "\N{BALLOT X}")
_ICON = re.compile(
    r"(?:[a-z]+[-_]+){0,2}(?:(check(?:mark|ed)?|tick|yes|ok)|"
    r"times|cross|x-?mark|x(?![-_]*\d)|no|remove|ban|close|clear)"
    r"(?:[-_]+(?:circle|square|mark|alt|lg|fill|bold|solid|icon|o|\d*x?))*",
    re.IGNORECASE,
)
"""The signs that names of icons tell: Font Awesome, Bootstrap, Glyphicons, Dashicons."""
_OPENED = (":", "(", "=", "\N{FULLWIDTH COLON}")
_ENDED = ".!?\N{HORIZONTAL ELLIPSIS}"


def label(attributes: dict[str, str]) -> str:
    """Return the label of an element without text, "" if it has none that is as short as a sign.

    A switch says whether it is on (WAI-ARIA 1.2, 6.6).
    """
    if state := attributes.get("aria-checked"):
        return box(is_checked=state == "true")
    return as_sign(attributes.get("aria-label") or attributes.get("title") or "")


def box(*, is_checked: bool) -> str:
    """Return a check box as Markdown writes it."""
    return "[x]" if is_checked else "[ ]"


@lru_cache(1_024)
def drawn(name: str) -> str:
    """Return the tick or the cross that the name of an icon tells, "" for any other."""
    icons = filter(None, map(_ICON.fullmatch, name[:200].replace(":", " ").split()))
    told = {DRAWN[0] if icon[1] else DRAWN[1] for icon in icons}
    return told.pop() if len(told) == 1 else ""


def as_sign(text: str) -> str:
    """Return a text on one line, "" if it is too long for a sign."""
    words = text[: 4 * MAX_CHARS].split()
    line = " ".join(words)
    return line if len(words) <= MAX_WORDS and len(line) <= MAX_CHARS else ""


def emoji(image: Element) -> str:
    """Return the character that a picture stands for, "" for any other picture."""
    alt = image.get("alt").strip()
    return alt if _EMOJI.fullmatch(alt) else ""


def is_sign(image: Element) -> bool:
    """Return whether a picture may stand for a word."""
    has_source = not {"src", "srcset"}.isdisjoint(image.attributes)
    return has_source and {image.get("width"), image.get("height")}.isdisjoint({"0", "1"})


def write(signs: list[Element], media: list[Element]) -> int:
    """Write the words of signs that are needed; the other signs leave the page.

    Returns how many of them were hidden as text for screen readers.
    """
    if not signs:
        return 0
    pending: dict[Element, str] = {}
    holders: dict[Element, None] = {}
    for sign in signs[:MAX_SIGNS]:
        holder = _holder(sign)
        if holder.tag not in _CELLS and _control(sign):
            continue  # that is never lacking
        if word := _word(sign, holder):
            pending[sign] = word
            holders[holder] = None
    written: set[Element] = set()
    for holder in holders:
        nodes = list(_flat(holder))
        words = "".join(node for node in nodes if isinstance(node, str)).strip()
        lacking = {
            number: (node, word)
            for number, node in enumerate(nodes)
            if not isinstance(node, str)
            and node not in written
            and (word := pending.get(node, ""))
            and _is_lacking(node, word, holder, words, nodes, number)
        }
        is_told = any(word not in DRAWN for _, word in lacking.values())
        for number, (node, word) in lacking.items():
            if is_told and word in DRAWN:
                continue  # the name of the icon beside its word
            if node.parent is not None and node.parent.tag in _EMPHASIS:
                node.parent.tag = "span"  # an icon in <i> is no emphasis
            node.tag = "span"
            node.children = [f" {word} " if _touches(nodes, number) else word]
            written.add(node)
    if written:
        media[:] = [medium for medium in media if medium not in written]
    for parent in {s.parent for s in signs if s.tag == SIGN and s.parent is not None}:
        parent.children = [c for c in parent.children if isinstance(c, str) or c.tag != SIGN]
    return sum(READERS in sign.attributes for sign in written)


def _word(sign: Element, holder: Element) -> str:
    if sign.tag == "img":
        word = _of_picture(sign, holder)
        return "" if word and shown(sign) else word
    if sign.tag != "button":
        return label(sign.attributes)
    inside = list(_flat(sign))
    words = as_sign(" ".join(node for node in inside if isinstance(node, str))) or as_sign(
        " ".join(label(node.attributes) for node in inside if not isinstance(node, str))
    )
    is_cell = holder.tag in _CELLS  # a button with an icon does something elsewhere
    return words or (label(sign.attributes) if is_cell else "")


def _of_picture(image: Element, holder: Element) -> str:
    if word := as_sign(labelled(image)[0]) or label(image.attributes):
        return word
    if image.get("alt").strip():
        return ""
    name = image.get("src").partition("?")[0].rpartition("/")[2].partition(".")[0]
    return drawn(name) if holder.tag in _CELLS else ""


def _control(sign: Element) -> str:
    """Return the tag of the control around a sign, "" if there is none."""
    return next((e.tag for e in sign.outward() if e.tag in _CONTROLS and e is not sign), "")


def _holder(sign: Element) -> Element:
    """Return the cell or the item around a sign, else its paragraph."""
    near = sign.nearest(REACH)[1:]
    holder = next((around for around in near if around.tag in _HOLDERS), None)
    return holder or next((around for around in near if around.tag in BLOCKS), near[-1])


def _flat(holder: Element) -> Iterable[Node]:
    """Yield the texts of an element and what is no text: signs, and pictures that are shown."""
    pending = holder.children[::-1]
    while pending:
        node = pending.pop()
        if isinstance(node, str):
            if node.strip():
                yield node
        elif node.tag in {SIGN, "img", "button"} and node is not holder:
            yield node
        elif (first := next(iter(node.children), None)) is not None:
            is_labelled = not isinstance(first, str) and OF_ALL in first.attributes
            pending += [first] if is_labelled else node.children[::-1]


def _is_lacking(
    sign: Element, word: str, holder: Element, words: str, nodes: list[Node], number: int
) -> bool:
    """Return whether what stands around a sign is empty or broken without its word."""
    control = _control(sign)
    if control and words:
        return False
    if control == "a" and not _SAYS_WHETHER.match(word):
        return False
    if not words:
        return holder.tag in _HOLDERS or (sign.tag != "button" and _AMOUNT.search(word) is not None)
    before = next((n for n in reversed(nodes[:number]) if isinstance(n, str)), "").rstrip()
    after = next((n for n in nodes[number + 1 :] if isinstance(n, str)), "").lstrip()
    if holder.tag in _HOLDERS and sign.tag == SIGN and _SAYS_WHETHER.match(word):
        return READERS not in sign.attributes or len(word.split()) <= _READERS_WORDS
    if not before or _NO_WORD.match(word):
        return False
    if before.endswith(_OPENED):
        return True
    continues = after[:1].islower() or after[:1] in {*",;).%+/="}
    is_seen = READERS not in sign.attributes  # text for screen readers may be of anything
    return bool(after) and continues and is_seen and before[-1] not in _ENDED


def _touches(nodes: list[Node], number: int) -> bool:
    """Return whether a sign stands beside another, or beside a word without a space."""
    before, after = nodes[max(number - 1, 0) : number], nodes[number + 1 : number + 2]
    return any(
        not isinstance(node, str) or node[at].isalnum()
        for at, beside in ((-1, before), (0, after))
        for node in beside
    )
