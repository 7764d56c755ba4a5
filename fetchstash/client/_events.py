"""Every decision tells what it was: to telemetry, and to whoever asked to be told. Never content."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fetchstash import telemetry
from fetchstash.client._sizes import text_tokens

OnEvent = Callable[[str, dict[str, Any]], None]
"""Called with an event's name and its attributes: compression, compaction, tool.result.oversized_excluded and others."""


def emit(on_event: OnEvent | None, name: str, attributes: dict[str, Any]) -> None:
    """Tell of a decision. An observer that fails changes nothing: the agent's request matters more."""
    telemetry.event(name, **attributes)
    if on_event:
        with suppress(Exception):
            on_event(name, attributes)


def tell_of_prompt(on_event: OnEvent | None, prompt: str, compacted_fields: int) -> None:
    """Tell of the prompt of a memory extractor: how long it is, and how many contents in it were made smaller."""
    figures = {
        "extractor_prompt_chars": len(prompt),
        "extractor_prompt_est_tokens": text_tokens(prompt),
        "extractor_compacted_fields": compacted_fields,
    }
    emit(on_event, "extractor.prompt", figures)
