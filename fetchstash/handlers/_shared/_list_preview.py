"""A preview of a list: its first lines."""

from collections.abc import Sequence

from fetchstash.handlers._shared._table_preview import fits
from fetchstash.text import PreviewLimits, largest
from fetchstash.text.ranges import Preview


def list_preview(lines: Sequence[str], total: int, limits: PreviewLimits) -> Preview:
    """Return as many of the first ``lines`` as fit ``structured_tokens``; ``total`` counts all."""

    def text(count: int) -> str:
        more = [f"… {total - count:,} more …"] if total > count else []
        return "\n".join([*lines[:count], *more])

    shown = largest(len(lines), lambda count: fits(text(count), limits.structured_tokens))
    return Preview(text(shown), lines_shown=shown) if shown else Preview()
