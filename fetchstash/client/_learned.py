"""Limits learned from refusals: those of models, and the ceilings of an account or a server.

A limit (its window, the pictures that it takes) is a property of a model behind an endpoint and is
remembered for the process; it can be seen (``list(learned_windows)``) and forgotten
(``learned_windows.clear()``). A ceiling (tokens a minute, bytes of a body) is a property of an
account or a server, which is raised and lowered; it is remembered for some minutes.
"""

import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from threading import Lock
from typing import Any, Generic, TypeVar, cast

from fetchstash.client._classify import Unit, Verdict
from fetchstash.client._media_bounds import MediaBounds
from fetchstash.client._policy import Request
from fetchstash.client._sizes import SizeUnit, known_window

MAX_LEARNED = 1_000
"""How many models, deployments and accounts are remembered; the oldest goes first."""

DOUBTFUL_SHARE = 10
"""A window below this part of the known one is doubted until a second refusal states it again."""

CEILING_SECONDS = 300
"""How long a ceiling is remembered: accounts are raised, and proxies reconfigured."""

FEW_PICTURES = 20
"""How many pictures are not "many" yet (Anthropic, Images and vision)."""

Key = TypeVar("Key")
Value = TypeVar("Value")


class _Bounded(OrderedDict[Key, Value], Generic[Key, Value]):
    """A mapping that forgets the entry that was set longest ago."""

    def __setitem__(self, key: Key, value: Value) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > MAX_LEARNED:
            self.popitem(last=False)


@dataclass(frozen=True, slots=True)
class LearnedLimit:
    """A limit that a refusal stated, in ``unit``: a window in tokens, or what it takes of media.

    ``limit`` is as stated, ``tokens`` a window in our count; ``words`` are those that decided, and
    ``rule_id`` names the rule that read them.
    """

    model: str
    endpoint: str
    unit: Unit
    limit: int
    words: str = ""
    rule_id: str = ""
    tokens: int = 0


class LearnedLimits:
    """The limits that providers stated when they refused a request, by endpoint and model.

    Iterate it to see them. A window below what this model has answered, or below a tenth of the
    window that the table knows, is learned only when a second refusal states it, too.
    """

    def __init__(self) -> None:
        self._limits = _Bounded[tuple[str, str, Unit], LearnedLimit]()
        self._answered = _Bounded[tuple[str, str], int]()
        self._doubted = _Bounded[tuple[str, str], int]()
        self._lock = Lock()

    def __iter__(self) -> Iterator[LearnedLimit]:
        with self._lock:
            return iter(list(self._limits.values()))

    def __len__(self) -> int:
        return len(self._limits)

    def answered(self, request: Request, tokens: int) -> None:
        """Remember that the model answered a prompt of so many tokens, as the provider counts."""
        with self._lock:
            key = _model(request)
            self._answered[key] = max(tokens, self._answered.get(key, 0))

    def believes(self, request: Request, limit: int) -> bool:
        """Return whether to trust a stated window; remember a doubted one.

        The second refusal that states the same window is trusted.
        """
        key = _model(request)
        with self._lock:
            smallest = max(self._answered.get(key, 0), (window_of(request) or 0) // DOUBTFUL_SHARE)
            if limit >= smallest:
                return True
            # The model may have moved to a server with less memory: then what it answered there
            # before says nothing any more.
            if self._doubted.get(key) == limit:
                self._answered.pop(key, None)
                return True
            self._doubted[key] = limit
            return False

    def learn(self, request: Request, verdict: Verdict, counted: int) -> None:
        """Remember a stated limit, of a request that has ``counted`` tokens by our count.

        What the provider counts more than we do is its measure, or parts of the request that we do
        not know. A scale out of the ordinary is a misread number, and is bounded.
        """
        limit = verdict.limit or 0
        tokens, scale, rest = 0, 1.0, 0
        if verdict.unit == "tokens":
            stated = verdict.requested_input or max(limit, counted)
            scale = min(max(stated / max(counted, 1), 0.8), 2.0)
            if request.fixed is None and stated > counted:
                # What the caller did not hand over (tools, system prompt) fills the window, too, at
                # its own scale.
                scale, rest = 1.0, stated - counted
            # A tenth at least: a misread number must not leave a conversation without any room.
            tokens = int(max(limit - rest, limit // 10) / scale)
        words = verdict.evidence, verdict.rule_id
        learned = LearnedLimit(
            request.model, request.endpoint, verdict.unit, limit, *words, tokens=tokens
        )
        with self._lock:
            self._limits[*_model(request), verdict.unit] = learned

    def of(self, request: Request) -> int | None:
        """Return the window of the model or deployment of this request, in our count."""
        learned = self._limits.get((*_model(request), "tokens"))
        return learned.tokens if learned else None

    def media_of(self, request: Request, bounds: MediaBounds | None) -> MediaBounds | None:
        """Return the ``bounds`` for the media of this request, with what was learned."""
        for field in fields(MediaBounds):
            learned = self._limits.get((*_model(request), cast("Unit", field.name)))
            if learned is None:
                continue
            bounds = bounds or MediaBounds("learned")
            # Anthropic bounds the edge of a picture more tightly in requests with many of them
            # (2,000 against 8,000 pixels): that must not scale the pictures of all others.
            if learned.unit == "pixels" and "many" in learned.words:
                many = bounds.many or FEW_PICTURES
                bounds = replace(bounds, many=many, many_pixels=learned.limit)
            else:
                stated: dict[str, Any] = {learned.unit: learned.limit}
                bounds = replace(bounds, **stated)
        return bounds

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            for remembered in (self._limits, self._answered, self._doubted):
                remembered.clear()


def _model(request: Request) -> tuple[str, str]:
    return request.endpoint, request.model


def window_of(request: Request) -> int | None:
    """Return the window that a request's profile or the table gives its model, in tokens."""
    return request.window or (known_window(request.model) if request.model else None)


learned_windows = LearnedLimits()
"""What this process learned."""


class Ceilings:
    """The largest request that an account or server takes, by endpoint and account, for a while."""

    def __init__(self) -> None:
        self._ceilings = _Bounded[tuple[str, str, str, str], tuple[int, float]]()
        self._lock = Lock()

    def learn(self, request: Request, size: int, unit: SizeUnit) -> None:
        """Remember a ceiling in our measure."""
        with self._lock:
            self._ceilings[_account(request, unit)] = size, time.monotonic() + CEILING_SECONDS

    def of(self, request: Request, unit: SizeUnit) -> int | None:
        """Return the ceiling for this request, None if none is known or it was long ago."""
        # The monotonic clock: a machine that wakes up, or whose time is set, would keep a ceiling
        # for hours.
        size, until = self._ceilings.get(_account(request, unit), (0, 0.0))
        return size if time.monotonic() < until else None

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._ceilings.clear()


def _account(request: Request, unit: SizeUnit) -> tuple[str, str, str, str]:
    # Tokens a minute are those of a model; a body is read before anybody knows what model it asks.
    return request.endpoint, request.account, request.model if unit == "tokens" else "", unit


def usable_window(configured: int | None, request: Request, *bounds: int | None) -> int | None:
    """Return the context window of a request's model in tokens, None if nobody knows it.

    The window that the caller configured goes first, then the model's own profile, then the table.
    The ``bounds`` that the provider stated hold for them all.
    """
    window = configured or window_of(request)
    return min((size for size in (window, *bounds) if size), default=None)
