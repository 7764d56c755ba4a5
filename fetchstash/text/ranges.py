"""Places of the parts of a text: handlers report it, the store records it, slices read it."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

Unit = Literal["lines", "chars", "bytes", "pages", "rows"]


@dataclass(frozen=True, slots=True)
class Heading:
    """An entry of an outline. ``start`` counts from 1: a heading's line, a bookmark's page."""

    title: str
    level: int
    unit: Unit
    start: int

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data; an outline may have thousands, and asdict is slow."""
        return {"title": self.title, "level": self.level, "unit": self.unit, "start": self.start}


@dataclass(frozen=True, slots=True)
class Table:
    """A table with one row a line: row r (from 1, without the header) is ``first_line + r - 1``.

    ``title`` is the sheet's name, "" where the document is one table.
    """

    title: str
    first_line: int
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Preview:
    """A preview of a document that does not fit; fields that do not apply are None.

    ``sample`` stands behind ``text`` where there is room for all of it, else not at all: half of it
    would be no JSON.
    """

    text: str = ""
    sample: str = ""
    lines_shown: int | None = None
    rows_shown: int | None = None
    total_rows: int | None = None
    columns_shown: int | None = None
    total_columns: int | None = None
    cells_truncated: int = 0

    @property
    def whole(self) -> str:
        """The text with its sample."""
        return f"{self.text}\n{self.sample}" if self.sample else self.text

    def without_sample(self) -> "Preview":
        """Return the text alone; the records were in the sample."""
        return replace(self, sample="", rows_shown=self.rows_shown and 0) if self.sample else self


@dataclass(frozen=True, slots=True)
class Ranges:
    """Places of the parts of a stored text.

    ``pages[i]`` is the character at which page ``i + 1`` begins; it ends where the next begins, the
    last at the end of the text. ``preview`` is what the handler would show where the whole
    fits (without text: the document's own). ``left_out`` is what the text leaves out, to be
    searched, where that is short enough to be kept ("": the handler reads it out of the document
    again).
    """

    pages: tuple[int, ...] = ()
    tables: tuple[Table, ...] = ()
    preview: Preview = field(default_factory=Preview)
    left_out: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data, as stored and as sent by the worker."""
        preview = {name: getattr(self.preview, name) for name in Preview.__slots__}
        tables = [[t.title, t.first_line, t.rows, t.columns] for t in self.tables]
        left_out = {"left_out": self.left_out} if self.left_out else {}
        return {"pages": list(self.pages), "tables": tables, "preview": preview, **left_out}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Ranges":
        """Parse the output of ``to_json``.

        Raises KeyError, TypeError or ValueError on anything else.
        """
        return cls(
            pages=tuple(int(start) for start in data["pages"]),
            tables=tuple(
                Table(str(t), int(first), int(rows), int(cols))
                for t, first, rows, cols in data["tables"]
            ),
            preview=Preview(**data["preview"]),
            left_out=str(data.get("left_out", "")),
        )
