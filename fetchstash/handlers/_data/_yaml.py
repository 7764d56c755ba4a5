"""YAML, and its values by path.

YAML's loaders expand merge keys (<<) without end and turn "no" into false. Here values are built
from the parser's events without recursion. A plain scalar is a number if JSON spells it so, and
each use of an alias counts its values again.

The outline is made from lines; values are read only for a path.
"""

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fetchstash.handlers._charset import decode, read_text
from fetchstash.handlers._contract import Hints, Part
from fetchstash.handlers._data import DataReason, _json_values
from fetchstash.handlers._data._aggregate import answer
from fetchstash.handlers._data._json_paths import value_at
from fetchstash.handlers._data._rows import value_rows
from fetchstash.handlers._parts import Reading, Streamed, TextParts
from fetchstash.text.facts import is_query
from fetchstash.text.ranges import Heading
from fetchstash.text.untyped import as_objects, is_array, is_object

_MAX_VALUES = 1_000_000
_MAX_DEPTH = 500
_CORE = {"!", *(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))}
# The core schema's words (YAML 1.2.2, section 10.3.2).
_WORDS = dict.fromkeys(("null", "Null", "NULL", "~", ""), None) | {
    word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")
}


def read_yaml(text: str) -> Any:
    """Return the value of a YAML document, or the list of several. Raises NoText for bad YAML."""
    import yaml  # noqa: PLC0415 - used here alone

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    builder = _Builder()
    with DataReason.BAD_YAML.instead_of(yaml.YAMLError):
        for event in yaml.parse(text, Loader=loader):
            builder.take(event)
    return builder.documents[0] if len(builder.documents) == 1 else builder.documents


def read_toml(text: str) -> Any:
    """Return the value of a TOML document, with dates as text. Raises NoText for bad TOML."""
    import tomllib  # noqa: PLC0415 - used here alone

    with DataReason.BAD_TOML.instead_of(tomllib.TOMLDecodeError):
        return _without_dates(tomllib.loads(text, parse_float=_json_values.Spelled.read))


def _without_dates(value: Any) -> Any:
    if is_object(value):
        return {key: _without_dates(item) for key, item in value.items()}
    if is_array(value):
        return [_without_dates(item) for item in value]
    return value.isoformat() if isinstance(value, dt.date | dt.time) else value


@dataclass(slots=True)
class _Open:
    """An open sequence or mapping; ``merged`` are the mappings behind ``<<``."""

    value: list[Any] | dict[str, Any]
    anchor: str | None
    counted: int
    key: str | None = None
    is_merge: bool = False
    merged: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


class _Builder:
    """Builds values from the parser's events."""

    def __init__(self) -> None:
        self.documents: list[Any] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0

    def take(self, event: Any) -> None:
        """Take the next event. Raises NoText for too many levels or values, or a cycle."""
        match type(event).__name__:
            case "DocumentStartEvent":
                self._anchors.clear()
            case "MappingStartEvent" | "SequenceStartEvent" as name:
                if len(self._open) == _MAX_DEPTH:
                    raise DataReason.YAML_DEPTH.error(limit=_MAX_DEPTH)
                value: Any = {} if name[0] == "M" else []
                self._open.append(_Open(value, event.anchor, self._count))
                self._grow(1)
            case "MappingEndEvent" | "SequenceEndEvent":
                self._end()
            case "ScalarEvent":
                self._grow(1)
                value = _scalar(event)
                if event.anchor:
                    self._anchors[event.anchor] = (value, 1)
                self._add(value, event.value, is_merge=event.value == "<<" and not event.style)
            case "AliasEvent":
                if event.anchor not in self._anchors:
                    raise DataReason.YAML_ANCHOR.error()
                value, size = self._anchors[event.anchor]
                self._grow(size)
                self._add(value)
            case _:
                pass

    def _grow(self, count: int) -> None:
        self._count += count
        if self._count > _MAX_VALUES:
            raise DataReason.YAML_ALIASES.error(limit=_MAX_VALUES)

    def _end(self) -> None:
        ended = self._open.pop()
        if isinstance(ended.value, dict):
            for merged in ended.merged:
                ended.value.update({k: v for k, v in merged.items() if k not in ended.value})
        if ended.anchor:
            self._anchors[ended.anchor] = (ended.value, self._count - ended.counted)
        self._add(ended.value)

    def _add(self, value: Any, spelled: str | None = None, *, is_merge: bool = False) -> None:
        """Add a value to the open collection; a mapping takes keys and values in turn.

        Keys that are no text keep their spelling.
        """
        if not self._open:
            self.documents.append(value)
            return
        outer = self._open[-1]
        if isinstance(outer.value, list):
            outer.value.append(value)
        elif outer.key is None:
            outer.key = _json_values.write(value) if spelled is None else spelled
            outer.is_merge = is_merge
        else:
            mappings = as_objects(value if is_array(value) else [value]) if outer.is_merge else []
            outer.merged += mappings
            if not mappings:
                outer.value[outer.key] = value
            outer.key = None


def _scalar(event: Any) -> Any:
    """Return a number, a word of the core schema, or text (always if quoted or tagged so)."""
    text: str = event.value
    if event.style or (event.tag or "!") not in _CORE:
        return text
    if text in _WORDS:
        return _WORDS[text]
    number = _json_values.number(text)
    return text if number is None else number


# A key of a mapping (YAML 1.2.2, section 7.4.2) with a small indent; deeper keys are left out.
_DEEPEST = 4
_KEY = re.compile(
    r"( {0,4})([\w.$/-][^:#\n]{0,100}|\"[^\"\n]{1,100}\"|'[^'\n]{1,100}'):(?:\s+(.*))?$"
)
_BLOCK_SCALAR = re.compile(r"(?:[&!]\S+\s+)*[|>][+-]?\d?[+-]?\s*(?:#.*)?$")
# A table of TOML or a section of INI.
_SECTION = re.compile(r"\s{0,8}(\[{1,2})\s*([^\[\]\n]{1,200}?)\s*\]{1,2}\s*(?:[#;].*)?$")

_TOML, _INI = "application/toml", "text/x-ini"
# A value takes some twenty times its bytes in the file.
_MAX_VALUE_BYTES = 16 * 2**20


class YamlHandler(Streamed, TextParts):
    """Reads YAML, TOML and INI."""

    name = "yaml"

    def read(self, source: Path, extracted: Reading) -> Iterator[Part]:
        """Yield the text with its keys or sections."""
        has_sections = extracted.hints.media_type in {_TOML, _INI}
        find = find_sections if has_sections else _Keys().find
        names: list[str] = []
        for chunk in read_text(source, extracted.hints.charset):
            headings = find(chunk)
            names += [h.title for h in headings if h.level == 1][: 20 - len(names)]
            yield Part(chunk, headings=tuple(headings))
        extracted.learn(structure_info=f"keys {', '.join(names)}" if names else "")

    def find(self, source: Path, path: str, hints: Hints) -> str:
        """Return the value at ``path`` (a pointer or a JSONPath) as JSON, or a query's answer.

        Raises OutOfRange, BadArgument or NoText.
        """
        if hints.media_type == _INI:
            raise DataReason.INI_VALUES.error()
        if source.stat().st_size > _MAX_VALUE_BYTES:
            raise DataReason.LARGE_FOR_VALUES.error(limit=_MAX_VALUE_BYTES)
        read = read_toml if hints.media_type == _TOML else read_yaml
        value = read(decode(source.read_bytes(), hints.charset).replace("\r\n", "\n"))
        is_key = is_object(value) and path in value  # which may be called like an aggregate
        if is_query(path) and not is_key:
            return answer(path, partial(value_rows, value))
        return value_at(value, path)


def find_sections(text: str) -> list[Heading]:
    """Return the tables or sections of ``text`` (lines from 1); dots in names make levels."""
    return [
        Heading(mark[2], 1 + mark[2].count("."), "lines", number)
        for number, line in enumerate(text.split("\n"), 1)
        if (mark := _SECTION.match(line[:300]))
    ]


class _Keys:
    """Finds keys, chunk by chunk. Lines of a block of text are no keys."""

    def __init__(self) -> None:
        self._block = -1  # the indent of the key whose block is open

    def find(self, text: str) -> list[Heading]:
        headings: list[Heading] = []
        for number, line in enumerate(text.split("\n"), 1):
            indent = len(line) - len(line.lstrip(" "))
            if self._block >= 0 and (indent > self._block or not line.strip()):
                continue
            self._block = -1
            key = _KEY.match(line[:300]) if indent <= _DEEPEST else None
            if key:
                headings.append(Heading(key[2].strip("\"'"), 2 if indent else 1, "lines", number))
                if key[3] and _BLOCK_SCALAR.match(key[3]):
                    self._block = indent
        return headings
