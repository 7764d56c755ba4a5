"""The errors: each has a stable code, says what happened, and carries what to do next as data.

A package raises no others. A next step names a method of Stash or Artifact, or a setting. Each
front end words it in its own terms: the server as a tool call, the command as a command line, the
library as a method call.
"""

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from numbers import Integral
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeVar, cast, get_args, get_origin

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """A next step as data: the name of a method of Stash or Artifact, or "setting".

    Arguments are JSON values under the method's own names; ``ref`` is the artifact, ``refs`` are
    several. A setting has ``name`` ("fetch.allow_hosts") and the ``value`` that would help, a list
    where the setting is one. Call("slice", {"ref": "art_…", "unit": "pages", "start": 3}) is
    worded as a noun; "repair" and "setting" as a clause ("the operator can allow it"), which may
    stand alone as a sentence.
    """

    action: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


Wording = Callable[[Call], str]
"""How a front end words a next step."""


def as_method(call: Call) -> str:
    """Word a next step for a program that uses the library."""
    arguments = {name: value for name, value in call.arguments.items() if value is not None}
    if refs := arguments.pop("refs", None):
        arguments["refs_or_urls"] = refs
    if call.action == "setting":
        return f"pass settings={{{arguments['name']!r}: {arguments['value']!r}}} to open_stash"
    if call.action == "repair":
        return "call stash.repair()"
    if call.action == "info":
        return "fetchstash.as_shown(artifact.facts)"
    of_stash = call.action in ("export", "delete")
    receiver = "artifact" if not of_stash and arguments.pop("ref", None) else "stash"
    written = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"{receiver}.{call.action}({written})"


def worded(sentence: str, calls: Sequence[Call], word: Wording = as_method) -> str:
    """Return ``sentence`` with each ``{}`` replaced, in order, by one of the calls in words."""
    if not calls:
        return sentence
    first, *rest = sentence.split("{}", len(calls))
    filled = first + "".join(word(call) + text for call, text in zip(calls, rest, strict=False))
    clause = calls[0].action in ("setting", "repair")
    return filled[:1].upper() + filled[1:] if clause and not first else filled


def did_you_mean(wrong: str, known: Iterable[str], prefix: str = "") -> str:
    """Return a question with the known name that is near ``wrong``, or "" if none is.

    ``prefix`` begins all of them, and makes none near.
    """
    import difflib  # noqa: PLC0415 - for mistakes alone

    names = [name.removeprefix(prefix) for name in known if name != wrong]
    near = difflib.get_close_matches(wrong.removeprefix(prefix)[:100], names, n=1)
    return f"Did you mean {prefix}{near[0]}?" if near else ""


class FetchstashError(Exception):
    """The base class. ``what`` happened and the ``next_step`` are plain sentences.

    Each ``{}`` of ``next_step`` stands for one of ``calls``, in order. ``details`` are facts for
    ``_meta`` and ``--json`` (a status, seconds to wait); no line shows them. ``excerpt`` is the
    beginning of what the server at ``source`` answered, or what a document from there holds
    instead: untrusted text, for a fence alone.
    """

    code: ClassVar[str] = "internal"

    def __init__(
        self,
        what: str,
        next_step: str,
        *calls: Call,
        excerpt: str = "",
        source: str = "",
        **details: Any,
    ) -> None:
        super().__init__(what, next_step, *calls)
        self.what = what
        self.next_step = next_step
        self.calls = calls
        self.excerpt = excerpt
        self.source = source
        self.details = details

    def advice(self, word: Wording = as_method) -> str:
        """Return what to do next as one sentence, with its calls in the words of a front end."""
        return worded(self.next_step, self.calls, word)

    def line(self, word: Wording = as_method) -> str:
        """Return the line that is shown: ``[code] what happened. What to do next.``."""
        return f"[{self.code}] {self.what} {self.advice(word)}"

    def __str__(self) -> str:
        return self.line()


class Refused(FetchstashError):
    """An address, port, scheme or domain that policy forbids. ``rule`` names it for audit logs."""

    code = "refused"

    def __init__(
        self, what: str, next_step: str, *calls: Call, rule: str = "", **details: Any
    ) -> None:
        super().__init__(what, next_step, *calls, **details)
        self.rule = rule


class RobotsRefused(FetchstashError):
    """The site's robots.txt forbids this URL to us (RFC 9309)."""

    code = "robots"


class FetchFailed(FetchstashError):
    """No answer came, or one that is not HTTP."""

    code = "fetch_failed"


class HttpError(FetchstashError):
    """The server answered with 4xx or 5xx (RFC 9110, section 15)."""

    code = "http_error"


class TimedOut(FetchstashError):
    """The deadline of a fetch passed before anything could be kept."""

    code = "timeout"


class TooLarge(FetchstashError):
    """More than a limit allows."""

    code = "too_large"


class UnknownRef(FetchstashError):
    """There is no artifact of this reference or URL."""

    code = "unknown_ref"


class ExpiredRef(FetchstashError):
    """The artifact was here, and retention removed it."""

    code = "expired_ref"


class NoText(FetchstashError):
    """The artifact has no text: it is binary, or nothing could be extracted."""

    code = "no_text"


class OutOfRange(FetchstashError):
    """There is no such line, page, row, character, heading, sheet, member or JSON value."""

    code = "out_of_range"


class BadArgument(FetchstashError):
    """An argument, a setting or a file is invalid."""

    code = "bad_argument"


class BadPattern(FetchstashError):
    """RE2 rejects the pattern."""

    code = "bad_pattern"


class Busy(FetchstashError):
    """A lock is held, or all workers are busy; the same call may succeed later."""

    code = "busy"


class OverQuota(FetchstashError):
    """A tenant of a service has used up a quota; details: retry_after_seconds."""

    code = "quota"


class StoreError(FetchstashError):
    """The disk, the catalogue or the bucket failed.

    ``lasting``: trying again does not help. Clients of a service are told what happened, which
    names no place, and of other failures only that there was one.
    """

    code = "store_error"

    def __init__(
        self, what: str, next_step: str, *calls: Call, lasting: bool = False, **details: Any
    ) -> None:
        super().__init__(what, next_step, *calls, **details)
        self.lasting = lasting


class ServerFailed(FetchstashError):
    """A server behind the gateway is not there, or ended in the middle of a call."""

    code = "server_failed"


class Internal(FetchstashError):
    """A fault of fetchstash itself."""

    code = "internal"


_Expected = tuple[Callable[[Any], bool], str]


def type_checked(target: T) -> T:
    """Return a function that refuses arguments of a wrong type, or a class of such methods.

    A call raises BadArgument for a count below its least, and for what is not as annotated: of
    that class, one of the literals, a sequence of such items, or with the methods of a Protocol.
    """
    if isinstance(target, type):
        for name, method in [*vars(target).items()]:
            if inspect.isfunction(method) and (name[0] != "_" or name == "__init__"):
                setattr(target, name, type_checked(method))
        return cast("T", target)
    function: Any = target
    expected: dict[str, _Expected] = {}

    def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not expected:  # left to the first call: annotations may name what comes later
            parameters = inspect.signature(function, eval_str=True).parameters
            assert all(item.kind is not item.VAR_POSITIONAL for item in parameters.values())
            expected.update({key: _expected(item.annotation) for key, item in parameters.items()})
        for name, value in (*zip(expected, args, strict=False), *kwargs.items()):
            is_right, words = expected.get(name, _ANYTHING)
            if not is_right(value):
                raise BadArgument(f"{name} is {_got(value)}.", f"It must be {words}.")
            if name in COUNTS and value is not None and value < COUNTS[name][0]:
                raise BadArgument(f"{name} is {value}.", f"It must be {between(COUNTS[name][0])}.")

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        check(args, kwargs)
        return function(*args, **kwargs)

    @wraps(function)
    async def call_later(*args: Any, **kwargs: Any) -> Any:
        check(args, kwargs)
        return await function(*args, **kwargs)

    return cast("T", call_later if inspect.iscoroutinefunction(function) else call)


COUNTS: Mapping[str, tuple[int, int | None]] = {
    "context": (0, 50),
    "limit": (0, None),
    "max_chars": (1, None),
    "max_matches": (1, 1_000),
    "max_results": (1, 50),
    "offset": (0, None),
}
"""The least and the most that counts may be, by the names of their parameters.

The most holds for tools: a program may ask for more.
"""


def between(low: float, high: float | None = None) -> str:
    """Return bounds, both included, in words: "1 to 65,535", "1 or more"."""
    return f"{low:,.10g} or more" if high is None else f"{low:,.10g} to {high:,.10g}"


_ANYTHING: _Expected = lambda _: True, ""
_CLASSES: Mapping[Any, tuple[Any, str]] = {
    int: (Integral, "a whole number"),
    float: (int | float, "a number"),
    str: (str, "a string"),
    bool: (bool, "True or False"),
    Path: (Path, "a path"),
    NoneType: (NoneType, "None"),
}


def _expected(hint: Any) -> _Expected:
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if isinstance(hint, TypeVar):
        kind, parts = UnionType, hint.__constraints__ or (hint.__bound__ or Any,)
    if kind in (typing.Union, UnionType):
        tests, names = zip(*map(_expected, parts), strict=True)
        return lambda value: any(is_right(value) for is_right in tests), " or ".join(names)
    if kind is Literal:
        return lambda value: value in parts, f"one of {', '.join(map(str, parts))}"
    if kind is Callable:
        return callable, "a function"
    if kind in (Any, object, inspect.Parameter.empty) or not isinstance(kind, type):
        return _ANYTHING
    if typing.is_typeddict(kind):
        kind = dict
    if kind in (Mapping, Sequence):
        is_item, item = _expected(parts[0])

        def is_filled(value: Any) -> bool:
            is_kind = isinstance(value, kind) and not isinstance(value, str | bytes)
            return is_kind and all(map(is_item, cast("Iterable[Any]", value)))

        words = "a mapping, each key" if kind is Mapping else "a list, each item"
        return is_filled, f"{words} {item}" if item else words.partition(",")[0]
    name = f"{'an' if kind.__name__[0] in 'AEIO' else 'a'} {kind.__name__}"
    if getattr(kind, "_is_protocol", False):
        members = [member for member in dir(kind) if member[0] != "_"]
        return lambda value: all(hasattr(value, member) for member in members), name
    classes, name = _CLASSES.get(kind, (kind, name))
    is_flag = classes is bool
    return lambda value: isinstance(value, classes) and isinstance(value, bool) == is_flag, name


def _got(value: Any) -> str:
    """Return a value in words; a longer text may hold a secret, or be a document's."""
    shown = repr(value) if isinstance(value, str | float | Integral | None) else ""
    return shown if 0 < len(shown) <= 20 else f"of the type {type(value).__name__}"
