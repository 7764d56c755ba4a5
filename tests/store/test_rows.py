"""No question that is asked all day costs more because the catalogue is larger."""

import hmac
import sqlite3
from typing import Any

import pytest

from fetchstash.store import StoreLimits, open_store
from tests.store.conftest import Put


@pytest.mark.anyio
@pytest.mark.parametrize(
    "key", ["https://example.org/a~b?c=%2F", "file:0a/name", "site:http://e.org/"]
)
async def test_what_earlier_versions_kept_under_a_url_is_found(
    limits: StoreLimits, put: Put, key: str
) -> None:
    store = await open_store(limits)
    kept = await put(store, b"text")
    with sqlite3.connect(limits.folder / "catalog.db") as db:
        (secret,) = db.execute("SELECT value FROM setting WHERE name = 'url_key'").fetchone()
        earlier = hmac.digest(secret, key.encode(), "sha256")  # of the normal form, by Stash
        db.execute("UPDATE artifact SET url_hash = ?", (earlier,))
    db.close()
    assert (await store.get(key)).artifact_ref == kept.artifact_ref
    await store.aclose()


@pytest.mark.anyio
async def test_frequent_queries_never_scan_or_sort_the_artifacts(
    limits: StoreLimits, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()
    connect = sqlite3.connect

    def connect_and_listen(*place: Any, **options: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(*place, **options)
        db.set_trace_callback(asked.add)
        return db

    store = await open_store(limits)  # makes the catalogue
    monkeypatch.setattr(sqlite3, "connect", connect_and_listen)
    listening = await open_store(limits)
    facts = await put(listening, b"text", url="https://example.org/")
    await listening.list(limit=10, offset=5)
    await listening.get("https://example.org/")
    await (await listening.open_text(facts.artifact_ref)).aclose()
    async with listening.open_raw(facts.artifact_ref):
        pass
    await listening.touch(facts.artifact_ref)
    await listening.pin(facts.artifact_ref)
    await listening.delete(facts.artifact_ref)
    await listening.aclose()
    await store.aclose()
    monkeypatch.undo()
    statements = {sql for sql in asked if sql.startswith(("SELECT", "UPDATE", "DELETE", "INSERT"))}
    assert len(statements) > 10
    with sqlite3.connect(limits.folder / "catalog.db") as db:
        plans = {
            sql: [step[3] for step in db.execute(f"EXPLAIN QUERY PLAN {sql}")] for sql in statements
        }
    db.close()
    slow = {
        sql: plan
        for sql, plan in plans.items()
        if any(step.startswith("SCAN artifact") or "B-TREE" in step for step in plan)
    }
    assert slow == {}
