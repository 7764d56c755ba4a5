"""Conversations as text: prompts of memory extractors and summarisers, and HistoryCompactor."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from inspect import isawaitable
from typing import Any, Generic, TypeVar

from fetchstash.client._compact import SHORT_ON_TIME_SECONDS, bounded_prompt, compact
from fetchstash.client._formats import EXTRACTION_MARK, Part, Place, as_json, parts, user_text
from fetchstash.client._policy import CompactionConfig, Format, Message, Policy, State
from fetchstash.client._protect import background_task, pair, units, untouchable
from fetchstash.client._sizes import OnEvent, Report, count_tokens, emit, emit_prompt
from fetchstash.client._streaming import is_large, off_loop
from fetchstash.client._stubs import LONG_VALUE_CHARS, arguments_stub
from fetchstash.text import tokens


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


Summarizer = Callable[[str], "str | Awaitable[str]"]
"""Given a part of a conversation as text, returns (or resolves to) its summary."""

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class CompactionResult(Generic[Kind]):
    """What a compaction made of a history, in messages of the kind that it was given.

    ``summary`` is the summariser's, None where there was none.
    """

    original_messages: list[Kind]
    compacted_messages: list[Kind]
    original_tokens: int
    compacted_tokens: int
    summary: str | None = None


OnCompaction = Callable[[CompactionResult[Any]], "Awaitable[None] | None"]


@dataclass(slots=True)
class HistoryCompactor:
    """Keeps the history of one conversation within bounds.

    A history is a list of plain messages in ``format``, or of PydanticAI's ``ModelMessage``; what
    comes back is of the same kind. Without a ``summarizer`` contents become stubs and the oldest
    messages one, as ``compact`` does it. With one, what is older than the untouchable parts is
    handed to it, and its summary takes that place. ``on_compaction``, which may be async, gets the
    result. A large history is compacted in a thread.
    """

    config: CompactionConfig | None = None
    summarizer: Summarizer | None = None
    on_compaction: OnCompaction | None = None
    format: Format = "openai_chat"
    policy: Policy = field(default_factory=Policy)
    state: State = field(default_factory=State)

    def __post_init__(self) -> None:
        tokens.preload()

    def count_tokens(self, messages: Sequence[Any]) -> int:
        """Return the tokens of a history: counted where tiktoken is installed, else estimated."""
        history = _History(messages, self.format)
        return count_tokens(history.data, history.format, self.state)

    def needs_compaction(self, messages: Sequence[Any]) -> bool:
        """Return whether a history is longer than ``max_tokens``."""
        return self.count_tokens(messages) > self._config.max_tokens

    async def compact(self, messages: Sequence[Kind]) -> CompactionResult[Kind]:
        """Compact a history to about ``target_tokens``, whether it needs it or not.

        Raises what the summariser raises; then nothing has changed.
        """
        history = _History(messages, self.format)
        large = is_large(history.data)
        before = await off_loop(self.count_tokens, messages, large=large)
        summary = None
        if self.summarizer:
            compacted, summary = await self._summarized(history, self.summarizer, large=large)
        else:
            compacted = await off_loop(self._stubbed, history, large=large)
        restored = history.restore(compacted)
        after = await off_loop(self.count_tokens, restored, large=large)
        result = CompactionResult(list(messages), restored, before, after, summary)
        if self.on_compaction:
            returned = self.on_compaction(result)
            if isawaitable(returned):
                await returned
        return result

    def create_history_processor(self) -> Callable[[list[Any]], Awaitable[list[Any]]]:
        """Return a history processor for PydanticAI, which compacts a history that needs it."""

        async def process(messages: list[Any]) -> list[Any]:
            large = is_large(_History(messages, self.format).data)
            if not await off_loop(self.needs_compaction, messages, large=large):
                return messages
            return (await self.compact(messages)).compacted_messages

        return process

    @property
    def _config(self) -> CompactionConfig:
        return self.config or CompactionConfig()

    def _stubbed(self, history: "_History") -> list[Message]:
        # Of the window that makes the target critical, so that what must go to reach it goes.
        share = self.policy.compaction_pressure_ratio_hard
        policy = replace(self.policy, compaction_target_ratio=share)
        window = round(self._config.target_tokens / share)
        return compact(history.data, history.format, window, self.state, policy=policy)[0]

    async def _summarized(
        self, history: "_History", summarizer: Summarizer, *, large: bool
    ) -> tuple[list[Message], str | None]:
        """Put the summary of all old units in the place of the first; what is untouchable stays."""
        messages = history.data
        all_parts = parts(messages, history.format)
        all_units = units(len(messages), all_parts, pair(all_parts))
        kept = untouchable(len(messages), all_parts, all_units) | background_task(all_parts)
        old = [unit for unit in all_units if kept.isdisjoint(range(unit.start, unit.end))]
        if not old:
            return list(messages), None
        numbers = [number for unit in old for number in range(unit.start, unit.end)]
        handed = [messages[number] for number in numbers]
        summary = summarizer(await off_loop(self._prompt, handed, history.format, large=large))
        text = await summary if isawaitable(summary) else summary
        summarized, gone = list[Message](), set(numbers)
        for number, message in enumerate(messages):
            if number == numbers[0]:
                words = f"(Summary of the earlier conversation: {text})"
                summarized.append(user_text(words, history.format))
            if number not in gone:
                summarized.append(message)
        return summarized, text

    def _prompt(self, messages: list[Message], format: Format) -> str:
        """Return what the summariser gets: within its bound, by stubs and not by a cut."""
        bound = self._config.summarizer_max_tokens
        compacted, _ = compact(messages, format, bound, State(), policy=self.policy)
        prompt = f"{EXTRACTION_MARK}\n\n{transcript(parts(compacted, format))}"
        bounded, _ = bounded_prompt(prompt, bound, State(), self.policy)
        return bounded.removeprefix(EXTRACTION_MARK).lstrip("\n")


class _History:
    """A history as plain data, and the way back to the messages that it was given as."""

    def __init__(self, messages: Sequence[Any], format: Format) -> None:
        self._converter: Any = None
        self._messages = messages
        self.data: list[Message] = list(messages)
        self.format: Format = format
        if any(hasattr(message, "parts") and hasattr(message, "kind") for message in messages):
            # Messages of PydanticAI exist only where the SDK is installed.
            self._converter = import_module("fetchstash.client.adapters.pydantic_ai")
            self.data, self.format = self._converter.to_data(messages), "anthropic"

    def restore(self, data: list[Message]) -> list[Any]:
        """Return messages of the kind that was given."""
        return self._converter.from_data(data, self._messages) if self._converter else data
