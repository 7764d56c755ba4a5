"""How much of a document a preview shows, as data and in words."""

from dataclasses import dataclass
from typing import Self

from fetchstash.text.ranges import Preview
from fetchstash.text.tokens import TokenCount

_UNITS = ("rows", "columns", "lines")


@dataclass(frozen=True, slots=True)
class TruncationInfo:
    """How much of a text is shown: rows and columns of a table, lines of a text, else None.

    ``cells_truncated`` counts the cells of which only the beginning is shown. Tokens are o200k,
    counted where they are ``exact``, else estimated. ``total_output_limit_reached``:
    context.max_total_output ended it.
    """

    lines_shown: int | None = None
    columns_shown: int | None = None
    rows_shown: int | None = None
    cells_truncated: int = 0
    tokens_shown: int = 0
    total_tokens: int = 0
    total_output_limit_reached: bool = False
    total_lines: int | None = None
    total_columns: int | None = None
    total_rows: int | None = None
    tokens_shown_exact: bool = True
    total_tokens_exact: bool = True

    @classmethod
    def of(
        cls,
        preview: Preview,
        total_lines: int,
        shown: TokenCount,
        total: TokenCount,
        *,
        total_output_limit_reached: bool,
    ) -> Self:
        """Return what ``preview`` shows of a text, at ``shown`` of ``total`` tokens."""
        return cls(
            lines_shown=preview.lines_shown,
            columns_shown=preview.columns_shown,
            rows_shown=preview.rows_shown,
            cells_truncated=preview.cells_truncated,
            tokens_shown=shown.tokens,
            total_tokens=total.tokens,
            total_output_limit_reached=total_output_limit_reached,
            total_lines=total_lines,
            total_columns=preview.total_columns,
            total_rows=preview.total_rows,
            tokens_shown_exact=shown.exact,
            total_tokens_exact=total.exact,
        )

    def line(self) -> str:
        """Return it as a line: ``[Shown: 30 of 5000 rows, 1 cell cut, 480 of ≈20100 tokens.]``."""
        pairs = [
            (name, getattr(self, f"{name}_shown"), getattr(self, f"total_{name}"))
            for name in _UNITS
        ]
        parts = [
            f"{shown} of {total} {name}"
            for name, shown, total in pairs
            if shown is not None and total is not None
        ]
        if self.cells_truncated:
            parts.append(
                f"{self.cells_truncated} cell{'s' if self.cells_truncated > 1 else ''} cut"
            )
        shown = TokenCount(self.tokens_shown, self.tokens_shown_exact)
        total = TokenCount(self.total_tokens, self.total_tokens_exact)
        return f"[Shown: {', '.join([*parts, f'{shown} of {total} tokens'])}.]"
