"""The errors that real SDKs raise when a provider on loopback refuses a request."""

import importlib
import json
from collections.abc import Callable
from functools import cache
from typing import Any

from tests.client.loopback import Loopback

PROMPT: list[Any] = [{"role": "user", "content": "Sum up the report."}]
Call = Callable[..., Any]
"""Takes a URL and ``stream``, and raises what the SDK raises."""


def envelope(api: str, status: int, message: str, kind: str | None = None, code: Any = None) -> str:
    """Return the body in which this API sends a message; Ollama's is the message alone."""
    error: Any = {"message": message, "type": kind or "invalid_request_error"}
    if api == "ollama":
        error = message
    elif api == "gemini":
        error = {"code": status, "message": message, "status": kind or "INVALID_ARGUMENT"}
    elif api == "openai":
        error |= {"param": None, "code": code}
    return json.dumps({"type": "error", "error": error} if api == "anthropic" else {"error": error})


@cache  # making the TLS context of a client costs more than the call
def _made(module: str, name: str, **options: Any) -> Any:
    return getattr(importlib.import_module(module), name)(**options)


def _openai(url: str, *, stream: bool) -> Any:
    client = _made("openai", "OpenAI", base_url=f"{url}/v1", api_key="k", max_retries=0)
    return list(client.chat.completions.create(model="m", messages=PROMPT, stream=stream))


def _anthropic(url: str, *, stream: bool) -> Any:
    client = _made("anthropic", "Anthropic", base_url=url, api_key="k", max_retries=0)
    return list(client.messages.create(model="m", max_tokens=9, messages=PROMPT, stream=stream))


@cache
def _genai(url: str) -> Any:
    genai = importlib.import_module("google.genai")
    return genai.Client(api_key="k", http_options=genai.types.HttpOptions(base_url=url))


def _gemini(url: str, *, stream: bool) -> Any:
    models, contents = _genai(url).models, PROMPT[0]["content"]
    if stream:
        return list(models.generate_content_stream(model="m", contents=contents))
    return models.generate_content(model="m", contents=contents)


def _langchain(module: str, name: str, path: str, **options: Any) -> Call:
    def call(url: str, *, stream: bool) -> Any:
        options.update(model="m", base_url=url + path, api_key="k", max_retries=0)
        chat = _made(module, name, **options)
        return list(chat.stream(PROMPT)) if stream else chat.invoke(PROMPT)

    return call


def _litellm(model: str, path: str = "") -> Call:
    def call(url: str, *, stream: bool) -> Any:
        sdk: Any = importlib.import_module("litellm")
        sdk.suppress_debug_info = True
        options = {"api_base": url + path, "api_key": "k", "max_retries": 0, "num_retries": 0}
        return list(sdk.completion(model=model, messages=PROMPT, stream=stream, **options))

    return call


def _pydantic_ai(sdk: str, model: str, path: str) -> Call:
    def call(url: str, *, stream: bool) -> Any:
        name = sdk.lower()
        client = _made(name, f"Async{sdk}", base_url=url + path, api_key="k", max_retries=0)
        provider = _made(
            f"pydantic_ai.providers.{name}", f"{sdk}Provider", **{f"{name}_client": client}
        )
        chat = _made(f"pydantic_ai.models.{name}", model, model_name="m", provider=provider)
        agent = importlib.import_module("pydantic_ai").Agent(chat)

        async def run() -> None:
            if not stream:
                await agent.run(PROMPT[0]["content"])
                return
            async with agent.run_stream(PROMPT[0]["content"]) as answer:
                await answer.get_output()

        importlib.import_module("anyio").run(run)

    return call


APIS: dict[str, dict[str, Call]] = {
    "openai": {"openai": _openai},
    "anthropic": {"anthropic": _anthropic},
    "google.genai": {"gemini": _gemini},
    "langchain": {
        "openai": _langchain("langchain_openai", "ChatOpenAI", "/v1"),
        "anthropic": _langchain("langchain_anthropic", "ChatAnthropic", "", max_tokens=9),
    },
    "litellm": {
        "openai": _litellm("openai/m", "/v1"),
        "anthropic": _litellm("anthropic/m"),
        "gemini": _litellm("gemini/m"),
        "ollama": _litellm("ollama_chat/m"),
    },
    "pydantic_ai": {
        "openai": _pydantic_ai("OpenAI", "OpenAIChatModel", "/v1"),
        "anthropic": _pydantic_ai("Anthropic", "AnthropicModel", ""),
    },
}
"""How each SDK calls the APIs that it speaks; Ollama's own is LiteLLM's alone."""


def error_of(sdk: str, api: str, provider: Loopback, refusal: tuple[int, str]) -> Exception:
    """Return what the SDK raises when the provider refuses a request with this status and body.

    With status 200 the body is the one event of a stream.
    """
    provider.refusal = refusal
    try:
        APIS[sdk][api](provider.url, stream=refusal[0] == 200)
    except Exception as error:  # noqa: BLE001 - whatever it raises
        return error
    raise AssertionError(f"{sdk} raised nothing for {refusal}")
