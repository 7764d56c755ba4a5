"""Make a refused request small enough, with the fewest stubs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fetchstash.client._classify import Verdict
from fetchstash.client._formats import Format, Message, Part, plain
from fetchstash.client._oversized import stub_latest, stub_unavoidable
from fetchstash.client._policy import Policy, RequestInfo, State
from fetchstash.client._sizes import Report, SizeUnit, json_tokens, size_in_bytes
from fetchstash.client._stubs import HEAVY_KINDS, facts_of
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


HEADROOM = 0.9
"""Share of the limit to aim at: counts differ, and the next request is larger again."""

UNKNOWN_SHARE = 0.5
"""What to keep of the messages where the provider does not state how much is too much."""

DOUBT = 1.15
"""How much more than stated a provider may count where it states its limit alone."""


def target_of(verdict: Verdict, before: int, fixed: int | None = None) -> Target:
    """Return the size to aim at, in the verdict's unit, for messages that measure ``before`` here.

    ``fixed`` is the size of the rest of the request, which does not shrink; None if it is not
    known. The stated excess is subtracted, in our measure: the provider's count of the request
    tells how the two relate. Where the rest is not known and the provider counts more than we do,
    the difference is taken for the rest. The target is always below ``before``.
    """
    unit = unit_of(verdict)
    if not verdict.limit:
        return Target(int(before * UNKNOWN_SHARE), unit)
    left = verdict.limit - (verdict.requested_output or 0)
    room = left if left * 10 >= verdict.limit else verdict.limit
    aim = room * HEADROOM
    if verdict.requested_input:
        scale = verdict.requested_input / max(before + (fixed or 0), 1)
        scale = min(scale, 1.0) if fixed is None else scale
        size = before - (verdict.requested_input - aim) / scale
    elif fixed is not None or unit == "bytes":
        # It was refused: the provider counts at least as much as its limit.
        scale = room / max(before + (fixed or 0), 1)
        size = aim / max(scale * DOUBT, 1.0 if unit == "bytes" else DOUBT) - (fixed or 0)
    else:
        size = min(room, before) * UNKNOWN_SHARE
    return Target(max(int(min(size, before * HEADROOM)), 0), unit)


def unit_of(verdict: Verdict) -> SizeUnit:
    """Return the unit in which a request was too large."""
    return "bytes" if verdict.kind == "overflow_bytes" else "tokens"


def fixed_size(verdict: Verdict, request: RequestInfo) -> int | None:
    """Return the size of what is sent besides the messages, None if it is not known."""
    if request.fixed is None:
        return None
    measured = size_in_bytes if unit_of(verdict) == "bytes" else json_tokens
    return measured(request.fixed)


def clamped_output(verdict: Verdict, max_output: int | None) -> int | None:
    """Return the output tokens to ask for instead of ``max_output``; None where that is no cure."""
    if (
        verdict.action != "clamp_output"
        or max_output is None
        or verdict.limit is None
        or verdict.requested_input is None
    ):
        return None
    # A hundredth for what the provider adds by itself.
    room = verdict.limit - verdict.requested_input - verdict.limit // 100
    return room if 0 < room < max_output else None
