"""classify: overflows told from everything else, in wordings of many providers, whatever the shape."""

# ruff: noqa: E501 - an error is quoted on one line

import csv
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from fetchstash.client import Target, Verdict, classify
from fetchstash.client._grammar import GRAMMAR
from fetchstash.client._recovery import target_of
from fetchstash.client._rules import CODE_WORDINGS, Rule
from fetchstash.client._streams import failure
from fetchstash.client._wordings import EMPTY_400, FIRST, SERVER_ERRORS, WORDINGS as RULES

TOKENS, BYTES, NOT = "overflow_tokens", "overflow_bytes", "not_overflow"
ALL_RULES = (*SERVER_ERRORS, *FIRST, *CODE_WORDINGS, *RULES, *GRAMMAR, EMPTY_400)


class ProviderError(Exception):
    """An error as SDKs raise them: the status and the body as attributes."""

    def __init__(
        self, message: str, status_code: int | None = None, body: Any = None, code: Any = None
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.body = body
        self.code = code


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


@pytest.mark.parametrize(
    "thing",
    [
        {"choices": [], "error_message": "context length of 8192 tokens exceeded"},
        SimpleNamespace(choices=None, error_message="context length of 8192 tokens exceeded"),
        {"base_resp": {"status_code": 1039, "status_msg": "token limit"}, "choices": None},
        SimpleNamespace(base_resp=SimpleNamespace(status_code=1039, status_msg="x"), choices=None),
    ],
)
def test_an_answer_with_status_200_and_an_error_in_it_is_one(thing: Any) -> None:
    assert failure(thing) is thing
    assert classify(thing).kind == TOKENS
    fine: dict[str, Any] = {
        "choices": [],
        "base_resp": {"status_code": 0, "status_msg": ""},
        "error_message": "",
    }
    assert failure(fine) is None


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
        max_leaves=20,
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


# --- classify on wordings of providers, servers, gateways, and of what looks alike.
# ``wordings.tsv`` has a wording a line, with its verdict, its status and who says so. The last 75 were
# written after the rules: before any rule was changed for them, they gave a precision of 1.00 and a
# recall of 0.94 (34 of 36). One that is still missed, in German, is not among them.

LINES = (Path(__file__).parent / "wordings.tsv").read_text("utf-8").splitlines()
WORDINGS = list(csv.DictReader(LINES, delimiter="\t", quoting=csv.QUOTE_NONE))
"""Rows of kind, status, source and words."""


@pytest.mark.parametrize("row", WORDINGS, ids=[row["words"][:60] for row in WORDINGS])
def test_a_wording_gets_its_verdict(row: dict[str, str]) -> None:
    words, status = row["words"], row["status"]
    verdict = classify(ProviderError(words, int(status)) if status else words)
    assert verdict.kind == row["kind"], (row["source"], verdict)


@pytest.mark.parametrize(
    ("words", "limit", "requested_input", "requested_output"),
    [
        ("prompt is too long: 233153 tokens > 200000 maximum", 200_000, 233_153, None),
        (
            "Your request exceeded model token limit: 262144 (requested: 291351)",
            262_144,
            291_351,
            None,
        ),
        (
            "Invalid request: total message size 4512345 exceeds limit 4194304",
            4_194_304,
            4_512_345,
            None,
        ),
        (
            "maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the completion).",
            8192,
            8000,
            1000,
        ),
        (
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000",
            200_000,
            178_959,
            64_000,
        ),
        ("request body size 30 MiB exceeds the 25 MiB limit", 25 * 2**20, 30 * 2**20, None),
        (
            "too many tokens: size limit exceeded by 1000 tokens. The limit for this model is 132000 tokens.",
            132_000,
            133_000,
            None,
        ),
        ("invalid params, context window exceeds limit (2013)", None, None, None),
        ("Your input exceeds the context window of this model.", None, None, None),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 32768. This model's maximum context length is 32768 tokens and your request has 9021 input tokens (32768 > 32768 - 9021). None",
            32_768,
            9_021,
            32_768,
        ),
        (
            "The sum of prompt length (8000), query length (0) max_tokens (1000) should not exceed max_num_tokens (8192)",
            8_192,
            8_000,
            1_000,
        ),
        (
            "the number of input tokens 4098 cannot exceed the total tokens limit 4096 for this model",
            4_096,
            4_098,
            None,
        ),
        (
            '{"code":20015,"message":"length of prompt_tokens (40981) must be less than max_seq_len (32768).","data":null}',
            32_768,
            40_981,
            None,
        ),
        (
            "1007 Request contains an invalid argument: input tokens exceed the context window of 32768",
            32_768,
            None,
            None,
        ),
        ("code: 336007, msg: the max input characters is 20000", None, None, None),
        ("prepared prompt exceeds Engine max_context 196608", 196_608, None, None),
        ("输入内容长度超出模型最大限制 (32000 tokens)，请缩短输入", 32_000, None, None),
        ("request body exceeded 100 MB", 100 * 2**20, None, None),
        ("Document too large: maximum size is 4.5 MB", 4_718_592, None, None),
        (
            "The maximum document size is 4.5 MB. Reduce the size of your document and retry your request.",
            4_718_592,
            None,
            None,
        ),
        (
            "The maximum context length of DeepSeek-V3-0324 is 32768. However, answering your request will take 39732 tokens. Please reduce the length of the messages or the specified max_completion_tokens value.",
            32_768,
            39_732,
            None,
        ),
        (
            "This model's maximum context length is 4097 tokens. However, your messages resulted in 4238 tokens (4143 in the messages, 95 in the functions).",
            4_097,
            4_238,
            None,
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (4143 in the messages, 857 in the functions, 4000 in the completion).",
            8_192,
            5_000,
            4_000,
        ),
        (
            "This endpoint's maximum context length is 128000 tokens. However, you requested about 141000 tokens (100000 of text input, 9000 of tool input, 32000 in the output).",
            128_000,
            109_000,
            32_000,
        ),
        ("input tokens (4000) plus prefix tokens (200) must be <= 4096", 4_096, 4_200, None),
        (
            "max_total_tokens (172191) must be less than or equal to max_seq_len (131072)",
            131_072,
            172_191,
            None,
        ),
        (
            '{"error":{"code":400,"message":"refused","type":"exceed_context_size_error","n_prompt_tokens":14070,"n_ctx":8192}}',
            8_192,
            14_070,
            None,
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_sizes_are_read_where_they_stand_and_no_code_is_taken_for_one(
    words: str, limit: int | None, requested_input: int | None, requested_output: int | None
) -> None:
    verdict = classify(words)
    sizes = (verdict.limit, verdict.requested_input, verdict.requested_output)
    assert sizes == (limit, requested_input, requested_output)


@pytest.mark.parametrize(
    "name",
    ["ModelContextWindowExceededError", "LLMContextLengthExceededException", "ContextOverflow"],
)
def test_the_class_of_an_error_may_be_all_that_says_it(name: str) -> None:
    assert classify(type(name, (Exception,), {})("the request failed")).kind == TOKENS


def test_sizes_are_read_in_thousands_of_tokens_and_in_binary_bytes() -> None:
    verdict = classify("Model context window is 128k tokens, you requested 256k tokens")
    assert (verdict.limit, verdict.requested_input) == (128_000, 256_000)
    assert classify("Request body of 15 MiB is larger than the allowed 10 MiB").limit == 10 * 2**20


class ContextWindowExceededError(ProviderError):
    """LiteLLM's class of that name, which it also raises for names that are too long."""


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (
            TOKENS,
            ProviderError(
                "Error code: 400 - {'code': 20015, 'message': 'max_total_tokens (172191) must be less than or equal to max_seq_len (131072)', 'data': None}",
                400,
            ),
        ),
        (TOKENS, {"base_resp": {"status_code": 1039, "status_msg": ""}}),
        (NOT, {"base_resp": {"status_code": 1002, "status_msg": "rate limit triggered"}}),
        (NOT, {"base_resp": {"status_code": 0, "status_msg": "success"}}),
        (TOKENS, ProviderError("Cannot truncate to 8192 tokens", 400)),
        (
            TOKENS,
            ProviderError(
                "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354. Try using a shorter prompt or a smaller max_tokens value.",
                400,
            ),
        ),
        (
            TOKENS,
            ProviderError(
                '{"error":{"code":500,"message":"refused","type":"exceed_context_size_error","n_prompt_tokens":14070,"n_ctx":8192}}',
                500,
            ),
        ),
        (TOKENS, ProviderError("输入内容超长", 400)),
        (
            NOT,
            ContextWindowExceededError(
                "litellm.ContextWindowExceededError: OpenAIException - Invalid 'tools[1].function.description': string too long. Expected a string with maximum length 1024, but got a string with length 1103 instead.",
                400,
            ),
        ),
        (
            NOT,
            ContextWindowExceededError(
                "Github_copilotException - Invalid 'messages[11].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 46 instead.",
                400,
            ),
        ),
        (
            TOKENS,
            ContextWindowExceededError(
                "litellm.ContextWindowExceededError: the request failed", 400
            ),
        ),
        (
            NOT,
            ProviderError(
                "The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of previous turn.",
                400,
            ),
        ),
        (
            NOT,
            ProviderError(
                "The decoder prompt contains a(n) image item with length 6042, which exceeds the pre-allocated encoder cache size 4800. Please reduce the input size or increase the encoder cache size by setting --limit-mm-per-prompt at startup.",
                400,
            ),
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_refusal_of_one_provider_gets_its_verdict(kind: str, error: object) -> None:
    assert classify(error).kind == kind


EMPTY = {"message": {"role": "assistant", "content": ""}, "finish_reason": "length"}


@pytest.mark.parametrize(
    ("kind", "action", "answer", "sent"),
    [
        (
            "truncated_silently",
            "rewrite",
            {"choices": [EMPTY], "usage": {"prompt_tokens": 4_096, "completion_tokens": 0}},
            None,
        ),
        (
            "truncated_silently",
            "rewrite",
            {
                "message": {"content": ""},
                "done_reason": "length",
                "prompt_eval_count": 4_096,
                "eval_count": 1,
            },
            None,
        ),
        (
            "truncated_silently",
            "none",
            {"choices": [{"message": {"content": "Hi"}}], "usage": {"prompt_tokens": 4_096}},
            20_000,
        ),
        (
            "truncated_silently",
            "none",
            {"content": [], "usage": {"input_tokens": 90, "cache_read_input_tokens": 4_000}},
            20_000,
        ),
        (
            NOT,
            "none",
            {"content": [], "usage": {"input_tokens": 90, "cache_read_input_tokens": 19_000}},
            20_000,
        ),
        (
            NOT,
            "none",
            {"choices": [{"message": {"content": "Hi"}}], "usage": {"prompt_tokens": 12_000}},
            20_000,
        ),
        (
            NOT,
            "none",
            {"choices": [{"message": {"content": "Hi"}}], "usage": {"prompt_tokens": 12}},
            1_000,
        ),
        (NOT, "none", {"choices": [EMPTY], "usage": {"completion_tokens": 4_000}}, None),
        (NOT, "none", {"choices": [EMPTY]}, None),
        (
            NOT,
            "none",
            {"choices": [EMPTY | {"finish_reason": "stop"}], "usage": {"completion_tokens": 0}},
            None,
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_an_answer_to_a_prompt_that_did_not_fit_has_a_verdict_of_its_own(
    kind: str, action: str, answer: object, sent: int | None
) -> None:
    verdict = classify(answer, sent_tokens=sent)
    assert (verdict.kind, verdict.action) == (kind, action)
    assert not verdict.overflow


@pytest.mark.parametrize(
    ("words", "sizes"),
    [
        (
            "Votre requête contient 140000 jetons ; la limite est de 128000 jetons.",
            (128_000, 140_000),
        ),
        ("Model accepts up to 200k tokens, received 214k tokens.", (200_000, 214_000)),
        ("Model accepts up to 200k tokens, received 100k tokens.", None),
        ("max_completion_tokens must be between 1 and 16384, got 20000 tokens", None),
        ("thinking budget of 40000 tokens, the limit is 32000 tokens", None),
        ("Model accepts up to 200 steps, received 214k steps.", None),
    ],
)
def test_a_size_in_tokens_above_a_stated_limit_is_an_overflow_in_whatever_words(
    words: str, sizes: tuple[int, int] | None
) -> None:
    verdict = classify({"status_code": 400, "error": {"message": words}})
    if sizes is None:
        assert verdict.kind == NOT
    else:
        assert verdict.rule_id == "stated-over-limit"
        assert (verdict.kind, verdict.limit, verdict.requested_input) == ("overflow_tokens", *sizes)


@pytest.mark.parametrize(
    "frame",
    [
        "LLM context length exceeded. Original error: {}\nUse a smaller input.",
        "Error while generating output:\n{}",
        "AI_APICallError: {}",
        "APICallError [AI_APICallError]: {}",
        "AI_RetryError: Failed after 3 attempts. Last error: {}",
        "Upstream request failed: [invalid_request_error] {}",
    ],
    ids=["crewai", "smolagents", "ai-sdk", "ai-sdk-node", "ai-sdk-retries", "opencode"],
)
def test_what_frameworks_put_around_a_refusal_changes_nothing_in_it(frame: str) -> None:
    verdict = classify(
        RuntimeError(frame.format("prompt is too long: 210171 tokens > 200000 maximum"))
    )
    assert (verdict.kind, verdict.limit, verdict.requested_input) == (
        "overflow_tokens",
        200_000,
        210_171,
    )
    if "context" not in frame:
        other = classify(RuntimeError(frame.format("temperature must be at most 2")))
        assert other.kind == NOT
