"""Replace long parts of a server's result by a preview and a reference.

A result at or under the server's threshold is passed on as it is. Of a longer one the texts become
one artifact, and each embedded resource, sound, large picture and the structured content one of its
own; they share one preview. What is short stays beside it.
"""

import base64
import binascii
import hashlib
import io
import json
import mimetypes
import re
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import anyio.to_thread

from fetchstash.config import WrappedServer, is_secret_name
from fetchstash.fetch import mask_url
from fetchstash.gateway._framing import Unescaper, UnreadableMessage
from fetchstash.gateway._process import without_secrets
from fetchstash.gateway._protocol import meta_of
from fetchstash.gateway._rpc import HELD_CHARS, Spooled, drop_spooled, walked
from fetchstash.render import Host, view_of
from fetchstash.server.tools import LoggedCall
from fetchstash.stash import Artifact, Stash
from fetchstash.system.processes import new_file
from fetchstash.text import PreviewLimits, clip, picture_size
from fetchstash.text.untyped import as_object, as_objects

PARTS = 10
"""Parts of one result that become artifacts of their own; the rest go into one file."""

COPY_BYTES = 2**20
COMPARED_BYTES = 2**23
"""Text and structured content are compared as values up to this size, as bytes beyond."""

ARGUMENT_CHARS, ARGUMENTS_CHARS = 60, 120
"""How much of one argument, and of all, stands in the name of an artifact."""

CLOSING_BYTES = 8
"""What is kept back of a JSON text, to find the end of its last string."""

_ONE_TEXT = re.compile(rb'\s*\{\s*"\w{1,40}"\s*:\s*"')

Block = dict[str, Any]
Get = Callable[[], Awaitable[Stash]]
"""Opens the stash, which only a long result needs."""


@dataclass(frozen=True)
class Call:
    """A host's request to a server, and how its result may reach the model.

    ``name`` is of a tool or prompt, or a URI. ``keeps_structured``: the page of an MCP App reads
    the structured content, and no model does. ``logged`` is the same call for the log.
    """

    host: Host
    server: WrappedServer
    name: str
    arguments: Mapping[str, Any]
    logged: LoggedCall
    keeps_structured: bool = False

    @property
    def label(self) -> str:
        """The server and the call, in short and without secrets: the title of its artifacts."""
        shown = ", ".join(f"{key}={_shown(key, value)}" for key, value in self.arguments.items())
        arguments = f"({clip(shown, ARGUMENTS_CHARS)})" if shown else ""
        return without_secrets(self.server, f"{self.server.name}: {self.name}{arguments}")


def _shown(name: str, value: object) -> str:
    """Return an argument shortened, and masked if its name says that it is a secret."""
    if is_secret_name(name):
        return "***"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clip(mask_url(text) if "://" in text else text, ARGUMENT_CHARS)


@dataclass
class _Part:
    """A part of a result that may become an artifact: blocks and where they came from."""

    name: str
    values: list[str | Spooled] = field(default_factory=list[str | Spooled])
    blocks: list[Block] = field(default_factory=list[Block])
    is_base64: bool = False
    is_structured: bool = False

    @property
    def chars(self) -> int:
        """How many characters a model would read."""
        return sum(map(_length, self.values))

    @property
    def is_image(self) -> bool:
        """Whether it is one picture."""
        return bool(self.blocks) and self.blocks[0].get("type") == "image"


async def bounded(method: str, get: Get, call: Call, result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a tool, a prompt or a resource, made short enough for a model."""
    if method == "prompts/get":
        return await _prompt(get, call, result)
    if method == "resources/read":
        return await _resource(get, call, result)
    keeps = call.keeps_structured and _length(result.get("structuredContent")) <= HELD_CHARS
    weighed = await walked(partial(_weighed, call, keeps=keeps), result)
    short = await _bounded(get, call, weighed, result)
    if short is not result and not keeps:
        # Hosts that show structured content alone would not see the preview.
        short.pop("structuredContent", None)
    return short


def _is_kept(structured: Any, parts: Sequence[_Part], call: Call) -> bool:
    """Return whether a value is ``{"NAME": TEXT}`` with a text that becomes an artifact anyway.

    Most long texts come so; nothing has to be written as JSON then to be compared.
    """
    values = [*as_object(structured).values()]
    return any(part.values == values and part.chars > call.server.threshold for part in parts)


async def _prompt(get: Get, call: Call, result: dict[str, Any]) -> dict[str, Any]:
    """Return a prompt whose long messages are made short enough for a model."""
    chars, long = await walked(partial(_long_messages, call), result)
    for message, weighed in long:
        said: dict[str, Any] = {"content": [message["content"]]}
        message["content"] = (await _bounded(get, call, weighed, said))["content"][0]
        rest = replace(call.logged, started=time.monotonic())
        call = replace(call, logged=rest)  # its time is counted once
    if chars or not long:
        call.logged.passed(chars)
    return result


def _long_messages(
    call: Call, result: Mapping[str, Any]
) -> tuple[int, list[tuple[Block, "_Weighed"]]]:
    """Return the length of a prompt's messages that pass as they are, and the others."""
    chars, long = 0, list[tuple[Block, _Weighed]]()
    for message in as_objects(result.get("messages")):
        block = message.get("content")
        if isinstance(block, dict):
            weighed = _weighed(call, {"content": [block]}, keeps=False)
            if weighed.large:
                long.append((message, weighed))
            else:
                chars += weighed.chars
    return chars, long


async def _resource(get: Get, call: Call, result: dict[str, Any]) -> dict[str, Any]:
    """Return the contents of a resource, made short enough for a model."""
    weighed = await walked(partial(_weighed_contents, call), result)
    replaced = await _bounded(get, call, weighed, {})
    if not replaced:
        return result
    texts = "\n".join(block["text"] for block in replaced["content"] if block["type"] == "text")
    meta = {**meta_of(result), **replaced["_meta"]}
    shown: list[Block] = [{"uri": call.name, "mimeType": "text/plain", "text": texts}]
    for block in replaced["content"]:
        if block["type"] == "image":  # a smaller copy
            shown.append({"uri": call.name, "mimeType": block["mimeType"], "blob": block["data"]})
        elif block["type"] == "resource":
            shown.append(block["resource"])
    return {**result, "contents": shown, "_meta": meta}


@dataclass(frozen=True)
class _Weighed:
    """The length of a result, the parts to replace, and the blocks that stay beside them."""

    chars: int
    large: Sequence[_Part] = ()
    rest: Sequence[Block] = ()
    annotations: Block = field(default_factory=Block)


def _weighed(call: Call, result: Mapping[str, Any], *, keeps: bool) -> _Weighed:
    """Find the parts of a result to replace. ``keeps``: the structured content stays."""
    content = as_objects(result.get("content"))
    parts, structured = _parts(call, content), result.get("structuredContent")
    if structured is not None and not keeps and not _is_kept(structured, parts, call):
        is_long = isinstance(structured, Spooled)
        text = structured if is_long else json.dumps(structured, ensure_ascii=False)
        parts.append(_Part(call.name, [text], is_structured=True))
    chars = sum(part.chars for part in parts)
    if chars <= call.server.threshold and not any(part.is_image for part in parts):
        return _Weighed(chars)
    large = _to_replace(parts, call.server.threshold)
    gone = {id(block) for part in large for block in part.blocks}
    rest = [block for block in content if id(block) not in gone]
    return _Weighed(chars, large, rest, _annotations(content, gone))


def _weighed_contents(call: Call, result: Mapping[str, Any]) -> _Weighed:
    """Find the parts of a resource that are to be replaced."""
    contents = as_objects(result.get("contents"))
    blocks = [{"type": "resource", "resource": item} for item in contents]
    return _weighed(call, {"content": blocks}, keeps=True)


async def _bounded(
    get: Get, call: Call, weighed: _Weighed, result: dict[str, Any]
) -> dict[str, Any]:
    """Return the result with its long parts replaced, the very same one if none is long."""
    large = weighed.large
    if not large:
        call.logged.passed(weighed.chars, failed=result.get("isError") is True)
        return result
    if any(part.is_structured for part in large):
        await anyio.to_thread.run_sync(_join_copies, large)
    stash = await get()
    artifacts = [await _kept(stash, call, part) for part in large if part.values]
    value = artifacts[0] if len(artifacts) == 1 else tuple(artifacts)
    view = view_of(call.host, value, max(call.server.threshold, 200))
    call.logged.showed(value, view, failed=result.get("isError") is True)
    preview: Block = {"type": "text", "text": view.text, **weighed.annotations}
    shown = [preview]
    shown += [
        {"type": "image", "data": base64.b64encode(data).decode("ascii"), "mimeType": media_type}
        for data, media_type in view.pictures
    ]
    shown += weighed.rest
    meta = {**meta_of(result), "fetchstash/artifact": list(view.facts)}
    return {**result, "content": shown, "_meta": meta}


def _annotations(content: Sequence[Block], gone: set[int]) -> Block:
    """Return the annotations of the replaced blocks if all have the same, else none."""
    found = [block.get("annotations") for block in content if id(block) in gone]
    same = bool(found) and bool(found[0]) and all(item == found[0] for item in found)
    return {"annotations": found[0]} if same else {}


def _length(value: Any) -> int:
    if isinstance(value, Spooled):
        return value.chars
    return len(value) if isinstance(value, str) else 0


def _parts(call: Call, content: Sequence[Block]) -> list[_Part]:
    """Return the parts of these blocks that count: texts, and pictures that are too large."""
    name, limits = Path(call.name).name or "resource", call.host.preview
    texts: list[_Part] = []
    links = _Part(f"{name}.links.jsonl")
    parts: list[_Part] = []
    shown = 0  # characters of the pictures that stay
    for block in content:
        kind = block.get("type")
        resource = as_object(block.get("resource")) if kind == "resource" else {}
        data: Any = block.get("data") if kind in ("audio", "image") else resource.get("blob")
        media_type = str((resource or block).get("mimeType") or "")
        if kind == "text":
            known = [text if isinstance(text := block.get("text"), str | Spooled) else ""]
            texts.append(_Part(f"{name}.txt", known, [block]))
        elif kind == "resource_link":
            links.values.append(json.dumps(block, ensure_ascii=False))
            links.blocks.append(block)
        elif _length(resource.get("text")):
            parts.append(_Part(_own_name(resource, name), [resource["text"]], [block]))
        elif _length(data):
            is_picture = kind == "image" or media_type.startswith("image/")
            if is_picture and not _too_large(data, limits, HELD_CHARS // 2 - shown):
                shown += _length(data)
                continue
            own = _with_suffix(_own_name(resource, name), media_type)
            parts.append(_Part(own, [data], [block], is_base64=True))
    parts += [links] if links.values else []
    return [*_joined(texts, call.server.threshold), *parts]


def _joined(texts: Sequence[_Part], threshold: int) -> list[_Part]:
    """Join texts to one part; short ones beside one that is too long by itself stay apart."""
    long = [part for part in texts if part.chars > threshold]
    short = [part for part in texts if part.chars <= threshold]
    if len(long) == 1 and sum(part.chars for part in short) <= threshold:
        return [*long, *short]
    if not texts:
        return []
    values = [value for part in texts for value in part.values]
    return [_Part(texts[0].name, values, [block for part in texts for block in part.blocks])]


def _own_name(resource: Mapping[str, Any], name: str) -> str:
    return Path(str(resource.get("uri") or name)).name or name


def _with_suffix(name: str, media_type: str) -> str:
    """Return a file name with the extension of a media type, for people to open."""
    suffix = mimetypes.guess_extension(media_type) or ""
    return name if name.endswith(suffix) else name + suffix


def _too_large(data: str | Spooled, limits: PreviewLimits, most: int) -> bool:
    """Return whether a base64 picture exceeds the bounds of pictures for a model.

    ``most`` is how many characters may be held.
    """
    if _length(data) * 3 // 4 > limits.max_image_size_bytes or _length(data) > most:
        return True
    try:
        size = picture_size(base64.b64decode(_whole(data)))
    except ValueError:
        return False  # the host says what it thinks of it
    return size is not None and max(size) > limits.max_image_edge_px


def _to_replace(parts: Sequence[_Part], threshold: int) -> list[_Part]:
    """Return the largest parts, until the rest is within the threshold."""
    left = sum(part.chars for part in parts)
    large: list[_Part] = []
    for part in sorted(parts, key=lambda part: part.chars, reverse=True):
        if left > threshold or part.is_image:
            large.append(part)
            left -= part.chars
    if len(large) > PARTS:
        texts = [part for part in large[PARTS - 1 :] if not part.is_base64]
        rest = _Part("rest.txt")
        for part in texts:
            rest.values += part.values
            rest.blocks += part.blocks
        large = [*large[: PARTS - 1], *([rest] if texts else [])]
    chosen, own = set(map(id, large)), set(map(id, parts))
    return [part for part in parts if id(part) in chosen] + [p for p in large if id(p) not in own]


def _join_copies(parts: Sequence[_Part]) -> None:
    """Keep one of text and structured content where one is a copy of the other.

    A value stays as JSON (tools, 2025-06-18). A string under one name, which is how SDKs and
    servers return a text ("result", "content"), stays as text.
    """
    structured = next(part for part in parts if part.is_structured)
    for part in parts:
        if part is structured or part.is_base64:
            continue
        if _same_text(part.values, structured.values[0]):
            copy = structured
        elif _same_json(part.values, structured.values[0]):
            copy = part
        else:
            continue
        for value in copy.values:
            drop_spooled(value)
        copy.values.clear()
        return


def _same_text(texts: Sequence[str | Spooled], structured: str | Spooled) -> bool:
    """Return whether the structured content is ``{"NAME": TEXT}`` and nothing else."""
    if len(texts) != 1:
        return False
    with _opened(structured) as source, _opened(texts[0]) as expected:
        opening = _ONE_TEXT.match(source.read(64))
        if opening is None:
            return False
        source.seek(opening.end())
        unescaper, rest = Unescaper(), b""
        try:
            while data := source.read(COPY_BYTES):
                # The last quotation mark and bracket are no part of the string.
                piece, rest = (rest + data)[:-CLOSING_BYTES], (rest + data)[-CLOSING_BYTES:]
                text = unescaper.feed(piece).encode()
                if expected.read(len(text)) != text:
                    return False
            last, closing, _ = rest.rpartition(b'"')
            text = unescaper.feed(last, final=True).encode()
        except UnreadableMessage:
            return False
        return bool(closing) and expected.read() == text


def _same_json(texts: Sequence[str | Spooled], structured: str | Spooled) -> bool:
    """Return whether texts hold the same JSON value, blanks aside.

    A list may come as one text for each item, and then stands under ``result``.
    """
    if sum(map(_length, texts)) + _length(structured) > COMPARED_BYTES:
        return len(texts) == 1 and _digest(texts[0]) == _digest(structured)
    try:
        values = [json.loads(_whole(text)) for text in texts]
        whole = json.loads(_whole(structured))
    except (ValueError, RecursionError):
        return False
    if len(values) == 1 and values[0] == whole:
        return True
    listed = as_object(whole).get("result", whole)
    return values in (listed, [listed])


def _whole(value: str | Spooled) -> str:
    return value if isinstance(value, str) else value.path.read_text(encoding="utf-8")


def _digest(value: str | Spooled) -> bytes:
    """Hash a JSON text without its blanks, a piece at a time."""
    digest = hashlib.sha256()
    with _opened(value) as source:
        while data := source.read(COPY_BYTES):
            digest.update(data.translate(None, b" \t\r\n"))
    return digest.digest()


def _opened(value: str | Spooled) -> BinaryIO:
    return io.BytesIO(value.encode()) if isinstance(value, str) else value.path.open("rb")


async def _kept(stash: Stash, call: Call, part: _Part) -> Artifact:
    """Write a part into the spool, if it is not there, and keep it."""
    most, spool = max(call.server.threshold, 200), stash.store.spool
    is_resource = bool(part.blocks) and part.blocks[0].get("type") == "resource"
    label = f"{call.server.name}: {part.name}" if is_resource else call.label
    keep = partial(stash.keep_spooled, name=part.name, label=label, max_chars=most)
    if _may_have_one_text(part):
        await anyio.to_thread.run_sync(_open_one_text, part)
    value = part.values[0]
    if len(part.values) == 1 and isinstance(value, Spooled) and not part.is_base64:
        file = value.path
        if file.parent != spool:
            file = Path(await anyio.to_thread.run_sync(shutil.move, file, spool / file.name))
        return await keep(file)
    file = new_file(spool, "result-")
    try:
        await anyio.to_thread.run_sync(_write, part, file)
        return await keep(file)
    finally:
        file.unlink(missing_ok=True)


def _may_have_one_text(part: _Part) -> bool:
    """Return whether a part begins as ``{"NAME": TEXT}``, as some servers send a text."""
    value = part.values[0]
    if part.is_base64 or len(part.values) > 1 or _length(value) > COMPARED_BYTES:
        return False
    with _opened(value if isinstance(value, Spooled) else value[:64]) as source:
        return bool(_ONE_TEXT.match(source.read(64)))


def _open_one_text(part: _Part) -> None:
    """Return the text of ``{"NAME": TEXT}`` if the part has no other key."""
    value = part.values[0]
    try:
        texts = list(as_object(json.loads(_whole(value))).values())
    except (ValueError, RecursionError):
        return
    if len(texts) == 1 and isinstance(texts[0], str):
        drop_spooled(value)
        part.values[0] = texts[0]


def _write(part: _Part, file: Path) -> None:
    """Write the values of a part to a file, and remove the files that they were in."""
    try:
        with file.open("wb") as target:
            for position, value in enumerate(part.values):
                if position:
                    target.write(b"\n")
                with _opened(value) as source:
                    if part.is_base64:
                        target.writelines(_decoded(source))
                    else:
                        shutil.copyfileobj(source, target)
    finally:
        drop_spooled(part.values)


def _decoded(source: BinaryIO) -> Iterator[bytes]:
    """Yield the decoded bytes of a base64 text, which may have line breaks (RFC 2045, 6.8).

    What is no base64 stays as it is, to be looked at.
    """
    rest = b""
    while piece := source.read(COPY_BYTES):
        digits = rest + piece.translate(None, b" \t\r\n")
        whole = len(digits) - len(digits) % 4
        rest = digits[whole:]
        yield _decoded_piece(digits[:whole])
    yield _decoded_piece(rest + b"=" * (-len(rest) % 4))


def _decoded_piece(digits: bytes) -> bytes:
    try:
        return base64.b64decode(digits, validate=True)
    except binascii.Error:
        return digits
