"""Replace what is too long in a server's result by a preview and a reference.

A result at or under the server's threshold is passed on as it is. Of a longer one all text becomes
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
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import anyio.to_thread

from fetchstash.config import WrappedServer
from fetchstash.gateway._framing import Unescaper, UnreadableMessage
from fetchstash.gateway._protocol import as_object, as_objects, meta_of
from fetchstash.gateway._rpc import HELD_CHARS, Spooled, drop_spooled
from fetchstash.render import Host, view_of
from fetchstash.server.tools import log_call
from fetchstash.stash import Artifact, Stash
from fetchstash.system.processes import new_file
from fetchstash.text import PreviewLimits, picture_size

PARTS = 10
"""Parts of one result that become artifacts of their own; the rest go into one file."""

COPY_BYTES = 2**20
COMPARED_BYTES = 2**23
"""Text and structured content are compared as values up to this size, as bytes beyond."""

STRUCTURED = ".structured"
CLOSING_BYTES = 8
"""What is kept back of a JSON text, to find the end of its last string."""

_ONE_TEXT = re.compile(rb'\s*\{\s*"\w{1,40}"\s*:\s*"')

Block = dict[str, Any]
Get = Callable[[], Awaitable[Stash]]
"""Opens the stash, which only a long result needs."""


@dataclass
class _Part:
    """Something of a result that may become an artifact: blocks and where they came from."""

    name: str
    values: list[str | Spooled] = field(default_factory=list[str | Spooled])
    blocks: list[Block] = field(default_factory=list[Block])
    is_base64: bool = False

    @property
    def chars(self) -> int:
        """How many characters a model would read."""
        return sum(map(_length, self.values))

    @property
    def is_image(self) -> bool:
        """Whether it is one picture."""
        return bool(self.blocks) and self.blocks[0].get("type") == "image"


async def bounded(
    method: str, get: Get, host: Host, server: WrappedServer, name: str, result: dict[str, Any]
) -> dict[str, Any]:
    """Return the result of a tool, a prompt or a resource, made short enough for a model."""
    if method == "tools/call":
        content = as_objects(result.get("content"))
        parts = _parts(name, content, host.preview)
        structured = result.get("structuredContent")
        if structured is not None:
            is_long = isinstance(structured, Spooled)
            text = structured if is_long else json.dumps(structured, ensure_ascii=False)
            parts.append(_Part(name + STRUCTURED, [text]))
        return await _bounded(get, host, server, parts, result, content)
    if method == "prompts/get":
        for message in as_objects(result.get("messages")):
            block = message.get("content")
            if isinstance(block, dict):
                call: dict[str, Any] = {"content": [block]}
                short = await bounded("tools/call", get, host, server, name, call)
                message["content"] = short["content"][0]
        return result
    contents = as_objects(result.get("contents"))
    blocks: list[Block] = [{"type": "resource", "resource": item} for item in contents]
    parts = _parts(Path(name).name or "resource", blocks, host.preview)
    if _fits(parts, server):
        return result
    replaced = await _bounded(get, host, server, parts, {}, blocks)
    texts = "\n".join(block["text"] for block in replaced["content"] if block["type"] == "text")
    meta = {**meta_of(result), **replaced["_meta"]}
    shown = {"uri": name, "mimeType": "text/plain", "text": texts}
    rest = [block["resource"] for block in replaced["content"] if block["type"] == "resource"]
    return {**result, "contents": [shown, *rest], "_meta": meta}


async def _bounded(
    get: Get,
    host: Host,
    server: WrappedServer,
    parts: Sequence[_Part],
    result: dict[str, Any],
    content: Sequence[Block],
) -> dict[str, Any]:
    if _fits(parts, server):
        return result
    large = _to_replace(parts, server.threshold)
    structured = any(part.name.endswith(STRUCTURED) for part in large)
    if structured:
        await anyio.to_thread.run_sync(_join_copies, large)
    gone = {id(block) for part in large for block in part.blocks}
    stash = await get()
    artifacts = [await _kept(stash, server, part) for part in large if part.values]
    value = artifacts[0] if len(artifacts) == 1 else tuple(artifacts)
    view = view_of(host, value, max(server.threshold, 200))
    log_call(stash, server.name, {}, value, view)
    shown: list[Block] = [{"type": "text", "text": view.text}]
    shown += [
        {"type": "image", "data": base64.b64encode(data).decode("ascii"), "mimeType": media_type}
        for data, media_type in view.pictures
    ]
    shown += [block for block in content if id(block) not in gone]
    short = {**result, "content": shown}
    if structured or "structuredContent" in short:
        # Hosts that show structured content alone would not see the preview.
        short.pop("structuredContent", None)
    short["_meta"] = {**meta_of(result), "fetchstash/artifact": list(view.facts)}
    return short


def _text(value: Any) -> str | Spooled:
    """Return a text of a server, "" for what is none."""
    return value if isinstance(value, str | Spooled) else ""


def _length(value: Any) -> int:
    if isinstance(value, Spooled):
        return value.chars
    return len(value) if isinstance(value, str) else 0


def _parts(name: str, content: Sequence[Block], limits: PreviewLimits) -> list[_Part]:
    """Return what in these blocks reaches a model as characters, or as too large a picture."""
    text = _Part(f"{name}.txt")
    parts = [text]
    shown = 0  # characters of the pictures that stay
    for block in content:
        kind = block.get("type")
        resource = as_object(block.get("resource")) if kind == "resource" else {}
        if kind == "text":
            text.values.append(_text(block.get("text")))
            text.blocks.append(block)
        elif kind == "resource":
            own = Path(str(resource.get("uri") or name)).name or name
            if _length(resource.get("text")):
                parts.append(_Part(own, [resource["text"]], [block]))
            elif _length(resource.get("blob")):
                own = _with_suffix(own, resource)
                parts.append(_Part(own, [resource["blob"]], [block], is_base64=True))
        elif kind in ("audio", "image"):
            data = _text(block.get("data"))
            if kind == "image" and not _too_large(data, limits, HELD_CHARS // 2 - shown):
                shown += _length(data)
                continue
            parts.append(_Part(_with_suffix(name, block), [data], [block], is_base64=True))
    return [part for part in parts if part.values]


def _with_suffix(name: str, block: Mapping[str, Any]) -> str:
    """Return a file name with the extension of the block's media type, for people to open."""
    suffix = mimetypes.guess_extension(str(block.get("mimeType") or "")) or ""
    return name if name.endswith(suffix) else name + suffix


def _too_large(data: str | Spooled, limits: PreviewLimits, most: int) -> bool:
    """Return whether a picture in base64 is over the bounds of what a model is shown.

    ``most`` is how many characters may be held.
    """
    if _length(data) * 3 // 4 > limits.max_image_size_bytes or _length(data) > most:
        return True
    try:
        size = picture_size(base64.b64decode(_whole(data)))
    except ValueError:
        return False  # the host says what it thinks of it
    return size is not None and max(size) > limits.max_image_edge_px


def _fits(parts: Sequence[_Part], server: WrappedServer) -> bool:
    """Return whether all that a model would read is within the threshold."""
    pictures = any(part.is_image for part in parts)
    return not pictures and sum(part.chars for part in parts) <= server.threshold


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
    return [part for part in parts if part in large] + [p for p in large if p not in parts]


def _join_copies(parts: Sequence[_Part]) -> None:
    """Keep one of text and structured content where one is a copy of the other.

    A value stays as JSON (tools, 2025-06-18). A string under one name, which is how SDKs and
    servers return a text ("result", "content"), stays as text.
    """
    structured = next(part for part in parts if part.name.endswith(STRUCTURED))
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


async def _kept(stash: Stash, server: WrappedServer, part: _Part) -> Artifact:
    """Write a part into the spool, if it is not there, and keep it."""
    name = f"{server.name} {part.name.removesuffix(STRUCTURED)}"
    most, spool, value = max(server.threshold, 200), stash.store.spool, part.values[0]
    if len(part.values) == 1 and isinstance(value, Spooled) and not part.is_base64:
        file = value.path
        if file.parent != spool:
            file = Path(await anyio.to_thread.run_sync(shutil.move, file, spool / file.name))
        return await stash.keep_spooled(file, name, max_chars=most)
    file = new_file(spool, "result-")
    try:
        await anyio.to_thread.run_sync(_write, part, file)
        return await stash.keep_spooled(file, name, max_chars=most)
    finally:
        for value in part.values:
            drop_spooled(value)
        file.unlink(missing_ok=True)


def _write(part: _Part, file: Path) -> None:
    with file.open("wb") as target:
        for position, value in enumerate(part.values):
            if position:
                target.write(b"\n")
            with _opened(value) as source:
                if part.is_base64:
                    target.writelines(_decoded(source))
                else:
                    shutil.copyfileobj(source, target)


def _decoded(source: BinaryIO) -> Iterator[bytes]:
    """Yield the bytes that a base64 text stands for, which may have line breaks (RFC 2045, 6.8).

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
