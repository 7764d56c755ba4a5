"""Run the commands of docs/recipes.md anew on the demonstration's site, and show what they print.

The output is what a terminal of 92 columns gets. References, nonces and the site's port are chance:
they are replaced by others of the same length, so that the page is the same at each run.
"""

import asyncio
import hashlib
import json
import os
import re
import shlex
import sys
import tempfile
from base64 import b32encode
from pathlib import Path

from fetchstash.cli.demo.site import Site
from tests.cli.terminal import plain, read_all, start_on_terminal

COLUMNS = 92
ADDRESS = "127.0.0.1:48000"
"""What stands for the site's in the page."""


def run_again(page: str) -> str:
    """Run all commands of the page, and return it with what they print."""
    return asyncio.run(_run_again(page))


async def _run_again(page: str) -> str:
    text, in_block = "", False
    async with Site() as site:
        address = f"127.0.0.1:{site.port}"
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            env = environment(folder, address)
            for line in page.splitlines():
                if line.startswith("```"):
                    in_block = not in_block
                if line.startswith("$ "):
                    command = line[2:].replace(ADDRESS, address)
                    shown = await asyncio.to_thread(run, command, env, folder)
                    while "not searched yet" in shown:  # a busy machine: each call indexes more
                        shown = await asyncio.to_thread(run, command, env, folder)
                    text += "\n" * (not text.endswith("```text\n"))
                    text += f"{line}\n{shown.rstrip()}".rstrip() + "\n"
                elif not in_block or line.startswith("```"):
                    text += f"{line}\n"
            listed = await asyncio.to_thread(run, "fetchstash ls --json", env, folder)
    refs = [str(json.loads(line)["artifact_ref"]) for line in listed.splitlines()]
    text = re.sub(r" +$", "", text.replace(address, ADDRESS), flags=re.MULTILINE)
    return without_chance(text, refs)


def environment(folder: Path, host: str) -> dict[str, str]:
    """Return the environment of the commands: a store of their own, and the site allowed."""
    program = Path(sys.executable).parent
    return {
        "PATH": f"{program}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "FETCHSTASH_STORE_FOLDER": str(folder / "store"),
        "FETCHSTASH_FETCH_ALLOW_HOSTS": host,
    }


def run(line: str, env: dict[str, str], folder: Path) -> str:
    """Run a command line on a terminal of its own, and return what stays on it."""
    process, leader = start_on_terminal(["/bin/sh", "-c", line], env, folder, COLUMNS)
    shown = plain(read_all(leader))
    if process.wait():
        raise RuntimeError(f"{shlex.quote(line)} failed: {shown}")
    return shown


def without_chance(text: str, refs: list[str]) -> str:
    """Return the text with made-up references and nonces, the same ones at each run."""
    for number, ref in enumerate(refs):
        digest = hashlib.sha256(str(number).encode()).digest()
        made = f"art_{b32encode(digest).decode().lower()[:26]}"
        # A terminal is shown the first seven characters behind "art_".
        text = text.replace(ref, made).replace(ref[4:11], made[4:11])
    return re.sub(r"untrusted-[0-9a-f]{8}", "untrusted-5d0c4a7e", text)
