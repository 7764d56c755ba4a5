#!/usr/bin/env bash
# Tries a team's store on PostgreSQL and real buckets, and three replicas of the service before them: PostgreSQL, Ceph's RGW and nginx of Debian, Azurite of npm, all on loopback.
#   scripts/ci replicas             in full, a quarter of an hour
#   scripts/ci replicas --short     a few minutes, as CI does
# Installs them where root may. What cannot be installed is skipped, and a line says so.
set -euo pipefail
cd "$(dirname "$0")/../.."

home="${REPLICAS_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/fetchstash/replicas}"
[ -x .venv/bin/python ] || { echo "There is no .venv: run scripts/test first."; exit 1; }
mkdir -p "$home"

missing=""
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
command -v radosgw >/dev/null || missing="$missing radosgw ceph-mon ceph-osd ceph-common"
PATH="$PATH:/usr/sbin" command -v nginx >/dev/null || missing="$missing nginx-light"
if [ -n "$missing" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  # Nothing is to be started: each run has processes of its own.
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends $missing; } >"$home/apt.log" 2>&1 || true
fi
if [ ! -x "$home/node_modules/.bin/azurite-blob" ] && command -v npm >/dev/null; then
  npm install --silent --no-fund --no-audit --prefix "$home" azurite >"$home/npm.log" 2>&1 || true
fi
exec .venv/bin/python -P scripts/replicas/run.py "$home" "$@"
