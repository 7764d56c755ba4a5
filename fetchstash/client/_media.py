"""Pictures and files in messages: their sizes, and what they cost in tokens.

Base64 is never charged as text. A block is recognised by its shape, so one table serves the four
formats, the blocks of LangChain and MCP, and the objects of PydanticAI. If a provider documents a
rule for each model, the largest size counts: the model is not known here.

Read on 2026-11-22:
- Anthropic, "Vision": one token per patch of 28 x 28 pixels, after fitting 2576 pixels and 4784
  tokens; "PDF support": up to 3,000 tokens a page.
- OpenAI, "Images and vision": 85 tokens for low detail, else 85 and 170 for each tile of 512
  pixels, or one per patch of 32 x 32 up to 1,536; "File inputs": the text and a picture of each
  page; "Realtime costs": one token per 100 ms of audio.
- Google, "Understand and count tokens" and "Media resolution": 258 tokens for a small picture or
  each tile, 1,120 for a picture and 560 for a page with Gemini 3; 32 a second for audio, 263 for
  video.
"""

import base64
import binascii
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

from fetchstash.client._streams import a_string, is_collection, is_object
from fetchstash.text import counted, picture_size

BYTES_PER_PAGE = 50_000
"""Of a document in which no page can be counted."""

MAX_PAGES, MAX_INFLATED = 10_000, 8 * 2**20
"""Bounds on what a hostile PDF can claim, and on what its streams may inflate to."""

_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_COUNT = re.compile(rb"/Count\s+(\d{1,6})")
_OBJECT_STREAM = re.compile(rb"/Type\s*/ObjStm\b.{0,400}?stream\r?\n", re.DOTALL)


def pdf_pages(data: bytes) -> int:
    """Return about how many pages a PDF has, at least 1. Other data counts by its size."""
    if not data.startswith(b"%PDF-"):
        return min(max(len(data) // BYTES_PER_PAGE, 1), MAX_PAGES)
    pages = len(_PAGE.findall(data))
    if not pages:
        inflated = _object_streams(data)
        counts = [int(count) for count in _COUNT.findall(data) + _COUNT.findall(inflated)]
        # Each node of the page tree counts the pages below it, the root all (ISO 32000-2, 7.7.3.2).
        pages = len(_PAGE.findall(inflated)) or max(counts, default=0)
    return min(max(pages or len(data) // BYTES_PER_PAGE, 1), MAX_PAGES)


def _object_streams(data: bytes) -> bytes:
    """Return a PDF's object streams, inflated: pages may stand in them (ISO 32000-2, 7.5.7)."""
    inflated = bytearray()
    for stream in _OBJECT_STREAM.finditer(data):
        room = MAX_INFLATED - len(inflated)
        if room <= 0:
            break
        try:
            # The object bounds what is made; zlib.decompress would inflate a bomb first.
            inflated += zlib.decompressobj().decompress(data[stream.end() :], room)
        except zlib.error:
            continue
    return bytes(inflated)


Provider = Literal["anthropic", "openai", "gemini", ""]

UNKNOWN_PICTURE_TOKENS = 1_600
"""A picture whose size is not in the message (a URL, a file id): about one megapixel."""

UNKNOWN_DOCUMENT_PAGES = 10
"""A document that is not in the message."""

UNKNOWN_SECONDS = 60
"""Audio or video that is not in the message."""

PAGE_TEXT_TOKENS = 750
"""The text of a dense page, where a provider charges text and picture apart."""

ENCRYPTED_CHARS_PER_TOKEN = 5
"""Encrypted reasoning and search results: base64 of about as many bytes as the plain text has."""

HEAD_CHARS = 512 * 1024
"""How much base64 is decoded in search of a picture's size: metadata may stand before it."""

MAX_DEPTH = 8
"""How deep blocks are nested at the most; below that a value is plain data."""

_AUDIO_BYTES_PER_SECOND, _VIDEO_BYTES_PER_SECOND = 16_000, 250_000
_UNCHARGED = frozenset({"signature", "thoughtSignature", "thought_signature"})
_DATA_URL = re.compile(r"data:([\w.+/-]{0,100})(?:;[^,;]{0,100}){0,3},")


@dataclass(frozen=True, slots=True)
class Media:
    """One picture, document, recording or film. ``data`` is base64 or bytes, "" if not at hand."""

    provider: Provider
    media_type: str
    data: str | bytes = ""
    low_detail: bool = False

    @property
    def size_bytes(self) -> int:
        """The bytes of the content itself."""
        data = self.data
        # Four characters for three bytes (RFC 4648, section 4).
        return len(data.rstrip("=")) * 3 // 4 if isinstance(data, str) else len(data)

    @property
    def label(self) -> str:
        """The words that replace it in a text."""
        size = f", {counted(self.size_bytes, 'byte')}" if self.data else ""
        return f"({self.media_type or 'file'}{size})"


def strip_media(
    value: Any, cost: Callable[[Media], int] | None = None, depth: int = 0
) -> tuple[Any, int]:
    """Return ``value`` with a label in the place of each medium, and the tokens that these cost."""
    if isinstance(value, str | int | float | None) or depth > MAX_DEPTH:
        return value, 0
    media = media_of(value)
    if media:
        return media.label, (cost or media_tokens)(media)
    if is_collection(value):
        pairs = [strip_media(item, cost, depth + 1) for item in value]
        return [stripped for stripped, _ in pairs], sum(item_tokens for _, item_tokens in pairs)
    if not is_object(value):
        return value, 0
    kept, tokens = dict[str, Any](), 0
    for key, inner in value.items():
        if key in _UNCHARGED:
            continue
        if isinstance(inner, str) and _is_encrypted(key, value):
            tokens += len(inner) // ENCRYPTED_CHARS_PER_TOKEN
            continue
        kept[key], inner_tokens = strip_media(inner, cost, depth + 1)
        tokens += inner_tokens
    return kept, tokens


def _is_encrypted(key: str, block: dict[str, Any]) -> bool:
    redacted = key == "data" and block.get("type") == "redacted_thinking"
    return redacted or key in {"encrypted_content", "encrypted_index"}


_KINDS = {
    "image": "image/png",
    "image_url": "image/png",
    "input_image": "image/png",
    "computer_screenshot": "image/png",
    "image_generation_call": "image/png",
    "document": "application/pdf",
    "file": "application/pdf",
    "input_file": "application/pdf",
    "audio": "audio/mpeg",
    "input_audio": "audio/mpeg",
    "video": "video/mp4",
    "media": "",
    "resource": "application/pdf",
}
"""Types of blocks, and the media type that is assumed where a block names none."""

_HOLDERS: dict[str, Provider] = {
    "source": "anthropic",
    "image_url": "openai",
    "file": "openai",
    "input_audio": "openai",
    "resource": "",
    **dict.fromkeys(("inlineData", "inline_data", "fileData", "file_data"), "gemini"),
}
"""The object within a block that holds the content, and whose blocks have it."""

_OF_OPENAI = {
    "image_url",
    "input_image",
    "computer_screenshot",
    "image_generation_call",
    "input_file",
}
_MEDIA_TYPES = ("media_type", "mime_type", "mimeType")
_CONTENTS = ("data", "base64", "blob", "file_data", "result", "url", "image_url")
_ELSEWHERE = {"url", "file_id", "uri"}
_TEXT_NAMES = (".txt", ".md", ".csv", ".json", ".xml", ".html", ".py")


_GEMINI_HOLDERS = frozenset(key for key, named in _HOLDERS.items() if named == "gemini")


def may_be_medium(block: dict[str, Any]) -> bool:
    """Return whether ``media_of`` may find something in an object; it costs ten times as much."""
    return block.get("type") in _KINDS or not _GEMINI_HOLDERS.isdisjoint(block)


def media_of(value: Any) -> Media | None:
    """Return the medium that a block is, None if it is none. A document given as text is text.

    Blocks of LangChain (base64, url, file_id) and MCP (data, blob) name no provider.
    """
    if isinstance(value, bytes | bytearray):
        return Media("", "", bytes(value))
    if not is_object(value):
        return _object_media(value)
    kind, holder = a_string(value.get("type")), value
    provider: Provider = "openai" if kind in _OF_OPENAI else ""
    for key, named in _HOLDERS.items():
        if is_object(value.get(key)):
            holder, provider = value[key], named
    if kind not in _KINDS and provider != "gemini":
        return None
    # Documents that Anthropic takes as text or as blocks are charged as text.
    if holder is not value and holder.get("type") in {"text", "content"}:
        return None
    media_type = next((holder[key] for key in _MEDIA_TYPES if holder.get(key)), "")
    data = next((holder[key] for key in _CONTENTS if holder.get(key)), "")
    data = data if isinstance(data, str | bytes) else ""
    if isinstance(data, str) and data.startswith("data:"):
        head = _DATA_URL.match(data)
        media_type, data = (head[1], data[head.end() :]) if head else ("", data[5:])
    elif data in (holder.get("url"), holder.get("image_url")):
        data = ""  # it is elsewhere
    # An MCP resource that is text, or plain data whose field `type` has such a word.
    if not data and not provider and ("text" in holder or _ELSEWHERE.isdisjoint(holder)):
        return None
    if data and a_string(holder.get("filename")).lower().endswith(_TEXT_NAMES):
        media_type = media_type or "text/plain"
    # OpenAI's input_audio names a format in the place of a media type.
    if holder.get("format") == "wav":
        media_type = "audio/wav"
    media_type = a_string(media_type) or _KINDS.get(kind, "")
    return Media(provider, media_type, data, low_detail=holder.get("detail") == "low")


def _object_media(value: Any) -> Media | None:
    """Read PydanticAI's BinaryContent and its ImageUrl, DocumentUrl, AudioUrl and VideoUrl."""
    data, kind = getattr(value, "data", None), getattr(value, "kind", None)
    if isinstance(data, bytes):
        return Media("", a_string(getattr(value, "media_type", "")), data)
    if isinstance(kind, str) and kind.endswith("-url"):
        return Media("", _KINDS.get(kind.removesuffix("-url"), ""))
    return None


def media_tokens(media: Media) -> int:
    """Return the tokens of a medium at its provider; without a provider, the highest price."""
    kind = media.media_type.partition("/")[0]
    if kind == "text":
        return media.size_bytes // 4
    if kind in {"audio", "video"}:
        per_second = _PER_SECOND.get((kind, media.provider)) or _PER_SECOND[kind, ""]
        return round(_seconds(media, kind) * per_second)
    data = decoded(media.data, HEAD_CHARS)
    size = picture_size(data)
    if kind == "image" or size:
        return _picture_tokens(media, size) if size else UNKNOWN_PICTURE_TOKENS
    if not media.data:
        return UNKNOWN_DOCUMENT_PAGES * _PER_PAGE[media.provider]
    return pdf_pages(decoded(media.data, len(media.data))) * _PER_PAGE[media.provider]


_PER_PAGE: dict[str, int] = {
    "anthropic": 3_000,
    "openai": 765 + PAGE_TEXT_TOKENS,  # the picture of a page has four tiles
    "gemini": 560,
    "": 3_000,
}
_PER_SECOND = {("audio", ""): 32, ("audio", "openai"): 10, ("video", ""): 263 + 32}


def _picture_tokens(media: Media, size: tuple[int, int]) -> int:
    if media.provider:
        # Low detail is OpenAI's alone: the price of the base tile.
        return 85 if media.low_detail else _PER_PICTURE[media.provider](*size)
    return max(rule(*size) for rule in _PER_PICTURE.values())


def _patches(width: float, height: float, edge: int) -> int:
    """Return how many squares cover a picture."""
    return ceil(width / edge) * ceil(height / edge)


def _anthropic_picture(width: int, height: int) -> int:
    scale = min(1.0, 2_576 / max(width, height))
    return min(_patches(width * scale, height * scale, 28), 4_784)


def _openai_picture(width: int, height: int) -> int:
    # First into a square of 2,048 pixels, then the shorter edge down to 768.
    fit = min(1.0, 2_048 / max(width, height))
    fit *= min(1.0, 768 / (min(width, height) * fit))
    tiles = _patches(width * fit, height * fit, 512)
    return max(85 + 170 * tiles, min(_patches(width, height, 32), 1_536))


def _gemini_picture(width: int, height: int) -> int:
    if max(width, height) <= 384:
        return 258
    # The edge of a tile is the shorter edge of the picture, divided by 1.5.
    return max(258 * _patches(width, height, max(min(width, height) * 2 // 3, 256)), 1_120)


_PER_PICTURE = {
    "anthropic": _anthropic_picture,
    "openai": _openai_picture,
    "gemini": _gemini_picture,
}


def _seconds(media: Media, kind: str) -> float:
    if not media.data:
        return UNKNOWN_SECONDS
    head = decoded(media.data, 64)
    rate = _AUDIO_BYTES_PER_SECOND if kind == "audio" else _VIDEO_BYTES_PER_SECOND
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        # The average bytes a second of the fmt chunk (RIFF WAVE).
        rate = int.from_bytes(head[28:32], "little") or rate
    return media.size_bytes / rate


def decoded(data: str | bytes, chars: int) -> bytes:
    """Return the bytes of the first ``chars`` of base64, b"" if it is none; bytes as they are."""
    if isinstance(data, bytes):
        return data
    # Whole groups of four; - and _ are of the alphabet for URLs (RFC 4648, section 5).
    text = data[: chars - chars % 4].replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(text, validate=False)
    except (binascii.Error, ValueError):
        return b""
