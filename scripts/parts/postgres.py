"""Run the tests of a team's store, and of what stands on it, on Debian's PostgreSQL.

scripts/ci postgres [ARGUMENT …]     the arguments go to pytest
"""

import os
import sys

from scripts.drive.tools import ROOT, debian

SERVER = "usr/lib/postgresql/*/bin/initdb"
TESTS = (  # all that ask for a database: checks has the other tests of the store
    "store/test_backup.py",
    "store/test_bucket.py",
    "store/test_bucket_faults.py",
    "store/test_contract.py",
    "store/test_copy.py",
    "store/test_objects.py",
    "store/test_retention.py",
    "store/test_search_pool.py",
    "store/test_team.py",
    "service/test_tenants_of_a_team.py",
    "service/test_persons.py",
    "stash/test_bucket.py",
    "cli/test_team.py",
    "cli/test_leaving.py",
)


def main() -> None:
    """Replace this process by pytest."""
    if debian(SERVER, "postgresql"):
        pytest = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2"]
        os.chdir(ROOT)
        os.execv(pytest[0], [*pytest, *(f"tests/{test}" for test in TESTS), *sys.argv[1:]])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
