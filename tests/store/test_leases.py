"""What an ephemeral run leaves when its process is killed goes when the store is next opened."""

import subprocess
import sys
from dataclasses import replace

import pytest

from fetchstash.errors import ExpiredRef
from fetchstash.store import StoreLimits, open_store
from tests.store.conftest import Put

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="no shared locks, so no leases"),
]

PROGRAM = """
import anyio, os, sys
from pathlib import Path
from fetchstash.text.ranges import Ranges
from fetchstash.store import Facts, StoreLimits, open_store

async def main():
    store = await open_store(StoreLimits(Path(sys.argv[1]), ephemeral=True))
    path = store.spool / f"raw-{os.getpid()}"
    path.write_bytes(b"brief")
    facts = await store.put(path, None, Facts(), Ranges())
    print(facts.artifact_ref, flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.slow
async def test_the_run_of_a_killed_process_is_removed_and_that_of_a_living_one_stays(
    limits: StoreLimits, put: Put
) -> None:
    first = await open_store(limits)
    kept = await put(first, b"kept")
    await first.aclose()
    command = [sys.executable, "-P", "-c", PROGRAM, str(limits.folder)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        killed, living = (
            process.stdout.readline().strip() for process in running if process.stdout
        )
        running[0].kill()
        running[0].wait(30)
        store = await open_store(limits)
        with pytest.raises(ExpiredRef):
            await store.get(killed)
        assert (await store.get(living)).size_bytes == 5
        assert (await store.get(kept.artifact_ref)).text_bytes == 4
        assert len(list((limits.folder / "leases").iterdir())) == 1
        await store.aclose()
    finally:
        for process in running:
            process.kill()
            process.communicate()


async def test_a_store_that_is_closed_leaves_no_lease(limits: StoreLimits, put: Put) -> None:
    store = await open_store(limits)
    brief = await open_store(replace(limits, run="brief", ephemeral=True))
    await put(brief, b"brief")
    assert len(list((limits.folder / "leases").iterdir())) == 1
    await brief.aclose()
    assert not list((limits.folder / "leases").iterdir())
    await store.aclose()
