"""The event loop stays free: what is done to a large history is done in a thread."""

import asyncio
import os
import re
import runpy
import subprocess
import sys
import threading
import tomllib
from collections.abc import AsyncIterator
from contextlib import nullcontext
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest

from fetchstash import client
from fetchstash.client import CompactionConfig, HistoryCompactor, Policy, Recovery
from fetchstash.text import tokens
from tests.client.fakes import Overflow, conversation, prose

SMALL, LARGE = [prose(9_000)] * 3, [prose(60_000, f"w{n}") for n in range(5)]


class Threads:
    """An offload, and an observer, that note in which threads they are called."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def keep(self, text: str, name: str) -> str:  # noqa: ARG002 - the protocol names them
        self.names.add(threading.current_thread().name)
        return "art_" + "a" * 26

    def __call__(self, name: str, attributes: Any) -> None:  # noqa: ARG002 - as above
        self.names.add(threading.current_thread().name)

    @property
    def elsewhere(self) -> bool:
        return self.names != {threading.current_thread().name}


async def answer(_messages: Any) -> str:
    return "ok"


CUT = {"choices": [{"message": {"content": "ok"}}], "usage": {"prompt_tokens": 10}}
"""An answer that counts far less than was sent, which is an event."""


@pytest.mark.anyio
@pytest.mark.parametrize(("results", "elsewhere"), [(SMALL, False), (LARGE, True)])
@pytest.mark.parametrize("work", ["compacted", "rewritten", "checked"])
@pytest.mark.parametrize("streams", [False, True])
async def test_a_large_history_is_counted_and_made_smaller_in_a_thread(
    results: list[str], elsewhere: bool, work: str, streams: bool
) -> None:
    threads, history = Threads(), conversation(*results)
    answers: list[Any] = [Overflow(), CUT] if work == "rewritten" else [CUT]
    policy = Policy(offload=threads, window=3_000 if work == "compacted" else None)
    recovery = Recovery(policy, threads if work == "checked" else None)

    async def send(_: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return events(answer) if streams else answer

    async def events(event: Any) -> AsyncIterator[Any]:
        yield event

    if streams:
        assert [event async for event in recovery.astream(send, history)] == [CUT]
    else:
        assert await recovery.acall(send, history) == CUT
    assert threads.elsewhere is elsewhere


@pytest.mark.anyio
async def test_a_history_compactor_works_in_a_thread_too() -> None:
    threads = Threads()
    config = CompactionConfig(max_tokens=3_000, target_tokens=2_000)
    compactor = HistoryCompactor(config, policy=Policy(offload=threads))
    await compactor.compact(conversation(*LARGE))
    assert threads.elsewhere


def test_work_is_done_at_once_in_a_loop_that_is_not_asyncios() -> None:
    threads = Threads()
    recovery = Recovery(Policy(window=3_000, offload=threads))
    running = recovery.acall(answer, conversation(*LARGE))
    with pytest.raises(StopIteration) as end:
        running.send(None)
    assert end.value.value == "ok"
    assert not threads.elsewhere


class InAThreadError(Exception):
    pass


def endless() -> list[Any]:
    messages: list[Any] = []
    messages.append(messages)
    return messages


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("messages", "large"),
    [
        pytest.param(conversation(prose(9_000)), False, id="a page"),
        pytest.param([{"content": [{"text": prose(120_000)}] * 2}], True, id="text"),
        pytest.param([[0] * 60_000], True, id="values"),
        pytest.param(endless(), True, id="endless"),
    ],
)
async def test_a_history_is_large_by_its_text_or_by_its_values(
    messages: list[Any], large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> Any:
        raise InAThreadError

    monkeypatch.setattr(asyncio, "to_thread", refuse)
    with pytest.raises(InAThreadError) if large else nullcontext():
        assert await Recovery(Policy(window=3_000)).acall(answer, messages) == "ok"


FORKED = """
import os
from fetchstash.client import Recovery, count_tokens
Recovery()
child = os.fork()
assert count_tokens([{"role": "user", "content": "Say hello."}], "openai_chat") > 4
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_process_that_is_forked_while_the_vocabulary_is_loaded_counts_too() -> None:
    subprocess.run([sys.executable, "-P", "-c", FORKED], check=True, timeout=120)


@pytest.mark.parametrize(("mode", "loads"), [("tiered", True), ("legacy", False)])
def test_a_recovery_begins_to_load_the_vocabulary_when_it_is_made(
    mode: Literal["tiered", "legacy"], loads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[bool] = []
    monkeypatch.setattr(tokens, "preload", lambda: begun.append(True))
    Recovery(Policy(compaction_mode=mode))
    assert bool(begun) is loads


# --- What an agent pays for taking the client in.


def test_names_that_were_not_imported_yet_are_shown_too() -> None:
    assert set(client.__all__) <= set(dir(client))


@pytest.mark.slow
def test_no_third_party_module_is_imported_by_any_part_of_the_client() -> None:
    use = "from fetchstash.client import *; classify('prompt is too long');"
    tell = (
        "import sys; {} print(*{{name.split('.')[0] for name in sys.modules}}"
        " - set(sys.stdlib_module_names))"
    )
    run, bare = (_run(tell.format(what)) for what in (use, "import fetchstash;"))
    # What the interpreter itself brings in (a .pth of the environment) is not the client's doing.
    assert set(run.split()) <= set(bare.split())


def _run(program: str) -> str:
    root = str(client.__file__).partition("fetchstash")[0]
    environment = {**os.environ, "PYTHONPATH": root}
    return subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    ).stdout


ROOT = Path(__file__).parents[2]
ADAPTERS = ROOT / "fetchstash/client/adapters"
NEEDS = {
    path.stem: found.groups()
    for path in sorted(ADAPTERS.glob("[a-z]*.py"))
    if (found := re.search(r'Needs\("(.+?)", "(.+?)", "(.+?)"\)', path.read_text("utf-8")))
}


@pytest.mark.parametrize("adapter", NEEDS)
def test_an_adapter_names_the_version_that_its_extra_asks_for(adapter: str) -> None:
    extra, package, minimum = NEEDS[adapter]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["optional-dependencies"][extra] == [f"{package}>={minimum}"]
    assert extra.replace("-", "_") == adapter


def test_every_adapter_says_what_it_needs() -> None:
    public = {path.stem for path in ADAPTERS.glob("[a-z]*.py")}
    assert set(NEEDS) == public


@pytest.mark.parametrize(
    ("adapter", "found"),
    # LiteLLM's adapter imports no name of it that an older version may lack.
    [(name, found) for name in NEEDS for found in ("0.1.2", "") if name != "litellm" or not found],
)
def test_an_adapter_whose_sdk_is_missing_or_too_old_says_what_is_there_and_what_is_needed(
    adapter: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra, package, minimum = NEEDS[adapter]

    def version(_: str) -> str:
        if not found:
            raise PackageNotFoundError
        return found

    root = "google" if adapter == "google_genai" else adapter
    for name in [name for name in sys.modules if name.partition(".")[0] == root]:
        monkeypatch.delitem(sys.modules, name)
    # A module that has nothing of what is imported from it, or one that is not there.
    monkeypatch.setitem(sys.modules, root, ModuleType(root) if found else None)
    monkeypatch.setattr("fetchstash.client.adapters.version", version)
    said = f"version {found} is installed" if found else "it is not installed"
    expected = f"needs {package} {minimum} or later, and {said}.*fetchstash\\[{extra}\\]"
    with pytest.raises(ImportError, match=expected):
        runpy.run_path(str(ADAPTERS / f"{adapter}.py"))
