"""Slides as Markdown: a page each, with number, title and the count of pictures."""

from collections.abc import Sequence

from fetchstash.handlers._shared._prose import Prose
from fetchstash.handlers._shared._words import counted

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
