"""One request: its id, session and caller, the service's own replies, and its lines of audit.

A session's id holds the client's name, because only the first request of that era says it and the
limits of its host depend on it, and a nonce, because a client numbers its requests from 1 again.

The audit log says who fetched what, when and with what decision, and who was shown which artifact:
JSON lines, only ever appended, without content. URLs are masked, artifacts named by a hash of
their reference. Whoever rotates the file may move it at any time (linelog). A call whose line
cannot be written is refused, and no further request leaves until a line can be written again.
"""

import base64
import hashlib
import json
import logging
import random
import re
import secrets
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_types import INVALID_REQUEST, RequestId
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from fetchstash import __version__
from fetchstash.config import Settings
from fetchstash.errors import BadArgument, FetchstashError, Refused, RobotsRefused, StoreError
from fetchstash.fetch import mask_url
from fetchstash.server import Context
from fetchstash.service.access import Principal
from fetchstash.system import telemetry
from fetchstash.system.linelog import append, json_line
from fetchstash.text.hygiene import clean_line

SESSION_HEADER = "mcp-session-id"
_NAME_CHARS = 64
_MAX_CHARS = 1_024


def new_session(message: Mapping[str, Any]) -> str:
    """Return an id for the client of an ``initialize``; ``client_in`` reads its name out of it."""
    match message:
        case {"params": {"clientInfo": {"name": str(given)}}}:
            name = given[:_NAME_CHARS]
        case _:
            name = ""
    data = json.dumps([secrets.token_hex(12), name]).encode()
    return base64.urlsafe_b64encode(data).decode("ascii")


def client_in(headers: Headers) -> str:
    """Return the name of a client by its session id, "" if it is none of ours."""
    session = headers.get(SESSION_HEADER, "")
    if len(session) > _MAX_CHARS:
        return ""
    try:
        _, name = json.loads(base64.urlsafe_b64decode(session))
    except (ValueError, TypeError, RecursionError):
        return ""
    return name[:_NAME_CHARS] if isinstance(name, str) else ""


_REQUEST_NAME_CHARS = 200
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(slots=True)
class Record:
    """One request. ``rpc_method``, ``tool`` and ``code`` are known once its message was read."""

    id: str
    scope: Scope
    rpc_method: str = ""
    tool: str = ""
    code: str = ""

    @property
    def principal(self) -> Principal | None:
        """The principal of the request, None until its token was verified."""
        return self.scope.get("fetchstash.principal")

    @property
    def names(self) -> dict[str, str]:
        """The fields that name the request in each line of a log."""
        who = self.principal
        if who is None:
            return {"request_id": self.id}
        name = who.name[:_REQUEST_NAME_CHARS]
        if not (name.isascii() and name.isprintable()):  # an identity provider may send any text
            name = clean_line(name)
        return {"request_id": self.id, "tenant": who.tenant, "principal": name}

    @property
    def call(self) -> dict[str, str]:
        """The fields of the message that it brought, without those that are empty."""
        fields = {"rpc_method": self.rpc_method, "tool": self.tool, "code": self.code}
        return {name: value for name, value in fields.items() if value}


_current: ContextVar[Record | None] = ContextVar("_current", default=None)


def current() -> Record | None:
    """Return the request that this task answers, None outside of any."""
    return _current.get()


def begin(scope: Scope) -> Record:
    """Make a request the one that this task, and those that it starts, answer.

    Its id is its X-Request-Id where that is a plain one.
    """
    sent = Headers(scope=scope).getlist("x-request-id")
    is_plain = len(sent) == 1 and _REQUEST_ID.fullmatch(sent[0])
    record = Record(sent[0] if is_plain else f"{random.getrandbits(128):032x}", scope)
    _current.set(record)
    return record


def reply(
    status: int,
    error: FetchstashError,
    *,
    request: RequestId | None = None,
    number: int = INVALID_REQUEST,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a JSON-RPC error of one line, and log its code with the request that is answered.

    ``request`` is the id of its message.
    """
    if record := current():
        record.code = error.code
    problem = {"code": number, "message": error.line(), "data": {"code": error.code}}
    body = json.dumps({"jsonrpc": "2.0", "id": request, "error": problem})
    return Response(body, status, headers, "application/json")


PRINCIPAL = "fetchstash.principal"
"""The key of the ASGI scope under which a request's principal stands once it is verified."""

REFUSAL = "fetchstash.refusal"
"""The key under which stands why the request's tool must not run (Busy, OverQuota, Refused)."""


def principal_of(ctx: Context) -> Principal:
    """Return the principal of a request, in either protocol era. Raises LookupError if none."""
    if ctx.request is None:
        raise LookupError("the message came by no HTTP request")
    principal: Principal = ctx.request.scope[PRINCIPAL]
    return principal


def tenant_label(settings: Settings, tenant: str) -> str:
    """Return a tenant's name for metrics: one that the settings name, or "other".

    A provider may make tenants without end, and each would be a series.
    """
    return tenant if tenant in settings.tenants else "other"


def client_of(ctx: Context) -> str:
    """Return the name of the client that sends a request, "" if it gives none.

    In the 2026 era each request says it; in the handshake era the session's id does.
    """
    client = ctx.session.client_params
    if client is not None:
        return client.client_info.name
    return client_in(Headers(scope=ctx.request.scope)) if ctx.request is not None else ""


_log = logging.getLogger("fetchstash.audit")
_MAX_URL_CHARS = 2_000
_MAX_REFS = 50


class AuditLog:
    """Writes the audit log to ``path``; without one to the logger ``fetchstash.audit``."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lost = 0
        self._torn = False  # the file ends in half a line

    @classmethod
    def of(cls, path: str, *, begins: bool = True) -> "AuditLog":
        """Return the log of the setting. Raises BadArgument where its file takes no line.

        A service that ``begins`` writes so; its workers do not.
        """
        log = cls(Path(path).expanduser() if path else None)
        if not begins:
            return log
        try:
            log._append({"event": "started", "version": __version__})
        except (OSError, ValueError) as error:
            what = f"http.audit_log {path} cannot be written: {_reason(error)}."
            raise BadArgument(what, "Make its folder, or name another file.") from None
        return log

    def check(self) -> None:
        """Raise StoreError where the last line was lost and the log still takes none."""
        if self._lost:
            lost = self._lost
            self._write({"event": "resumed", "lost": lost})
            self._lost -= lost

    def takes_lines(self) -> bool:
        """Return whether calls can be recorded; a log that lost a line is tried again."""
        lost = self._lost
        try:
            self.check()
        except StoreError:
            self._lost = lost  # no call has lost this line
        return not self._lost

    def operator(self, event: str, **facts: str) -> None:
        """Record an operator's action beforehand. Raises StoreError; then it must not be done.

        A backup of the store knows nothing of it: ``store replay`` reads it here.
        """
        self._write({"event": event, **facts})

    def call(self, record: Record, refs: Iterable[str]) -> None:
        """Record an answered call and the artifacts that it spoke of. Raises StoreError."""
        hashes = [ref_hash(ref) for ref in refs][:_MAX_REFS]
        self._write({"event": "call", **record.call, "artifacts": hashes})

    @contextmanager
    def fetching(self, url: str, **more: Any) -> Generator[dict[str, Any]]:
        """Record a URL once the body has fetched it, failed or was refused.

        The body adds to the facts that this yields, and a file of its own under "path", which is
        removed where the line cannot be written. Raises StoreError, before the body where the last
        line was lost.
        """
        self.check()
        started, facts = time.perf_counter(), dict[str, Any]()
        try:
            yield facts
        except FetchstashError as error:
            self._fetched(_line(url, started, error) | more)
            raise
        except BaseException as error:  # a cancellation above all, which nothing may replace
            with suppress(StoreError):
                self._fetched(_line(url, started, error) | more)
            raise
        path = facts.pop("path", None)
        try:
            self._fetched(_line(url, started) | facts | more)
        except StoreError:
            if path:
                path.unlink(missing_ok=True)
            raise

    def _fetched(self, facts: dict[str, Any]) -> None:
        record = current()
        tool = {"tool": record.tool} if record and record.tool else {}
        self._write({"event": "fetch", **tool, **facts})

    def _write(self, facts: dict[str, Any]) -> None:
        try:
            self._append(facts)
        except (OSError, ValueError) as error:
            self._lost += 1
            self._torn = self._torn or isinstance(error, _HalfWritten)
            telemetry.count("audit_failures")
            _log.critical("The audit log %s cannot be written: %s.", self._path, _reason(error))
            raise StoreError(
                "The audit log of this service cannot be written, so the call is refused.",
                "Tell the operator.",
            ) from None

    def _append(self, facts: dict[str, Any]) -> None:
        """Write a line. Raises OSError, and ValueError for a path that can be none."""
        record = current()
        who = record.principal if record else None
        token = who.token or who.issuer if who else ""
        facts = {"token": token, **facts} if token else facts
        if self._path is None:  # a line of the logger names its time and its request itself
            _log.info("audit", extra={"facts": facts})
            return
        line = {"time": telemetry.now(), **(record.names if record else {}), **facts}
        data = b"\n" + json_line(line) if self._torn else json_line(line)
        if append(self._path, data) != len(data):
            raise _HalfWritten(None, "the disk is full")
        self._torn = False


def ref_hash(ref: str) -> str:
    """Return the name of an artifact in the audit log: it leads to no artifact by itself."""
    return hashlib.sha256(ref.encode()).hexdigest()[:32]


def _reason(error: OSError | ValueError) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else "no file"


class _HalfWritten(OSError):
    """A part of a line was written."""


def _line(url: str, started: float, error: BaseException | None = None) -> dict[str, Any]:
    """Return the facts of a URL: allowed, refused by a rule, or failed with a code."""
    seconds = round(time.perf_counter() - started, 6)
    facts: dict[str, Any] = {"url": mask_url(url)[:_MAX_URL_CHARS], "seconds": seconds}
    if error is None:
        return {**facts, "decision": "allowed"}
    if not isinstance(error, FetchstashError):
        return {**facts, "decision": "failed", "code": type(error).__name__}
    # A refusal behind a redirect names no host (after_redirect); the error that it replaces does.
    inner = error.__context__ if isinstance(error.__context__, type(error)) else error
    rule = inner.rule if isinstance(inner, Refused) else ""
    rule = "robots" if isinstance(error, RobotsRefused) else rule
    names = {"host": "final_host", "address": "address", "port": "port", "status": "status"}
    facts |= {names[name]: value for name, value in inner.details.items() if name in names}
    return {
        **facts,
        "decision": "refused" if rule else "failed",
        "code": error.code,
        **({"rule": rule} if rule else {}),
    }
