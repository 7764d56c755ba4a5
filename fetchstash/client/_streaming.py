"""Send a request once more, with a stream or without, as one conversation.

Until the answer is committed a retry may take over.
A retry is a new answer of the provider, and begins with the provider's own first event: OpenAI's
``response.created`` or a chunk with a role and a new id, Anthropic's ``message_start``, LangChain's
``on_chat_model_start``. What was passed on before that event (its lifecycle, and reasoning that was
shown) belongs to the answer that failed.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Sequence,
)
from dataclasses import dataclass
from inspect import isawaitable
from threading import Lock
from typing import Any, ClassVar, Self, TypeVar

from fetchstash.client._formats import as_json
from fetchstash.client._policy import Message, State, content_hash
from fetchstash.client._streams import (
    aclose,
    an_object,
    commits,
    empty_answer,
    failure,
    is_collection,
    is_mapping,
    reasons,
)

LARGE_CHARS, LARGE_VALUES = 200_000, 50_000
"""A history with more text or more values is compacted in a thread."""

Result = TypeVar("Result")


def is_large(value: Any) -> bool:
    """Return whether a history holds more than ``LARGE_CHARS`` of text, and look no further."""
    # This runs on the loop that it is to keep free, so it stops at the bound.
    chars, values, waiting = 0, 0, [value]
    while waiting and chars <= LARGE_CHARS and values <= LARGE_VALUES:
        current = waiting.pop()
        values += 1
        if isinstance(current, str | bytes):
            chars += len(current)
        elif is_mapping(current):
            waiting += current.values()
        elif is_collection(current):
            waiting += current
    return bool(waiting) or chars > LARGE_CHARS


async def off_loop(function: Callable[..., Result], *args: Any, large: bool) -> Result:
    """Return ``function(*args)``, called in a thread if ``large`` and the loop is asyncio's."""
    # Under trio asyncio.to_thread does not work: there the caller waits.
    if large and _in_asyncio():
        return await asyncio.to_thread(function, *args)
    return function(*args)


def _in_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


Send = Callable[..., Any]
"""Sends messages and returns the response or stream.

Takes the messages, and ``max_output=`` where the caller gave that.
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The request to send. ``max_output``, in tokens, is None unless it has to be clamped."""

    messages: Sequence[Message]
    max_output: int | None = None

    def sent_by(self, send: Send) -> Any:
        """Return the response of ``send`` to these messages."""
        # Most functions that send take the messages alone.
        if self.max_output is None:
            return send(self.messages)
        return send(self.messages, max_output=self.max_output)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an attempt: a response or an error.

    An event that reports an error comes with its response.
    ``committed``: output was passed on already, so that it is too late for a retry.
    """

    response: Any = None
    error: Exception | None = None
    event: Any = None
    committed: bool = False

    @property
    def problem(self) -> Any:
        """The error or the failed event, None after a success."""
        return self.event if self.error is None else self.error

    def answer(self) -> Any:
        """Return the response, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.response


Steps = Generator[Attempt, Outcome, Outcome]
"""Yields what to send, takes what came of it, and returns the outcome that is the caller's."""


def problem_of(said: Any, *, reasoned: bool = False) -> Any:
    """Return the failure that a response or event reports; itself if it ended before it began."""
    problem = failure(said)
    return said if problem is None and not reasoned and empty_answer(said) else problem


async def step(steps: Steps, outcome: Outcome | None = None, *, large: bool) -> Attempt | Outcome:
    """Return what to send next, or the outcome that ``steps`` end with.

    A ``large`` history is counted and made smaller in a thread.
    """
    return await off_loop(_step, steps, outcome, large=large)


def _step(steps: Steps, outcome: Outcome | None) -> Attempt | Outcome:
    try:
        return next(steps) if outcome is None else steps.send(outcome)
    # Caught here: a StopIteration that leaves a thread cannot be set on its future (asyncio).
    except StopIteration as end:
        final: Outcome = end.value
        return final


async def drive(
    steps: Steps, attempt: Callable[[Attempt], Awaitable[Outcome]], *, large: bool
) -> Outcome:
    """Carry out ``steps``, and return the outcome that they end with."""
    following = await step(steps, large=large)
    while isinstance(following, Attempt):
        following = await step(steps, await attempt(following), large=large)
    return following


def run_now(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of a coroutine that never waits.

    What the synchronous and the asynchronous methods share is written once, as a coroutine. Of a
    synchronous one all calls return at once, so that it needs no event loop.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    coroutine.close()
    raise RuntimeError("A synchronous call waited for something.")


MAX_CONVERSATIONS = 256
"""How many states are kept, the most recently used. A lost one costs a cold prompt cache."""


class States:
    """Finds the state of a conversation by its messages up to the first that a user wrote.

    Conversations that begin alike share a state. That is safe: a stub is known by the id of its
    call and the hash of its content, so a state never puts one where its content does not stand.
    """

    def __init__(self) -> None:
        self._states: OrderedDict[str, State] = OrderedDict()
        self._lock = Lock()

    def of(self, messages: Sequence[Message]) -> State:
        """Return the state of these messages' conversation, a new one for a new conversation."""
        first = (n for n, m in enumerate(messages, 1) if an_object(m).get("role") == "user")
        key = content_hash(as_json(messages[: next(first, len(messages))]))
        with self._lock:
            state = self._states.setdefault(key, State())
            self._states.move_to_end(key)
            while len(self._states) > MAX_CONVERSATIONS:
                self._states.popitem(last=False)
        return state


_END: Any = object()


class _Stream:
    """Yields the events of a stream, and then those of its retry if there is one.

    In all else it is the SDK's stream. ``read`` returns what an event of the SDK says, as an object
    or as plain data; it may raise the SDK's own error for an event that reports one. ``held``:
    nothing is passed on before the answer or its reasoning begins, for readers that cannot begin
    again. ``on_end`` gets the last event, and the attempt whose it is. A ``large`` history is made
    smaller in a thread.
    """

    _is_async: ClassVar[bool]

    def __init__(
        self,
        steps: Steps,
        send: Send,
        read: Callable[[Any], Any] | None,
        *,
        held: bool,
        large: bool,
        on_end: Callable[[Any, Attempt], None],
    ) -> None:
        self.stream: Any = None
        self._steps = steps
        self._send = send
        self._read = read
        self._settled = False
        self._reasoned = False
        self._held = held
        self._large = large and self._is_async
        self._waiting = deque[Any]()
        self._last: Any = None
        self._attempt = Attempt(())
        self._on_end: Callable[[Any, Attempt], None] | None = on_end

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    async def start(self) -> Self:
        """Send the first attempt, and return the stream."""
        first = await step(self._steps, large=self._large)
        assert isinstance(first, Attempt)
        await self._open(first)
        return self

    async def _open(self, attempt: Attempt) -> None:
        """Send an attempt, or the one that takes over from it."""
        while True:
            self._attempt = attempt
            self._reasoned = False
            self._waiting.clear()
            try:
                sent = attempt.sent_by(self._send)
                self.stream = await sent if self._is_async and isawaitable(sent) else sent
                self._events = aiter(self.stream) if self._is_async else iter(self.stream)
            # SDKs raise here for a status of 400 or 413; with status 200 the refusal is an event.
            except Exception as error:
                retry = await self._report(Outcome(error=error))
                if retry is None:
                    raise
                attempt = retry
            else:
                return

    async def _following(self) -> Any:
        """Return the next event for the reader, ``_END`` after the last."""
        # Held events are dropped if their attempt fails (`_open`), so that a reader who counts
        # blocks never sees two beginnings.
        while not self._waiting or (self._held and not self._settled):
            event: Any = None
            retry = None
            try:
                event = anext(self._events, _END) if self._is_async else next(self._events, _END)
                event = await event if self._is_async else event
                if event is not _END and not self._settled:
                    retry = await self._report(self._outcome_of(event))
            except Exception as error:
                retry = await self._report(Outcome(error=error))
                if retry is None:
                    raise
            if retry is not None:
                # Its connection goes back before the retry needs one of the client's pool.
                await aclose(self.stream)
                await self._open(retry)
            elif event is _END:
                await self._end()
                break
            else:
                self._waiting.append(event)
                self._last = event
        return self._waiting.popleft() if self._waiting else _END

    def _outcome_of(self, event: Any) -> Outcome | None:
        """Return the outcome that this event decides, None while a retry is still possible."""
        said = self._read(event) if self._read else event
        problem = problem_of(said, reasoned=self._reasoned)
        if problem is not None:
            return Outcome(self.stream, event=problem)
        self._reasoned = self._reasoned or reasons(said)
        # A held reader gets its first events now, and cannot begin again.
        if commits(said) or (self._held and self._reasoned):
            return Outcome(self.stream)
        return None

    async def _report(self, outcome: Outcome | None) -> Attempt | None:
        """Report an attempt's outcome; return the attempt that takes over, None if none does."""
        if outcome is None or self._settled:
            return None
        following = await step(self._steps, outcome, large=self._large)
        if isinstance(following, Attempt):
            return following
        self._settled = True
        return None

    async def _end(self) -> None:
        """Report that the stream ended, and what its last event says of the prompt."""
        await self._report(Outcome(self.stream))
        # Once: a reader may ask an ended stream for another event.
        on_end, self._on_end = self._on_end, None
        if on_end:
            await off_loop(on_end, self._last, self._attempt, large=self._large)


class RecoveringStream(_Stream):
    """The stream of a synchronous client."""

    _is_async = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        event = run_now(self._following())
        if event is _END:
            raise StopIteration
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the SDK's stream."""
        closing = getattr(self.stream, "close", None)
        if closing:
            closing()


class AsyncRecoveringStream(_Stream):
    """The stream of an asynchronous client."""

    _is_async = True

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        event = await self._following()
        if event is _END:
            raise StopAsyncIteration
        return event

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the SDK's stream."""
        # Streams of OpenAI and Anthropic have close(), an asynchronous generator has aclose().
        closing = getattr(self.stream, "close", None) or getattr(self.stream, "aclose", None)
        if closing:
            await closing()
