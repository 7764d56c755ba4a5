"""What compact and rewrite share: a conversation that stubs and merges make smaller."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fetchstash.client._formats import (
    Format,
    Message,
    Part,
    Place,
    parts,
    plain,
    replace_values,
    user_text,
)
from fetchstash.client._policy import ContentKey, Merge, Policy, State
from fetchstash.client._protect import (
    Unit,
    background_task,
    class_of,
    critical_messages,
    latest_answer,
    pair,
    units,
    untouchable,
)
from fetchstash.client._sizes import Change, Sizes, SizeUnit, size_in_bytes
from fetchstash.client._streams import an_object
from fetchstash.client._stubs import (
    ARGUMENTS_TARGET,
    HISTORY_TARGET,
    RESULT_TARGET,
    WORTH,
    arguments_stub,
    as_value,
    find_run,
    history_stub,
    media_stub,
    merge_of,
    merged_text,
    message_hash,
    result_stub,
)

SMALLEST_TOKENS = {"call": 75, "result": 150, "text": 150, "opaque": 150}
"""A content that is smaller costs less than the stub that would stand for it, or hardly more."""

REF_TOKENS = 40
"""What the reference of a merged text costs, and the frame of its message."""

BYTES_PER_TOKEN = 4
"""For targets of stubs, which are stated in tokens, where sizes are in bytes."""

PREVIEW = "preview:"
"""Labels of stubs with a preview begin so."""


@dataclass(slots=True)
class Work:
    """A conversation with the merges and stubs decided so far, and its size in ``unit``."""

    messages: Sequence[Message]
    format: Format
    state: State
    policy: Policy
    prefix: int = 0
    unit: SizeUnit = "tokens"
    size: int = 0
    reused: int = 0
    stage: int = 0
    merged_messages: int = 0
    candidates: int = 0
    changes: dict[Place, Any] = field(default_factory=dict[Place, Any])
    new: list[Change] = field(default_factory=list[Change])
    skipped: Counter[str] = field(default_factory=Counter[str])
    all_parts: list[Part] = field(init=False)
    units: list[Unit] = field(init=False)
    kept: frozenset[int] = field(init=False)
    critical: frozenset[int] = field(init=False)
    merged: frozenset[int] = field(init=False)
    sizes: Sizes = field(init=False)
    _task: frozenset[int] = field(init=False)
    calls: dict[Place, Part] = field(init=False)
    _answer: int | None = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = Sizes(self.state)
        self.read()

    def read(self) -> None:
        """Read the messages as they are now. Merged ones are ours: no words of the user's."""
        self.all_parts = parts(self.messages, self.format)
        self.merged = self._merged()
        conversation = [part for part in self.all_parts if part.message not in self.merged]
        pairing = pair(conversation)
        self.calls = {answered.result.place: answered.call for answered in pairing.pairs}
        self.units = units(len(self.messages), self.all_parts, pairing)
        self.kept = untouchable(len(self.messages), conversation, self.units, self.prefix)
        self._task = background_task(conversation)
        recent = self.policy.preserve_recent_critical_messages
        self.critical = critical_messages(conversation, pairing, recent)
        self._answer = latest_answer(conversation)
        if self.unit == "bytes":
            self.size = size_in_bytes(self.messages)
        else:
            self.size = self.sizes.total(self.messages, self.all_parts)

    def _merged(self) -> frozenset[int]:
        texts = {merge.text for merge in self.state.merges}
        return frozenset(
            part.message
            for part in self.all_parts
            if part.kind == "text" and part.role == "user" and part.value in texts
        )

    def result(self) -> list[Message]:
        """Return the messages as they are now."""
        return replace_values(self.messages, self.changes)

    # Sizes

    def value_size(self, value: Any) -> int:
        """Return the size of what would stand in the place of a part."""
        if self.unit == "bytes":
            return size_in_bytes(value)
        return self.sizes.tokens(Part((0, ()), "text", "user", value))

    def _original_size(self, part: Part) -> int:
        return size_in_bytes(part.value) if self.unit == "bytes" else self.sizes.tokens(part)

    def size_of(self, part: Part) -> int:
        """Return the size of a part as it is now: of its stub, if it has one."""
        changed = self.changes.get(part.place)
        return self._original_size(part) if changed is None else self.value_size(changed)

    # What is in force

    def reapply(self) -> None:
        """Put all merges and stubs in force where they were."""
        runs = self._merges_in_force()
        for start, end, merge in reversed(runs):
            self._put_merge(start, end, merge)
        if runs:
            self.read()
        self.reused = self._put_stubs()

    def _merges_in_force(self) -> list[tuple[int, int, Merge]]:
        """Return where merges stand, in order, without any that holds a protected message."""
        if not self.state.merges:
            return []
        hashes = [message_hash(message) for message in self.messages]
        starts = [(find_run(hashes, merge.hashes), merge) for merge in self.state.merges]
        known = [(at, at + len(merge.hashes), merge) for at, merge in starts if at is not None]
        allowed: list[tuple[int, int, Merge]] = []
        for start, end, merge in sorted(known, key=lambda run: (run[0], -run[1])):
            if (not allowed or start >= allowed[-1][1]) and not self._protected(start, end):
                allowed.append((start, end, merge))
        return allowed

    def _put_stubs(self) -> int:
        """Put the stubs in force, and return how many. In a protected message only its own hold."""
        self.changes.clear()
        if not self.state.stubs:
            return 0
        for part in self.all_parts:
            if part.kind not in SMALLEST_TOKENS or part.message in self.merged:
                continue
            if part.message < self.prefix:
                continue
            key = self._content_key(part)
            entry = self.state.stubs.get(key)
            if entry is None or (self._is_protected(part) and not self._holds(part, key)):
                continue
            stub = self.state.memo[key[1], *entry]
            if self.value_size(as_value(part, stub)) <= self._original_size(part):
                self._apply(part, stub)
        return len(self.changes)

    def _holds(self, part: Part, key: ContentKey) -> bool:
        """Return whether a stub holds in a protected message: it was made there.

        Texts have no id, and may be said again: the last words stay what they are.
        """
        last = part.kind in {"text", "opaque"} and part.message in self.kept | {self._answer}
        return key in self.state.protected and not last

    def _is_protected(self, part: Part) -> bool:
        # In a critical message only the text and the to-do list are critical.
        return part.message in self.kept or (
            part.kind in {"text", "opaque"} and part.message in self.critical
        )

    def _content_key(self, part: Part) -> ContentKey:
        return f"{part.kind}:{part.call_id}", self.sizes.digest(part)

    # Stubs

    def free_parts(self, kind: str, *, smallest: int = 0) -> list[Part]:
        """Return the parts of one kind that may be replaced by a stub, oldest first."""
        smallest = smallest or SMALLEST_TOKENS[kind]
        large = [
            part
            for part in self.all_parts
            if part.kind == kind and self.has_room_to_shrink(part) and self.is_large(part, smallest)
        ]
        free = [
            part
            for part in large
            if part.message not in self.kept
            and part.message not in self.merged
            and class_of(part, self.critical) != "critical"
        ]
        self.skipped["policy_preserve"] += len(large) - len(free)
        return free

    def free_texts(self) -> list[Part]:
        """Return the older texts and media that may be replaced, oldest first.

        The user's words come last: all else is about it.
        """
        free = self.free_parts("text") + self.free_parts("opaque")
        return sorted(free, key=lambda part: (part.role == "user", part.message))

    def is_large(self, part: Part, smallest: int) -> bool:
        """Return whether a part may be replaced at all, and has at least ``smallest`` tokens."""
        if part.shape == "fixed" or (part.kind == "opaque" and not self._is_media(part)):
            return False
        if self.unit == "bytes":
            return size_in_bytes(part.value) >= smallest * BYTES_PER_TOKEN
        return self.sizes.tokens(part) >= smallest

    def _is_media(self, part: Part) -> bool:
        """Return whether a part is a block of the user's with a picture, a document or the like."""
        return part.role == "user" and part.place[1] != () and self.sizes.has_media(part)

    def has_room_to_shrink(self, part: Part) -> bool:
        """Return whether a part has no stub yet, or only one with a preview."""
        return part.place not in self.changes or self._in_force(part).startswith(PREVIEW)

    def unshrinkable(self) -> dict[str, int]:
        """Return the sizes of what the provider takes only as it is, by type."""
        sizes = Counter[str]()
        for part in self.all_parts:
            as_is = part.kind == "opaque" or part.shape == "fixed"
            if as_is and part.place not in self.changes:
                block = an_object(part.value)
                name = block.get("type") or part.name or next(iter(block), "an unknown kind")
                sizes[str(name)] += self._original_size(part)
        return dict(sizes)

    def _in_force(self, part: Part) -> str:
        return self.state.stubs.get(self._content_key(part), (0, ""))[1]

    def stub_until(self, goal: int, candidates: Iterable[Part], stage: int) -> None:
        """Replace parts by stubs, in this order, until the size is within ``goal``."""
        for part in candidates:
            if self.size <= goal:
                return
            self.candidates += 1
            target, label = self.stub_key(part)
            if self.put(part, stage, (target, label), partial(self._make, part)):
                self.stage = max(self.stage, stage)

    def stub_key(self, part: Part) -> tuple[int, str]:
        """Return the target in tokens and the label of the ordinary stub of a part."""
        if part.kind in {"text", "opaque"}:
            return HISTORY_TARGET, f"history:{part.role}"
        if part.kind == "result":
            return RESULT_TARGET, f"result:{self.name_of(part)}"
        return ARGUMENTS_TARGET, f"arguments:{self.name_of(part)}"

    def name_of(self, part: Part) -> str:
        """Return the name of the tool that a part is a call or a result of."""
        # Most formats name the tool only at the call.
        return self.calls.get(part.place, part).name

    def _make(self, part: Part) -> Any:
        """Return the ordinary stub of a part, None where nothing in it is long."""
        offload = self.policy.offload
        if part.kind == "text":
            return history_stub(part.text, part.role, offload)
        if part.kind == "opaque":
            return media_stub(part.value)
        if part.kind == "result":
            return result_stub(plain(part.value), self.name_of(part), offload)
        return arguments_stub(part, offload)

    def put(self, part: Part, stage: int, entry: tuple[int, str], make: Callable[[], Any]) -> bool:
        """Put a stub in the place of a part, and return whether that made it smaller.

        One that is hardly smaller than the content is never tried again.
        """
        content = self._content_key(part)
        key = (content[1], *entry)
        stub, fresh = self.state.remembered(key, make)
        before = self.size_of(part)
        after = before if stub is None else self.value_size(as_value(part, stub))
        if after > before * WORTH:
            if fresh and after > self._original_size(part) * WORTH:
                self.state.memo[key] = None
            self.skipped["no_gain"] += 1
            return False
        self._apply(part, stub)
        self.state.stubs[content] = entry
        if self._is_protected(part):
            self.state.protected.add(content)
        if fresh:
            self.new.append(Change(part.message, stage, *key, before, after))
        return True

    def _apply(self, part: Part, stub: Any) -> None:
        before = self.size_of(part)
        self.changes[part.place] = as_value(part, stub)
        self.size -= before - self.size_of(part)

    # Critical messages

    def stub_critical(self, goal: int) -> None:
        """Stub critical messages one by one, oldest first, until ``goal``; never the answer.

        Answers go before instructions and the to-do list.
        """
        standing = {part.message for part in self.all_parts if part.role in {"system", "tool"}} | {
            part.message for part in self.all_parts if part.kind == "call"
        }
        free = self.critical - self.kept - self.merged - {self._answer}
        for number in sorted(free, key=lambda number: (number in standing, number)):
            for stage, kind in ((1, "call"), (2, "result"), (3, "opaque"), (3, "text")):
                inside = [
                    part
                    for part in self.all_parts
                    if part.message == number
                    and part.kind == kind
                    and part.place not in self.changes
                    and self.is_large(part, SMALLEST_TOKENS[kind])
                ]
                self.stub_until(goal, inside, stage)

    # Merges

    def merge_until(self, goal: int) -> None:
        """Merge runs of units that may be merged, oldest first, until ``goal`` is reached."""
        inside: defaultdict[int, list[Part]] = defaultdict(list)
        for part in self.all_parts:
            inside[part.message].append(part)
        runs: list[tuple[int, int, list[Part]]] = []
        excess = self.size - goal
        if excess <= 0:
            return
        for run in self._mergeable_runs():
            merged, size = list[Part](), 0
            end = start = run[0].start
            for unit in run:
                if size > excess + REF_TOKENS:
                    break
                end = unit.end
                added = [part for number in range(unit.start, end) for part in inside[number]]
                merged += added
                size += sum(map(self.size_of, added))
            gain = size - REF_TOKENS - self.value_size(merged_text(end - start, merged))
            if end - start > 1 and gain > 0 and excess > 0:
                runs.append((start, end, merged))
                excess -= gain
        for start, end, merged in reversed(runs):
            merge = merge_of(self.messages[start:end], merged, self.policy.offload)
            self.state.merges.append(merge)
            self._put_merge(start, end, merge)
        if runs:
            self.stage = 4
            self.read()
            self._put_stubs()

    def _mergeable_runs(self) -> list[list[Unit]]:
        """Return the units that may be merged, in runs between those that may not."""
        runs: list[list[Unit]] = [[]]
        for unit in self.units:
            if self._protected(unit.start, unit.end):
                runs.append([])
            else:
                runs[-1].append(unit)
        return [run for run in runs if run]

    def _put_merge(self, start: int, end: int, merge: Merge) -> None:
        text = user_text(merge.text, self.format)
        self.messages = [*self.messages[:start], text, *self.messages[end:]]
        self.merged_messages += len(merge.hashes)

    def _protected(self, start: int, end: int) -> bool:
        protected = self.kept | self.critical | self.merged | self._task
        return not protected.isdisjoint(range(start, end))
