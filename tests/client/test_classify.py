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

TOKENS, BYTES, NOT = "overflow_tokens", "overflow_bytes", "not_overflow"
ALL_RULES = (*SERVER_ERRORS, *FIRST, *CODE_WORDINGS, *RULES, EMPTY_400)

WORDINGS = [
    (TOKENS, "The input token count exceeds the maximum number of tokens allowed 1048576."),
    (TOKENS, "Input exceeds the max input token limit"),
    (TOKENS, "ollama: context length exceeded for llama3"),
    (TOKENS, "total tokens exceeds the model's max of 4096"),
    (TOKENS, "input is too long for model gpt-5.4"),
    (
        TOKENS,
        "Context Window exceeded for given call. No models have context window large enough for this call.",
    ),
    (
        TOKENS,
        "This model's maximum context length is 8191 tokens, however you requested 10346 tokens (10346 in your prompt; 0 for the completion). Please reduce your prompt; or completion length.",
    ),
    (TOKENS, "Your input exceeds the model's context window"),
    (
        TOKENS,
        "ValidationException: 400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9279 ",
    ),
    (
        BYTES,
        "Malformed input request: expected maxLength: 50000, actual: 52611, please reformat your input and try again.",
    ),
    (
        TOKENS,
        "Too many tokens: the total number of tokens in the prompt exceeds the limit of 4081.",
    ),
    (
        TOKENS,
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5023",
    ),
    (TOKENS, "Model maximum context length exceeded: 12000 > 8192"),
    (
        TOKENS,
        "the request exceeds the available context size. try increasing the context size or enable context shift",
    ),
    (TOKENS, "prompt is too long: 5000 tokens exceeds model limit 4096"),
    (TOKENS, "Requested tokens (5432) exceed context window of 4096"),
    (TOKENS, "context window exceeds limit (2013)"),
    (TOKENS, "invalid params, context window exceeds limit"),
    (TOKENS, "Input length exceeds context length"),
    (TOKENS, "Prompt exceeds the length limit"),
    (
        TOKENS,
        "inputs tokens + max_new_tokens must be <= 4096. Given: 4000 inputs tokens and 512 max_new_tokens",
    ),
    (TOKENS, "`inputs` must have less than 1024 tokens. Given: 2044"),
    (
        TOKENS,
        "This model's maximum context length is 262144 tokens. However, you requested 0 output tokens and your prompt contains at least 262145 input tokens, for a total of at least 262145 tokens.",
    ),
    (TOKENS, "The prompt size exceeds the context window size and cannot be processed."),
    (TOKENS, "Conversation is too long for the model's context. Start a new chat."),
    (TOKENS, "The conversation has grown too large for this model to process"),
    (TOKENS, "Maximum sequence length exceeded: got 9000, maximum 8192"),
    (TOKENS, "token count 140000 is over the 131072 limit"),
    (TOKENS, "Your request has too many tokens for this model (max 32768)"),
    (TOKENS, "Input too long: 34000 tokens, limit 32768"),
    (TOKENS, "Prompt length 9012 exceeds model context 8192"),
    (
        TOKENS,
        "The total number of tokens (210000) in your request surpasses the limit of the model (200000).",
    ),
    (TOKENS, "Request exceeds token limit for model"),
    (TOKENS, "ModelError: input_tokens 300000 > max_input_tokens 262144"),
    (
        TOKENS,
        "Cannot process request: input of 70000 tokens does not fit into context of 65536 tokens",
    ),
    (TOKENS, "messages too long, please shorten your conversation"),
    (
        TOKENS,
        "The message you submitted was too long, please reload the conversation and submit something shorter.",
    ),
    (TOKENS, "max_prompt_tokens exceeded"),
    (TOKENS, "prompt token count of 141206 exceeds the limit of 128000"),
    (
        TOKENS,
        "litellm.ContextWindowExceededError: litellm.BadRequestError: AnthropicError - prompt is too long",
    ),
    (
        TOKENS,
        "InvalidParameter: Total tokens of image and text exceed max message tokens. Request id: 0217",
    ),
    (TOKENS, "tokens limit exceeded: 12000 of 8000"),
    (TOKENS, "exceeded model token limit"),
    (
        TOKENS,
        "Unable to submit request because the input token count is 2187032 but model only supports up to 1048576. Reduce the input token count and try again.",
    ),
    (
        TOKENS,
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).",
    ),
    (TOKENS, "input_too_long: Your prompt must be at most 32000 tokens"),
    (TOKENS, "Input must have at most 512 tokens, got 1024"),
    (TOKENS, "Sorry, your request is too long for the model's context window."),
    (TOKENS, "输入长度超过模型最大上下文长度限制"),
    (TOKENS, "请求的tokens数量超过了模型上限"),
    (
        TOKENS,
        "You passed 9000 input tokens and requested 1000 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 7192 tokens. Please reduce the length of the input prompt.",
    ),
    (
        TOKENS,
        "The engine prompt length 10000 exceeds the max_model_len 8192. Please reduce prompt.",
    ),
    (TOKENS, "failed to process: out of context window"),
    (TOKENS, "Error: Context size has been exceeded."),
    (TOKENS, "Prompt too long; exceeded max context length by 5 tokens"),
    (TOKENS, "This model can only handle 8192 tokens but got 12000"),
    (BYTES, "total message size 5242881 exceeds limit 4194304"),
    (BYTES, "http: request body too large"),
    (BYTES, "Request size exceeded the limit of 20 MB"),
    (BYTES, "request too large (max 32 MB)"),
    (BYTES, "Received message larger than max (5242880 vs. 4194304)"),
    (BYTES, "PayloadTooLargeError: request entity too large"),
    (BYTES, "413 Request Entity Too Large"),
    (BYTES, "Exceeded maximum allowed payload size: 10485760"),
    (BYTES, "The request body exceeds the maximum size of 10485760 bytes"),
    (BYTES, "Request payload exceeds 6291456 bytes limit"),
    (BYTES, "Body exceeded 1mb limit"),
    (BYTES, "request body size 30 MiB exceeds the 25 MiB limit"),
    (NOT, "max_tokens must be less than or equal to 8192"),
    (NOT, "You exceeded your current quota, please check your plan"),
    (NOT, "This request exceeds the limit of 30000 tokens per minute"),
    (NOT, "Too many tokens per minute"),
    (NOT, "Extra usage is required for long context requests"),
    (NOT, "max_tokens exceeds the model's maximum output tokens 4096"),
    (NOT, "max_completion_tokens is too large: 200000"),
    (NOT, "Invalid value for max_output_tokens: must be between 1 and 65536"),
    (
        NOT,
        "Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 65537 (exclusive).",
    ),
    (NOT, "'messages' array too long"),
    (NOT, "image exceeds 5 MB maximum: 6 MB > 5242880 bytes"),
    (
        NOT,
        "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 5356672 bytes > 5242880 bytes",
    ),
    (NOT, "Tool description too long: 1200 > 1024"),
    (NOT, "The stop sequence list is too long"),
    (NOT, "username is too long (maximum is 39 characters)"),
    (NOT, "Request timed out while processing context"),
    (NOT, "Connection error."),
    (NOT, "Failed to parse tool call arguments as JSON"),
    (NOT, "context canceled"),
    (NOT, "Error: maximum recursion depth exceeded"),
    (NOT, "Maximum call stack size exceeded"),
    (NOT, "Too many requests"),
    (NOT, "tools: too many tools, maximum is 128"),
    (NOT, "The model returned an empty response"),
    (NOT, "Disk quota exceeded"),
    (NOT, "model `gpt-9-long-context` does not exist"),
    (NOT, "missing required parameter: 'messages'"),
    (NOT, "CUDA out of memory. Tried to allocate 2.00 GiB"),
    (NOT, "KV cache is full, request preempted"),
    (NOT, "Invalid schema for function 'x': schema is too large"),
    (NOT, "The server had an error while processing your request"),
    (NOT, "Invalid 'safety_identifier': string too long. Expected a string with maximum length 64"),
    (NOT, "Error: response too long, stopped"),
    (NOT, "temperature exceeds maximum"),
    (
        NOT,
        "Invalid 'input[3].id': string too long. Expected a string with maximum length 64, but got a string with length 90 instead.",
    ),
    (NOT, "tokens per day (TPD): Limit 200000, Used 199000, Requested 3000"),
    (NOT, "Unsupported value: 'reasoning_effort'"),
    (NOT, "The URL is too long"),
    (NOT, "cache_control: a maximum of 4 blocks with cache_control may be provided. Found 5."),
    (NOT, "thinking.budget_tokens: Input should be greater than or equal to 1024"),
    (NOT, "Your account has reached the maximum number of requests"),
    (
        NOT,
        "The cached content is of 1000 tokens. The minimum token count to start caching is 4096.",
    ),
    (NOT, "Function name too long, maximum length is 64"),
    (NOT, "Prompt was blocked due to safety"),
    (NOT, "session token expired"),
    (NOT, "invalid token: jwt exceeds max age"),
    (NOT, "Your authentication token has exceeded its lifetime limit"),
    (TOKENS, "model_max_prompt_tokens_exceeded"),
    (TOKENS, "prompt token count of 141206 exceeds the limit of 128000"),
    (TOKENS, "Prompt tokens (40000) exceeds context size (32768)"),
    (TOKENS, "Token limit exceeded: 43000 > 8192"),
    (TOKENS, "prompt + max_tokens exceeds context window"),
    (TOKENS, "Prompt 超长"),
    (TOKENS, "Input length (265330) exceeds model's maximum context length (262144)."),
    (TOKENS, "CONTEXT_WINDOW_EXCEEDED"),
    (TOKENS, "token limit exceeded for this model"),
    (TOKENS, "too many tokens in the request"),
    (TOKENS, "上下文长度超限"),
    (
        TOKENS,
        "This request would exceed the model's context window; shorten the conversation or pick a model with a larger one.",
    ),
    (TOKENS, "Conversation history exceeds 200k tokens"),
    (TOKENS, "The request has 250000 tokens, which is more than the 200000 this model accepts."),
    (TOKENS, "Input exceeds model context (allowed: 131072, got: 140221)"),
    (
        TOKENS,
        "context_window_overflow: request needs 210,442 tokens but only 200,000 are available",
    ),
    (TOKENS, "Requested 140221 tokens, but this model only has a context of 131072"),
    (
        TOKENS,
        "Error code: 400 - {'error': {'message': 'Prompt contains 70000 tokens and 0 draft tokens, too large for model with 65536 maximum context length', 'type': 'invalid_request_error'}}",
    ),
    (
        TOKENS,
        "Total tokens (prompt + completion) would exceed the maximum of 32768 for this deployment",
    ),
    (TOKENS, "the input is larger than the model supports (max 8192 tokens)"),
    (TOKENS, "sequence length 9000 is longer than the maximum sequence length 8192 for this model"),
    (TOKENS, "Your messages are too long for gpt-4. Please shorten them."),
    (TOKENS, "No room left for output: prompt uses 8200 of 8192 tokens"),
    (BYTES, "Request body exceeded maximum allowed size (10MB)"),
    (BYTES, "POST body larger than 4194304 bytes"),
    (BYTES, "413 Payload Too Large: request exceeds 32 MB"),
    (BYTES, "FUNCTION_PAYLOAD_TOO_LARGE"),
    (BYTES, "request entity is larger than limits defined by server"),
    (BYTES, "Content length 12000000 exceeds the limit of 10485760 bytes"),
    (BYTES, "The size of the request (21 MB) is above the maximum of 20 MB"),
    (NOT, "quota exceeded for this plan"),
    (NOT, "请求频率过高，已限流"),
    (NOT, "账户余额不足，请充值"),
    (NOT, "额度不足"),
    (NOT, "请求次数超过上限"),
    (NOT, "max_tokens exceeds the limit of 8192"),
    (NOT, "invalid max_tokens: must be greater than 0"),
    (NOT, "max_tokens: Field required"),
    (NOT, "You have exceeded your monthly token allowance"),
    (NOT, "Daily token limit reached for your organization"),
    (NOT, "TPM limit exceeded, current 210000, limit 200000"),
    (NOT, "Too many concurrent requests for this model"),
    (NOT, "Input image is too large"),
    (NOT, "Audio input too long: maximum 25 MB"),
    (NOT, "Batch too large: maximum of 100 inputs"),
    (NOT, "Tool schema exceeds maximum depth"),
    (NOT, "tool name exceeds 64 characters"),
    (NOT, "Too many stop sequences"),
    (NOT, "The response was truncated because max_output_tokens was reached"),
    (NOT, "Max retries exceeded with url: /v1/chat/completions"),
    (NOT, "maximum number of tool calls exceeded"),
    (NOT, "maximum context caching TTL is 3600"),
    (NOT, "File too large: 31 MB exceeds the 30 MB limit for PDF uploads"),
    (NOT, "system prompt must be a string"),
    (NOT, "Prompt flagged by moderation"),
    (NOT, "number of completions n exceeds the maximum of 8"),
    (NOT, "top_k exceeds the maximum"),
    (NOT, "Your credit balance is too low to access the API"),
    (NOT, "input validation error: input must be a non-empty string"),
    (NOT, "context canceled by client"),
    (NOT, "session context not found"),
    (NOT, "service unavailable: model is loading"),
    (NOT, "output exceeds maximum length and was stopped"),
    (NOT, "reasoning_effort and context_management cannot be combined"),
    (NOT, "The number of images exceeds the limit of 20"),
    (NOT, "embedding dimension too large"),
    (NOT, "The length of `stop` must be less than 4"),
    (NOT, "rate limited: too many input tokens this minute"),
    (TOKENS, "Input is too large: 145,332 tokens. This deployment accepts at most 131,072 tokens."),
    (TOKENS, "Request too large for model context: please start a new conversation"),
    (TOKENS, "Number of tokens in prompt (33000) exceeds 32768"),
    (TOKENS, "The prompt is longer than the model can process"),
    (TOKENS, "The total length of the input and max_tokens must not exceed 32768"),
    (TOKENS, "Prompt exceeds maximum of 200k tokens"),
    (TOKENS, "Failed: n_prompt 9012 > n_ctx 8192"),
    (
        TOKENS,
        "Requested generation length exceeds the context: 7000 prompt tokens + 2000 max new tokens > 8192",
    ),
    (TOKENS, "your request is over the context limit by 3021 tokens"),
    (TOKENS, "message history too long"),
    (TOKENS, "ContextWindowExceededError: the model's context window was exceeded"),
    (TOKENS, "BadRequestError: input tokens (210000) > max input tokens (200000)"),
    (TOKENS, "Please shorten your prompt"),
    (TOKENS, "Unable to process: the conversation no longer fits in the model's memory"),
    (TOKENS, "This model supports at most 32768 tokens, but 40000 tokens were given"),
    (TOKENS, "llm error: context full"),
    (TOKENS, "Contents have too many tokens: 1050000, limit 1048576"),
    (TOKENS, "input is too long for this endpoint"),
    (TOKENS, "exceeds maximum token count"),
    (TOKENS, "Text is too long: 40000 tokens; maximum allowed: 32000"),
    (TOKENS, "トークン数が上限を超えています: 入力が長すぎます"),
    (TOKENS, "The maximum number of input tokens for this model is 8192, you sent 10000"),
    (TOKENS, "Token count of the request exceeds the model's limit"),
    (TOKENS, "context budget exhausted: prompt needs 20000 tokens"),
    (BYTES, "Payload size 12582912 exceeds max 10485760"),
    (BYTES, "Request exceeds maximum size of 30MB"),
    (BYTES, "Client payload too large"),
    (BYTES, "Received request body of 8.2 MB; the limit is 6 MB"),
    (BYTES, "gRPC: resource exhausted: message length 5000000 exceeds maximum 4194304"),
    (BYTES, "Request Entity Too Large. Maximum is 1 MB."),
    (NOT, "Request timed out after 600 s"),
    (NOT, "The upstream model returned an error"),
    (NOT, "tool_choice: tool 'x' not found in tools"),
    (NOT, "max_output_tokens must be at least 16"),
    (NOT, "max_tokens (40000) exceeds maximum output tokens (32000) for this model"),
    (NOT, "Invalid request: n must be 1"),
    (NOT, "JSON too deeply nested"),
    (NOT, "too many messages in queue"),
    (NOT, "Model overloaded, too many tokens in flight"),
    (NOT, "This organization has been disabled"),
    (NOT, "Unexpected end of JSON input"),
    (NOT, "unexpected token < in JSON at position 0"),
    (NOT, "Invalid token: expected Bearer"),
    (NOT, "Your plan allows 5 requests"),
    (NOT, "response_format schema too large"),
    (NOT, "Function arguments too long"),
    (NOT, "Username or password incorrect"),
    (NOT, "429 Too Many Requests: token bucket exhausted"),
    (NOT, "messages.3: role 'tool' must follow a message with tool_calls"),
    (NOT, "The description field is too long (max 1024 characters)"),
    (NOT, "File name too long"),
    (NOT, "OSError: [Errno 36] File name too long"),
    (NOT, "argument list too long"),
    (NOT, "Image exceeds the maximum size of 20 MB"),
    (NOT, "the server closed the connection because the response exceeded the limit"),
    (NOT, "Prompt caching requires at least 1024 tokens"),
    (NOT, "image input tokens not supported"),
    (TOKENS, "Error in request: prompt tokens 45000 greater than max 40960"),
    (TOKENS, "Context limit reached. Start a new session or compact."),
    (
        TOKENS,
        "The request was rejected because it contains more tokens than the model's window allows",
    ),
    (TOKENS, "max_seq_len exceeded (got 5000, max 4096)"),
    (TOKENS, "Oversized prompt: 150000 tokens"),
    (TOKENS, "maximum tokens for this model is 4096, but request has 5000"),
    (TOKENS, "invalid_request: input exceeds the 128k token window"),
    (TOKENS, "Inference failed: KV cache full, prompt longer than cache (8192)"),
    (TOKENS, "The combined length of the prompt and the completion exceeds the model's limit"),
    (TOKENS, "You've hit the context limit for this model"),
    (TOKENS, "token limit exceeded (max: 32000, actual: 45123)"),
    (TOKENS, "Requested tokens exceed limit. Requested 70000, limit 65536."),
    (TOKENS, "Provider error: prompt_tokens must be <= 100000"),
    (TOKENS, "the model's input window of 32k was exceeded"),
    (TOKENS, "Total number of input tokens exceeds the allowed maximum"),
    (BYTES, "Request rejected: body of 15 MiB is larger than the allowed 10 MiB"),
    (BYTES, "Error: request size limit exceeded"),
    (BYTES, "HTTP 413: Content Too Large"),
    (BYTES, "payload exceeds 10 MB"),
    (BYTES, "The HTTP request body is too big"),
    (NOT, "Rate limited: 100000 input tokens per minute"),
    (NOT, "Billing hard limit has been reached"),
    (NOT, "Unknown model: gpt-4-long"),
    (NOT, "Could not parse tool arguments: too long"),
    (NOT, "max_tokens must be between 1 and 4096"),
    (NOT, "The maximum output tokens for this model is 8192"),
    (NOT, "insufficient_quota: you have used all tokens"),
    (NOT, "model does not support context caching"),
    (NOT, "Too many requests in flight; slow down"),
    (NOT, "invalid role 'function' in messages"),
    (NOT, "prompt must not be empty"),
    (NOT, "Internal server error"),
    (NOT, "Bad gateway"),
    (NOT, "Missing tool result for call abc"),
    (NOT, "usage limit exceeded for today"),
    (NOT, "Your API token has exceeded its usage"),
    (NOT, "stream ended before message_stop"),
    (NOT, "The image is 30 MB, which exceeds the limit"),
    (NOT, "safety system blocked this prompt"),
    (NOT, "Timeout: model took too long to respond"),
]


class ProviderError(Exception):
    """An error as SDKs raise them: the status and the body as attributes."""

    def __init__(
        self, message: str, status_code: int | None = None, body: Any = None, code: Any = None
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.body = body
        self.code = code


@pytest.mark.parametrize(
    ("kind", "wording"), WORDINGS, ids=[wording[:60] for _, wording in WORDINGS]
)
def test_a_wording_gets_its_verdict(kind: str, wording: str) -> None:
    assert classify(wording).kind == kind


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


@pytest.mark.parametrize(
    ("wording", "limit", "requested_input", "requested_output"),
    [
        ("prompt is too long: 233153 tokens > 200000 maximum", 200_000, 233_153, None),
        ("Your request exceeded model token limit: 262144 (requested: 291351)", 262_144, 291_351, None),
        ("Invalid request: total message size 4512345 exceeds limit 4194304", 4_194_304, 4_512_345, None),
        ("maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the completion).", 8192, 8000, 1000),
        ("input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000", 200_000, 178_959, 64_000),
        ("request body size 30 MiB exceeds the 25 MiB limit", 25 * 2**20, 30 * 2**20, None),
        ("too many tokens: size limit exceeded by 1000 tokens. The limit for this model is 132000 tokens.", 132_000, 133_000, None),
        ("invalid params, context window exceeds limit (2013)", None, None, None),
        ("Your input exceeds the context window of this model.", None, None, None),
    ],
)  # fmt: skip
def test_limits_and_requested_sizes_are_parsed_where_they_stand(
    wording: str, limit: int | None, requested_input: int | None, requested_output: int | None
) -> None:
    verdict = classify(wording)
    assert (verdict.limit, verdict.requested_input, verdict.requested_output) == (
        limit,
        requested_input,
        requested_output,
    )


def test_an_output_dominant_overflow_wants_its_output_clamped_and_no_rewrite() -> None:
    wording = "This model's maximum context length is 8192 tokens. However, you requested 8192 tokens (58 in the messages, 8134 in the completion)"
    assert classify(wording).action == "clamp_output"
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
    None,
    "",
    b"",
    0,
    -1,
    3.5,
    True,
    [],
    {},
    (),
    pytest.param(object(), id="an object"),
    {"error": None},
    [[[1]]],
    {1: {2: 3}},
    float("nan"),
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


def test_a_500_that_mentions_overflow_is_not_overflow() -> None:
    assert (
        classify(ProviderError("internal error computing context length exceeded", 500)).kind == NOT
    )
    assert classify(ProviderError("maximum context length is 8192 tokens", 503)).kind == NOT


def test_a_500_whose_server_reports_overflows_so_has_a_rule_of_its_own() -> None:
    verdict = classify(ProviderError("Context size has been exceeded.", 500))
    assert (verdict.kind, verdict.rule_id) == (TOKENS, "llama-cpp-context-shift")


def test_a_413_is_bytes_unless_it_states_a_token_window_or_a_rate_limit() -> None:
    assert classify(ProviderError("", 413)).kind == BYTES
    assert (
        classify(ProviderError("<html><h1>413 Request Entity Too Large</h1>nginx</html>", 413)).kind
        == BYTES
    )
    assert (
        classify(
            ProviderError(
                "The number of tokens (35000) exceeded this model context window limit (24000)", 413
            )
        ).kind
        == TOKENS
    )
    assert classify(ProviderError("Rate limit reached on tokens per minute", 413)).kind == NOT


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


def test_quoted_content_is_no_sign_of_an_error() -> None:
    answer = {
        "choices": [
            {
                "finish_reason": "stop",
                "message": {"content": "Your prompt is too long: maximum context length is 8192"},
            }
        ]
    }
    assert classify(answer).kind == NOT
    assert (
        classify({"type": "response.output_text.delta", "delta": "context_length_exceeded"}).kind
        == NOT
    )


def test_finish_reasons_and_stream_events_are_read() -> None:
    assert (
        classify(
            {"type": "message_delta", "delta": {}, "stop_reason": "model_context_window_exceeded"}
        ).kind
        == TOKENS
    )
    failed = {
        "type": "response.failed",
        "response": {
            "status": "failed",
            "error": {"code": "context_length_exceeded", "message": "x"},
        },
    }
    assert classify(failed).kind == TOKENS
    assert classify("model_context_window_exceeded").kind == TOKENS


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
