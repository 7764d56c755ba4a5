"""Let artifacts expire by the rules of `fetchstash store init`, in a Ceph whose days are short.

    python scripts/replicas/lifecycle.py FOLDER

One artifact is pinned and one is a tenant's. Bytes must outlive the records that name them; what is
pinned and the values of the service must stay, and nothing else. Exit code: 0 if that is so.
"""

import os
import sys
import time
from pathlib import Path

import anyio

from fetchstash.errors import UnknownRef
from fetchstash.store import (
    ArtifactStore,
    Facts,
    StoreLimits,
    check_store,
    open_objects,
    open_store,
    set_lifecycle,
    store_of_tenant,
)
from fetchstash.store._bucket import EXPIRING, open_bucket
from fetchstash.text.ranges import Ranges
from scripts.replicas.machines import ceph

DAY_SECONDS = 3
MAX_SECONDS = 400


async def put(store: ArtifactStore, name: str) -> str:
    """Put one small document, and return its reference."""
    raw, text = store.spool / f"{name}.raw", store.spool / f"{name}.text"
    raw.write_text(f"raw of {name}")
    text.write_text(f"text of {name}")
    facts = await store.put(raw, text, Facts(), Ranges(), url=f"https://example.org/{name}")
    return facts.artifact_ref


async def gone(limits: StoreLimits) -> list[str]:
    """Return the folders in the order in which the rules emptied them."""
    bucket = await anyio.to_thread.run_sync(open_bucket, limits)
    left, order = list(EXPIRING), list[str]()
    end = time.monotonic() + MAX_SECONDS
    while left and time.monotonic() < end:
        empty = [folder for folder in left if not bucket.list(folder)]
        left = [folder for folder in left if folder not in empty]
        order += empty
        await anyio.sleep(0.5)
    return order


async def expire(limits: StoreLimits) -> list[str]:
    """Let everything expire, and return what went wrong."""
    faults: list[str] = []
    if not await set_lifecycle(limits) or await check_store(limits):
        faults.append("the rules are not as they were set")
    store = await open_store(limits)
    tenant = await open_store(store_of_tenant(limits, "acme"))
    values = await open_objects(limits)
    await values.write("tokens/a", b"value")
    kept = await put(store, "a")
    await store.pin(kept)
    passing, of_tenant = await put(store, "b"), await put(tenant, "c")
    order = await gone(limits)
    print(f"emptied: {', '.join(order)}")
    if sorted(order) != sorted(EXPIRING) or order[-1] != "blobs":
        faults.append("records and URLs must go, and bytes after them")
    other = await open_store(StoreLimits(limits.folder / "other", limits.url, "default"))
    reader = await other.open_text(kept)
    if await reader.read_chars(0, 99) != "text of a":
        faults.append("the pinned artifact is not what it was")
    for looked_in, ref in ((other, passing), (tenant, of_tenant)):
        try:
            await looked_in.get(ref)
        except UnknownRef:
            continue
        faults.append(f"{ref} is still there")
    if await values.read("tokens/a") != b"value":
        faults.append("a value of the service is gone")
    for opened in (store, tenant, other, values):
        await opened.aclose()
    return faults


def main() -> int:
    """Run it in a Ceph of its own; return the exit code."""
    folder = Path(sys.argv[1])
    with ceph(folder / "ceph", day_seconds=DAY_SECONDS) as bucket:
        os.environ.update(bucket.environment)
        os.environ["AWS_ENDPOINT_URL"], os.environ["AWS_ALLOW_HTTP"] = bucket.endpoint, "true"
        limits = StoreLimits(folder / "cache", f"{bucket.url}/team", "default", max_age_days=1)
        faults = anyio.run(expire, limits)
    print("\n".join(faults) or "0 faults")
    return len(faults)


if __name__ == "__main__":
    sys.exit(main())
