"""Three replicas on one bucket: each takes a new token, and refuses a revoked one within 30 s.

    python scripts/replicas/tokens.py NAME URL ENDPOINT

Exit code: 1 if a replica was too late, or took or refused another token.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx2

from fetchstash.cli.demo.driver import command
from scripts.replicas.clients import Replica, settings_file

BOUND = 30.0
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HEADERS = {"accept": "application/json, text/event-stream"}


def token(settings: Path, *words: str) -> str:
    """Run the command ``token``, as an operator does."""
    whole = [command(), "token", *words, "--config", str(settings)]
    return subprocess.run(whole, stdout=subprocess.PIPE, check=True, text=True).stdout


async def status(replica: Replica, text: str) -> int:
    """Ask a replica with a token, and return the status of its answer."""
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        headers = {**HEADERS, "authorization": f"Bearer {text}"}
        answer = await http.post(f"http://127.0.0.1:{replica.port}/mcp", json=LIST, headers=headers)
        return answer.status_code


async def seconds_until(wanted: int, replica: Replica, text: str) -> float:
    """Return after how many seconds a replica answers a token with a status."""
    begin = time.monotonic()
    while await status(replica, text) != wanted:
        if time.monotonic() - begin > 2 * BOUND:
            break
        await asyncio.sleep(0.2)
    return time.monotonic() - begin


async def play(name: str, url: str, endpoint: str, folder: Path) -> int:
    """Create and revoke tokens before three replicas; return how many were too late or wrong."""
    settings = settings_file(folder, url, endpoint, 1)
    kept = token(settings, "create", "--tenant", "kept", "--name", "x").strip()
    replicas = [Replica(folder, settings, dict(os.environ)) for _ in range(3)]
    try:
        for replica in replicas:
            await replica.start()
        made = json.loads(token(settings, "create", "--tenant", "gone", "--name", "x", "--json"))
        taken = await asyncio.gather(*(seconds_until(200, r, made["token"]) for r in replicas))
        token(settings, "revoke", made["id"])
        refused = await asyncio.gather(*(seconds_until(401, r, made["token"]) for r in replicas))
        others = [await status(replica, kept) for replica in replicas]
    finally:
        for replica in replicas:
            replica.kill()
    for what, waits in (("a new token is taken", taken), ("a revoked one is refused", refused)):
        shown = ", ".join(f"{wait:.1f}" for wait in waits)
        print(f"  {name}: {what} by three replicas after {shown} s")
    print(f"  the other token is answered with {others}")
    return sum(wait > BOUND for wait in (*taken, *refused)) + sum(code != 200 for code in others)


def main() -> int:
    """Play it on one bucket; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("name", "url", "endpoint"):
        parser.add_argument(name)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return bool(asyncio.run(play(args.name, args.url, args.endpoint, Path(folder).resolve())))


if __name__ == "__main__":
    sys.exit(main())
