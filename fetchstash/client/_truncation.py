"""Answers with status 200 to a prompt that did not fit: empty, or to a truncated prompt.

LM Studio and Ollama truncate a prompt that is longer than the window they loaded the model with,
and so do some proxies (LM Studio documentation, "Context overflow policy"; Ollama, docs/faq.md,
"How can I specify the context window size?"). The counts in the answer show it.
"""

from typing import Any

from fetchstash.client._streams import commits, finish_reasons, get, reasons

SMALLEST_PROMPT_TOKENS = 2_000
"""Below it an estimate of the prompt says too little."""

CUT_SHARE = 0.5
"""Fewer reported prompt tokens than this share of the estimate: no estimate is that wrong."""


def empty_answer(response: Any) -> bool:
    """Return whether an answer ended for its length before it began.

    It has no content, no reasoning and at most one token. A model that spent its tokens on hidden
    reasoning reports these as completion tokens.
    """
    if not {"length", "max_tokens"}.intersection(finish_reasons(response)):
        return False
    written = _count(response, "completion_tokens", "output_tokens", "eval_count")
    return written is not None and written <= 1 and not commits(response) and not reasons(response)


def reported_input(response: Any) -> int | None:
    """Return the prompt tokens that an answer reports, cached ones included, or None."""
    counted = _count(response, "prompt_tokens", "input_tokens", "prompt_eval_count")
    if counted is None:
        return None
    usage = get(response, "usage")  # Anthropic reports what came from its cache beside the rest
    cached = [get(usage, f"cache_{name}_input_tokens") for name in ("read", "creation")]
    return counted + sum(count for count in cached if isinstance(count, int))


def cut_prompt(response: Any, sent: int) -> bool:
    """Return whether an answer reports far fewer prompt tokens than the ``sent`` ones."""
    reported = reported_input(response) or 0
    return sent >= SMALLEST_PROMPT_TOKENS and 0 < reported < sent * CUT_SHARE


def _count(response: Any, *names: str) -> int | None:
    """Return the first of these counts that the usage of an answer, or the answer itself, has."""
    usage = get(response, "usage")
    for name in names:
        for holder in (usage, response):
            count = get(holder, name)
            if isinstance(count, int) and not isinstance(count, bool):
                return count
    return None
