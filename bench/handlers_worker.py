"""What a worker costs: to start it, to call it, and the server's process while it works.

python -P bench/handlers_worker.py [--megabytes 50]
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from fetchstash.handlers import Decision, Hints, WorkerPool

CALLS = 100


async def measure(megabytes: int) -> None:
    """Print one line for each figure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, large = folder / "small.txt", folder / "large.txt"
        small.write_text("hello\n")
        large.write_text(
            "A line of prose, neither long nor short, of ordinary words.\n" * (megabytes * 16_667)
        )
        decision = Decision("text", "text/plain", "", "structure", (), mismatch=False)
        pool = WorkerPool(workers=1)

        async def extract(source: Path) -> float:
            before = time.perf_counter()
            found = await pool.extract(source, decision, Hints(), folder)
            assert found.text is not None
            found.text.unlink()
            return time.perf_counter() - before

        print(f"first call, with the start of the process  {await extract(small) * 1e3:8.0f} ms")
        calls = sorted([await extract(small) for _ in range(CALLS)])
        print(f"a call after that, median of {CALLS}           {calls[CALLS // 2] * 1e3:8.2f} ms")
        before, cpu = resident(), time.process_time()
        job = asyncio.create_task(extract(large))
        longest = 0.0
        while not job.done():
            asked = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - asked)
            await asyncio.sleep(0.005)
        print(f"{megabytes} MB of text                                {await job:8.2f} s")
        print(f"longest that the loop was held             {longest * 1e3:8.1f} ms")
        print(f"CPU of the server's process                {time.process_time() - cpu:8.2f} s")
        print(
            f"growth of the server's process             {(resident() - before) / 2**20:8.1f} MiB "
            f"of {resident() / 2**20:.0f}"
        )
        await pool.aclose()


def resident() -> int:
    """Return the resident bytes of this process (Linux), 0 elsewhere."""
    if sys.platform != "linux":
        return 0
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=50)
    asyncio.run(measure(parser.parse_args().megabytes))


if __name__ == "__main__":
    main()
