"""Find the author and the dates of a page, as it shows them near its heading.

A wrong name or date is worse than none: only what stands near the main heading or is marked as the
page's own (microdata, ``rel=author``, classes) counts, and nothing inside of comments, teasers of
other pages and the like.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from html import unescape
from itertools import accumulate
from typing import NamedTuple

from fetchstash.handlers._dates import FIRST_YEAR, Found, dates, moment
from fetchstash.handlers._html._blocks import CODE, TABLE, Block
from fetchstash.handlers._html._element import Element, elements_in, names

BEFORE_BLOCKS, BEFORE_CHARS = 8, 500
AFTER_BLOCKS, AFTER_CHARS = 25, 1_500
"""Around the main heading, where a byline is looked for."""
ARTICLE_BLOCKS, ARTICLE_REACH = 60, 6
"""Blocks below the main heading, and elements around them, in which its article is searched."""
WORDS_OF_LINE = 45  # of a block that may be a byline; a longer one is text
REST_OF_LINE, REST_OF_MARKED = 4, 14
"""Words beside names and dates in a line that is a byline, and in one whose class says so."""
LEAST_OF_SENTENCE = 3  # words beside the date of "The fair is on 5 May 2027."
LABEL_CHARS = 30  # before a date, where words say of what it is
NAME_CHARS, NAMES_CHARS, NAME_WORDS = 60, 200, 5
MOST_AUTHORS = 2  # of a page that is no list
CARD_WORDS = 12  # inside one link: the teaser of another page


class Byline(NamedTuple):
    """The author and the dates (ISO 8601) of a page, "" for what is not found.

    ``lines`` are the numbers of the blocks near the heading that say so.
    """

    author: str = ""
    published: str = ""
    modified: str = ""
    lines: tuple[int, ...] = ()


# Roles, and what programs write where nobody is named.
_NOBODY = names(
    "admin administrator author authors by editor editors editorial staff guest webmaster "
    "user username unknown anonymous anonym root support default none null undefined "
    "superuser moderator wordpress contributor contributors redaktion redaktor redacción "
    "redacao redação redazione rédaction redactie redactia redakcja redakce администратор "
    "админ редакция автор 管理员 系统管理员 管理員 小编 小編 编辑 編輯 編集部 匿名 관리자 편집부"
)
_ROLES = re.compile(
    r"\b(?:admin(?:istrator)?|author|editors?|editorial|staff|guest|user|team|super|site|web|the|"
    r"news|desk|writers?|reporters?|la|die|por|von|de|our|online|board|post)\b"
)
_NO_NAME = re.compile(
    r"https?:|www\.|@|[<>{}=\\]|\.(?:com|org|net)/|"
    r"\b(?:profile|posts?|more|view|read|follow|subscribe|share|comments?|min|minutes?|click|all|"
    r"articles?|this|your|you|updated|published|today|yesterday|ago|sign|log|about|posted|print|email|"
    r"e-mail|facebook|twitter|linkedin|instagram|whatsapp|youtube|rss|website|contact|save|"
    r"listen|home)\b",
    re.IGNORECASE,
)
_TITLES_OF_OFFICE = re.compile(
    r"\b(?:editor|reporter|correspondent|writer|staff|producer|columnist|contributor|analyst|"
    r"director|fellow|professor|photograph\w*|journalist|redakteur\w*|journaliste|periodista|"
    r"giornalista|senior|chief|ceo|founder|phd|ph\.d\.?|md|m\.d\.?|news|reuters|cnn|bbc|ap|afp)\b",
    re.IGNORECASE,
)
_PARTICLES = names(
    "de da di do du del della der den des van von zu zum ter ten la le el al bin ibn ben y e "
    "dos das af av und and et"
)
# What stands before the name of an author. A single short word counts in its own language alone.
_BEFORE_NAME = {
    "": r"(?:(?:written|posted|published|authored|reported|words?|story|text|article|reviewed)\s+)?"
    r"by\b:?|authors?:|written by:?",
    "de": r"(?:(?:geschrieben|verfasst|veröffentlicht|ein beitrag|text|gastbeitrag)\s+)?von\b:?|"
    r"autor(?:in|en)?:|text:",
    "fr": r"(?:(?:écrit|publié|rédigé|posté|propos recueillis)\s+)?par\b:?|auteure?s?\s?:|"
    r"texte\s?:",
    "es": r"(?:(?:escrito|publicado|texto)\s+)?por\b:?|autora?:|texto:",
    "pt": r"(?:(?:escrito|publicado|texto)\s+)?por\b:?|autora?:|texto:",
    "it": r"(?:(?:scritto|pubblicato)\s+)?(?:di|da)\b:?|a cura di\b|autore:|testo:",
    "nl": r"(?:(?:geschreven|geplaatst)\s+)?door\b:?|auteur:|tekst:",
    "sv": r"(?:skriven )?av\b:?|text:",
    "da": r"(?:skrevet )?af\b:?|tekst:",
    "no": r"(?:skrevet )?av\b:?|tekst:",
    "nb": r"(?:skrevet )?av\b:?|tekst:",
    "fi": r"kirjoittaja:?|teksti:",
    "pl": r"autor(?:ka|zy)?:|napisał[a]?\b|przez\b|tekst:",
    "cs": r"autor(?:ka|ři)?:|napsala?\b",
    "ru": r"автор(?:ы)?:?|текст:",
    "uk": r"автор(?:и)?:?|текст:",
    "tr": r"yazan:|yazar:",
    "ro": r"(?:scris )?de\b:?|autor:",
    "id": r"oleh\b:?|penulis:",
    "lv": r"autors?:|autore:",
    "ar": r"بقلم\s?:?|كتب\b:?|الكاتب:",
    "zh": r"作者\s?[:：]?|文\s?[/／丨|:：]|记者\s?[:：]?|記者\s?[:：]?",
    "ja": r"著者\s?[:：]?|文\s?[:：=＝]|執筆\s?[:：]?|取材・文\s?[:：]?",
    "ko": r"글\s?[:：·=]?|작성자\s?[:：]?",
}
_SEPARATOR = re.compile(r"\s*(?:[|•·∙‧∣│\n]|\s[-–—/]+\s|—|\s{2,})\s*")
_BETWEEN_NAMES = re.compile(r"\s*,\s*(?:and\s+)?|\s+(?:and|&|und|et|y|og|och|и|與|和)\s+|、|，")
# "Updated", "Last modified", in the languages above.
_MODIFIED = re.compile(
    r"updated?\b|modified|last (?:edited|reviewed|revised|changed)|revised|edited|aktualisiert|"
    r"geändert|\bstand\b|mis(?:e)? à jour|modifié|actualizad|atualizad|modificad|aggiornat|"
    r"bijgewerkt|gewijzigd|uppdaterad|opdateret|oppdatert|päivitetty|aktualizova|zaktualizowan|"
    r"aktualizac|обновл|изменен|оновлен|güncelle|actualizat|diperbarui|atjaunin|تحديث|تعديل|"
    r"更新|修改|수정|업데이트",
    re.IGNORECASE,
)
_PUBLISHED = re.compile(
    r"publish|posted|created|written|veröffentlicht|erstellt|publié|publicad|pubblicat|"
    r"geplaatst|gepubliceerd|publicerad|udgivet|publisert|julkaistu|publikov|opublikowan|"
    r"опубликован|опублікован|yayın|نشر|发布|發布|發佈|发表|公開|投稿|작성|등록|입력",
    re.IGNORECASE,
)
# A date behind these is of what the page tells of.
_OF_SOMETHING_ELSE = re.compile(
    r"\b(?:starts?|begins?|ends?|until|till|deadline|due|when|where|venue|event|expires?|valid|"
    r"joined|member since|born|died|accessed|retrieved|copyright|since|today is|released?|"
    r"version|founded|registered|established|member|beginn|ende|bis|termin|geboren|seit|jusqu|hasta|desde|fino)\b|©|\(c\)",
    re.IGNORECASE,
)
_TIME_OF_DAY = re.compile(
    r"\b(?:at|um|à|a las|alle|ore|kl\.?|om|в)?\s?\d{1,2}[:.h]\d\d(?::\d\d)?"
    r"(?:\s?[ap]\.?m\.?|\s?uhr)?(?:\s?\(?(?:[A-Z]{2,5}|[+-]\d\d:?\d\d)\)?)?",
    re.IGNORECASE,
)
_READING_TIME = re.compile(
    r"\b\d{1,3}\s?-?\s?(?:min(?:ute)?n?s?\.?)(?:\s+(?:read|lesezeit))?", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]+")

# The last words of a class, parted by "-", "_" or capitals, that mark an author or a date.
_AUTHOR_CLASS = re.compile(
    r"(?:^|[- ])(?:bylines?|authors?|author-names?|authors-names?|author-link|author-vcard|"
    r"by-?line-(?:names?|authors?|author-names?|links?)|posted-by|written-by|p-author|writer|"
    r"writer-name|contributor|contributor-name|author-fn)(?= |$)"
)
_DATE_CLASS = re.compile(
    r"(?:^|[- ])(?:(?:date-?)?(updated?|modified)(?:-on|-at|-date)?|dates?|pub-?date|post-date|"
    r"entry-date|publish-date|posted-on|date-?published|published(?:-on|-at|-date)?|dateline|"
    r"timestamp)(?= |$)"
)
_MARKS_LINE = re.compile(
    r"(?:^|[- ])(?:meta|metadata|byline|bylines|dateline|date|dates|time|timestamp|published?|"
    r"posted|publish-date|pub-date|post-info|entry-info|info|author|authors|subtitle|sub-title)"
    r"(?=[- ]|$)"
)
_OTHERS = re.compile(
    r"(?:^|[- ])(?:comments?|commentlist|respond|reply|replies|disqus|related|"
    r"recommend(?:ed|ations?)?|sidebar|popular|trending|latest|recent|suggest(?:ed|ions?)?|"
    r"teasers?|more-(?:from|stories|posts|articles|news)|read-next|up-next|next-post|prev-post|"
    r"promos?|sponsored|advert\w*|widget|newsletter|copyright|bio|testimonials?|reviews?|events?|about-author|footnotes?|"
    r"references?|quote|tweet|embed)(?=[- ]|$)"
)
_THINGS = re.compile(
    r"/(?:Comment|Review|Book|Product|Offer|Movie|Event|Rating|UserComments|ListItem|CreativeWork"
    r"Season|JobPosting|Quotation)\b"
)
# Where links to a person lead: one word of the path, and a name behind it.
_PERSON = re.compile(
    r"^mailto:|/(?:authors?|by|contributors?|journalists?|people|person|profiles?|staff|team|users?|"
    r"autor(?:es|en)?|auteurs?|autori|redakteure?)/[^/?#]+/?(?:[?#].*)?$|/[~@][\w.-]+/?$",
    re.IGNORECASE,
)
_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_+|--+")
_OTHER_TAGS = frozenset(("aside", "nav", "blockquote", "figure", "figcaption", "form"))


_MARKS = ("itemprop", 'rel="author"', "rel='author'", "rel=author", "<time")


def has_marks(source: str) -> bool:
    """Return whether a page may mark its author or date anywhere, as standards have it."""
    return any(mark in source for mark in _MARKS)


def find(
    blocks: Sequence[Block],
    keep: Sequence[bool],
    title: str,
    language: str,
    url: str,
    *,
    marked: bool = True,
) -> Byline:
    """Return the author and the dates that a page shows near its main heading.

    ``marked``: elsewhere, too, they may be marked (``has_marks``).
    """
    number = _heading(blocks, keep, title)
    if number is None:
        return Byline(published=date_in_address(url))
    place = _Place(blocks, number, language)
    near = _merged(place.bylines(_window(blocks, number)))
    if marked and not (near.author and near.published):
        near = _merged((near, place.marked_anywhere()))
    if near.modified and near.modified[:10] < near.published[:10]:
        near = near._replace(published="")  # it is of another post
    return near if near.published else near._replace(published=date_in_address(url))


_IN_ADDRESS = re.compile(r"/((?:19|20)\d\d)[/-]([01]\d)[/-]([0-3]\d)(?=[/_-])")


def date_in_address(url: str) -> str:
    """Return the date that stands in the path of an address, as in /2026/03/04/wall."""
    path = url.partition("://")[2].partition("?")[0]
    match = _IN_ADDRESS.search(path)
    found = dates("-".join(match.groups())) if match and match.start() < 60 else []
    return found[0].iso if found else ""


def author_of(text: str) -> str:
    """Return the names in a value of metadata, "" if it names nobody: a role, an address."""
    text = " ".join(unescape(text).split())
    text = re.sub(rf"^(?:{_BEFORE_NAME['']})\s*", "", text, flags=re.IGNORECASE)
    text = text.strip(" ,;|")[:NAMES_CHARS]
    if not _WORD.search(text) or text.startswith("@") or re.search(r"https?:|\S@\S|www\.", text):
        return ""
    return "" if _is_nobody(text) else text


def _is_nobody(name: str) -> bool:
    folded = name.casefold().strip(" .")
    return folded in _NOBODY or not _ROLES.sub("", folded).strip(" .&0123456789-")


def _heading(blocks: Sequence[Block], keep: Sequence[bool], title: str) -> int | None:
    """Return the number of the main heading: the one that the page's title begins with or holds.

    Without any it is the first block of the content.
    """
    named = _spelled(title)
    best, longest = None, 0
    for number, block in enumerate(blocks[:2_000]):
        if not 1 <= block.level <= 3:
            continue
        words = _spelled(block.words)
        length = len(words) if words.strip() and (words in named or named in words) else 0
        if length > longest:
            best, longest = number, length
    if best is not None:
        return best
    main = (n for n, block in enumerate(blocks) if block.level == 1 and keep[n])
    first = next(main, None)
    return first if first is not None else next((n for n, kept in enumerate(keep) if kept), None)


def _spelled(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _window(blocks: Sequence[Block], heading: int) -> Iterator[int]:
    """Yield the numbers of the blocks near a heading, those behind it first, nearest first.

    A linked heading begins the teaser of another page.
    """
    after = blocks[heading : heading + AFTER_BLOCKS]
    for number, chars in enumerate(accumulate((len(b.words) for b in after[:-1]), initial=0)):
        block = after[number]
        is_teaser = number and block.level and (block.link or block.linked == block.count > 2)
        if chars > AFTER_CHARS or is_teaser:
            break
        yield heading + number
    chars = 0
    for number in range(heading - 1, max(heading - 1 - BEFORE_BLOCKS, -1), -1):
        chars += len(blocks[number].words)
        if chars > BEFORE_CHARS:
            return
        yield number


def _merged(bylines: Iterable[Byline]) -> Byline:
    """Return the first of each."""
    merged = Byline()
    for byline in bylines:
        new = Byline(
            merged.author or byline.author,
            merged.published or byline.published,
            merged.modified or byline.modified,
            merged.lines,
        )
        if new != merged:
            merged = new._replace(lines=(*merged.lines, *byline.lines))
        if merged.author and merged.published:
            break
    return merged


def _article_below(blocks: Sequence[Block]) -> set[Element]:
    """Return the only article below a heading, with what is around it; nothing of several."""
    articles = dict.fromkeys(
        element
        for block in blocks[:ARTICLE_BLOCKS]
        for element in block.parent.nearest(ARTICLE_REACH)
        if element.tag == "article"
    )
    return set(next(iter(articles)).outward()) if len(articles) == 1 else set()


_MARKING = frozenset(("itemprop", "rel"))


def _is_marked(block: Block) -> bool:
    """Return whether an element in or around a block has microdata, or is a link to an author."""
    for element in (*block.parent.nearest(2), *elements_in(block.nodes)):
        attributes = element.attributes
        if element.tag == "time" or (attributes and not _MARKING.isdisjoint(attributes)):
            return True
    return False


class _Place:
    """The surroundings of the main heading of a page."""

    def __init__(self, blocks: Sequence[Block], heading: int, language: str) -> None:
        self._blocks = blocks
        self._heading = heading
        self._language = language
        self._around = set(blocks[heading].parent.outward())
        if all(element.tag != "article" for element in self._around):
            self._around |= _article_below(blocks[heading:])
        self._others: dict[Element, bool] = {}
        before = "|".join((_BEFORE_NAME[""], _BEFORE_NAME.get(language[:2].lower(), r"(?!)")))
        self._before_name = re.compile(rf"(?:{before})\s*", re.IGNORECASE)

    def bylines(self, numbers: Iterable[int]) -> Iterator[Byline]:
        """Yield the byline of each block."""
        for number in numbers:
            block = self._blocks[number]
            if self._may_be_byline(block):
                yield self._marked(block)._replace(lines=(number,))
                if number != self._heading:
                    yield self._in_words(block)._replace(lines=(number,))

    def marked_anywhere(self) -> Byline:
        """Return the author and dates of microdata and ``rel=author`` elsewhere on the page."""
        blocks = [b for b in self._blocks if _is_marked(b) and self._may_be_byline(b)]
        marked = [self._marked(block, surely=True) for block in blocks]
        found = _merged(marked)
        # A link to an author stands in each item of a list.
        if len({byline.author for byline in marked} - {""}) > MOST_AUTHORS and not found.published:
            found = Byline()
        if found.published:
            return found
        # A date that is the only one of its kind on a page is the page's.
        stated = {byline[1:3] for byline in map(self._marked, blocks)}
        only = stated - {("", "")}
        return Byline(found.author, *next(iter(only))) if len(only) == 1 else found

    def _may_be_byline(self, block: Block) -> bool:
        is_line = block.count <= WORDS_OF_LINE and block.kind not in {CODE, TABLE}
        return is_line and not self._is_of_others(block.parent)

    def _is_of_others(self, element: Element) -> bool:
        """Return whether an element belongs to a comment, another page's teaser and the like.

        What is around the heading, too, is the page's own.
        """
        known = self._others.get(element)
        if known is None:
            parent = element.parent
            known = element not in self._around and (
                _is_of_others(element) or (parent is not None and self._is_of_others(parent))
            )
            self._others[element] = known
        return known

    def _marked(self, block: Block, *, surely: bool = False) -> Byline:
        """Return the author and dates that elements in and around a block are marked as.

        ``surely``: by standards alone, not by the names of classes.
        """
        around = [e for e in block.parent.nearest(3) if e not in self._around]
        author, published, modified = "", "", ""
        for element in (*elements_in(block.nodes), *around):
            if not element.attributes and element.tag not in {"time", "address"}:
                continue
            names = element.get("itemprop").split()
            is_author = "author" in names or (
                "author" in element.get("rel").split() and element.tag == "a"
            )
            if not is_author and not surely:
                is_author = _is_contact(element) or bool(_AUTHOR_CLASS.search(_classes(element)))
            if is_author and not author:
                author = self._names_in(element)
            which = _date_kind(element, names, surely=surely)
            if which and (stated := self._stated(element)):
                label = block.words[: max(block.words.find(element.text()), 0)][-LABEL_CHARS:]
                if which == "modified" or _last_is_modified(label):
                    modified = modified or stated
                elif not _OF_SOMETHING_ELSE.search(label):
                    published = published or stated
        return Byline(author, published, modified)

    def _stated(self, element: Element) -> str:
        values = (element.get(name) for name in ("datetime", "content", "title"))
        value = next(filter(None, values), "") or element.text()
        found = moment(value, self._language) or moment(element.text(), self._language)
        return found if found[:4].isdecimal() and int(found[:4]) >= FIRST_YEAR else ""

    def _names_in(self, element: Element) -> str:
        """Return the names in an element that is marked as the author's, "" if it has none."""
        inner = [e for e in element.descendants() if "name" in e.get("itemprop").split()]
        inner = inner or [e for e in element.descendants() if e.tag == "a"]
        names = dict.fromkeys(name for e in inner[:5] if (name := self._name(e.text())))
        return ", ".join(names) or self._names(element.text())

    def _name(self, text: str) -> str:
        """Return a name as it stands in an element of its own; a user's name may be one word."""
        text = self._before_name.sub("", _spaced(text).partition(" | ")[0], 1).strip(" ,;:|")
        return text if _is_name(text) or _is_user_name(text) else ""

    def _names(self, text: str) -> str:
        """Return the names that a text begins with, behind words such as "By"."""
        text = _HANDLE.sub(" | ", _blanked(_spaced(text), dates(text, self._language)))
        for segment in _SEPARATOR.split(text):
            match = self._before_name.match(segment)
            if name := self._listed(segment[match.end() :] if match else segment):
                return name
        only = text.strip()
        return only if _is_user_name(only) else ""

    def _listed(self, text: str) -> str:
        """Return the names of a list such as "Ada North, Ben South and Cy West"."""
        names: list[str] = []
        for part in _BETWEEN_NAMES.split(text.strip(" ,;:"))[:6]:
            name = part.strip(" .,;:()")
            if not _is_name(name) or (names and " " not in name) or _TITLES_OF_OFFICE.search(name):
                break
            names.append(name)
        return ", ".join(names)

    def _in_words(self, block: Block) -> Byline:
        """Return the author and dates in the words of a line: "By Ada North · March 4, 2026"."""
        text = _spaced(block.words)
        found = dates(text, self._language)
        is_marked = any(_marks_line(e) for e in block.parent.nearest(2) if e not in self._around)
        most = REST_OF_MARKED if is_marked else REST_OF_LINE
        author, rest = "", list[str]()
        for segment in _SEPARATOR.split(_blanked(text, found)):
            match = self._before_name.match(segment)
            behind = segment[match.end() :] if match and not block.level else ""
            name = self._listed(behind)
            # Behind a name may stand an office, and no sentence: "By Ada North, who sailed to …".
            is_text = len(_WORD.findall(behind)) - len(_WORD.findall(name)) > most
            # One word may be anything: "By Relevance".
            if name and not is_text and (" " in name or not name.isascii() or is_marked or found):
                author = author or name
            else:
                rest.append(segment)
        if not author and found and not block.level:
            author = self._before_date(text[: found[0].start])
        beside = " ".join(rest).replace(author, " ", 1) if author else " ".join(rest)
        unsaid = len(_WORD.findall(_READING_TIME.sub(" ", _TIME_OF_DAY.sub(" ", beside))))
        is_sentence = text.rstrip().endswith(".") and not author and not is_marked
        if unsaid > most or (is_sentence and unsaid >= LEAST_OF_SENTENCE):
            found = []
        published, modified, end = "", "", 0
        for date in found:
            label = text[end : date.start][-LABEL_CHARS:]
            end = date.end
            if _last_is_modified(label):
                modified = modified or date.iso
            elif not _OF_SOMETHING_ELSE.search(label):
                published = published or date.iso
        return Byline(author, published, modified)

    def _before_date(self, text: str) -> str:
        """Return the name in "Ada North on", which stands before a date and nothing else."""
        match = re.fullmatch(r"(?:.*[|•·]\s*)?([^|•·]{2,60}?)\s+(?:on|am|le|op|den)\s*", text)
        return self._name(match[1]) if match else ""


_GLUED = re.compile(
    r"(?<=^By)(?=[A-Z])|(?<=[a-z])(?=(?:Published|Updated|Posted|Written|Full Bio)\b)"
)


def _spaced(text: str) -> str:
    """Return a text with separators where a style sets words apart."""
    return _GLUED.sub(lambda match: " " if match.start() == 2 else " | ", text)


def _last_is_modified(label: str) -> bool:
    """Return whether the last word before a date that says something of it is "updated"."""
    modified = max((match.end() for match in _MODIFIED.finditer(label)), default=-1)
    published = max((match.end() for match in _PUBLISHED.finditer(label)), default=-1)
    return modified > published


def _blanked(text: str, found: Iterable[Found]) -> str:
    """Return a text with a separator in place of each date and time."""
    for date in sorted(found, key=lambda date: -date.start):
        text = f"{text[: date.start]} | {text[date.end :]}"
    return _READING_TIME.sub(" | ", _TIME_OF_DAY.sub(" | ", text))


def _is_name(text: str) -> bool:
    """Return whether a text is written as the name of a person or an organisation."""
    words = text.split()
    if not 0 < len(text) <= NAME_CHARS or len(words) > NAME_WORDS or any(map(str.isdigit, text)):
        return False
    if not _WORD.search(text) or _NO_NAME.search(text) or _is_nobody(text):
        return False
    letters = [word.lstrip("'’\"(“")[:1] for word in words]
    if not any(letter.isupper() or letter.islower() for letter in letters):
        return len(text) <= 20 and not re.search(r"[。！？：:!?]", text)
    return letters[0].isupper() and all(
        letter.isupper() or word in _PARTICLES or not letter.islower()
        for letter, word in zip(letters, words, strict=True)
    )


_HANDLE = re.compile(r"\s@\w+")
_USER_NAME = re.compile(r"[^\W\d_][\w.-]{2,29}")


def _is_user_name(text: str) -> bool:
    is_one = _USER_NAME.fullmatch(text) is not None
    return is_one and not _is_nobody(text) and not _NO_NAME.search(text)


def _date_kind(element: Element, names: list[str], *, surely: bool) -> str:
    """Return "published" or "modified" for an element that states a date, "" for any other."""
    if "dateModified" in names:
        return "modified"
    if not {"datePublished", "dateCreated", "uploadDate"}.isdisjoint(names):
        return "published"
    if surely:
        return "published" if "pubdate" in element.attributes else ""
    classes = _classes(element)
    if element.tag == "time" or "datetime" in element.attributes or element.tag == "abbr":
        if element.tag == "abbr" and "publish" not in classes and "updated" not in classes:
            return ""
        is_modified = re.search(r"updated?|modified", classes) and "publish" not in classes
        return "modified" if is_modified and "entry-date" not in classes else "published"
    if match := _DATE_CLASS.search(classes):
        return "modified" if match[1] else "published"
    return ""


def _is_contact(element: Element) -> bool:
    """Return whether this is who to write to about a page (HTML, 4.3.10), and not a place.

    It has a link to a person: without one, "Town Hall" may be where the concert is.
    """
    return element.tag == "address" and any(
        inner.tag == "a" and _PERSON.search(inner.get("href")) for inner in element.descendants()
    )


def _classes(element: Element) -> str:
    """Return the classes of an element and its id, their words parted by "-", in lower case."""
    attributes = element.attributes
    if "class" not in attributes and "id" not in attributes:
        return ""
    return _parted(f"{element.get('class')} {element.get('id')}"[:500])


@lru_cache(10_000)
def _parted(names: str) -> str:
    return _CAPITALS.sub("-", names).lower()


def _marks_line(element: Element) -> bool:
    return bool(_MARKS_LINE.search(_classes(element)))


def _is_of_others(element: Element) -> bool:
    if element.tag in _OTHER_TAGS or element.tag == "article":
        return True
    if not element.attributes:
        return False
    if element.get("itemprop") in {"comment", "review"} or _THINGS.search(element.get("itemtype")):
        return True
    if element.tag == "a" and len(element.text().split()) > CARD_WORDS:
        return True
    return bool(_OTHERS.search(_classes(element)))
