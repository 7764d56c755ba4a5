"""How slides read, whatever program made them: each a page with a heading of its number and title, its pictures counted."""

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
        """Begin a slide. Its heading waits for a title that may come first."""
        self.count += 1
        self._prose.page()
        self._opening = f"Slide {self.count}"

    def open(self, title: str = "") -> None:
        """Write the heading of the slide if that has not been done; a further title becomes a heading of its own."""
        if self._opening:
            self._prose.heading(f"{self._opening}: {title}" if title else self._opening, 2)
            self._opening = ""
        elif title:
            self._prose.heading(title, 3)

    def end(self, pictures: int, descriptions: Sequence[str] = ()) -> None:
        """End a slide that shows so many pictures; some of them may be described."""
        self.open()
        self.pictures += pictures
        if pictures:
            described = "; ".join(
                " ".join(text.split()) for text in descriptions[:_MAX_DESCRIPTIONS]
            )
            self._prose.paragraph(
                f"({counted(pictures, 'picture')}{f': {described}' if described else ''})"
            )

    def summary(self) -> str:
        """Return the number of slides and pictures in a few words."""
        slides = counted(self.count, "slide")
        return f"{slides}, {counted(self.pictures, 'picture')}" if self.pictures else slides
