#!/usr/bin/env bash
# Tries the gateway on real MCP servers: filesystem, everything, memory, postgres and Playwright from npm, git and sqlite from PyPI, with
# the PostgreSQL and the Chromium of the machine. Installs them outside the checkout, and prints what reaches a model with the gateway and without it.
# What cannot be installed is skipped, and a line says so.
set -euo pipefail
cd "$(dirname "$0")/../.."

home="${GATEWAY_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/fetchstash/gateway}"
[ -x .venv/bin/python ] || { echo "There is no .venv: run scripts/test first."; exit 1; }
mkdir -p "$home"

if command -v npm >/dev/null; then
  npm install --silent --no-fund --no-audit --prefix "$home" @modelcontextprotocol/server-filesystem @modelcontextprotocol/server-everything \
    @modelcontextprotocol/server-memory @modelcontextprotocol/server-postgres @playwright/mcp >/dev/null || echo "SKIPPED: npm cannot install the servers"
else
  echo "SKIPPED: there is no npm for filesystem, everything, memory, postgres and Playwright"
fi
# sqlite's server was written for the SDK before 2.0, so each has an environment of its own.
for server in git sqlite; do
  [ -x "$home/$server/bin/python" ] || .venv/bin/python -m venv "$home/$server"
  more=""; [ "$server" = sqlite ] && more="mcp<2"
  "$home/$server/bin/python" -m pip install --quiet --disable-pip-version-check "mcp-server-$server" $more ||
    echo "SKIPPED: pip cannot install $server"
done
debian() { # PACKAGE: installs it if root may
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null || true
}
command -v chromium >/dev/null || debian chromium
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || debian postgresql
.venv/bin/python -P bench/gateway.py "$home" "$@"
