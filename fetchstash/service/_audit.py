"""The audit log: who fetched what, when and with what decision, and who was shown which artifact.

JSON lines, only ever appended, without content: URLs are masked, artifacts named by a hash of
their reference. Whoever rotates the file may move it at any time (linelog). A call whose line
cannot be written is refused, and no further request leaves until a line can be written again.
"""

import hashlib
import logging
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fetchstash import __version__
from fetchstash.errors import BadArgument, FetchstashError, Refused, RobotsRefused, StoreError
from fetchstash.fetch import mask_url
from fetchstash.service import _request
from fetchstash.system import telemetry
from fetchstash.system.linelog import append, json_line

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

    def call(self, record: _request.Record, refs: Iterable[str]) -> None:
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
        record = _request.current()
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
        record = _request.current()
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
