"""Events: each documented one is emitted with its documented attributes, and none has content."""

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from fetchstash.client import (
    Policy,
    Recovery,
    State,
    ToolCall,
    compact,
    extractor_prompt,
    stub_oversized,
)
from tests.client.fakes import Events, Kept, Overflow, conversation, prose
from tests.client.test_compact import said, working

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
CANARY = "canary"


def documented() -> dict[str, set[str]]:
    """Return the attributes of each event, as the table in the page has them."""
    table = PAGE.read_text(encoding="utf-8").partition("## Events")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z._]+)` \| (.+) \|$", table, re.MULTILINE)
    return {event: set(re.findall(r"`([a-z._0-9]+)`", attributes)) for event, attributes in rows}


@pytest.fixture(scope="module")
def told() -> Events:
    """Emit everything: a retry, a churn of compactions with stages and skips, stubs and prompts."""
    events = Events()
    policy = Policy(offload=Kept())
    answers: list[Any] = [Overflow(), {"ok": 1}]

    def send(_messages: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    Recovery(policy, events, provider="anthropic").call(
        send, conversation(prose(9_000, CANARY), "short", name="fetch")
    )

    class Broken:
        def keep(self, text: str, name: str) -> str:  # noqa: ARG002 - the protocol names them
            raise OSError(CANARY)

    answers[:] = [Overflow(), {"ok": 1, "usage": {"prompt_tokens": 1}}]
    Recovery(Policy(offload=Broken()), events).call(
        send, conversation(prose(90_000, CANARY), "short", name="fetch")
    )
    answers[:] = [{"ok": 1, "usage": {"prompt_tokens": 1}}]
    Recovery(on_event=events).call(send, conversation(prose(90_000, CANARY), "short"))
    history = [
        *working(*[prose(4_000, f"{CANARY}{n}") for n in range(4)]),
        said("user", prose(2_000, CANARY)),
        said("user", "go"),
    ]
    history[2]["tool_calls"][0]["function"]["arguments"] = (
        f'{{"content": "{prose(3_000, CANARY).replace(chr(10), " ")}"}}'
    )
    history[4]["tool_calls"][0]["function"]["arguments"] = str(
        {f"{CANARY}{n}": n for n in range(100)}
    ).replace("'", '"')
    state = State()
    for _ in range(policy.churn_warning + 1):
        compact(history, "openai_chat", 1_500, state, policy=policy, on_event=events)
    stub_oversized(
        prose(9_000, CANARY),
        ToolCall("1", "fetch", {"q": CANARY}),
        100,
        policy=policy,
        on_event=events,
    )
    extractor_prompt(history, "openai_chat", 1_000, State(), policy=policy, on_event=events)
    extractor_prompt(history, "openai_chat", 1_000, State(), 1, policy=policy, on_event=events)
    return events


def test_each_documented_event_comes_with_its_attributes(told: Events) -> None:
    attributes: defaultdict[str, set[str]] = defaultdict(set)
    for name, event in told:
        attributes[name] |= set(event)
    assert set(attributes) == set(documented())
    for name, names in documented().items():
        assert names <= attributes[name], name
        counted = attributes[name] - names
        assert all(one.startswith(("applied.stage_", "skipped.")) for one in counted), name


def test_no_event_tells_content(told: Events) -> None:
    assert CANARY not in str(told)


def test_outcomes_tiers_and_reasons_are_those_of_the_page(told: Events) -> None:
    compactions = told.of("compaction")
    reasons = {
        reason
        for event in compactions
        for reason in str(event["compaction_skipped_reason"]).split(",")
        if reason
    }
    assert reasons <= {"cache_hit", "policy_preserve", "no_pressure", "no_gain"}
    assert {event["compaction_tier"] for event in compactions} <= {"normal", "pressure", "critical"}
    assert {event["compaction_stage"] for event in compactions} <= set(range(5))
