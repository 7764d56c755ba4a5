"""Try the gateway on real MCP servers: bench/gateway.py, whose differences fail here.

    scripts/ci gateway [--short]

CI runs it short: its times are for quiet machines.
"""

import asyncio
import sys

from bench.gateway import main

if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
