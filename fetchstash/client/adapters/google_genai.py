"""The google-genai SDK: a client whose models and chats recover from an overflow.

    client = recovering(genai.Client(), Recovery())
    client.models.generate_content(model=…, contents=[…])
    client.chats.create(model=…); client.aio.models.generate_content(…)

It replaces the one function of the SDK's models that sends a request: the public ones call
it once for each round of automatic function calling, each of which may overflow.
"""

from collections.abc import Callable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Unpack

from fetchstash.client._policy import Request
from fetchstash.client._recovery import Recovery
from fetchstash.client._streams import a_string, is_list
from fetchstash.client.adapters import Needs, Options, Shape, account_of, configured
from fetchstash.errors import type_checked

if TYPE_CHECKING:
    from google.genai.models import AsyncModels, Models

with Needs("google-genai", "google-genai", "3"):
    from google import genai
    from google.genai import types
    from google.genai.chats import AsyncChats, Chats

CONTENTS = Shape("contents", "gemini")


class RecoveringClient:
    """A ``genai.Client`` whose ``models`` and ``chats`` recover, and those of ``aio``."""

    def __init__(self, client: genai.Client, recovery: Recovery) -> None:
        self._client = client
        self.models: Models = _recovering(client.models, client, recovery.call, recovery.stream)
        self.chats = Chats(modules=self.models)
        self.aio = AsyncRecoveringClient(client, recovery)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class AsyncRecoveringClient:
    """The ``aio`` of such a client."""

    def __init__(self, client: genai.Client, recovery: Recovery) -> None:
        self._client = client.aio
        self.models: AsyncModels = _recovering(
            client.aio.models, client, recovery.acall, recovery.aopen
        )
        self.chats = AsyncChats(modules=self.models)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


@type_checked
def recovering(
    client: genai.Client, recovery: Recovery | None = None, **options: Unpack[Options]
) -> RecoveringClient:
    """Return ``client`` with recovery. Raises what the SDK raises."""
    return RecoveringClient(client, configured(recovery, options))


def _recovering(
    models: Any, client: genai.Client, call: Callable[..., Any], stream: Callable[..., Any]
) -> Any:
    """Return a copy of ``models`` that recovers."""
    made = copy(models)
    made._client = client  # noqa: SLF001 - a client that nothing refers to closes its connections

    def wrapped(generate: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
        def recovering_generate(**kwargs: Any) -> Any:
            contents = _as_data(kwargs["contents"])
            if contents is None:
                return generate(**kwargs)
            send = CONTENTS.sending(lambda arguments: generate(**arguments), kwargs)
            return run(send, _request(made, kwargs, contents))

        return recovering_generate

    made._generate_content = wrapped(made._generate_content, call)  # noqa: SLF001 - the one place where all requests pass
    made._generate_content_stream = wrapped(made._generate_content_stream, stream)  # noqa: SLF001 - as above
    return made


def _request(models: Any, arguments: Mapping[str, Any], contents: list[Any]) -> Request:
    config = _dumped(arguments.get("config")) or {}
    api = models._api_client  # noqa: SLF001 - nothing public has the address and the key
    options = getattr(api, "_http_options", None)
    keys = (getattr(api, name, None) for name in ("api_key", "project", "location"))
    output = config.get("max_output_tokens")
    fixed = {key: config[key] for key in ("system_instruction", "tools") if config.get(key)}
    return Request(
        contents,
        "gemini",
        model=a_string(arguments.get("model")),
        endpoint=a_string(getattr(options, "base_url", "")),
        fixed=fixed or None,
        output=output if isinstance(output, int) else None,
        kept_by_provider="cached_content" if config.get("cached_content") else "",
        account=account_of(*keys),
    )


def _as_data(contents: Any) -> list[Any] | None:
    """Return contents as plain data, None where one is no Content (a string, a file)."""
    listed = list(contents) if isinstance(contents, list | tuple) else [contents]
    dumped = [_dumped(content) for content in listed]
    if all(isinstance(content, dict) and is_list(content.get("parts")) for content in dumped):
        return dumped
    return None


def _dumped(value: Any) -> Any:
    if isinstance(value, types.Content | types.GenerateContentConfig):
        return value.model_dump(exclude_none=True)
    return value
