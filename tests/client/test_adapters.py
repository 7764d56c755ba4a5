"""Each adapter against its real SDK and a provider on loopback (see ``sdks.py``)."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fetchstash.client import (
    CompactionConfig,
    HistoryCompactor,
    Policy,
    Recovery,
    State,
    learned_windows,
    overflow_report,
)
from tests.client.conversations import Turn, render
from tests.client.fakes import Events, FullMemo
from tests.client.loopback import Loopback
from tests.client.sdks import (
    CASES,
    HISTORY,
    Case,
    anthropic,
    langchain_agent,
    langchain_messages,
    marked,
    module,
    needs,
    of_sdk,
    pydantic_history,
    pydantic_model,
)

ROOT = Path(__file__).parents[2]
SMALL = [Turn("user", "the task"), Turn("user", "Go on.")]


def reports(case: Case) -> bool:
    """Return whether a failure is an exception: an event of a Responses stream has no report."""
    return not (case.streams and "responses" in case.way)


@pytest.fixture(params=marked(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    one: Case = request.param
    return one


# The SDKs and what they bring in warn of their own affairs.
pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("default")]


TOO_LONG = r"(?i)context|too long|token"


@pytest.mark.parametrize(
    ("script", "history", "requests", "error"),
    [
        pytest.param("overflow good", HISTORY, 2, "", id="an overflow"),
        pytest.param("overflow", HISTORY, 2, TOO_LONG, id="two overflows"),
        pytest.param("overflow good", SMALL, 1, TOO_LONG, id="nothing to shrink"),
        pytest.param("late good", HISTORY, 1, rf"{TOO_LONG}|json|error", id="after output"),
        pytest.param("other good", HISTORY, 1, r"(?i)temperature|unknown name|server_error"),
        pytest.param("good", HISTORY, 1, "", id="no overflow"),
    ],
)
async def test_an_overflow_is_cured_by_one_smaller_request_and_all_else_is_sent_once(
    case: Case, script: str, history: list[Turn], requests: int, error: str
) -> None:
    if script.startswith("late") and not case.streams:
        pytest.skip("nothing is output before the answer is whole")
    recovery = Recovery()
    with Loopback(*script.split()) as provider:
        if not error:
            assert await case.run(provider.url, history, recovery) == "Hello."
        else:
            with pytest.raises(Exception, match=error) as caught:
                await case.run(provider.url, history, recovery)
            assert not type(caught.value).__module__.startswith("fetchstash")
            if script.startswith("overflow") and reports(case):
                assert overflow_report(caught.value) is recovery.report is not None
                assert getattr(caught.value, "retryable", None) is False
    assert len(provider.bodies) == requests
    assert provider.sizes == sorted(set(provider.sizes), reverse=True)
    assert ("overflow_fallback" in json.dumps(provider.bodies[-1])) is (requests == 2)
    if requests == 2:
        assert recovery.report
        assert recovery.report.smaller


@pytest.mark.parametrize("case", of_sdk("anthropic"))
async def test_an_answer_that_anthropic_ends_for_the_window_is_retried_unless_it_began(
    case: Case,
) -> None:
    with Loopback("full", "good") as provider:
        assert await case.run(provider.url, HISTORY, Recovery()) == "Hello."
    assert len(provider.bodies) == 2
    assert provider.sizes[1] < provider.sizes[0]
    with Loopback("half", "good") as provider:
        assert await case.run(provider.url, HISTORY, Recovery()) == "Hello."
    assert len(provider.bodies) == 1


@needs("anthropic")
async def test_an_answer_that_stays_empty_for_the_window_is_returned_as_it_came() -> None:
    recovery = Recovery()
    with Loopback("full") as provider, anthropic(provider.url, recovery) as client:
        messages = render(HISTORY, "anthropic")
        answer = client.messages.create(model="m", max_tokens=9, messages=messages)
    assert answer.stop_reason == "model_context_window_exceeded"
    assert len(provider.bodies) == 2
    assert recovery.report


@needs("langchain")
async def test_an_answer_of_anthropics_that_ends_for_the_window_is_retried_in_langchain() -> None:
    chat = module("langchain_anthropic").ChatAnthropic
    with Loopback("full", "good") as provider:
        model = chat(model="m", base_url=provider.url, api_key="k", max_retries=0, max_tokens=9)
        answer = langchain_agent("", model=model).invoke(langchain_messages(HISTORY))
    assert answer["messages"][-1].content == "Hello."
    assert len(provider.bodies) == 2


@pytest.mark.parametrize("case", of_sdk("anthropic"))
async def test_anthropics_own_retries_never_send_an_overflow_again_whatever_the_answer_says(
    case: Case,
) -> None:
    """A proxy may send an overflow with a header that tells the SDK to retry."""
    with (
        Loopback("overflow", headers={"x-should-retry": "true"}) as provider,
        pytest.raises(Exception, match="too long") as caught,
    ):
        await case.run(provider.url, HISTORY, Recovery())
    assert len(provider.bodies) == 2
    assert isinstance(caught.value, module("anthropic").BadRequestError)
    assert overflow_report(caught.value)
    learned_windows.clear()
    with (
        Loopback("overflow", headers={"x-should-retry": "true"}) as provider,
        pytest.raises(Exception, match="too long"),
    ):
        await case.run(provider.url, SMALL, Recovery())
    assert len(provider.bodies) == 1


@pytest.mark.parametrize("case", of_sdk("anthropic"))
async def test_anthropics_own_retries_are_left_for_every_other_error(case: Case) -> None:
    with Loopback("overloaded", "good", headers={"retry-after-ms": "1"}) as provider:
        assert await case.run(provider.url, HISTORY, Recovery()) == "Hello."
    assert len(provider.bodies) == 2
    assert provider.sizes[0] == provider.sizes[1]


@pytest.mark.parametrize("case", of_sdk("anthropic"))
async def test_failure_of_the_rewrite_is_the_cause_of_anthropics_error(case: Case) -> None:
    with Loopback("overflow") as provider, pytest.raises(Exception, match="too long") as caught:
        await case.run(provider.url, HISTORY, Recovery(state=State(memo=FullMemo())))
    assert isinstance(caught.value.__cause__, OSError)
    assert len(provider.bodies) == 1


@needs("anthropic")
async def test_anthropics_count_of_tokens_is_that_of_the_messages_as_they_are() -> None:
    messages = render(HISTORY, "anthropic")
    with (
        Loopback("good") as provider,
        anthropic(provider.url, Recovery(Policy(window=100))) as client,
    ):
        client.messages.count_tokens(model="m", messages=messages)
    assert provider.bodies[0]["messages"] == messages


# What speaks Chat Completions, or Anthropic's Messages.
EARLY = [
    one for one in CASES if one.streams and "responses" not in one.way and one.sdk != "google.genai"
]


@pytest.mark.parametrize("case", marked(EARLY))
async def test_an_overflow_that_a_stream_says_after_its_first_event_is_cured_before_any_output(
    case: Case,
) -> None:
    """Anthropic and compatible servers may accept a request, and send the error as an event."""
    with Loopback("early", "good") as provider:
        assert await case.run(provider.url, HISTORY, Recovery()) == "Hello."
    assert len(provider.bodies) == 2
    assert provider.sizes[1] < provider.sizes[0]
    learned_windows.clear()
    with Loopback("early") as provider, pytest.raises(Exception, match=TOO_LONG) as caught:
        await case.run(provider.url, HISTORY, Recovery())
    assert len(provider.bodies) == 2
    if case.sdk == "anthropic":
        assert isinstance(caught.value, module("anthropic").APIStatusError)
        assert overflow_report(caught.value)


@pytest.mark.parametrize(
    "case", [*of_sdk("langchain", streams=True), *of_sdk("pydantic_ai", streams=True)]
)
async def test_an_event_reports_a_retry_that_fails_after_output(case: Case) -> None:
    """The framework passes the tokens on; the adapter sees one answer or one error."""
    events = Events()
    recovery = Recovery(on_event=events)
    with (
        Loopback("overflow", "late") as provider,
        pytest.raises(Exception, match="context") as caught,
    ):
        await case.run(provider.url, HISTORY, recovery)
    assert len(provider.bodies) == 2
    assert events.outcomes == ["retry_failed"]
    assert overflow_report(caught.value)


@needs("pydantic_ai")
async def test_a_pydantic_ai_agent_sends_a_history_that_was_compacted_first() -> None:
    processor = HistoryCompactor(
        CompactionConfig(max_tokens=1_000, target_tokens=800)
    ).create_history_processor()
    capability = module("pydantic_ai.capabilities").ProcessHistory(processor)
    with Loopback("good") as provider:
        model = pydantic_model(provider.url)
        agent = module("pydantic_ai").Agent(model, capabilities=[capability])
        answer = await agent.run("Go on.", message_history=pydantic_history(HISTORY))
    assert answer.output == "Hello."
    assert len(provider.bodies) == 1
    assert "overflow_fallback" in json.dumps(provider.bodies[0])
    assert provider.sizes[0] < 3_000


SDKS = [pytest.param(sdk, marks=needs(sdk)) for sdk in sorted({case.sdk for case in CASES})]
PAGE = (ROOT / "docs" / "client.md").read_text("utf-8")
FIRST_LINES = dict(
    re.findall(r"```python\n# pip install 'fetchstash\[(.+?)\]'(.*?)```", PAGE, re.DOTALL)
)
"""The first program of the page for each extra, after the line that installs it."""


def program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments, in an environment with these variables."""
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("sdk", SDKS)
async def test_the_first_lines_of_the_page_get_an_answer(sdk: str) -> None:
    code = FIRST_LINES[re.sub("[._]", "-", sdk)].partition("\n")[2]
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"), "none")
    with Loopback("good") as provider:
        addresses = dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE"), f"{provider.url}/v1")
        addresses |= dict.fromkeys(("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"), provider.url)
        run = program("-P", "-c", code, **keys, **addresses)
    assert run.stdout == "Hello.\n", run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("sdk", SDKS)
async def test_the_example_goes_on_to_its_answer_in_a_small_window(
    sdk: str, tmp_path: Path
) -> None:
    """Ten pages are four times what the window holds; the model calls once, and twice at once."""
    script = ["call", "calls"] * 3 + ["call", "good"]
    with Loopback(*script, limit=6_000) as provider:
        example = ROOT / "examples" / f"client_{sdk.replace('.', '_')}.py"
        run = program(str(example), PROVIDER_URL=provider.url, TMPDIR=str(tmp_path))
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith("Hello.")
    assert len(provider.bodies) == len(script) + provider.refused
    assert provider.refused <= 2
    assert "art_" in json.dumps(provider.bodies[-1])
