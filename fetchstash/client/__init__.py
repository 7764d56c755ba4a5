"""The agent's side: overflow, rewrite, retry, compaction. Imports no third-party module.

    classify    is this error, event or finish reason an overflow, and of what
    rewrite     make a refused request small enough, with the fewest stubs
    Recovery    send a request, and save it from an overflow with one smaller retry
    compact     keep a conversation within its window, before it is sent
    stub_oversized, HistoryCompactor, extractor_prompt

Adapters for the SDKs are in fetchstash.client.adapters, each an optional extra; docs/client.md
shows them all. A name is imported when it is first asked for: an agent that only classifies errors
pays for nothing else.
"""

from typing import TYPE_CHECKING

from fetchstash.system import lazy_names

if TYPE_CHECKING:
    from fetchstash.client._classify import Verdict, classify
    from fetchstash.client._compact import (
        CompactionResult,
        HistoryCompactor,
        compact,
        extractor_prompt,
        rewrite,
    )
    from fetchstash.client._formats import EXTRACTION_MARK
    from fetchstash.client._learned import LearnedLimit, learned_windows
    from fetchstash.client._media_bounds import MEDIA_BOUNDS, MediaBounds
    from fetchstash.client._policy import CompactionConfig, Format, Offload, Policy, Request, State
    from fetchstash.client._protect import orphans
    from fetchstash.client._recovery import Recovery, overflow_report
    from fetchstash.client._sizes import (
        Change,
        Report,
        Target,
        context_window,
        count_tokens,
    )
    from fetchstash.client._stubs import ToolCall, stub_oversized

__all__ = [
    "EXTRACTION_MARK",
    "MEDIA_BOUNDS",
    "Change",
    "CompactionConfig",
    "CompactionResult",
    "Format",
    "HistoryCompactor",
    "LearnedLimit",
    "MediaBounds",
    "Offload",
    "Policy",
    "Recovery",
    "Report",
    "Request",
    "State",
    "Target",
    "ToolCall",
    "Verdict",
    "classify",
    "compact",
    "context_window",
    "count_tokens",
    "extractor_prompt",
    "learned_windows",
    "orphans",
    "overflow_report",
    "rewrite",
    "stub_oversized",
]

_MODULES = {
    "_classify": "Verdict classify",
    "_compact": "CompactionResult HistoryCompactor compact extractor_prompt rewrite",
    "_formats": "EXTRACTION_MARK",
    "_learned": "LearnedLimit learned_windows",
    "_media_bounds": "MEDIA_BOUNDS MediaBounds",
    "_policy": "CompactionConfig Format Offload Policy Request State",
    "_protect": "orphans",
    "_recovery": "Recovery overflow_report",
    "_sizes": "Change Report Target context_window count_tokens",
    "_stubs": "ToolCall stub_oversized",
}
__getattr__ = lazy_names(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
