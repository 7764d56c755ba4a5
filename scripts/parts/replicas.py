"""Try a team's store on PostgreSQL and real buckets, and replicas of the service before them.

    scripts/ci replicas             in full, a quarter of an hour
    scripts/ci replicas --short     a few minutes, as CI does

PostgreSQL, Ceph's RGW and nginx are Debian's, Azurite is npm's, all on loopback. The arguments go
to scripts/replicas/run.py.
"""

import os
import sys

from scripts.drive.tools import CACHE, ROOT, debian, node_tool, postgresql


def main() -> None:
    """Install what is needed and replace this process by the program."""
    postgresql()
    debian("radosgw", "radosgw", "ceph-mon", "ceph-osd", "ceph-common")
    debian("nginx", "nginx-light")
    node_tool("azurite")
    program = [sys.executable, "-P", str(ROOT / "scripts" / "replicas" / "run.py")]
    os.execv(program[0], [*program, str(CACHE / "azurite"), *sys.argv[1:]])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
