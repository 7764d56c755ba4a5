"""Two tenants in one bucket: a reference that is not one's own costs what a guessed one does."""

import time
from pathlib import Path

import pytest

from fetchstash.config import load
from fetchstash.errors import UnknownRef
from fetchstash.service import Quotas, TenantStore
from fetchstash.store import Facts, StoreLimits, open_store, store_of_tenant
from fetchstash.text.ranges import Ranges
from tests.store.buckets import every_bucket_is, new_objects

pytestmark = pytest.mark.anyio
DAY = 86_400


async def kept(store: TenantStore, text: str) -> str:
    path = store.spool / "text"
    path.write_text(text)
    path.chmod(0o600)
    facts = await store.put(path, None, Facts(), Ranges())
    return facts.artifact_ref


async def test_foreign_expired_and_guessed_references_cost_the_bucket_the_same_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = new_objects()
    limits = StoreLimits(tmp_path, "s3://bucket/prefix", max_age_days=1)
    stores: dict[str, TenantStore] = {}
    for name in ("acme", "globex"):
        with every_bucket_is(objects):
            own = await open_store(store_of_tenant(limits, name))
        stores[name] = TenantStore(name, own, load(), Quotas())
    now = time.time()
    past_its_date = await kept(stores["acme"], "past its date")
    removed = await kept(stores["acme"], "removed")
    await stores["acme"].delete(removed)
    monkeypatch.setattr(time, "time", lambda: now + 2 * DAY)
    foreign = await kept(stores["globex"], "of another")
    assert await stores["globex"].get(foreign)
    answers: dict[str, str] = {}
    requests: dict[str, list[tuple[str, str]]] = {}
    for name, ref in (
        ("foreign", foreign),
        ("past its date", past_its_date),
        ("removed", removed),
        ("guessed", "art_" + "a" * 26),
    ):
        objects.requests.clear()
        with pytest.raises(UnknownRef) as error:
            await stores["acme"].get(ref)
        answers[name] = error.value.line().replace(ref, "REF")
        requests[name] = [
            (kind, path.replace(ref.removeprefix("art_"), "REF"))
            for kind, path, _ in objects.requests
        ]
        assert all("globex" not in path for _, path in requests[name])
    assert len(set(answers.values())) == 1
    shapes = {
        name: [(kind, path.split("/")[0]) for kind, path in asked]
        for name, asked in requests.items()
    }
    assert shapes["guessed"]
    assert shapes["foreign"] == shapes["past its date"] == shapes["removed"] == shapes["guessed"]
