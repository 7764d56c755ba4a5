"""Runs of text and slides as Markdown, for the formats that have them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from fetchstash.handlers._shared._prose import Prose
from fetchstash.handlers._shared._words import counted

_MAX_SCRIPT = 30
# What is raised and no exponent: marks of notes and trademarks, endings of ordinals.
_MARKS = "*†‡§®™©()[]"
_ORDINALS = frozenset(("st", "nd", "rd", "th", "er", "re", "e", "ème", "a", "o", "as", "º", "ª"))


@dataclass(frozen=True, slots=True)
class Look:
    """How a run stands in its text: ``script`` is "^" or "_"; tracked changes are ins or del."""

    script: str = ""
    struck: bool = False
    inserted: bool = False


PLAIN = Look()


class Runs:
    """The runs of one paragraph; those that look alike become one."""

    def __init__(self) -> None:
        self._runs: list[tuple[str, Look]] = []
        self._look = PLAIN
        self._changed = PLAIN

    def add(self, text: str) -> None:
        """Add text as it looks now."""
        look = self._look
        self._runs.append((
            text,
            Look(
                look.script,
                look.struck or self._changed.struck,
                look.inserted or self._changed.inserted,
            ),
        ))  # fmt: skip

    def mark(self, text: str) -> None:
        """Add text that looks plain: a bracket, a line end, a formula."""
        self._runs.append((text, self._changed))

    def link(self, target: str) -> None:
        """Make the last text a link."""
        if self._runs:
            text, look = self._runs[-1]
            self._runs[-1] = f"[{text}]({target})", look

    def look(self, *, script: str | None = None, struck: bool | None = None) -> None:
        """Set how text looks from here on."""
        self._look = Look(
            self._look.script if script is None else script,
            self._look.struck if struck is None else struck,
        )

    def wear(self, look: Look = PLAIN) -> None:
        """Let text look so from here on; plain by default."""
        self._look = look

    def change(self, *, inserted: bool = False, deleted: bool = False) -> None:
        """Begin a tracked change; end it by neither."""
        self._changed = Look(inserted=inserted, struck=deleted)

    def text(self) -> str:
        """Return all of it as Markdown."""
        return _inserted(self._runs).strip()


def _inserted(runs: Iterable[tuple[str, Look]]) -> str:
    text = ""
    for is_inserted, group in groupby(runs, key=lambda run: run[1].inserted):
        inner = _struck(list(group), text)
        text += _between(inner, "<ins>", "</ins>") if is_inserted else inner
    return text


def _struck(runs: Iterable[tuple[str, Look]], before: str) -> str:
    text = ""
    for is_struck, group in groupby(runs, key=lambda run: run[1].struck):
        inner = _scripts(list(group), before + text)
        text += _between(inner, "~~", "~~") if is_struck else inner
    return text


def _scripts(runs: Iterable[tuple[str, Look]], before: str) -> str:
    text = ""
    for script, group in groupby(runs, key=lambda run: run[1].script):
        inner = "".join(piece for piece, _ in group)
        text += _script(script, inner) if script and (before + text).strip() else inner
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
    if not plain or end in plain:
        return text
    at = text.index(plain)
    return f"{text[:at]}{begin}{plain}{end}{text[at + len(plain) :]}"


_MAX_DESCRIPTIONS = 20


class Slides:
    """Writes the slides of a presentation into ``prose``."""

    def __init__(self, prose: Prose) -> None:
        self.count = 0
        self.pictures = 0
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
        self.pictures += pictures + len(shown)
        self._prose.paragraph("\n".join(filter(None, shown)))
        if pictures:
            described = "; ".join(
                " ".join(text.split()) for text in descriptions[:_MAX_DESCRIPTIONS]
            )
            self._prose.paragraph(
                f"({counted(pictures, 'picture')}{f': {described}' if described else ''})"
            )

    def summary(self) -> str:
        """Return the numbers of slides and pictures in words."""
        slides = counted(self.count, "slide")
        return f"{slides}, {counted(self.pictures, 'picture')}" if self.pictures else slides
