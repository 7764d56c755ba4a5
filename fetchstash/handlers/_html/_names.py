"""Sets of names, written as text."""


def names(text: str) -> frozenset[str]:
    """Return the set of the words of ``text``."""
    return frozenset(text.split())
