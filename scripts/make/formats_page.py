"""Write the table of docs/handlers.md from the declarations of formats.

scripts/make/formats_page.py
"""

from itertools import groupby
from pathlib import Path

from fetchstash.handlers._contract import Format
from fetchstash.handlers._registry import built_in, handler_of, words

PAGE = Path(__file__).parents[2] / "docs" / "handlers.md"
BEGIN, END = "<!-- scripts/make/formats_page.py writes this -->\n", "<!-- until here -->\n"
HEAD = "| kind | handler | formats | extensions and file names | paths |\n|---|---|---|---|---|\n"


def page(text: str) -> str:
    """Return ``text`` with the table of all formats between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{HEAD}{''.join(rows())}{END}{after}"


def rows() -> list[str]:
    """Return a row for the formats of one kind and one handler."""

    def key(declared: Format) -> tuple[str, str]:
        return declared.kind, handler_of(declared).name

    grouped = groupby(sorted(built_in().all, key=key), key=key)
    return [row(kind, name, list(formats)) for (kind, name), formats in grouped]


def row(kind: str, handler: str, formats: list[Format]) -> str:
    """Return one row of the table."""
    ends = sorted({end for f in formats for end in (*f.extensions, *f.file_names)})
    paths = dict.fromkeys(path for f in formats for path in f.paths)
    cells = (
        f"`{kind}`",
        handler,
        words(formats),
        " ".join(ends),
        " ".join(f"`{path}`" for path in paths),
    )
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
