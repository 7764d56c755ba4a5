"""Streams that recover: each event is passed on when it arrives.

Until the answer is committed a retry may take over.
A retry is a new answer of the provider, and begins with the provider's own first event: OpenAI's
``response.created`` or a chunk with a role and a new id, Anthropic's ``message_start``, LangChain's
``on_chat_model_start``. What was passed on before that event (its lifecycle, and reasoning that was
shown) belongs to the answer that failed.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from inspect import isawaitable
from typing import Any, Self

from fetchstash.client._attempts import Attempt, Outcome, Send, Steps, astep, step
from fetchstash.client._streams import aclose, close, commits, failure, reasons
from fetchstash.client._truncation import empty_answer


def _as_it_is(event: Any) -> Any:
    return event


class _Decisions:
    """Decisions that both kinds of stream share.

    ``read`` gives what an event of the SDK says, as an object or as plain data; it may raise the
    SDK's own error for an event that reports one. ``held``: nothing is passed on before the answer
    or its reasoning begins, for readers that cannot begin again.
    """

    def __init__(
        self,
        steps: Steps,
        send: Send,
        read: Callable[[Any], Any] | None = None,
        *,
        held: bool = False,
        on_end: Callable[[Any, Attempt], None] | None = None,
    ) -> None:
        self.stream: Any = None
        self._steps = steps
        self._send = send
        self._read: Callable[[Any], Any] = read or _as_it_is
        self._settled = False
        self._reasoned = False
        self._held = held
        self._waiting = deque[Any]()
        self._last: Any = None
        self._attempt = Attempt(())
        self._on_end = on_end

    def outcome_of(self, event: Any) -> Outcome | None:
        """Return what this event decides, None as long as a retry may still take over."""
        said = self._read(event)
        problem = failure(said)
        if problem is None and not self._reasoned and empty_answer(said):
            problem = said
        if problem is not None:
            return Outcome(self.stream, event=problem)
        self._reasoned = self._reasoned or reasons(said)
        if commits(said) or (self._held and self._reasoned):
            return Outcome(self.stream)
        return None

    def next_attempt(self, outcome: Outcome | None) -> Attempt | None:
        """Report what came of an attempt; return the next, None if there is none."""
        return None if outcome is None else self._follow(step(self._steps, outcome))

    def _follow(self, following: Attempt | Outcome) -> Attempt | None:
        if not isinstance(following, Attempt):
            self._settled = True
            return None
        self._reasoned = False
        self._waiting.clear()
        return following

    @property
    def ready(self) -> bool:
        """Whether an event can be passed on."""
        return bool(self._waiting) and (self._settled or not self._held)

    def end(self) -> None:
        """Report that the stream ended, and what its last event says of the prompt."""
        if not self._settled:
            self.next_attempt(Outcome(self.stream))
        if self._on_end:
            self._on_end(self._last, self._attempt)


class RecoveringStream(_Decisions):
    """Yields the events of a stream, and then those of its retry if there is one.

    In all else it is the SDK's stream. ``open`` sends the first attempt.
    """

    def open(self) -> Self:
        """Open the stream, and return it."""
        first = step(self._steps)
        assert isinstance(first, Attempt)
        self._open(first)
        return self

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while not self.ready:
            event: Any = None
            try:
                event = next(self._events)
                retry = None if self._settled else self.next_attempt(self.outcome_of(event))
            except StopIteration:
                self.end()
                if self._waiting:
                    break
                raise
            except Exception as error:
                retry = None if self._settled else self.next_attempt(Outcome(error=error))
                if retry is None:
                    raise
            if retry is None:
                self._waiting.append(event)
                self._last = event
            else:
                close(self.stream)
                self._open(retry)
        return self._waiting.popleft()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the SDK's stream."""
        closing = getattr(self.stream, "close", None)
        if closing:
            closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def _open(self, attempt: Attempt) -> None:
        while True:
            self._attempt = attempt
            try:
                self.stream = attempt.sent_by(self._send)
                self._events = iter(self.stream)
            except Exception as error:
                retry = self.next_attempt(Outcome(error=error))
                if retry is None:
                    raise
                attempt = retry
            else:
                return


class AsyncRecoveringStream(_Decisions):
    """The same, asynchronous. A large history is made smaller in a thread."""

    async def open(self, *, large: bool) -> Self:
        """Open the stream, and return it."""
        self._large = large
        first = await astep(self._steps, large=large)
        assert isinstance(first, Attempt)
        await self._open(first)
        return self

    async def _anext_attempt(self, outcome: Outcome | None) -> Attempt | None:
        if outcome is None:
            return None
        return self._follow(await astep(self._steps, outcome, large=self._large))

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        while not self.ready:
            event: Any = None
            try:
                event = await anext(self._events)
                retry = None if self._settled else await self._anext_attempt(self.outcome_of(event))
            except StopAsyncIteration:
                self.end()
                if self._waiting:
                    break
                raise
            except Exception as error:
                retry = None if self._settled else await self._anext_attempt(Outcome(error=error))
                if retry is None:
                    raise
            if retry is None:
                self._waiting.append(event)
                self._last = event
            else:
                await aclose(self.stream)
                await self._open(retry)
        return self._waiting.popleft()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the SDK's stream."""
        closing = getattr(self.stream, "close", None) or getattr(self.stream, "aclose", None)
        if closing:
            await closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    async def _open(self, attempt: Attempt) -> None:
        while True:
            self._attempt = attempt
            try:
                sent = attempt.sent_by(self._send)
                self.stream = await sent if isawaitable(sent) else sent
                self._events = aiter(self.stream)
            except Exception as error:
                retry = await self._anext_attempt(Outcome(error=error))
                if retry is None:
                    raise
                attempt = retry
            else:
                return
