"""The statuses, codes and texts of anything that may be an error, without importing any SDK."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from fetchstash.client._shapes import is_collection, is_mapping

MAX_NODES, MAX_DEPTH, MAX_WIDTH = 400, 12, 60
MAX_TEXT_CHARS = 20_000
"""How much of one error is read: error bodies echo requests, and this one was too large."""

_ATTRIBUTES = (
    "status_code", "status", "http_status", "code", "type", "error_type", "error_code", "reason",
    "finish_reason", "stop_reason", "message", "detail", "details", "description", "body", "error",
    "errors", "metadata", "raw", "response", "incomplete_details", "param", "choices", "text",
    "original_exception",
)  # fmt: skip
# LiteLLM gives these 500 or 503, whatever the provider sent (litellm/exceptions.py).
_MADE_STATUS = re.compile(r"<class 'litellm\..*\b(?:APIConnectionError|MidStreamFallbackError)'>")
# Keys of a body or an event with content, not with an error.
_CONTENT_KEYS = frozenset(
    {
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
)
_STATUS_KEYS = frozenset(
    {"status_code", "status", "http_status", "httpstatuscode", "code", "statuscode"}
)
_CODE_KEYS = frozenset(
    {
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
)
# Sizes that llama.cpp states beside its words.
_SIZE_KEYS = frozenset({"n_prompt_tokens", "n_ctx"})
# A status that is only stated in words: "413 status code", "HTTP 400:", "API error (413)", "Error:
# 400 - ", "status_code=429".
_STATUS_IN_TEXT = re.compile(
    r"(?i)^\s*(?:error:?\s*)?([45]\d\d)\b(?=[\s:{]|$)|"
    r"\b(?:status(?:[\s_]*code)?|http(?:/[\d.]+)?|api error|error code|error)"
    r"\s*[:=(]?\s*([45]\d\d)\b"
)
_WORD = re.compile(r"[A-Za-z][\w.\-]*\Z")


@dataclass(frozen=True, slots=True)
class Signals:
    """The words and numbers of an error.

    ``statuses`` are HTTP statuses, the outermost first; ``codes`` are in lower case, class names of
    exceptions among them; ``text`` is all wording, in order.
    """

    statuses: tuple[int, ...]
    codes: frozenset[str]
    text: str


def collect(error: Any) -> Signals:
    """Return the signals of an exception with its chain, a body, an event, a reason or a string."""
    collector = _Collector()
    collector.visit(error, "", 0)
    text = "\n".join(dict.fromkeys(collector.texts))
    stated = [int(m[1] or m[2]) for m in _STATUS_IN_TEXT.finditer(text)]
    return Signals(
        tuple(dict.fromkeys([*collector.statuses, *stated])), frozenset(collector.codes), text
    )


class _Collector:
    """Walks a tree of values, each once, within bounds."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.codes: set[str] = set()
        self.texts: list[str] = []
        self.chars = 0
        self.seen: set[int] = set()

    def visit(self, value: Any, key: str, depth: int) -> None:
        if (
            value is None
            or isinstance(value, bool)
            or depth > MAX_DEPTH
            or len(self.seen) > MAX_NODES
        ):
            return
        if isinstance(value, int | float):
            self.number(value, key)
        elif isinstance(value, str):
            self.words(value, key, depth)
        elif isinstance(value, bytes | bytearray):
            self.words(bytes(value[:MAX_TEXT_CHARS]).decode("utf-8", "replace"), key, depth)
        elif id(value) not in self.seen:
            self.seen.add(id(value))
            if key == "base_resp" and is_mapping(value):  # MiniMax's status beside that of HTTP
                self.codes.add(f"base_resp:{value.get('status_code')}")
            for name, inner in _inside(value):
                self.visit(inner, name, depth + 1)
            if isinstance(value, BaseException):
                self.codes.update(cls.__name__.lower() for cls in type(value).__mro__[:-2])

    def number(self, value: float, key: str) -> None:
        if key.lower() in _STATUS_KEYS and 200 <= value < 600:
            self.statuses.append(int(value))
        elif key.lower() in _CODE_KEYS:
            self.codes.add(str(int(value)))
        elif key in _SIZE_KEYS:
            self.texts.append(f"{key}: {int(value)}")

    def words(self, value: str, key: str, depth: int) -> None:
        value = value.strip()
        if (
            key.lower() in _CODE_KEYS
            and len(value) <= 80
            and (_WORD.match(value) or value.isdigit())
        ):
            if value.isdigit():
                self.number(int(value), key)
            else:
                self.codes.add(value.lower())
            return
        room = MAX_TEXT_CHARS - self.chars
        if not value or room <= 0 or key in {"object", "id", "model", "param"}:
            # ``param`` names the field that is wrong; it is noted together with the code that it
            # explains.
            if key == "param" and value:
                self.codes.add(f"param:{value[:80].lower()}")
            return
        self.texts.append(value[:room])
        self.chars += min(len(value), room)
        for inner in _json_inside(value[:room]):
            self.visit(inner, "", depth + 1)


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what an object holds: of an exception its words, its attributes and its causes."""
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
    made_up = _MADE_STATUS.match(str(value.__class__))
    for name in _ATTRIBUTES:
        if made_up and name in {"status_code", "response"}:
            continue
        inner = _quietly(lambda name=name: getattr(value, name, None))
        if inner is not None and not callable(inner):
            yield name, inner


def _quietly(read: Any) -> Any:
    """Return what ``read`` returns, None where it raises: a property of a closed response may."""
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
