"""What stands between the start of the gateway and its first answer."""

import secrets
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client

from fetchstash.config import load
from fetchstash.gateway._serve import OWN_ABOUT
from fetchstash.server import LazyStash, build_server, listed_tools
from tests.gateway.conftest import FETCHSTASH


@pytest.mark.slow
def test_nothing_of_the_sdk_is_imported_before_it_is_needed() -> None:
    heavy = {"mcp", "mcp_types", "pydantic", "httpx2", "starlette", "PIL", "pypdfium2"}
    code = f"import sys, fetchstash.gateway._serve; print(sorted({heavy} & set(sys.modules)))"
    words = [sys.executable, "-P", "-c", code]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_server_that_was_started_for_a_wrong_command_line_is_ended() -> None:
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("There is no /proc here to see processes in.")
    mark = secrets.token_hex(8)
    words = [FETCHSTASH, "wrap", "--no-such-option", "--", "sh", "-c", "sleep 99; true", mark]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "No such option" in done.stderr
    with anyio.fail_after(10):
        while any(mark in line for line in _command_lines()):
            await anyio.lowlevel.checkpoint()


def _command_lines() -> list[str]:
    lines: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            lines.append((process / "cmdline").read_text())
        except OSError:
            continue
    return lines


@pytest.mark.anyio
async def test_what_is_said_of_the_artifact_tools_beforehand_is_what_their_server_says() -> None:
    settings = load()
    stated = OWN_ABOUT["capabilities"]
    async with Client(build_server(LazyStash(settings))) as client:
        offered = client.session.server_capabilities
        listed = (await client.list_tools()).model_dump(by_alias=True, exclude_none=True)
    assert offered
    # Its prompts are of the web, and the gateway shows none.
    assert set(stated) == set(offered.model_dump(exclude_none=True)) - {"prompts"}
    assert listed["tools"] == listed_tools(settings)
