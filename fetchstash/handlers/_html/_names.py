"""Sets of names, written as plain text."""


def names(text: str) -> frozenset[str]:
    """Return the words of ``text``."""
    return frozenset(text.split())
