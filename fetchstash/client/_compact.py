"""Make a request smaller: before it is sent (compact), or after it was refused (rewrite).

compact touches nothing below the soft threshold. Above it stubs take the place of call arguments,
then of tool results, then of older texts, oldest first, until the request is well below it again:
the room between keeps the next requests from being compacted, and a prompt cache warm. Above the
hard threshold the oldest messages are merged, then critical texts go one by one, then results of
the latest exchange keep only a preview.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fetchstash.client._draft import Draft
from fetchstash.client._formats import Part, plain
from fetchstash.client._policy import Format, Message, Policy, State
from fetchstash.client._sizes import OnEvent, Report, Target, Tier, emit, emit_prompt
from fetchstash.client._stubs import HEAVY_KINDS, facts_of, message_hash

SHORT_ON_TIME_SECONDS = 10
"""With less time left than this only what must be done is done."""

LARGE_TOKENS = 250
"""A rewrite leaves smaller results and arguments: they give less than they cost in meaning."""

_KINDS = {1: "call", 2: "result"}
"""What a stage is about; the third is about texts."""

_log = logging.getLogger("fetchstash.client")


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
    """Do what ``rewrite`` describes; for a retry older texts and messages go, too.

    ``before`` is the size that the report compares with.
    """
    draft.reapply()
    draft.stub_unavoidable(goal)
    results = draft.free_parts("result", LARGE_TOKENS)
    draft.stub_until(goal, sorted(results, key=_is_light), 2)
    draft.stub_until(goal, draft.free_parts("call", LARGE_TOKENS), 1)
    if for_retry and draft.size > goal:
        draft.stub_until(goal, draft.free_texts(), 3)
        draft.merge_until(goal)
        draft.stub_critical(goal)
    draft.stub_latest(goal)
    return replace(draft.report(before, goal), unshrinkable=draft.unshrinkable())


def _is_light(part: Part) -> bool:
    return facts_of(plain(part.value)).content_kind not in HEAVY_KINDS


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
            target = int(budget * policy.compaction_target_ratio)
            _stages(draft, target, 1, 2, 3)
            if draft.size > hard:
                draft.merge_until(target)
            draft.stub_critical(hard)
            draft.stub_latest(hard)
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
    """Count this call. An iteration is one history: it ends as soon as the history changes."""
    last = message_hash(draft.messages[-1]) if draft.messages else ""
    iteration = f"{len(draft.messages) + draft.merged_messages}:{last}"
    if iteration not in draft.state.calls:
        draft.state.calls.clear()
    draft.state.calls[iteration] += 1
    return draft.state.calls[iteration]
