"""Prompts of a memory extractor: a conversation as text, bounded by stubs and never by a cut.

They begin with the mark of ``_sections.py``, by which ``compact`` and ``rewrite`` know them again
in a conversation.
"""

from collections.abc import Mapping, Sequence

from fetchstash.client._compact import SHORT_ON_TIME_SECONDS, bounded_prompt, compact
from fetchstash.client._events import OnEvent, emit, emit_prompt
from fetchstash.client._formats import Format, Message, Part, Place, as_json, parts
from fetchstash.client._policy import Policy, State
from fetchstash.client._report import Report
from fetchstash.client._sections import EXTRACTION_MARK
from fetchstash.client._stubs import LONG_VALUE_CHARS, arguments_stub


def extractor_prompt(
    messages: Sequence[Message],
    format: Format,
    budget: int,
    state: State,
    remaining_seconds: float | None = None,
    *,
    policy: Policy | None = None,
    on_event: OnEvent | None = None,
) -> tuple[str | None, Report | None]:
    """Return the conversation as the prompt of a memory extractor, in about ``budget`` tokens.

    It is compacted as a request would be, and further where what a request protects is too much. No
    call's argument that is a document is ever raw in it, even where all would fit. With little of
    ``remaining_seconds`` left extraction is put off: both are None.
    """
    policy = policy or Policy()
    if remaining_seconds is not None and remaining_seconds < SHORT_ON_TIME_SECONDS:
        emit(on_event, "extraction.deferred", {"remaining_seconds": remaining_seconds})
        return None, None
    compacted, report = compact(messages, format, budget, state, policy=policy, on_event=on_event)
    all_parts = parts(compacted, format)
    long = [part for part in all_parts if part.kind == "call" and len(part.text) > LONG_VALUE_CHARS]
    stubs = {
        part.place: as_json(stub) for part in long if (stub := arguments_stub(part, policy.offload))
    }
    prompt = f"{EXTRACTION_MARK}\n\n{transcript(all_parts, stubs)}"
    prompt, more = bounded_prompt(prompt, budget, state, policy)
    emit_prompt(on_event, prompt, len(stubs) + report.reused + len(report.changes) + more)
    return prompt, report


def transcript(all_parts: Sequence[Part], instead: Mapping[Place, str] | None = None) -> str:
    """Return texts, calls and results as sections, each under its heading.

    ``instead`` has other texts for some of them.
    """
    shown = [part for part in all_parts if part.kind in {"text", "call", "result"} and part.text]
    return "\n\n".join(
        f"{_heading(part)}\n{(instead or {}).get(part.place, part.text)}" for part in shown
    )


def _heading(part: Part) -> str:
    return (
        f"[{part.role} calls {part.name.replace(']', ' ')[:100]}]"
        if part.kind == "call"
        else f"[{part.role}]"
    )
