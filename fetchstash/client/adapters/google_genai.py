"""The google-genai SDK: generate_content and generate_content_stream that recover from an overflow, sync and async.

models = recovering(genai.Client(), Recovery())
models.generate_content(model=…, contents=[…])
"""

from collections.abc import Awaitable, Callable
from typing import Any

from google import genai
from google.genai import types

from fetchstash.client._recovery import Recovery
from fetchstash.client._shapes import is_list
from fetchstash.client.adapters._wrapped import Shape, arecovering, recovering as _recovering

CONTENTS = Shape("contents", "gemini")
STREAM = Shape("contents", "gemini", streams="always")


class RecoveringModels:
    """``client.models`` with recovery; what it does not name is the SDK's."""

    def __init__(self, models: Any, recovery: Recovery) -> None:
        self._models = models
        self.generate_content = _as_data(_recovering(models.generate_content, recovery, CONTENTS))
        self.generate_content_stream = _as_data(
            _recovering(models.generate_content_stream, recovery, STREAM)
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._models, name)


class AsyncRecoveringModels:
    """``client.aio.models`` with recovery."""

    def __init__(self, models: Any, recovery: Recovery) -> None:
        self._models = models
        self.generate_content: Callable[..., Awaitable[Any]] = _as_data(
            arecovering(models.generate_content, recovery, CONTENTS)
        )
        self.generate_content_stream: Callable[..., Awaitable[Any]] = _as_data(
            arecovering(models.generate_content_stream, recovery, STREAM)
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._models, name)


def recovering(client: genai.Client, recovery: Recovery) -> RecoveringModels:
    """Return the models of ``client`` with recovery. Raises what the SDK raises."""
    return RecoveringModels(client.models, recovery)


def arecovering_models(client: genai.Client, recovery: Recovery) -> AsyncRecoveringModels:
    """Return the asynchronous models of ``client`` with recovery."""
    return AsyncRecoveringModels(client.aio.models, recovery)


def _as_data(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``call``, taking Content objects for plain data: the SDK takes either."""

    def wrapped(*, contents: Any, **kwargs: Any) -> Any:
        if is_list(contents):
            contents = [
                item.model_dump(exclude_none=True) if isinstance(item, types.Content) else item
                for item in contents
            ]
        return call(contents=contents, **kwargs)

    return wrapped
