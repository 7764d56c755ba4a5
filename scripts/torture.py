"""Runs the programs of scripts/torture.d, one after the other, and says how each ended."""

import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "torture.d"


def main() -> int:
    """Run all of them, or the one that is named with its own arguments; return how many failed."""
    names = sorted(path.stem for path in FOLDER.glob("*.py"))
    named, arguments = sys.argv[1:2], sys.argv[2:]
    if named and named[0] not in names:
        print(f"There is no {named[0]!r} here, but: {', '.join(names)}.", file=sys.stderr)
        return 2
    failed = 0
    for name in named or names:
        print(f"--- {name}", flush=True)
        start = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-P", str(FOLDER / f"{name}.py"), *arguments], check=False
        )
        failed += done.returncode != 0
        print(
            f"--- {name}: {'ok' if done.returncode == 0 else 'FAILED'} after {time.monotonic() - start:.0f} s",
            flush=True,
        )
    return failed


if __name__ == "__main__":
    sys.exit(main())
