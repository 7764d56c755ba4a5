"""Print the demonstration: plain text of 80 columns, bold and dim where a terminal allows it."""

import json
import os
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

COLUMNS = 80
HEAD_ROWS, TAIL_ROWS = 13, 5
Write = Callable[[str], None]


def to_stdout(line: str) -> None:
    """Print a line, with "?" for characters that the terminal's encoding lacks."""
    encoding = sys.stdout.encoding or "utf-8"
    print(line.encode(encoding, "replace").decode(encoding), flush=True)  # noqa: T201 - a program's output


class Screen:
    """Writes lines to ``write``.

    Styles them only if stdout is a terminal that is not dumb and NO_COLOR (no-color.org) is unset.
    """

    def __init__(self, write: Write | None = None) -> None:
        self._write = write or to_stdout
        self._styled = (
            write is None
            and sys.stdout.isatty()
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM") != "dumb"
        )

    def title(self, text: str) -> None:
        """Print the title of a step."""
        self._write("")
        self._write(self._style(text, "1"))

    def prose(self, text: str) -> None:
        """Print a sentence."""
        for row in textwrap.wrap(text, COLUMNS - 1) or [""]:
            self._write(row)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Show a call as a model makes it."""
        for row in call_rows(tool, arguments):
            self._write(self._style(row, "36"))

    def result(self, text: str) -> None:
        """Show the beginning and the end of a result."""
        for row in result_rows(text):
            self._write(self._style(row, "2"))

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Show a table: the first row is its header, the first column is text."""
        for number, row in enumerate(table_rows(rows)):
            self._write(row if number else self._style(row, "1"))

    def _style(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._styled else text


def call_rows(tool: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return ``tool(name=value, …)``, one argument a row if one row is too short for all."""
    written = [
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()
    ]
    whole = f"{tool}({', '.join(written)})"
    if len(whole) < COLUMNS:
        return [whole]
    rows = [
        row
        for argument in written
        for row in textwrap.wrap(argument + ",", COLUMNS - 5, break_on_hyphens=False)
    ]
    return [f"{tool}(", *(f"    {row}" for row in rows), ")"]


def result_rows(text: str) -> list[str]:
    """Return the first and the last rows of ``text``; a line takes three rows at most."""
    rows = [row for line in text.splitlines() for row in _wrapped(line)]
    left_out = len(rows) - HEAD_ROWS - TAIL_ROWS
    if left_out > 1:
        rows[HEAD_ROWS:-TAIL_ROWS] = [f"[... {left_out} more rows ...]"]
    return [f"| {row}".rstrip() for row in rows]


def _wrapped(line: str) -> list[str]:
    wrapper = textwrap.TextWrapper(
        COLUMNS - 3, max_lines=3, placeholder=" …", break_on_hyphens=False
    )
    return wrapper.wrap(line) or [""]


def table_rows(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return ``rows`` in columns: the first aligned left, the others right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]

    def line(row: Sequence[str]) -> str:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        return "  ".join(cells).rstrip()

    return [line(row) for row in rows]
