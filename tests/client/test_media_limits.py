"""Media over what a provider takes: the oldest make room, and that stays so."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from fetchstash.client import (
    MEDIA_BOUNDS,
    Format,
    MediaBounds,
    Policy,
    Recovery,
    Request,
    State,
    learned_windows,
    orphans,
    overflow_report,
)
from tests.client.conversations import FORMATS, medium
from tests.client.fakes import Events
from tests.client.media_requests import picture, shown, widths
from tests.client.test_media import PDF


class Provider:
    """Refuses more than ``most`` pictures, or one with a longer edge than ``edge``."""

    def __init__(self, most: int = 10_000, edge: int = 10_000, words: str = "") -> None:
        self.most, self.edge, self.words = most, edge, words
        self.refused, self.bodies = 0, list[str]()

    def __call__(self, messages: Any) -> Any:
        self.bodies.append(json.dumps(messages))
        count = len(list(shown(messages)))
        if count > self.most:
            self.refused += 1
            raise ValueError(self.words or f"messages: too many images: {count} > {self.most}")
        if self.edge < 10_000 and max(widths(messages), default=0) > self.edge:
            self.refused += 1
            raise ValueError(
                "image dimensions exceed max allowed size for many-image requests: "
                f"{self.edge} pixels"
            )
        return {"ok": count}


def screenshots(fmt: Format, count: int, width: int = 64) -> Iterator[list[Any]]:
    """Yield the growing history of an agent that takes screenshots, each a tool's result."""
    history: list[Any] = [{"role": "user", "content": "Watch the page."}]
    if fmt == "gemini":
        history = [{"role": "user", "parts": [{"text": "Watch the page."}]}]
    for number in range(count):
        block, call = medium(fmt, "image/png", picture(number, width)), f"call_{number}"
        if fmt == "openai_chat":
            function = {"name": "shoot", "arguments": "{}"}
            calls = [{"id": call, "type": "function", "function": function}]
            history += [
                {"role": "assistant", "content": None, "tool_calls": calls},
                {"role": "tool", "tool_call_id": call, "content": "taken"},
                {"role": "user", "content": [block]},
            ]
        elif fmt == "openai_responses":
            one = {"type": "function_call", "call_id": call, "name": "shoot", "arguments": "{}"}
            history += [one, {"type": "function_call_output", "call_id": call, "output": [block]}]
        elif fmt == "anthropic":
            use: dict[str, Any] = {"type": "tool_use", "id": call, "name": "shoot", "input": {}}
            result = {"type": "tool_result", "tool_use_id": call, "content": [block]}
            history += [
                {"role": "assistant", "content": [use]},
                {"role": "user", "content": [result]},
            ]
        else:
            asked: dict[str, Any] = {"functionCall": {"name": "shoot", "args": {}}}
            answer = {"name": "shoot", "response": {"ok": True}, "parts": [block]}
            history += [
                {"role": "model", "parts": [asked]},
                {"role": "user", "parts": [{"functionResponse": answer}]},
            ]
        yield list(history)


@pytest.mark.slow
@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize(("most", "edge"), [(20, 10_000), (7, 10_000), (10_000, 40)])
def test_a_loop_of_screenshots_is_refused_once_and_goes_on(
    fmt: Format, most: int, edge: int
) -> None:
    provider, recovery = Provider(most, edge), Recovery()
    for messages in screenshots(fmt, 36):
        recovery.call(provider, Request(messages, fmt, model="m", endpoint="here"))
        last = json.loads(provider.bodies[-1])
        assert orphans(last, fmt) == []
        assert list(shown(last[-1])), "the newest is always shown"
    assert provider.refused == 1
    (limit,) = learned_windows
    assert limit.limit == min(most, edge)
    # Between two reductions the requests begin alike, so that a prompt cache stays warm.
    changed = sum(
        not after.startswith(before[:-1])
        for before, after in zip(provider.bodies, provider.bodies[1:], strict=False)
    )
    assert changed <= 36 // (most // 2) + 2


def test_pictures_are_scaled_where_pixels_are_the_limit() -> None:
    provider = Provider(edge=40)
    messages = list(screenshots("anthropic", 3))[-1]
    Recovery().call(provider, Request(messages, "anthropic"))
    assert provider.refused == 1
    assert widths(json.loads(provider.bodies[-1])) == [40, 40, 40]


def test_without_pillow_large_pictures_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    history = list(screenshots("anthropic", 3))[-1]
    monkeypatch.setitem(sys.modules, "PIL", None)
    history += [{"role": "user", "content": "What changed?"}]
    with pytest.raises(ValueError, match="pixels") as caught:
        Recovery().call(Provider(edge=40), Request(history, "anthropic"))
    report = overflow_report(caught.value)
    assert report
    assert len(report.changes) == 2, "the latest exchange stays"


def test_a_document_over_the_pages_makes_room_and_the_task_stays() -> None:
    task = [{"type": "text", "text": "Compare."}, medium("anthropic", "image/png", picture(0))]
    read: dict[str, Any] = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}
    pdf = medium("anthropic", "application/pdf", PDF)
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [pdf]}
    messages: list[Any] = [
        {"role": "user", "content": task},
        {"role": "assistant", "content": [read]},
        {
            "role": "user",
            "content": [result],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Read."}]},
        {"role": "user", "content": "And now?"},
    ]
    answers: list[Any] = [ValueError("A maximum of 10 PDF pages may be provided."), "good"]
    sent: list[Any] = []

    def send(request: Any) -> Any:
        sent.append(request)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert Recovery().call(send, Request(messages, "anthropic")) == "good"
    assert sent[1][0] == messages[0]
    assert "document left out: application/pdf" in json.dumps(sent[1][2])


def test_bounds_of_the_provider_hold_before_sending_and_a_user_changes_them() -> None:
    messages = list(screenshots("anthropic", 130))[-1]
    request = Request(messages, "anthropic", model="claude-sonnet-4-5")
    provider, events = Provider(most=100), Events()
    Recovery(on_event=events).call(provider, request)
    assert provider.refused == 0
    assert events.of("media.reduced")[0]["left_out"] == 80
    wide = (MediaBounds("mine", "claude", pictures=120), *MEDIA_BOUNDS)
    provider = Provider(most=120)
    Recovery(Policy(media_bounds=wide)).call(provider, request)
    assert (provider.refused, len(list(shown(json.loads(provider.bodies[-1]))))) == (0, 60)
    provider = Provider(most=130)
    Recovery(Policy(media_bounds=())).call(provider, request)
    assert provider.bodies == [json.dumps(messages)]


def test_each_bound_names_its_source() -> None:
    assert all(row.source and row.pattern for row in MEDIA_BOUNDS)


def test_an_unstated_limit_takes_pictures_out_and_what_cannot_go_is_reported() -> None:
    messages = list(screenshots("openai_chat", 8))[-1]
    provider = Provider(most=5, words="Too many images in the request.")
    assert Recovery().call(provider, Request(messages))["ok"] < 5
    one = [{"role": "user", "content": [medium("openai_chat", "image/png", picture(1))]}]
    with pytest.raises(ValueError, match="Too many") as caught:
        Recovery().call(Provider(most=0, words="Too many images."), Request(one))
    assert getattr(caught.value, "retryable", None) is False


def test_what_was_left_out_stays_out_when_the_conversation_is_resumed_with_its_state() -> None:
    messages = list(screenshots("anthropic", 30))[-1]
    state, provider = State(), Provider(most=20)
    Recovery(state=state).call(provider, Request(messages, "anthropic"))
    learned_windows.clear()
    Recovery(Policy(compaction_mode="legacy"), state=state).call(
        provider, Request(messages, "anthropic")
    )
    assert provider.refused == 1
    assert provider.bodies[-1] == provider.bodies[-2]
