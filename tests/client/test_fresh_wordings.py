"""classify on wordings that were written after its rules.

When they were first measured, before any rule was changed for them, 75 of them gave a precision of
1.00 and a recall of 0.94 (34 of 36). One that is still missed, in German, is not among them.
"""

# ruff: noqa: E501 - an error is quoted on one line, as it came

import pytest

from fetchstash.client import classify
from tests.client.test_wordings import BYTES, NOT, TOKENS, ProviderError

ROWS = [
    (TOKENS, 400, "The request's total tokens (prompt 130,000 + tools 4,100) exceed this deployment's context window of 131,072."),
    (TOKENS, 400, "ValidationException: prompt is too long: 212345 tokens, maximum 200000"),
    (TOKENS, 400, "Model 'qwen3-32b' has a context length of 40960 but the request needs 51233 tokens"),
    (TOKENS, 422, "Prompt exceeds the maximum sequence length supported (32768)"),
    (TOKENS, 400, "litellm.BadRequestError: VertexAIException BadRequestError - Input is too long for requested model."),
    (TOKENS, 400, "[1214] 输入长度超过模型上下文窗口限制"),
    (TOKENS, 400, "messages 参数过长，请精简上下文"),
    (TOKENS, 400, "请求的 token 数量 140000 超出模型支持的最大长度 131072"),
    (TOKENS, 400, "Total number of input tokens exceeds the model limit. Reduce your prompt."),
    (TOKENS, 400, "context_length_exceeded: your prompt has 9,213 tokens"),
    (TOKENS, 413, "Your prompt contains 250000 tokens, which is more than this model's 200000-token context window"),
    (TOKENS, 400, "This request would exceed the context window (used 198,221 of 200,000; needs 12,000 more)"),
    (TOKENS, 400, "The conversation is too long. Please start a new chat."),
    (TOKENS, 400, "Too many input tokens. Max input tokens: 32000, actual: 40321"),
    (TOKENS, 400, "input_tokens must be <= 262144, got 301222"),
    (TOKENS, 400, "Sequence of 70000 tokens does not fit in the KV cache of 65536"),
    (TOKENS, 400, "Error: llama_decode failed: n_tokens (9000) > n_ctx (8192)"),
    (TOKENS, 400, "prompt length exceeds max_position_embeddings"),
    (TOKENS, 400, "Prefill length 140288 exceeds max_num_batched_tokens and chunked prefill is disabled; prompt too long"),
    (TOKENS, 400, "Your messages exceed the model's token budget (limit 64k)"),
    (TOKENS, 400, '{"detail":"Input prompt too long, 8193 > 8192"}'),
    (TOKENS, 400, '{"error":"invalid_request","message":"history too long for model context"}'),
    (TOKENS, None, "stop_reason: model_context_window_exceeded"),
    (TOKENS, 400, "Request contains 1,200,345 tokens; the limit is 1,000,000 tokens per request."),
    (TOKENS, 400, "maximum prompt tokens exceeded"),
    (TOKENS, 400, "トークン数が上限を超えています (入力 140000 / 上限 128000)"),
    (TOKENS, 400, "El mensaje supera la ventana de contexto del modelo (context window exceeded)"),
    (TOKENS, 400, "chat history exceeds the allowed context. Clear some messages."),
    (TOKENS, 500, "exceed_context_size_error"),
    (BYTES, 413, "<html><head><title>413 Request Entity Too Large</title></head>"),
    (BYTES, 413, "Payload Too Large"),
    (BYTES, 400, "Request body exceeds 20 MB"),
    (BYTES, 413, "request body larger than 10485760 bytes"),
    (BYTES, 400, "inline data exceeds the request size limit of 20971520 bytes"),
    (BYTES, None, "http2: request body exceeds configured limit of 4 MiB"),
    (NOT, 429, "You exceeded your current quota, please check your plan and billing details"),
    (NOT, 429, "Rate limit reached for gpt-5 in organization on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000"),
    (NOT, 400, "max_tokens must be less than or equal to 8192"),
    (NOT, 400, "max_output_tokens exceeds the maximum for this model (65536)"),
    (NOT, 400, "Invalid 'tools[0].name': string does not match pattern"),
    (NOT, 400, "tools: at most 128 tools are allowed, got 140"),
    (NOT, 400, "Image too large: 12 MB exceeds the 5 MB limit per image"),
    (NOT, 400, "image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes"),
    (NOT, 400, "The document has 140 pages, the maximum is 100 pages"),
    (NOT, 400, "audio file too long: 31 minutes, maximum 25 minutes"),
    (NOT, 400, "thinking.budget_tokens must be less than max_tokens"),
    (NOT, 400, "messages: text content blocks must be non-empty"),
    (NOT, 400, "tool_use ids were found without tool_result blocks immediately after"),
    (NOT, 400, "schema too deep: nesting exceeds 5 levels"),
    (NOT, 400, "stop: too many stop sequences (max 4)"),
    (NOT, 400, "metadata value too long: at most 512 characters"),
    (NOT, 400, "function name exceeds maximum length of 64"),
    (NOT, 401, "token expired"),
    (NOT, 403, "Your access token has too many scopes"),
    (NOT, 404, "model not found: gpt-99-long-context"),
    (NOT, 500, "Internal server error"),
    (NOT, 503, "The model is overloaded with too many requests"),
    (NOT, 529, "Overloaded"),
    (NOT, 408, "Request timed out after 600 seconds while processing 190000 tokens"),
    (NOT, 400, "logit_bias has too many entries"),
    (NOT, 400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
    (NOT, 400, "cache_control: at most 4 blocks may be cached, found 5"),
    (NOT, 400, "prompt_cache_key is too long: maximum length is 64"),
    (NOT, 400, "user: string too long, max 256"),
    (NOT, 400, "embedding dimension 4096 exceeds the maximum 2048"),
    (NOT, 400, "batch contains 60000 requests, the limit is 50000"),
    (NOT, 402, "insufficient balance"),
    (NOT, 400, "response_format schema exceeds 15000 characters"),
    (NOT, 400, "Number of grounding chunks exceeds limit"),
    (NOT, 400, "temperature must be between 0 and 2"),
    (NOT, None, "finish_reason: length"),
    (NOT, 400, "previous_response_id not found"),
    (NOT, 400, "video too long: 2 hours exceeds 1 hour"),
    (NOT, 400, "The number of toolUse blocks exceeds the limit of 64"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "status", "words"), ROWS, ids=[row[2][:60] for row in ROWS])
def test_a_fresh_wording_gets_its_verdict(kind: str, status: int | None, words: str) -> None:
    assert classify(ProviderError(words, status) if status else words).kind == kind


class ContextWindowExceededError(ProviderError):
    """LiteLLM's class of that name, which it also raises for names that are too long."""


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (TOKENS, ProviderError("Error code: 400 - {'code': 20015, 'message': 'max_total_tokens (172191) must be less than or equal to max_seq_len (131072)', 'data': None}", 400)),
        (TOKENS, {"base_resp": {"status_code": 1039, "status_msg": ""}}),
        (NOT, {"base_resp": {"status_code": 1002, "status_msg": "rate limit triggered"}}),
        (NOT, {"base_resp": {"status_code": 0, "status_msg": "success"}}),
        (TOKENS, ProviderError("Cannot truncate to 8192 tokens", 400)),
        (TOKENS, ProviderError("too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354. Try using a shorter prompt or a smaller max_tokens value.", 400)),
        (TOKENS, ProviderError('{"error":{"code":500,"message":"refused","type":"exceed_context_size_error","n_prompt_tokens":14070,"n_ctx":8192}}', 500)),
        (TOKENS, ProviderError("输入内容超长", 400)),
        (NOT, ContextWindowExceededError("litellm.ContextWindowExceededError: OpenAIException - Invalid 'tools[1].function.description': string too long. Expected a string with maximum length 1024, but got a string with length 1103 instead.", 400)),
        (NOT, ContextWindowExceededError("Github_copilotException - Invalid 'messages[11].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 46 instead.", 400)),
        (TOKENS, ContextWindowExceededError("litellm.ContextWindowExceededError: the request failed", 400)),
        (NOT, ProviderError("The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of previous turn.", 400)),
        (NOT, ProviderError("The decoder prompt contains a(n) image item with length 6042, which exceeds the pre-allocated encoder cache size 4800. Please reduce the input size or increase the encoder cache size by setting --limit-mm-per-prompt at startup.", 400)),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_a_refusal_of_one_provider_gets_its_verdict(kind: str, error: object) -> None:
    assert classify(error).kind == kind


@pytest.mark.parametrize(
    ("words", "limit", "requested_input", "requested_output"),
    [
        ("This model's maximum context length is 4097 tokens. However, your messages resulted in 4238 tokens (4143 in the messages, 95 in the functions).", 4_097, 4_238, None),
        ("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (4143 in the messages, 857 in the functions, 4000 in the completion).", 8_192, 5_000, 4_000),
        ("This endpoint's maximum context length is 128000 tokens. However, you requested about 141000 tokens (100000 of text input, 9000 of tool input, 32000 in the output).", 128_000, 109_000, 32_000),
        ("input tokens (4000) plus prefix tokens (200) must be <= 4096", 4_096, 4_200, None),
        ("max_total_tokens (172191) must be less than or equal to max_seq_len (131072)", 131_072, 172_191, None),
        ('{"error":{"code":400,"message":"refused","type":"exceed_context_size_error","n_prompt_tokens":14070,"n_ctx":8192}}', 8_192, 14_070, None),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_numbers_that_are_stated_in_parts_are_added_up(
    words: str, limit: int, requested_input: int, requested_output: int | None
) -> None:
    verdict = classify(words)
    assert (verdict.limit, verdict.requested_input) == (limit, requested_input)
    assert verdict.requested_output == requested_output


EMPTY = {"message": {"role": "assistant", "content": ""}, "finish_reason": "length"}


@pytest.mark.parametrize(
    ("kind", "action", "answer", "sent"),
    [
        ("truncated_silently", "rewrite", {"choices": [EMPTY], "usage": {"prompt_tokens": 4_096, "completion_tokens": 0}}, None),
        ("truncated_silently", "rewrite", {"message": {"content": ""}, "done_reason": "length", "prompt_eval_count": 4_096, "eval_count": 1}, None),
        ("truncated_silently", "none", {"choices": [{"message": {"content": "Hi"}}], "usage": {"prompt_tokens": 4_096}}, 20_000),
        ("truncated_silently", "none", {"content": [], "usage": {"input_tokens": 90, "cache_read_input_tokens": 4_000}}, 20_000),
        (NOT, "none", {"content": [], "usage": {"input_tokens": 90, "cache_read_input_tokens": 19_000}}, 20_000),
        (NOT, "none", {"choices": [{"message": {"content": "Hi"}}], "usage": {"prompt_tokens": 12_000}}, 20_000),
        (NOT, "none", {"choices": [{"message": {"content": "Hi"}}], "usage": {"prompt_tokens": 12}}, 1_000),
        (NOT, "none", {"choices": [EMPTY], "usage": {"completion_tokens": 4_000}}, None),
        (NOT, "none", {"choices": [EMPTY]}, None),
        (NOT, "none", {"choices": [EMPTY | {"finish_reason": "stop"}], "usage": {"completion_tokens": 0}}, None),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_an_answer_to_a_prompt_that_did_not_fit_has_a_verdict_of_its_own(
    kind: str, action: str, answer: object, sent: int | None
) -> None:
    verdict = classify(answer, sent_tokens=sent)
    assert (verdict.kind, verdict.action) == (kind, action)
    assert not verdict.overflow
