"""Hostile files at full size, through the workers of a server's process that must stay small and awake.

    python scripts/torture.d/handlers.py [--only WORDS] [--length 1048576]

Each file of tests/handlers/test_hostile_data.py, at the length that is asked for, is routed and extracted under the default limits.
Each must end in text or in one clear line. All the while the loop's longest pause is watched, and how much this process, which
stands for the server, grows. Exit code: 0 if all is well.
"""

import argparse
import asyncio
import importlib.util
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fetchstash.handlers import Hints, WorkerPool, route_file

TESTS = Path(__file__).parents[2] / "tests" / "handlers" / "test_hostile_data.py"
# A ping is answered in a tenth of that; the rest is for what else the machine does.
MAX_PAUSE_SECONDS = 0.5
MAX_GROWTH_BYTES = 40 * 2**20


@dataclass(slots=True)
class Watch:
    """The longest that the loop was held since ``since``, in seconds."""

    longest: float = 0.0

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            asked = time.perf_counter()
            await asyncio.sleep(0.005)
            self.longest = max(self.longest, time.perf_counter() - asked - 0.005)


def hostile(large: int) -> dict[str, tuple[str, bytes]]:
    """Return the hostile files of the tests, at this length."""
    spec = importlib.util.spec_from_file_location("hostile", TESTS)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    files: dict[str, tuple[str, bytes]] = module.hostile(large)
    return files


def resident() -> int:
    """Return the bytes that this process holds in memory now (Linux), 0 where the system does not say."""
    if sys.platform != "linux":
        return 0
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def run(cases: dict[str, tuple[str, bytes]]) -> int:
    """Extract each case and print how it ended; return how many went wrong."""
    wrong = 0
    pool = WorkerPool()
    before = resident()
    with tempfile.TemporaryDirectory() as folder:
        for case, (name, data) in cases.items():
            source = Path(folder) / name
            source.write_bytes(data)
            watch = Watch()
            watching = asyncio.create_task(watch.run())
            start = time.perf_counter()
            decision = await asyncio.to_thread(route_file, source, {}, name)
            found = await pool.extract(source, decision, Hints(name=name), Path(folder))
            seconds, growth = time.perf_counter() - start, resident() - before
            watching.cancel()
            well = bool(found.text or found.error) and watch.longest < MAX_PAUSE_SECONDS and growth < MAX_GROWTH_BYTES
            wrong += not well
            told = f"{seconds:6.2f} s  pause {watch.longest * 1e3:4.0f} ms  grown {growth >> 20:3} MiB"
            print(f"{'ok   ' if well else 'WRONG'} {told}  {case}: {found.error or f'{found.chars:,} characters'}")
            if found.text:
                found.text.unlink()
    await pool.aclose()
    return wrong


def main() -> int:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="run the cases whose name has these words")
    parser.add_argument("--length", type=int, default=2**20, help="bytes of what is long by repetition")
    arguments = parser.parse_args()
    cases = {case: file for case, file in hostile(arguments.length).items() if arguments.only in case}
    return asyncio.run(run(cases))


if __name__ == "__main__":
    sys.exit(main())
