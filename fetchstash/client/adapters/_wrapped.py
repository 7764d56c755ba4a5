"""What adapters of SDKs with a create function share: the function wrapped, and its streams passed on as what they were."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self

from fetchstash.client._formats import Format
from fetchstash.client._recovery import Recovery
from fetchstash.client._shapes import is_list
from fetchstash.client._streams import Peek


@dataclass(frozen=True, slots=True)
class Shape:
    """How a create function is called: where its messages are, in which format, and which argument bounds the output."""

    messages: str
    format: Format
    outputs: tuple[str, ...] = ()
    streams: Literal["by argument", "always"] = "by argument"


class PeekedStream:
    """An SDK's stream of which the first events were read already: it yields them first, and is the SDK's in everything else."""

    def __init__(self, peeked: Peek) -> None:
        self._peeked = peeked
        self._events = peeked.events()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._events)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the SDK's stream."""
        close = getattr(self._peeked.stream, "close", None)
        if close:
            close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._peeked.stream, name)


class AsyncPeekedStream:
    """The same, asynchronous."""

    def __init__(self, peeked: Peek) -> None:
        self._peeked = peeked
        self._events = peeked.aevents()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return await anext(self._events)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the SDK's stream."""
        close = getattr(self._peeked.stream, "close", None) or getattr(
            self._peeked.stream, "aclose", None
        )
        if close:
            await close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._peeked.stream, name)


def recovering(create: Callable[..., Any], recovery: Recovery, shape: Shape) -> Callable[..., Any]:
    """Return ``create`` with recovery. A call whose messages are no list (a bare string) has nothing to shrink, and passes."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        messages = kwargs.get(shape.messages)
        if not is_list(messages):
            return create(*args, **kwargs)
        send, options = _send(create, args, kwargs, shape)
        if shape.streams == "always" or kwargs.get("stream"):
            return PeekedStream(recovery.open(send, messages, shape.format, **options))
        return recovery.call(send, messages, shape.format, **options)

    return wrapped


def arecovering(
    create: Callable[..., Awaitable[Any]], recovery: Recovery, shape: Shape
) -> Callable[..., Awaitable[Any]]:
    """Do as ``recovering`` does, with an asynchronous function."""

    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        messages = kwargs.get(shape.messages)
        if not is_list(messages):
            return await create(*args, **kwargs)
        send, options = _send(create, args, kwargs, shape)
        if shape.streams == "always" or kwargs.get("stream"):
            return AsyncPeekedStream(await recovery.aopen(send, messages, shape.format, **options))
        return await recovery.acall(send, messages, shape.format, **options)

    return wrapped


def _send(
    create: Callable[..., Any], args: Any, kwargs: dict[str, Any], shape: Shape
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return what sends this call with other messages, and the output that it asks for, where it does."""
    output = next((name for name in shape.outputs if isinstance(kwargs.get(name), int)), "")

    def send(messages: Any, *, max_output: int | None = None) -> Any:
        changes: dict[str, Any] = {shape.messages: messages}
        if max_output is not None:
            changes[output] = max_output
        return create(*args, **(kwargs | changes))

    return send, {"max_output": kwargs[output]} if output else {}
