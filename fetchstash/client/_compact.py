"""Make a request smaller: before it is sent (compact), or after it was refused (rewrite).

compact touches nothing below the soft threshold. Above it stubs take the place of call arguments,
then of tool results, then of older texts, oldest first, until the request is well below it again:
the room between keeps the next requests from being compacted, and a prompt cache warm. Above the
hard threshold the oldest messages are merged, then critical texts go one by one, then results of
the latest exchange keep only a preview.

extractor_prompt and HistoryCompactor make a text of a conversation, for memory and summaries.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from inspect import isawaitable
from typing import Any, Generic, TypeVar

from fetchstash.client._classify import classify
from fetchstash.client._draft import Draft
from fetchstash.client._formats import (
    EXTRACTION_MARK,
    Part,
    Place,
    as_json,
    parts,
    plain,
    user_text,
)
from fetchstash.client._policy import CompactionConfig, Format, Message, Policy, State
from fetchstash.client._protect import background_task, pair, units, untouchable
from fetchstash.client._sizes import (
    OnEvent,
    Report,
    Target,
    Tier,
    count_tokens,
    emit,
    emit_prompt,
    text_tokens,
)
from fetchstash.client._streaming import is_large, off_loop
from fetchstash.client._stubs import (
    HEAVY_KINDS,
    LONG_VALUE_CHARS,
    arguments_stub,
    facts_of,
    message_hash,
)
from fetchstash.errors import type_checked
from fetchstash.text import tokens

SHORT_ON_TIME_SECONDS = 10
"""With less time left than this only what must be done is done."""

LARGE_TOKENS = 250
"""A rewrite leaves smaller results and arguments: they give less than they cost in meaning."""

_KINDS = {1: "call", 2: "result"}
"""What a stage is about; the third is about texts."""

_log = logging.getLogger("fetchstash.client")


@type_checked
def rewrite(
    messages: Sequence[Message],
    format: Format,
    target: Target | int,
    policy: Policy | None = None,
    state: State | None = None,
    *,
    prefix: int = 0,
) -> tuple[list[Message], Report]:
    """Replace contents by stubs until the request is within ``target`` (a number: tokens).

    Each stub stands where the content stood. Stubs of this conversation come back first. Then
    results of PDF, office and binary contents go, then other large results, then large arguments of
    calls, each oldest first; at last results of the latest exchange keep a preview, and first where
    they alone are too large. The first ``prefix`` messages, the system prompt, the first task, the
    last user turn and the calls of the latest exchange stay byte for byte. Returns new messages
    (what was not changed is shared) and the report, which says if nothing could be shrunk enough.
    """
    goal = target if isinstance(target, Target) else Target(target)
    draft = Draft(messages, format, state or State(), policy or Policy(), prefix, goal.unit)
    report = shrink(draft, goal.size, draft.size, for_retry=False)
    return draft.result(), report


def shrink(draft: Draft, goal: int, before: int, *, for_retry: bool) -> Report:
    """Shrink a draft to ``goal`` and return the report; a retry shrinks older messages, too.

    ``before`` is the size that the report compares with.
    """
    # What was decided before comes first: deciding anew would cool the prompt cache of every later
    # request of the conversation.
    draft.reapply()
    draft.stub_unavoidable(goal)
    results = draft.free_parts("result", LARGE_TOKENS)
    kinds = {part.place: facts_of(plain(part.value)).content_kind for part in results}
    # PDF and office texts lie in an artifact and can be read again; what a search or a shell
    # returned often cannot.
    draft.stub_until(goal, sorted(results, key=lambda p: kinds[p.place] not in HEAVY_KINDS), 2)
    draft.stub_until(goal, draft.free_parts("call", LARGE_TOKENS), 1)
    # Stubs of results and calls alone left 27 % of the requests of 11 replayed transcripts over
    # budget.
    if for_retry and draft.size > goal:
        draft.stub_until(goal, draft.free_texts(), 3)
        draft.merge_until(goal)
        draft.stub_critical(goal)
    draft.stub_latest(goal)
    return replace(draft.report(before, goal), unshrinkable=draft.unshrinkable())


def tier_of(size: int, budget: int, policy: Policy) -> Tier:
    """Return the tier of messages of ``size`` tokens where ``budget`` tokens are theirs."""
    if size <= budget * policy.compaction_pressure_ratio_soft:
        return "normal"
    return "pressure" if size <= budget * policy.compaction_pressure_ratio_hard else "critical"


@type_checked
def compact(
    messages: Sequence[Message],
    format: Format,
    budget: int,
    state: State,
    remaining_seconds: float | None = None,
    *,
    policy: Policy | None = None,
    prefix: int = 0,
    window: int | None = None,
    on_event: OnEvent | None = None,
) -> tuple[list[Message], Report]:
    """Return ``messages`` compacted for ``budget`` tokens, and what was done.

    The budget is the context window less what else is in it: system prompt, tools, output. Give the
    same ``state`` for the same conversation, and its messages as they were, not as they were
    compacted before. A stub of this conversation stays a stub. Give the ``window`` to have
    each tool result above ``policy.oversized_fraction`` of it replaced by an oversized stub. With
    little of ``remaining_seconds`` left only a request that would not fit is touched, as far as it
    must be.
    """
    policy = policy or Policy()
    draft = Draft(messages, format, state, policy, prefix)
    before = draft.size
    tier: Tier = "normal"
    hurried = remaining_seconds is not None and remaining_seconds < SHORT_ON_TIME_SECONDS
    if policy.compaction_mode == "legacy":
        draft.skipped["no_pressure"] += 1
        hurried = False
    else:
        draft.reapply()
        if window:
            draft.stub_oversized(window, on_event)
        tier = tier_of(draft.size, budget, policy)
        hard = int(budget * policy.compaction_pressure_ratio_hard)
        if tier == "critical":
            draft.stub_unavoidable(hard)
        if tier == "normal":
            draft.skipped["cache_hit" if draft.reused else "no_pressure"] += draft.reused or 1
        elif not hurried:
            # Well below the threshold, and not just under it: over 11 transcripts (1,177 requests)
            # freeing just enough each time cost 9.2 times the uncached tokens, freeing to 45 % of
            # the budget 3.4 times.
            target = int(budget * policy.compaction_target_ratio)
            _stages(draft, target, 1, 2, 3)
            if draft.size > hard:
                draft.merge_until(target)
            draft.stub_critical(hard)
            draft.stub_latest(hard)
        # Short on time: only what makes the request fit. Texts and merges, which lose most, are
        # left to the next call.
        elif tier == "critical":
            _stages(draft, hard, 1, 2)
            draft.stub_latest(hard)
    report = replace(draft.report(before, budget), tier=tier)
    _emit(draft, report, hurried, on_event)
    return draft.result(), report


def _stages(draft: Draft, goal: int, *stages: int) -> None:
    """Put stubs, stage by stage and oldest first, until the size is within ``goal``."""
    for stage in stages:
        if draft.size > goal:
            free = draft.free_texts() if stage == 3 else draft.free_parts(_KINDS[stage])
            draft.stub_until(goal, free, stage)


def reapply(
    messages: Sequence[Message], format: Format, state: State, policy: Policy, prefix: int = 0
) -> Sequence[Message]:
    """Return ``messages`` with the stubs and merges that are in force, and nothing new."""
    if not state.stubs and not state.merges:
        return messages
    draft = Draft(messages, format, state, policy, prefix)
    draft.reapply()
    return draft.result()


def bounded_prompt(prompt: str, budget: int, state: State, policy: Policy) -> tuple[str, int]:
    """Return an extractor's prompt within ``budget`` tokens, as far as stubs go, and their number.

    What a request protects (the task, the latest exchange) is only quoted in it, and is bounded
    like everything else.
    """
    draft = Draft([{"role": "user", "content": prompt}], "openai_chat", state, policy)
    _stages(draft, budget, 1, 2, 3)
    text: str = draft.result()[0]["content"]
    return text, len(draft.changes)


def _emit(draft: Draft, report: Report, hurried: bool, on_event: OnEvent | None) -> None:
    """Report a compaction, the prompt of an extractor in it, and too many compactions."""
    calls, bound = _calls_in_iteration(draft), draft.policy.churn_warning
    reasons = sorted(reason for reason, times in draft.skipped.items() if times)
    stages = Counter(change.stage for change in draft.new)
    attributes: dict[str, Any] = {
        "compaction_tier": report.tier,
        "compaction_stage": draft.stage,
        "compaction_candidate_count": draft.candidates,
        "compaction_skipped_reason": ",".join(reasons),
        "compaction_hurried": hurried,
        "compactor_calls": calls,
        **{f"skipped.{reason}": times for reason, times in draft.skipped.items()},
        **{f"applied.stage_{stage}": times for stage, times in stages.items()},
    }
    emit(on_event, "compaction", attributes)
    quoted = [part for part in draft.all_parts if part.background]
    if quoted:
        now = "\n\n".join(str(draft.changes.get(part.place, part.text)) for part in quoted)
        emit_prompt(on_event, now, sum(part.place in draft.changes for part in quoted))
    if calls > bound:
        _log.warning(
            "%d compactor calls in one iteration, where %d are usual: "
            "something makes the agent compact again",
            calls,
            bound,
        )
        emit(on_event, "compaction.churn", {"compactor_calls": calls, "churn_warning": bound})


def _calls_in_iteration(draft: Draft) -> int:
    """Count this call. An iteration is one history: it ends when the history changes."""
    # Merged messages count as before, so that a merge does not pass for progress: an agent that
    # compacts in a loop has to be seen.
    last = message_hash(draft.messages[-1]) if draft.messages else ""
    iteration = f"{len(draft.messages) + draft.merged_messages}:{last}"
    if iteration not in draft.state.calls:
        draft.state.calls.clear()
    draft.state.calls[iteration] += 1
    return draft.state.calls[iteration]


@type_checked
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
    # The mark tells the parser that this quotes a conversation: its quotes are then bounded like
    # all else, and none is taken for the user's last turn.
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
    calls = f" calls {part.name.replace(']', ' ')[:100]}" if part.kind == "call" else ""
    return f"[{part.role}{calls}]"


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


@type_checked
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

    # The vocabulary is read in a thread meanwhile: the first count would wait for it.
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
        """Compact a history to about ``target_tokens``, even if it is not too long.

        A summariser whose own model finds its prompt too long is asked once more, with less; a
        summary that is longer than what it replaces is left out, and stubs take its place. Raises
        what the summariser raises; then nothing has changed.
        """
        history = _History(messages, self.format)
        # Asked once for all steps: each answer walks the history.
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
        """Put the summary of all old units in place of the first; untouchable messages stay."""
        messages = history.data
        all_parts = parts(messages, history.format)
        all_units = units(len(messages), all_parts, pair(all_parts))
        kept = untouchable(len(messages), all_parts, all_units) | background_task(all_parts)
        old = [unit for unit in all_units if kept.isdisjoint(range(unit.start, unit.end))]
        if not old:
            return list(messages), None
        numbers = [number for unit in old for number in range(unit.start, unit.end)]
        handed = [messages[number] for number in numbers]
        bound = self._config.summarizer_max_tokens
        prompt = await off_loop(self._prompt, handed, history.format, bound, large=large)
        try:
            text = await _asked(summarizer, prompt)
        # The summariser may have a smaller window than the agent, and only its refusal says so.
        except Exception as refused:
            smaller = _smaller_bound(refused, text_tokens(prompt))
            if smaller is None:
                raise
            prompt = await off_loop(self._prompt, handed, history.format, smaller, large=large)
            text = await _asked(summarizer, prompt)
        replaced = await off_loop(count_tokens, handed, history.format, self.state, large=large)
        if text_tokens(text) >= replaced:  # no gain
            return await off_loop(self._stubbed, history, large=large), None
        summarized, gone = list[Message](), set(numbers)
        for number, message in enumerate(messages):
            if number == numbers[0]:
                words = f"(Summary of the earlier conversation: {text})"
                summarized.append(user_text(words, history.format))
            if number not in gone:
                summarized.append(message)
        return summarized, text

    def _prompt(self, messages: list[Message], format: Format, bound: int) -> str:
        """Return what the summariser gets: within ``bound`` tokens, by stubs and not by a cut."""
        # A state of its own: stubs of this prompt must not come back in the conversation's next
        # request.
        compacted, _ = compact(messages, format, bound, State(), policy=self.policy)
        prompt = f"{EXTRACTION_MARK}\n\n{transcript(parts(compacted, format))}"
        bounded, _ = bounded_prompt(prompt, bound, State(), self.policy)
        return bounded.removeprefix(EXTRACTION_MARK).lstrip("\n")


async def _asked(summarizer: Summarizer, prompt: str) -> str:
    """Return the summary that a summariser makes, synchronous or not."""
    summary = summarizer(prompt)
    return await summary if isawaitable(summary) else summary


def _smaller_bound(refused: Exception, asked: int) -> int | None:
    """Return the tokens to hand to a summariser whose prompt of ``asked`` was refused for its size.

    None for any other error.
    """
    verdict = classify(refused)
    if not verdict.overflow:
        return None
    # Half of it: the summariser's tokenizer is not known, and it is asked only once more.
    stated = verdict.limit if verdict.kind == "overflow_tokens" else None
    return min(asked, stated or asked) // 2


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
