"""What a model is shown of a value, and the same as data, both made by render."""

from dataclasses import replace
from typing import TYPE_CHECKING

from fetchstash.cli._run import aside, print_objects, print_text

if TYPE_CHECKING:
    from fetchstash.config import Settings
    from fetchstash.render import Value

_ALL = 10**12


def print_as_model(settings: "Settings", value: "Value", max_chars: int | None = None) -> None:
    """Print the text that a tool's result has; its pictures are only said to be there."""
    from fetchstash.render import Host, view_of  # noqa: PLC0415 - heavy

    view = view_of(Host(settings.views, preview=settings.context), value, max_chars)
    print_text(view.text + "\n")
    for data, media_type in view.pictures:
        aside(f"With it goes a picture, {media_type}, {len(data):,} bytes.")


def print_json(settings: "Settings", value: "Value") -> None:
    """Print a value as data, nothing of it cut."""
    from fetchstash.render import Host, view_of  # noqa: PLC0415 - heavy

    limits = replace(
        settings.views, default_max_chars=_ALL, max_chars_ceiling=_ALL, count_bytes=False
    )
    view = view_of(Host(limits, preview=settings.context), value)
    print_objects(view.records or view.facts)
