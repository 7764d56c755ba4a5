"""The rules of classify: what they match, and the numbers that an error states.

The wordings are in ``_wordings.py``.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

# ruff: noqa: E501 - a pattern reads better whole


Outcome = Literal["overflow_tokens", "overflow_bytes", "not_overflow"]
Kind = Literal["overflow_tokens", "overflow_bytes", "truncated_silently", "not_overflow"]
"""``truncated_silently``: an answer with status 200 to a prompt that did not fit."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``pattern`` is searched in the lower-cased text with plain apostrophes; ``example`` is a text that it decides.

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
        match = _compiled(self.pattern).search(text)
        return None if match and self.unless and _compiled(self.unless).search(text) else match


# Compiled when first used: an agent that never sees an error does not pay for them.
_compiled = cache(re.compile)


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
        r"^\w*context(?:window|length|limit)?(?:exceeded|exceeding|overflow)(?:error|exception)?$",
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
"""Statuses that are never an overflow (RFC 9110, sections 15.5 and 15.6; RFC 6585, section 4). All 5xx are, too."""


_N = r"(\d[\d,_]*(?:\.\d+)?)(?: ?([kmg]i?b|[km])\b)?"
# Of tokens in thousands, of bytes as they are counted.
_SCALE = {"k": 1_000, "m": 1_000_000, "kb": 2**10, "mb": 2**20, "gb": 2**30}
SMALLEST = 512
"""No window or body limit is smaller: a smaller number is a count, an index or a code."""


class Numbers(NamedTuple):
    """What an error says of sizes, in its own unit (bytes where it says KB or MB); None where it does not."""

    limit: int | None = None
    requested_input: int | None = None
    requested_output: int | None = None


def _patterns(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern.replace("{N}", _N)) for pattern in patterns)


# Each list reads one field, the first pattern that finds a number wins. Texts are in lower case.
_LIMITS = _patterns(
    r"\d\)? \+ \d+ > {N}",
    r"> ?{N} ?(?:tokens? )?(?:maximum|max|limit)",
    r"must be <= ?{N}",
    r"should be \[\d+, ?{N}\]",
    r"limit for this model is {N}",
    r"context length of \S{1,80} is {N}",
    r"(?:maximum |max |model'?s? |available )?context (?:length|window|size)\b(?: limit| budget)?(?:,? (?:is|of|was|only|has|been|exceeded|the|model|for|to)\b)*\W{0,4}{N}",
    r"max(?:imum)? (?:allowed )?(?:prompt length|model length|input length|input tokens?|input characters|request body size|content length|"
    r"number of (?:input )?tokens(?: allowed)?|payload size|body size|document size|size|length|tokens)\b(?! \d+ exceeded)[^\d\n]{0,40}{N}",
    r"(?:n_ctx|window limit|configured limit|token limit|model limit|size limit|input limit)\b(?! exceeded by)[^\d\n]{0,30}{N}",
    r"max_(?!(?:completion_|new_|output_|total_)?tokens)\w{1,30}\W{1,4}{N}",
    r"{N}[- ](?:tokens? )?(?:context|limit|maximum|window)",
    r"longer than (?:the )?(?:maximum|model'?s?)[^\d\n]{0,60}{N}",
    r"(?:must|should) (?:be|have|contain) (?:less than|at most|up to|fewer than) {N}",
    r"(?:cannot|must not|should not) (?:exceed|be (?:larger|greater|longer|more) than)\b[^\d\n]{0,30}{N}",
    r"is over (?:the )?{N}",
    r"(?:less|fewer) than {N} tokens",
    r"supports? (?:only )?(?:up to|at most) {N}",
    r"(?:exceeds?|over|above|than|exceeded) (?:the )?(?:maximum|limit|allowed)\b[^\d\n]{0,40}{N}",
    r"\blimit (?:is|of|was)?:? ?{N}",
    r"larger than max \(\d+ vs\.? {N}\)",
    r"expected maxlength: {N}",
    r"\(?max {N}",
    r"exceed(?:s|ed)? {N}",
    r"> ?{N}",
    r"(?:上限|限制|超出|超过|最大)[^\d\n]{0,20}{N}",
)
_INPUTS = _patterns(
    r"\({N} (?:in the messages|in your prompt|of text input)",
    r"{N} tokens from the input",
    r"{N} \+ \d+ >",
    r"given: {N} `?inputs",
    r"(?:messages|prompt|input) (?:resulted in|contains?|has|is)(?: at least)? {N}(?: input)? tokens",
    r"{N} input tokens",
    r"max_total_tokens \({N}",
    r"request (?:has|contains) {N}",
    r"{N} (?:tokens? )?>",
    r"(?:prompt is too long|input is too long|input too long|prompt too long):? {N}",
    r"requested:? {N}(?! output)",
    r"(?:n_keep|n_prompt_tokens)\"?: ?{N}",
    r"keep the first {N} tokens",
    r"input token count (?:is )?\(?{N}",
    r"(?:total message size|actual body size|body size|input length|prompt length|current length is|length|string length)\b[ (]*(?:is |of )?{N}",
    r"(?:request|prompt|input|count|tokens|token count of) \(?{N}",
    r"message larger than max \({N}",
    r"request input token count: {N}",
    r"requested (?:about |a total of )?{N} tokens",
    r"your request will take {N} tokens",
    r"(?:actual|got|received|given):? {N}",
)
_OUTPUTS = _patterns(
    r"{N} in the (?:completion|output)",
    r"{N} (?:tokens )?for the completion",
    r"\d \+ {N} >",
    r"and {N} `?max_new_tokens",
    r"requested {N} output tokens",
    r"max_(?:completion_|new_|output_)?tokens['\"`]?(?: is too large:)? \(?{N}",
)
# The parts of a request, if each is stated: their sum is the input. An exception repeats its sentence
# (as message, body, text of the response, cause), so that each part counts once, by its name.
_INPUT_PARTS = _patterns(
    r"{N} (?:in|of) (?:the |your )?(?:messages|prompt|functions|tools|text input|tool input|tool definitions|images?)\b",
    r"\b(?:input|prefix|prompt|query|system|tool|image) (?:tokens|length) \({N}\)",
    r"\b(?:prefix|current) {N}(?= \+| exceeds)",
)
_TOTAL = _patterns(r"requested (?:about |a total of )?{N} tokens")
_BY = _patterns(r"exceeded by {N} tokens")
# Numbers that are no sizes: "(2013)" is MiniMax's code, "code: 336007" Baidu's, a status may stand
# at the beginning, and httpx names the address, with its port, in the cause of an SDK's error.
_CODES = re.compile(r"\(2013\)|\bcode['\"]?[:=]? ?['\"]?\d+|^\d{3,4} |\bhttps?://[^\s'\"<>()]+")
_DIGITS = re.compile(r"\d[\d,_.]*")
_ANY = re.compile(r"(?<![\w.-])\d[\d,]{2,}(?![\w-])")


def read_numbers(text: str) -> Numbers:
    """Read the sizes out of an error's words, in lower case."""
    text = _CODES.sub("", text)
    limit, wanted, output = _first(_LIMITS, text), _first(_INPUTS, text), _first(_OUTPUTS, text)
    total, excess = _first(_TOTAL, text), _first(_BY, text)
    parts: dict[str, int] = {}
    for part in (part for pattern in _INPUT_PARTS for part in pattern.finditer(text)):
        parts.setdefault(_DIGITS.sub("", part[0]), _number(part[1], part[2]))
    if len(parts) > 1:
        wanted = sum(parts.values())
    if limit and excess and wanted is None:
        return Numbers(limit, limit + excess, output)
    if output is not None and total is not None and wanted in {None, total}:
        wanted = max(total - output, 0)
    if output is None and not (limit and wanted and wanted > limit):
        limit, wanted = _by_order(text, limit, wanted)
    return Numbers(limit, wanted, output)


def _by_order(text: str, limit: int | None, wanted: int | None) -> tuple[int | None, int | None]:
    """Settle what the words left open: of just two sizes in an overflow the larger was asked for, and the smaller is the limit."""
    sizes = {size for size in map(_number, _ANY.findall(text)) if size >= SMALLEST}
    if len(sizes) == 2 and {limit, wanted} - {None} <= sizes:
        return min(sizes), max(sizes)
    if limit and wanted and wanted <= limit:
        return limit, None
    return limit, wanted


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    for pattern in patterns:
        for match in pattern.finditer(text):
            size = _number(match[1], match[2])
            if size >= SMALLEST or pattern in _OUTPUTS or pattern in _INPUTS[:4]:
                return size
    return None


def _number(digits: str, unit: str | None = None) -> int:
    scale = _SCALE.get((unit or "").replace("i", ""), 1)
    return int(float(digits.replace(",", "").replace("_", "")[:15]) * scale)
