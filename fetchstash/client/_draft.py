"""A request that stubs and merges make smaller: what compact and rewrite share."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from fetchstash.client._formats import Part, Place, parts, plain, replace_values, user_text
from fetchstash.client._policy import ContentKey, Format, Merge, Message, Policy, State
from fetchstash.client._protect import (
    Unit,
    answers_of,
    background_task,
    class_of,
    critical_messages,
    pair,
    units,
    untouchable,
)
from fetchstash.client._sizes import Change, OnEvent, Report, Sizes, SizeUnit
from fetchstash.client._streams import an_object, is_object
from fetchstash.client._stubs import (
    ARGUMENTS_TARGET,
    HISTORY_TARGET,
    RESULT_TARGET,
    WORTH,
    ToolCall,
    arguments_stub,
    as_value,
    history_stub,
    media_stub,
    merge_of,
    merged_text,
    message_hash,
    oversized_stub,
    preview_stub,
    result_stub,
)

SMALLEST_TOKENS = {"call": 75, "result": 150, "text": 150, "opaque": 150}
"""A content that is smaller costs less than the stub that would stand for it, or hardly more."""

REF_TOKENS = 40
"""What the reference of a merged text costs, and the frame of its message."""

PREVIEW = "preview:"
"""Labels of stubs with a preview begin so."""


class Draft:
    """The messages with the merges and stubs decided so far, and their size in ``unit``."""

    def __init__(
        self,
        messages: Sequence[Message],
        format: Format,
        state: State,
        policy: Policy,
        prefix: int = 0,
        unit: SizeUnit = "tokens",
    ) -> None:
        self.messages = messages
        self.format: Format = format
        self.state = state
        self.policy = policy
        self.prefix = prefix
        self.unit: SizeUnit = unit
        # Targets of stubs are stated in tokens; a token has about four bytes.
        self.scale = 4 if unit == "bytes" else 1
        self.sizes = Sizes(state, unit, forget=unit == "tokens")
        self.reused = self.stage = self.merged_messages = self.candidates = 0
        self.changes: dict[Place, Any] = {}
        self.new: list[Change] = []
        self.skipped = Counter[str]()
        self._read()

    def _read(self) -> None:
        """Read the messages in their current form. Merged ones are not the user's words."""
        self.all_parts = parts(self.messages, self.format)
        merged = {merge.text for merge in self.state.merges}
        self.merged = frozenset(
            part.message
            for part in self.all_parts
            if part.kind == "text" and part.role == "user" and part.value in merged
        )
        conversation = [part for part in self.all_parts if part.message not in self.merged]
        pairing = pair(conversation)
        self.calls = {answered.result.place: answered.call for answered in pairing.pairs}
        self.units = units(len(self.messages), self.all_parts, pairing)
        self.kept = untouchable(len(self.messages), conversation, self.units, self.prefix)
        self._task = background_task(conversation)
        recent = self.policy.preserve_recent_critical_messages
        self.critical = critical_messages(conversation, pairing, recent)
        self._answer = max(answers_of(conversation), default=None)
        self.size = self.sizes.total(self.messages, self.all_parts)

    def result(self) -> list[Message]:
        """Return the messages as they are now."""
        return replace_values(self.messages, self.changes)

    def report(self, before: int, target: int) -> Report:
        """Return what was done to a request of this size."""
        return Report(
            self.unit,
            before,
            self.size,
            target,
            tuple(self.new),
            self.reused,
            self.skipped,
            stage=self.stage,
            merged_messages=self.merged_messages,
        )

    def size_of(self, part: Part) -> int:
        """Return the size of a part as it is now: of its stub, if it has one."""
        changed = self.changes.get(part.place)
        return self.sizes.of(part) if changed is None else self.sizes.of_value(changed)

    # What is in force

    def reapply(self) -> None:
        """Put all merges and stubs in force where they were."""
        runs = self._merges_in_force()
        # From the end, so that the places before stay right.
        for start, end, merge in reversed(runs):
            self._put_merge(start, end, merge)
        if runs:
            self._read()
        self.reused = self._put_stubs()

    def _merges_in_force(self) -> list[tuple[int, int, Merge]]:
        """Return where merges stand, in order, without any that holds a protected message."""
        if not self.state.merges:
            return []
        hashes = tuple(message_hash(message) for message in self.messages)
        found: list[tuple[int, int, Merge]] = []
        for merge in self.state.merges:
            length = len(merge.hashes)
            starts = range(len(hashes) - length + 1)
            start = next((at for at in starts if hashes[at : at + length] == merge.hashes), None)
            if start is not None:
                found.append((start, start + length, merge))
        allowed: list[tuple[int, int, Merge]] = []
        # Of two that begin alike the longer holds: it stands for the other's messages, too.
        for start, end, merge in sorted(found, key=lambda run: (run[0], -run[1])):
            if (not allowed or start >= allowed[-1][1]) and not self._protected(start, end):
                allowed.append((start, end, merge))
        return allowed

    def _put_stubs(self) -> int:
        """Put the stubs in force, and return how many."""
        self.changes.clear()
        for part in self.all_parts if self.state.stubs else ():
            if part.kind not in SMALLEST_TOKENS or part.message in self.merged:
                continue
            if part.message < self.prefix:
                continue
            key = self._content_key(part)
            entry = self.state.stubs.get(key)
            if entry is None or (self._is_protected(part) and not self._holds(part, key)):
                continue
            stub = self.state.memo[key[1], *entry]
            if self.sizes.of_value(as_value(part, stub)) <= self.sizes.of(part):
                self._apply(part, stub)
        return len(self.changes)

    def _holds(self, part: Part, key: ContentKey) -> bool:
        """Return whether a stub applies in a protected message: only if it was made there.

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

    def free_parts(self, kind: str, smallest: int = 0) -> list[Part]:
        """Return the parts of one kind that may be replaced by a stub, oldest first."""
        large = [
            part
            for part in self.all_parts
            if part.kind == kind and self._has_room(part) and self._is_large(part, smallest)
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

        The user's words come last: all else is about them.
        """
        free = self.free_parts("text") + self.free_parts("opaque")
        return sorted(free, key=lambda part: (part.role == "user", part.message))

    def _is_large(self, part: Part, smallest: int = 0) -> bool:
        """Return whether a part may be replaced at all, and has at least ``smallest`` tokens.

        Of the opaque parts only blocks of the user's with a picture or a document may be.
        """
        if part.shape == "fixed":
            return False
        if part.kind == "opaque" and (
            part.role != "user" or part.place[1] == () or not self.sizes.has_media(part)
        ):
            return False
        return self.sizes.of(part) >= (smallest or SMALLEST_TOKENS[part.kind]) * self.scale

    def _has_room(self, part: Part) -> bool:
        """Return whether a part has no stub yet, or only one with a preview."""
        if part.place not in self.changes:
            return True
        return self.state.stubs.get(self._content_key(part), (0, ""))[1].startswith(PREVIEW)

    def unshrinkable(self) -> dict[str, int]:
        """Return the sizes, by type, of parts that the provider takes only unchanged."""
        sizes = Counter[str]()
        for part in self.all_parts:
            as_is = part.kind == "opaque" or part.shape == "fixed"
            if as_is and part.place not in self.changes:
                block = an_object(part.value)
                name = block.get("type") or part.name or next(iter(block), "an unknown kind")
                sizes[str(name)] += self.sizes.of(part)
        return dict(sizes)

    def stub_until(self, goal: int, candidates: Iterable[Part], stage: int) -> None:
        """Replace parts by stubs, in this order, until the size is within ``goal``."""
        for part in candidates:
            if self.size <= goal:
                return
            self.candidates += 1
            target, label, make = self._ordinary_stub(part)
            if self._put(part, stage, (target, label), make):
                self.stage = max(self.stage, stage)

    def _ordinary_stub(self, part: Part) -> tuple[int, str, Callable[[], Any]]:
        """Return a part's target in tokens, its label, and the function that makes its usual stub.

        The stub is None where nothing in the part is long.
        """
        offload, name = self.policy.offload, self._name_of(part)
        if part.kind == "text":
            make = partial(history_stub, part.text, part.role, offload)
            return HISTORY_TARGET, f"history:{part.role}", make
        if part.kind == "opaque":
            return HISTORY_TARGET, f"history:{part.role}", partial(media_stub, part.value)
        if part.kind == "result":
            text = partial(plain, part.value)
            return RESULT_TARGET, f"result:{name}", lambda: result_stub(text(), name, offload)
        return ARGUMENTS_TARGET, f"arguments:{name}", partial(arguments_stub, part, offload)

    def _name_of(self, part: Part) -> str:
        """Return the name of the tool. Most formats state it only at the call."""
        return self.calls.get(part.place, part).name

    def _put(self, part: Part, stage: int, entry: tuple[int, str], make: Callable[[], Any]) -> bool:
        """Put a stub in the place of a part, and return whether that made it smaller.

        One that is hardly smaller than the content is never tried again.
        """
        content = self._content_key(part)
        key = (content[1], *entry)
        fresh = key not in self.state.memo
        if fresh:
            self.state.memo[key] = make()
        stub = self.state.memo[key]
        before = self.size_of(part)
        after = before if stub is None else self.sizes.of_value(as_value(part, stub))
        if after > before * WORTH:
            if fresh and after > self.sizes.of(part) * WORTH:
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

    def stub_oversized(self, window: int, on_event: OnEvent | None) -> None:
        """Replace each result that is strictly above the policy's share of a context window."""
        for part in self.all_parts:
            if part.kind != "result" or part.background or part.message < self.prefix:
                continue
            # Of those with a stub the stub counts, which is small.
            if part.shape == "fixed" or part.place in self.changes:
                continue
            size = self.sizes.of(part)
            if size > window * self.policy.oversized_fraction:
                call = ToolCall(part.call_id, self._name_of(part), self._arguments(part))
                make = partial(
                    oversized_stub, part.value, call, size, window, self.policy, on_event
                )
                self._put(part, 2, (RESULT_TARGET, f"oversized:{call.name}"), make)

    def _arguments(self, result: Part) -> dict[str, Any]:
        value: Any = self.calls[result.place].value if result.place in self.calls else {}
        with suppress(ValueError, RecursionError):
            value = json.loads(value) if isinstance(value, str) else value
        return value if is_object(value) else {"arguments": value}

    # The latest exchange, and critical messages

    def stub_unavoidable(self, goal: int) -> None:
        """Shrink the latest results first if no other stub can bring the size down to ``goal``.

        Older results would be lost for nothing.
        """
        if sum(self.size_of(part) for part in self.all_parts if part.message in self.kept) > goal:
            self.stub_latest(goal)

    def stub_latest(self, goal: int) -> None:
        """Give results of the latest exchange a preview instead, until ``goal`` is reached.

        They share the room evenly: all that are above one size come down to it.
        """
        latest = next((unit for unit in reversed(self.units) if unit.exchange), None)
        if latest is None or self.size <= goal:
            return
        results = [
            part
            for part in self.all_parts
            if part.kind == "result"
            and max(latest.start, self.prefix) <= part.message < latest.end
            and self._is_large(part)
            and self._has_room(part)
        ]
        results.sort(key=self.size_of, reverse=True)
        sizes = [self.size_of(part) // self.scale for part in results]
        count, share = _shares(sizes, (self.size - goal) // self.scale + 1)
        for part, size in zip(results[:count], sizes, strict=False):
            self.candidates += 1
            room = min(share, int(size * WORTH))
            # Rounded, so that a retry makes the same stub.
            target = max(room // 50 * 50, RESULT_TARGET)
            make = partial(self._preview, part, target * self.scale)
            if self._put(part, 2, (target, PREVIEW + self._name_of(part)), make):
                self.stage = max(self.stage, 2)

    def _preview(self, part: Part, room: int) -> dict[str, Any]:
        def size(stub: Any) -> int:
            return self.sizes.of_value(as_value(part, stub))

        text = plain(part.value)
        return preview_stub(text, self._name_of(part), self.policy.offload, room, size)

    def stub_critical(self, goal: int) -> None:
        """Stub critical messages one by one, oldest first, until ``goal``; never the answer.

        Answers go before instructions and the to-do list.
        """
        standing = {
            part.message
            for part in self.all_parts
            if part.role in {"system", "tool"} or part.kind == "call"
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
                    and self._is_large(part)
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
        for run in self._mergeable_runs() if excess > 0 else ():
            merged, size = list[Part](), 0
            end = start = run[0].start
            for unit in run:
                if size > excess + REF_TOKENS:
                    break
                end = unit.end
                added = [part for number in range(unit.start, end) for part in inside[number]]
                merged += added
                size += sum(map(self.size_of, added))
            gain = size - REF_TOKENS - self.sizes.of_value(merged_text(end - start, merged))
            if end - start > 1 and gain > 0 and excess > 0:
                runs.append((start, end, merged))
                excess -= gain
        for start, end, merged in reversed(runs):
            merge = merge_of(self.messages[start:end], merged, self.policy.offload)
            self.state.merges.append(merge)
            self._put_merge(start, end, merge)
        if runs:
            self.stage = 4
            self._read()
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


def _shares(sizes: Sequence[int], excess: int) -> tuple[int, int]:
    """Return how many of the falling ``sizes`` to bring down to one size, and that size in tokens.

    It is the largest with which they are smaller by ``excess`` together.
    """
    for count, following in enumerate([*sizes[1:], 0], 1):
        share = (sum(sizes[:count]) - excess) // count
        if share >= following:
            return count, share
    return len(sizes), 0
