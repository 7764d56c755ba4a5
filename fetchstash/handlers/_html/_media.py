"""Find what the pictures, films and sounds of a page are called and where they are.

HTML Standard, 4.8; WAI-ARIA 1.2. Icons, spacers and trackers are no pictures.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import islice
from typing import Any, cast

from fetchstash.handlers._html._element import Element
from fetchstash.handlers._html._names import names

MEDIA = names("img video audio iframe")
"""Elements that are kept for what they show; they have no text."""
LEAST_PIXELS = 50
"""Width and height; a smaller picture is an icon."""
MAX_ALT_CHARS = 300
MAX_LISTED = 1_000
CAPTION_REACH = 20
"""Children of a figure, and of each of these, among which its caption is."""

_SOURCES = ("data-src", "data-original", "data-lazy-src", "data-lazy", "data-url", "src")
"""Where the address of a picture is: scripts that load it late set ``src`` from the others."""
_SOURCE_SETS = ("srcset", "data-srcset", "data-lazy-srcset")
_NO_PICTURE = re.compile(
    r"(?<![a-z])(?:icons?|avatars?|gravatar|emojis?|smil(?:ey|ies)|logos?|spacer|pixel|blank|"
    r"sprites?|badges?|spinner|loading|loader|placeholder|tracking|tracker|beacon|1x1)(?![a-z])",
    re.IGNORECASE,
)
_TRACKER = re.compile(
    r"doubleclick\.net|facebook\.com/tr|google-analytics|scorecardresearch|quantserve|"
    r"/(?:pixel|beacon|collect|track)(?:[/.?]|$)|img\.shields\.io",
    re.IGNORECASE,
)
_FILE_NAME = re.compile(
    r"(?:image|img|photo|picture|untitled|dsc)?[\s\d_-]*|\S+\.[a-z]{3,4}", re.IGNORECASE
)
_PLAYERS = re.compile(
    r"(?:https?:)?//(?:[\w-]+\.)*(?:youtube(?:-nocookie)?\.com/embed/|player\.vimeo\.com/|"
    r"dailymotion\.com/embed/|loom\.com/embed/|wistia\.(?:com|net)/embed/|embed\.ted\.com/|"
    r"players\.brightcove\.net/|archive\.org/embed/|player\.twitch\.tv/|bitchute\.com/embed/|"
    r"w\.soundcloud\.com/player|open\.spotify\.com/embed|embed\.podcasts\.apple\.com/|"
    r"bandcamp\.com/EmbeddedPlayer)",
    re.IGNORECASE,
)
_SOUNDS = re.compile(r"soundcloud|spotify|podcasts|bandcamp", re.IGNORECASE)
_DURATION = re.compile(r"P(?:(\d+)D)?T?(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.\d+)?S)?", re.IGNORECASE)
_SCHEMA_TYPES = names("VideoObject AudioObject Clip Movie PodcastEpisode MusicRecording")
_ADDRESSES = ("contentUrl", "embedUrl", "url")
_IMAGE_FILE = re.compile(r"\.(?:jpe?g|png|gif|webp|avif|svg|bmp|tiff?)(?:[?#]|$)", re.IGNORECASE)
_WIKI_PAGE = re.compile(r"/[A-Za-z]+:[^/]*$")
_LINK_REACH = 6
"""Elements above a picture in which its link is searched."""


def is_medium(element: Element) -> bool:
    """Return whether an element shows a picture, a film or a sound that a listing names."""
    if element.tag != "img":
        return bool(_source(element))
    attributes = element.attributes
    source = _source(element)
    if not source or attributes.get("role") in {"presentation", "none"}:
        return False
    if any(_is_small(attributes.get(side, "")) for side in ("width", "height")):
        return False
    named = f"{attributes.get('class', '')} {attributes.get('id', '')} {source.partition('?')[0]}"
    return not _NO_PICTURE.search(named[:1_000]) and not _TRACKER.search(source[:1_000])


def shown(element: Element) -> tuple[str, str] | None:
    """Return the label and the address of what the text of a page shows, None for nothing.

    A picture informs if it has a text of its own or stands in a figure, and is not the thumbnail
    of what a link leads to.
    """
    label, source = labelled(element)
    if element.tag != "img":
        return (label, source) if source else None
    if not label and not _is_figure(element):
        return None
    link = _link(element)
    if (link and not _IMAGE_FILE.search(link)) or not is_medium(element):
        return None
    return label, source if not link or _WIKI_PAGE.search(link) else link


def labelled(element: Element) -> tuple[str, str]:
    """Return the label and the address of a medium; a label may be ""."""
    attributes = element.attributes
    source = _source(element)
    if element.tag == "img":
        alt = " ".join(attributes.get("alt", "").split())[:MAX_ALT_CHARS]
        return "" if _FILE_NAME.fullmatch(alt) else alt, source
    is_sound = element.tag == "audio" or (element.tag == "iframe" and _SOUNDS.search(source))
    title = attributes.get("title") or attributes.get("aria-label") or ""
    words = [" ".join(title.split())[:MAX_ALT_CHARS], attributes.get("data-duration", "")]
    about = ", ".join(filter(None, words))
    kind = "Audio" if is_sound else "Video"
    return f"{kind}: {about}" if about else kind, source


def still(element: Element) -> str:
    """Return the address of the picture that an element shows: of a film its poster, or ""."""
    return _source(element) if element.tag == "img" else element.attributes.get("poster", "")


def is_player(attributes: dict[str, str]) -> bool:
    """Return whether a frame plays films or sounds."""
    return _PLAYERS.match(attributes.get("src") or attributes.get("data-src", "")) is not None


def describe(media: Iterable[Element], linked_data: Iterable[dict[str, Any]]) -> str:
    """Give the media of a page the names and durations that its linked data state.

    Returns a line on a film or sound that no element of the page plays, as scripts insert it.
    """
    records = [record for record in linked_data if _is_media_object(record)][:MAX_LISTED]
    players = [element for element in media if element.tag != "img"] if records else []
    by_source: defaultdict[str, list[Element]] = defaultdict(list)
    for element in players:
        by_source[_source(element)].append(element)
    line = ""
    for record in records:
        addresses = {str(record[name]) for name in _ADDRESSES if name in record}
        name = " ".join(str(record.get("name", "")).split())[:MAX_ALT_CHARS]
        duration = clock(str(record.get("duration", "")))
        playing = [element for address in addresses for element in by_source.get(address, ())]
        if not playing and len(records) == len(players) == 1:
            playing = players
        for element in playing:
            element.attributes.setdefault("title", name)
            element.attributes["data-duration"] = duration
        if not playing and not line:
            address = next((str(record[key]) for key in _ADDRESSES if key in record), "")
            kind = "audio" if "Audio" in str(record.get("@type")) else "video"
            line = f"{kind}: {', '.join(filter(None, (name, duration, address[:500])))}"
    return line


def _is_media_object(record: dict[str, Any]) -> bool:
    kinds = record.get("@type")
    named = cast("list[object]", kinds) if isinstance(kinds, list) else [kinds]
    return not _SCHEMA_TYPES.isdisjoint(map(str, named))


def clock(duration: str) -> str:
    """Return an ISO 8601 duration as people write it: 3:45 or 1:02:03, "" for anything else."""
    match = _DURATION.fullmatch(duration.strip()[:60])
    if match is None or not any(match.groups()):
        return ""
    days, hours, minutes, seconds = (int((part or "0")[:6]) for part in match.groups())
    minutes, seconds = divmod(((days * 24 + hours) * 60 + minutes) * 60 + seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _source(element: Element) -> str:
    """Return the address of a medium as the page spells it, "" if it holds its own data."""
    attributes = element.attributes
    for name in _SOURCES:
        value = attributes.get(name, "").strip()
        if value and not value.startswith(("data:", "blob:", "javascript:", "about:", "#")):
            return value
    for name in _SOURCE_SETS:
        first = attributes.get(name, "").strip()[:2_000].split(maxsplit=1)[:1]
        if first and not first[0].startswith("data:"):
            return first[0].rstrip(",")
    return ""


def _is_small(size: str) -> bool:
    digits = size.strip().removesuffix("px")
    return digits.isdecimal() and len(digits) < 6 and int(digits) < LEAST_PIXELS


def _is_figure(picture: Element) -> bool:
    """Return whether a picture stands in a figure that has a caption."""
    near = islice(picture.ancestors(), _LINK_REACH)
    figure = next((element for element in near if element.tag == "figure"), None)
    if figure is None:
        return False
    inside = [child for child in figure.children[:CAPTION_REACH] if not isinstance(child, str)]
    inside += [inner for child in inside for inner in islice(child.elements(), CAPTION_REACH)]
    return any(element.tag == "figcaption" for element in inside)


def _link(picture: Element) -> str:
    near = islice(picture.ancestors(), _LINK_REACH)
    link = next((element for element in near if element.tag == "a"), None)
    return link.attributes.get("href", "").strip() if link is not None else ""
