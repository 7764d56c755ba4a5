"""Stand-ins that several test modules share."""

import json
from typing import Any

from fetchstash.client import Format, count_tokens


class Kept:
    """An offload that remembers what it was given, by its reference."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def keep(self, text: str, name: str) -> str:  # noqa: ARG002 - the protocol names it
        ref = "art_" + f"{len(self.texts):0>26}".translate(str.maketrans("0189", "abcd"))
        self.texts[ref] = text
        return ref


class Overflow(Exception):
    """What a provider says of a request that is too large."""

    status_code = 400

    def __init__(self, words: str = "prompt is too long: 200000 tokens > 100000 maximum") -> None:
        super().__init__(words)


class Events(list[tuple[str, dict[str, Any]]]):
    """An observer that remembers every event with its attributes."""

    def __call__(self, name: str, attributes: dict[str, Any]) -> None:
        self.append((name, attributes))

    def of(self, name: str) -> list[dict[str, Any]]:
        return [attributes for event, attributes in self if event == name]

    @property
    def outcomes(self) -> list[str]:
        return [attributes["compression.outcome"] for attributes in self.of("compression")]


class FullMemo(dict[Any, Any]):
    """Remembers no stub, so that nothing can be rewritten."""

    def __setitem__(self, key: object, value: object) -> None:
        raise OSError("out of memory")


def conversation(*results: str, name: str = "fetch_content", ask: str = "the task") -> list[Any]:
    """Return a Chat Completions history in which each result answers a call of its own."""
    messages: list[Any] = [
        {"role": "system", "content": "Be good."},
        {"role": "user", "content": ask},
    ]
    for number, result in enumerate(results):
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": f'{{"n": {number}}}'},
        }
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": result})
    return messages


def tokens_of(messages: list[Any], fmt: Format = "openai_chat") -> int:
    """Return the tokens of a request as the client counts them."""
    return count_tokens(messages, fmt)


def bytes_of(value: Any) -> int:
    """Return the bytes of plain data as a provider is sent them."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return len(text.encode("utf-8", "surrogatepass"))


def prose(chars: int, seed: str = "word") -> str:
    """Return text of this many characters that is not all one token."""
    line = " ".join(f"{seed}{number % 97}" for number in range(40)) + ".\n"
    return (line * (chars // len(line) + 1))[:chars]
