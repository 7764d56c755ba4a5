"""The service over HTTP as a process on loopback."""

import os
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from fetchstash.cli.demo.driver import command


@contextmanager
def served(folder: Path, *flags: str) -> Generator[str]:
    """Start ``fetchstash serve --http`` on a free port, and yield the URL.

    Fails if the service logs an error, or does not end well.
    """
    # The machine that runs this may have a kernel without Landlock.
    environment = os.environ | {"FETCHSTASH_EXTRACT_CONFINE": "auto"}
    words = [command(), "serve", "--http", "127.0.0.1:0", "--folder", str(folder / "store"), *flags]
    folder.mkdir(exist_ok=True)
    log = folder / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        ) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        address = re.search(r"http://[^ ]+/mcp", line)
        if address is None:
            process.kill()
            raise SystemExit(f"FAILED: the service said {line!r}")
        yield address[0]
        process.terminate()
        code = process.wait(120)
    faults = [line for line in log.read_text().splitlines() if '"level":"error"' in line]
    if code or faults:
        raise SystemExit(f"FAILED: the service ended with {code}, and logged {faults[:3]}")
