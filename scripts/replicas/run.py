"""Start PostgreSQL and each bucket, and try a team's store and the service on them.

    python scripts/replicas/run.py HOME [--short] [--only PART] [--bucket NAME]

HOME has npm's Azurite (scripts/ci replicas installs it and calls this). For bytes in a folder: the
torture, and with planted bugs, which it must find (a short run: the first of them). For each
bucket: the tests of any store, the torture and three replicas behind nginx (a short run: the first
alone on the second bucket). Exit code: how many failed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from scripts.replicas.machines import Bucket, azurite, ceph
from scripts.replicas.torture import BUGS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MAX_SECONDS = 1_200
FAULTS_FOUND = 3
"""The exit code of a program that found faults: an exception ends with 1."""

PARTS = ("contract", "torture", "nginx")
BRIEF = ("contract",)
"""What a short run tries on the second bucket."""


def found(program: str) -> str:
    """Return the path of a program, "" if it is not installed."""
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin") or ""


def finds(name: str, words: Sequence[str], env: Mapping[str, str]) -> bool:
    """Run a control with a planted bug; return whether one of three runs found it.

    What it does is drawn by lot, and a busy machine does less of it in its time.
    """
    return any(call(f"{name}, run {run}", words, env, must_fail=True) for run in (1, 2, 3))


def call(
    name: str, words: Sequence[str], env: Mapping[str, str], *, must_fail: bool = False
) -> bool:
    """Run one part; return whether it ended as it must."""
    print(f"--- {name}", flush=True)
    start = time.monotonic()
    command = [sys.executable, "-P", *words]
    environment = {**os.environ, **env}
    try:
        code = subprocess.run(
            command, check=False, env=environment, timeout=MAX_SECONDS, cwd=ROOT
        ).returncode
    except subprocess.TimeoutExpired:
        print(f"it did not end in {MAX_SECONDS} s")
        code = -1
    good = code == (FAULTS_FOUND if must_fail else 0)
    ended = ("found" if must_fail else "ok") if good else f"FAILED, exit code {code}"
    print(f"--- {name}: {ended} after {time.monotonic() - start:.0f} s", flush=True)
    return good


def started(stack: ExitStack, name: str, folder: Path, azurite_blob: Path) -> Bucket | None:
    """Start a bucket, in two attempts, until the stack is closed; None if it cannot be had here."""
    has_ceph = all(map(found, ("radosgw", "ceph-mon", "ceph-osd", "ceph")))
    if not (has_ceph if name == "ceph" else azurite_blob.exists()):
        print(f"SKIPPED: {name} is not installed")
        return None
    for attempt in (1, 2):
        place = folder / f"{name}-{attempt}"
        try:
            return stack.enter_context(
                ceph(place) if name == "ceph" else azurite(place, str(azurite_blob))
            )
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            print(f"{name} did not start: {error}")
    print(f"SKIPPED: {name} does not start here")
    return None


def try_bucket(bucket: Bucket, parts: Sequence[str], *, short: bool) -> int:
    """Try these parts on one bucket; return how much failed."""
    url, keys = f"{bucket.url}/try", bucket.environment
    results: list[bool] = []
    if "contract" in parts:
        test = {"FETCHSTASH_TEST_BUCKET": url, "FETCHSTASH_TEST_ENDPOINT": bucket.endpoint}
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/store/test_contract.py"]
        words += ["-k", "bucket"]
        results.append(call(f"{bucket.name}: the tests of any store", words, {**keys, **test}))
    if "torture" in parts:
        words = [str(HERE / "torture.py"), "--url", url, "--endpoint", bucket.endpoint]
        words += ["--pid", str(bucket.pid), "--kills", "25" if short else "250"]
        results.append(call(f"{bucket.name}: torture", words, keys))
    if "nginx" in parts:
        if found("nginx"):
            seconds = ["--seconds", "15" if short else "60"]
            words = [str(HERE / "behind_nginx.py"), bucket.name, url, bucket.endpoint, *seconds]
            results.append(call(f"{bucket.name}: replicas behind nginx", words, keys))
        else:
            print("SKIPPED: replicas behind nginx, as nginx is not installed")
    return results.count(False)


def main() -> int:
    """Try all buckets that can be had; return how much failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("home", type=Path)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", action="append", choices=PARTS, default=[])
    parser.add_argument("--bucket", choices=("ceph", "azurite"), default="")
    options = parser.parse_args()
    program = options.home / "node_modules" / ".bin" / "azurite-blob"
    failed = 0
    with tempfile.TemporaryDirectory(prefix="fetchstash-rig-") as folder:
        if "torture" in (options.only or PARTS):
            words = [str(HERE / "torture.py"), "--kills", "25" if options.short else "500"]
            failed += not call("a folder: torture", words, {})
            for bug in tuple(BUGS)[: 1 if options.short else None]:
                kills = ["--kills", "12"] if options.short else []  # which leave a hundred faults
                failed += not finds(f"planted {bug}", [*words, *kills, "--plant", bug], {})
        for name in ("ceph", "azurite"):
            if options.bucket not in ("", name):
                continue
            with ExitStack() as stack:
                start = time.monotonic()
                bucket = started(stack, name, Path(folder), program)
                if bucket is None:
                    continue
                print(f"--- {bucket.name} started in {time.monotonic() - start:.0f} s", flush=True)
                parts = options.only or (PARTS if name == "ceph" or not options.short else BRIEF)
                failed += try_bucket(bucket, parts, short=options.short)
    print(f"{failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
