"""Limits of what is shown: the settings views.* and context.*."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fetchstash.errors import BadArgument
from fetchstash.text._cut import Measure, json_length, split, utf8_length


@dataclass(frozen=True, slots=True)
class Setting:
    """What a setting means, its inclusive bounds, and its values where only some are taken."""

    meaning: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()


def setting(
    default: object,
    meaning: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """Return a field of a dataclass that is a setting; config reads its description there."""
    described = Setting(meaning, low, high, choices)
    return field(default=default, metadata={"setting": described})


SHORT_MAX_CHARS = 10_000
"""The limit of grep, search and info where the caller names none."""

MIN_MAX_CHARS = 200


@dataclass(frozen=True, slots=True)
class ViewLimits:
    """Ceilings of the bodies, in characters; in UTF-8 bytes if ``count_bytes`` (as VS Code)."""

    default_max_chars: int = setting(
        30_000,
        "maxChars of get_search_content and artifact_slice when not given",
        low=200,
        high=100_000,
    )
    max_chars_ceiling: int = setting(
        100_000, "Most body characters of one result, whatever is asked for", low=200, high=100_000
    )
    inline_threshold: int = setting(
        30_000,
        "maxChars of fetch_content when not given: longer texts come as a preview",
        low=200,
        high=100_000,
    )
    preview_chars: int = setting(2_000, "Characters of a preview", low=1, high=100_000)
    structured: bool = setting(False, "Add structuredContent and output schemas to the results")
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
    max_tokens_per_file: int = setting(5_000, "Most tokens of one preview or read_file", low=1)
    max_total_output: int = setting(50_000, "Most characters of one preview or read_file", low=1)
    max_lines: int = setting(200, "Lines of a text preview", low=1)
    max_line_length: int = setting(1_000, "Characters of one line in a preview", low=1)
    max_nesting_depth: int = setting(5, "Depth of structured data in a preview", low=1)
    max_array_items: int = setting(50, "Items of one array in a preview", low=1)
    max_object_keys: int = setting(50, "Keys of one object in a preview", low=1)
    max_columns: int = setting(50, "Columns of a table in a preview", low=1)
    rows_head: int = setting(20, "First rows of a table in a preview", low=0)
    rows_tail: int = setting(10, "Last rows of a table in a preview", low=0)
    max_cell_length: int = setting(500, "Characters of one cell in a preview", low=1)
    max_image_size_bytes: int = setting(
        2_097_152, "Bytes of one picture that a model is shown", low=1024
    )
    max_image_edge_px: int = setting(1_568, "Longer edge of such a picture, in pixels", low=16)

    @property
    def lines(self) -> tuple[int, int]:
        """How many first and last lines are shown of a long text, two to one."""
        return split(self.max_lines, 2, 1)
