"""classify on wordings that its rules were not written from, each with who says so: providers, servers, gateways and look-alikes."""

# ruff: noqa: E501 - an error is quoted on one line, as it came

import pytest

from fetchstash.client import classify

TOKENS, BYTES, NOT = "overflow_tokens", "overflow_bytes", "not_overflow"

TABLE = [
    (TOKENS, "watsonx.ai", 400, "Invalid input argument for Model 'meta-llama/llama-2-70b-chat': the number of input tokens 4098 cannot exceed the total tokens limit 4096 for this model"),
    (TOKENS, "watsonx.ai, error code", 400, '{"errors":[{"code":"token_quantity_exceeded","message":"input token count is above the limit"}]}'),
    (TOKENS, "vLLM, scheduler", None, "Input prompt (29580 tokens) is too long and exceeds limit of 6144"),
    (TOKENS, "vLLM, issue 12165", None, "ValueError: The prompt (total length 25938) is too long to fit into the model (context length 4096)."),
    (TOKENS, "vLLM", 400, "'max_tokens' or 'max_completion_tokens' is too large: 32768. This model's maximum context length is 32768 tokens and your request has 9021 input tokens (32768 > 32768 - 9021). None"),
    (TOKENS, "TensorRT-LLM backend, issue 141", None, "Cannot process new request: Prompt length (5056) exceeds maximum sequence length (2048)"),
    (TOKENS, "SGLang", 400, "Input length (45678 tokens) exceeds the maximum allowed length (32762 tokens). Use a shorter input or enable --allow-auto-truncate."),
    (TOKENS, "TGI", 422, "Input validation error: `inputs` must have less than 4095 tokens. Given: 10423"),
    (TOKENS, "LM Studio", None, "Reached context length of 4096 tokens with model (arch: qwen2) which does not currently support mid-generation context overflow."),
    (TOKENS, "LMDeploy", 400, "The input length 40000 exceeds session_len 32768"),
    (TOKENS, "MLC-LLM", 400, "Request prompt has 9000 tokens in total, larger than the model capacity 8192."),
    (TOKENS, "Petals", None, "Maximum length exceeded: prefix 0 + current 3000 exceeds pre-allocated maximum 2048"),
    (TOKENS, "caikit-tgis", None, "rpc error: code = InvalidArgument desc = input tokens (4100) plus prefix tokens (0) must be <= 4096"),
    (TOKENS, "llama.cpp, embeddings", 400, "input is too large to process. increase the physical batch size"),
    (TOKENS, "llama.cpp", None, "input is larger than the max context size. skipping"),
    (TOKENS, "Ollama through OpenAI's API", None, "prompt filled the context window"),
    (TOKENS, "pi-ai", None, "Internal error: turn failed: pi-ai detected context overflow"),
    (TOKENS, "SambaNova through LiteLLM", 400, "litellm.BadRequestError: SambanovaException - The maximum context length of DeepSeek-V3-0324 is 32768. However, answering your request will take 39732 tokens. Please reduce the length of the messages or the specified max_completion_tokens value."),
    (TOKENS, "SambaNova", 400, "The maximum context length of Meta-Llama-3.1-405B-Instruct is 8192. However, answering your request will take 31902 tokens. Please reduce the length of the messages."),
    (TOKENS, "Ollama through LiteLLM", 500, "litellm.InternalServerError: Ollama_chatException - {\"error\":\"input length (12034 tokens) exceeds the model's maximum context length (8192 tokens)\"}"),
    (TOKENS, "Ollama through LiteLLM", 500, 'litellm.APIConnectionError: OllamaException - {"error":"the input length exceeds the context length"}'),
    (TOKENS, "Ollama, cloud models", 500, "The prompt is too long: 262960, model maximum context length: 262144"),
    (TOKENS, "DeepSeek's web API behind a gateway", 500, "API Error: 500 internal error: 输入内容超长，请缩短后重试."),
    (TOKENS, "node-llama-cpp", None, "Error: could not find a KV slot for the batch (try reducing the size of the batch or increase the context)"),
    (TOKENS, "node-llama-cpp behind a server", 500, "could not find a KV slot for the batch (try reducing the size of the batch or increase the context)"),
    (BYTES, "Bedrock", 400, "An error occurred (ValidationException) when calling the ConverseStream operation: The maximum document size is 4.5 MB. Reduce the size of your document and retry your request."),
    (BYTES, "Bedrock", 400, "Document too large: maximum size is 4.5 MB"),
    (TOKENS, "Together", 400, "The input sequence length of 40000 is greater than the model's maximum 32768"),
    (TOKENS, "Fireworks", 400, "Prompt tokens + max_tokens must be at most 131072"),
    (TOKENS, "SiliconFlow", 400, '{"code":20015,"message":"length of prompt_tokens (40981) must be less than max_seq_len (32768).","data":null}'),
    (TOKENS, "OCI Generative AI", 400, "{'code': '400', 'message': \"Please provide a prompt that is less than 4000 tokens\"}"),
    (TOKENS, "Kiro", 400, "Improperly formed request: CONTENT_LENGTH_EXCEEDS_THRESHOLD"),
    (TOKENS, "Bedrock", 400, "ValidationException: The input plus maximum output tokens exceeds the context window for this model"),
    (TOKENS, "Snowflake Cortex", 400, "The semantic model you provided is too large, surpassing the LLM context window. Please reduce the size of your semantic model."),
    (TOKENS, "TrueFoundry before OpenRouter", 400, "openrouter error: Provider returned error | metadata: {\"raw\":{\"error\":{\"message\":\"This model's maximum context length is 8192 tokens. However, you requested 8246 tokens (54 in the messages, 8192 in the completion).\"}}}"),
    (TOKENS, "Cloudflare Workers AI", 400, "AiError: Exceeded character limit: prompt has 9000 characters, maximum is 6144"),
    (TOKENS, "claude.ai", None, "Your message will exceed the length limit for this chat. Try attaching fewer or smaller files or starting a new conversation."),
    (TOKENS, "OpenClaw", None, "Model context window is 128k tokens, you requested 256k tokens"),
    (TOKENS, "OpenClaw", None, "LLM request rejected: max_tokens would exceed context window"),
    (TOKENS, "an Anthropic proxy, by OpenClaw", 400, "Request size exceeds model context window"),
    (TOKENS, "Codex, by OpenClaw", None, "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying."),
    (TOKENS, "llama.cpp, by OpenClaw", None, "request (130000 tokens) exceeds available context size (131072 tokens)"),
    (TOKENS, "LiteLLM, its tests", None, "AWS Bedrock Error: The request payload size has exceed context limit."),
    (TOKENS, "agents, their tests", None, "exceeds the model's maximum context"),
    (NOT, "LiteLLM, its tests", None, "The context is large, but acceptable."),
    (NOT, "OpenClaw", None, "ResourceExhausted: Worker local total request limit reached"),
    (NOT, "OpenClaw", None, "LLM request rejected: does not support assistant message prefill"),
    (TOKENS, "gateways", 400, "This model supports at most 1048576 input tokens."),
    (TOKENS, "Tencent", 400, "输入内容长度超出模型最大限制 (32000 tokens)，请缩短输入"),
    (TOKENS, "Chinese proxies, by OpenClaw", 400, "错误：上下文过长，请减少输入"),
    (TOKENS, "Chinese proxies, by OpenClaw", 400, "请压缩上下文后重试"),
    (TOKENS, "Chinese agents", None, "上下文溢出"),
    (TOKENS, "iFlytek Spark 10907", None, "token数量超过上限。对话历史+问题的字数太多，需要精简输入"),
    (TOKENS, "Korean proxies", 400, "입력 토큰 수가 모델의 최대 컨텍스트 길이를 초과했습니다"),
    (BYTES, "follow-redirects, under axios", None, "ERR_FR_MAX_BODY_LENGTH_EXCEEDED"),
    (BYTES, "axios", None, "Request body larger than maxBodyLength limit"),
    (BYTES, "API Gateway", 413, '{"message":"Request Too Long"}'),
    (BYTES, "Lambda", 413, "Request must be smaller than 6291456 bytes for the InvokeFunction operation"),
    (BYTES, "Gemini", 400, "Request payload size exceeds the limit: 104857600 bytes. The file size is too large."),
    (BYTES, "grpc-go", None, "rpc error: code = ResourceExhausted desc = grpc: received message larger than max (5000000 vs. 4194304)"),
    (BYTES, "gRPC through google-api-core", 429, "429 Received message larger than max (5242880 vs. 4194304)"),
    (NOT, "a code beside a rate limit", 400, "input_tokens_exceeded: the limit is 30000 tokens per minute"),
    (BYTES, "Anthropic", 413, "Request exceeds the maximum allowed number of bytes. Total request size is 34 MB, maximum is 32 MB"),
    (BYTES, "IIS", None, "404.13 - Content Length Too Large: maximum content length 30000000"),
    (BYTES, "Chinese gateways", 413, "请求体过大，最大允许 10MB"),
    (NOT, "OpenAI, Batch API", None, "Enqueued token limit reached for gpt-4o in organization. Limit: 90,000 enqueued tokens. Please try again once some in_progress batches have been completed."),
    (NOT, "Bedrock", None, "Too many tokens per day. Please try again tomorrow."),
    (NOT, "Moonshot", 429, "request reached organization TPD rate limit, current: 1506556, limit: 1500000"),
    (TOKENS, "Groq", 413, "Request too large for model `llama3-70b` in organization on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again."),
    (NOT, "Zhipu", None, "触发模型TPM限制，每分钟tokens超过上限"),
    (NOT, "Chinese gateways", 400, "max_tokens 超出范围，最大输出长度为 8192"),
    (NOT, "Chinese gateways", None, "输出长度超限，请降低 max_tokens"),
    (NOT, "billing", None, "402 Payment Required: request token limit exceeded for this billing plan"),
    (NOT, "OpenRouter", 402, "Prompt tokens limit exceeded: 33001 > 12000. To increase, visit settings and upgrade to a paid account"),
    (NOT, "Databricks, SDK issue 1183", 400, "Bad request: rpc error: code = InvalidArgument desc = max_tokens (10000) cannot exceed 8192. Please reduce the length of max output tokens generated."),
    (NOT, "Groq", 400, "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model"),
    (NOT, "Scaleway", 400, "max_completion_tokens is limited for this model: 16384, got 32000"),
    (NOT, "Mistral", 400, "max_tokens: expected a value <= 32768, but got 65536 instead"),
    (NOT, "Anthropic", 400, "messages.0.content: too many images and documents: 121 + 0 > 100"),
    (NOT, "vLLM", 400, "At most 1 image(s) may be provided in one request."),
    (NOT, "Gemini", 400, "Function declarations exceed the maximum of 512"),
    (NOT, "Gemini", 400, "A schema in GenerationConfig in the request exceeds the maximum allowed nesting depth."),
    (NOT, "Gemini", 400, "Thinking budget 40000 exceeds the maximum of 24576 for this model"),
    (NOT, "Anthropic", 400, "The compiled grammar is too large, which would cause performance issues. Simplify your tool schemas or reduce the number of strict tools."),
    (NOT, "TGI, embeddings", 413, "batch size 64 > maximum allowed batch size 32"),
    (NOT, "DashScope, embeddings", 400, "Batch size is invalid, it should not be larger than 10.: input.contents"),
    (NOT, "OpenAI", 400, "Invalid 'messages[2].name': string too long. Expected a string with maximum length 64, but got a string with length 80 instead."),
    (NOT, "OpenAI", 400, "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 52 instead."),
    (NOT, "OpenClaw, a setting", None, "Model context window too small (minimum is 128k tokens)"),
    (NOT, "Ollama", 500, "model requires more system memory (48 GiB) than is available (31 GiB) for the requested context size"),
    (NOT, "vLLM, at its start", None, "The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (40000). Try increasing gpu_memory_utilization or decreasing max_model_len when initializing the engine."),
    (NOT, "Anthropic", 400, 'messages: roles must alternate between "user" and "assistant", but found multiple "user" roles in a row'),
    (NOT, "RFC 6585", 431, "Request Header Fields Too Large"),
    (NOT, "RFC 9110", 414, "Request-URI Too Long"),
    (NOT, "OAuth proxies", 400, "JWT token length exceeds maximum allowed size"),
    (NOT, "nginx", 504, "upstream request timeout after processing 200000 tokens of context"),
    (NOT, "Anthropic behind a retry", 500, "prompt is too long"),
]  # fmt: skip


class ProviderError(Exception):
    """An error with its status, as every SDK raises them."""

    def __init__(self, words: str, status: int) -> None:
        super().__init__(words)
        self.status_code = status


@pytest.mark.parametrize(
    ("kind", "source", "status", "words"),
    TABLE,
    ids=[f"{source}: {words[:50]}" for _, source, _, words in TABLE],
)
def test_an_unseen_wording_gets_its_verdict(
    kind: str, source: str, status: int | None, words: str
) -> None:
    verdict = classify(ProviderError(words, status) if status else words)
    assert verdict.kind == kind, (source, verdict)


@pytest.mark.parametrize(
    ("words", "limit", "requested_input", "requested_output"),
    [
        ("'max_tokens' or 'max_completion_tokens' is too large: 32768. This model's maximum context length is 32768 tokens and your request has 9021 input tokens (32768 > 32768 - 9021). None", 32_768, 9_021, 32_768),
        ("The sum of prompt length (8000), query length (0) max_tokens (1000) should not exceed max_num_tokens (8192)", 8_192, 8_000, 1_000),
        ("the number of input tokens 4098 cannot exceed the total tokens limit 4096 for this model", 4_096, 4_098, None),
        ('{"code":20015,"message":"length of prompt_tokens (40981) must be less than max_seq_len (32768).","data":null}', 32_768, 40_981, None),
        ("1007 Request contains an invalid argument: input tokens exceed the context window of 32768", 32_768, None, None),
        ("code: 336007, msg: the max input characters is 20000", 20_000, None, None),
        ("prepared prompt exceeds Engine max_context 196608", 196_608, None, None),
        ("输入内容长度超出模型最大限制 (32000 tokens)，请缩短输入", 32_000, None, None),
        ("request body exceeded 100 MB", 100 * 2**20, None, None),
        ("Document too large: maximum size is 4.5 MB", 4_718_592, None, None),
        ("The maximum document size is 4.5 MB. Reduce the size of your document and retry your request.", 4_718_592, None, None),
        ("The maximum context length of DeepSeek-V3-0324 is 32768. However, answering your request will take 39732 tokens. Please reduce the length of the messages or the specified max_completion_tokens value.", 32_768, 39_732, None),
    ],
)  # fmt: skip
def test_sizes_are_found_in_other_wordings_and_no_code_is_taken_for_one(
    words: str, limit: int | None, requested_input: int | None, requested_output: int | None
) -> None:
    verdict = classify(words)
    assert (verdict.limit, verdict.requested_input, verdict.requested_output) == (
        limit,
        requested_input,
        requested_output,
    )


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
