"""Try the gateway on real MCP servers, and print what reaches a model with it and without it.

    scripts/ci gateway [ARGUMENT …]     the arguments go to bench/gateway.py

The servers: filesystem, everything, memory, sequential-thinking, postgres, Playwright and three MCP
Apps from npm, git and sqlite from PyPI, with the PostgreSQL and the Chromium of Debian.
"""

import os
import sys

from scripts.drive.tools import CACHE, ROOT, debian, node_tool, postgresql, python_tool


def main() -> None:
    """Install the servers and replace this process by the benchmark."""
    for tool in ("apps", "servers", "playwright-mcp"):
        node_tool(tool)
    for tool in ("server-git", "server-sqlite"):
        python_tool(tool)
    debian("chromium", "chromium")
    postgresql()
    program = [sys.executable, "-P", str(ROOT / "bench" / "gateway.py"), str(CACHE)]
    os.execv(program[0], [*program, *sys.argv[1:]])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
