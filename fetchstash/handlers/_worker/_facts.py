"""Facts as frames hold them, derived from the fields of DocumentFacts; both sides clean them."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from fetchstash.facts import DocumentFacts, Fact, Shape
from fetchstash.handlers._worker._checks import count, flag, headings, line, lines
from fetchstash.handlers._worker._frames import ProtocolError
from fetchstash.handlers._worker._writer import headings_json
from fetchstash.hygiene import clean_line
from fetchstash.text import clip

MAX_COUNT = 10**12
"""Of pages, rows, members: more than any document has."""

T = TypeVar("T", bound=DocumentFacts)

_READERS: dict[Shape, Callable[[dict[str, Any], str, Fact], Any]] = {
    "line": lambda data, name, fact: line(data, name, fact.max_chars),
    "lines": lambda data, name, fact: lines(data, name, fact.max_items, fact.max_chars),
    "count": lambda data, name, _: None if data.get(name) is None else _count(data, name),
    "flag": lambda data, name, _: flag(data, name),
    "headings": lambda data, name, fact: tuple(headings(data, name, fact.max_items)),
}


def _count(data: dict[str, Any], name: str) -> int:
    if (value := count(data, name)) > MAX_COUNT:
        raise ProtocolError
    return value


def facts_json(facts: DocumentFacts) -> dict[str, Any]:
    """Return facts as JSON, clean and each within its bound."""
    return {f.name: _bounded(getattr(facts, f.name), f.metadata["fact"]) for f in fields(facts)}


def read_facts(data: dict[str, Any], cls: type[T]) -> dict[str, Any]:
    """Return the fields of ``cls`` out of a frame. Raises ProtocolError."""
    facts = {f.name: f.metadata["fact"] for f in fields(cls) if "fact" in f.metadata}
    return {name: _READERS[fact.shape](data, name, fact) for name, fact in facts.items()}


def _bounded(value: Any, fact: Fact) -> Any:
    match fact.shape:
        case "line":
            return clip(clean_line(value), fact.max_chars)
        case "lines":
            return [clip(clean_line(item), fact.max_chars) for item in value[: fact.max_items]]
        case "headings":
            return headings_json(value[: fact.max_items])
        case _:
            return value
