"""classify: overflows told from everything else, in wordings of many providers, whatever the shape."""

# ruff: noqa: E501 - an error is quoted on one line

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from fetchstash.client import Target, Verdict, classify
from fetchstash.client._recovery import target_of
from fetchstash.client._rules import CODE_WORDINGS, Rule
from fetchstash.client._wordings import EMPTY_400, FIRST, SERVER_ERRORS, WORDINGS as RULES
from tests.client.test_wordings import BYTES, NOT, TOKENS, ProviderError

ALL_RULES = (*SERVER_ERRORS, *FIRST, *CODE_WORDINGS, *RULES, EMPTY_400)


@pytest.mark.parametrize("rule", ALL_RULES, ids=[rule.id for rule in ALL_RULES])
def test_each_rule_has_a_source_and_decides_its_own_example(rule: Rule) -> None:
    assert rule.source
    assert rule.search(rule.example.lower())
    example: Any = {"code": rule.example} if rule in CODE_WORDINGS else rule.example
    if rule in SERVER_ERRORS:
        example = ProviderError(rule.example, 500)
    verdict = classify(example)
    assert verdict.kind == rule.outcome


def test_rule_ids_are_unique() -> None:
    assert len({rule.id for rule in ALL_RULES}) == len(ALL_RULES)


def test_an_output_dominant_overflow_wants_its_output_clamped_and_no_rewrite() -> None:
    wording = "This model's maximum context length is 8192 tokens. However, you requested 8192 tokens (58 in the messages, 8134 in the completion)"
    assert classify(wording).action == "clamp_output"
    assert classify(wording.replace("(58 in", "(8000 in")).action == "rewrite"
    assert classify("prompt is too long: 233153 tokens > 200000 maximum").action == "rewrite"
    assert classify("request entity too large").action == "shrink_bytes"
    assert classify("Overloaded").action == "none"


@pytest.mark.parametrize("status", [413, 429])
def test_a_request_that_is_larger_than_the_whole_rate_limit_is_rewritten_under_that_limit(
    status: int,
) -> None:
    wording = "Request too large for model `m` on tokens per minute (TPM): Limit 12000, Requested 14137, please reduce your message size and try again."
    assert classify(ProviderError(wording, status)) == Verdict(
        "overflow_tokens",
        12_000,
        14_137,
        action="rewrite",
        evidence="limit 12000, requested 14137",
        rule_id="rate-limit-unsatisfiable",
    )


@pytest.mark.parametrize(
    "wording",
    [
        "Rate limit reached on tokens per min (TPM): Limit 50000, Used 47949, Requested 3006. Please try again in 1s.",
        "Rate limit reached on tokens per min (TPM): Limit 50000, Used 10, Requested 50000.",
        "Rate limit reached on requests per day (RPD): Limit 200, Used 200, Requested 300.",
        "Rate limit reached on output tokens per min (OTPM): Limit 8000, Requested 9000.",
    ],
)
def test_a_rate_limit_that_waiting_or_no_rewrite_satisfies_stays_one(wording: str) -> None:
    for error in (wording, ProviderError(wording, 413), ProviderError(wording, 429)):
        verdict = classify(error)
        assert (verdict.kind, verdict.action, verdict.rule_id) == (NOT, "none", "rate-limit")


ODD: list[Any] = [
    *(None, "", b"", 0, -1, 3.5, True, [], {}, ()),
    pytest.param(object(), id="an object"),
    *({"error": None}, [[[1]]], {1: {2: 3}}, float("nan")),
]


@pytest.mark.parametrize("thing", ODD, ids=[repr(thing).partition(" at 0x")[0] for thing in ODD])
def test_none_strings_empty_and_odd_shapes_are_not_overflow(thing: Any) -> None:
    assert classify(thing).kind == NOT


def test_an_object_whose_attributes_raise_is_not_overflow() -> None:
    class Hostile(Exception):
        @property
        def body(self) -> Any:
            raise RuntimeError("closed")

        def __str__(self) -> str:
            raise RuntimeError("no words")

    assert classify(Hostile()).kind == NOT


def test_a_circular_body_and_a_deep_one_are_read_within_bounds() -> None:
    circle: dict[str, Any] = {"error": {}}
    circle["error"]["error"] = circle
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"error": deep}
    assert classify(circle).kind == NOT
    assert classify(deep).kind == NOT


@pytest.mark.parametrize("status", [401, 402, 403, 404, 405, 407, 408, 409, 410, 415, 429])
def test_no_words_make_an_overflow_of_a_status_that_says_something_else(status: int) -> None:
    words = "This model's maximum context length is 8192 tokens."
    assert classify(ProviderError(words, 400)).kind == TOKENS
    verdict = classify(ProviderError(words, status))
    assert (verdict.kind, verdict.rule_id) == (NOT, f"status-{status}")


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (500, "internal error computing context length exceeded", NOT),
        (503, "maximum context length is 8192 tokens", NOT),
        (500, "Context size has been exceeded.", TOKENS),  # llama.cpp's context shift
        (413, "", BYTES),
        (413, "<html><h1>413 Request Entity Too Large</h1>nginx</html>", BYTES),
        (
            413,
            "The number of tokens (35000) exceeded this model context window limit (24000)",
            TOKENS,
        ),
        (413, "Rate limit reached on tokens per minute", NOT),
        (None, "model_context_window_exceeded", TOKENS),
    ],
)
def test_a_status_weighs_more_than_words_unless_a_server_words_its_overflows_so(
    status: int | None, words: str, kind: str
) -> None:
    assert classify(ProviderError(words, status) if status else words).kind == kind


def test_an_overflow_is_found_anywhere_in_the_chain_of_exceptions() -> None:
    provider = ProviderError(
        "Bad request", 400, {"error": {"code": "context_length_exceeded", "message": "too much"}}
    )
    wrapped = ValueError("the model failed")
    wrapped.__cause__ = provider
    outer = RuntimeError("agent run failed")
    outer.__context__ = wrapped
    assert classify(outer).rule_id == "code-context_length_exceeded"
    assert classify(
        ExceptionGroup("several", [ValueError("x"), ProviderError("prompt is too long")])
    ).overflow


def test_a_body_inside_a_body_is_read() -> None:
    raw = json.dumps(
        {"error": {"message": "This model's maximum context length is 262144 tokens."}}
    )
    body = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}}
    assert classify(body).limit == 262_144


def test_quoted_content_is_no_sign_of_an_error_and_a_failed_response_is() -> None:
    said = {"content": "Your prompt is too long: maximum context length is 8192"}
    answer = {"choices": [{"finish_reason": "stop", "message": said}]}
    delta = {"type": "response.output_text.delta", "delta": "context_length_exceeded"}
    assert classify(answer).kind == classify(delta).kind == NOT
    error = {"code": "context_length_exceeded", "message": "x"}
    failed = {"type": "response.failed", "response": {"status": "failed", "error": error}}
    assert classify(failed).kind == TOKENS


@pytest.mark.parametrize("reason", ["model_context_window_exceeded", "end_turn"])
def test_anthropics_message_delta_is_an_overflow_for_its_stop_reason_alone(reason: str) -> None:
    delta = {"stop_reason": reason, "stop_sequence": None}
    event = {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 3}}
    made = SimpleNamespace(type="message_delta", delta=SimpleNamespace(**delta))
    kind = TOKENS if reason == "model_context_window_exceeded" else NOT
    for shape in (event, made, f"event: message_delta\ndata: {json.dumps(event)}\n\n".encode()):
        assert classify(shape).kind == kind


SAID: dict[str, Any] = {
    "type": "error",
    "error": {
        "type": "invalid_request_error",
        "message": "prompt is too long: 210000 tokens > 200000 maximum",
    },
}


class Answer:
    """A response as HTTP clients have them."""

    status_code = 400
    text = json.dumps(SAID)


class Carried(Exception):
    """An error that has its words in its response alone."""

    response = Answer()


@pytest.mark.parametrize(
    "thing",
    [
        SAID,
        [SAID],
        json.dumps(SAID),
        json.dumps(SAID).encode(),
        f"event: error\ndata: {json.dumps(SAID)}\n\n",
        f"data: {json.dumps(SAID)}".encode(),
        f"Error code: 400 - {json.dumps(SAID)}",
        {"error": json.dumps(SAID)},
        {"detail": [{"msg": json.dumps(SAID)}]},
        Answer(),
        Carried(),
        Carried("it failed"),
        ("a", Carried()),
        {
            "Error": {"Code": "ValidationException", "Message": SAID["error"]["message"]},
            "ResponseMetadata": {"HTTPStatusCode": 400},
        },
    ],
    ids=lambda thing: f"{type(thing).__name__} {str(thing)[:30]}",
)
def test_an_overflow_is_read_in_whatever_shape_it_comes(thing: Any) -> None:
    verdict = classify(thing)
    assert (verdict.kind, verdict.limit, verdict.requested_input) == (TOKENS, 200_000, 210_000)


def test_a_number_that_only_one_provider_uses_needs_that_provider() -> None:
    body = {"error": {"code": "1261", "message": "failed"}}
    assert classify(body, "Z.AI zai").kind == TOKENS
    assert classify(body, "openai").kind == NOT


def test_an_echoed_request_of_a_megabyte_is_read_in_bounds() -> None:
    assert classify("x" * 1_000_000 + " prompt is too long").kind == NOT
    assert classify("prompt is too long: " + "x " * 500_000).kind == TOKENS


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.integers() | st.text() | st.binary() | st.floats(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_classify_never_raises(thing: Any) -> None:
    assert isinstance(classify(thing), Verdict)
    assert isinstance(classify(ValueError(thing), provider=thing), Verdict)


@pytest.mark.parametrize(
    ("limit", "requested", "before", "fixed", "target"),
    [
        (100_000, 120_000, 120_000, 0, 90_000),
        (100_000, 120_000, 50_000, 70_000, 20_000),
        (100_000, 120_000, 50_000, None, 20_000),
        (100_000, 120_000, 240_000, None, 180_000),
        (100_000, 150_000, 50_000, 50_000, 10_000),
        (100_000, None, 50_000, 70_000, 8_260),
        (100_000, None, 50_000, None, 25_000),
        (100_000, None, 50_000, 10_000, 36_956),
        (None, None, 50_000, 10_000, 25_000),
    ],
)
def test_the_target_subtracts_the_stated_excess_in_our_measure(
    limit: int | None, requested: int | None, before: int, fixed: int | None, target: int
) -> None:
    verdict = Verdict("overflow_tokens", limit, requested, None, "rewrite", "", "")
    assert target_of(verdict, before, fixed) == Target(target)
