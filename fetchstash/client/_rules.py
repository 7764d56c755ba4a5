"""The rules of classify: what they match, and the codes and statuses that decide by themselves.

The wordings are in ``_wordings.py``, the numbers in them are read by ``_numbers.py``.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

# ruff: noqa: E501 - a pattern reads better whole


Outcome = Literal["overflow_tokens", "overflow_bytes", "overflow_media", "not_overflow"]
Kind = Literal[
    "overflow_tokens", "overflow_bytes", "overflow_media", "truncated_silently", "not_overflow"
]
"""``truncated_silently``: an answer with status 200 to a prompt that did not fit."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: ``pattern`` is searched in lower-cased text; ``example`` is a text that it decides.

    A text in which ``unless`` is found is not this rule's. ``source`` says whose wording it is, and
    the id ends up in verdicts and events.
    """

    id: str
    outcome: Outcome
    pattern: str
    source: str
    example: str
    unless: str = ""

    def search(self, text: str) -> re.Match[str] | None:
        """Return where this rule finds its wording."""
        match = compiled(self.pattern).search(text)
        return None if match and self.unless and compiled(self.unless).search(text) else match


# Compiled when first used: an agent that never sees an error does not pay for them.
compiled = cache(re.compile)


CODES: dict[str, tuple[Outcome, str]] = {
    "context_length_exceeded": ("overflow_tokens", "OpenAI API reference; most compatible servers"),
    "context_window_exceeded": ("overflow_tokens", "compatible gateways"),
    "context_exceeded": ("overflow_tokens", "ds4 server"),
    "context_too_long": ("overflow_tokens", "compatible gateways"),
    "context_overflow": ("overflow_tokens", "compatible gateways"),
    "prompt_too_long": ("overflow_tokens", "compatible gateways"),
    "input_too_long": ("overflow_tokens", "compatible gateways"),
    "max_context_length_exceeded": ("overflow_tokens", "compatible gateways"),
    "exceed_context_size_error": ("overflow_tokens", "llama.cpp, tools/server"),
    "model_context_window_exceeded": ("overflow_tokens", "Anthropic API reference, stop reasons"),
    "model_length": ("overflow_tokens", "Mistral API reference, finish reasons"),
    "tokens_limit_reached": ("overflow_tokens", "GitHub Models"),
    "tokens_too_long": ("overflow_tokens", "Baidu Qianfan v2, error codes"),
    "contextwindowexceedederror": ("overflow_tokens", "litellm.exceptions"),
    "contextoverflowerror": ("overflow_tokens", "langchain_core.exceptions"),
    "contextwindowoverflowexception": ("overflow_tokens", "strands.types.exceptions"),
    "contextwindowexceeded": ("overflow_tokens", "pydantic_ai.exceptions"),
    "base_resp:1039": ("overflow_tokens", "MiniMax API reference, error codes"),
    "request_too_large": ("overflow_bytes", "Anthropic API reference, errors: 413, 32 MB"),
    "requestentitytoolarge": ("overflow_bytes", "Azure API Management"),
    "payload_too_large": ("overflow_bytes", "compatible gateways"),
}
"""Codes, types, reasons and class names that say it by themselves, in lower case."""

CODE_WORDINGS = (
    Rule(
        "code-tokens",
        "overflow_tokens",
        r"^(?:\w+_)?(?:context|prompt|input|content_length|tokens?_(?:count|quantity))(?:_\w+)?_?(?:exceed\w*|overflow|too_long|too_large)(?:_threshold)?$",
        "codes of servers that are not listed, which are built alike",
        "model_max_prompt_tokens_exceeded",
    ),
    Rule(
        "class-tokens",
        "overflow_tokens",
        r"^\w*(?:context|prompt|input|tokens?|window|history)(?:window|length|limit|tokens?|size|count|message)*(?:exceeded|exceeding|overflow|toolong|toolarge)(?:error|exception)?$",
        "exception classes of libraries that are not listed, which are named alike",
        "modelcontextwindowexceedederror",
    ),
    Rule(
        "code-bytes",
        "overflow_bytes",
        r"^(?:\w+_)?(?:payload|body|entity|content)(?:_size|_length)?_(?:too_large|exceeded)$",
        "Vercel, follow-redirects (Node.js), gateways",
        "function_payload_too_large",
    ),
)
"""Codes by how they are built; each is tried on one code alone."""

PROVIDER_CODES: dict[str, tuple[str, Outcome, str]] = {
    "1261": ("zai|zhipu|glm|bigmodel", "overflow_tokens", "Z.ai API reference, error codes"),
    "336007": ("baidu|qianfan|ernie|wenxin", "overflow_tokens", "Baidu Qianfan, error codes"),
    "5021": ("cloudflare|workers", "overflow_tokens", "Cloudflare Workers AI, error codes"),
}
"""Numbers that mean overflow with one provider only: each with a pattern of the provider's names."""

VETO_CODES = frozenset(
    {
        "rate_limit_exceeded",
        "rate_limit_error",
        "rate_limited",
        "ratelimitreached",
        "ratelimiterror",
        "insufficient_quota",
        "throttlingexception",
        "throttling",
        "throttled",
        "toomanyrequestsexception",
        "resource_exhausted",
        "overloaded_error",
        "overloaded",
        "server_overloaded",
        "service_tier_capacity_exceeded",
        "billing_error",
        "insufficient_balance",
        "insufficient_credits",
        "authentication_error",
        "permission_error",
        "not_found_error",
        "content_filter",
        "content_policy_violation",
        "tool_use_failed",
        "array_above_max_length",
        "unsupported_parameter",
        "unsupported_value",
        "decimal_above_max_value",
        "integer_above_max_value",
        "invalid_api_key",
        "model_not_found",
        "deadline_exceeded",
        "timeout",
        "quota_exceeded",
        "usage_limit_reached",
        "lengthfinishreasonerror",
    }
)
"""Codes that say it is something else, whatever the words are."""

VETO_STATUSES = frozenset({401, 402, 403, 404, 405, 407, 408, 409, 410, 415, 429})
"""Statuses that are never an overflow (RFC 9110, sections 15.5 and 15.6; RFC 6585, section 4), nor is any 5xx,
unless a rule of its own, with its source, says otherwise: FIRST, SERVER_ERRORS, RELAYED."""
