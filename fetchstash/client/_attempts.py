"""Attempts and their outcomes: what a recovery decides to send, and what it is told of it."""

from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from fetchstash.client._formats import Message
from fetchstash.client._threads import off_loop

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
        """Return what ``send`` returns for these messages."""
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


Steps = Generator[Attempt, Outcome, Outcome]
"""Yields what to send, takes what came of it, and returns the outcome that is the caller's."""


def step(steps: Steps, outcome: Outcome | None = None) -> Attempt | Outcome:
    """Return what to send next, or the outcome that ``steps`` end with."""
    try:
        return next(steps) if outcome is None else steps.send(outcome)
    except StopIteration as end:
        final: Outcome = end.value
        return final


async def astep(steps: Steps, outcome: Outcome | None = None, *, large: bool) -> Attempt | Outcome:
    """Do as ``step`` does; what is made smaller for a ``large`` history is made so in a thread."""
    shrinks = outcome is None or outcome.problem is not None
    return await off_loop(step, steps, outcome, large=large and shrinks)


def drive(steps: Steps, attempt: Callable[[Attempt], Outcome]) -> Any:
    """Carry out ``steps``, and return the response or raise the error that they end with."""
    following = step(steps)
    while isinstance(following, Attempt):
        following = step(steps, attempt(following))
    return _response(following)


async def adrive(
    steps: Steps, attempt: Callable[[Attempt], Awaitable[Outcome]], *, large: bool
) -> Any:
    """Do as ``drive`` does, where an attempt is awaited. The history may be ``large``."""
    following = await astep(steps, large=large)
    while isinstance(following, Attempt):
        following = await astep(steps, await attempt(following), large=large)
    return _response(following)


def _response(outcome: Outcome) -> Any:
    if outcome.error is not None:
        raise outcome.error
    return outcome.response
