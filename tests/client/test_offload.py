"""StoreOffload: what leaves the context is found again with the server's own store."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fetchstash import open_stash_sync
from fetchstash.client import Policy, rewrite
from fetchstash.client.offload import StoreOffload
from fetchstash.store import StoreLimits, open_store
from tests.client.fakes import conversation, prose


@pytest.mark.anyio
async def test_a_content_left_out_of_a_request_is_an_artifact(tmp_path: Path) -> None:
    text = prose(9_000)
    policy = Policy(offload=StoreOffload(tmp_path / "store"))
    sent, _ = rewrite(conversation(text, "short"), "openai_chat", 100, policy)
    ref = json.loads(sent[3]["content"])["artifact_ref"]
    store = await open_store(StoreLimits(folder=tmp_path / "store"))
    try:
        reader = await store.open_text(ref)
        assert await reader.read_chars(0, 10_000) == text
        assert (await store.list()).facts[0].name == "fetch_content"
        await reader.aclose()
    finally:
        await store.aclose()


def test_a_closed_offload_opens_again(tmp_path: Path) -> None:
    with StoreOffload(str(tmp_path / "store")) as offload:
        first = offload.keep("one", "a.txt")
    second = offload.keep("two", "b.txt")
    offload.close()
    offload.close()
    with open_stash_sync(
        {"store.folder": str(tmp_path / "store"), "store.run": "default"}
    ) as stash:
        assert [stash.get(ref).preview for ref in (first, second)] == ["one", "two"]


@pytest.mark.slow
def test_a_program_that_never_closes_its_offload_ends(tmp_path: Path) -> None:
    program = (
        "import sys; from fetchstash.client.offload import StoreOffload; "
        "print(StoreOffload(sys.argv[1]).keep('kept', 'a.txt'))"
    )
    folder = str(tmp_path / "store")
    command = [sys.executable, "-P", "-c", program, folder]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert not done.stderr
    with open_stash_sync({"store.folder": folder}) as stash:
        assert stash.get(done.stdout.strip()).preview == "kept"
