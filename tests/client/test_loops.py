"""Agent loops in each format: pictures, documents, parallel calls, reasoning, fixed parts."""

import base64
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from fetchstash.client import Format, Policy, Recovery, Request, orphans
from fetchstash.text import tokens
from tests.client.conversations import FORMATS, Turn, render, texts_of
from tests.client.fakes import Kept, prose

pytestmark = [pytest.mark.slow, pytest.mark.long]

WINDOW = 40_000
PNG = base64.b64encode(
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\0\0\0\x02\0" + bytes(90_000)
).decode()
PDF = base64.b64encode(b"%PDF-1.7\n" + b"<< /Type /Page >>\n" * 2 + bytes(90_000)).decode()
MEDIA: dict[str, list[Any]] = {
    "openai_chat": [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{PDF}"}},
    ],
    "openai_responses": [
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
        {"type": "input_file", "file_data": f"data:application/pdf;base64,{PDF}"},
    ],
    "anthropic": [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
        },
    ],
    "gemini": [
        {"inlineData": {"mimeType": "image/png", "data": PNG}},
        {"inlineData": {"mimeType": "application/pdf", "data": PDF}},
    ],
}
COSTS = {
    "openai_chat": (256, 3_030),
    "openai_responses": (256, 3_030),
    "anthropic": (361, 6_000),
    "gemini": (1_120, 1_120),
}
"""What the provider takes for the picture and the document: 512 x 512 pixels, two pages."""


class Refused(Exception):
    status_code = 400


@dataclass
class Provider:
    """Counts text by the vocabulary and media by their price, and refuses what does not fit."""

    fmt: Format
    fixed: str
    refused: list[bool] = field(default_factory=list[bool])
    sent: list[Any] = field(default_factory=list[Any])

    def __call__(self, messages: Any) -> str:
        text = json.dumps(messages, ensure_ascii=False)
        picture, document = text.count(PNG), text.count(PDF)
        text = text.replace(PNG, "").replace(PDF, "")
        prices = COSTS[self.fmt]
        size = tokens.count(self.fixed).tokens + round(tokens.count(text).tokens * 0.8)
        size += picture * prices[0] + document * prices[1]
        self.sent.append(messages)
        self.refused.append(size > WINDOW)
        if size > WINDOW:
            raise Refused(f"prompt is too long: {size} tokens > {WINDOW} maximum")
        return "Go on."


def steps(fmt: Format, number: int) -> list[Any]:
    """Return what happens at one step: parallel calls with reasoning, and now and then more."""
    calls = tuple(
        (
            "read",
            f"{number}.{index}",
            prose(300 + (number * 7 + index) * 997 % 6_000, f"w{number}x"),
        )
        for index in range(1 + number % 3)
    )
    happened = [Turn("tools", "", calls, reasoning=True)]
    if number % 5 == 4:
        happened += [
            Turn("assistant", prose(900, f"answer{number}x")),
            Turn("user", f"Now {prose(400, f'step{number}x')}"),
        ]
    messages = render(happened, fmt)[fmt.startswith("openai") :]
    named: list[Any] = json.loads(json.dumps(messages).replace("call_0_", f"call_{number}_"))
    if number % 7 == 3:
        key = "parts" if fmt == "gemini" else "content"
        named.append({"role": "user", key: MEDIA[fmt]})
    return named


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("known", [True, False], ids=["window known", "window not known"])
def test_a_loop_runs_to_its_end_with_half_of_the_window_fixed(fmt: Format, known: bool) -> None:
    rules = prose(400_000, "rule")
    fixed = rules[: round(len(rules) * WINDOW * 0.5 / tokens.count(rules).tokens)]
    provider, kept = Provider(fmt, fixed), Kept()
    recovery = Recovery(Policy(offload=kept, window=WINDOW if known else None))
    messages = render([Turn("user", "the task")], fmt)
    for number in range(55):
        messages += steps(fmt, number)
        before = json.dumps(messages)
        recovery.call(provider, Request(messages, fmt, fixed=fixed))
        sent = provider.sent[-1]
        assert json.dumps(messages) == before
        assert not orphans(sent, fmt)
        for role in ("assistant", "user"):
            assert texts_of(messages, fmt, role)[-1:] in (
                [],
                *([text] for text in texts_of(sent, fmt, role)),
            )
    assert provider.refused.count(True) <= (0 if known else 2)
