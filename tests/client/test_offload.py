"""StoreOffload: what leaves the context is found again with the server's own store."""

import json
from pathlib import Path

import pytest

from fetchstash.client import Policy, rewrite
from fetchstash.client.offload import StoreOffload
from fetchstash.store import StoreLimits, open_store
from tests.client.fakes import conversation, prose


@pytest.mark.anyio
async def test_what_was_left_out_of_a_request_is_an_artifact(tmp_path: Path) -> None:
    text = prose(9_000)
    with StoreOffload(tmp_path / "store") as offload:
        sent, _ = rewrite(conversation(text, "short"), "openai_chat", 100, Policy(offload=offload))
    ref = json.loads(sent[3]["content"])["artifact_ref"]
    store = await open_store(StoreLimits(folder=tmp_path / "store"))
    try:
        reader = await store.open_text(ref)
        assert await reader.read_chars(0, 10_000) == text
        assert (await store.list()).facts[0].name == "fetch_content"
        await reader.aclose()
    finally:
        await store.aclose()
