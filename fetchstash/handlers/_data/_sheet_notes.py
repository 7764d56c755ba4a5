"""Comments and charts of workbooks, which stand beside their cells."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from fetchstash.errors import NoText
from fetchstash.handlers._contract import Part
from fetchstash.handlers._office._common import OdfChart
from fetchstash.handlers._office._ooxml import Chart, Package
from fetchstash.handlers._shared._prose import Prose
from fetchstash.handlers._shared._xml_events import attribute, walk
from fetchstash.handlers._shared._zip import Zip

_MAX_MEMBERS = 20_000
_MAX_CHARTS = 200
_MAX_COMMENTS = 10_000
_CHART = re.compile(r"xl/charts/chart\d{1,5}\.xml")
_OBJECT = re.compile(r"Object \d{1,5}/content\.xml")


def read_notes(source: Path) -> Iterator[Part]:
    """Yield the comments and charts of an XLSX or ODS file, nothing of any other."""
    with source.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            return
    prose = Prose()
    with suppress(NoText), Zip(source, is_document=True) as container:
        package = Package(container)
        lines = (
            line
            for name, part in sheets_of(package)
            if package.is_new(part)
            for line in _comments(package, name, part)
        )
        comments = list(islice(lines, _MAX_COMMENTS))
        if comments:
            prose.heading("Comments", 2)
        for line in comments:
            prose.item(line)
        names = [entry.name for entry in islice(container.entries(), _MAX_MEMBERS)]
        for name in sorted(filter(_CHART.fullmatch, names), key=_number)[:_MAX_CHARTS]:
            chart = Chart()
            package.read_small(name, chart)
            chart.write(prose)
        for name in sorted(filter(_OBJECT.fullmatch, names), key=_number)[:_MAX_CHARTS]:
            drawn = OdfChart()
            with suppress(NoText):
                for _ in walk(package.chunks(name), drawn):
                    pass
            drawn.write(prose)
    yield from prose.rest()


def repeated_sheets(source: Path) -> dict[tuple[int, str], str]:
    """Return which sheets of an XLSX file, by number from 0 and name, show the part of an earlier.

    The values are the names of the earlier ones. Thousands of sheets may stand for one part, which
    is read once.
    """
    with source.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            return {}
    first, repeated = dict[str, str](), dict[tuple[int, str], str]()
    with suppress(NoText), Zip(source, is_document=True) as container:
        for number, (name, part) in enumerate(sheets_of(Package(container))):
            if part.lower() in first:  # names of parts ignore case (ECMA-376-2, section 6.2.2.3)
                repeated[number, name] = first[part.lower()]
            first.setdefault(part.lower(), name)
    return repeated


def _number(name: str) -> int:
    return int("".join(filter(str.isdecimal, name)))


def sheets_of(package: Package) -> Iterator[tuple[str, str]]:
    """Yield name and part of each sheet (ECMA-376-1, section 18.2.19)."""
    if "xl/workbook.xml" not in package:
        return
    names = _Names()
    package.read_small("xl/workbook.xml", names)
    relations = package.relations("xl/workbook.xml")
    for name, number in names.sheets:
        if number in relations:
            yield name, relations[number].target


def _comments(package: Package, sheet: str, part: str) -> Iterator[str]:
    relations = package.relations(part).values()
    # Threads of 2018 stand in both parts; the older one repeats them as one text.
    threaded = [r for r in relations if r.kind == "threadedComment"]
    for relation in threaded or [r for r in relations if r.kind == "comments"]:
        if not package.is_new(relation.target):
            continue
        reader = _Comments()
        package.read_small(relation.target, reader)
        for cell, author, text in reader.found:
            if text := " ".join(text.split()):
                by = f" ({author})" if author else ""
                yield f"{sheet}!{cell}{by}: {text}"


class _Names:
    """Collects the names of sheets and their relationships."""

    def __init__(self) -> None:
        self.sheets: list[tuple[str, str]] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "sheet":
            self.sheets.append((attributes.get("name", ""), _relationship(attributes)))

    def end(self, name: str) -> None:
        pass

    def text(self, data: str) -> None:
        pass


def _relationship(attributes: Mapping[str, str]) -> str:
    return next((value for key, value in attributes.items() if key.endswith(":id")), "")


class _Comments:
    """Collects cell, author and text of comments (ECMA-376-1, section 18.7)."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, str]] = []
        self._authors: list[str] = []
        self._open = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._open = name
        if name == "author":
            self._authors.append("")
        elif name in {"comment", "threadedComment"} and len(self.found) < _MAX_COMMENTS:
            number = attribute(attributes, "authorId")
            known = number.isdecimal() and int(number) < len(self._authors)
            author = self._authors[int(number)] if known else ""
            self.found.append((attribute(attributes, "ref"), author, ""))

    def end(self, name: str) -> None:
        del name
        self._open = ""

    def text(self, data: str) -> None:
        if self._open == "author":
            self._authors[-1] += data
        elif self._open in {"t", "text"} and self.found:
            cell, author, before = self.found[-1]
            self.found[-1] = cell, author, before + data
