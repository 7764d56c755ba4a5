"""Values that an agent hands in and keeps: requests, policies, states of conversations."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal, Protocol

from fetchstash.client._media_bounds import MEDIA_BOUNDS, MediaBounds
from fetchstash.errors import type_checked
from fetchstash.text import setting

Message = Any
Format = Literal["openai_chat", "openai_responses", "anthropic", "gemini"]


@dataclass(frozen=True, slots=True)
class Request:
    """A request: its messages, their format, and what else is known of it.

    ``max_output``, in tokens, lets a ``send`` that takes ``max_output=`` ask for less output.
    ``model`` and ``endpoint`` name the model or deployment and the address that serves it.
    ``fixed`` is the rest that fills the window and cannot shrink, as plain data: the system prompt
    and the tools. ``window`` is what the SDK or framework itself says of the model, in tokens.
    ``output`` is the output that the request asks for, in tokens: most providers reserve it.
    ``account`` stands for the key that pays, as a hash: what an account may send is learned by it.
    ``kept_by_provider`` names what leads to earlier messages that the provider keeps and the
    request does not have, such as ``previous_response_id``.
    """

    messages: Sequence[Message]
    format: Format = "openai_chat"
    max_output: int | None = None
    model: str = ""
    endpoint: str = ""
    fixed: Any = None
    window: int | None = None
    output: int | None = None
    kept_by_provider: str = ""
    account: str = ""


class Offload(Protocol):
    """Keeps what leaves the context, so that the agent can still reach it."""

    def keep(self, text: str, name: str) -> str:
        """Keep ``text`` and return a reference to it. ``name`` says in a word or two what it is."""
        ...


@type_checked
@dataclass(frozen=True, slots=True)
class Policy:
    """How the client behaves: the settings ``client.*``, with their defaults.

    ``offload`` keeps what is replaced by a stub; without it a stub only says what was there.
    ``window`` is the model's context window in tokens: with it a request is compacted before it is
    sent. Without it the model's own profile counts, or the table of windows; a model that neither
    knows is compacted only after the provider refused a request. ``max_output`` is the output in
    tokens that is reserved in the window where the request does not say it. ``remaining_seconds``
    returns how long the agent may still work: with little time left only what would not fit is
    compacted. ``media_bounds`` say by provider how many pictures, documents and pages a request may
    have, and how large each: older ones make room before it is sent.
    """

    overflow_fallback: bool = setting(
        True, "Rewrite and retry once when the provider reports an overflow"
    )
    compaction_mode: Literal["tiered", "legacy"] = setting(
        "tiered", "tiered: compact under pressure; legacy: only rewrite after an overflow"
    )
    preserve_recent_critical_messages: int = setting(
        6, "Latest critical messages that stay; only the critical tier may keep fewer", low=0
    )
    compaction_pressure_ratio_soft: float = setting(
        0.70, "Share of the context window above which there is pressure", low=0, high=1
    )
    compaction_pressure_ratio_hard: float = setting(
        0.90, "Share of the context window above which it is critical", low=0, high=1
    )
    compaction_target_ratio: float = setting(
        0.30, "Share of the context window down to which a compaction goes", low=0, high=1
    )
    oversized_fraction: float = setting(
        0.30, "Share of the context window above which one result becomes a stub", low=0, high=1
    )
    churn_warning: int = setting(3, "Compactor calls in one iteration before a warning", low=1)
    offload: Offload | None = None
    window: int | None = None
    max_output: int | None = None
    remaining_seconds: Callable[[], float | None] | None = None
    media_bounds: Sequence[MediaBounds] = MEDIA_BOUNDS


StubKey = tuple[str, int, str]
"""The hash of a content, the target in tokens, and the label that says what kind of stub it is."""

ContentKey = tuple[str, str]
"""The kind of a part with the id of its call ("" for a text), and the hash of its content."""


@dataclass(slots=True)
class Merge:
    """Messages that became one: the hashes of all, in order, and the text that stands for them."""

    hashes: tuple[str, ...]
    text: str


@dataclass(slots=True)
class State:
    """Decisions of one conversation, so that the next request gets the same ones.

    Stubs stay where they are, and prompt caches stay warm. ``memo`` has the stub of each content
    that was ever tried, None where none was smaller. ``stubs`` has the target and the label of
    those in force. ``protected`` are those of messages that were protected at the time (the latest
    exchange, critical texts): they hold there, too. ``token_counts`` and ``digests`` remember what
    was counted and hashed. ``media`` has what took the place of pictures and documents.
    ``refused_at`` is the size of the smallest request that was refused
    without a stated limit, in tokens of our count.
    """

    memo: dict[StubKey, Any] = field(default_factory=dict[StubKey, Any])
    stubs: dict[ContentKey, tuple[int, str]] = field(
        default_factory=dict[ContentKey, tuple[int, str]]
    )
    protected: set[ContentKey] = field(default_factory=set[ContentKey])
    merges: list[Merge] = field(default_factory=list[Merge])
    token_counts: dict[str, int] = field(default_factory=dict[str, int])
    digests: dict[int, tuple[str | bytes, str]] = field(
        default_factory=dict[int, tuple[str | bytes, str]]
    )
    calls: Counter[str] = field(default_factory=Counter[str])
    media: dict[str, Any] = field(default_factory=dict[str, Any])
    refused_at: int | None = None


def content_hash(content: str | bytes) -> str:
    """Return the hash that keys use for a content: 128 bits of BLAKE2b."""
    # A JSON string may hold half of a surrogate pair (RFC 8259, section 8.2), which UTF-8 cannot.
    # 128 bits, since two contents with one hash would get one stub.
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return blake2b(data, digest_size=16).hexdigest()


@type_checked
@dataclass(frozen=True, slots=True)
class CompactionConfig:
    """Sizes in tokens: a history over ``max_tokens`` is compacted to ``target_tokens``.

    ``summarizer_max_tokens`` bounds what a summariser gets.
    """

    max_tokens: int = 120_000
    target_tokens: int = 40_000
    summarizer_max_tokens: int = 180_000
