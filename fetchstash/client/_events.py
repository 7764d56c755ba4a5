"""Events of the client's decisions, for telemetry and for an observer. They never hold content."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fetchstash.client._sizes import text_tokens
from fetchstash.system import telemetry

OnEvent = Callable[[str, dict[str, Any]], None]
"""Called with an event's name (compression, compaction and others) and its attributes."""


def emit(on_event: OnEvent | None, name: str, attributes: dict[str, Any]) -> None:
    """Report a decision. An observer that fails changes nothing: the agent's request goes first."""
    telemetry.event(name, **attributes)
    if on_event:
        with suppress(Exception):
            on_event(name, attributes)


def emit_prompt(on_event: OnEvent | None, prompt: str, compacted_fields: int) -> None:
    """Report the prompt of a memory extractor: its length, and how many contents were shortened."""
    figures = {
        "extractor_prompt_chars": len(prompt),
        "extractor_prompt_est_tokens": text_tokens(prompt),
        "extractor_compacted_fields": compacted_fields,
    }
    emit(on_event, "extractor.prompt", figures)
