"""The table of wordings by which an overflow is told from all else, in the order in which it is read: the first that fits decides.

Rules are written for the grammar of such sentences (what is too large, for which limit) rather than
for one provider's sentence: providers reword them often. Each has a source, and an example that the
tests run.
"""

# ruff: noqa: E501, RUF001 - a pattern reads better whole; examples are quoted as they came

from fetchstash.client._numbers import MEDIA as _MEDIA
from fetchstash.client._rules import Rule

# The nouns of these sentences. Gaps are bounded, so that no pattern costs more than linear time on
# a long text.
_WINDOW = r"(?:context[ _-]?(?:window|length|size|limit|budget|capacity)s?|(?:input|token|attention) window|n_ctx|max_model_len|max_seq_len|max_position_embeddings|(?:sequence|model) length)"
_INPUT = (
    r"(?:prompts?|inputs?|messages?|conversation|chat history|history|requests?|contexts?|documents?|(?:input |prompt )?sequence|"
    r"(?:input|prompt|total|request(?:ed)?) tokens?(?: count)?|tokens? count|(?:number|sum|amount|count|total) of (?:\w+ ){0,3}tokens|tokens)"
)
_OVER = (
    r"(?:exceed\w*|surpass\w*|overflow\w*|over the|(?:longer|larger|greater|bigger|more|higher) than|beyond|above|"
    r"too (?:long|large|big|many)|(?:(?:do|does|did|will)(?: not|n't)|won't|can't|cannot) fit|no longer fits?|outgr(?:own|ows|ew)|(?:run |ran )?out of|past the|fill(?:s|ed)?(?: up)?)"
)
_LIMIT = (
    rf"(?:{_WINDOW}|(?:max(?:imum)?|allowed|permitted|configured|supported|model'?s?)[ \w'`_-]{{0,30}}"
    r"(?:tokens?|length|input|prompt|context|capacity|maximum \d[\d,]*)|tokens? (?:limit|maximum|capacity)|(?:input|prompt|length) limit)"
)
# The place that OpenAI quotes for a content, not for a name or an id.
_CONTENT = r"(?:messages|input|contents|prompt|instructions|system)(?:\[\d+\])?(?:\.[^']*?\b(?:content|text|output|arguments|parts)\b[^']*)?'"
# Other things that can be too long or too many, without a word about the conversation.
_OTHERS = (
    r"(?:images?|pictures?|audio|videos?|files?|attachments?|uploads?|pdfs?|pages?|tools?|functions?|schemas?|grammar|headers?|urls?|uris?|names?|descriptions?|"
    r"passwords?|batch(?:es)?|stack|recursion|redirects?|retries|stop sequences?|enums?|enum values|properties|keys?|ids?|arrays?|labels?|embeddings?|dimensions?|"
    r"depth|nesting|iterations|choices|states|thinking budget|declarations)"
)
_STATED_TOKENS = r"\d tokens\b"

SERVER_ERRORS = (
    Rule(
        "llama-cpp-context-size",
        "overflow_tokens",
        r"exceed_context_size_error|request (?:\(\d+ tokens\) )?exceeds the available context size",
        "llama.cpp before its pull request 16486, and ik_llama.cpp before 2420: sent as 500",
        "the request exceeds the available context size. try increasing the context size or enable context shift",
    ),
    Rule(
        "llama-cpp-context-shift",
        "overflow_tokens",
        r"^(?:.*\s)?context size has been exceeded",
        "llama.cpp, tools/server: sent as a server error when the slot is full and context shift is off",
        "Context size has been exceeded.",
    ),
    Rule(
        "ollama-context-length",
        "overflow_tokens",
        r"\binput (?:length )?(?:\(\d+ tokens\) |after truncation )?exceeds (?:the )?(?:model's )?(?:maximum )?context length|"
        r"prompt is too long: \d+, model maximum context length",
        "ollama, server/routes.go and its runner: sent as 500, also behind LiteLLM (ollama issue 2208)",
        "the input length exceeds the context length",
    ),
    Rule(
        "kv-slot",
        "overflow_tokens",
        r"(?:find|found) a(?:ny)? kv slot for the batch",
        "llama.cpp, llama_decode returns 1; node-llama-cpp, issues 136 and 190",
        "could not find a KV slot for the batch (try reducing the size of the batch or increase the context)",
    ),
    Rule(
        "gateway-many-images",
        "overflow_media",
        r"too many images in the message",
        "new-api, whose own bound on pictures is sent as 500 (its issue 1233)",
        "too many images in the message, max allowed is 16",
    ),
    Rule(
        "chinese-input",
        "overflow_tokens",
        r"输入内容(?:超长|过长)",
        "DeepSeek's web API behind gateways, sent as 500 (ds-free-api, issue 36)",
        "internal error: 输入内容超长，请缩短后重试",
    ),
)
"""The few servers that report an overflow as a 5xx: each needs its own rule. Others use the same words with a 4xx."""

RELAYED = (
    Rule(
        "relayed-refusal",
        "overflow_tokens",
        r"\b(?:your )?input exceeds the context window of this model|\bprompt is too long: \d+ tokens > \d+|"
        r"maximum context length is \d+ tokens\W+(?:however|please|you requested)",
        "whole sentences of OpenAI, Anthropic and vLLM, whose 400 a gateway passes on as its own 502 (Bad Gateway: RFC 9110, section 15.6.3)",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
)
"""What a provider said to a gateway that answers 502 in its place."""

FIRST = (
    Rule(
        "name-too-long",
        "not_overflow",
        rf"invalid '(?!{_CONTENT})[^'\n]{{1,80}}': string too long",
        "OpenAI string_above_max_length, which LiteLLM raises as ContextWindowExceededError (its issues 4735 and 17343)",
        "Invalid 'tools[1].function.description': string too long. Expected a string with maximum length 1024, but got a string with length 1103 instead.",
    ),
    Rule(
        "grpc-message",
        "overflow_bytes",
        r"(?:sent|received) message larger than max|message larger than max \(",
        "gRPC: RESOURCE_EXHAUSTED, which google-api-core makes a 429 of",
        "429 Received message larger than max (5242880 vs. 4194304)",
    ),
    Rule(
        "gate-long-context",
        "overflow_tokens",
        r"extra usage is required for long context",
        "Anthropic, with a subscription: sent as 429 for a prompt over 200,000 tokens, and no waiting helps",
        "Extra usage is required for long context requests.",
    ),
    Rule(
        "gate-plan-window",
        "overflow_tokens",
        r"this model supports only \d+ ?[km] context",
        "Kimi, with a plan of less context: sent as 401",
        "This model supports only 256K context.",
    ),
    Rule(
        "gate-prompt-limit",
        "overflow_tokens",
        r"prompt tokens limit exceeded: \d+ > \d+",
        "OpenRouter, with a balance that pays for a shorter prompt: sent as 402",
        "Prompt tokens limit exceeded: 329159 > 168823. To increase, visit https://openrouter.ai/settings/keys",
    ),
)
"""Read before statuses and codes: a transport has one code for a large message and for a quota, a library one class for many refusals."""

WORDINGS = (
    # Rate limits and money: both count tokens, too.
    Rule(
        "rate-limit",
        "not_overflow",
        r"rate[ _-]?limit|too many requests|throttl|(?:tokens?|requests?)(?: limit)?(?: exceeded)? ?(?:per|/|a) ?(?:min|minute|hour|day|sec|month)|"
        r"per[ -](?:minute|day|hour|second|month)|enqueued|\b(?:tpm|rpm|tpd|rpd|itpm|otpm|tps)\b|"
        r"please (?:wait|slow down)|wait before|try again (?:in|after|later)\b|retry[ -]after|retry in \d|request rate|concurren|频率|限流|速率|次数|并发|繁忙|余额|额度|配额|套餐|充值|欠费|每分钟|稍后",
        "every provider's 429, and gateways that send it with another status",
        "Too many tokens, please wait before trying again.",
    ),
    Rule(
        "quota-or-billing",
        "not_overflow",
        r"\bquotas?\b|billing|\bcredits?\b|balance|spending|can only afford|usage limit|upgrade (?:your|to)|subscription|notenoughcv|"
        r"token usage\b|\b(?:daily|hourly|weekly|monthly|annual)\b|\bpayment\b|insufficient(?! (?:context|room|space|window))|trial key|free tier",
        "OpenRouter 402, xAI, Venice, iFlytek",
        "This request requires more credits, or fewer max_tokens. You requested up to 131072 tokens, but can only afford 54095.",
    ),
    Rule(
        "overloaded",
        "not_overflow",
        r"overloaded|out of capacity|capacity exceeded|temporarily unavailable|deadline exceeded|timed? ?out|server (?:is )?busy",
        "Anthropic 529, Vertex, Mistral",
        "The engine is currently overloaded",
    ),
    # Media, of which old ones can be taken out.
    Rule(
        "media-duration",
        "not_overflow",
        r"\b(?:audio|video)\b.{0,30}\b(?:too long|too large|\d+ (?:minutes|hours?|seconds))|for pdf uploads",
        "recordings are limited by their length, which no other request changes; uploads are no conversation",
        "audio file too long: 31 minutes, maximum 25 minutes",
    ),
    Rule(
        "media-count",
        "overflow_media",
        rf"\btoo (?:many|much) (?:\w+ ){{0,2}}{_MEDIA}|\bzu viele {_MEDIA}|"
        rf"\b(?:number|count|total|amount) of (?:\w+ ){{0,3}}{_MEDIA}\b.{{0,60}}(?:exceed|over|more|greater|larger|above|limit|>)|"
        rf"{_MEDIA}(?: items?)? count\b.{{0,20}}(?:exceed|over|\d[^\n]{{0,12}}(?:>|limit|max))|"
        rf"\b\d[\d,]* (?:\w+ ){{0,2}}{_MEDIA}\b.{{0,80}}(?:exceed\w*|maximum|\bmax\b|limit|the most\b|no more than|at most|up to|allowed|\bonly\b|more than)|"
        rf"\b(?:at most|up to|no more than|more than|maximum(?: of| is)?|max(?: of)?|only|fewer than|limit of|limited to) \d[\d,]* (?:\w+ ){{0,2}}{_MEDIA}|"
        rf"{_MEDIA}(?:\(s\))?(?: \w+)? ?(?:items?|inputs?)?:? \d+ (?:given|sent|provided|passed).{{0,20}}\d+ (?:allowed|max)|"
        rf"{_MEDIA} (?:budget|limit|allowance|cap) (?:is |was )?(?:exceeded|reached|exhausted)|"
        rf"\bexceed\w* (?:the )?(?:limit|max\w*) (?:on|of|for) (?:max )?(?:\w+ ){{0,2}}{_MEDIA}|"
        rf"\b(?:maximum|max|allowed) (?:number|count|amount) of (?:\w+ ){{0,2}}{_MEDIA}|"
        rf"{_MEDIA}\b.{{0,30}}(?:limited to|at most|maximum of) \d+ |limit-mm-per-prompt.{{0,40}}but passed \d+|"
        r"(?:图片|图像|文档|页)[^\n]{0,10}(?:超过|超出|过多|最多|上限)",
        "Anthropic, Bedrock, OpenAI, Gemini, vLLM, Copilot, gateways (claude-code issue 24541, vscode 303825, vllm 13513, opencode 47721, NarratoAI 33)",
        "too many images and documents: 104 + 1 > 100",
        unless=r"knowledge|\bindex\b|encoder cache|\d tokens\b|too small|at least|minimum|\buploads?\b",
    ),
    Rule(
        "media-size",
        "overflow_media",
        r"\b(?:neither|no|each|either) (?:side|edge|dimension)\b.{0,30}\b(?:longer|larger|more|greater) than \d|"
        r"\b(?:images?|pictures?|screenshots?|photos?)\b(?: \w+)?(?:,? (?!tokens?)\S{1,40}){0,6}? (?:exceeds?|is over|(?:is |are )?(?:larger|bigger|wider|taller) than|(?:is |are )?too (?:large|big)|(?:must|should|may) (?:be|have|weigh|measure) (?:under|below|at most|within|less|smaller|\d))|"
        r"\b(?:image|picture|screenshot) (?:base64 )?(?:size|dimensions?|resolution)\b.{0,60}(?:exceed|over|larger|limit|max)|"
        r"\bpictures? (?:\d+ )?(?:is|are) \d.{0,60}at most|\b(?:multi-?modal|media) (?:file |input |item )?size\b.{0,60}(?:too|exceed|over|larger|limit|max)",
        "Anthropic, Bedrock, OpenAI, gateways (claude-code issues 49537 and 11564)",
        "messages.41.content.0.image.source: image dimensions exceed max allowed size for many-image requests: 2000 pixels",
        unless=r"must be (?:larger|greater|bigger|wider|taller)|encoder cache|input tokens|tokens of|\d tokens\b|generat|too small|minimum|\buploads?\b",
    ),
    Rule(
        "server-start",
        "not_overflow",
        r"user-specified max_model_len|max seq len \(\d+\) is larger than the maximum number of tokens that can be stored|max_num_batched_tokens \(\d+\) is smaller than max_model_len",
        "vLLM at its start: its own options contradict each other",
        "User-specified max_model_len (204800) is greater than the derived max_model_len (202752)",
    ),
    # The prompt and the answer together; the answer alone is no overflow.
    Rule(
        "sum-over-window",
        "overflow_tokens",
        rf"\b(?:inputs?|prompt|messages)\b.{{0,50}}(?:\+|and|plus).{{0,30}}(?:max_\w*tokens|output|completion).{{0,60}}"
        rf"(?:{_OVER}|(?:must|should|cannot|can't|may)(?: not)? (?:be )?(?:exceed|<|≤|at most|less|fewer|smaller|within|under|up to|larger|greater|more)|<=)",
        "Anthropic, TGI, Together, Cloudflare",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 6204 `inputs` tokens and 2047 `max_new_tokens`",
    ),
    Rule(
        "total-over-window",
        "overflow_tokens",
        r"max_total_tokens\b[^\n]{0,20}\b(?:must|should|cannot|exceed)|\(prompt and prediction\) (?:cannot|must not|may not) exceed",
        "SiliconFlow 20015 (deer-flow issue 376); Cohere's Generate API (cohere-ai/sandbox-topically issue 4)",
        "max_total_tokens (172191) must be less than or equal to max_seq_len (131072)",
    ),
    Rule(
        "negative-room",
        "overflow_tokens",
        r"max_(?:completion_|new_|output_)?tokens must be at least 1, got -\d",
        "vLLM: what is left for the answer after the prompt is negative",
        "max_tokens must be at least 1, got -43420",
    ),
    Rule(
        "request-will-take",
        "overflow_tokens",
        r"maximum context length of .{1,80}? is \d[\d,]*\W.{0,40}\brequest will take \d",
        "SambaNova through LiteLLM, whose advice names max_completion_tokens (OpenHands issue 9227)",
        "The maximum context length of DeepSeek-V3-0324 is 32768. However, answering your request will take 39732 tokens. Please reduce the length of the messages or the specified max_completion_tokens value.",
    ),
    Rule(
        "document-size",
        "overflow_bytes",
        r"\bdocuments?(?: is| are)? too large\b.{0,40}\d ?[kmg]i?b\b|max(?:imum)? document size is \d",
        "Bedrock, Converse: 4.5 MB for each document (Boise-State-Development/agentcore-public-stack issue 206)",
        "The maximum document size is 4.5 MB. Reduce the size of your document and retry your request.",
    ),
    Rule(
        "output-parameter",
        "not_overflow",
        r"\b(?:thinking|reasoning) budget\b|"
        r"max_(?:completion_|output_|new_)?tokens`? (?:is too large|must be (?:greater|less than or equal|at (?:most|least 1, got [0-9]))|value)|"
        r"max tokens must be|range of max_(?:output_|completion_)?tokens|invalid max_(?:\w+_)?tokens|(?<!input and )maximum (?:allowed )?(?:number of )?output tokens|"
        r"maximum tokens you requested|maximum output length|completion tokens, whereas|at most \d+ (?:completion|output) tokens|"
        r"max_(?:completion_|output_)?tokens: \d+ (?:>|is (?:larger|greater|more|above))|"
        r"(?<!\+ )(?<!and )(?<!plus )max_(?:completion_|output_|new_)?tokens['`\"]?(?: \(?\d+\)?)? (?:parameter |value )?(?:exceeds|is (?:more|greater|larger|higher) than|cannot exceed|must be (?!<)|must not|should be|is not supported|is limited|can't be)|"
        r"(?:output|completion) tokens? (?:limit|maximum) (?:for|of) th(?:is|e) model|unsupported parameter|"
        r"max_?output_?tokens\b.{0,60}(?:range|supported|between)|budget_tokens|max_tokens[^\n]{0,8}(?:超出|超过|范围|无效|不合法)|最大输出|输出(?:长度|tokens?)[^\n]{0,6}(?:超|过长)",
        "Anthropic, OpenAI, Cohere, DeepSeek, DashScope, Bedrock: a wrong max_tokens, whatever the prompt is",
        "max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5-20250929",
    ),
    Rule(
        "output-truncated",
        "not_overflow",
        r"output token maximum|length limit was reached|response exceeded|(?:output|completion|response) (?:was )?truncated|"
        r"could not finish the message because max_tokens|incomplete.{0,20}max_output_tokens",
        "OpenAI SDK LengthFinishReasonError, Claude Code",
        "API Error: Claude's response exceeded the 32000 output token maximum.",
    ),
    # Of a body or a context window by that name: nothing else is told so. A body is not measured in
    # tokens.
    Rule(
        "message-size",
        "overflow_bytes",
        r"total message size\b.{0,40}exceed\w* (?:the )?limit",
        "Moonshot; one of the two wordings that started this project",
        "Invalid request: total message size 4512345 exceeds limit 4194304",
        unless=_STATED_TOKENS,
    ),
    Rule(
        "body-size",
        "overflow_bytes",
        r"(?:payload|body|entity|http request|content[- ]length|request|message)(?: \w+){0,2} ?(?:size|length)?\b.{0,40}"
        r"(?:exceed|too large|(?:larger|bigger|greater|more) than|over the|above|limit).{0,80}(?:\bbytes?\b|\b[kmg]i?b\b)|"
        r"\b(?:json|body|payload|request|message)\b.{0,20}\bis \d+(?:\.\d+)? ?[kmg]i?b\b.{0,30}\b(?:accept|allow|limit|max|up to)",
        "Gemini, Azure, gRPC, gateways",
        "Request payload size exceeds the limit: 20971520 bytes.",
        unless=rf"{_STATED_TOKENS}|\b(?:image|picture|screenshot)s? (?:payload|body|data|size)\b",
    ),
    Rule(
        "model-token-limit",
        "overflow_tokens",
        r"exceed\w* (?:the )?(?:model'?s? )?token limit",
        "Moonshot; one of the two wordings that started this project",
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
    ),
    Rule(
        "small-count",
        "not_overflow",
        r"(?<![\w.,])\d{1,3} ?> ?\d{1,3}(?![\d.,]*\d|k\b)|\btools? (?:list|count|set)\b",
        "no window is so small: something was counted, of which no history has less",
        "The tool list is longer than this model accepts (130 > 128)",
    ),
    Rule(
        "over-window",
        "overflow_tokens",
        rf"{_OVER}\b.{{0,80}}\b{_WINDOW}|{_WINDOW}\b.{{0,60}}\b(?:exceed\w*|overflow\w*|(?:is )?full|too small(?!.{{0,20}}minimum)|too long|not enough|exhausted|reached|only \d)|"
        rf"\bcontext[ _-]?(?:is |was )?(?:full|exhausted|exceeded|overflow\w*)\b|\b(?:hit|hits|reached|reaches) (?:the |your |its |model'?s? )*(?:{_WINDOW}|max\w* context\b)|{_OVER} (?:the |its |max\w* |model'?s? ){{1,3}}context\b(?! deadline)|"
        rf"{_OVER} (?:the |this )?(?:selected |requested )?model (?:can|supports|allows|accepts)",
        "OpenAI, SGLang, llama.cpp, Copilot, LiteLLM, Novita",
        "Your input exceeds the context window of this model.",
    ),
    Rule(
        "maximum-context-is",
        "overflow_tokens",
        rf"max(?:imum)? (?:{_WINDOW}|(?:number of )?prompt (?:length|tokens)|model length|(?:number of )?input (?:length|tokens?|characters?|size)|input token count)"
        r"\b(?:.{0,30}\b(?:is|of|:|was|has been)\b|\W{0,3}(?:\d|$))",
        "OpenAI, vLLM, OpenRouter, xAI, Qianfan",
        "This model's maximum context length is 128000 tokens.",
    ),
    Rule(
        "window-and-request",
        "overflow_tokens",
        rf"\b{_WINDOW}(?: size)? (?:is|of|was)\b.{{0,12}}\d.{{0,40}}\b(?:requested|you sent|got|has|have|needs?|contains?|received|given|uses?)\b.{{0,16}}\d",
        "gateways",
        "Model context window is 128k tokens, you requested 256k tokens",
    ),
    # Some other part of the request was too long, too many or unknown, or what may look so.
    Rule(
        "log-line",
        "not_overflow",
        r"\blevel=(?:debug|info|warn|error)\b.*\bmsg=|\btruncating input prompt\b",
        "Ollama and llama.cpp: a line of their log, which tells of a prompt that was cut and answered",
        'level=WARN source=runner.go:153 msg="truncating input prompt" limit=4096 prompt=8000 keep=4 new=4096',
    ),
    Rule(
        "client-tool",
        "not_overflow",
        r"file content \(|file (?:is )?too large|use offset and limit|mcp tool .{0,40}response|tool (?:result|output|response) \(?\d",
        "agents' own file tools, whose errors look alike",
        "File content (30700 tokens) exceeds maximum allowed tokens (25000). Use offset and limit parameters to read specific portions",
    ),
    Rule(
        "other-subject",
        "not_overflow",
        rf"\b{_OTHERS}(?: (?!(?:and )?(?:tokens?|text|prompt|input|context|messages?)\b)\S{{1,40}}){{0,3}},? (?:is |are |was )?{_OVER}\b|\btoo many (?:\w+ )?{_OTHERS}\b|\b(?:number|size|length) of (?:the )?{_OTHERS}\b|"
        rf"\bat most \d+ {_OTHERS}|\b(?:search|voice|negative|speech|video|image|music|audio|embedding|rerank\w*) (?:quer(?:y|ies)|prompts?|inputs?|texts?)\b|"
        rf"(?:than|over|above|exceed\w*|at most|up to|maximum(?: of)?) \d[\d,.]* ?(?:seconds?|secs?|minutes?|hours?|days?|ms)\b|\bupload (?:limit|size)|(?<!physical )(?<! or )\bbatch size\b",
        "OpenAI, Anthropic, Bedrock, Gemini, Voyage: tools, files, names, batches",
        "The number of tools exceeds the limit of 128",
    ),
    Rule(
        "other-parameter",
        "not_overflow",
        rf"invalid (?:property name in )?'(?!{_CONTENT})[^']{{1,80}}'|array too long|array_above_max|json schema|input_schema|\bschema\b|"
        r"\bencoder cache\b|\bnest(?:ing|ed)\b.{0,30}\b(?:depth|deep|levels?)\b|\bdepth \d+|string length of all values|file ?name|\btemperature\b|\btop_[pk]\b|base64|audio|video|logprobs",
        "OpenAI string_above_max_length and array_above_max_length, Gemini's nesting depth of declarations, vLLM's encoder cache (issue 34040)",
        "Invalid 'tools[3].name': string too long. Expected a string with maximum length 64, but got a string with length 71 instead.",
    ),
    Rule(
        "malformed-history",
        "not_overflow",
        r"number of toolresult blocks|tool_use`? ids|tool_use_id|tool_call_id|tool_calls' must|tool[ _](?:call|output|result)s? .{0,40}(?:not found|orphan|missing|must)|"
        r"no tool output found|orphan|thinking`? .{0,60}(?:modified|blocks)|non-empty content|extraneous key|malformed(?!.{0,40}expected maxlength)|parse template|prompt ?template",
        "Anthropic, OpenAI, Moonshot, Bedrock (pydantic-ai issue 2327): histories that other clients broke",
        "No tool output found for function call call_Zyy2Z9PgYUZUZ01B7iKppSkS.",
    ),
    Rule(
        "not-available",
        "not_overflow",
        r"not (?:yet )?available|is not supported|does(?:n't| not) support|not found|not have access|no endpoints|content management|flagged for|"
        r"content polic|safety|guardrail|api key|invalid token|\b(?:jwt|auth\w*|access|session|bearer) token|unauthori[sz]ed|forbidden|incomplete chunked read|connection (?:reset|refused|error|closed)",
        "features, models and policies",
        "The long context beta is not yet available for this subscription.",
    ),
    # The remaining sentences can only be about a conversation.
    Rule(
        "too-many-bytes",
        "overflow_bytes",
        r"too many (?:total )?(?:\w+ )?bytes|(?:payload|body|message) (?:size|length)[: ]*\(?\d+\)? exceeds|exceed\w*.{0,40}\d ?[kmg]i?b\b|(?:text|request|prompt|input|total) bytes .{0,30}exceed|exceeds? .{0,30}\bbytes\b",
        "Bedrock",
        "too many total text bytes",
        unless=_STATED_TOKENS,
    ),
    Rule(
        "entity-too-large",
        "overflow_bytes",
        r"(?:request )?(?:entity|payload|content|body)(?: is)? (?:too (?:large|big)(?! for)|larger than)|maximum request body size|body (?:size )?exceeded|"
        r"request (?:body )?(?:size )?exceeds the maximum (?:allowed )?(?:size|\d)|length limit exceeded|body limit|maximum (?:payload|body|message) size|"
        r"(?:request|payload|message) size (?:exceeds|exceeded|is too|limit)|failed to buffer the request body|request (?:is )?too (?:large|big)(?=\W*(?:$|\())|max(?:imum)? (?:allowed )?(?:content|payload) (?:length|size)",
        "RFC 9110, section 15.5.14 (413); Go's MaxBytesReader, nginx, axum, Envoy",
        "http: request body too large",
        unless=rf"{_STATED_TOKENS}|\bupload",
    ),
    Rule(
        "chinese-body",
        "overflow_bytes",
        r"(?:请求体|报文|请求(?:包|数据|大小))[^\n]{0,16}(?:过大|太大|超出|超过|超限|上限)",
        "gateways of Chinese providers",
        "请求体过大，最大允许 10MB",
        unless=_STATED_TOKENS,
    ),
    Rule(
        "string-length",
        "overflow_bytes",
        rf"invalid '{_CONTENT}: string too long|string (?:value )?length \(\d+\) exceeds|getmaxstringlength|"
        r"expected maxlength: \d+, actual",
        "OpenAI string_above_max_length on content, Jackson's StreamReadConstraints, Bedrock",
        "Invalid 'messages[5].content': string too long. Expected a string with maximum length 10485760, but got 10605342 instead.",
        unless=_STATED_TOKENS,
    ),
    Rule(
        "input-over-limit",
        "overflow_tokens",
        rf"\b{_INPUT}\b.{{0,80}}\b{_OVER}\b.{{0,60}}\b{_LIMIT}",
        "Gemini, Bedrock, Poolside, DeepInfra, Volcengine",
        "The input token count (132478) exceeds the maximum number of tokens allowed (131072).",
    ),
    Rule(
        "input-too-long",
        "overflow_tokens",
        rf"\b(?:{_INPUT}|message|text|payload|body|query|content|instructions?)\b"
        r"(?: (?:you (?:submitted|sent)|is|are|was|were|has|have|become|became|length|size|tokens?|text|total|of|all|the|your|messages)){0,5}(?: \(?\d[\d,]*\)?)?(?: tokens)? "
        r"(?:exceed\w*|no longer fits?|(?:is |are )?(?:longer|larger|bigger) than|(?:is |are )?(?:too|way too) (?:long|large|big))\b(?! (?:of )?an? )",
        "Anthropic, Bedrock, Fireworks, Z.ai, gateways",
        "prompt is too long: 233153 tokens > 200000 maximum",
    ),
    Rule(
        "too-many-tokens",
        "overflow_tokens",
        r"too many (?:input |prompt |total |context )?tokens|tokens? (?:limit|count|length|budget) (?:exceeded|reached|too)|exceed\w* (?:the )?(?:max\w* )?(?:\w+ ){0,3}tokens? limit|"
        r"tokens? (?:exceeded|over limit)|exceed\w* (?:the )?max\w* (?:number of )?(?:input |prompt )?tokens?\b|(?:input|prompt) tokens exceed",
        "Cohere, Bedrock",
        "too many tokens: size limit exceeded by 168512 tokens. The limit for this model is 132000 tokens.",
    ),
    Rule(
        "limit-exceeded",
        "overflow_tokens",
        r"\bmax\w* (?:\w+ ){0,2}(?:length|context|input|prompt|tokens?|characters?)\b[^\n]{0,16}\bexceed\w*|exceed\w* (?:the )?(?:\w+ ){0,2}(?:character|length|input|prompt|context) limit",
        "Petals, Cloudflare, Z.ai",
        "Exceeded character limit: the prompt has 9000 characters",
    ),
    Rule(
        "input-must-be",
        "overflow_tokens",
        r"\b(?:(?:input|prompt|total|request)[ _]tokens?|(?:input|prompt|sequence)[ _](?:length|size)|length of (?:the )?(?:prompt|input)\w*|(?:number|count) of (?:\w+ ){0,2}tokens)\b"
        r"[^\n]{0,50}\b(?:(?:must|should|needs? to|can only)\b[^\n]{0,16}(?:<|≤|\[|less|fewer|smaller|shorter|at most|up to|below|under|within)|"
        r"(?:cannot|can't|(?:must|should|may) not)\b[^\n]{0,16}(?:exceed|larger|greater|longer|more))[^\n]{0,40}\d|"
        r"\b(?:inputs?|prompt|messages|request)`? (?:(?:must|should|can|may) (?:only )?(?:have|be|contain)|that (?:is|has|are|have))\b.{0,12}(?:less than|fewer than|shorter than|at most|up to|below).{0,12}\d+ tokens",
        "DashScope, SiliconFlow, watsonx, TGI, OCI",
        "Range of input length should be [1, 258048]",
    ),
    Rule(
        "cannot-truncate",
        "overflow_tokens",
        r"cannot truncate to\b",
        "Gemini, when even its own truncation leaves too much",
        "Cannot truncate to fit the model's limit",
    ),
    Rule(
        "reduce-the-length",
        "overflow_tokens",
        r"(?:reduce|shorten|decrease|trim|truncate|shrink)\b.{0,30}\b(?:length|size|number|amount)?\b.{0,20}\b(?:prompt|messages|input|context|conversation|history|tokens)|"
        r"\b(?:split|break)(?: up)? (?:your|the) (?:input|message|prompt|text|request|conversation)\b|"
        r"(?:provide|use|try|send) an? shorter (?:input|prompt|message|context)|"
        r"(?:too long|too large|limit)\b[^\n]{0,160}\b(?:start|begin|open|creat)\w* a new (?:chat|conversation|session|thread)",
        "Groq, Cerebras",
        "Please reduce the length of the messages or completion.",
    ),
    Rule(
        "too-large-for-model",
        "overflow_tokens",
        r"too (?:large|long|big) for (?:the |this |requested |selected )?(?:requested )?(?:\S+ )?model|tokens to keep from the initial prompt|to keep the first \d+ tokens|"
        r"more tokens than|tokens in request more than|oversized (?:prompt|input|request|context)|max\w* tokens (?:for|of) (?:this|the) model is \d[\d,]*,? but",
        "Mistral, GitHub Models, LM Studio, Z.ai",
        "Request body too large for gpt-4o-mini model. Max size: 8000 tokens.",
    ),
    Rule(
        "prompt-has-window-is",
        "overflow_tokens",
        rf"(?:prompt|input|request|messages?|conversation)\b.{{0,20}}\b(?:has|have|is|are|contains?|uses?|of)\b.{{0,12}}\d[\d,]* (?:tokens?|char\w*|words)\b.{{0,40}}\b(?:{_LIMIT}|max\w*|limit|allows?|window|accepts?|up to)\b",
        "RKLLM, ds4",
        "Prompt is 11543 tokens but the model context window is 4096 tokens.",
    ),
    Rule(
        "input-over-number",
        "overflow_tokens",
        rf"\btokens?\b(?! (?:expired|has expired|is invalid)).{{0,40}}\b{_OVER}\b.{{0,30}}\b(?:limit|max\w*)\b|"
        r"\d tokens (?:(?:do|does|did|will)(?: not|n't)|can't|cannot) fit|"
        r"\d tokens,? but\b.{0,60}\b(?:context|only|limit|max\w*)\b|tokens\b.{0,40}\b(?:more|greater|larger|higher) than (?:the )?\d|"
        r"\buses? \d[\d,]* of \d[\d,]* tokens|\bno room (?:left )?for|"
        r"model\b.{0,20}\b(?:only|at most|up to)\b.{0,20}\d+ (?:input |prompt |context )?tokens|model only supports up to \d|tokens?\W{0,3}\d[\d,]* ?> ?\w*\W{0,3}\d",
        "Cohere, TGI, Vertex, gateways",
        "The total number of tokens (210000) in your request surpasses the limit of the model (200000).",
    ),
    Rule(
        "numbers-over",
        "overflow_tokens",
        r"\b(?:tokens?|n_tokens|context|n_prompt|n_ctx|prompt)\b.{0,30}\d[\d,]*\)? ?(?:tokens? )?(?:>|>=) .{0,24}\d|\d[\d,]* ?tokens? ?(?:>|exceeds?|is (?:more|greater|larger|over)).{0,20}\d",
        "Anthropic and its proxies",
        "208310 tokens > 200000 maximum",
    ),
    Rule(
        "size-against-size",
        "overflow_tokens",
        rf"\b\d[\d,]* (?:prompt |input )?tokens\b.{{0,30}}\b{_OVER}\b|\bseq(?:uence)?_?len\w*\W{{0,3}}\d+ ?>|"
        rf"\b(?:prompt|conversation|input|request|history|messages)\b.{{0,20}}(?:do|does|did|will|would)(?: not|n't) fit\b|"
        rf"\btokens? limit(?: of \d[\d,]*)? (?:was |is )?(?:exceeded|reached)|\byou(?: have|'ve)? sent \d[\d.,]*[km]? (?:input )?tokens\b.{{0,60}}\b(?:at most|limit|max\w*|only|up to)\b|"
        rf"\b(?:cannot|can't|could not|unable to) fit (?:the |this )?(?:request|prompt|conversation|input|messages)\b|"
        rf"\b(?:thread|chat|conversation|history|prompt|session)\b.{{0,12}}\boutgr(?:own|ows|ew)\b|"
        rf"\b{_WINDOW}\W{{1,3}}\d[\d,]*.{{0,10}}\bprompt[_ ]tokens\W{{1,3}}\d|\bmax(?:imum)? context \d[\d,]* tokens?.{{0,6}}\b(?:prompt|input|request)\b.{{0,8}}\d|"
        rf"\btoken budget\b.{{0,30}}\d.{{0,20}}\b(?:used|uses|needs?|has)\b|\blength (?:of )?\d[\d,]*\b.{{0,60}}\bmax_(?:input|seq|model|prompt)_?len\w*\W{{0,3}}\d|"
        rf"\b(?:chat|conversation|history|prompt)\b.{{0,12}}\b(?:grown|goes|went|gone|is) (?:beyond|past)\b",
        "TensorRT-LLM, llama.cpp's slots, gateways: what the request has, beside what the model takes",
        "seq_len 17000 > max_seq_len 16384",
        unless=r"max_(?:completion_|output_|new_)?tokens\b(?!.{0,20}\+)|minimum|at least|\bbelow\b",
    ),
    Rule(
        "other-languages",
        "overflow_tokens",
        r"(?:kontext\w*|prompt|eingabe|anfrage|contexte|contexto|invite|entrada|conversaci[oó]n|conversation|mensajes?|jetons|tokens?)\b[^\n]{0,50}(?:überschr\w+|zu lang|dépasse\w*|trop long\w*|supera\w*|excede\w*|demasiado larg\w+|muito long\w+)|"
        r"\b(?:prompt|entrada|mensajes?|invite|anfrage|eingabe|conversa\w*)\b[^\n]{0,20}\d[\d.,]* (?:tokens?|jetons)\b[^\n]{0,30}(?:máxim\w+|maxim\w+|limite|límite|kontext\w*|contexte|contexto)\b[^\n]{0,40}\d|"
        r"превыш\w+[^\n]{0,40}(?:контекст\w*|токенов|промпт\w*)|(?:контекст\w*|промпт\w*|токенов)[^\n]{0,40}(?:превыш\w+|слишком \w+)",
        "gateways in German, French, Spanish, Portuguese and Russian",
        "Kontextlänge überschritten",
        unless=r"\b(?:в|pro|par|por) (?:минуту|час|день|сутки|minute|stunde|tag|heure|jour|minuto|hora|día|dia)\b",
    ),
    Rule(
        "chinese-japanese-korean",
        "overflow_tokens",
        r"(?:上下文|历史|输入|提示词?|消息|对话|请求|文本|长度|tokens?|prompt)[^\n]{0,30}(?:超出|超过|超长|超限|过长|过大|上限|溢出)|(?:超出|超过)[^\n]{0,30}(?:上下文|最大长度|长度限制|tokens?)|(?:トークン|入力|プロンプト|コンテキスト)[^\n]{0,20}(?:超え|超過|長すぎ|上限)|"
        r"(?:压缩|缩短|精简|减少)[^\n]{0,6}(?:上下文|输入|历史|提示词?)|(?:토큰|컨텍스트|입력|프롬프트)[^\n]{0,30}(?:초과|너무 (?:길|많|깁)|한도)|대화가 너무 (?:길|깁)",
        "gateways of Chinese providers",
        "输入内容过长，超过模型最大上下文长度",
    ),
)

EMPTY_400 = Rule(
    "empty-400",
    "overflow_tokens",
    r"^(?:error: )?400 status code \(no body\)\s*$|(?:^|exception - )error code: 400\s*$|^status_code: 400, body:\s*$",
    "Cerebras answers an overflow with a bare 400; the wordings are of OpenAI's SDKs, LiteLLM and pydantic-ai",
    "400 status code (no body)",
)
