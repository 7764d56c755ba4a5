"""Write docs/recipes.md: run its commands on the demonstration's site, and show what they print.

The output is what a terminal of 92 columns gets. References, nonces and the site's port are chance:
they are replaced by others of the same length, so that the page is the same at each run.
"""

import asyncio
import hashlib
import json
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
from base64 import b32encode
from pathlib import Path

from fetchstash.cli.demo.site import Site

COLUMNS = 92
METER = re.compile(r"(?:\r\x1b\[K[^\r\n]*)*\r\x1b\[K")

TEMPLATE = """# Recipes

Each shows whole commands and what they print. `scripts/make/recipes_page.py` ran them on [the site
of the demonstration](../fetchstash/cli/demo/site.py), and a test runs them again. `@1` is what was
fetched last, `@2` what was fetched before it. [The command line](cli.md) has all options. A model
does the same with [the tools](tools.md).

## One fact out of a long PDF

The preview says how long the document is. `grep` finds the line, and `slice` reads the page around
it. The server calls this PDF a web page; its bytes say what it is.

$ fetchstash fetch SITE/report --max-chars 300
$ fetchstash grep 'recommendation 17' @1
$ fetchstash slice @1 --unit pages --start 30 --end 30 --max-chars 400

## One value out of 5 MB of JSON

The preview of JSON is its shape. A JSON pointer (RFC 6901) names a value in it.

$ fetchstash fetch SITE/stations.json --max-chars 300
$ fetchstash slice @1 --path /stations/19019/keeper

## One row out of 100,000

Rows count from 1.

$ fetchstash fetch SITE/readings.csv --max-chars 300
$ fetchstash slice @1 --unit rows --start 77777 --end 77777

## A sum over 100,000 rows

A path may be a query: sums, means, counts, ends, groups and conditions
([all of them](handlers.md#queries-over-rows)). A wrong name is answered with the right ones.

$ fetchstash slice @1 --path 'count, mean(height_m) by state'
$ fetchstash slice @1 --path "max(height_m) by gauge where state = 'ok' and time < 2026-03 top 3"
$ fetchstash slice @1 --path 'sum(heigth) by gauge' || true

## The best passages of a long page

`--focus` ranks the passages of a page of 2 MB by your words. `search` does so later, in everything
that was fetched.

$ fetchstash fetch SITE/handbook.html --focus 'night ferry' --max-chars 600
$ fetchstash search 'when does the night ferry leave' --max-results 1

## What a model is shown

`--as-model` prints exactly the text of the tool's result: a line of facts, the notices, the fence
around what was fetched, and the calls that go on.

$ fetchstash slice @2 --unit rows --start 5 --end 6 --as-model

## In a pipe, and with files

A pipe gets all of a text, without previews. Files of yours are read as URLs are.

$ fetchstash get @2 | grep -c Lanternholm
$ fetchstash get @4 --raw > report.pdf
$ fetchstash slice report.pdf --unit pages --start 48 --max-chars 200
"""


def page() -> str:
    """Run all recipes, and return the page."""
    return asyncio.run(_page())


async def _page() -> str:
    text = ""
    async with Site() as site:
        address = f"127.0.0.1:{site.port}"
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            env = environment(folder, address)
            for line in TEMPLATE.splitlines():
                if line.startswith("$ "):
                    command = line[2:].replace("SITE", f"http://{address}")
                    shown = await asyncio.to_thread(run, command, env, folder)
                    while "not searched yet" in shown:  # a busy machine: each call indexes more
                        shown = await asyncio.to_thread(run, command, env, folder)
                    text += f"```text\n{line}\n{shown.rstrip()}".rstrip() + "\n```\n"
                else:
                    text += f"{line}\n"
            listed = await asyncio.to_thread(run, "fetchstash ls --json", env, folder)
    refs = [str(json.loads(line)["artifact_ref"]) for line in listed.splitlines()]
    text = text.replace("SITE", "http://127.0.0.1:48000").replace(address, "127.0.0.1:48000")
    text = text.replace("\n```\n```text\n", "\n\n")  # the commands of one recipe in one block
    return without_chance(re.sub(r" +$", "", text, flags=re.MULTILINE), refs)


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
    import fcntl  # noqa: PLC0415 - POSIX alone has it
    import pty  # noqa: PLC0415 - as above
    import termios  # noqa: PLC0415 - as above

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    process = subprocess.Popen(
        ["/bin/sh", "-c", line],
        env=env,
        cwd=folder,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    shown = b""
    try:
        while more := os.read(leader, 65_536):
            shown += more
    except OSError:  # nobody holds the terminal any more
        pass
    os.close(leader)
    if process.wait():
        raise RuntimeError(f"{shlex.quote(line)} failed: {shown.decode()}")
    return METER.sub("", shown.decode().replace("\r\n", "\n"))


def without_chance(text: str, refs: list[str]) -> str:
    """Return the text with made-up references and nonces, the same ones at each run."""
    for number, ref in enumerate(refs):
        digest = hashlib.sha256(str(number).encode()).digest()
        made = f"art_{b32encode(digest).decode().lower()[:26]}"
        # A terminal is shown the first seven characters behind "art_".
        text = text.replace(ref, made).replace(ref[4:11], made[4:11])
    return re.sub(r"untrusted-[0-9a-f]{8}", "untrusted-5d0c4a7e", text)
