"""A part of a message: a text, a call's arguments, a result, and what else a message is made of."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from fetchstash.client._media import strip_media
from fetchstash.client._shapes import a_string, an_object, is_list, is_object, objects

Kind = Literal["text", "call", "result", "reasoning", "opaque"]
Role = Literal["system", "user", "assistant", "tool"]
Message = Any
Shape = Literal["", "fixed", "shell", "logs", "texts", "function_response"]
"""What has to stand at a part's place. "": an object for an object, a string for all else. "fixed":
what stands there now, for the provider takes nothing else. The others are lists or objects that the
provider defines; ``as_value`` in ``_stubs.py`` makes them."""
Place = tuple[int, tuple[str | int, ...]]
"""The number of a message, and the keys and indexes that lead to a value inside it.

An index into a text is that of a section.
"""


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a message, with the value at ``place``: text, arguments, a result's content.

    ``call_id`` is "" where the format gave none (Gemini does not have to). ``background``: it is
    only quoted, in the prompt of a memory extractor, so that a call of this kind has no result to
    be paired with.
    """

    place: Place
    kind: Kind
    role: Role
    value: Any
    call_id: str = ""
    name: str = ""
    background: bool = False
    shape: Shape = ""

    @property
    def message(self) -> int:
        """The number of the message it stands in."""
        return self.place[0]

    @property
    def text(self) -> str:
        """The value as the provider is charged for it: itself if it is a string, else its JSON."""
        return self.value if isinstance(self.value, str) else as_json(self.value)


CHAT_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


def as_json(value: Any) -> str:
    """Return compact JSON of any value: bytes as the base64 that is sent, other objects as text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_jsonable)


def _jsonable(value: Any) -> str:
    data = getattr(value, "data", value)  # PydanticAI's BinaryContent
    if isinstance(data, bytes | bytearray):
        return base64.b64encode(data).decode()
    return str(value)


_TEXT_KEYS = ("text", "stdout", "stderr", "logs")
"""Where blocks and shell outputs have their text."""


def plain(value: Any) -> str:
    """Return a result as it reads: its text, or the texts of its blocks; else its JSON.

    An object with one value reads as that value. JSON would escape what somebody greps for, and
    hide a fence. A label stands for each medium.
    """
    stripped, _ = strip_media(value)
    if is_object(stripped) and len(stripped) == 1:
        stripped = next(iter(stripped.values()))
    if isinstance(stripped, str):
        return stripped
    texts = [_block_text(block) for block in stripped] if is_list(stripped) else []
    return "\n".join(texts) if texts and all(texts) else as_json(stripped)


def _block_text(block: Any) -> str:
    texts = [a_string(an_object(block).get(key)) for key in _TEXT_KEYS]
    return a_string(block) or "\n".join(filter(None, texts))


def content_parts(
    number: int, message: dict[str, Any], role: Role, key: str = "content"
) -> Iterator[Part]:
    """Yield the texts of ``content``, a string or a list of blocks; other blocks are opaque."""
    content = message.get(key)
    if isinstance(content, str) and content:
        yield Part((number, (key,)), "text", role, content)
    for index, block in objects(content):
        if isinstance(block.get("text"), str):
            yield Part((number, (key, index, "text")), "text", role, block["text"])
        else:
            yield Part((number, (key, index)), "opaque", role, block)
