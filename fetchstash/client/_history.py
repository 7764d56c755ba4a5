"""HistoryCompactor: a conversation that goes on for long is summed up, by the caller's summariser or by stubs alone."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from inspect import isawaitable
from typing import Any

from fetchstash.client._compact import bounded_prompt, compact
from fetchstash.client._extraction import transcript
from fetchstash.client._formats import Format, Message, parts, user_text
from fetchstash.client._pairing import pair, units
from fetchstash.client._policy import Policy, State
from fetchstash.client._protect import background_task, untouchable
from fetchstash.client._sections import EXTRACTION_MARK
from fetchstash.client._sizes import measure

Summarizer = Callable[[str], "str | Awaitable[str]"]
"""Given a part of a conversation as text, returns (or resolves to) its summary."""


@dataclass(frozen=True, slots=True)
class CompactionConfig:
    """Above ``max_tokens`` a history is compacted to ``target_tokens``; ``summarizer_max_tokens`` bounds what a summariser gets."""

    max_tokens: int = 120_000
    target_tokens: int = 40_000
    summarizer_max_tokens: int = 180_000


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What a compaction made of a history. ``summary`` is the summariser's, None where there was none."""

    original_messages: list[Message]
    compacted_messages: list[Message]
    original_tokens: int
    compacted_tokens: int
    summary: str | None = None


OnCompaction = Callable[[CompactionResult], "Awaitable[None] | None"]


@dataclass(slots=True)
class HistoryCompactor:
    """Keeps the history of one conversation within bounds.

    Without a ``summarizer`` contents become stubs and the oldest messages one, as ``compact`` does
    it. With one, what is older than the untouchable parts is handed to it, and its summary takes
    that place. ``on_compaction``, which may be async, is told the result.
    """

    config: CompactionConfig | None = None
    summarizer: Summarizer | None = None
    on_compaction: OnCompaction | None = None
    format: Format = "openai_chat"
    policy: Policy = field(default_factory=Policy)
    state: State = field(default_factory=State)

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """Return the tokens of a history: counted where tiktoken is installed, else estimated."""
        return measure(messages, self.format, "tokens", self.state)

    def needs_compaction(self, messages: Sequence[Message]) -> bool:
        """Return whether a history is longer than ``max_tokens``."""
        return self.count_tokens(messages) > self._config.max_tokens

    async def compact(self, messages: Sequence[Message]) -> CompactionResult:
        """Compact a history to about ``target_tokens``, whether it needs it or not, and tell ``on_compaction``.

        Raises what the summariser raises; then nothing has changed.
        """
        before = self.count_tokens(messages)
        compacted, summary = (
            await self._summarized(messages) if self.summarizer else (self._stubbed(messages), None)
        )
        result = CompactionResult(
            list(messages), compacted, before, self.count_tokens(compacted), summary
        )
        if self.on_compaction:
            told = self.on_compaction(result)
            if isawaitable(told):
                await told
        return result

    def create_history_processor(self) -> Callable[[list[Any]], Awaitable[list[Any]]]:
        """Return a history processor for PydanticAI: its messages in, its messages out, compacted when they need it."""
        adapter = import_module("fetchstash.client.adapters.pydantic_ai")  # imports the SDK
        processor: Callable[[list[Any]], Awaitable[list[Any]]] = adapter.history_processor(self)
        return processor

    @property
    def _config(self) -> CompactionConfig:
        return self.config or CompactionConfig()

    def _stubbed(self, messages: Sequence[Message]) -> list[Message]:
        # The target is what must not be exceeded; stages run until well below the window that they
        # are given.
        window = round(self._config.target_tokens / self.policy.compaction_pressure_ratio_hard)
        return compact(messages, self.format, window, self.state, policy=self.policy)[0]

    async def _summarized(self, messages: Sequence[Message]) -> tuple[list[Message], str | None]:
        """Put the summary of all old units in the place of the first of them; what is untouchable stays where it is."""
        assert self.summarizer is not None
        found = parts(messages, self.format)
        cut = units(len(messages), found, pair(found))
        kept = untouchable(len(messages), found, cut) | background_task(found)
        old = [unit for unit in cut if kept.isdisjoint(range(unit.start, unit.end))]
        if not old:
            return list(messages), None
        numbers = [number for unit in old for number in range(unit.start, unit.end)]
        summary = self.summarizer(self._handed([messages[number] for number in numbers]))
        text = await summary if isawaitable(summary) else summary
        gone = set(numbers)
        compacted: list[Message] = []
        for number, message in enumerate(messages):
            if number == numbers[0]:
                compacted.append(
                    user_text(f"(Summary of the earlier conversation: {text})", self.format)
                )
            if number not in gone:
                compacted.append(message)
        return compacted, text

    def _handed(self, messages: list[Message]) -> str:
        """Return what the summariser gets: within its bound, by stubs and not by a cut."""
        bound = self._config.summarizer_max_tokens
        compacted, _ = compact(messages, self.format, bound, State(), policy=self.policy)
        prompt = f"{EXTRACTION_MARK}\n\n{transcript(parts(compacted, self.format))}"
        bounded, _ = bounded_prompt(prompt, bound, State(), self.policy)
        return bounded.removeprefix(EXTRACTION_MARK).lstrip("\n")
