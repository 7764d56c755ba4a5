"""YAML, TOML and INI: kept as written, with keys and sections as the outline.

The outline is made from lines; values are read only for a path.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from fetchstash.handlers._charset import decode, read_text
from fetchstash.handlers._contract import Extracted, Hints, Part
from fetchstash.handlers._data import DataReason, _json_values
from fetchstash.handlers._data._yaml_values import read_toml, read_yaml
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._shared._part_text import TextParts
from fetchstash.text.ranges import Heading

# A key of a mapping (YAML 1.2.2, section 7.4.2) with a small indent; deeper keys are left out.
_DEEPEST = 4
_KEY = re.compile(
    r"( {0,4})([\w.$/-][^:#\n]{0,100}|\"[^\"\n]{1,100}\"|'[^'\n]{1,100}'):(?:\s+(.*))?$"
)
_BLOCK_SCALAR = re.compile(r"(?:[&!]\S+\s+)*[|>][+-]?\d?[+-]?\s*(?:#.*)?$")
# A table of TOML or a section of INI.
_SECTION = re.compile(r"\s{0,8}(\[{1,2})\s*([^\[\]\n]{1,200}?)\s*\]{1,2}\s*(?:[#;].*)?$")

_TOML, _INI = "application/toml", "text/x-ini"
_SECTIONED = {_TOML, _INI}
# A value takes some twenty times its bytes in the file.
_MAX_VALUE_BYTES = 16 * 2**20


class YamlHandler(TextParts):
    """Reads YAML, TOML and INI."""

    name = "yaml"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - text is kept whole
        """Return the text with its keys or sections."""
        extracted = Extracted(parts=None)
        find = find_sections if hints.media_type in _SECTIONED else _Keys().find
        extracted.parts = _parts(extracted, read_text(source, hints.charset), find)
        return extracted

    def find(self, source: Path, path: str, hints: Hints) -> str:
        """Return the value at ``path`` (a JSON pointer or a JSONPath) as JSON.

        Raises OutOfRange, BadArgument or NoText.
        """
        if hints.media_type == _INI:
            raise DataReason.INI_VALUES.error()
        if source.stat().st_size > _MAX_VALUE_BYTES:
            raise DataReason.LARGE_FOR_VALUES.error(limit=_MAX_VALUE_BYTES)
        read = read_toml if hints.media_type == _TOML else read_yaml
        value = read(decode(source.read_bytes(), hints.charset).replace("\r\n", "\n"))
        return _json_values.on_lines(_json_values.pick(value, path))


def _parts(
    extracted: Extracted, chunks: Iterator[str], find: Callable[[str], list[Heading]]
) -> Iterator[Part]:
    names: list[str] = []
    for chunk in chunks:
        headings = find(chunk)
        names += [heading.title for heading in headings if heading.level == 1][: 20 - len(names)]
        yield Part(chunk, headings=tuple(headings))
    extracted.learn(structure_info=f"keys {', '.join(names)}" if names else "")


def find_sections(text: str) -> list[Heading]:
    """Return the tables or sections of ``text`` (lines from 1); dots in names make levels."""
    marks = (
        (number, _SECTION.match(line[:300])) for number, line in enumerate(text.split("\n"), 1)
    )
    return [
        Heading(mark[2], 1 + mark[2].count("."), "lines", number) for number, mark in marks if mark
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
