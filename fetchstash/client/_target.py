"""How small a refused request has to become."""

from typing import Literal

from fetchstash.client._classify import Verdict
from fetchstash.client._rewrite import Target

HEADROOM = 0.9
"""Share of the limit to aim at: what is outside the messages (system prompt, tools) does not shrink, and counts differ."""

UNKNOWN_LIMIT_SHARE = 0.5
"""What to keep of a request whose limit the provider did not tell."""


def target_of(verdict: Verdict, before: int) -> Target:
    """Return the size to aim at for a request that measures ``before`` here, in bytes or tokens as the verdict has it.

    The provider's own count of the request tells how its measure relates to ours. The target is
    always below ``before``.
    """
    unit: Literal["bytes", "tokens"] = "bytes" if verdict.kind == "overflow_bytes" else "tokens"
    if not verdict.limit:
        return Target(int(before * UNKNOWN_LIMIT_SHARE), unit)
    left = verdict.limit - (verdict.requested_output or 0)
    room = left if left * 10 >= verdict.limit else verdict.limit
    scale = before / verdict.requested_input if verdict.requested_input else 1
    return Target(int(min(room * scale, before) * HEADROOM), unit)


def clamped_output(verdict: Verdict, max_output: int | None) -> int | None:
    """Return the output tokens to ask for instead of ``max_output``; None where fewer would not help or may not be asked for."""
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
