"""Read HTML pages as Markdown of their content."""

from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import Path
from urllib.parse import urljoin

from fetchstash.facts import DocumentFacts
from fetchstash.handlers._charset import decode
from fetchstash.handlers._contract import (
    Extracted,
    ExtractLimits,
    Hints,
    Part,
    PartRequest,
    PartText,
)
from fetchstash.handlers._html import (
    _blocks,
    _content,
    _markdown,
    _media,
    _metadata,
    _regions,
    _safety,
    _tree,
    _verdict,
)
from fetchstash.handlers._html._element import Element
from fetchstash.handlers._html._features import linked_words
from fetchstash.handlers._html._inline import Inline
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._shared._part_text import part_text
from fetchstash.ranges import Preview

MAX_SOURCE_BYTES = 4 * _safety.MAX_SOURCE_CHARS
MIN_LEADING_LINKS = 5
"""Blocks that are links; a preview does not begin with as many."""
RUNNING_WORDS = 12
PREVIEW_BLOCKS, PREVIEW_CHARS = 60, 4_000
PATHS = frozenset(("page", "left_out", "links", "tables", "images"))
PICTURE = "images/"
"""Begins the path of one picture, by its number in the listing."""


class HtmlHandler:
    """Reads HTML and XHTML pages."""

    name = "html"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return the content of a page as Markdown; its headings become the outline."""
        checked = _read(source, hints.charset)
        if "<" not in checked.source:  # plain text labelled HTML: keep its lines
            plain = Extracted(None, DocumentFacts(extraction_truncated=checked.cut))
            text = Part(checked.source.rstrip("\n") + "\n")
            plain.parts = _bounded(iter([text]), limits.max_chars, plain)
            return plain
        page = _tree.parse(checked.source)
        metadata = _metadata.read(page)
        blocks = _blocks.cut(page)
        playing = _media.describe(page.media, metadata.linked_data)
        keep = _content.content(blocks)
        content = list(compress(blocks, keep))
        left_out_chars, left_out = _regions.left_out(blocks, keep)
        extracted = Extracted(
            None,
            DocumentFacts(
                title=metadata.title,
                language=metadata.language,
                author=metadata.author,
                published=metadata.published,
                structure_info=_facts(metadata, playing),
                extraction_truncated=checked.cut,
                hidden_removed=page.hidden,
                left_out_chars=left_out_chars,
                left_out=left_out,
            ),
        )
        inline = Inline(_base(hints.url, page, metadata), len(checked.source) // 2)
        verdict = _verdict.verdict(_words(content), _words(blocks), page)
        address = inline.absolute(_verdict.leads_to(page)) if verdict == "leads_on" else ""
        if verdict == "leads_on" and not address.startswith(("http://", "https://")):
            verdict, address = "no_text", ""
        extracted.learn(page_verdict=verdict, leads_to=address)
        if not blocks:
            tags = Reason.PAGE_TAGS.cause(limit=_safety.MAX_TAGS)
            extracted.fail(tags if checked.cut else Reason.PAGE_WITHOUT_TEXT.cause())
        extracted.preview = _preview(content, inline)
        extracted.parts = _bounded(_markdown.parts(content, inline), limits.max_chars, extracted)
        return extracted

    def part(self, request: PartRequest) -> PartText:
        """Return a part of the whole page, navigation and all.

        The path is "page", "left_out" (what is not in the text), "links", "tables", "images" or the
        fragment of a URL with its "#". Raises OutOfRange for any other path. The picture "images/2"
        is the text of its address: the page does not hold it.
        """
        if request.render == "image" and not request.path.startswith(PICTURE):
            raise Reason.PAGE_NO_PICTURE.error()
        if request.path not in PATHS and not request.path.startswith(("#", PICTURE)):
            raise Reason.PAGE_NO_PART.error()
        checked = _read(request.source, request.hints.charset)
        page = _tree.parse(checked.source)
        blocks = _blocks.cut(page)
        base = _base(request.hints.url, page, _metadata.read(page))
        inline = Inline(base, len(checked.source) // 2)
        if request.path == "links":
            links = dict.fromkeys(link for block in blocks for link in _links(block, inline))
            text = "".join(f"- {link}\n" for link in links)
        elif request.path.startswith("images"):
            _media.describe(page.media, _metadata.read(page).linked_data)
            listed = _listed(page.media, inline)
            if request.render == "image":
                return PartText(_address(listed, request.path), 1)
            lines = [line for line, _ in listed]
            if request.path.startswith(PICTURE):
                lines = [lines[_number(listed, request.path) - 1]]
            text = "".join(f"{line}\n" for line in lines)
        else:
            chosen = _chosen(request.path, page, blocks)
            text = "".join(piece.text for piece in _markdown.parts(chosen, inline))
        return part_text(text[: request.limits.max_chars], request)


def _chosen(path: str, page: _tree.Page, blocks: list[_blocks.Block]) -> Sequence[_blocks.Block]:
    """Return the blocks that a path names. Raises OutOfRange for a fragment that names nothing."""
    if path == "page":
        return blocks
    if path == "tables":
        return [block for block in blocks if block.kind == _blocks.TABLE]
    keep = _content.content(blocks)
    if path == "left_out":
        return list(compress(blocks, (not kept for kept in keep)))
    numbers = _regions.section(blocks, page.body, path[1:])
    if numbers is None:
        raise Reason.PAGE_NO_SECTION.error()
    return [blocks[n] for n in numbers if keep[n]] or [blocks[n] for n in numbers]


def _preview(content: list[_blocks.Block], inline: Inline) -> Preview:
    """Return a preview that leaves out a list of links at the beginning; empty if there is none."""
    start = next((n for n, block in enumerate(content) if _is_running(block)), 0)
    links = sum(_is_link(block) for block in content[:start])
    if links < MIN_LEADING_LINKS:
        return Preview()
    while start and content[start - 1].kind == _blocks.HEADING:
        start -= 1
    titles = [block for block in content[:start] if block.level == 1][:1]
    text = ""
    for piece in _markdown.parts([*titles, *content[start : start + PREVIEW_BLOCKS]], inline):
        text += piece.text
        if len(text) > PREVIEW_CHARS:
            break
    text = text[:PREVIEW_CHARS]
    return Preview(text, lines_shown=text.count("\n"))


def _is_running(block: _blocks.Block) -> bool:
    words = len(block.words.split())
    return words >= RUNNING_WORDS and not block.link and linked_words(block.nodes) * 2 < words


def _is_link(block: _blocks.Block) -> bool:
    words = len(block.words.split())
    return bool(words) and (bool(block.link) or linked_words(block.nodes) * 5 >= words * 4)


def _read(source: Path, charset: str) -> _safety.Checked:
    with source.open("rb") as file:
        raw = file.read(MAX_SOURCE_BYTES)
        more = bool(file.read(1))
    checked = _safety.check(decode(raw, charset))
    return _safety.Checked(checked.source, checked.cut or more)


def _bounded(parts: Iterator[Part], max_chars: int, extracted: Extracted) -> Iterator[Part]:
    """Yield the parts up to ``max_chars``; the last is cut there."""
    for part in parts:
        if len(part.text) > max_chars:
            extracted.learn(extraction_truncated=True)
            text = part.text[:max_chars]
            lines = text.count("\n") + 1
            yield Part(text, headings=tuple(h for h in part.headings if h.start <= lines))
            return
        max_chars -= len(part.text)
        yield part


def _links(block: _blocks.Block, inline: Inline) -> Iterator[str]:
    if block.link:
        yield inline.link(block.words, block.link)
    for node in block.nodes:
        for element in () if isinstance(node, str) else (node, *node.descendants()):
            if element.tag == "a" and (
                address := inline.absolute(element.attributes.get("href", ""))
            ):
                yield f"[{element.text()}]({address})"


def _listed(media: list[Element], inline: Inline) -> list[tuple[str, str]]:
    """Return a numbered line for each picture, film and sound, with the address of its picture."""
    listed: dict[str, tuple[str, str]] = {}
    for element in filter(_media.is_medium, media):
        label, source = _media.labelled(element)
        if source not in listed and len(listed) < _media.MAX_LISTED:
            mark = "!" if element.tag == "img" else ""
            line = f"{len(listed) + 1}. {mark}[{label}]({inline.destination(source)})"
            listed[source] = line, inline.absolute(_media.still(element))
    return list(listed.values())


def _number(listed: list[tuple[str, str]], path: str) -> int:
    number = path.removeprefix(PICTURE)
    if number.isdecimal() and len(number) < 6 and 1 <= int(number) <= len(listed):
        return int(number)
    raise Reason.PAGE_PICTURES.error(count=len(listed))


def _address(listed: list[tuple[str, str]], path: str) -> str:
    """Return the address of a picture of the page."""
    address = listed[_number(listed, path) - 1][1]
    if not address.startswith(("http://", "https://")):
        raise Reason.PAGE_PICTURE_HELD.error()
    return address


def _words(blocks: list[_blocks.Block]) -> str:
    """Return the first texts of blocks, enough to recognise a page without content."""
    texts: list[str] = []
    size = 0
    for block in blocks:
        texts.append(block.words)
        size += len(block.words)
        if size > 4 * _verdict.MOST_CHARS:
            break
    return " ".join(texts)


def _facts(metadata: _metadata.Metadata, playing: str) -> str:
    facts = (("site", metadata.site), ("canonical", metadata.canonical))
    named = [f"{name}: {value}" for name, value in facts if value]
    return " · ".join([*named, playing] if playing else named)


def _base(url: str, page: _tree.Page, metadata: _metadata.Metadata) -> str:
    """Return the page's base address (HTML Standard, 4.2.3)."""
    try:
        return urljoin(url, page.base) if page.base else url or metadata.canonical
    except ValueError:
        return url
