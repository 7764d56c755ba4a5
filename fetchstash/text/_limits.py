"""Limits of what is shown: the settings views.* and context.*."""

from collections.abc import Mapping
from dataclasses import dataclass

from fetchstash.errors import BadArgument
from fetchstash.text._cut import Measure, json_length, split, utf8_length

SHORT_MAX_CHARS = 10_000
"""The limit of grep, search and info where the caller names none."""

MIN_MAX_CHARS = 200


@dataclass(frozen=True, slots=True)
class ViewLimits:
    """Ceilings of the bodies, in characters; in UTF-8 bytes if ``count_bytes`` (as VS Code)."""

    default_max_chars: int = 30_000
    max_chars_ceiling: int = 100_000
    inline_threshold: int = 30_000
    preview_chars: int = 2_000
    structured: bool = False
    count_bytes: bool = False

    @property
    def short_max_chars(self) -> int:
        """The limit of grep, search and info where the caller names none."""
        return min(SHORT_MAX_CHARS, self.max_chars_ceiling)

    @property
    def measure(self) -> Measure:
        """How the host counts a text."""
        if self.structured:
            return json_length
        return utf8_length if self.count_bytes else len

    def max_chars(self, asked: int | None, default: int) -> int:
        """Return the limit of a body as applied. Raises BadArgument below 200."""
        if asked is not None and asked < MIN_MAX_CHARS:
            raise BadArgument(
                f"{asked} characters are too few; the least is {MIN_MAX_CHARS}.",
                "Ask for more, or leave the limit out.",
            )
        return min(default if asked is None else asked, self.max_chars_ceiling)


@dataclass(frozen=True, slots=True)
class Truncation:
    """Bounds for a tool's result: over ``threshold`` characters only a preview is shown.

    The preview has at most so many tokens, and rows or lines of both ends.
    """

    threshold: int = 5_000
    max_preview_tokens: int = 500
    rows_head: int = 20
    rows_tail: int = 10
    lines_head: int | None = None
    lines_tail: int | None = None


TRUNCATIONS: Mapping[str, Truncation] = {
    "default": Truncation(),
    "sql_query": Truncation(2_000, 1_000, rows_head=30, rows_tail=10),
    "log_search": Truncation(10_000, 300, lines_head=50, lines_tail=20),
}
"""The default profiles of ``context_result`` by name."""


@dataclass(frozen=True, slots=True)
class PreviewLimits:
    """Bounds of previews, in the unit that the name says. The smallest that applies wins.

    ``structured_tokens`` bounds a JSON shape or a table. It is not configurable; it is small, so
    that a preview and a grep of dense records together stay under 900 tokens.
    """

    structured_tokens: int = 200
    max_tokens_per_file: int = 5_000
    max_total_output: int = 50_000
    max_lines: int = 200
    max_line_length: int = 1_000
    max_nesting_depth: int = 5
    max_array_items: int = 50
    max_object_keys: int = 50
    max_columns: int = 50
    rows_head: int = 20
    rows_tail: int = 10
    max_cell_length: int = 500
    max_image_size_bytes: int = 2_097_152
    max_image_edge_px: int = 1_568

    @property
    def lines(self) -> tuple[int, int]:
        """How many first and last lines are shown of a long text, two to one."""
        return split(self.max_lines, 2, 1)
