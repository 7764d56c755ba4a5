"""What documents share: members of a container, events of XML, runs of text, slides, charts."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby, islice

from fetchstash.errors import NoText
from fetchstash.handlers._contract import Extracted
from fetchstash.handlers._shared._prose import Prose
from fetchstash.handlers._shared._xml import FirstTexts, XmlReader, attribute, counted, walk
from fetchstash.handlers._shared._zip import Zip

_MAX_MEMBERS = 20_000
# A limit for metadata, styles and relationships; the text is streamed.
_MAX_SMALL_MEMBER = 32 * 1024 * 1024
_MAX_SCRIPT = 30
_MAX_DESCRIPTIONS = 20
_MAX_ROWS, _MAX_COLUMNS = 5_000, 100  # of the data of a chart
# What is raised and no exponent: marks of notes and trademarks, endings of ordinals.
_MARKS = "*†‡§®™©()[]"
_ORDINALS = frozenset(("st", "nd", "rd", "th", "er", "re", "e", "ème", "a", "o", "as", "º", "ª"))


class Members:
    """The members of an open zip container, by name. A missing one is empty."""

    def __init__(self, container: Zip) -> None:
        self.container = container
        self.entries = {entry.name: entry for entry in islice(container.entries(), _MAX_MEMBERS)}

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the content of a member. Raises NoText if it cannot be unpacked."""
        return self.container.chunks(self.entries[name]) if name in self else iter(())

    def read(self, name: str, reader: XmlReader, limit: int = 4 * 2**20) -> None:
        """Pass a member of at most ``limit`` bytes to ``reader``. Raises NoText if damaged."""
        if name in self:
            for _ in walk(self.container.chunks(self.entries[name], limit), reader):
                pass

    def read_small(self, name: str, reader: XmlReader) -> None:
        """Pass a member to ``reader``, up to the first damage."""
        with suppress(NoText):
            self.read(name, reader, _MAX_SMALL_MEMBER)


def learn_metadata(properties: FirstTexts, extracted: Extracted) -> None:
    """Add title, author, date and language of Dublin Core to ``extracted``."""
    texts = properties.texts
    extracted.learn(
        title=texts.get("title", ""),
        author=texts.get("initial-creator") or texts.get("creator", ""),
        published=(texts.get("creation-date") or texts.get("created", ""))[:10],
        language=texts.get("language", ""),
    )


class Events:
    """Base of readers of XML: ignores each event."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag."""

    def end(self, name: str) -> None:
        """Take an end tag."""

    def text(self, data: str) -> None:
        """Take character data."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a run stands in its text: ``script`` is "^" or "_"; tracked changes are ins or del."""

    script: str = ""
    struck: bool = False
    inserted: bool = False


PLAIN = Look()
_Run = tuple[str, Look]


class Runs:
    """The runs of one paragraph; those that look alike become one."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._look = PLAIN
        self._changed = PLAIN

    def add(self, text: str) -> None:
        """Add text as it looks now."""
        look, changed = self._look, self._changed
        struck, inserted = look.struck or changed.struck, look.inserted or changed.inserted
        self._runs.append((text, Look(look.script, struck, inserted)))

    def mark(self, text: str) -> None:
        """Add text that looks plain: a bracket, a line end, a formula."""
        self._runs.append((text, self._changed))

    def link(self, target: str) -> None:
        """Make the last text a link."""
        if self._runs:
            text, look = self._runs[-1]
            self._runs[-1] = f"[{text}]({target})", look

    def look(self, *, script: str | None = None, struck: bool | None = None) -> None:
        """Change how text looks from here on."""
        self._look = Look(
            self._look.script if script is None else script,
            self._look.struck if struck is None else struck,
        )

    def wear(self, look: Look = PLAIN) -> None:
        """Set how text looks from here on; plain by default."""
        self._look = look

    def change(self, *, inserted: bool = False, deleted: bool = False) -> None:
        """Begin a tracked change; end it by neither."""
        self._changed = Look(inserted=inserted, struck=deleted)

    def text(self) -> str:
        """Return all of it as Markdown."""
        return _written(self._runs, "", ("inserted", "struck", "script")).strip()


def _written(runs: Sequence[_Run], before: str, looks: Sequence[str]) -> str:
    """Return runs that stand behind ``before``; those of one look (the first) share its marks."""
    if not looks:
        return "".join(text for text, _ in runs)
    text = ""
    for look, group in groupby(runs, key=lambda run: getattr(run[1], looks[0])):
        inner = _written(list(group), before + text, looks[1:])
        if look and looks[0] == "script":
            text += _script(look, inner) if (before + text).strip() else inner
        elif look:
            marks = ("~~", "~~") if looks[0] == "struck" else ("<ins>", "</ins>")
            text += _between(inner, *marks)
        else:
            text += inner
    return text


def _script(mark: str, text: str) -> str:
    """Return ``x^2``, ``10^{-3}``, ``CO_2``; marks and endings of ordinals as they are."""
    plain = text.strip()
    if not plain.strip(_MARKS) or len(plain) > _MAX_SCRIPT or plain.lower() in _ORDINALS:
        return text
    trailing = text[len(text.rstrip()) :]
    return (f"{mark}{plain}" if len(plain) == 1 else f"{mark}{{{plain}}}") + trailing


def _between(text: str, begin: str, end: str) -> str:
    """Return text between marks, the spaces at its ends outside; blank text has none."""
    plain = text.strip()
    return text.replace(plain, f"{begin}{plain}{end}", 1) if plain and end not in plain else text


class Slides:
    """Writes slides into ``prose``: a page each, with number, title and the count of pictures."""

    def __init__(self, prose: Prose) -> None:
        self.count = 0
        self._pictures = 0
        self._prose = prose
        self._opening = ""

    def begin(self) -> None:
        """Begin a slide. Its heading waits for the first text, which may be the title."""
        self.count += 1
        self._prose.page()
        self._opening = f"Slide {self.count}"

    def open(self, title: str = "") -> None:
        """Write the heading of the slide unless it is written; another title gets its own."""
        if self._opening:
            self._prose.heading(f"{self._opening}: {title}" if title else self._opening, 2)
            self._opening = ""
        elif title:
            self._prose.heading(title, 3)

    def end(
        self, pictures: int, descriptions: Sequence[str] = (), shown: Sequence[str] = ()
    ) -> None:
        """End a slide: ``shown`` are its pictures as Markdown.

        ``pictures`` counts those that cannot be shown, and ``descriptions`` are theirs.
        """
        self.open()
        self._pictures += pictures + len(shown)
        self._prose.paragraph("\n".join(filter(None, shown)))
        described = "; ".join(" ".join(text.split()) for text in descriptions[:_MAX_DESCRIPTIONS])
        if pictures:
            described = f": {described}" if described else ""
            self._prose.paragraph(f"({counted(pictures, 'picture')}{described})")

    def learn(self, extracted: Extracted) -> None:
        """Add the numbers of slides and pictures to ``extracted``."""
        summary = counted(self.count, "slide")
        if self._pictures:
            summary += f", {counted(self._pictures, 'picture')}"
        extracted.learn(pages=self.count, structure_info=summary)


class OdfChart(Events):
    """Reads a chart of OpenDocument (section 11): its class, its title and its data."""

    def __init__(self) -> None:
        self._kind = ""
        self._title = ""
        self._rows: list[list[str]] = []
        self._is_chart = self._in_title = self._in_cell = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take a start tag."""
        if name == "chart" and attribute(attributes, "class"):
            self._is_chart = True
            self._kind = attribute(attributes, "class").rpartition(":")[2]
        elif name == "title":
            self._in_title = True
        elif name == "table-row" and len(self._rows) < _MAX_ROWS:
            self._rows.append([])
        elif name == "table-cell" and self._rows and len(self._rows[-1]) < _MAX_COLUMNS:
            self._rows[-1].append("")
            self._in_cell = True

    def end(self, name: str) -> None:
        """Take an end tag."""
        if name == "title":
            self._in_title = False
        elif name == "table-cell":
            self._in_cell = False

    def text(self, data: str) -> None:
        """Take character data."""
        if self._in_title:
            self._title += data
        elif self._in_cell:
            self._rows[-1][-1] += data

    def write(self, prose: Prose) -> None:
        """Write title and data into ``prose``; nothing if the object is no chart."""
        if self._is_chart:
            caption = f"Chart ({self._kind})"
            title = self._title.strip()
            prose.paragraph(f"{caption}: {title}" if title else caption)
            prose.table(self._rows)
