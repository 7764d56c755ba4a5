"""Decide whether an error, event or finish reason is an overflow, and of what.

The order separates look-alikes: what a transport says of itself; statuses and codes of something
else; codes of an overflow; wordings; codes that are built alike; and last what a bare 413 means.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from fetchstash.client._grammar import GRAMMAR, IN_MEDIA, NO_MEDIA, NO_PROMPT, SUBJECT
from fetchstash.client._numbers import (
    MediaUnit,
    Numbers,
    media_unit,
    read_media_numbers,
    read_numbers,
    token_counts,
)
from fetchstash.client._rules import (
    CODE_WORDINGS,
    CODES,
    PROVIDER_CODES,
    VETO_CODES,
    VETO_STATUSES,
    Kind,
    Outcome,
    Rule,
)
from fetchstash.client._streams import (
    cut_prompt,
    empty_answer,
    get,
    is_collection,
    is_mapping,
    reported_input,
)
from fetchstash.client._wordings import EMPTY_400, FIRST, RELAYED, SERVER_ERRORS, WORDINGS

MAX_NODES, MAX_DEPTH, MAX_WIDTH = 400, 12, 60
MAX_TEXT_CHARS = 20_000
"""How much of one error is read: error bodies echo requests, and this one was too large."""

_ATTRIBUTES = (
    "status_code",
    "status",
    "http_status",
    "code",
    "type",
    "error_type",
    "error_code",
    "reason",
    "finish_reason",
    "stop_reason",
    "message",
    "detail",
    "details",
    "description",
    "error_message",
    "error_msg",
    "status_msg",
    "base_resp",
    "model_extra",
    "body",
    "error",
    "errors",
    "metadata",
    "raw",
    "response",
    "incomplete_details",
    "param",
    "choices",
    "text",
    "original_exception",
)
# LiteLLM gives these 500 or 503, whatever the provider sent (litellm/exceptions.py).
_MADE_STATUS = re.compile(r"<class 'litellm\..*\b(?:APIConnectionError|MidStreamFallbackError)'>")
# And it chooses the classes of these, with their statuses, by words anywhere in the body: a field
# "ratelimit_remaining" makes a 400 a RateLimitError.
_WRAPPER = re.compile(r"\blitellm\.\w+: (?:\w+error: )?")
_MADE_CLASS = re.compile(r"<class 'litellm\.exceptions\.")
MAX_CAUSES = 8
# Keys of a body or an event with content, not with an error.
_CONTENT_KEYS = {
    "content",
    "contents",
    "text",
    "delta",
    "output",
    "input",
    "messages",
    "parts",
    "arguments",
    "tool_calls",
    "request",
    "headers",
}
_STATUS_KEYS = {"status_code", "status", "http_status", "httpstatuscode", "code", "statuscode"}
_CODE_KEYS = {
    "code",
    "type",
    "error_type",
    "error_code",
    "status",
    "reason",
    "finish_reason",
    "stop_reason",
    "__type",
    "errorcode",
    "errortype",
}
# Sizes that llama.cpp states beside its words (tools/server, exceed_context_size_error).
_SIZE_KEYS = {"n_prompt_tokens": "input", "n_ctx": "limit"}
# A status that is only stated in words: "413 status code", "HTTP 400:", "API error (413)", "Error:
# 400 - ", "status_code=429".
_STATUS_IN_TEXT = re.compile(
    r"(?i)^\s*(?:error:?\s*)?([45]\d\d)\b(?=[\s:{]|$)|"
    r"\b(?:status(?:[\s_]*code)?|http(?:/[\d.]+)?|api error|error code|error)"
    r"\s*[:=(]?\s*([45]\d\d)\b"
)
_WORD = re.compile(r"[A-Za-z][\w.\-]*\Z")


class Signals:
    """The words and numbers of an error: an exception with its chain, a body, an event, a string.

    It walks the tree of values, each once, within bounds. ``statuses`` are HTTP statuses, the
    outermost first; ``codes`` are in lower case, class names of exceptions among them; ``sizes``
    are those of fields that a server documents; ``text`` is all wording, in order. ``wrapped``: a
    library put its own class and status before the provider's.
    """

    def __init__(self, error: Any) -> None:
        self.codes: set[str] = set()
        self.sizes: dict[str, int] = {}
        self.wrapped = False
        self._stated: list[int] = []
        self._texts: list[str] = []
        self._chars = 0
        self._seen: set[int] = set()
        self._visit(error, "", 0)
        self.text = "\n".join(dict.fromkeys(self._texts))
        in_words = (int(match[1] or match[2]) for match in _STATUS_IN_TEXT.finditer(self.text))
        self.statuses = tuple(dict.fromkeys([*self._stated, *in_words]))

    def _visit(self, value: Any, key: str, depth: int) -> None:
        if isinstance(value, bool | None) or depth > MAX_DEPTH or len(self._seen) > MAX_NODES:
            return
        if isinstance(value, int | float):
            self._number(value, key)
        elif isinstance(value, str):
            self._words(value, key, depth)
        elif isinstance(value, bytes | bytearray):
            self._words(bytes(value[:MAX_TEXT_CHARS]).decode("utf-8", "replace"), key, depth)
        elif id(value) not in self._seen:
            self._seen.add(id(value))
            if key == "base_resp":  # MiniMax's status beside that of HTTP, as data or as an object
                self.codes.add(f"base_resp:{get(value, 'status_code')}")
            for name, inner in _inside(value):
                self._visit(inner, name, depth + 1)
            if isinstance(value, BaseException):
                names = {cls.__name__.lower() for cls in type(value).__mro__[:-2]}
                made_up = _is_made_up(value)
                self.wrapped = self.wrapped or made_up
                self.codes.update(names & CODES.keys() if made_up else names)

    def _number(self, value: float, key: str) -> None:
        if key.lower() in _STATUS_KEYS and 200 <= value < 600:
            self._stated.append(int(value))
        elif key.lower() in _CODE_KEYS:
            self.codes.add(str(int(value)))
        elif key in _SIZE_KEYS:
            self.sizes.setdefault(_SIZE_KEYS[key], int(value))

    def _words(self, value: str, key: str, depth: int) -> None:
        value = value.strip()
        if key.lower() in _CODE_KEYS and len(value) <= 80:
            if value.isdigit():
                self._number(int(value), key)
                return
            if _WORD.match(value):
                self.codes.add(value.lower())
                return
        room = MAX_TEXT_CHARS - self._chars
        if not value or room <= 0 or key in {"object", "id", "model", "param"}:
            # ``param`` names the field that is wrong; it is noted together with the code that it
            # explains.
            if key == "param" and value:
                self.codes.add(f"param:{value[:80].lower()}")
            return
        self._texts.append(value[:room])
        self._chars += min(len(value), room)
        for inner in _json_inside(value[:room]):
            self._visit(inner, "", depth + 1)


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the contents of an object: of an exception its words, its attributes and its causes."""
    if is_mapping(value):
        for key, inner in islice(value.items(), MAX_WIDTH):
            if key not in _CONTENT_KEYS:
                yield str(key), inner
            elif key == "delta" and is_mapping(inner):  # Anthropic's message_delta
                yield "stop_reason", inner.get("stop_reason")
        return
    if is_collection(value):
        for item in islice(value, MAX_WIDTH):
            yield "", item
        return
    yield "stop_reason", _quietly(lambda: value.delta.stop_reason)
    if isinstance(value, BaseException):
        yield "message", _quietly(lambda: str(value))
        yield "", value.args
        yield "", getattr(value, "exceptions", None)  # those of an ExceptionGroup
        yield "", value.__cause__
        # ``raise X from None`` hides the context from a reader, who is a person; the provider's
        # words are still in it.
        yield "", value.__context__
    made_up = _is_made_up(value)
    for name in _ATTRIBUTES:
        if made_up and name in {"status_code", "code", "response"}:
            continue
        inner = _quietly(lambda name=name: getattr(value, name, None))
        if inner is not None and not callable(inner):
            yield name, inner


def _is_made_up(value: Any) -> bool:
    """Return whether a wrapper invented the error's status, and the provider's own is below."""
    name = str(value.__class__)
    if _MADE_STATUS.match(name) or _is_of_a_stream(value):
        return True
    cause = value if _MADE_CLASS.match(name) else None
    for _ in range(MAX_CAUSES):
        cause = getattr(cause, "__cause__", None) or getattr(cause, "__context__", None)
        status = _quietly(lambda cause=cause: getattr(cause, "status_code", None))
        made = _MADE_CLASS.match(str(cause.__class__)) or _is_of_a_stream(cause)
        if isinstance(status, int) and not made:
            return True
    return False


def _is_of_a_stream(value: Any) -> bool:
    """Return whether LiteLLM made this error of a stream's event: a 500 without an answer below."""
    of_litellm = str(value.__class__).startswith("<class 'litellm.llms.")
    return of_litellm and not (value.__cause__ or value.__context__)


def _quietly(read: Any) -> Any:
    """Return the result of ``read``, None if it raises: a property of a closed response may."""
    try:
        return read()
    except Exception:  # noqa: BLE001 - anything may be raised by what is only looked at
        return None


def _json_inside(text: str) -> Iterator[Any]:
    """Yield the JSON in a text: gateways wrap a provider's body in words, and in other bodies."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    while 0 <= start < len(text):
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            break
        yield value
        start = text.find("{", end)


Action = Literal["rewrite", "shrink_bytes", "shrink_media", "clamp_output", "none"]
Unit = Literal["tokens"] | MediaUnit

UNSATISFIABLE = "rate-limit-unsatisfiable"
"""The rule of a request that is larger by itself than what is given in a minute or a day.

No waiting satisfies it. Its limit is that of a customer, and not the window of the model.
"""

_REQUESTED = re.compile(r"limit:? (\d[\d,]*)(?:, used:? \d[\d,]*)?, requested:? (\d[\d,]*\d)")
_OF_INPUT = re.compile(r"(?<!output )tokens per |\bi?tp[md]\b")
_PLAIN_APOSTROPHES = {0x2018: "'", 0x2019: "'"}
_NO_SIZE = re.compile(
    r"[\d,_]{24,}"
)  # longer than any size; a run of digits would cost every pattern the square of its length
# Keys of a body, which an exception may quote: each value becomes a line of its own, and
# no pattern reads across it.
_BODY_KEYS = re.compile(r"(?<=[{,])\s*\\*['\"][\w.$-]{1,60}\\*['\"]\s*:\s*")
# What httpx says of a status, in the cause of an SDK's error: a reason phrase is no verdict.
_STATUS_LINE = re.compile(r"(?:client|server) error '\d{3}\b")
_FRAME = " \t'\",{}[]\\"
_MODEL_NAME = re.compile(r"\bmodel_name: [^,\n]*, ")
_SENTENCES = re.compile(r"(?<=[.!?])(?<!max\.)\s+(?=\S)|(?<=[\u3002\uff01\uff1f])")
_CODE_WORD = re.compile(
    r"\b[a-z]+(?:_[a-z]+)+\b|\b[a-z]{4,40}(?:exceeded|overflow|toolong|toolarge)(?:error|exception)?\b"
)
_STATED_TOKENS = re.compile(r"\d tokens\b")
_OF_A_MODEL = re.compile(r"context|tokens?\b|prompt|conversation|model")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The kind of an error, and what to do about it.

    ``limit``, ``requested_input`` and ``requested_output`` are in ``unit``: tokens; bytes where
    ``kind`` is overflow_bytes; where it is overflow_media what the limit counts (pictures,
    documents, recordings, media for pictures and documents together, pages) or measures of one of
    them (pixels, bytes). They are None where no words of the deciding sentence state them.
    ``evidence`` is the piece of the error that decided, at most 200 characters; ``rule_id`` names
    the rule.
    """

    kind: Kind
    limit: int | None = None
    requested_input: int | None = None
    requested_output: int | None = None
    action: Action = "none"
    evidence: str = ""
    rule_id: str = "nothing-said"
    unit: Unit = "tokens"

    @property
    def overflow(self) -> bool:
        """Whether the request was too large."""
        return self.kind in {"overflow_tokens", "overflow_bytes", "overflow_media"}


def classify(
    error_or_event: Any, provider: str | None = None, *, sent_tokens: int | None = None
) -> Verdict:
    """Return the verdict on an error, a body, a stream event, a finish reason or a string.

    ``provider`` (any spelling) settles what only one provider means. With ``sent_tokens``, the
    estimated size of the prompt, an answer that reports far fewer is a prompt that was truncated in
    silence. Never raises.
    """
    try:
        return _truncated(error_or_event, sent_tokens) or _decide(
            Signals(error_or_event), str(provider or "").lower()
        )
    except Exception:  # noqa: BLE001 - the promise: an error handler must not be the next error
        return Verdict("not_overflow", rule_id="unreadable")


def _truncated(response: Any, sent_tokens: int | None) -> Verdict | None:
    """Return the verdict on an answer to a prompt that did not fit, None for anything else."""
    if isinstance(response, str | BaseException):
        return None
    if empty_answer(response):
        # The answer is empty, so a retry loses nothing.
        return Verdict("truncated_silently", action="rewrite", rule_id="empty-answer")
    if sent_tokens is not None and cut_prompt(response, sent_tokens):
        reported = reported_input(response)
        evidence = f"{reported} prompt tokens reported, about {sent_tokens} sent"
        return Verdict(
            "truncated_silently", reported, sent_tokens, evidence=evidence, rule_id="cut-prompt"
        )
    return None


@dataclass(frozen=True, slots=True)
class _Words:
    """The wording of an error in lower case: its lines, each the value of one field."""

    signals: Signals
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def _words_of(signals: Signals) -> _Words:
    text = signals.text.lower().translate(_PLAIN_APOSTROPHES)
    text = _BODY_KEYS.sub("\n", _MODEL_NAME.sub("", _NO_SIZE.sub("0", text)))
    if signals.wrapped:
        text = _WRAPPER.sub("", text)
    lines = (line.strip(_FRAME) for line in text.split("\n"))
    said = (line for line in lines if line and not _STATUS_LINE.match(line))
    return _Words(signals, tuple(dict.fromkeys(said)))


def _decide(signals: Signals, provider: str) -> Verdict:
    words = _words_of(signals)
    if any(code >= 500 for code in signals.statuses):
        rules = (*SERVER_ERRORS, *RELAYED) if 502 in signals.statuses else SERVER_ERRORS
        with_codes = _Words(signals, (*words.lines, *sorted(signals.codes)))
        other = Verdict("not_overflow", rule_id="status-5xx", evidence=str(signals.statuses[0]))
        return _by_rules(rules, with_codes) or other
    codes = sorted(signals.codes.union(_CODE_WORD.findall(words.text)))
    return (
        _by_rules(FIRST, words)
        or _vetoed(signals, words.text)
        or _by_code(codes, words, provider)
        or _by_rules((*SERVER_ERRORS, *WORDINGS), words, GRAMMAR)
        or _by_sizes(words)
        or _by_build(codes, words)
        or _bare_status(words, provider)
        or Verdict("not_overflow")
    )


def _vetoed(signals: Signals, text: str) -> Verdict | None:
    """Return the verdict if a status or code shows that it is something else: a rate limit, a bill.

    A rate limit of tokens that the request alone is above is an overflow.
    """
    requested = _REQUESTED.search(text)
    if requested and re.search(r"rate|tpm|per min|per day|request too large", text):
        limit, asked = (int(number.replace(",", "")) for number in requested.groups())
        if asked > limit and _OF_INPUT.search(text):
            return Verdict(
                "overflow_tokens", limit, asked, None, "rewrite", requested[0], UNSATISFIABLE
            )
        return Verdict("not_overflow", limit, asked, evidence=requested[0], rule_id="rate-limit")
    for status in signals.statuses:
        if status in VETO_STATUSES:
            return Verdict("not_overflow", evidence=str(status), rule_id=f"status-{status}")
    code = next(iter(sorted(signals.codes & VETO_CODES)), None)
    return Verdict("not_overflow", evidence=code, rule_id=f"code-{code}") if code else None


def _by_code(codes: Iterable[str], words: _Words, provider: str) -> Verdict | None:
    """Return the verdict of a code that decides by itself."""
    for code in codes:
        outcome, _ = CODES.get(code, (None, ""))
        names, outcome_there, _ = PROVIDER_CODES.get(code, ("", None, ""))
        if outcome is None and names and re.search(names, provider):
            outcome = outcome_there
        if outcome == "overflow_bytes" and _STATED_TOKENS.search(words.text):
            outcome = "overflow_tokens"
        if outcome:
            return _verdict(outcome, words, "", code, f"code-{code}")
    return None


STATED_OVER_LIMIT = "stated-over-limit"
"""The rule of a sentence that no wording fits, and that states a size above a limit."""

_OF_TOKENS = re.compile(
    r"token|jetons?|トークン|토큰|токен|\bctx|context|prompt|\bseq(?:uence)?\b|positions|上下文|コンテキスト|컨텍스트"
)


def _by_sizes(words: _Words) -> Verdict | None:
    """Return the verdict on an unknown wording by the sizes that it states.

    It is an overflow if what was sent is above a limit. A refusal that counts the tokens of a
    prompt is one, too, unless the prompt is below the limit that it states.
    """
    for line in words.lines:
        if _rule_of(WORDINGS, line):
            continue
        if IN_MEDIA.search(line) and not NO_MEDIA.search(line):
            limit, asked, _ = read_media_numbers(line)
            if limit and asked and asked > limit:
                return _verdict("overflow_media", words, line, line[:200], STATED_OVER_LIMIT)
        if NO_PROMPT.search(line) or not _OF_TOKENS.search(line):
            continue
        limit, asked, _ = read_numbers(line)
        counts = token_counts(line)
        refused = SUBJECT.search(line) and counts and (len(counts) == 1 or limit != max(counts))
        if (limit and asked and asked > limit) or refused:
            return _verdict("overflow_tokens", words, line, line[:200], STATED_OVER_LIMIT)
    return None


def _by_build(codes: Iterable[str], words: _Words) -> Verdict | None:
    """Return the verdict on an unlisted code whose name says what it means."""
    built = ((code, rule) for code in codes for rule in CODE_WORDINGS if rule.search(code))
    return next(
        (_verdict(rule.outcome, words, "", code, f"code-{code}") for code, rule in built), None
    )


def _by_rules(
    rules: Sequence[Rule], words: _Words, of_sentences: Sequence[Rule] = ()
) -> Verdict | None:
    """Return the verdict of the first line that is an overflow, else of the first that a rule fits.

    Each line is read by itself: what stands in another field of the body vetoes nothing. Where no
    rule has a line, ``of_sentences`` are tried on each of its sentences.
    """
    other: Verdict | None = None
    for line in words.lines:
        found = _rule_of(rules, line) or _of_a_sentence(of_sentences, line)
        if found is None:
            continue
        rule, match = found
        if rule.outcome != "not_overflow":
            # A 413 that names nothing of a model is about bytes: "Request too long" is a gateway's
            # word, too.
            by_tokens = rule.outcome == "overflow_tokens"
            of_bytes = 413 in words.signals.statuses and not _OF_A_MODEL.search(words.text)
            kind = "overflow_bytes" if by_tokens and of_bytes else rule.outcome
            return _verdict(kind, words, line, match[0][:200], rule.id)
        other = other or Verdict("not_overflow", evidence=match[0][:200], rule_id=rule.id)
    return other


def _rule_of(rules: Iterable[Rule], line: str) -> tuple[Rule, re.Match[str]] | None:
    return next(((rule, match) for rule in rules if (match := rule.search(line))), None)


def _of_a_sentence(rules: Sequence[Rule], line: str) -> tuple[Rule, re.Match[str]] | None:
    sentences = _SENTENCES.split(line) if rules else ()
    return next((found for one in sentences if (found := _rule_of(rules, one))), None)


def _bare_status(words: _Words, provider: str) -> Verdict | None:
    """Return the verdict on a status without other words.

    A 413 is a body that somebody on the way finds too large (RFC 9110, section 15.5.14).
    """
    text = words.text
    if 413 in words.signals.statuses:
        kind: Outcome = "overflow_tokens" if _OF_A_MODEL.search(text) else "overflow_bytes"
        return _verdict(kind, words, "", "413", "bare-413")
    first = _MODEL_NAME.sub("", words.signals.text.lower().split("\n", 1)[0])
    if EMPTY_400.search(first) and provider in {"", "cerebras"}:
        return _verdict("overflow_tokens", words, "", text[:200], EMPTY_400.id)
    return None


def _verdict(kind: Outcome, words: _Words, line: str, evidence: str, rule_id: str) -> Verdict:
    """Return the verdict on an overflow, with the sizes that the deciding line states.

    Where a code or status decided, that is the first line whose words state a limit. The output is
    clamped where the input fits and leaves a tenth of the window for an answer.
    """
    if kind == "overflow_media":
        limit, asked, _ = read_media_numbers(line)
        unit = media_unit(line)
        return Verdict(kind, limit, asked, None, "shrink_media", evidence, rule_id, unit)
    numbers = read_numbers(line) if line else Numbers()
    if numbers.limit is None:
        others = (read_numbers(other) for other in words.lines if not line or _overflows(other))
        numbers = next((one for one in others if one.limit), numbers)
    limit, asked, output = numbers
    limit, asked = (
        limit or words.signals.sizes.get("limit"),
        asked or words.signals.sizes.get("input"),
    )
    if kind == "overflow_bytes":
        return Verdict(kind, limit, asked, output, "shrink_bytes", evidence, rule_id, "bytes")
    action: Action = "rewrite"
    if limit and asked is not None and output:
        action = "clamp_output" if asked + max(limit // 10, 256) <= limit else "rewrite"
    return Verdict(kind, limit, asked, output, action, evidence, rule_id)


def _overflows(line: str) -> bool:
    found = _rule_of(WORDINGS, line) or _of_a_sentence(GRAMMAR, line)
    if found is None:
        return bool(SUBJECT.search(line) and token_counts(line)) and not NO_PROMPT.search(line)
    return found[0].outcome != "not_overflow"
