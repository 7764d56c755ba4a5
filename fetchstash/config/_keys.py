"""Settings: a table of keys with meanings, bounds and defaults."""

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
class OAuthLimits:
    """Whose access tokens are taken, for what, and what their claims are called.

    ``resource`` is the service's own URL where the provider calls the audience otherwise.
    """

    issuer: str = ""
    audience: str = ""
    resource: str = ""
    tenant_claim: str = "tenant"
    principal_claim: str = "sub"
    read_scope: str = "read"
    fetch_scope: str = "fetch"


@dataclass(frozen=True, slots=True)
class IngestLimits:
    """The rule that picks the handler, and the folders that ``stash_file`` may read.

    Without folders there is no such tool.
    """

    router: Literal["on", "shadow"] = "on"
    read_roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Whom the service over HTTP answers, its certificate, and the bounds of a request.

    ``forwarded`` names the proxies whose X-Forwarded headers are believed.
    """

    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    forwarded: tuple[str, ...] = ()
    tls_cert: str = ""
    tls_key: str = ""
    max_body_bytes: int = 2**20
    grace_seconds: float = 30.0
    metrics: str = ""
    audit_log: str = ""


@dataclass(frozen=True, slots=True)
class TelemetryLimits:
    """The path of the local event log ("": none) and its largest size in bytes."""

    event_log: str = ""
    event_log_max_bytes: int = 16 * 2**20


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """When HistoryCompactor compacts and to what, in tokens.

    The last bounds the input of a summariser.
    """

    history_max_tokens: int = CompactionConfig().max_tokens
    history_target_tokens: int = CompactionConfig().target_tokens
    summarizer_max_tokens: int = CompactionConfig().summarizer_max_tokens


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """What one tenant of a service may use; 0: any amount.

    Conversions are those that one replica runs for it at a time, the rest is of all replicas.
    """

    requests_per_minute: int = 3_000
    fetched_bytes_per_day: int = 20 * 2**30
    stored_bytes: int = 0
    artifacts: int = 0
    concurrent_conversions: int = 0


AUTO = "auto"


@dataclass(frozen=True, slots=True)
class ProfileChoice:
    """The host whose limits apply; "auto": the one that names itself."""

    profile: str = AUTO


@dataclass(frozen=True, slots=True)
class Key:
    """One setting.

    ``kind`` is int, float, bool, str, or tuple with its item type in ``item``. ``low`` and ``high``
    are inclusive bounds.
    """

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
        """The flag without its dashes, None for a section without flags.

        A list repeats its flag in the singular.
        """
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
    "http": (HttpLimits(),),
    "quota": (QuotaLimits(),),
    "oauth": (OAuthLimits(),),
}

_MEANINGS: Mapping[str, str] = {
    "views.default_max_chars": "maxChars of get_search_content and artifact_slice when not given",
    "views.max_chars_ceiling": "Most body characters of one result, whatever is asked for",
    "views.inline_threshold": (
        "maxChars of fetch_content when not given: longer texts come as a preview"
    ),
    "views.preview_chars": "Characters of a preview",
    "views.structured": "Add structuredContent and output schemas to the results",
    "views.profile": "The host whose limits apply; auto: the host that the client says it is",
    "fetch.max_wire_bytes": "One body as it is sent, in bytes",
    "fetch.max_decoded_bytes": "One body after its content coding is decoded, in bytes",
    "fetch.deadline_seconds": "One call in all: look-up, redirects, retries, body, extraction",
    "fetch.max_redirects": "Redirects that are followed",
    "fetch.max_header_bytes": "Header fields of one response, in bytes",
    "fetch.max_url_chars": "Characters of a URL",
    "fetch.ports": "Ports that may be used",
    "fetch.allow_hosts": (
        "Exceptions from the address and port rules: NAME, NAME:PORT or [ADDRESS]:PORT"
    ),
    "fetch.allow_nets": "Exceptions from the address rules: networks in CIDR notation",
    "fetch.allow_domains": "Fetch only these domains and their sub-domains; empty: all",
    "fetch.deny_domains": "Never fetch these domains and their sub-domains",
    "fetch.respect_robots": "Ask robots.txt before a fetch and obey it",
    "fetch.user_agent": "User-Agent header; empty: fetchstash and its version",
    "fetch.proxy": ("HTTP proxy (http://HOST:PORT); empty: none, whatever the environment says"),
    "fetch.per_host_concurrency": "Requests to one host at a time",
    "fetch.per_host_rate": "Requests a second to one host; 0: no limit",
    "fetch.ask": (
        "Ask the person about a private host that is refused, where the client can ask (stdio "
        "only); the person types the host's name"
    ),
    "fetch.browser": (
        "off; auto: pages that are only scripts are rendered in a browser behind the guard (extra "
        "browser); or the domains whose pages always are"
    ),
    "store.url": (
        "The store: file:FOLDER, a bucket (s3://BUCKET/PREFIX, gs://, az://), or memory: to keep "
        "nothing; empty: store.folder"
    ),
    "store.folder": (
        "Where artifacts are kept, or the cache of a bucket; empty: the user's data folder, or "
        "cache folder"
    ),
    "store.endpoint": "Endpoint of a bucket, such as https://s3.example.org; empty: the provider's",
    "store.region": "Region of an s3 bucket; empty: that of the environment",
    "store.encryption": (
        "Encryption of an s3 bucket on the server: AES256, aws:kms or aws:kms:KEY; empty: the "
        "bucket's default"
    ),
    "store.cache_bytes": (
        "Most bytes of a bucket's artifacts in the cache on this machine, for each tenant"
    ),
    "store.run": (
        "Scope of lists, search, look-up by URL and clean-up; auto: one for each project "
        "(the first of the client's roots, else the working folder); *: all"
    ),
    "store.ephemeral": "Delete the run's artifacts at shutdown",
    "store.max_age_days": "Days after which an artifact is deleted",
    "store.max_total_bytes": "Most bytes of all artifacts; the least recently used are evicted",
    "store.max_artifacts": "Most artifacts; the least recently used are evicted",
    "ingest.router": (
        "on: the bytes pick the handler; shadow: the declared type does, and both are recorded"
    ),
    "ingest.read_roots": "Folders that stash_file may read; none: there is no such tool",
    "extract.max_chars": (
        "Most characters extracted from one document; what is text already is kept whole"
    ),
    "extract.pdf_max_pages": "Pages of a PDF that are read",
    "extract.memory_mb": "Memory of a worker, in MiB",
    "extract.cpu_seconds": "CPU seconds of one extraction",
    "extract.wall_seconds": "Seconds of one extraction",
    "extract.plugins": "Installed packages whose formats are loaded, in the worker alone",
    "extract.ocr": (
        "auto: pages without text are read when they are asked for, where the extra ocr is "
        "installed; off: never"
    ),
    "extract.confine": (
        "required: a worker that this system cannot confine reads nothing (the default of serve "
        "--http); auto: serve says so once at its start"
    ),
    "context.max_tokens_per_file": "Most tokens of one preview or read_file",
    "context.max_total_output": "Most characters of one preview or read_file",
    "context.max_lines": "Lines of a text preview",
    "context.max_line_length": "Characters of one line in a preview",
    "context.max_nesting_depth": "Depth of structured data in a preview",
    "context.max_array_items": "Items of one array in a preview",
    "context.max_object_keys": "Keys of one object in a preview",
    "context.max_columns": "Columns of a table in a preview",
    "context.rows_head": "First rows of a table in a preview",
    "context.rows_tail": "Last rows of a table in a preview",
    "context.max_cell_length": "Characters of one cell in a preview",
    "context.max_image_size_bytes": "Bytes of one picture that a model is shown",
    "context.max_image_edge_px": "Longer edge of such a picture, in pixels",
    "client.overflow_fallback": ("Rewrite and retry once when the provider reports an overflow"),
    "client.compaction_mode": (
        "tiered: compact under pressure; legacy: only rewrite after an overflow"
    ),
    "client.preserve_recent_critical_messages": (
        "Latest critical messages that stay; only the critical tier may keep fewer"
    ),
    "client.compaction_pressure_ratio_soft": (
        "Share of the context window above which there is pressure"
    ),
    "client.compaction_pressure_ratio_hard": (
        "Share of the context window above which it is critical"
    ),
    "client.oversized_fraction": (
        "Share of the context window above which one result becomes a stub"
    ),
    "client.history_max_tokens": "Tokens above which HistoryCompactor compacts",
    "client.history_target_tokens": "Tokens that HistoryCompactor compacts to",
    "client.summarizer_max_tokens": "Most tokens that a summariser is given",
    "client.churn_warning": "Compactor calls in one iteration before a warning",
    "telemetry.event_log": "Path of the local event log; empty: none",
    "telemetry.event_log_max_bytes": "Largest size of the event log, in bytes",
    "http.hosts": (
        "Hosts that requests may name: NAME or NAME:PORT; the address of --http always is one"
    ),
    "http.origins": "Web pages that may call, by their origin (https://app.example.org)",
    "http.forwarded": (
        "Addresses or networks of the proxies whose X-Forwarded-For and -Proto are believed"
    ),
    "http.tls_cert": "File of the certificate and its chain, in PEM; empty: no TLS",
    "http.tls_key": "File of its private key, in PEM",
    "http.max_body_bytes": "One request, in bytes",
    "http.grace_seconds": "Seconds that calls may take to end after SIGTERM",
    "http.metrics": "HOST:PORT where Prometheus reads /metrics; empty: nowhere",
    "http.audit_log": "File of the audit log; empty: its lines go to the log on stderr",
    "quota.requests_per_minute": "Requests of one tenant within a minute; 0: any number",
    "quota.fetched_bytes_per_day": "Bytes that one tenant may fetch in a day (UTC); 0: any number",
    "quota.stored_bytes": (
        "Bytes that one tenant may keep before its fetches are refused; 0: store.max_total_bytes "
        "alone holds, which evicts"
    ),
    "quota.artifacts": (
        "Artifacts that one tenant may keep before its fetches are refused; 0: "
        "store.max_artifacts alone holds, which evicts"
    ),
    "quota.concurrent_conversions": (
        "Documents of one tenant that a replica reads at a time; 0: one less than it has processors"
    ),
    "oauth.issuer": (
        "The identity provider whose access tokens serve --http takes (https://…), as their iss "
        "names it; empty: only the tokens of fetchstash token"
    ),
    "oauth.audience": "What their aud must be: the URL of /mcp, as clients reach it",
    "oauth.resource": "That URL, where the provider calls the audience otherwise",
    "oauth.tenant_claim": "The claim that names the tenant",
    "oauth.principal_claim": "The claim that names the person or program",
    "oauth.read_scope": "What the provider calls the scope of the tools that read what is kept",
    "oauth.fetch_scope": "What the provider calls the scope of all tools",
}

_BOUNDS: Mapping[str, tuple[float, float | None]] = {
    "views.default_max_chars": (MIN_MAX_CHARS, 100_000),
    "views.max_chars_ceiling": (MIN_MAX_CHARS, 100_000),
    "views.inline_threshold": (MIN_MAX_CHARS, 100_000),
    "views.preview_chars": (1, 100_000),
    "fetch.max_wire_bytes": (1, None),
    "fetch.max_decoded_bytes": (1, None),
    "fetch.deadline_seconds": (0.1, 3_600),
    "fetch.max_redirects": (0, 50),
    "fetch.max_header_bytes": (1_024, None),
    "fetch.max_url_chars": (1, None),
    "fetch.ports": (1, 65_535),
    "fetch.per_host_concurrency": (1, 1_000),
    "fetch.per_host_rate": (0, None),
    "store.max_age_days": (0, None),
    "store.max_total_bytes": (1, None),
    "store.max_artifacts": (1, None),
    "store.cache_bytes": (0, None),
    "extract.max_chars": (1, None),
    "extract.pdf_max_pages": (1, None),
    "extract.memory_mb": (64, None),
    "extract.cpu_seconds": (0.1, None),
    "extract.wall_seconds": (0.1, None),
    "context.max_tokens_per_file": (1, None),
    "context.max_total_output": (1, None),
    "context.max_lines": (1, None),
    "context.max_line_length": (1, None),
    "context.max_nesting_depth": (1, None),
    "context.max_array_items": (1, None),
    "context.max_object_keys": (1, None),
    "context.max_columns": (1, None),
    "context.rows_head": (0, None),
    "context.rows_tail": (0, None),
    "context.max_cell_length": (1, None),
    "context.max_image_size_bytes": (1_024, None),
    "context.max_image_edge_px": (16, None),
    "client.preserve_recent_critical_messages": (0, None),
    "client.compaction_pressure_ratio_soft": (0, 1),
    "client.compaction_pressure_ratio_hard": (0, 1),
    "client.oversized_fraction": (0, 1),
    "client.history_max_tokens": (1, None),
    "client.history_target_tokens": (1, None),
    "client.summarizer_max_tokens": (1, None),
    "client.churn_warning": (1, None),
    "telemetry.event_log_max_bytes": (1_024, None),
    "http.max_body_bytes": (1_024, 2**26),
    "http.grace_seconds": (0, 3_600),
    "quota.requests_per_minute": (0, None),
    "quota.fetched_bytes_per_day": (0, None),
    "quota.stored_bytes": (0, None),
    "quota.artifacts": (0, None),
    "quota.concurrent_conversions": (0, None),
}

# Limits of the hosts (scripts/ci hosts): VS Code moves a result over 8 KiB to a file, Codex
# cuts the middle out of one over 40,000 bytes with its own lines, the Gemini CLI moves one over
# 40,000 characters to a file. Claude Code reads the size from the list of tools instead.
_BYTES_OF_VS_CODE: Mapping[str, Any] = {
    "default_max_chars": 6_800,
    "max_chars_ceiling": 6_800,
    "inline_threshold": 6_800,
}
PROFILES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "claude-code": {},
    "claude-desktop": {},
    "codex": {"max_chars_ceiling": 38_000},
    "copilot": _BYTES_OF_VS_CODE,
    "cursor": {},
    "gemini": {"max_chars_ceiling": 38_000},
    "vscode": _BYTES_OF_VS_CODE,
}
COUNTING_BYTES = frozenset({"codex", "copilot", "vscode"})
CLIENT_NAMES: Mapping[str, str] = {
    "claude-code": "claude-code",
    "claude-ai": "claude-desktop",
    "codex-mcp-client": "codex",
    "cursor": "cursor",
    "gemini-cli": "gemini",
    "github-copilot": "copilot",
    "visual-studio-code": "vscode",
    "vscode": "vscode",
}
"""The profile of a client, by the beginning of its name in clientInfo: ``cursor-vscode`` too.

Names are compared in lower case, with - for blanks.
"""


def profile_of(client_name: str) -> str:
    """Return the profile of a client by the name that it gives itself, "default" if unknown."""
    name = "-".join(client_name.lower().split())
    profiles = (profile for start, profile in CLIENT_NAMES.items() if name.startswith(start))
    return next(profiles, "default")


_CHOICES: Mapping[str, tuple[str, ...]] = {
    "views.profile": (AUTO, *PROFILES),
    "ingest.router": ("on", "shadow"),
    "extract.ocr": ("auto", "off"),
    "extract.confine": ("auto", "required"),
    "client.compaction_mode": ("tiered", "legacy"),
}


_HINTS: Mapping[type, Mapping[str, Any]] = {
    type(room): get_type_hints(type(room)) for rooms in _DEFAULTS.values() for room in rooms
}


def _key(path: str) -> Key:
    """Join a meaning and bounds with the type and default of the room's own field."""
    section, _, name = path.partition(".")
    room = next(room for room in _DEFAULTS[section] if hasattr(room, name))
    hint = _HINTS[type(room)][name]
    kind, item = hint, None
    if get_origin(hint) is tuple:
        kind, item = tuple, get_args(hint)[0]
    elif hint is Path or path in _CHOICES:
        kind = str
    low, high = _BOUNDS.get(path, (None, None))
    default = "" if hint is Path else getattr(room, name)
    return Key(
        section, name, _MEANINGS[path], kind, item, default, _CHOICES.get(path, ()), low, high
    )


KEYS: Mapping[str, Key] = {path: _key(path) for path in _MEANINGS}
