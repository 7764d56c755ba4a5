"""Run the checks of scripts/fuzz one after the other, each for its share of the time.

    scripts/ci fuzz [--seconds N] [NAME …]

Each run starts from a fresh seed, which it prints: pass it on as ``-seed=N`` to repeat the run. A
fuzzer that fails leaves its input in the folder build/, and prints its path. Exit code: how many
failed. Needs atheris, which the lock has for Linux on x86-64 alone.
"""

import argparse
import importlib.util
import secrets
import subprocess
import sys
from pathlib import Path

CHECKS = Path(__file__).resolve().parents[1] / "fuzz" / "checks.py"
NAMES = ("fetch_coding", "fetch_framing", "fetch_headers", "fetch_robots", "fetch_url")
INPUTS = CHECKS.parents[2] / "build"
GRACE_SECONDS = 180
"""Time beyond its share after which a fuzzer counts as hanging."""


def run(name: str, seconds: int) -> bool:
    """Run one fuzzer and return whether it ended well."""
    seed = secrets.randbelow(2**32 - 1) + 1
    command = [sys.executable, "-P", str(CHECKS), name]
    options = [
        f"-max_total_time={seconds}",
        f"-seed={seed}",
        f"-artifact_prefix={INPUTS}/{name}-",
        "-timeout=30",  # seconds for one input: a hang fails like a crash
        "-print_final_stats=1",
    ]
    print(f"--- fuzz {name}, {seconds} s, -seed={seed}", flush=True)
    try:
        done = subprocess.run(
            [*command, *options],
            check=False,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=seconds + GRACE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        print(f"--- fuzz {name}: FAILED, it did not end in its time", flush=True)
        return False
    lines = done.stderr.splitlines()
    if done.returncode:
        print("\n".join(lines[-60:]))
    units = next((line.split()[-1] for line in lines if "number_of_executed_units" in line), "no")
    ended = "FAILED" if done.returncode else "ok"
    print(f"--- fuzz {name}: {ended} after {units} inputs", flush=True)
    return done.returncode == 0


def main() -> int:
    """Run all fuzzers, or those that are named; return how many failed."""
    parser = argparse.ArgumentParser(prog="scripts/ci fuzz")
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="NAME")
    parser.add_argument("--seconds", type=int, default=120, help="for all together")
    arguments = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        print("SKIPPED: atheris has no wheel for this machine")
        return 0
    INPUTS.mkdir(exist_ok=True)
    chosen = arguments.names or NAMES
    share = max(arguments.seconds // len(chosen), 1)
    return sum(not run(name, share) for name in chosen)


if __name__ == "__main__":
    sys.exit(main())
