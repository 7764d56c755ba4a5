"""Helpers that document readers share: metadata, runs of text, slides, charts."""

from collections.abc import Sequence
from itertools import groupby, islice
from typing import NamedTuple

from fetchstash.handlers._contract import Extracted
from fetchstash.handlers._prose import Prose, script
from fetchstash.handlers._xml import Node
from fetchstash.text import clip, counted

_MAX_DESCRIPTIONS = 20
_MAX_ROWS, _MAX_COLUMNS = 5_000, 100  # of the data of a chart


def number(text: str, default: int = 0) -> int:
    """Return a whole number without a sign; ``default`` for any other text, and a very long one."""
    return int(text) if text.isdecimal() and len(text) < 16 else default


def signed(text: str) -> int:
    """Return a whole number with or without a sign, 0 for any other text."""
    return -number(text[1:]) if text.startswith("-") else number(text)


def learn_metadata(described: Node, extracted: Extracted, date: str) -> None:
    """Add title, author, language and date (an element ``date``) to ``extracted``."""
    texts: dict[str, str] = {}
    for node in described.all(
        "title", "initial-creator", "creator", "language", "modified", "publisher", date
    ):
        if text := node.text().strip():
            texts.setdefault(node.tag, text)
    extracted.learn(
        title=texts.get("title", ""),
        author=texts.get("initial-creator") or texts.get("creator", ""),
        published=texts.get(date, "")[:10],
        modified=texts.get("modified", "")[:10],
        site=texts.get("publisher", ""),
        language=texts.get("language", ""),
    )


class Look(NamedTuple):
    """The formatting of a run: ``script`` is "^" or "_"; tracked changes are ins or del."""

    script: str = ""
    struck: bool = False
    inserted: bool = False


PLAIN = Look()


class Runs:
    """The runs of one paragraph; those with the same formatting become one.

    ``look`` is how text looks from here on, ``change`` the tracked change that it belongs to.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[str, Look]] = []
        self.look = PLAIN
        self.change = PLAIN
        self._is_plain = True

    def add(self, text: str) -> None:
        """Add text with the current formatting."""
        look = self.look
        if self.change is not PLAIN:
            look = Look(look.script, look.struck or self.change.struck, self.change.inserted)
        if look is not PLAIN:
            self._is_plain = False
        self._runs.append((text, look))

    def mark(self, text: str) -> None:
        """Add text without formatting: a bracket, a line end, a formula."""
        if self.change is not PLAIN:
            self._is_plain = False
        self._runs.append((text, self.change))

    def link(self, target: str) -> None:
        """Make the last text a link."""
        if self._runs:
            text, look = self._runs[-1]
            self._runs[-1] = f"[{text}]({target})", look

    def place(self) -> int:
        """Reserve the place of the next run, for ``words``, ``link_from`` and ``cut``; return it.

        It is kept free, so that a bracket put there moves no other place.
        """
        self.mark("")
        return len(self._runs) - 1

    def words(self, start: int) -> str:
        """Return the text from a place on, without its formatting."""
        return "".join(text for text, _ in self._runs[start:])

    def link_from(self, start: int, target: str) -> None:
        """Make the text from a place on a link, unless there is none."""
        if self.words(start).strip():
            self.put(start, "[")
            self.mark(f"]({target})")

    def put(self, place: int, text: str) -> None:
        """Write text without formatting at a place."""
        if self.change is not PLAIN:
            self._is_plain = False
        self._runs[place] = text, self.change

    def cut(self, start: int) -> None:
        """Remove everything from a place on."""
        self._runs[start:] = []
        self.mark("")

    def text(self) -> str:
        """Return all of it as Markdown."""
        # Most paragraphs are plain; to group their runs by three looks took a sixth of all time.
        if self._is_plain:
            return "".join(text for text, _ in self._runs).strip()
        return _written(self._runs, "", ("inserted", "struck", "script")).strip()


def _written(runs: Sequence[tuple[str, Look]], before: str, looks: Sequence[str]) -> str:
    """Return runs that stand behind ``before``; those of one look (the first) share its marks."""
    if not looks:
        return "".join(text for text, _ in runs)
    text = ""
    for look, group in groupby(runs, key=lambda run: getattr(run[1], looks[0])):
        inner = _written(list(group), before + text, looks[1:])
        if look and looks[0] == "script":
            text += script(look, inner) if (before + text).strip() else inner
        elif look:
            marks = ("~~", "~~") if looks[0] == "struck" else ("<ins>", "</ins>")
            text += _between(inner, *marks)
        else:
            text += inner
    return text


def _between(text: str, begin: str, end: str) -> str:
    """Return text between marks, the spaces at its ends outside; blank text has none."""
    plain = text.strip()
    return text.replace(plain, f"{begin}{plain}{end}", 1) if plain and end not in plain else text


class Slides:
    """Writes slides into ``prose``: a page each, with number, title and the count of pictures.

    ``hidden_shapes`` counts the texts of shapes that no slide shows.
    """

    def __init__(self, prose: Prose) -> None:
        self.count = self.hidden_shapes = 0
        self._pictures = 0
        self._prose = prose
        self._opening = ""

    def begin(self) -> None:
        """Begin a slide. Its heading waits for the first text, which may be the title."""
        self.count += 1
        self._prose.page()
        self._opening = f"Slide {self.count}"

    def hide(self) -> None:
        """Say in the heading that the presentation leaves this slide out."""
        self._opening = f"{self._opening} (hidden)"

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
        extracted.learn(pages=self.count, structure_info=summary, hidden_removed=self.hidden_shapes)


MAX_LABEL = 100
"""Of the label of a list's items, which stands before each of them."""


def item_mark(label: str) -> str:
    """Return the mark of a list's item; a bare number gets the point that Markdown wants."""
    return f"{label}." if label.isalnum() else label


_MAX_QUOTED = 80


def comment_line(author: str, words: str, quoted: str = "", paragraph: str = "") -> str:
    """Return a comment as it stands behind its paragraph.

    ``quoted`` are the words that it is about; they are named unless they are the whole paragraph.
    """
    quoted, words = " ".join(quoted.split()), " ".join(words.split())
    by = f"Comment by {author}" if author else "Comment"
    if quoted and quoted != " ".join(paragraph.split()):
        by += f' on "{clip(quoted, _MAX_QUOTED)}"'
    return f"{by}: {words}"


def write_odf_chart(content: Node, prose: Prose) -> None:
    """Write a chart of OpenDocument (section 11), its title and its data; nothing else."""
    kinds = [kind for chart in content.all("chart") if (kind := chart.get("class"))]
    if kinds:
        caption = f"Chart ({kinds[-1].rpartition(':')[2]})"
        title = "".join(title.text() for title in content.all("title")).strip()
        prose.paragraph(f"{caption}: {title}" if title else caption)
        rows = islice(content.all("table-row"), _MAX_ROWS)
        prose.table(
            [[_value(cell) for cell in islice(row.all("table-cell"), _MAX_COLUMNS)] for row in rows]
        )


def _value(cell: Node) -> str:
    """Return what a cell of a chart's data shows, without the address that it comes from."""
    shown = " ".join(node.text() for node in cell.iter() if node.tag == "p")
    return shown if shown.strip() else cell.get("value")
