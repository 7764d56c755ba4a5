"""The reactive rewrite: after a provider refused a request, make it small enough with the fewest stubs."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fetchstash.client._artifacts import HEAVY_KINDS, facts_of
from fetchstash.client._formats import Format, Message, Part, Place, parts, plain, replace_values
from fetchstash.client._pairing import Pairing, pair, units
from fetchstash.client._policy import Policy, State, content_hash
from fetchstash.client._protect import untouchable
from fetchstash.client._report import Change, Report
from fetchstash.client._shapes import an_object
from fetchstash.client._sizes import SizeUnit, measure, sample_text, sampled_tokens, size_in_bytes
from fetchstash.client._stubs import (
    ARGUMENTS_TARGET,
    RESULT_TARGET,
    WORTH,
    arguments_stub,
    as_value,
    result_stub,
)

LARGE_CHARS = 1_000
"""A result or arguments that are shorter give less than they cost in meaning."""


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
    """Replace contents by stubs until the request is within ``target`` (a number: tokens), in place and never one side of a pair.

    Results of PDF, office and binary contents go first, then other large results, then large
    arguments of calls, each oldest first. The first ``prefix`` messages, the system prompt, the
    first task, the last user turn and the latest exchange stay byte for byte. Returns new messages
    (what was not changed is shared) and the report, which says if nothing could be shrunk enough.
    """
    policy, state = policy or Policy(), state or State()
    goal = target if isinstance(target, Target) else Target(target)
    found = parts(messages, format)
    pairing = pair(found)
    kept = untouchable(len(messages), found, units(len(messages), found, pairing), prefix)
    size: Callable[[Part], int] = (
        sampled_tokens if goal.unit == "tokens" else lambda part: size_in_bytes(part.value)
    )
    before = measure(messages, format, goal.unit)
    after, changes, new, skipped = before, dict[Place, Any](), list[Change](), Counter[str]()
    names = call_names(pairing)
    for part in _candidates(found, kept, skipped):
        if after <= goal.size:
            break
        name = names.get(part.place, part.name)
        tokens, label = stub_key(part, name)
        digest = content_hash(part.text)
        stub, _ = state.remembered((digest, tokens, label), partial(make_stub, part, name, policy))
        value = as_value(part, stub) if stub is not None else part.value
        was, becomes = size(part), _size_of(value, goal.unit)
        if becomes > was * WORTH:
            state.memo[digest, tokens, label] = None
            skipped["no_gain"] += 1
            continue
        changes[part.place] = value
        state.stubs[part.call_id, digest, tokens] = label
        new.append(
            Change(
                part.message, 2 if part.kind == "result" else 1, digest, tokens, label, was, becomes
            )
        )
        after -= was - becomes
    stage = max((change.stage for change in new), default=0)
    report = Report(
        goal.unit,
        before,
        after,
        goal.size,
        tuple(new),
        skipped=skipped,
        stage=stage,
        unshrinkable=_unshrinkable(found, size),
    )
    return replace_values(messages, changes), report


def call_names(pairing: Pairing) -> dict[Place, str]:
    """Return the names of the tools whose results stand at these places: most formats tell them only at the call."""
    return {one.result.place: one.call.name for one in pairing.pairs}


def stub_key(part: Part, name: str) -> tuple[int, str]:
    """Return the target in tokens and the label of the stub of a result or of arguments."""
    return (
        (RESULT_TARGET, f"result:{name}")
        if part.kind == "result"
        else (ARGUMENTS_TARGET, f"arguments:{name}")
    )


def make_stub(part: Part, name: str, policy: Policy) -> Any:
    """Return the stub of a result or of arguments, None where nothing in these is long or may be replaced."""
    if part.shape == "fixed":
        return None
    return (
        result_stub(plain(part.value), name, policy.offload)
        if part.kind == "result"
        else arguments_stub(part, policy.offload)
    )


def _candidates(found: Sequence[Part], kept: frozenset[int], skipped: Counter[str]) -> list[Part]:
    large = [
        part for part in found if part.kind in {"result", "call"} and len(part.text) >= LARGE_CHARS
    ]
    free = [part for part in large if part.message not in kept]
    skipped["policy_preserve"] += len(large) - len(free)
    return sorted(free, key=lambda part: (_rank(part), part.place[0]))


def _unshrinkable(found: Sequence[Part], size: Callable[[Part], int]) -> dict[str, int]:
    """Return the sizes of what the provider takes only as it is, by type."""
    sizes = Counter[str]()
    for part in found:
        if part.kind == "opaque" or part.shape == "fixed":
            named = an_object(part.value).get("type") or part.name or part.kind
            sizes[str(named)] += size(part)
    return dict(sizes)


def _rank(part: Part) -> int:
    if part.kind == "call":
        return 2
    return 0 if facts_of(plain(part.value)).content_kind in HEAVY_KINDS else 1


def _size_of(value: Any, unit: SizeUnit) -> int:
    return (
        size_in_bytes(value)
        if unit == "bytes"
        else sample_text(value if isinstance(value, str) else str(value))
    )
