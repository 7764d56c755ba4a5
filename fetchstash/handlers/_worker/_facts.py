"""Facts as frames hold them, derived from the fields of DocumentFacts; both sides clean them."""

import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from fetchstash.handlers._worker._checks import count, flag, headings, line, lines
from fetchstash.handlers._worker._frames import ProtocolError
from fetchstash.handlers._worker._writer import headings_json
from fetchstash.text import clip
from fetchstash.text.facts import FACTS, PAGE_VERDICTS, DocumentFacts, Fact, Shape
from fetchstash.text.hygiene import clean_line

MAX_COUNT = 10**12
"""Of pages, rows, members: more than any document has."""

OF_SERVER = frozenset((
    "content_kind", "word", "is_text", "paths", "unit", "page_word", "pictures",
    "extraction_error", "leads_to",
))  # fmt: skip
"""Facts that the server itself knows: by the format that it chose, by the table of reasons, or by a
look at the document (_leads)."""

# RFC 6838, section 4.2.
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")

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
    return {
        f.name: _bounded(getattr(facts, f.name), f.metadata["fact"])
        for f in fields(facts)
        if f.name not in OF_SERVER
    }


def read_facts(data: dict[str, Any]) -> dict[str, Any]:
    """Return the facts in a frame. Raises ProtocolError.

    What stands outside the fence is not among them, but for page_verdict, a key of a table.
    """
    facts = {
        name: _READERS[fact.shape](data, name, fact)
        for name, fact in FACTS.items()
        if name not in OF_SERVER
    }
    if facts["page_verdict"] not in ("", *PAGE_VERDICTS):
        raise ProtocolError
    if not _MEDIA_TYPE.fullmatch(facts["media_type"]):
        facts["media_type"] = ""
    return facts


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
