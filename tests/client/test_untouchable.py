"""Messages that no rewrite touches, though each is the largest of its conversation."""

from typing import Any

import pytest

from fetchstash.client import Format, Policy, State, Target, compact, rewrite
from tests.client.conversations import FORMATS, Turn, render
from tests.client.fakes import prose

LARGE = prose(20_000)
TASK = Turn("user", "the task")
HISTORIES = {
    "the last message of the model": (
        [TASK, Turn("assistant", "Wait."), Turn("user", "Go on."), Turn("assistant", LARGE)],
        3,
    ),
    "the first task": ([Turn("user", LARGE), Turn("assistant", "Done."), Turn("user", "And?")], 0),
    "the last turn of the user": (
        [TASK, Turn("assistant", "Done."), Turn("user", LARGE), Turn("assistant", "Yes.")],
        2,
    ),
}


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize(("history", "turn"), HISTORIES.values(), ids=HISTORIES)
def test_a_rewrite_leaves_whole(history: list[Turn], turn: int, fmt: Format) -> None:
    messages: list[Any] = render(history, fmt)
    before, after = len(render(history[:turn], fmt)), len(render(history[: turn + 1], fmt))
    policy = Policy(preserve_recent_critical_messages=0)
    rewritten, _ = rewrite(messages, fmt, 1_000, policy, State())
    compacted, report = compact(messages, fmt, 1_000, State(), policy=policy)
    assert rewritten[before:after] == compacted[before:after] == messages[before:after]
    assert not report.fits


@pytest.mark.parametrize("fmt", FORMATS)
def test_the_latest_exchange_is_left_whole_while_an_older_one_can_go(fmt: Format) -> None:
    pdf = "[Fetched PDF artifact: report.pdf, 612 KB, pages 48. Use artifact_ref=art_a.]\n" + LARGE
    history = [
        TASK,
        Turn("tools", "", (("read", "a", LARGE),)),
        Turn("assistant", "It is read."),
        Turn("tools", "", (("fetch", "b", pdf),)),
        Turn("assistant", "That is read, too."),
    ]
    messages: list[Any] = render(history, fmt)
    latest = slice(len(render(history[:3], fmt)), len(render(history[:4], fmt)))
    sent, report = rewrite(messages, fmt, Target(30_000, "bytes"), state=State())
    assert report.fits
    assert sent[latest] == messages[latest]


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_call_that_waits_for_its_result_is_left_whole(fmt: Format) -> None:
    answered = render([TASK, Turn("tools", "", (("write", LARGE, "ok"),))], fmt)
    messages = answered[:-1]
    compacted, _ = compact(messages, fmt, 1_000, State())
    assert compacted == messages


def test_the_system_prompt_is_left_whole() -> None:
    messages: list[Any] = [{"role": "system", "content": LARGE}, {"role": "user", "content": "Go."}]
    assert rewrite(messages, "openai_chat", 1_000, state=State())[0] == messages
    assert compact(messages, "openai_chat", 1_000, State())[0] == messages
