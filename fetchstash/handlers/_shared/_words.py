"""Wording of facts."""


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: "1 entry", "1,200 entries"; the plural adds an s by default."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
