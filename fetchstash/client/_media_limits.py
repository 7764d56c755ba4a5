"""Pictures, documents and pages over what a provider takes: older ones make room.

A request is refused for its media by their number, their pages, or the size of one of them, and
every later request of the same conversation is refused, too. The oldest pictures are what can be
taken out: a line of text takes the place of each. Where pixels are the limit they are scaled
instead, with Pillow if it is installed. A decision stays: the next requests show the same ones.
"""

import base64
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO
from typing import Any

from fetchstash.client._formats import Place, parts, replace_values
from fetchstash.client._media import HEAD_CHARS, Media, decoded, may_be_medium, media_of, pdf_pages
from fetchstash.client._media_bounds import MediaBounds
from fetchstash.client._numbers import MediaUnit
from fetchstash.client._policy import Format, Message, State, content_hash
from fetchstash.client._protect import pair, units, untouchable
from fetchstash.client._sizes import Change, Report
from fetchstash.client._streams import an_object, is_list, is_object
from fetchstash.text import counted, picture_size

MAX_DEPTH = 8
"""How deep media are looked for: a block in a result in a message is at depth four."""

KEPT_SHARE = 0.5
"""Share of a limit on their number to come down to, so that the next pictures have room, and the
requests until then begin alike: prompt caches stay warm."""

JPEG_QUALITY = 85

UNSTATED_EDGE, UNSTATED_BYTES = 1_568, 2 * 2**20
"""What one picture may have where a refusal names pixels or bytes without a number: the long edge
that Anthropic advises (Images and vision), and what is below every provider's limit in bytes."""


@dataclass(frozen=True, slots=True)
class _Item:
    """One medium: where it stands, its block, and what it is known by in a conversation.

    ``fixed``: no text may take its place.
    """

    place: Place
    media: Media
    block: Any
    fixed: bool
    key: str = ""
    digest: str = ""

    @property
    def kind(self) -> str:
        """Return picture, recording or document."""
        kinds = {"image": "picture", "audio": "recording", "video": "recording"}
        return kinds.get(self.media.media_type.partition("/")[0], "document")


def fit_media(
    messages: Sequence[Message],
    format: Format,
    state: State,
    bounds: MediaBounds | None,
    prefix: int = 0,
    *,
    stated: tuple[MediaUnit, int | None, int | None] | None = None,
) -> tuple[list[Message], Report]:
    """Return ``messages`` with their media within ``bounds``, and what was done.

    ``stated`` is what a refusal stated: unit, limit and the number that the request had. What this
    conversation had taken out or scaled before is so again.
    """
    draft = _Media(messages, format, state, prefix)
    before = draft.size
    draft.reapply()
    if bounds is not None:
        # Numbers first: what is taken out need not be scaled. Bytes last: a scaled picture is
        # lighter.
        for unit in _COUNTED:
            limit = getattr(bounds, unit, None)
            if limit:
                draft.reduce(unit, limit)
        many = 0 < bounds.many < draft.count("pictures")
        edges = [edge for edge in (bounds.pixels, bounds.many_pixels if many else None) if edge]
        if edges:
            draft.scale(min(edges))
        if bounds.bytes:
            draft.lighten(bounds.bytes)
    if stated is not None:
        draft.obey(*stated)
    after = draft.size
    goal = 0 if draft.missed else after
    return draft.result(), Report("bytes", before, after, goal, tuple(draft.new), draft.reused)


_COUNTED: Mapping[MediaUnit, frozenset[str]] = {
    "pictures": frozenset({"picture"}),
    "documents": frozenset({"document"}),
    "recordings": frozenset({"recording"}),
    "media": frozenset({"picture", "document"}),
    "pages": frozenset({"document"}),
}
"""What counts towards a limit on the number of media."""


def _pages(media: Media) -> int:
    return pdf_pages(decoded(media.data, len(media.data))) if media.data else 1


def _edge(media: Media) -> int:
    return max(picture_size(decoded(media.data, HEAD_CHARS)) or (0,))


@dataclass
class _Media:
    """The media of a request, and what takes the place of some."""

    messages: Sequence[Message]
    format: Format
    state: State
    prefix: int = 0
    changes: dict[Place, Any] = field(default_factory=dict[Place, Any])
    new: list[Change] = field(default_factory=list[Change])
    reused: int = 0
    missed: bool = False

    def __post_init__(self) -> None:
        seen = Counter[str]()
        self._items: list[_Item] = []
        for item in _found(self.messages):
            digest = _digest(item.media)
            seen[digest] += 1  # equal pictures are told apart by their order
            self._items.append(replace(item, key=f"{seen[digest]}:{digest}", digest=digest))

    def _measure(self, item: _Item, what: str, measure: Callable[[Media], int]) -> int:
        """Return a measure of a medium, which is remembered: its data are decoded once."""
        key = f"{what} {item.digest}"
        if key not in self.state.token_counts:
            self.state.token_counts[key] = measure(item.media)
        return self.state.token_counts[key]

    def _weight(self, item: _Item, unit: MediaUnit) -> int:
        """Return how much a medium counts towards a limit on their number."""
        if item.kind not in _COUNTED[unit]:
            return 0
        return self._measure(item, "pages", _pages) if unit == "pages" else 1

    @cached_property
    def _protection(self) -> tuple[frozenset[int], set[Place]]:
        """The messages that a rewrite leaves as they are, and where the results of tools stand."""
        all_parts = parts(self.messages, self.format)
        all_units = units(len(self.messages), all_parts, pair(all_parts))
        kept = untouchable(len(self.messages), all_parts, all_units, self.prefix)
        return kept, {part.place for part in all_parts if part.kind == "result"}

    def _is_protected(self, item: _Item) -> bool:
        return item.place[0] in self._protection[0]

    def _is_of_result(self, item: _Item) -> bool:
        number, path = item.place
        places = ((number, path[:end]) for end in range(len(path) + 1))
        return any(place in self._protection[1] for place in places)

    @property
    def size(self) -> int:
        """The bytes of the media that are shown; one that is elsewhere (a URL) counts as one."""
        return sum(max(_medium(self._now(item)).size_bytes, 1) for item in self._shown())

    def _now(self, item: _Item) -> Any:
        return self.changes.get(item.place, item.block)

    def result(self) -> list[Message]:
        """Return the messages as they are now."""
        return replace_values(self.messages, self.changes)

    def reapply(self) -> None:
        """Replace again the media that this conversation replaced before."""
        for item in self._items:
            made = self.state.media.get(item.key)
            # The caller's prefix is never changed, also where this conversation changed the same
            # picture later.
            if made is not None and item.place[0] >= self.prefix:
                self.changes[item.place] = made
                self.reused += 1

    def _shown(self) -> list[_Item]:
        return [item for item in self._items if not _is_text(self.changes.get(item.place))]

    def count(self, unit: MediaUnit) -> int:
        """Return the count of the shown media towards a limit in ``unit``."""
        return sum(self._weight(item, unit) for item in self._shown())

    def reduce(self, unit: MediaUnit, limit: int, number: int | None = None) -> None:
        """If the media exceed ``limit``, replace the oldest until a share of it is left.

        Those of the latest exchange go last, and the newest of them and what the user showed last
        stay.
        """
        now = max(self.count(unit), number or 0)
        if now <= limit:
            return
        shown = [item for item in self._shown() if self._weight(item, unit)]
        free = [item for item in shown if not item.fixed and not self._is_protected(item)]
        goal = max(int(limit * KEPT_SHARE), 1)
        for item in free:
            if now <= goal:
                return
            now -= self._weight(item, unit)
            self._take_out(item)
        latest = [item for item in shown if self._is_protected(item) and self._is_of_result(item)]
        for item in latest:  # of results: what the user showed is a task
            if now <= limit:
                return
            now -= self._weight(item, unit)
            self._take_out(item)
        self.missed = self.missed or now > limit

    def scale(self, edge: int) -> None:
        """Scale down each picture with a longer edge; without Pillow replace those that may go."""
        for item in self._shown():
            if item.kind != "picture" or item.place[0] < self.prefix:
                continue
            if item.place in self.changes:  # it was scaled before
                continue
            if self._measure(item, "edge", _edge) > edge:
                self._make_smaller(item, lambda data: _scaled(data, edge))

    def lighten(self, size: int) -> None:
        """Make each medium smaller that has more bytes, as base64 where it is sent so."""
        for item in self._shown():
            heavy = isinstance(item.media.data, str) and len(item.media.data) > size
            if heavy and item.place[0] >= self.prefix:
                self._make_smaller(item, lambda data: _lighter(data, size))

    def _make_smaller(self, item: _Item, make: Callable[[bytes], bytes | None]) -> None:
        data = item.media.data
        made = make(decoded(data, len(data))) if item.kind == "picture" and data else None
        block = _with_data(item.block, item.media, made) if made else None
        if block is not None:
            self._change(item, block, "scaled")
        elif not item.fixed and not self._is_protected(item):
            self._take_out(item)
        else:
            self.missed = True

    def obey(self, unit: MediaUnit, limit: int | None, number: int | None) -> None:
        """Bring the media within the limit of a refusal, or below what was sent."""
        if unit == "pixels":
            self.scale(limit or UNSTATED_EDGE)
        elif unit == "bytes":
            self.lighten(limit or UNSTATED_BYTES)
        else:
            # Without a number all that is known is that this many are too many.
            self.reduce(unit, limit or max(self.count(unit) - 1, 1), number)

    def _take_out(self, item: _Item) -> None:
        self._change(item, _text_for(item, self.format), "left out")

    def _change(self, item: _Item, value: Any, label: str) -> None:
        self.changes[item.place] = self.state.media[item.key] = value
        weight = item.media.size_bytes
        self.new.append(Change(item.place[0], 3, item.key, 0, label, weight, 0))


def _digest(media: Media) -> str:
    """Return a medium's fingerprint: its length, beginning, middle and end."""
    data = media.data
    # Screenshots of one screen begin alike: the middle and the end tell them apart.
    middle = len(data) // 2
    samples = (data[:1_024], data[middle : middle + 1_024], data[-1_024:])
    joined = "".join(map(str, samples))
    return content_hash(f"{media.media_type} {len(data)} {joined}")


def _found(messages: Sequence[Message]) -> Iterator[_Item]:
    """Yield the media of all messages in order."""
    for number, message in enumerate(messages):
        if is_object(message) and message.get("type") != "image_generation_call":
            # OpenAI takes nothing but a screenshot as the output of a computer call.
            fixed = message.get("type") == "computer_call_output"
            yield from _inside(message, (number, ()), 0, fixed=fixed)


def _inside(value: Any, place: Place, depth: int, *, fixed: bool) -> Iterator[_Item]:
    number, path = place
    if isinstance(value, str | int | float | None) or depth > MAX_DEPTH:
        return
    if path and (not is_object(value) or may_be_medium(value)) and not is_list(value):
        media = media_of(value)
        if media is not None:
            if not media.media_type.startswith("text/"):
                yield _Item(place, media, value, fixed)
            return
    if is_object(value):
        if path and path[-1] in _RESPONSES and is_list(value.get("parts")):
            media = next((found for part in value["parts"] if (found := media_of(part))), None)
            if media is not None:
                yield _Item(place, media, value, fixed)
            return
        for key, inner in value.items():
            if key not in {"arguments", "input", "args"}:  # a model wrote these
                yield from _inside(inner, (number, (*path, key)), depth + 1, fixed=fixed)
    elif is_list(value):
        for index, inner in enumerate(value):
            yield from _inside(inner, (number, (*path, index)), depth + 1, fixed=fixed)


_RESPONSES = frozenset({"functionResponse", "function_response"})
"""Gemini's results, whose parts may only be media: their text stands in the response."""


def _medium(block: Any) -> Media:
    """Return the medium in a block, or in the first part of Gemini's result."""
    holders = block["parts"] if is_object(block) and is_list(block.get("parts")) else (block,)
    return next((media for holder in holders if (media := media_of(holder))), Media("", ""))


def _is_text(block: Any) -> bool:
    """Return whether a medium became text."""
    if is_object(block):
        return isinstance(block.get("text"), str) or ("response" in block and "parts" not in block)
    return isinstance(block, str)


def _text_for(item: _Item, format: Format) -> Any:
    """Return a text block in place of a medium, in the form of the blocks around it."""
    text = f"[{item.kind} left out: {_described(item)}; there was room for newer ones alone]"
    if not is_object(item.block):
        return text  # PydanticAI's contents are strings or objects
    if "parts" in item.block:
        rest = {key: value for key, value in item.block.items() if key != "parts"}
        return {**rest, "response": {**an_object(rest.get("response")), "left_out": text}}
    if format == "gemini":
        return {"text": text}
    named = "input_text" if str(item.block.get("type")).startswith("input_") else "text"
    # Anthropic's cache breakpoint: without it the prefix before would be charged in full again.
    kept = {key: item.block[key] for key in ("cache_control",) if key in item.block}
    return {"type": named, "text": text, **kept}


def _described(item: _Item) -> str:
    size = picture_size(decoded(item.media.data, HEAD_CHARS)) if item.media.data else None
    facts = [item.media.media_type or item.kind]
    facts += [f"{size[0]} x {size[1]} pixels"] if size else []
    facts += [counted(item.media.size_bytes, "byte")] if item.media.data else []
    return ", ".join(facts)


def _with_data(block: Any, media: Media, data: bytes) -> Any:
    """Return a block with another picture in it, None where its data are not in it."""
    if isinstance(media.data, bytes):  # PydanticAI's BinaryContent, google-genai's bytes
        return _with_bytes(block, data)
    text = base64.b64encode(data).decode()
    media_type = "image/png" if data[:4] == b"\x89PNG" else "image/jpeg"

    def changed(value: Any) -> Any:
        if is_object(value):
            return {key: changed(_typed(key, inner)) for key, inner in value.items()}
        if is_list(value):
            return [changed(inner) for inner in value]
        if (
            isinstance(value, str)
            and isinstance(media.data, str)
            and media.data
            and value.endswith(media.data)
        ):
            return f"data:{media_type};base64,{text}" if value.startswith("data:") else text
        return value

    def _typed(key: str, inner: Any) -> Any:
        return media_type if key in {"media_type", "mime_type", "mimeType"} else inner

    return changed(block)


def _with_bytes(block: Any, data: bytes) -> Any:
    media_type = "image/png" if data[:4] == b"\x89PNG" else "image/jpeg"
    if is_object(block):
        holder = next((key for key in block if is_object(block[key])), "")
        inner = an_object(block.get(holder)) | {"data": data, "mime_type": media_type}
        return {**block, holder: inner} if holder else None
    try:
        return replace(block, data=data, media_type=media_type)
    except (TypeError, ValueError):
        return None


def _scaled(data: bytes, edge: int) -> bytes | None:
    """Return a picture with a longer edge of ``edge`` pixels, None without Pillow."""
    opened = _opened(data)
    if opened is None:
        return None
    opened.thumbnail((edge, edge))
    return _saved(opened)


def _lighter(data: bytes, size: int) -> bytes | None:
    """Return a picture whose base64 has at most ``size`` characters, None if there is none."""
    for edge in (2_000, 1_568, 1_024, 512):
        made = _scaled(data, edge)
        if made is None or len(made) * 4 // 3 + 4 <= size:
            return made
    return None


def _opened(data: bytes) -> Any:
    try:
        from PIL import Image  # noqa: PLC0415 - third-party, and optional
    except ImportError:
        return None
    try:
        # open() reads the head alone: a picture that is cut off fails only when it is loaded.
        opened = Image.open(BytesIO(data))
        opened.load()
    except Exception:  # noqa: BLE001 - a picture that nobody can read is left to the provider
        return None
    return opened


def _saved(picture: Any) -> bytes:
    """Return a PNG, or a JPEG where that is smaller and nothing is transparent."""
    made = BytesIO()
    picture.save(made, "PNG", optimize=False)
    if picture.mode in {"RGB", "L"}:
        smaller = BytesIO()
        picture.save(smaller, "JPEG", quality=JPEG_QUALITY)
        made = min(made, smaller, key=lambda one: one.tell())
    return made.getvalue()
