"""How small a refused request has to become."""

from fetchstash.client._classify import Verdict
from fetchstash.client._request import RequestInfo
from fetchstash.client._rewrite import Target
from fetchstash.client._sizes import SizeUnit, json_tokens, size_in_bytes

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
