"""A worker that was taken over and speaks the pipe's protocol as it likes, for tests of the server.

``SPEAKS`` is the beginning of such a program; ``instead`` starts it in the place of every worker.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

SPEAKS = """
import fcntl, json, os, sys, time
from pathlib import Path

def send(frame):
    body = json.dumps(frame).encode()
    write(len(body).to_bytes(4, "big") + body)

def write(data):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view):]

def receive():
    job = json.loads(sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(4), "big")))
    return receive() if job["do"] == "preload" else job

FACTS = {
    "title": "", "language": "", "author": "", "published": "", "modified": "", "site": "",
    "pages": None,
    "unreadable_pages": 0, "unreadable_from": None, "pages_without_text": None, "ocr_pages": None,
    "sheets": None, "rows": None, "columns": None, "members": None, "width": None, "height": None,
    "seconds": None, "structure_info": "", "page_verdict": "", "leads_to": "", "next_url": "",
    "items": None, "items_total": None, "last_page": None, "filled_paths": [],
    "left_out_chars": 0, "left_out": "", "hidden_removed": 0, "extraction_truncated": False,
    "outline": [], "media_type": "", "cause": None, "has_text": True,
    "preview": {"text": "", "sample": "", "cells_truncated": 0},
}

def piece(size, chars):
    return {"piece": {
        "bytes": size, "chars": chars, "starts_page": False, "headings": [], "table": None,
        "columns": 0, "first_row_line": 0, "rows": 0,
    }}

send({"ready": 1, "missing": []})
"""


def instead(monkeypatch: pytest.MonkeyPatch, folder: Path, program: str) -> None:
    """Start ``program``, which follows SPEAKS, in the place of each worker from now on."""
    script = folder / "taken_over.py"
    script.write_text(SPEAKS + program)
    start = asyncio.create_subprocess_exec

    async def start_it(*command: str, **options: Any) -> Any:
        module = command.index("-m")
        return await start(sys.executable, str(script), *command[module + 2 :], **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_it)
