"""Compaction before a request is sent: lazy, in stages, and sticky.

Nothing is touched below the soft threshold. Above it stubs take the place of call arguments, then
of tool results, then of older texts, oldest first, until the request is well below it again: the
room between keeps the next requests from being compacted, and a prompt cache warm. Above the hard
threshold the oldest messages are merged, then critical texts go one by one, then results of the
latest exchange keep only a preview.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

from fetchstash.client._events import OnEvent, emit, emit_prompt
from fetchstash.client._formats import Format, Message, user_text
from fetchstash.client._merge import message_hash
from fetchstash.client._policy import Policy, State
from fetchstash.client._report import Report, Tier
from fetchstash.client._results import stub_latest, stub_oversized, stub_unavoidable
from fetchstash.client._work import Work

LANDING = 0.45
"""Where a compaction comes down to, as a share of the budget: the next one is then far away."""

SHORT_ON_TIME_SECONDS = 10
"""With less time left than this only what must be done is done."""

_KINDS = {1: "call", 2: "result"}
"""What a stage is about; the third is about texts."""

_log = logging.getLogger("fetchstash.client")


def tier_of(size: int, budget: int, policy: Policy) -> Tier:
    """Return the tier of messages of ``size`` tokens where ``budget`` tokens are theirs."""
    if size <= budget * policy.compaction_pressure_ratio_soft:
        return "normal"
    return "pressure" if size <= budget * policy.compaction_pressure_ratio_hard else "critical"


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
    work = Work(messages, format, state, policy, prefix)
    raw = work.size
    if policy.compaction_mode == "legacy":
        work.skipped["no_pressure"] += 1
        return _finish(work, raw, budget, "normal", on_event)
    work.reapply()
    if window:
        stub_oversized(work, window, on_event)
    tier = tier_of(work.size, budget, policy)
    landing, hard = int(budget * LANDING), int(budget * policy.compaction_pressure_ratio_hard)
    if tier == "critical":
        stub_unavoidable(work, hard)
    hurried = remaining_seconds is not None and remaining_seconds < SHORT_ON_TIME_SECONDS
    if tier == "normal":
        work.skipped["cache_hit" if work.reused else "no_pressure"] += work.reused or 1
    elif not hurried:
        _stages(work, landing, 1, 2, 3)
        if work.size > hard:
            work.merge_until(landing)
        work.stub_critical(hard)
        stub_latest(work, hard)
    elif tier == "critical":
        _stages(work, hard, 1, 2)
        stub_latest(work, hard)
    return _finish(work, raw, budget, tier, on_event, hurried=hurried)


def reapply(
    messages: Sequence[Message], format: Format, state: State, policy: Policy, prefix: int = 0
) -> Sequence[Message]:
    """Return ``messages`` with the stubs and merges that are in force, and nothing new."""
    if not state.stubs and not state.merges:
        return messages
    work = Work(messages, format, state, policy, prefix)
    work.reapply()
    return work.result()


def bounded_prompt(prompt: str, budget: int, state: State, policy: Policy) -> tuple[str, int]:
    """Return an extractor's prompt within ``budget`` tokens, as far as stubs go, and their number.

    What a request protects (the task, the latest exchange) is only quoted in it, and is bounded
    like everything else.
    """
    work = Work([user_text(prompt, "openai_chat")], "openai_chat", state, policy)
    _stages(work, budget, 1, 2, 3)
    text: str = work.result()[0]["content"]
    return text, len(work.changes)


def _stages(work: Work, goal: int, *stages: int) -> None:
    """Put stubs, stage by stage and oldest first, until the size is within ``goal``."""
    for stage in stages:
        if work.size > goal:
            free = work.free_texts() if stage == 3 else work.free_parts(_KINDS[stage])
            work.stub_until(goal, free, stage)


def _finish(
    work: Work,
    raw: int,
    budget: int,
    tier: Tier,
    on_event: OnEvent | None,
    *,
    hurried: bool = False,
) -> tuple[list[Message], Report]:
    """Return the messages and the report, and emit the events of this compaction."""
    report = Report(
        "tokens",
        raw,
        work.size,
        budget,
        tuple(work.new),
        work.reused,
        dict(work.skipped),
        tier,
        work.stage,
        work.merged_messages,
    )
    attributes: dict[str, Any] = {
        "compaction_tier": tier,
        "compaction_stage": work.stage,
        "compaction_candidate_count": work.candidates,
        "compaction_skipped_reason": ",".join(
            sorted(reason for reason, times in work.skipped.items() if times)
        ),
        "compaction_hurried": hurried,
        "compactor_calls": _calls_in_iteration(work),
    }
    attributes |= {f"skipped.{reason}": times for reason, times in work.skipped.items()}
    attributes |= {
        f"applied.stage_{stage}": times
        for stage, times in Counter(change.stage for change in work.new).items()
    }
    emit(on_event, "compaction", attributes)
    quoted = [part for part in work.all_parts if part.background]
    if quoted:
        now = "\n\n".join(str(work.changes.get(part.place, part.text)) for part in quoted)
        emit_prompt(on_event, now, sum(part.place in work.changes for part in quoted))
    calls, bound = attributes["compactor_calls"], work.policy.churn_warning
    if calls > bound:
        _log.warning(
            "%d compactor calls in one iteration, where %d are usual: "
            "something makes the agent compact again",
            calls,
            bound,
        )
        emit(on_event, "compaction.churn", {"compactor_calls": calls, "churn_warning": bound})
    return work.result(), report


def _calls_in_iteration(work: Work) -> int:
    """Count this call. An iteration is one history: it ends as soon as the history changes."""
    last = message_hash(work.messages[-1]) if work.messages else ""
    iteration = f"{len(work.messages) + work.merged_messages}:{last}"
    if iteration not in work.state.calls:
        work.state.calls.clear()
    work.state.calls[iteration] += 1
    return work.state.calls[iteration]
