"""Read HTML pages as Markdown of their content."""

import re
from collections.abc import Iterable
from itertools import chain, compress
from operator import not_
from pathlib import Path

from fetchstash.handlers import _leads
from fetchstash.handlers._contract import (
    MAX_LEFT_OUT,
    Extracted,
    Hints,
    Part,
    PartRequest,
    PartText,
)
from fetchstash.handlers._html import PageReason, _blocks, _content, _element, _reading
from fetchstash.handlers._html._inline import Inline
from fetchstash.handlers._html._reading import PICTURE, Reading
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._parts import part_text
from fetchstash.text.facts import DocumentFacts
from fetchstash.text.ranges import Heading, Preview

MIN_LEADING_LINKS = 2  # a preview does not begin with as many links in blocks of nothing else
MOST_WORDS_BETWEEN = 3  # of a block among such links: the name of the page itself, a label
TITLE_REACH = 400  # the title is searched in this many blocks
MOST_WORDS_ABOVE = 80  # of running text above the title: a notice. More is text of the page
_NOTICE = re.compile(
    r"\bsurvey\b|\bwe use cookies|\b(?:uses?|using|accept) cookies\b|"
    r"\byou(?:'re|\u2019re| are) (?:viewing|reading|browsing|looking at)\b|"
    r"\b(?:this|these) (?:page|doc\w*|manual)?\s?(?:is|are) for [^.]{0,40}\b(?:version|release)|"
    r"\b(?:newer|outdated|development) version of (?:this|the) |"
    r"\bno longer (?:actively )?(?:maintained|supported)\b",
    re.IGNORECASE,
)
RUNNING_WORDS = 12
UNVEILED = "[The page hides this text until a script of it shows it.]\n\n"
PREVIEW_BLOCKS, PREVIEW_CHARS = 60, 4_000
_WORD = re.compile(r"\w+")
PATHS = frozenset(("page", "left_out", "links", "tables", "images", "data"))


class HtmlHandler:
    """Reads HTML and XHTML pages."""

    name = "html"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return the content of a page as Markdown; its headings become the outline."""
        del limits  # the text is cut behind the handler
        text, cut = _reading.load(source, hints.charset)
        if "<" not in text and text.strip():  # plain text labelled HTML: keep its lines
            plain = Part(text.rstrip("\n") + "\n")
            return Extracted([plain], DocumentFacts(extraction_truncated=cut))
        reading = _reading.read(text, hints.url)
        page, metadata, verdict = reading.page, reading.metadata, reading.verdict
        left_out_chars, left_out = _content.left_out(reading.blocks, reading.keep)
        inline = reading.inline()
        lead = _leads.absolute(reading.base, _reading.leads_to(page, verdict))
        verdict = "no_text" if verdict == "leads_on" and not lead else verdict
        address = lead if verdict == "leads_on" else ""
        if verdict == "empty_shell":
            address = _leads.alternate(page.links, reading.base, hints.url)
            if data := _reading.data(reading):
                left_out_chars += len(data)
                left_out = ", ".join(filter(None, (f"data {len(data):,}", left_out)))
        extracted = Extracted(
            None,
            DocumentFacts(
                title=metadata.title,
                language=metadata.language,
                author=metadata.author,
                published=metadata.published,
                modified=metadata.modified,
                site=metadata.site,
                structure_info=_facts(reading),
                page_verdict=verdict,
                leads_to=address,
                next_url=inline.absolute(_reading.next_page(page)),
                extraction_truncated=cut,
                hidden_removed=page.hidden,
                left_out_chars=left_out_chars,
                left_out=left_out,
                filled_paths=_reading.filled(reading),
            ),
        )
        extracted.left_out = _searched(reading) if left_out_chars <= MAX_LEFT_OUT else ""
        if not reading.content:
            tags = PageReason.PAGE_TAGS.cause(limit=_element.MAX_TAGS)
            extracted.fail(tags if cut else PageReason.PAGE_WITHOUT_TEXT.cause())
        extracted.preview = _preview(reading.content, metadata.title, reading.inline())
        parts = _blocks.parts(reading.content, inline)
        if reading.content and lead and lead.partition("#")[0] != hints.url.partition("#")[0]:
            parts = chain([Part(f"[The page leads on to another]({lead})\n\n")], parts)
            extracted.preview = Preview()
        if reading.content and page.is_unveiled:
            parts = chain([Part(UNVEILED)], parts)
            extracted.preview = Preview()
        if head := _reading.head(reading):
            title = Heading(metadata.title, 1, "lines", 1)
            head += "\n" if reading.content else ""
            parts = chain([Part(head, headings=(title,) if metadata.title else ())], parts)
            extracted.preview = Preview()
        extracted.parts = parts
        return extracted

    def part(self, request: PartRequest) -> PartText:
        """Return a part of the whole page, navigation and all.

        The path is "page", "left_out" (what is not in the text), "links", "tables", "images",
        "data" (what the page brings along for its scripts) or the fragment of a URL with its "#".
        Raises OutOfRange for any other path. The picture "images/2" is the text of its address:
        the page does not hold it.
        """
        path = request.path
        if request.render == "image" and not path.startswith(PICTURE):
            raise PageReason.PAGE_NO_PICTURE.error()
        if path not in PATHS and not path.startswith(("#", PICTURE)):
            raise PageReason.PAGE_NO_PART.error()
        text, _ = _reading.load(request.source, request.hints.charset)
        reading = _reading.read(text, request.hints.url)
        if request.render == "image":
            return PartText(_reading.address(reading, path), 1)
        if path == "links":
            text = _reading.links(reading)
        elif path == "data":
            text = _reading.data(reading)
        elif path == "images" or path.startswith(PICTURE):
            text = _reading.images(reading, path)
        else:
            parts = _blocks.parts(_chosen(path, reading), reading.inline())
            text = "".join(part.text for part in parts)
        return part_text(text[: request.limits.max_chars], request)


def _searched(reading: Reading) -> str:
    """Return what is not in the text, to be searched: the words and the addresses of each block.

    Few pages are searched for it: as Markdown, it took a twentieth of each page's time. Tables and
    code have the lines that the path "left_out" shows.
    """
    lines: list[str] = []
    inline = reading.inline()
    for block in _chosen("left_out", reading):
        if block.kind in {_blocks.PARAGRAPH, _blocks.HEADING}:
            elements = _element.elements_in(block.nodes)
            links = [element.get("href") for element in elements if element.tag == "a"]
            addresses = map(inline.absolute, (block.link, *links))
            lines.append(" ".join(filter(None, (block.words, *addresses))))
        else:
            lines += (part.text.rstrip("\n") for part in _blocks.parts([block], inline))
    return "".join(f"{line}\n" for line in lines)


def _chosen(path: str, reading: Reading) -> Iterable[_blocks.Block]:
    """Return the blocks that a path names. Raises OutOfRange for a fragment that names nothing."""
    blocks, keep = reading.blocks, reading.keep
    if path == "page":
        return blocks
    if path == "left_out":
        return compress(blocks, map(not_, keep))
    if path == "tables":
        return (block for block in blocks if block.kind == _blocks.TABLE)
    numbers = _content.section(blocks, reading.page.body, path[1:])
    if numbers is None:
        raise PageReason.PAGE_NO_SECTION.error()
    return [blocks[n] for n in numbers if keep[n]] or [blocks[n] for n in numbers]


def _preview(content: list[_blocks.Block], page_title: str, inline: Inline) -> Preview:
    """Return a preview from the title on, without links and notices beneath; empty if none stand.

    What stands above the title are notices and the end of a table of contents.
    """
    title = _title(content, page_title)
    first = 0 if title is None else title + 1
    body, links, end = first, 0, first
    for end in range(first, len(content)):
        block = content[end]
        if block.level:
            links = 0
            continue
        added = _links(block)
        links += added
        in_list = block.containers and links >= MIN_LEADING_LINKS
        most = RUNNING_WORDS if in_list else MOST_WORDS_BETWEEN
        is_text = block.kind in {_blocks.CODE, _blocks.TABLE} or (not added and block.count > most)
        if is_text and not _is_notice(block):
            break
        if links >= MIN_LEADING_LINKS:
            body = end + 1
    else:  # links are all that the page has
        body = end = first
    above = [block for block in content[:body] if block.level == 1][:1]
    titles = content[title:first] if title is not None else above
    lead = [block for block in content[body:end] if not _is_notice(block)]
    shown = [*titles, *lead, *content[end : end + PREVIEW_BLOCKS]]
    if shown[:PREVIEW_BLOCKS] == content[:PREVIEW_BLOCKS]:
        return Preview()
    text = next(_blocks.parts(shown, inline), Part("")).text[:PREVIEW_CHARS]
    return Preview(text, lines_shown=text.count("\n"))


def _title(content: list[_blocks.Block], page_title: str) -> int | None:
    """Return the number of the heading that the page is named after, with few words above.

    Of several it is what the page's title begins with: the site's name stands at its end.
    """
    above = 0
    named = _spelled(page_title)
    places: list[tuple[int, int]] = []
    for number, block in enumerate(content[:TITLE_REACH]):
        if block.level in {1, 2} and (words := _spelled(block.words)).strip():
            place = named.find(words) if named.strip() else -1
            if place >= 0:
                places.append((place, number))
        if block.count >= RUNNING_WORDS and block.linked * 2 < block.count:
            above += block.count
        if above > MOST_WORDS_ABOVE:
            break
    return min(places)[1] if places else None


def _spelled(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _is_notice(block: _blocks.Block) -> bool:
    """Return whether this speaks of the site, and not of what the page is about."""
    return len(block.words) <= 400 and _NOTICE.search(block.words) is not None


def _links(block: _blocks.Block) -> int:
    """Return the number of links in a block that is nothing else, 0 for any other."""
    if block.link:
        return bool(block.count)
    if not block.count or block.linked * 5 < block.count * 4:
        return 0
    return sum(element.tag == "a" for element in _element.elements_in(block.nodes))


def _facts(reading: Reading) -> str:
    named = {
        "canonical": reading.metadata.canonical,
        "text from its data": reading.data,
    }
    facts = (f"{name}: {value}" for name, value in named.items() if value)
    return " · ".join(filter(None, (*facts, reading.playing)))
