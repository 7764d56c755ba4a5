"""Media cost what their providers document, wherever a message carries them; base64 is no text."""

import base64
import json
import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from fetchstash.cli.demo.site import make_pdf
from fetchstash.client import (
    Format,
    Policy,
    State,
    Target,
    ToolCall,
    compact,
    count_tokens,
    rewrite,
    stub_oversized,
)
from fetchstash.client._media import strip_media
from fetchstash.client._stubs import facts_of
from fetchstash.text import tokens
from tests.client.conversations import FORMATS, Turn, medium, render
from tests.client.fakes import Kept, prose, tokens_of


def png(width: int, height: int) -> bytes:
    """A PNG of this size, with 200 KB behind its head."""
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(
        ">I4sIIBBBBB", 13, b"IHDR", width, height, 8, 2, 0, 0, 0
    )
    return head + random.Random(1).randbytes(200_000)


def jpeg(width: int, height: int) -> bytes:
    metadata = b"\xff\xe1" + struct.pack(">H", 60_002) + bytes(60_000)
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)
    return b"\xff\xd8" + metadata + frame + random.Random(2).randbytes(100_000)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(5_000)


def webp(width: int, height: int) -> bytes:
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\0\0\0\0WEBPVP8X" + struct.pack("<II", 10, 0) + size + bytes(5_000)


def packed_pdf(pages: int) -> bytes:
    """A PDF whose pages stand in a compressed object stream."""
    objects = zlib.compress(b"<< /Type /Page /Parent 1 0 R >>\n" * pages)
    return b"%PDF-1.5\n2 0 obj << /Type /ObjStm /N 9 >> stream\r\n" + objects + b"\nendstream"


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


PICTURE, PDF = text(png(1920, 1080)), text(make_pdf(["some words"] * 12, title="twelve pages"))
URL = f"data:image/png;base64,{PICTURE}"


def shown(fmt: str) -> dict[str, Any]:
    return medium(fmt, "image/png", PICTURE)


def read(fmt: str) -> dict[str, Any]:
    return medium(fmt, "application/pdf", PDF)


LOW = {"type": "image_url", "image_url": {"url": URL, "detail": "low"}}
INLINE = {"inline_data": {"mime_type": "image/png", "data": png(300, 300)}}
MADE = {"type": "image_generation_call", "id": "1", "result": PICTURE}
AUDIO = {"type": "input_audio", "input_audio": {"data": text(bytes(16_000 * 60)), "format": "wav"}}
NOTES = {"type": "input_file", "file_data": text(b"word " * 4_000), "filename": "notes.txt"}
QUOTED = {"type": "content", "content": [{"type": "text", "text": "some words " * 500}]}
RESOURCE = {"uri": "a:b", "mimeType": "application/pdf", "blob": PDF}
BLOCKS: dict[str, tuple[Any, int]] = {
    "anthropic image": (shown("anthropic"), 69 * 39),
    "anthropic document": (read("anthropic"), 12 * 3_000),
    "chat image": (shown("openai_chat"), 1_536),
    "chat image in low detail": (LOW, 85),
    "chat file": (read("openai_chat"), 12 * 1_515),
    "responses image": (shown("openai_responses"), 1_536),
    "responses file": (read("openai_responses"), 12 * 1_515),
    "responses screenshot": ({"type": "computer_screenshot", "image_url": URL}, 1_536),
    "picture that was made": (MADE, 1_536),
    "gemini image": (shown("gemini"), 6 * 258),
    "gemini image in bytes": (INLINE, 258),
    "gemini document": (read("gemini"), 12 * 560),
    "langchain image": ({"type": "image", "base64": PICTURE, "mime_type": "image/png"}, 69 * 39),
    "langchain file": ({"type": "file", "base64": PDF, "mime_type": "application/pdf"}, 36_000),
    "mcp image": ({"type": "image", "data": PICTURE, "mimeType": "image/png"}, 69 * 39),
    "mcp resource": ({"type": "resource", "resource": RESOURCE}, 36_000),
    "responses file without a media type": ({"type": "input_file", "file_data": PDF}, 12 * 1_515),
    "responses file whose name says that it is text": (NOTES, 5_000),
    "chat audio": (AUDIO, 600),
    "langchain file elsewhere": ({"type": "file", "url": "https://a.example/b.pdf"}, 30_000),
    "file with its text": ({"type": "file", "file_id": "f", "text": "some words " * 500}, 1_000),
    "document of blocks of text": ({"type": "document", "source": QUOTED}, 1_000),
}


def cost(block: Any) -> int:
    """Return the tokens of a block in a user's message, less those of the message."""
    framing = 12
    return tokens_of([{"role": "user", "content": [block]}], "anthropic") - framing


@pytest.mark.parametrize("name", BLOCKS)
def test_a_medium_costs_what_its_provider_documents(name: str) -> None:
    block, tokens = BLOCKS[name]
    assert cost(block) == pytest.approx(tokens, rel=0.1)


def test_a_label_says_of_what_type_and_size_a_medium_is() -> None:
    assert strip_media(AUDIO)[0] == "(audio/wav, 960,000 bytes)"


def of_user(block: Any) -> list[Any]:
    return [{"role": "user", "content": [block]}]


def in_result(block: Any) -> list[Any]:
    return of_user({"type": "tool_result", "tool_use_id": "1", "content": [block]})


def in_response(block: Any) -> list[Any]:
    response: dict[str, Any] = {"functionResponse": {"name": "f", "response": {}, "parts": [block]}}
    return [{"role": "user", "parts": [response]}]


CARRIERS: dict[str, tuple[Format, Callable[[Any], list[Any]]]] = {
    "anthropic document": ("anthropic", of_user),
    "anthropic image": ("anthropic", in_result),
    "chat file": ("openai_chat", of_user),
    "chat image": ("openai_chat", of_user),
    "responses file": ("openai_responses", of_user),
    "responses screenshot": (
        "openai_responses",
        lambda block: [{"type": "computer_call_output", "call_id": "1", "output": block}],
    ),
    "picture that was made": ("openai_responses", lambda block: [block]),
    "gemini document": ("gemini", lambda block: [{"role": "user", "parts": [block]}]),
    "gemini image": ("gemini", in_response),
    "langchain file": ("openai_chat", of_user),
}


@pytest.mark.parametrize("name", CARRIERS)
def test_no_format_counts_base64_as_text(name: str) -> None:
    fmt, carry = CARRIERS[name]
    block, tokens = BLOCKS[name]
    messages = carry(block)
    assert tokens_of(messages, fmt) == pytest.approx(tokens, rel=0.3)
    _, report = compact(messages, fmt, 10**6, State())
    assert report.before == tokens_of(messages, fmt)


@pytest.mark.parametrize(
    ("data", "size"),
    [(png(640, 480), 23 * 18), (jpeg(640, 480), 414), (gif(640, 480), 414), (webp(640, 480), 414)],
    ids=["png", "jpeg", "gif", "webp"],
)
def test_the_size_of_a_picture_is_read_from_its_bytes(data: bytes, size: int) -> None:
    source = {"type": "base64", "media_type": "image/x", "data": text(data)}
    assert cost({"type": "image", "source": source}) == pytest.approx(size, abs=10)


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xff", b"RIFF", b"junk"])
def test_an_unreadable_picture_counts_as_an_average_one(data: bytes) -> None:
    assert cost(
        {"type": "image", "source": {"type": "base64", "data": text(data)}}
    ) == pytest.approx(1_600, abs=10)


def test_pages_in_compressed_object_streams_are_counted() -> None:
    blob = {"mimeType": "application/pdf", "data": text(packed_pdf(7))}
    assert cost({"inlineData": blob}) == pytest.approx(7 * 560, abs=10)


def test_a_hostile_pdf_stays_within_its_bounds() -> None:
    bomb = zlib.compress(b"/Type /Page\n" * 5_000_000)
    data = b"%PDF-1.5\n/Type /ObjStm stream\n" + bomb
    assert cost(
        {"inlineData": {"mimeType": "application/pdf", "data": text(data)}}
    ) == pytest.approx(10_000 * 560, abs=10)


def test_a_document_that_is_given_as_text_is_text() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "some words " * 5_000}
    messages: list[Any] = [{"role": "user", "content": [{"type": "document", "source": source}]}]
    assert tokens_of(messages, "anthropic") == pytest.approx(10_000, rel=0.2)


def test_signatures_are_not_charged_and_encrypted_reasoning_is_by_its_length() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": PICTURE}
    said: list[Any] = [{"role": "assistant", "content": [thinking]}]
    assert tokens_of(said, "anthropic") < 50
    item: list[Any] = [{"type": "reasoning", "summary": [], "encrypted_content": "A" * 10_000}]
    assert tokens_of(item, "openai_responses") == pytest.approx(2_000, rel=0.1)


@dataclass
class BinaryContent:
    """What PydanticAI calls so."""

    data: bytes
    media_type: str
    kind: str = "binary"


@dataclass
class ImageUrl:
    url: str
    kind: str = "image-url"


def test_parts_of_pydantic_ai_are_counted_by_pixels_and_pages() -> None:
    document = BinaryContent(base64.b64decode(PDF), "application/pdf")
    value = [
        "Look.",
        BinaryContent(png(1920, 1080), "image/png"),
        document,
        ImageUrl("https://a.example/"),
    ]
    messages: list[Any] = [{"role": "user", "content": [{"type": "user-prompt", "value": value}]}]
    assert tokens_of(messages, "anthropic") == pytest.approx(2_691 + 36_000 + 1_600, rel=0.02)


def test_stub_oversized_counts_a_picture_by_its_pixels() -> None:
    call, picture = ToolCall("1", "screenshot"), [BLOCKS["mcp image"][0]]
    assert stub_oversized(picture, call, 20_000) == picture
    stub = stub_oversized(picture, call, 2_000, policy=Policy(offload=Kept()))
    assert stub["status"] == "oversized"


def test_a_stub_of_a_result_with_a_picture_keeps_its_text_and_no_base64() -> None:
    kept = Kept()
    result = [{"type": "text", "text": "What is seen. " * 200}, BLOCKS["anthropic image"][0]]
    call: Any = {"type": "tool_use", "id": "1", "name": "look", "input": {}}
    messages: list[Any] = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [call]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "1", "content": result}],
        },
    ]
    sent, report = rewrite(messages, "anthropic", 600, Policy(offload=kept))
    assert report.fits
    (whole,) = kept.texts.values()
    assert whole.startswith("What is seen.")
    assert "(image/png, 200,029 bytes)" in whole
    assert PICTURE[:100] not in str(sent)


@pytest.mark.parametrize(
    ("name", "fmt", "block"),
    [
        ("chat image", "openai_chat", {"type": "text"}),
        ("chat file", "openai_chat", {"type": "text"}),
        ("responses image", "openai_responses", {"type": "input_text"}),
        ("responses file", "openai_responses", {"type": "input_text"}),
        ("anthropic document", "anthropic", {"type": "text"}),
        ("gemini document", "gemini", {}),
    ],
)
def test_an_older_picture_or_document_of_the_users_becomes_a_block_of_text(
    name: str, fmt: Format, block: dict[str, str]
) -> None:
    shown = BLOCKS[name][0]
    key = "parts" if fmt == "gemini" else "content"
    said = [{"text": "Look."}] if fmt == "gemini" else "Look."
    messages = [{"role": "user", key: [shown] if n == 1 else said} for n in range(9)]
    sent, report = compact(messages, fmt, 100, State())
    (stub,) = sent[1][key]
    assert report.smaller
    assert stub.pop("text").startswith(("(image/png, 2", "(application/pdf, "))
    assert stub == block
    assert compact([messages[1]], fmt, 100, State())[0] == [messages[1]]


@pytest.mark.parametrize("data", [png(64, 64), BinaryContent(png(64, 64), "image/png")])
def test_the_bytes_of_a_medium_are_those_of_its_base64(data: Any) -> None:
    messages: list[Any] = [{"role": "user", "parts": [{"inline_data": {"data": data}}]}]
    _, report = rewrite(messages, "gemini", Target(1, "bytes"))
    assert report.before == pytest.approx(200_029 * 4 / 3, rel=0.01)


# --- Sizes: close to the exact count, and counted once.

HISTORY = [
    Turn("user", "the task"),
    *(Turn("tools", "", (("read", f"{n}", prose(9_000, f"w{n}x")),)) for n in range(12)),
]


def json_tokens(value: Any) -> int:
    """Return the size of a result; none is so small that it fits into a window of 0."""
    sizes = [0]
    call = ToolCall("1", "f")
    stub_oversized(value, call, 0, on_event=lambda _, facts: sizes.append(facts["tokens"]))
    return sizes[-1]


def counted(content: Any) -> int:
    """Return the size of a message."""
    return count_tokens([{"role": "user", "content": content}], "anthropic", State())


@pytest.mark.parametrize(
    "text",
    [
        prose(60_000),
        json.dumps([{"id": n, "name": f"item {n}", "tags": ["a", "b"]} for n in range(3_000)]),
        prose(200_000) + "漢字かな交じり文。" * 20_000,
        random.Random(1).randbytes(60_000).hex(),
        "\n".join(
            f"2026-11-22T04:{n % 60:02}:00Z INFO request {n} took {n % 997} ms"
            for n in range(3_000)
        ),
    ],
    ids=["prose", "json", "prose and Japanese", "hex", "log"],
)
def test_the_estimate_of_a_long_text_is_close_to_its_count(text: str) -> None:
    estimate = counted(text) - counted("")
    assert estimate == pytest.approx(tokens.count(text).tokens, rel=0.06)


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("copied", [False, True], ids=["same objects", "equal copies"])
def test_counted_texts_are_not_counted_again(
    fmt: Format, copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []

    def count(text: str) -> tokens.TokenCount:
        counted.append(len(text))
        return tokens.TokenCount(len(text) // 4, exact=True)

    monkeypatch.setattr("fetchstash.text.tokens.count", count)
    messages, state = render(HISTORY, fmt), State()
    compact(messages, fmt, 10**6, state)
    first = sum(counted)
    counted.clear()
    again: list[Any] = json.loads(json.dumps(messages)) if copied else messages
    compact(again, fmt, 10**6, state)
    assert first > 10_000
    assert max(counted, default=0) < 300
    assert sum(counted) < first / 4


def test_a_state_forgets_the_texts_that_are_gone() -> None:
    state = State()
    compact(render(HISTORY, "openai_chat"), "openai_chat", 10**6, state)
    held = len(state.digests)
    compact(render(HISTORY[:3], "openai_chat"), "openai_chat", 10**6, state)
    assert len(state.digests) < held / 2


def test_plain_data_is_counted_with_its_media_by_their_rules() -> None:
    assert json_tokens(None) == 0
    tools = [{"name": "fetch", "description": prose(400)}]
    assert json_tokens(tools) > 100
    picture = {"type": "image", "source": {"type": "base64", "data": "A" * 90_000}}
    assert 1_600 <= json_tokens([picture]) < 1_700


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("\x00\x01 ELF \x02\x03" * 50, "unknown_binary"),
        ("a\tb\r\n\x0c" * 50, ""),
        ("Grüße\n" * 50, ""),
    ],
    ids=["control characters", "white space", "other letters"],
)
def test_a_text_is_binary_where_it_has_many_control_characters(text: str, kind: str) -> None:
    assert facts_of(text).content_kind == kind
