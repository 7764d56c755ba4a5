"""Servers that end, hang or flood: one line for the model, and the session goes on."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.gateway.conftest import Wrapped, both_eras, plain
from tests.gateway.test_shortening import refs, texts

pytestmark = [pytest.mark.long, pytest.mark.anyio]

_PYTHON, *_WORDS = plain("legacy")
PLAIN_TABLE = (
    f"[wrap.servers.plain]\ncommand = {json.dumps(_PYTHON)}\nargs = {json.dumps(_WORDS)}\n"
)
FLOOD_BYTES, MOST_KB = 60_000_000, 30_000
"""A result, and what the gateway's memory may grow by: no place may hold even half of it."""


@both_eras
async def test_a_server_that_ends_is_told_of_in_one_line_and_started_again(
    wrapped: Wrapped, mode: str, tmp_path: Path
) -> None:
    async with wrapped(mode, *plain("modern")) as client:
        result = await client.call_tool("die", {})
        again = await client.call_tool("long", {"size": 1})
    assert result.is_error
    assert texts(result) == (
        "[server_failed] The server plain.py ended in the middle of the call. "
        "It is started again: try once more."
    )
    assert texts(again) == "line 0 of the log\n"
    errors = (tmp_path / "stderr").read_text()
    assert "[plain.py] fetchstash: it ended; it is started again in 0.5 s." in errors


async def test_a_server_that_ends_in_the_middle_of_a_long_result_leaves_no_part_of_it(
    wrapped: Wrapped, tmp_path: Path
) -> None:
    async with wrapped("legacy", *plain("legacy")) as client:
        await client.call_tool("long", {"size": 2_000})  # the store is open now
        result = await client.call_tool("half", {"size": 100_000})
    assert "ended in the middle of the call" in texts(result)
    assert [path.name for path in tmp_path.rglob("result-*")] == []
    assert "[plain.py] my last words" in (tmp_path / "stderr").read_text()


@both_eras
async def test_a_silent_server_is_given_up_after_its_own_time(wrapped: Wrapped, mode: str) -> None:
    async with wrapped(mode, settings=f"{PLAIN_TABLE}timeout = 3\n") as client:
        result = await client.call_tool("hang", {})
    assert result.is_error
    assert texts(result) == (
        "[timeout] The server plain was silent for 3 s. Try again, or ask for less."
    )


async def test_a_command_that_is_not_there_is_told_of_and_the_rest_is_served(
    wrapped: Wrapped, tmp_path: Path
) -> None:
    settings = f'{PLAIN_TABLE}[wrap.servers.missing]\ncommand = "no-such-command-here"\n'
    async with wrapped("legacy", settings=settings) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert "echo" in names
    assert "there is no command 'no-such-command-here'" in (tmp_path / "stderr").read_text()


@pytest.mark.parametrize("tool", ["flood", "flood-rows"])
async def test_a_flood_goes_to_disk_and_not_to_memory(wrapped: Wrapped, tool: str) -> None:
    slow = "[extract]\ncpu_seconds = 300\nwall_seconds = 300\n"  # however slow the machine is
    async with wrapped("legacy", *plain("legacy"), settings=slow) as client:
        await client.call_tool(tool, {"size": 1_000_000})
        before = peak_of_gateway(client)
        result = await client.call_tool(tool, {"size": FLOOD_BYTES})
        after = peak_of_gateway(client)
        [ref] = refs(result)[-1:]
        last = "last line" if tool == "flood" else "last"
        found = await client.call_tool(
            "artifact_grep", {"artifact_ref": ref, "pattern": last, "literal": True}
        )
    assert len(texts(result)) < 4_000
    assert last in texts(found)
    assert after - before < MOST_KB


def peak_of_gateway(_: Client) -> int:
    """Return the peak of the resident memory of our one child process, in kB (proc(5), VmHWM)."""
    own = Path("/proc/self/task")
    if not own.exists():
        pytest.skip("There is no /proc here to read the memory of a process from.")
    children = " ".join(
        (task / "children").read_text() for task in own.iterdir() if (task / "children").exists()
    )
    peaks: list[int] = []
    for child in children.split():
        status = Path("/proc", child, "status").read_text()
        if "fetchstash" in Path("/proc", child, "cmdline").read_text():
            peaks += [int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line]
    return max(peaks)


async def test_the_secrets_of_a_server_are_not_in_the_log(
    wrapped: Wrapped, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = f'{PLAIN_TABLE}[wrap.servers.plain.env]\nSECRET = "hush-hush-hush\\nhush-hush"\n'
    async with wrapped("legacy", settings=settings) as client:
        result: Any = await client.call_tool("environment", {})
    assert texts(result) == "hush-hush-hush\nhush-hush"
    errors = (tmp_path / "stderr").read_text()
    assert "[plain] the key is ***" in errors
    assert "hush" not in errors
