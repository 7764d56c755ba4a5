"""The rewrite of a request that a provider refused: small enough, with the fewest stubs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fetchstash.client._artifacts import HEAVY_KINDS, facts_of
from fetchstash.client._formats import Format, Message, Part, plain
from fetchstash.client._policy import Policy, State
from fetchstash.client._report import Report
from fetchstash.client._results import stub_latest, stub_unavoidable
from fetchstash.client._sizes import SizeUnit
from fetchstash.client._work import Work

LARGE_TOKENS = 250
"""A result or arguments that are smaller give less than they cost in meaning."""


@dataclass(frozen=True, slots=True)
class Target:
    """The size that a request may have."""

    size: int
    unit: SizeUnit = "tokens"


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
    return _rewritten(messages, format, target, policy, state, prefix, merges=False)


def rewrite_for_retry(
    messages: Sequence[Message],
    format: Format,
    target: Target,
    policy: Policy,
    state: State,
    prefix: int,
    sent: int,
) -> tuple[list[Message], Report]:
    """Do as ``rewrite`` does; before the latest exchange older texts and messages go, too.

    The refused request was of these messages, compacted to ``sent`` in the target's unit: that is
    what the report compares with.
    """
    rewritten, report = _rewritten(messages, format, target, policy, state, prefix, merges=True)
    return rewritten, replace(report, before=sent)


def _rewritten(
    messages: Sequence[Message],
    format: Format,
    target: Target | int,
    policy: Policy | None,
    state: State | None,
    prefix: int,
    *,
    merges: bool,
) -> tuple[list[Message], Report]:
    goal = target if isinstance(target, Target) else Target(target)
    work = Work(messages, format, state or State(), policy or Policy(), prefix, goal.unit)
    before = work.size
    work.reapply()
    stub_unavoidable(work, goal.size)
    results = work.free_parts("result", smallest=LARGE_TOKENS)
    work.stub_until(goal.size, sorted(results, key=_is_light), 2)
    work.stub_until(goal.size, work.free_parts("call", smallest=LARGE_TOKENS), 1)
    if merges and work.size > goal.size:
        work.stub_until(goal.size, work.free_texts(), 3)
        work.merge_until(goal.size)
        work.stub_critical(goal.size)
    stub_latest(work, goal.size)
    report = Report(
        goal.unit,
        before,
        work.size,
        goal.size,
        tuple(work.new),
        work.reused,
        work.skipped,
        stage=work.stage,
        merged_messages=work.merged_messages,
        unshrinkable=work.unshrinkable(),
    )
    return work.result(), report


def _is_light(part: Part) -> bool:
    return facts_of(plain(part.value)).content_kind not in HEAVY_KINDS
