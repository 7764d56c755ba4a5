"""Try a team's store on PostgreSQL and real buckets, and replicas of the service before them.

    scripts/ci replicas             in full, a quarter of an hour
    scripts/ci replicas --short     a few minutes, as CI does
        [--only contract torture leaving nginx database] [--bucket ceph azurite]

PostgreSQL, Ceph's RGW and nginx are Debian's, Azurite is npm's, all on loopback. What cannot be had
is skipped aloud. Every store passes the tests of any store, then a torture that kills its replicas
and freezes it, then the deletion of a person, of whom nothing may be left on three replicas, then
three replicas of the service behind nginx; first the torture on a folder, the bugs that it must
find, and a database that is away. A short run tries the first alone on Azurite, and deletes a
person on a folder only where there is no Ceph. Exit code: how many failed.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from scripts.drive.programs import ends_well, options
from scripts.drive.tools import ROOT, debian, node_program, postgresql
from scripts.replicas.machines import Bucket, azurite, ceph
from scripts.replicas.torture import BUGS
from scripts.torture.kept import FAULTS_FOUND

TORTURE, LEAVING, NGINX, DATABASE, AWAY = (
    str(ROOT / "scripts" / "replicas" / f"{name}.py")
    for name in ("torture", "leaving", "nginx", "database", "away")
)
SHORT_KILLS, CONTROL_KILLS = "15", "6"
CEPH = ("radosgw", "ceph-mon", "ceph-osd", "ceph-common")
"""Debian's packages."""
MAX_SECONDS = 1_200

PARTS = ("contract", "torture", "leaving", "nginx", "database")


def finds(name: str, words: Sequence[str]) -> bool:
    """Run a control with a planted bug; return whether one of three runs found it.

    What it does is drawn by lot, and a busy machine does less of it in its time.
    """

    def found(code: int, _: str) -> bool:
        return code == FAULTS_FOUND

    return any(call(f"{name}, run {run}", words, is_good=found) for run in (1, 2, 3))


def call(name: str, words: Sequence[str], **more: Any) -> bool:
    """Run one program; return whether it ended as it must."""
    return ends_well(name, [sys.executable, "-P", *words], MAX_SECONDS, cwd=ROOT, **more)


def started(stack: ExitStack, name: str, folder: Path) -> Bucket | None:
    """Start a bucket, in two attempts, until the stack is closed; None if it cannot be had here."""
    program = "" if name == "ceph" else node_program("azurite", "azurite-blob")
    if program is None or (not program and not debian("radosgw", *CEPH)):
        return None
    for attempt in (1, 2):
        place = folder / f"{name}-{attempt}"
        try:
            return stack.enter_context(azurite(place, program) if program else ceph(place))
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            print(f"{name} did not start: {error}")
    print(f"SKIPPED: {name} does not start here")
    return None


def try_bucket(bucket: Bucket, parts: Sequence[str], *, short: bool) -> int:
    """Try these parts on one bucket; return how much failed."""
    env = {**os.environ, **bucket.environment}
    place = ["--url", f"{bucket.url}/try", "--endpoint", bucket.endpoint]
    good: list[bool] = []
    if "contract" in parts:
        test = {"FETCHSTASH_TEST_BUCKET": place[1], "FETCHSTASH_TEST_ENDPOINT": bucket.endpoint}
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/store/test_contract.py"]
        words += ["-k", "bucket"]
        good.append(call(f"{bucket.name}: the tests of any store", words, env={**env, **test}))
    if "torture" in parts:
        kills = SHORT_KILLS if short else "250"
        words = [TORTURE, *place, "--pid", str(bucket.pid), "--kills", kills]
        good.append(call(f"{bucket.name}: torture", words, env=env))
    if "leaving" in parts:
        good.append(call(f"{bucket.name}: a person is deleted", [LEAVING, *place], env=env))
    if "nginx" in parts and debian("nginx", "nginx-light"):
        words = [NGINX, *place, "--seconds", "15" if short else "60"]
        good.append(call(f"{bucket.name}: replicas behind nginx", words, env=env))
    return good.count(False)


def try_folder(parts: Sequence[str], *, short: bool) -> int:
    """Try these parts on a folder, and the database alone; return how much failed."""
    good: list[bool] = []
    if "torture" in parts:
        words = [TORTURE, "--kills", SHORT_KILLS if short else "500"]
        good.append(call("a folder: torture", words))
        for bug in tuple(BUGS)[: 1 if short else None]:
            kills = ["--kills", CONTROL_KILLS] if short else []
            good.append(finds(f"planted {bug}", [*words, *kills, "--plant", bug]))
    if "database" in parts:
        good.append(call("the database of the page, TLS and PgBouncer", [DATABASE]))
        seconds = ["--seconds", "15"] if short else []
        good.append(call("the database is away", [AWAY, *seconds]))
    if "leaving" in parts and not (short and debian("radosgw", *CEPH)):
        good.append(call("a folder: a person is deleted", [LEAVING]))
    return good.count(False)


def try_buckets(names: Sequence[str], parts: Sequence[str], folder: Path, *, short: bool) -> int:
    """Try these parts on each bucket that can be had; return how much failed."""
    failed = 0
    for name in names:
        with ExitStack() as stack:
            if bucket := started(stack, name, folder):
                brief = short and name == "azurite"
                failed += try_bucket(bucket, ("contract",) if brief else parts, short=short)
    return failed


def main() -> int:
    """Try a folder, then all buckets that can be had; return how much failed."""
    chosen = options(__doc__, short=False, only=list(PARTS), bucket=["ceph", "azurite"])
    short: bool = chosen.short
    postgresql()
    with tempfile.TemporaryDirectory(prefix="fetchstash-rig-") as folder:
        failed = try_folder(chosen.only, short=short)
        return failed + try_buckets(chosen.bucket, chosen.only, Path(folder), short=short)


if __name__ == "__main__":
    sys.exit(main())
