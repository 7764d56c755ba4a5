"""Read a page: its content, all of it, its listings; and the verdict on a page without content."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from fetchstash.handlers import _leads
from fetchstash.handlers._charset import decode
from fetchstash.handlers._contract import Part
from fetchstash.handlers._data._json_values import on_lines
from fetchstash.handlers._html import (
    PageReason,
    _blocks,
    _byline,
    _content,
    _drawn,
    _element,
    _media,
    _metadata,
    _repairs,
    _scripts,
    _tree,
)
from fetchstash.handlers._html._blocks import HEADING, TABLE, Block, size_of
from fetchstash.handlers._html._inline import Inline
from fetchstash.handlers._html._tree import Page
from fetchstash.handlers._leads import NEXT_TO_NOTHING
from fetchstash.text import walls

MOST_CHARS = 3_000  # of content; a page that has more is what it seems to be
FEW_CHARS = 1_500  # of content; a page that has more is no wall
NOT_FOUND_CHARS = 800

_WAITING = re.compile(
    r"(?:(?:now |still )?loading(?: (?:content|data|page|app|application))?|please wait|"
    r"one moment,?(?: please)?|(?:inhalt )?wird geladen|bitte warten|chargement(?: en cours)?|"
    r"cargando|carregando|caricamento|laden|ładowanie|загрузка|yükleniyor|加载中|載入中|"
    r"読み込み中|로딩 ?중)[\s.\u2026!。]*",
    re.IGNORECASE,
)
"""What a page says in place of its text until its scripts have fetched it."""
_NEEDS_SCRIPTS = re.compile(
    r"(?:enable|requires?|without|activate|turn on|need)[^.]{0,60}javascript|"
    r"javascript[^.]{0,60}(?:required|enabled|disabled)",
    re.IGNORECASE,
)
_NOT_FREE = re.compile(r"\"isAccessibleForFree\"\s*:\s*\"?false", re.IGNORECASE)
_NOT_FOUND = re.compile(
    r"\b(?:(?:page|file|article|document|product|site|url|content|resource)s?(?: you[^.]{0,40})? "
    r"(?:was |were |is |are |has |have |could |can)?(?:been )?"
    r"(?:not (?:be )?(?:found|available)|n[o']t (?:be )?found|no longer (?:available|exists?)|"
    r"removed|"
    r"does(?:n.t| not) exist)|not found|404|seite nicht gefunden|page (?:introuvable|non trouvée)|"
    r"página (?:no|não) encontrada|pagina non trovata|pagina niet gevonden|"
    r"страница не найдена|nie znaleziono strony)\b|"
    r"页面(?:不存在|未找到)|找不到.{0,6}页面|ページ(?:が|は)見つかりません|페이지를 찾을 수 없",
    re.IGNORECASE,
)


def verdict_of(content: str, whole: str, page: Page, source: str = "") -> str:
    """Return a key of PAGE_VERDICTS for a page without content, "" for one with content.

    ``content`` is the text that was chosen, ``whole`` all text of the page. ``source`` may have
    the marks of a wall.
    """
    if len(content) > MOST_CHARS:
        return ""
    if any(_NOT_FREE.search(data) for data in page.json_ld):
        return "paywall"
    if len(content) > FEW_CHARS:
        return ""
    if len(walls.words("paywall").findall(whole)) > 1:
        return "paywall"
    few = len(content) <= NEXT_TO_NOTHING
    if len(whole) < FEW_CHARS:
        if walls.words("human_check").search(whole):
            return "human_check"
        if few and (wall := walls.of_page(source)):
            return wall.name
    around = whole if few else content
    if len(walls.words("consent_wall").findall(around)) > 1 and len(whole) < 2 * FEW_CHARS:
        return "consent_wall"
    login = f"{page.title} {around}" if few else around
    if (
        page.asks_password
        and walls.words("login").search(login)
        and (few or len(whole) <= FEW_CHARS)
    ):
        return "login"
    if len(content) <= NOT_FOUND_CHARS and any(map(_NOT_FOUND.search, (page.title, content[:100]))):
        return "soft_404"
    if few and leads_to(page):
        return "leads_on"
    is_waiting = _WAITING.fullmatch(content)
    is_shell = len(whole) <= NEXT_TO_NOTHING or is_waiting or _NEEDS_SCRIPTS.search(whole)
    if few and page.scripts and is_shell:
        return "empty_shell"
    return "" if whole else "no_text"


MENU_SHARE, SENTENCE_WORDS = 0.9, 8
"""The share of a menu's words that are links, and the words of a text that is none."""
_MOUNTS = frozenset(("root", "app", "__next", "__nuxt", "main", "content", "app-root", "svelte"))


def _is_menu(content: list[Block], page: Page) -> bool:
    """Return whether the menus of a page are all that it has, and scripts add the rest.

    It has an empty element for them, or no text outside of its chrome.
    """
    words = sum(block.count for block in content)
    if not page.scripts or sum(block.linked for block in content) < MENU_SHARE * max(words, 1):
        return False
    if any(block.count - block.linked >= SENTENCE_WORDS for block in content):
        return False
    empty = (e for e in page.body.subtree() if e.get("id").lower() in _MOUNTS and not e.children)
    where = _repairs.places(content)
    return next(empty, None) is not None or all(place.fixed for place in where)


def next_page(page: Page) -> str:
    """Return the address of the next page of a list or a series (HTML, section 4.6.7), or ""."""
    links = (link for link in page.links if "next" in link.get("rel", "").lower().split())
    return next((link.get("href", "") for link in links), "")


def leads_to(page: Page, verdict: str = "leads_on") -> str:
    """Return the address that a page sends a browser to, "" if none.

    A page that has text sends none to what it frames, scripts or says where no scripts run.
    """
    if verdict != "leads_on":
        return _leads.leads_to(page.meta, [], [])
    scripts = [text for _, text in page.script_texts]
    return _leads.leads_to([*page.meta, *page.meta_without], page.frames, scripts)


MAX_SOURCE_BYTES = 4 * _element.MAX_SOURCE_CHARS
READING_FEW_CHARS = 600  # of content; only a page that shows no more may hold its text in data
MIN_DATA_CHARS, MIN_TIMES = 500, 4
"""Characters of a text in data, and how many times what the page shows; less is no text."""
LINKED_DATA = "JSON-LD"
_SHELLS = frozenset(("", "empty_shell", "no_text"))


@dataclass(frozen=True, slots=True)
class Reading:
    """A page and its content.

    ``blocks`` are those that the page shows, ``keep`` says which of them are its content.
    ``content`` are the same, or what was drawn of the data called ``data`` if the page shows
    nothing by itself; ``verdict`` is a key of PAGE_VERDICTS or "". ``playing`` is a line on a film
    or sound that scripts insert.
    """

    page: _tree.Page
    metadata: _metadata.Metadata
    blocks: list[Block]
    keep: list[bool]
    content: list[Block]
    verdict: str
    data: str
    playing: str
    base: str
    spare: int

    def inline(self) -> Inline:
        """Return a writer of links that are resolved against the page's address."""
        return Inline(self.base, self.spare)


def load(source: Path, charset: str) -> tuple[str, bool]:
    """Return the source of a page, safe to parse, and whether its end is missing."""
    with source.open("rb") as file:
        raw = file.read(MAX_SOURCE_BYTES)
        more = bool(file.read(1))
    checked, cut = _element.check(decode(raw, charset))
    return checked, cut or more


def read(source: str, url: str) -> Reading:
    """Read the source of a page that has passed the safety scan."""
    page = _tree.parse(source)
    metadata = _metadata.metadata(page)
    blocks = _blocks.cut(page)
    keep = _content.content(blocks, metadata.kind, page.title)
    if not (metadata.author and metadata.published):
        marked = _byline.has_marks(source)
        byline = _byline.find(blocks, keep, metadata.title, metadata.language, url, marked=marked)
        metadata = metadata.completed(byline.author, byline.published, byline.modified)
        for number in byline.lines if any(keep) else ():
            keep[number] = True  # it is read with the text
    content = list(compress(blocks, keep))
    verdict = verdict_of(_words(content), _words(blocks), page, source)
    if verdict in {"", "empty_shell"} and content and _is_menu(content, page):
        verdict, content, keep = "empty_shell", [], [False] * len(blocks)
    data_name = ""
    shown = size_of(content)
    if (page.script_texts or page.json_ld) and verdict in _SHELLS and shown <= READING_FEW_CHARS:
        # A page that shows some text shows what its unknown data are for.
        name, drawn = _from_data(page, metadata.title, assigned=shown <= NEXT_TO_NOTHING)
        if size_of(drawn) >= max(MIN_DATA_CHARS, MIN_TIMES * shown):
            data_name, content, verdict, keep = name, drawn, "", [False] * len(blocks)
    playing = _media.describe(page.media, metadata.linked_data)
    base = url or metadata.canonical
    if page.base:  # HTML Standard, 4.2.3
        with suppress(ValueError):
            base = url
            base = urljoin(url, page.base)
    spare = len(source) // 2
    return Reading(page, metadata, blocks, keep, content, verdict, data_name, playing, base, spare)


def embedded(page: _tree.Page, *, assigned: bool = True) -> list[tuple[str, Any]]:
    """Return the data that a page brings along, with their names; see ``_scripts.values``."""
    linked = [({"type": "application/ld+json", "id": LINKED_DATA}, t) for t in page.json_ld]
    return list(_scripts.values([*page.script_texts, *linked], assigned=assigned))


def _from_data(page: _tree.Page, title: str, *, assigned: bool) -> tuple[str, list[Block]]:
    """Return the name and the blocks of those data of a page that hold the most text."""
    best_name, best = "", list[Block]()
    for name, value in embedded(page, assigned=assigned):
        if _drawn.no_text(name):
            continue
        blocks = _blocks.texts(_blocks.cut(_tree.Page(_drawn.drawn(value))))
        if size_of(blocks) > size_of(best):
            best_name, best = name, blocks
    if best and title and all(block.level != 1 for block in best):
        best.insert(0, Block(HEADING, [title], page.body, (), title, level=1))
    return best_name, best


def _words(blocks: list[Block]) -> str:
    """Return the first texts of blocks, enough to recognise a page without content."""
    return " ".join(block.words for block in blocks)[: 4 * MOST_CHARS]


LEAST_SPARE = 2_000
"""Characters that absolute addresses may add to a short piece."""


@dataclass(frozen=True, slots=True)
class Whole:
    """The Markdown of a piece of HTML.

    ``title`` is "" if there is none; ``hidden`` counts the hidden elements that were removed.
    """

    parts: tuple[Part, ...]
    title: str
    hidden: int


def whole(source: str, url: str = "") -> Whole:
    """Return ``source`` as Markdown without hidden text.

    Relative links are resolved against ``url``, and stay as they are without one.
    """
    checked, _ = _element.check(source)
    page = _tree.parse(checked)
    spare = max(len(checked) // 2, LEAST_SPARE)
    parts = _blocks.parts(_blocks.cut(page), Inline(url, spare))
    return Whole(tuple(parts), _metadata.metadata(page).title, page.hidden)


_HEADS_OF = frozenset(("empty_shell", "no_text", "login", "consent_wall"))
"""Verdicts of pages whose head says more than they show."""


def head(reading: Reading) -> str:
    """Return what the head of a page without text says of it, as Markdown; "" if that is little.

    What the few words of the page say themselves is not said twice.
    """
    meta, inline = reading.metadata, reading.inline()
    picture, canonical = inline.absolute(meta.picture), inline.absolute(meta.canonical)
    if reading.verdict not in _HEADS_OF or not (meta.description or picture):
        return ""
    facts = {
        "Site": meta.site,
        "Author": meta.author,
        "Published": meta.published,
        "Address": canonical,
        "Picture": picture and f"![]({inline.destination(meta.picture)})",
    }
    listed = "\n".join(f"- {name}: {value}" for name, value in facts.items() if value)
    shown = {block.words for block in reading.content}
    title = f"# {meta.title}" if meta.title and shown.isdisjoint({meta.title}) else ""
    said = meta.description if meta.description not in shown else ""
    return "\n\n".join(filter(None, (title, said, listed))) + "\n"


def filled(reading: Reading) -> tuple[str, ...]:
    """Return those paths of a page that hold something; data are looked for if it has no text."""
    inline = reading.inline()
    found = {
        "page": not all(reading.keep),  # else it repeats the text
        "left_out": not all(reading.keep),
        "links": any(link for block in reading.blocks for link in _links(block, inline)),
        "tables": any(block.kind == TABLE for block in reading.blocks),
        "images": any(map(_media.is_medium, reading.page.media)),
        "data": reading.verdict and data(reading),
    }
    return tuple(name for name, is_filled in found.items() if is_filled)


PICTURE = "images/"  # begins the path of one picture, by its number in the listing


def links(reading: Reading) -> str:
    """Return each link of a page once."""
    inline = reading.inline()
    found = dict.fromkeys(link for block in reading.blocks for link in _links(block, inline))
    return "".join(f"- {link}\n" for link in found)


def _links(block: Block, inline: Inline) -> Iterator[str]:
    if block.link:
        yield inline.link(block.words, block.link)
    for element in _element.elements_in(block.nodes):
        if element.tag == "a" and (address := inline.absolute(element.get("href"))):
            yield f"[{element.text()}]({address})"


def data(reading: Reading) -> str:
    """Return the data that a page brings along for its scripts, as JSON under their names.

    A value of more levels than Python writes is left out.
    """
    texts: list[str] = []
    for name, value in embedded(reading.page):
        with suppress(RecursionError):
            texts.append(f"[{name}]\n{on_lines(value).rstrip()}\n")
    return "\n".join(texts)


def images(reading: Reading, path: str) -> str:
    """Return a numbered line for each picture, film and sound, or only for the one of a number."""
    lines = [line for line, _ in _listed(reading)]
    if path.startswith(PICTURE):
        lines = [lines[_number(len(lines), path) - 1]]
    return "".join(f"{line}\n" for line in lines)


def address(reading: Reading, path: str) -> str:
    """Return the address of the picture of a number; that of a film is its poster's."""
    listed = _listed(reading)
    picture = listed[_number(len(listed), path) - 1][1]
    if not picture.startswith(("http://", "https://")):
        raise PageReason.PAGE_PICTURE_HELD.error()
    return picture


def _listed(reading: Reading) -> list[tuple[str, str]]:
    """Return the line of each medium, with the address of its picture."""
    inline = reading.inline()
    listed: dict[str, tuple[str, str]] = {}
    for element in filter(_media.is_medium, reading.page.media):
        label, source = _media.labelled(element)
        if source not in listed and len(listed) < _media.MAX_LISTED:
            mark = "!" if element.tag == "img" else ""
            line = f"{len(listed) + 1}. {mark}[{label}]({inline.destination(source)})"
            still = source if element.tag == "img" else element.get("poster")
            listed[source] = line, inline.absolute(still)
    return list(listed.values())


def _number(count: int, path: str) -> int:
    number = path.removeprefix(PICTURE)
    if number.isdecimal() and len(number) < 6 and 1 <= int(number) <= count:
        return int(number)
    raise PageReason.PAGE_PICTURES.error(count=count)
