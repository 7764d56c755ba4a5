"""Settings: a table of keys with meanings, bounds and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from fetchstash.client import CompactionConfig, Policy
from fetchstash.fetch import FetchLimits
from fetchstash.handlers import ExtractLimits
from fetchstash.store import StoreLimits
from fetchstash.text import PreviewLimits, Setting, ViewLimits, setting

AUTO = "auto"
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


@dataclass(frozen=True, slots=True)
class OAuthLimits:
    """The identity provider whose access tokens are accepted, and the claims that are read.

    ``resource`` is the URL of /mcp where ``audience`` is another name.
    """

    issuer: str = setting(
        "",
        "The identity provider whose access tokens serve --http takes (https://…), as their "
        "iss names it; empty: only the tokens of fetchstash token",
    )
    audience: str = setting("", "What their aud must be: the URL of /mcp, as clients reach it")
    resource: str = setting("", "The URL of /mcp, where oauth.audience is another name")
    tenant: str = setting("", "The tenant of everybody of this provider; empty: a claim names it")
    tenant_claim: str = setting(
        "tenant", "The claim that names the tenant, or its path with dots; a text or a list"
    )
    tenant_map: tuple[str, ...] = setting(
        (), "Tenants by the values of that claim, each VALUE=TENANT; the first one that fits counts"
    )
    principal_claim: str = setting(
        "sub", "The claim that names the person or program, or its path with dots"
    )
    scope_claim: str = setting(
        "", "The claim of the scopes, roles or groups, or its path; empty: scope, else scp"
    )
    read_scope: str = setting(
        "read", "What the provider calls the scope of the tools that read what is kept"
    )
    fetch_scope: str = setting("fetch", "What the provider calls the scope of all tools")
    default_scope: Literal["none", "read", "fetch"] = setting(
        "none", "What a token may do that has neither of the two"
    )
    client_id: str = setting(
        "", "The client by which opaque tokens are introspected (RFC 7662); empty: none is taken"
    )
    client_secret: str = setting("", "Its secret, as env:NAME")


@dataclass(frozen=True, slots=True)
class IngestLimits:
    """The rule that picks the handler, the folders that ``stash_file`` may read, bounds of a site.

    Without folders there is no such tool, nor ``fetch_site`` without ``site``.
    """

    router: Literal["on", "shadow"] = setting(
        "on",
        "on: the bytes pick the handler; shadow: the declared type does, and both are recorded",
    )
    read_roots: tuple[str, ...] = setting(
        (), "Folders that stash_file may read; none: there is no such tool"
    )
    site: bool = setting(False, "Offer the tool fetch_site, which fetches all pages of a site")
    site_pages: int = setting(200, "Pages of one site that a call fetches", low=1, high=10_000)
    site_bytes: int = setting(
        256 * 2**20,
        "Bytes that one call may fetch of a site; the page that exceeds it is the last",
        low=1,
    )
    site_seconds: float = setting(
        300, "Seconds that one call may fetch a site; the next one goes on", low=1, high=86_400
    )
    site_rate: float = setting(
        5, "Requests a second to a site, unless its robots.txt asks for fewer; 0: no limit", low=0
    )


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Clients that the HTTP service accepts, its certificate, and the bounds of a request.

    ``forwarded`` names the proxies whose X-Forwarded headers are believed.
    """

    hosts: tuple[str, ...] = setting(
        (), "Hosts that requests may name: NAME or NAME:PORT; the address of --http always is one"
    )
    origins: tuple[str, ...] = setting(
        (), "Web pages that may call, by their origin (https://app.example.org)"
    )
    forwarded: tuple[str, ...] = setting(
        (), "Addresses or networks of the proxies whose X-Forwarded-For and -Proto are believed"
    )
    tls_cert: str = setting("", "File of the certificate and its chain, in PEM; empty: no TLS")
    tls_key: str = setting("", "File of its private key, in PEM")
    max_body_bytes: int = setting(2**20, "One request, in bytes", low=1024, high=67_108_864)
    grace_seconds: float = setting(
        30.0, "Seconds that calls may take to end after SIGTERM", low=0, high=3600
    )
    workers: int = setting(
        0, "Processes that serve over the one socket; 0: one for each processor", low=0, high=256
    )
    metrics: str = setting("", "HOST:PORT where Prometheus reads /metrics; empty: nowhere")
    audit_log: str = setting("", "File of the audit log; empty: its lines go to the log on stderr")


@dataclass(frozen=True, slots=True)
class TelemetryLimits:
    """The path of the local event log ("": none), its largest size in bytes, and the call log."""

    event_log: str = setting("", "Path of the local event log; empty: none")
    event_log_max_bytes: int = setting(
        16 * 2**20, "Largest size of the event log, in bytes", low=1024
    )
    call_log: bool = setting(
        True, "Whether calls.jsonl in the folder of the store records each call, without content"
    )


@dataclass(frozen=True, slots=True)
class WrapLimits:
    """How the gateway lists the tools of the servers behind it."""

    lean: bool = setting(
        False,
        "Whether wrapped servers' tools are listed short; tool_schema then gives the whole of one",
    )


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """Thresholds of HistoryCompactor, in tokens.

    The last bounds the input of a summariser.
    """

    history_max_tokens: int = setting(
        CompactionConfig().max_tokens, "Tokens above which HistoryCompactor compacts", low=1
    )
    history_target_tokens: int = setting(
        CompactionConfig().target_tokens, "Tokens that HistoryCompactor compacts to", low=1
    )
    summarizer_max_tokens: int = setting(
        CompactionConfig().summarizer_max_tokens, "Most tokens that a summariser is given", low=1
    )


@dataclass(frozen=True, slots=True)
class TenantRules:
    """Which artifacts the persons of one tenant share, and whether they delete their own."""

    share: Literal["none", "all"] = setting(
        "none", "Whose artifacts lists, searches and look-ups by URL show: one's own alone, or all"
    )
    refs: Literal["own", "tenant"] = setting(
        "own", "Whose references open: one's own, or those of everybody in the tenant"
    )
    delete: bool = setting(
        False, "Offer the tool artifact_delete, by which a person deletes what is their own"
    )


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """Quotas of one tenant of a service; 0 means unlimited.

    Conversions are those that one replica runs for it at a time, the rest is of all replicas.
    """

    requests_per_minute: int = setting(
        3_000, "Requests of one tenant within a minute; 0: any number", low=0
    )
    fetched_bytes_per_day: int = setting(
        20 * 2**30, "Bytes that one tenant may fetch in a day (UTC); 0: any number", low=0
    )
    hosts_per_minute: int = setting(
        300,
        "Different hosts that one person may fetch from within a minute, on one replica; 0: any "
        "number",
        low=0,
    )
    stored_bytes: int = setting(
        0,
        "Bytes that one tenant may keep before its fetches are refused; 0: "
        "store.max_total_bytes alone holds, which evicts",
        low=0,
    )
    artifacts: int = setting(
        0,
        "Artifacts that one tenant may keep before its fetches are refused; 0: "
        "store.max_artifacts alone holds, which evicts",
        low=0,
    )
    concurrent_conversions: int = setting(
        0,
        "Documents of one tenant that one worker of the service reads at a time; 0: one less "
        "than the worker reads at once, at least one",
        low=0,
    )
    person_part: float = setting(
        1.0,
        "What one person may use of each quota of the tenant, as a part of it: .1 is a tenth",
        low=0.001,
        high=1,
    )


@dataclass(frozen=True, slots=True)
class ProfileChoice:
    """The host whose limits apply; "auto" takes the host that clientInfo names."""

    profile: str = setting(
        AUTO,
        "The host whose limits apply; auto: the host that the client says it is",
        choices=(AUTO, *PROFILES),
    )


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


DEFAULTS: Mapping[str, tuple[Any, ...]] = {
    "views": (ViewLimits(), ProfileChoice()),
    "fetch": (FetchLimits(),),
    "store": (StoreLimits(Path()),),
    "ingest": (IngestLimits(),),
    "extract": (ExtractLimits(),),
    "context": (PreviewLimits(),),
    "client": (Policy(), HistoryLimits()),
    "telemetry": (TelemetryLimits(),),
    "wrap": (WrapLimits(),),
    "http": (HttpLimits(),),
    "tenant": (TenantRules(),),
    "quota": (QuotaLimits(),),
    "oauth": (OAuthLimits(),),
}


def profile_of(client_name: str) -> str:
    """Return the profile of a client by the name that it gives itself, "default" if unknown."""
    name = "-".join(client_name.lower().split())
    profiles = (profile for start, profile in CLIENT_NAMES.items() if name.startswith(start))
    return next(profiles, "default")


def _keys() -> dict[str, Key]:
    keys = [
        _key(section, room, item.name, hints[item.name], item.metadata["setting"])
        for section, rooms in DEFAULTS.items()
        for room in rooms
        for hints in (get_type_hints(room.__class__),)
        for item in fields(room)
        if "setting" in item.metadata
    ]
    return {key.path: key for key in keys}


def _key(section: str, room: object, name: str, hint: Any, described: Setting) -> Key:
    kind, item, choices = hint, None, described.choices
    if get_origin(hint) is tuple:
        kind, item = tuple, get_args(hint)[0]
    elif get_origin(hint) is Literal:
        kind, choices = str, get_args(hint)
    default = "" if hint is Path else getattr(room, name)
    kind = str if hint is Path else kind
    bounds = described.low, described.high
    return Key(section, name, described.meaning, kind, item, default, choices, *bounds)


KEYS: Mapping[str, Key] = _keys()
"""Every setting by its path, as the rooms' own dataclasses describe them."""
