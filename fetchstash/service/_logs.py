"""Logs as JSON lines on stderr: facts and names, never content.

URLs are masked. Of an exception its type and the places that it passed are logged, never its text,
which may quote a document or a token.
"""

import json
import logging
import re
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from fetchstash.fetch import mask_url
from fetchstash.service import _request
from fetchstash.service._traces import trace_names
from fetchstash.system import telemetry
from fetchstash.text.hygiene import clean_line

MAX_MESSAGE_CHARS = 1_000
_MAX_FRAMES = 20
_to_json = json.JSONEncoder(separators=(",", ":"), default=str).encode
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>]+")


class JsonLines(logging.Formatter):
    """Words a record as one JSON object; ``extra={"facts": {…}}`` adds fields to it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        request = _request.current()
        line: dict[str, Any] = {
            "time": telemetry.now(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            **(request.names if request else {}),
            **trace_names(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info and record.exc_info[0]:
            line["error"] = record.exc_info[0].__name__
            line["frames"] = _frames(record.exc_info[2])
        return _to_json(line)


def log_to(stream: TextIO | None = None) -> None:
    """Send every log of this process to ``stream`` (stderr), one JSON object a line."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("fetchstash").setLevel(logging.INFO)
    # At INFO it quotes what a server answered to a request that it refused.
    logging.getLogger("fetchstash.fetch").setLevel(logging.WARNING)
    # It quotes Host and Origin, which anybody may send; the line of the request has the status.
    logging.getLogger("mcp.server.transport_security").setLevel(logging.ERROR)
    logging.captureWarnings(capture=True)


def _message(record: logging.LogRecord) -> str:
    try:
        text = record.getMessage()
    except (TypeError, ValueError):  # a library's arguments do not fit its own format
        text = str(record.msg)
    if not record.name.startswith("fetchstash"):
        # asyncio's second line shows a task with its exception, text and all.
        text = text.partition("\n")[0]
    if text.isascii() and text.isprintable() and "://" not in text:
        return text[:MAX_MESSAGE_CHARS]
    masked = _URL.sub(lambda match: mask_url(match[0]), text[: 10 * MAX_MESSAGE_CHARS])
    return clean_line(masked)[:MAX_MESSAGE_CHARS]


def _frames(traceback: TracebackType | None) -> list[str]:
    frames: list[str] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append(f"{Path(code.co_filename).name}:{traceback.tb_lineno} {code.co_name}")
        traceback = traceback.tb_next
    return frames[-_MAX_FRAMES:]
