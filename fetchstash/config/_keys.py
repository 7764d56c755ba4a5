"""Every setting: its room, its type and default (the room's own), its meaning and its bounds."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from fetchstash.client import CompactionConfig, Policy
from fetchstash.fetch import FetchLimits
from fetchstash.handlers import ExtractLimits
from fetchstash.store import StoreLimits
from fetchstash.text import MIN_MAX_CHARS, PreviewLimits, ViewLimits


@dataclass(frozen=True, slots=True)
class IngestLimits:
    """How content is taken in: who picks the handler, and which folders ``stash_file`` may read (none: there is no such tool)."""

    router: Literal["on", "shadow"] = "on"
    read_roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TelemetryLimits:
    """The local event log: its path ("": none), and how large it may grow, in bytes."""

    event_log: str = ""
    event_log_max_bytes: int = 16 * 2**20


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """When a history is compacted, and to what, in tokens; the last bounds what a summariser is handed."""

    history_max_tokens: int = CompactionConfig().max_tokens
    history_target_tokens: int = CompactionConfig().target_tokens
    summarizer_max_tokens: int = CompactionConfig().summarizer_max_tokens


@dataclass(frozen=True, slots=True)
class ProfileChoice:
    """Whose host this is made for."""

    profile: str = "default"


@dataclass(frozen=True, slots=True)
class Key:
    """One setting. ``kind`` is int, float, bool, str, or tuple with its item type in ``item``; ``low`` and ``high`` are bounds."""

    section: str
    name: str
    meaning: str
    kind: type
    item: type | None
    default: Any
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None

    @property
    def path(self) -> str:
        """``section.name``, as the file and every message write it."""
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"FETCHSTASH_{self.section}_{self.name}".upper()

    @property
    def flag(self) -> str | None:
        """The flag without its dashes; None for a section that has none. A list repeats its flag in the singular."""
        if self.section not in ("views", "fetch", "store", "ingest"):
            return None
        if self.path == "fetch.ports":
            return "fetch-port"
        name = self.name.replace("_", "-")
        return name.removesuffix("s") if self.kind is tuple else name


_DEFAULTS: Mapping[str, tuple[object, ...]] = {
    "views": (ViewLimits(), ProfileChoice()),
    "fetch": (FetchLimits(),),
    "store": (StoreLimits(Path()),),
    "ingest": (IngestLimits(),),
    "extract": (ExtractLimits(),),
    "context": (PreviewLimits(),),
    "client": (Policy(), HistoryLimits()),
    "telemetry": (TelemetryLimits(),),
}

# meaning, and the bounds where there are any
_MEANINGS: Mapping[str, tuple[str, float | None, float | None]] = {
    "views.default_max_chars": (
        "maxChars of get_search_content and artifact_slice when not given",
        MIN_MAX_CHARS,
        100_000,
    ),
    "views.max_chars_ceiling": (
        "Body characters of one result at the most, whatever is asked for",
        MIN_MAX_CHARS,
        100_000,
    ),
    "views.inline_threshold": (
        "maxChars of fetch_content when not given: longer texts come as a preview",
        MIN_MAX_CHARS,
        100_000,
    ),
    "views.preview_chars": ("Characters of a preview", 1, 100_000),
    "views.structured": ("Add structuredContent and output schemas to the results", None, None),
    "views.profile": ("The host whose limits apply", None, None),
    "fetch.max_wire_bytes": ("One body as it is sent, in bytes", 1, None),
    "fetch.max_decoded_bytes": ("One body after its content coding is undone, in bytes", 1, None),
    "fetch.deadline_seconds": (
        "One fetch with everything in it: look-up, redirects, robots.txt, retries, body",
        0.1,
        3_600,
    ),
    "fetch.max_redirects": ("Redirects that are followed", 0, 50),
    "fetch.max_header_bytes": ("Header fields of one response, in bytes", 1_024, None),
    "fetch.max_url_chars": ("Characters of a URL", 1, None),
    "fetch.ports": ("Ports that may be dialled", 1, 65_535),
    "fetch.allow_hosts": (
        "Exceptions from the address and port rules: NAME, NAME:PORT or [ADDRESS]:PORT",
        None,
        None,
    ),
    "fetch.allow_nets": (
        "Exceptions from the address rules: networks in CIDR notation",
        None,
        None,
    ),
    "fetch.allow_domains": (
        "If any are named, only these domains and their sub-domains are fetched",
        None,
        None,
    ),
    "fetch.deny_domains": ("Domains that are never fetched, sub-domains included", None, None),
    "fetch.respect_robots": ("Ask robots.txt before a fetch, and do as it says", None, None),
    "fetch.user_agent": ("User-Agent header; empty: fetchstash and its version", None, None),
    "fetch.proxy": (
        "HTTP proxy to go through (http://HOST:PORT); empty: none, whatever the environment says",
        None,
        None,
    ),
    "fetch.per_host_concurrency": ("Requests to one host at a time", 1, 1_000),
    "fetch.per_host_rate": ("Requests a second to one host; 0: no limit", 0, None),
    "store.url": (
        "Which store: file:FOLDER, or memory: to keep nothing; empty: store.folder",
        None,
        None,
    ),
    "store.folder": ("Where artifacts are kept; empty: the user's data folder", None, None),
    "store.run": ("Scope of lists, search and clean-up", None, None),
    "store.ephemeral": ("Delete the run's artifacts at shutdown", None, None),
    "store.max_age_days": ("Days after which an artifact goes", 0, None),
    "store.max_total_bytes": ("Bytes of all artifacts; the least recently used go first", 1, None),
    "store.max_artifacts": ("Artifacts that are kept; the least recently used go first", 1, None),
    "ingest.router": (
        "on: what the bytes are picks the handler; shadow: the declared type does, and both are recorded",
        None,
        None,
    ),
    "ingest.read_roots": (
        "Folders that stash_file may read; none: there is no such tool",
        None,
        None,
    ),
    "extract.max_chars": (
        "Characters that one document may become; what is text already is kept whole",
        1,
        None,
    ),
    "extract.pdf_max_pages": ("Pages of a PDF that are read", 1, None),
    "extract.memory_mb": ("Memory of a worker, in MiB", 64, None),
    "extract.cpu_seconds": ("CPU seconds of one extraction", 0.1, None),
    "extract.wall_seconds": ("Seconds of one extraction", 0.1, None),
    "context.max_tokens_per_file": ("Tokens of one preview or read_file", 1, None),
    "context.max_total_output": ("Characters of one preview or read_file", 1, None),
    "context.max_lines": ("Lines of a text preview", 1, None),
    "context.max_line_length": ("Characters of one line in a preview", 1, None),
    "context.max_nesting_depth": ("Depth of structured data in a preview", 1, None),
    "context.max_array_items": ("Items of one array in a preview", 1, None),
    "context.max_object_keys": ("Keys of one object in a preview", 1, None),
    "context.max_columns": ("Columns of a table in a preview", 1, None),
    "context.rows_head": ("First rows of a table in a preview", 0, None),
    "context.rows_tail": ("Last rows of a table in a preview", 0, None),
    "context.max_cell_length": ("Characters of one cell in a preview", 1, None),
    "context.max_image_size_bytes": ("Bytes of one picture that a model is shown", 1_024, None),
    "context.max_image_edge_px": ("Longer edge of such a picture, in pixels", 16, None),
    "client.overflow_fallback": (
        "Rewrite and retry once where the provider says that the context overflowed",
        None,
        None,
    ),
    "client.compaction_mode": (
        "tiered: compact under pressure; legacy: only rewrite after an overflow",
        None,
        None,
    ),
    "client.preserve_recent_critical_messages": (
        "Latest critical messages that stay; only the critical tier may take fewer",
        0,
        None,
    ),
    "client.compaction_pressure_ratio_soft": (
        "Share of the context window from which there is pressure",
        0,
        1,
    ),
    "client.compaction_pressure_ratio_hard": (
        "Share of the context window from which it is critical",
        0,
        1,
    ),
    "client.oversized_fraction": (
        "Share of the context window above which one result becomes a stub",
        0,
        1,
    ),
    "client.history_max_tokens": ("Tokens above which HistoryCompactor compacts", 1, None),
    "client.history_target_tokens": ("Tokens that it compacts to", 1, None),
    "client.summarizer_max_tokens": ("Tokens that a summariser is handed at the most", 1, None),
    "client.churn_warning": ("Compactor calls in one iteration before a warning", 1, None),
    "telemetry.event_log": ("Path of the local event log; empty: none", None, None),
    "telemetry.event_log_max_bytes": ("Size that the event log may reach, in bytes", 1_024, None),
}

# Measured limits of the hosts: VS Code spills a result over 8 KiB to a file, Codex cuts the middle
# out of one over some 48,000 characters, the Gemini CLI spills one over 40,000. Claude Code is told
# the size in the list of tools instead.
_BYTES_OF_VS_CODE: Mapping[str, Any] = {
    "default_max_chars": 6_800,
    "max_chars_ceiling": 6_800,
    "inline_threshold": 6_800,
}
PROFILES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "claude-code": {},
    "claude-desktop": {},
    "codex": {"max_chars_ceiling": 45_000},
    "copilot": _BYTES_OF_VS_CODE,
    "cursor": {},
    "gemini": {"max_chars_ceiling": 38_000},
    "vscode": _BYTES_OF_VS_CODE,
}
COUNTING_BYTES = frozenset({"vscode", "copilot"})


_CHOICES: Mapping[str, tuple[str, ...]] = {
    "views.profile": tuple(PROFILES),
    "ingest.router": ("on", "shadow"),
    "client.compaction_mode": ("tiered", "legacy"),
}


def _key(path: str) -> Key:
    """Join a meaning with the room's own field: its type and its default."""
    section, _, name = path.partition(".")
    room = next(room for room in _DEFAULTS[section] if hasattr(room, name))
    hint = get_type_hints(type(room))[name]
    kind, item = hint, None
    if get_origin(hint) is tuple:
        kind, item = tuple, get_args(hint)[0]
    elif hint is Path or path in _CHOICES:
        kind = str
    meaning, low, high = _MEANINGS[path]
    default = "" if hint is Path else getattr(room, name)
    return Key(section, name, meaning, kind, item, default, _CHOICES.get(path, ()), low, high)


KEYS: Mapping[str, Key] = {path: _key(path) for path in _MEANINGS}
