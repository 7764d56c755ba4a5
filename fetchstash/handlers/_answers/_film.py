"""Read the page of a film: its title, description, chapters and captions out of its data.

What came besides the page, its captions, stands in a script of data behind it (fetch/_by_rule.py).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fetchstash.handlers._answers import AnswerReason, _values as v
from fetchstash.handlers._contract import Extracted, Hints
from fetchstash.handlers._html import _reading, _scripts, _tree
from fetchstash.handlers._html._handler import HtmlHandler
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.text.facts import clock
from fetchstash.text.untyped import is_array, is_object

_PLAYER, _PAGE = "ytInitialPlayerResponse", "ytInitialData"
_CHAPTERS = ("macroMarkersListItemRenderer", "chapterRenderer")
_MAX_NODES, _MAX_CHAPTERS = 300_000, 300
_CAPTION_SECONDS = 30  # of captions on one line


class FilmHandler(HtmlHandler):
    """Reads the pages of films; their paths are those of web pages."""

    name = "film"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return the text of a film's page. Raises NoText for any other page."""
        del limits  # the text is cut behind the handler
        page = _tree.parse(_reading.load(source, hints.charset)[0])
        data: dict[str, Any] = {}
        for attributes, text in page.script_texts:
            if attributes.get("id") == "fetched":
                fetched = _scripts.loaded(text)
                captions = fetched[1] if is_array(fetched) and len(fetched) > 1 else None
                data["captions"] = _scripts.loaded(captions) if isinstance(captions, str) else None
            elif _PLAYER in text or _PAGE in text:
                data |= dict(_scripts.assignments(text))
        details = v.member(data.get(_PLAYER), "videoDetails")
        if not v.field(details, "title"):
            raise AnswerReason.ANSWER_SHAPE.error()
        extracted = Extracted(list(v.parts_of(_sections(details, data))))
        microformat = v.member(data.get(_PLAYER), "microformat.playerMicroformatRenderer")
        extracted.learn(
            title=v.field(details, "title"),
            author=v.field(details, "author"),
            published=v.moment(v.member(microformat, "publishDate", "uploadDate")),
            seconds=_whole(v.member(details, "lengthSeconds")),
        )
        return extracted


def _sections(details: Any, data: dict[str, Any]) -> v.Sections:
    player = data.get(_PLAYER)
    seconds = _whole(v.member(details, "lengthSeconds"))
    tracks = v.listed(v.member(player, "captions.playerCaptionsTracklistRenderer.captionTracks"))
    languages = [v.line(_said(v.member(track, "name"))) for track in tracks]
    views = _whole(v.member(details, "viewCount"))
    facts = {
        "By": v.field(details, "author"),
        "Length": clock(seconds) if seconds else "",
        "Views": v.number(views),
        "Published": v.moment(
            v.member(player, "microformat.playerMicroformatRenderer.publishDate")
        ),
        "Captions": v.joined(*languages),
        "Not playable": v.field(player, "playabilityStatus.reason"),
    }
    described = v.prose(v.member(details, "shortDescription"))
    yield v.Section(1, v.field(details, "title"), v.facts_of(facts), described)
    chapters = dict.fromkeys(_chapters(data.get(_PAGE)))
    if chapters:
        yield v.Section(2, "Chapters", "\n".join(chapters))
    spoken = list(_captions(data.get("captions")))
    if spoken:
        yield v.Section(2, "Captions", "\n".join(spoken))
    elif tracks:
        yield v.Section(2, "Captions", "The site has captions and did not give them.")


def _said(text: Any) -> str:
    """Return a text in the site's data: one string, or several runs."""
    runs = v.listed(v.member(text, "runs"))
    return v.member(text, "simpleText") or "".join(str(v.member(run, "text")) for run in runs)


def _chapters(value: Any) -> Iterator[str]:
    """Yield a line for each chapter, wherever the data hold them."""
    pending, nodes = [value], 0
    found = 0
    while pending and nodes < _MAX_NODES and found < _MAX_CHAPTERS:
        nodes += 1
        item = pending.pop()
        if is_array(item):
            pending += reversed(item)
        elif is_object(item):
            pending += reversed(list(item.values()))
            for key in _CHAPTERS:
                chapter = item.get(key)
                title = v.line(_said(v.member(chapter, "title")))
                start = v.line(_said(v.member(chapter, "timeDescription")))
                millis = v.member(chapter, "timeRangeStartMillis")
                if not start and isinstance(millis, int):
                    start = clock(millis // 1000)
                if title and start:
                    found += 1
                    yield f"- {start} {title}"


def _captions(value: Any) -> Iterator[str]:
    """Yield the captions, those of half a minute on a line with the time when it begins."""
    events: Any = v.member(value, "events")
    begin, words = -_CAPTION_SECONDS, list[str]()
    for event in events if is_array(events) else ():
        start = (_whole(v.member(event, "tStartMs")) or 0) // 1000
        text = "".join(str(v.member(part, "utf8")) for part in v.listed(v.member(event, "segs")))
        if not text.strip():
            continue
        if start - begin >= _CAPTION_SECONDS:
            if words:
                yield f"- {clock(begin)} {' '.join(words)}"
            begin, words = start, []
        words += text.split()
    if words:
        yield f"- {clock(begin)} {' '.join(words)}"


def _whole(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 16 else None
