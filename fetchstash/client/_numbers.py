"""Limits and requested sizes, parsed where they stand in an error's words."""

# ruff: noqa: E501 - a pattern reads better whole

import re
from dataclasses import dataclass

_N = r"(\d[\d,_]*(?:\.\d+)?)(?: ?([kmg]i?b|[km])\b)?"
_SCALE = {
    "k": 1_000,
    "m": 1_000_000,
    "kb": 2**10,
    "mb": 2**20,
    "gb": 2**30,
}  # of tokens in thousands, of bytes as they are counted
SMALLEST = 512
"""No window or body limit is smaller: a smaller number is a count, an index or a code."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """What an error tells of sizes, in its own unit (bytes where it says KB or MB); None where it does not."""

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
    sizes = {
        size for size in (_number(digits) for digits in _ANY.findall(text)) if size >= SMALLEST
    }
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
