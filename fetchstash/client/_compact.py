"""Compaction before a request is sent: lazy, in stages, and sticky.

Nothing is touched below the soft threshold. Above it stubs take the place of call arguments, then
of tool results, then of older texts, oldest first, until the request is well below it again: the
room between keeps the next requests from being compacted, and a prompt cache warm. Above the hard
threshold the oldest messages are merged, and what is critical may go, except for what never does.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fetchstash.client._classes import class_of, critical_messages
from fetchstash.client._events import OnEvent, emit, tell_of_prompt
from fetchstash.client._formats import (
    Format,
    Message,
    Part,
    Place,
    parts,
    replace_values,
    user_text,
)
from fetchstash.client._merge import find_run, merge_of, merged_text, message_hash
from fetchstash.client._pairing import Unit, pair, units
from fetchstash.client._policy import Merge, Policy, State, content_hash
from fetchstash.client._protect import background_task, untouchable
from fetchstash.client._report import Change, Report, Tier
from fetchstash.client._rewrite import call_names, make_stub, stub_key
from fetchstash.client._sizes import exact_tokens, total
from fetchstash.client._stubs import HISTORY_TARGET, WORTH, as_value, history_stub

LANDING = 0.45
"""Where a compaction comes down to, as a share of the window: low enough that the next one is far away."""

SHORT_ON_TIME_SECONDS = 10
"""With less time left than this only what must be done is done."""

_log = logging.getLogger("fetchstash.client")

REF_TOKENS = 40
"""What the reference of a merged text costs, and the frame of its message."""

SMALLEST_CHARS = {"call": 300, "result": 600, "text": 600}
"""A content that is shorter costs less than the stub that would stand for it, or hardly more."""


def tier_of(size: int, budget: int, policy: Policy) -> Tier:
    """Return the tier of a request of ``size`` tokens in a window of ``budget`` tokens."""
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
    on_event: OnEvent | None = None,
) -> tuple[list[Message], Report]:
    """Return ``messages`` compacted for a context window of ``budget`` tokens, and what was done.

    Give the same ``state`` for the same conversation, and its messages as they were, not as they
    were compacted before. With little of ``remaining_seconds`` left only a request that would not
    fit is touched, and only as far as it must be.
    """
    policy = policy or Policy()
    work = _Work(messages, format, budget, state, policy, prefix)
    raw = work.size
    if policy.compaction_mode == "legacy" or tier_of(raw, budget, policy) == "normal":
        work.skipped["no_pressure"] += 1
        return _told(work, raw, "normal", on_event)
    hurried = remaining_seconds is not None and remaining_seconds < SHORT_ON_TIME_SECONDS
    work.reapply()
    tier = work.tier()
    if tier == "normal":
        work.skipped["cache_hit"] += work.reused
    elif hurried:
        if tier == "critical":
            work.landing = int(budget * policy.compaction_pressure_ratio_hard)
            work.run(1, 2)
    else:
        work.run(1, 2, 3)
        if work.tier() == "critical":
            work.merge_oldest()
        if work.tier() == "critical":
            work.open_critical()
            if work.tier() != "normal":
                work.run(1, 2, 3)
                work.merge_oldest()
    return _told(work, raw, tier, on_event, hurried=hurried)


def reapply(
    messages: Sequence[Message], format: Format, state: State, policy: Policy, prefix: int = 0
) -> Sequence[Message]:
    """Return ``messages`` with the stubs and merges that are in force, and nothing new."""
    if not state.stubs and not state.merges:
        return messages
    work = _Work(messages, format, 0, state, policy, prefix)
    work.reapply()
    return work.result()


def bounded_prompt(prompt: str, budget: int, state: State, policy: Policy) -> tuple[str, int]:
    """Return the prompt of an extractor in ``budget`` tokens, as far as stubs go, and how many contents became one.

    What a request protects (the task, the latest exchange) is only quoted in it, and is bounded
    like everything else.
    """
    work = _Work([user_text(prompt, "openai_chat")], "openai_chat", budget, state, policy, 0)
    work.landing = budget
    work.run(1, 2, 3)
    text: str = work.result()[0]["content"]
    return text, len(work.changes)


@dataclass(slots=True)
class _Work:
    """One compaction on its way: the messages with merges done, their parts, and the stubs decided so far."""

    messages: Sequence[Message]
    format: Format
    budget: int
    state: State
    policy: Policy
    prefix: int
    landing: int = 0
    size: int = 0
    reused: int = 0
    stage: int = 0
    merged_messages: int = 0
    candidates: int = 0
    changes: dict[Place, Any] = field(default_factory=dict[Place, Any])
    new: list[Change] = field(default_factory=list[Change])
    skipped: Counter[str] = field(default_factory=Counter[str])
    merged: set[int] = field(default_factory=set[int])
    found: list[Part] = field(init=False)
    cut: list[Unit] = field(init=False)
    kept: frozenset[int] = field(init=False)
    task: frozenset[int] = field(init=False)
    critical: frozenset[int] = field(init=False)
    names: dict[Place, str] = field(init=False)
    count: Callable[[Part], int] = field(init=False)
    original: Sequence[Message] = field(init=False)
    critical_open: bool = False

    def __post_init__(self) -> None:
        self.original = self.messages
        self.count = exact_tokens(self.state)
        self.landing = int(self.budget * LANDING)
        self.look()

    def tier(self) -> Tier:
        return tier_of(self.size, self.budget, self.policy)

    def look(self) -> None:
        """Read the messages as they are now. Merged ones are ours: neither the user's words nor anybody's steering."""
        self.found = parts(self.messages, self.format)
        theirs = [part for part in self.found if part.message not in self.merged]
        pairing = pair(theirs)
        self.names = call_names(pairing)
        self.cut = units(len(self.messages), self.found, pairing)
        self.kept = untouchable(len(self.messages), theirs, self.cut, self.prefix)
        self.task = background_task(theirs)
        recent = self.policy.preserve_recent_critical_messages
        self.critical = (
            frozenset() if self.critical_open else critical_messages(theirs, pairing, recent)
        )
        self.size = total(self.messages, self.found, self.count)

    def reapply(self) -> None:
        """Put everything in force where it was: merges, then stubs."""
        for start, end, merge in reversed(self.merges_in_force()):
            self.put_merge(start, end, merge)
        if self.merged:
            self.look()
        self.reused = self.put_stubs()

    def merges_in_force(self) -> list[tuple[int, int, Merge]]:
        """Return where merges stand in the messages, in order, but none that would swallow what is kept or critical now."""
        if not self.state.merges:
            return []
        hashes = [message_hash(message) for message in self.messages]
        places = [(find_run(hashes, merge.hashes), merge) for merge in self.state.merges]
        known = [(at, at + len(merge.hashes), merge) for at, merge in places if at is not None]
        allowed: list[tuple[int, int, Merge]] = []
        for start, end, merge in sorted(known, key=lambda one: (one[0], -one[1])):
            if (not allowed or start >= allowed[-1][1]) and not self.protected(start, end):
                allowed.append((start, end, merge))
        return allowed

    def put_stubs(self) -> int:
        """Put the stubs in force, and return how many. Those of critical messages only hold while the critical tier needs them."""
        self.changes.clear()
        for part in self.found:
            if (
                part.kind not in SMALLEST_CHARS
                or part.message in self.kept | self.critical | self.merged
            ):
                continue
            target, _ = self.key_of(part)
            digest = content_hash(part.text)
            label = self.state.stubs.get((part.call_id, digest, target))
            if label:
                self.apply(part, self.state.memo[digest, target, label])
        return len(self.changes)

    def run(self, *stages: int) -> None:
        """Put new stubs, stage by stage and oldest first, until the request has come down to the landing."""
        for stage in stages:
            for part in self.of_stage(stage):
                if self.size <= self.landing:
                    return
                self.candidates += 1
                if self.try_stub(part, stage):
                    self.stage = max(self.stage, stage)

    def of_stage(self, stage: int) -> Iterable[Part]:
        kind = {1: "call", 2: "result", 3: "text"}[stage]
        large = [
            p
            for p in self.found
            if p.kind == kind
            and len(p.text) >= SMALLEST_CHARS[kind]
            and p.place not in self.changes
        ]
        free = [
            p
            for p in large
            if p.message not in self.kept
            and p.message not in self.merged
            and class_of(p, self.critical) != "critical"
        ]
        self.skipped["policy_preserve"] += len(large) - len(free)
        # Of older texts the user's go last: they are what everything else is about.
        return sorted(free, key=lambda part: part.role == "user") if stage == 3 else free

    def key_of(self, part: Part) -> tuple[int, str]:
        if part.kind == "text":
            return HISTORY_TARGET, f"history:{part.role}"
        return stub_key(part, self.names.get(part.place, part.name))

    def try_stub(self, part: Part, stage: int) -> bool:
        target, label = self.key_of(part)
        digest = content_hash(part.text)
        stub, fresh = self.state.remembered((digest, target, label), lambda: self.make(part))
        if stub is None:
            self.skipped["no_gain"] += 1
            return False
        before = self.count(part)
        after = self.apply(part, stub)
        self.state.stubs[part.call_id, digest, target] = label
        if fresh:
            self.new.append(Change(part.message, stage, digest, target, label, before, after))
        return True

    def make(self, part: Part) -> Any:
        """Return the stub of a part, None where it would hardly be smaller: then it is never tried again."""
        if part.kind == "text":
            stub: Any = history_stub(part.text, part.role, self.policy.offload)
        else:
            stub = make_stub(part, self.names.get(part.place, part.name), self.policy)
        worth = (
            stub is not None and self.count_value(as_value(part, stub)) <= self.count(part) * WORTH
        )
        return stub if worth else None

    def count_value(self, value: Any) -> int:
        return self.count(Part((0, ()), "text", "user", value))

    def apply(self, part: Part, stub: Any) -> int:
        self.changes[part.place] = as_value(part, stub)
        after = self.count_value(self.changes[part.place])
        self.size -= self.count(part) - after
        return after

    def merge_oldest(self) -> None:
        """Merge units, from the oldest that may be merged up to the first that may not, until the landing is reached."""
        run: list[Unit] = []
        excess = self.size - self.landing
        for unit in self.cut:
            if excess <= 0 or (run and not self.may_merge(unit)):
                break
            if self.may_merge(unit):
                run.append(unit)
                inside = [part for part in self.found if unit.start <= part.message < unit.end]
                excess -= sum(
                    self.count_value(self.changes.get(part.place, part.value)) for part in inside
                )
        if len(run) < 2:
            return
        start, end = run[0].start, run[-1].end
        inside = [part for part in self.found if start <= part.message < end]
        costs = sum(self.count_value(self.changes.get(part.place, part.value)) for part in inside)
        if self.count_value(merged_text(end - start, inside, "")) + REF_TOKENS >= costs:
            return
        merge = merge_of(self.messages[start:end], inside, self.policy.offload)
        self.state.merges.append(merge)
        self.put_merge(start, end, merge)
        self.stage = 4
        self.look()
        self.put_stubs()

    def put_merge(self, start: int, end: int, merge: Merge) -> None:
        gone = end - start - 1
        self.messages = [
            *self.messages[:start],
            user_text(merge.text, self.format),
            *self.messages[end:],
        ]
        self.merged = {number if number < start else number - gone for number in self.merged} | {
            start
        }
        self.merged_messages += len(merge.hashes)

    def may_merge(self, unit: Unit) -> bool:
        return not self.protected(unit.start, unit.end)

    def protected(self, start: int, end: int) -> bool:
        return not (self.kept | self.critical | self.merged | self.task).isdisjoint(
            range(start, end)
        )

    def open_critical(self) -> None:
        """Begin again with the original messages, and let go of what is critical too: all but what is always kept."""
        self.messages, self.merged, self.merged_messages = self.original, set(), 0
        self.critical_open = True
        self.look()
        self.reapply()

    def result(self) -> list[Message]:
        return replace_values(self.messages, self.changes)


def _told(
    work: _Work, raw: int, tier: Tier, on_event: OnEvent | None, *, hurried: bool = False
) -> tuple[list[Message], Report]:
    """Return what came out, and tell of it: one event for each decision."""
    report = Report(
        "tokens",
        raw,
        work.size,
        work.budget,
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
    quoted = [part for part in work.found if part.background]
    if quoted:
        now = "\n\n".join(str(work.changes.get(part.place, part.text)) for part in quoted)
        tell_of_prompt(on_event, now, sum(part.place in work.changes for part in quoted))
    calls, bound = attributes["compactor_calls"], work.policy.churn_warning
    if calls > bound:
        _log.warning(
            "%d compactor calls in one iteration, where %d are usual: something makes the agent compact again",
            calls,
            bound,
        )
        emit(on_event, "compaction.churn", {"compactor_calls": calls, "churn_warning": bound})
    return work.result(), report


def _calls_in_iteration(work: _Work) -> int:
    """Count this call. An iteration is one history: the agent has gone on as soon as the history is another."""
    last = message_hash(work.messages[-1]) if work.messages else ""
    iteration = f"{len(work.messages) + work.merged_messages}:{last}"
    if iteration not in work.state.calls:
        work.state.calls.clear()
    work.state.calls[iteration] += 1
    return work.state.calls[iteration]
