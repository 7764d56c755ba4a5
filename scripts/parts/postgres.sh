#!/usr/bin/env bash
# Runs the tests of a team's store, and of what stands on it, on Debian's PostgreSQL, which it installs where root may.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    # No cluster is made: each run has a server of its own.
    mkdir -p /etc/postgresql-common && echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends postgresql; } >/dev/null 2>&1 || true
  fi
fi
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { echo "SKIPPED: PostgreSQL is not installed"; exit 0; }
[ -x .venv/bin/python ] || { echo "There is no .venv: run scripts/test first."; exit 1; }
exec .venv/bin/python -P -m pytest -q -p no:cacheprovider -n 2 tests/store tests/service/test_tenants_of_a_team.py tests/stash/test_bucket.py tests/cli/test_team.py "$@"
