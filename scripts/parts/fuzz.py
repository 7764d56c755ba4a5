"""Run the checks of scripts/fuzz one after the other, each for its share of the time.

    scripts/ci fuzz [--seconds N] [NAME …]

Each run starts from a fresh seed, which it prints: pass it on as ``-seed=N`` to repeat the run. A
fuzzer that fails leaves its input in the folder build/, and prints its path. Exit code: how many
failed. Needs atheris, which the lock has for Linux on x86-64 alone.
"""

import secrets
import sys
from importlib.util import find_spec

from scripts.drive.programs import ends_well, options
from scripts.drive.tools import ROOT

CHECKS = ROOT / "scripts" / "fuzz" / "checks.py"
NAMES = ("fetch_coding", "fetch_framing", "fetch_headers", "fetch_robots", "fetch_url")
INPUTS = ROOT / "build"
GRACE_SECONDS = 180
"""Time beyond its share after which a fuzzer counts as hanging."""


def run(name: str, seconds: int) -> bool:
    """Run one fuzzer and return whether it ended well."""
    # A hang of 30 seconds for one input fails like a crash.
    given = [f"-max_total_time={seconds}", f"-seed={secrets.randbelow(2**32 - 1) + 1}"]
    given += [f"-artifact_prefix={INPUTS}/{name}-", "-timeout=30"]
    command = [sys.executable, "-P", CHECKS, name, *given]
    title = f"fuzz {name} {' '.join(given[:2])}"
    return ends_well(title, command, seconds + GRACE_SECONDS, quiet=True)


def main() -> int:
    """Run all fuzzers, or those that are named; return how many failed."""
    chosen = options(__doc__, names=NAMES, seconds=120)
    if find_spec("atheris") is None:
        print("SKIPPED: atheris has no wheel for this machine")
        return 0
    INPUTS.mkdir(exist_ok=True)
    share = max(chosen.seconds // len(chosen.names), 1)
    return sum(not run(name, share) for name in chosen.names)


if __name__ == "__main__":
    sys.exit(main())
