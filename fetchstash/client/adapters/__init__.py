"""One module for each SDK, an optional extra each; none is imported before it is asked for.

anthropic       recovery_middleware: a client middleware
openai          recovering: a client whose Chat Completions and Responses recover
google_genai    recovering: a client whose generate_content and its stream recover
litellm         completion, acompletion: the functions, recovering
langchain       recovery_middleware: for create_agent
pydantic_ai     RecoveryCapability for an Agent

Here is what they share: the extra they need, their options, and requests of an SDK's arguments.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from secrets import token_bytes
from types import TracebackType
from typing import Any, Literal, TypedDict

from fetchstash.client._policy import Format, Policy, Request
from fetchstash.client._recovery import Recovery
from fetchstash.client._streams import a_string, is_list
from fetchstash.errors import type_checked


class Needs:
    """Explains a failed import inside its block.

    ``package`` at ``minimum`` or later is what the extra ``extra`` of pyproject.toml asks for.
    """

    def __init__(self, extra: str, package: str, minimum: str) -> None:
        self.extra, self.package, self.minimum = extra, package, minimum

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if not isinstance(error, ImportError):
            return
        try:
            found = f"version {version(self.package)} is installed"
        except PackageNotFoundError:
            found = "it is not installed"
        raise ImportError(
            f"This adapter needs {self.package} {self.minimum} or later, and {found} ({error}). "
            f"Install it with: pip install 'fetchstash[{self.extra}]'"
        ) from error


class Options(TypedDict, total=False):
    """Fields of ``Policy`` that every adapter also takes by name."""

    window: int | None
    max_output: int | None
    compaction_mode: Literal["tiered", "legacy"]
    remaining_seconds: Callable[[], float | None] | None


@type_checked
def configured(recovery: Recovery | None, options: Options) -> Recovery:
    """Return ``recovery`` with these options, a new Recovery if there is none."""
    if recovery is None:
        return Recovery(Policy(**options))
    if options:
        recovery = copy(recovery)  # it shares the states of the conversations
        recovery.policy = replace(recovery.policy, **options)
    return recovery


@dataclass(frozen=True, slots=True)
class Shape:
    """Which arguments of a create function hold what a Recovery has to know.

    ``messages`` is in ``format``. ``outputs`` bound the output, ``fixed`` fill the window and never
    shrink, ``kept`` lead to messages that the provider keeps.
    """

    messages: str
    format: Format
    outputs: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    def output(self, arguments: Mapping[str, Any]) -> str:
        """Return the argument that bounds the output of this call, "" if there is none."""
        return next((name for name in self.outputs if isinstance(arguments.get(name), int)), "")

    def request(
        self,
        arguments: Mapping[str, Any],
        messages: Sequence[Any],
        endpoint: str = "",
        window: int | None = None,
        account: str = "",
    ) -> Request:
        """Return the request that these arguments make, its messages as plain data."""
        output = arguments.get(self.output(arguments))
        return Request(
            messages,
            self.format,
            output,
            model=a_string(arguments.get("model")),
            endpoint=endpoint,
            fixed={name: arguments[name] for name in self.fixed if arguments.get(name)} or None,
            window=window,
            output=output,
            kept_by_provider=next((name for name in self.kept if arguments.get(name)), ""),
            account=account,
        )

    def sending(
        self, create: Callable[[dict[str, Any]], Any], arguments: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Return a function that sends this call with other messages, and less output if asked."""

        def send(messages: Any, *, max_output: int | None = None) -> Any:
            changes: dict[str, Any] = {self.messages: messages}
            if max_output is not None:
                changes[self.output(arguments)] = max_output
            return create({**arguments, **changes})

        return send


CHAT = Shape(
    "messages",
    "openai_chat",
    ("max_completion_tokens", "max_tokens"),
    ("tools", "functions", "response_format"),
)
"""Chat Completions, as OpenAI and LiteLLM have them."""


_HASH_KEY = token_bytes(32)
"""Of this process alone: what stands for a key in one says nothing in another."""


def account_of(*credentials: Any) -> str:
    """Return a keyed hash of the account that these credentials name, "" for none.

    Strings and pydantic's ``SecretStr`` count; a callable that returns keys does by its identity,
    for it renews the keys of one account. The keys themselves are not kept.
    """
    named = [_credential(credential) for credential in credentials]
    if not any(named):
        return ""
    return blake2b("\0".join(named).encode(), digest_size=16, key=_HASH_KEY).hexdigest()


def _credential(credential: Any) -> str:
    reveal = getattr(credential, "get_secret_value", None)
    value = reveal() if callable(reveal) else credential
    return str(id(value)) if callable(value) else a_string(value)


def as_data(messages: Any) -> list[Any] | None:
    """Return messages as a list of plain data, None where they are none (a bare string).

    Objects of an SDK are dumped as the SDKs do it themselves: the fields that were set, without
    those that an object of openai's keeps for the program (``__api_exclude__``).
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        return None
    listed: Iterable[Any] = messages
    return [plain_data(message) for message in listed]


def plain_data(value: Any) -> Any:
    """Return a value with every object of an SDK in it as plain data."""
    if isinstance(value, str | int | float | None):
        return value
    # Asking an exact dict whether it is a Mapping costs ten times as much.
    if value.__class__ is dict or isinstance(value, Mapping):
        return {key: plain_data(inner) for key, inner in value.items()}
    if is_list(value) or isinstance(value, tuple):
        return [plain_data(inner) for inner in value]
    dump = getattr(value, "model_dump", None)
    if not callable(dump):
        return value
    excluded = getattr(value, "__api_exclude__", None)
    return dump(mode="json", exclude_unset=True, by_alias=True, exclude=excluded)
