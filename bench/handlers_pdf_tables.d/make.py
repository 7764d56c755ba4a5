"""Write PDF files with known tables by several programs, and their rows as JSON beside them.

    python make.py FOLDER

Needs reportlab, fpdf2 and typst; bench/handlers_pdf_tables.py runs it.
"""
# ruff: noqa: PLC0415, D102, SIM905 - each program is imported where it writes; words read better
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WORDS = """amber basin cedar delta ember fjord gravel harbour inlet jetty kelp lagoon marsh nectar
orchard prairie quarry ridge sluice timber upland valley weir yarrow zephyr bridge canal drainage
estuary furrow glacier heather island juniper kiln ledge meadow notch osier pasture""".split()
UNITS = ("m", "kg", "%", "h", "kW", "ha")
PROSE = (
    "The wardens open the lower gate at the mark, and the reservoir fills slowly in spring. "
    "What they measure is written down every evening and compared with the years before. "
)
Row = list[str]


class Made:
    """A document's tables: rows of cells as a reader sees them, the header first."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def phrase(self, least: int = 1, most: int = 3) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.randint(least, most)))

    def number(self) -> str:
        value = self.random.uniform(1, 9_000)
        return self.random.choice((f"{value:,.0f}", f"{value:.1f}", f"{value:,.2f}"))

    def table(self, rows: int, columns: int, *, longest: int = 2) -> list[Row]:
        """Return a table: names first, then numbers with one column of words."""
        worded = self.random.randrange(1, columns)
        units = self.random.choices(UNITS, k=columns)
        header = ["Station", *(f"{self.phrase(1, 1).title()} {u}" for u in units[1:])]
        return [header] + [
            [self.phrase(1, longest)]
            + [
                self.phrase(1, longest) if column == worded else self.number()
                for column in range(1, columns)
            ]
            for _ in range(rows)
        ]

    def sparse(self, table: list[Row], share: float) -> list[Row]:
        """Empty some cells behind the first of each row."""
        return [table[0]] + [
            [row[0], *("" if self.random.random() < share else cell for cell in row[1:])]
            for row in table[1:]
        ]


Case = tuple[str, list[list[Row]], bytes]


def with_reportlab(made: Made) -> Iterator[Case]:
    import io

    from reportlab.lib import colors
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table

    styles = getSampleStyleSheet()
    grid = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)]
    header = [
        ("LINEABOVE", (0, 0), (-1, 0), 1, colors.black),
        ("LINEBELOW", (0, 0), (-1, 0), 0.5, colors.black),
        ("LINEBELOW", (0, -1), (-1, -1), 1, colors.black),
    ]
    zebra = [("ROWBACKGROUNDS", (0, 1), (-1, -1), [colors.whitesmoke, colors.lightgrey])]
    numbers = [("ALIGN", (1, 1), (-1, -1), "RIGHT")]

    def document(tables: list[list[Row]], style: list[Any], **options: Any) -> bytes:
        out = io.BytesIO()
        wraps, spans = options.pop("wraps", False), options.pop("spans", ())
        story: list[Any] = [Paragraph("Report of the stations", styles["Title"])]
        for number, rows in enumerate(tables):
            story += [Paragraph(PROSE * 2, styles["BodyText"]), Spacer(1, 8)]
            cells: list[list[Any]] = [list(row) for row in rows]
            for (left, top), (right, bottom) in spans:
                for r in range(top, bottom + 1):
                    for c in range(left, right + 1):
                        if (c, r) != (left, top):
                            cells[r][c] = ""
            if wraps:
                cells = [[Paragraph(cell, styles["BodyText"]) for cell in row] for row in cells]
            story.append(
                Table(
                    cells,
                    style=[*style, *(("SPAN", *span) for span in spans)],
                    repeatRows=1,
                    **options,
                )
            )
            story += [
                Spacer(1, 8),
                Paragraph(f"So ends part {number + 1}. {PROSE}", styles["BodyText"]),
            ]
        SimpleDocTemplate(out, pagesize=A4).build(story)
        return out.getvalue()

    for name, style in (
        ("grid", grid),
        ("grid right", [*grid, *numbers]),
        ("header rule", header),
        ("header rule right", [*header, *numbers]),
        ("zebra", zebra),
        ("no rules", []),
        ("no rules right", numbers),
    ):
        tables = [made.table(9, 4), made.table(14, 6)]
        yield f"reportlab {name}", tables, document(tables, style)
    groups = [("LINEBELOW", (0, row), (-1, row), 0.5, colors.black) for row in (0, 1, 4, 6, 9, 14)]
    for name, style in (
        ("groups", groups),
        ("groups right", [*groups, *numbers]),
        ("groups boxed", [*groups, ("LINEAFTER", (0, 0), (-1, -1), 0.5, colors.black), *header]),
    ):
        tables = [made.table(14, 4), made.table(14, 6)]
        yield f"reportlab {name}", tables, document(tables, style)
        tables = [made.table(14, 4, longest=5)]
        options = {"wraps": True, "colWidths": [130, 80, 80, 80]}
        yield f"reportlab {name} wrapped", tables, document(tables, style, **options)
    tables = [made.table(8, 4, longest=9)]
    yield "reportlab grid wrapped", tables, document(tables, grid, wraps=True, colWidths=[110] * 4)
    tables = [made.table(8, 4, longest=9)]
    yield (
        "reportlab header rule wrapped",
        tables,
        document(tables, header, wraps=True, colWidths=[110] * 4),
    )
    tables = [made.sparse(made.table(16, 5), 0.3)]
    yield "reportlab grid sparse", tables, document(tables, grid)
    tables = [made.sparse(made.table(16, 5), 0.2)]
    yield "reportlab no rules sparse", tables, document(tables, [])
    tables = [made.table(110, 5)]
    yield "reportlab grid long", tables, document(tables, grid)
    tables = [made.table(110, 5)]
    yield "reportlab no rules long", tables, document(tables, numbers)
    spanned = made.table(8, 4)
    for row in (2, 3):
        spanned[row][0] = spanned[1][0]
    yield (
        "reportlab grid spans",
        [spanned],
        document([spanned], grid, spans=[((0, 1), (0, 3))]),
    )
    wide = made.table(8, 4)
    wide[4] = [made.phrase(3, 4), "", "", ""]
    yield "reportlab grid wide", [wide], document([wide], grid, spans=[((0, 4), (3, 4))])


def with_fpdf2(made: Made) -> Iterator[Case]:
    from fpdf import FPDF

    def document(tables: list[list[Row]], **options: Any) -> bytes:
        pdf = FPDF()
        pdf.add_page()
        pdf.set_font("Helvetica", size=10)
        for rows in tables:
            pdf.multi_cell(0, 5, PROSE * 2, new_x="LMARGIN", new_y="NEXT")
            pdf.ln(3)
            with pdf.table(**options) as table:
                for row in rows:
                    cells = table.row()
                    for cell in row:
                        cells.cell(cell)
            pdf.ln(3)
        pdf.multi_cell(0, 5, PROSE)
        return bytes(pdf.output())

    for layout in (
        "ALL", "NO_HORIZONTAL_LINES", "HORIZONTAL_LINES", "MINIMAL", "INTERNAL", "NONE",
        "SINGLE_TOP_LINE",
    ):  # fmt: skip
        tables = [made.table(9, 4), made.table(10, 5)]
        yield f"fpdf2 {layout}", tables, document(tables, borders_layout=layout)
    tables = [made.table(60, 4)]
    yield "fpdf2 ALL long", tables, document(tables)
    tables = [made.table(8, 4, longest=9)]
    yield "fpdf2 ALL wrapped", tables, document(tables)


def with_typst(made: Made) -> Iterator[Case]:
    import typst

    def content(text: str) -> str:
        return "".join("\\" + c if c in "#$*_[]@<>`\\" else c for c in text)

    def document(tables: list[list[Row]], arguments: str) -> bytes:
        lines = ["= Report of the stations"]
        for rows in tables:
            cells = "\n".join(
                ", ".join(f"[{content(cell)}]" for cell in row) + "," for row in rows[1:]
            )
            header = ", ".join(f"[*{content(cell)}*]" for cell in rows[0])
            lines += [
                PROSE * 2,
                f"#table(columns: {len(rows[0])}, {arguments}\ntable.header({header}),\n{cells})",
                PROSE,
            ]
        return typst.compile("\n\n".join(lines).encode())

    for name, arguments in (
        ("grid", ""),
        ("none", "stroke: none,"),
        ("right", "stroke: none, align: right,"),
        ("header", "stroke: none, fill: (_, y) => if y == 0 { gray },"),
        ("booktabs", "stroke: (x, y) => (top: if y < 2 { 0.6pt } else { 0pt }, bottom: 0.6pt),"),
        ("centred", "align: center + horizon,"),
    ):
        tables = [made.table(9, 4), made.table(12, 6)]
        yield f"typst {name}", tables, document(tables, arguments)
    tables = [made.table(80, 5)]
    yield "typst grid long", tables, document(tables, "")
    tables = [made.table(8, 4, longest=12)]
    yield "typst grid wrapped", tables, document(tables, "align: horizon,")
    tables = [made.table(8, 4, longest=12)]
    yield "typst rows wrapped", tables, document(tables, "stroke: (x: none, y: 0.5pt),")


def by_columns(made: Made) -> Iterator[Case]:
    """Tables whose cells are written column by column, which no program above does."""
    import io

    from reportlab.pdfgen.canvas import Canvas

    for name, ruled, rows, columns in (
        ("no rules", False, 12, 4),
        ("grid", True, 12, 4),
        ("no rules", False, 25, 6),
        ("grid", True, 25, 6),
    ):
        table = made.table(rows, columns, longest=1)
        out = io.BytesIO()
        canvas = Canvas(out)
        canvas.setFont("Helvetica", 10)
        width, top = 480 / columns, 700
        for line in range(3):
            canvas.drawString(60, 780 - 14 * line, PROSE[:86])
        for column in range(columns):
            for row, cells in enumerate(table):
                canvas.drawString(64 + width * column, top - 18 * row, cells[column])
        if ruled:
            xs = [60 + width * column for column in range(columns + 1)]
            canvas.grid(xs, [top + 12 - 18 * row for row in range(len(table) + 1)])
        for line in range(3):
            canvas.drawString(60, top - 18 * len(table) - 14 * (line + 1), PROSE[:86])
        canvas.save()
        yield f"columns {name} {columns}", [table], out.getvalue()


def main() -> None:
    folder = Path(sys.argv[1])
    made = Made(7)
    for write in (with_reportlab, with_fpdf2, with_typst, by_columns):
        for name, tables, data in write(made):
            (folder / f"{name}.pdf").write_bytes(data)
            (folder / f"{name}.json").write_text(json.dumps(tables))


if __name__ == "__main__":
    main()
