"""Find in the bytes of a web page the addresses that the server itself may go to.

The worker that read a page may have been taken over by one: it says that a page leads on, and never
where to. So this runs in the server: one pass over the first bytes, linear, without a tree. It sees
a meta refresh, a lone frame or embedded document, a script that does nothing but send the browser
on, an alternate of the same page, and the addresses of pictures; each as it stands in a tag,
outside of comments and of the text of scripts. It does not know what style sheets hide.
"""

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from fetchstash.handlers._charset import charset_named, declared_charset

REACH, PICTURES_REACH, LINKS_REACH = 256 * 2**10, 2 * 2**20, 2 * 2**20
"""Bytes of a page that are looked at, for where it leads, its pictures and its links."""
MOST_LINKS = 10_000
"""Links of a page that are looked at; a page can have 200,000 in what is read of it."""
MOST_TEXT = 3_000  # characters outside of tags; a page that has more leads nowhere
NEXT_TO_NOTHING = 200
"""Characters of content; a page that has no more may be one that leads on."""
MAX_HEADER = 4_000
MAX_REFRESH_SECONDS = 30
MAX_REDIRECTING_SCRIPT = 2_000  # characters; a longer script does more than to send the browser on
LEADING = frozenset(("leads_on", "empty_shell"))
"""Verdicts of pages without text, which may lead to one that has some."""

_FEEDS = frozenset(("application/rss+xml", "application/atom+xml", "application/feed+json"))
_REFRESH = re.compile(
    r"\s*(\d{1,4})(?:\.\d*)?\s*[;,]\s*(?:url\s*=)?\s*[\"']?([^\"']+)", re.IGNORECASE
)
_SCRIPTED = re.compile(
    r"(?<![\w.])(?:(?:window|document|top|self|parent)\.)?location"
    r"(?:(?:\.href)?\s*=|\.(?:replace|assign)\()\s*([\"'])([^\"']{1,2000})\1"
)
_PLAYED = (".swf", ".svg", ".png", ".jpg", ".gif", ".mp4", ".webm", ".mp3")
_MAIN_FRAME = re.compile(r"main|content|body|text|right|inhalt", re.IGNORECASE)
_MARKDOWN_LINK = re.compile(
    r"\]\(\s*<?([^\s<>()]{1,2000}(?:\([^\s<>()]{0,200}\)[^\s<>()]{0,200})?)"
)

_LINK = re.compile(r"<([^<>]*)>([^<>]*)")
_PARAMETER = re.compile(r";\s*(\w+)\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))")
_OPEN = re.compile(r"<(?:!--|([a-z][^\s/>]*))", re.IGNORECASE | re.ASCII)
# An unclosed quote matches nothing, which ends the pass: it is looked for once.
_ATTRIBUTE = re.compile(
    r"[\s/]*([^\s/>=\"'][^\s/>=]*)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"'][^\s>]*)))?"
)
_END = re.compile(r"[\s/]*>")
_MARKUP = re.compile(r"<[^>]*>?")
_REFERENCE = re.compile(r"&#?\w{1,32};")
# Elements whose content is text and no tags (HTML Standard, 13.2.5.2 to 13.2.5.4).
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE | re.ASCII)
    for name in ("script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes")
}
_SOURCES = frozenset(
    (
        "src",
        "poster",
        "data-src",
        "data-original",
        "data-lazy-src",
        "data-lazy",
        "data-url",
        "srcset",
        "data-srcset",
        "data-lazy-srcset",
    )
)


@dataclass(slots=True)
class _Tags:
    """The contents of a page's tags that may lead elsewhere.

    ``base`` is the page's base address, ``chars`` counts its text outside of tags. ``is_whole``:
    that is all of the page.
    """

    base: str
    is_whole: bool
    meta: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    links: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    frames: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    scripts: list[str] = field(default_factory=list[str])
    sources: set[str] = field(default_factory=set[str])
    anchors: dict[str, None] = field(default_factory=dict[str, None])
    chars: int = 0


def checked_lead(
    source: Path, charset: str, url: str, verdict: str, *, twins: bool = True, header: str = ""
) -> tuple[str, str]:
    """Return a worker's verdict on a web page as far as it can be true, and where the page leads.

    ``charset`` is the router's, ``url`` the address of the page. A page with text leads to its own
    Markdown, if ``twins`` are wanted, one without any to its feed, too. ``header`` is the Link
    field of the response, which names them as the page does (RFC 8288, 3). Blocking.
    """
    if verdict not in {"", "no_text", *LEADING}:
        return verdict, ""
    named = list(_linked_in(header))
    if not verdict and not (twins and (named or _names_markdown(source))):
        return "", ""
    tags = _read(source, charset, url, REACH)
    if verdict != "leads_on":
        links = [*named, *tags.links]
        return verdict, alternate(links, tags.base, url, twins=twins, feeds=bool(verdict))
    if tags.chars > MOST_TEXT:
        return "", ""
    frames, scripts = (tags.frames, tags.scripts) if tags.is_whole else ([], [])
    address = absolute(tags.base, leads_to(tags.meta, frames, scripts))
    return ("leads_on", address) if address else ("no_text", "")


def refreshed(header: str, url: str, chars: int | None) -> str:
    """Return where the Refresh field of a response leads, "" if it is no page that leads on.

    It is a meta refresh in another place (HTML Standard, 4.2.5.3): a page with ``chars`` of text
    leads nowhere if those are more than next to nothing.
    """
    meta = [{"http-equiv": "refresh", "content": header[:MAX_HEADER]}]
    return absolute(url, leads_to(meta, [], [])) if (chars or 0) <= NEXT_TO_NOTHING else ""


def is_picture(source: Path, kind: str, charset: str, url: str, address: str) -> bool:
    """Return whether ``address`` is that of a picture, film or sound of a page. Blocking."""
    if kind != "html":
        return False
    tags = _read(source, charset, url, PICTURES_REACH)
    return any(address == absolute(tags.base, reference) for reference in tags.sources)


@dataclass(frozen=True, slots=True)
class PageLinks:
    """The canonical address of a page ("": it names none), and the addresses that it links to.

    ``has_more``: the page has more links than were looked at. ``beside``: how many addresses in the
    folder above a site are left out, where those below the site alone are named.
    """

    canonical: str
    addresses: tuple[str, ...]
    has_more: bool
    beside: int = 0


def page_links(source: Path, kind: str, charset: str, url: str) -> PageLinks:
    """Return the first MOST_LINKS links of a page's first LINKS_REACH bytes.

    A link or a page that asks not to be followed (nofollow) is not among them. Of Markdown and
    plain text the links of Markdown are taken. Blocking.
    """
    if kind != "html":
        with source.open("rb") as file:
            text = file.read(LINKS_REACH).decode("utf-8", "replace")
            is_whole = not file.read(1)
        base, canonical = url, ""
        links = dict.fromkeys(match[1] for match in _MARKDOWN_LINK.finditer(text))
    else:
        tags = _read(source, charset, url, LINKS_REACH)
        robots = [meta for meta in tags.meta if meta.get("name", "").lower() == "robots"]
        follows = not any("nofollow" in meta.get("content", "").lower() for meta in robots)
        own = [link for link in tags.links if link.get("rel", "").lower() == "canonical"]
        canonical = absolute(tags.base, own[0].get("href", "")) if len(own) == 1 else ""
        base, links, is_whole = tags.base, tags.anchors if follows else {}, tags.is_whole
    addresses = filter(None, (absolute(base, link) for link in islice(links, MOST_LINKS)))
    has_more = len(links) > MOST_LINKS or not is_whole
    return PageLinks(canonical, tuple(dict.fromkeys(addresses)), has_more)


def leads_to(
    meta: Iterable[Mapping[str, str]], frames: Sequence[Mapping[str, str]], scripts: Sequence[str]
) -> str:
    """Return the address that a page without text sends a browser to, "" if none.

    It is that of a meta refresh (HTML Standard, 4.2.5.3), of a lone frame, or of a script that does
    nothing else.
    """
    for element in meta:
        match = _REFRESH.match(element.get("content", ""))
        is_refresh = element.get("http-equiv", "").lower() == "refresh"
        if is_refresh and match and int(match[1]) <= MAX_REFRESH_SECONDS:
            return match[2].strip()
    frames = [frame for frame in frames if frame.get("src", "about:").strip("#/")]
    frames = list({frame.get("src", ""): frame for frame in frames}.values())
    if len(frames) > 1:
        frames = [f for f in frames if _MAIN_FRAME.search(f"{f.get('name', '')} {f.get('id', '')}")]
    if len(frames) == 1:
        return frames[0].get("src", "").strip()
    script = "".join(text[: MAX_REDIRECTING_SCRIPT + 1] for text in islice(scripts, 99))
    match = _SCRIPTED.search(script) if len(script) <= MAX_REDIRECTING_SCRIPT else None
    return match[2].strip() if match else ""


def _linked_in(header: str) -> Iterator[dict[str, str]]:
    """Yield the alternates of a Link field (RFC 8288, section 3) as elements of a page."""
    for target, parameters in _LINK.findall(header[:MAX_HEADER]):
        link = {"href": target.strip()}
        for name, quoted, plain in _PARAMETER.findall(parameters):
            link.setdefault(name.lower(), quoted or plain)
        if "alternate" in link.get("rel", "").lower().split():
            yield link


def _names_markdown(source: Path) -> bool:
    with source.open("rb") as file:
        return b"text/markdown" in file.read(REACH).lower()


def framed(name: str, attributes: Mapping[str, str]) -> list[dict[str, str]]:
    """Return a frame, or an embed or object as one, if it may hold a document; else nothing.

    Pictures, films and sounds are none, nor is what only a plugin of old browsers played.
    """
    frame = {**attributes}
    if name == "object":
        frame["src"] = frame.get("data", "")
    kind, source = frame.get("type", "").lower(), frame.get("src", "").lower()
    is_played = kind.startswith(("image/", "video/", "audio/")) or "flash" in kind
    if name in {"embed", "object"} and (is_played or source.endswith(_PLAYED)):
        return []
    return [frame]


def alternate(
    links: Iterable[Mapping[str, str]],
    base: str,
    url: str,
    *,
    twins: bool = True,
    feeds: bool = True,
) -> str:
    """Return the address of the page at ``url`` as Markdown, or as its feed; "" if it names none.

    Its Markdown is on the same host, and no list of the whole site (llms.txt). A feed is the page's
    own if its address goes on where that of the page ends.
    """
    own = base.partition("#")[0].partition("?")[0].rstrip("/") + "/"
    for link in links:
        address, kind = absolute(base, link.get("href", "")), link.get("type", "").lower()
        is_twin = twins and kind == "text/markdown" and _is_own_markdown(address, url)
        is_feed = feeds and kind in _FEEDS and address.startswith(own)
        is_alternate = "alternate" in link.get("rel", "").lower().split()
        if address and is_alternate and (is_twin or is_feed):
            return address
    return ""


def _is_own_markdown(address: str, url: str) -> bool:
    there, here = urlsplit(address), urlsplit(url)
    is_list = there.path.rpartition("/")[2].startswith("llms")
    is_itself = address.partition("#")[0] == url.partition("#")[0]
    return there.netloc.lower() == here.netloc.lower() and not is_list and not is_itself


def absolute(base: str, reference: str) -> str:
    """Return the http or https address of a reference on a page, "" for anything else."""
    reference = "".join(reference.split()) if "\n" in reference else reference.strip()
    if not reference or reference.startswith("#"):
        return ""
    try:
        address = urljoin(base, reference)
    except ValueError:
        return ""
    address = address.replace(" ", "%20").replace("<", "%3C").replace(">", "%3E")
    return address if address.startswith(("http://", "https://")) else ""


def _read(source: Path, charset: str, url: str, reach: int) -> _Tags:
    """Return what the tags among the first bytes say."""
    with source.open("rb") as file:
        data = file.read(reach)
        tags = _Tags("", is_whole=not file.read(1))
    codec = charset_named(charset) or charset_named(declared_charset(data)) or "utf-8"
    text_from = 0
    page = data.decode(codec, "replace")
    for name, attributes, text, begin, end in _tags(page):
        tags.chars += _words(page[text_from:begin])
        text_from = end
        tags.sources.update(_sources(attributes))
        match name:
            case "base":
                tags.base = tags.base or attributes.get("href", "")
            case "a" | "area" if "nofollow" not in attributes.get("rel", "").lower():
                tags.anchors[attributes.get("href", "")] = None
            case "meta":
                tags.meta.append(attributes)
            case "link":
                tags.links.append(attributes)
            case "frame" | "iframe" | "embed" | "object" if _is_seen(attributes):
                tags.frames += framed(name, attributes)
            case "script" if "src" not in attributes and "json" not in attributes.get("type", ""):
                tags.scripts.append(text)
            case _:
                pass
    tags.chars += _words(_MARKUP.sub("", page[text_from:]))
    tags.base = absolute(url, tags.base) or url
    return tags


def _tags(page: str) -> Iterator[tuple[str, dict[str, str], str, int, int]]:
    """Yield the start tags: name, attributes, text of what holds no tags, begin and end."""
    at = 0
    while tag := _OPEN.search(page, at):
        at = tag.end()
        if tag[1] is None:
            end_mark = page.find("-->", at - 2)  # "<!-->" is a comment, too
            if end_mark < 0:
                return
            at = end_mark + 3
            yield "", {}, "", tag.start(), at
            continue
        attributes: dict[str, str] = {}
        while match := _ATTRIBUTE.match(page, at):
            value = match[2] or match[3] or match[4] or ""
            value = _REFERENCE.sub(lambda reference: html.unescape(reference[0]), value)
            attributes.setdefault(match[1].lower(), value)
            at = match.end()
        end = _END.match(page, at)
        if end is None:
            return
        name, at, text = tag[1].lower(), end.end(), ""
        if name in _RAW:
            closing = _RAW[name].search(page, at)
            text = page[at : closing.start() if closing else len(page)]
            at = closing.end() if closing else len(page)
        yield name, attributes, text, tag.start(), at


def _sources(attributes: Mapping[str, str]) -> Iterator[str]:
    for name in _SOURCES & attributes.keys():
        value = attributes[name].strip()
        if name.endswith("srcset"):
            yield from (word.rstrip(",") for word in value[:2_000].split())
        else:
            yield value


def _is_seen(frame: Mapping[str, str]) -> bool:
    """Return whether a frame is for a reader, and not for scripts and counters."""
    style = "".join(frame.get("style", "").lower().split())
    is_hidden = "hidden" in frame or "display:none" in style or "visibility:hidden" in style
    return not is_hidden and {frame.get("width"), frame.get("height")}.isdisjoint({"0", "1"})


def _words(text: str) -> int:
    """Return how many characters of words stand between two tags, end tags left out."""
    return sum(map(len, _MARKUP.sub(" ", text).split())) if not text.isspace() else 0
