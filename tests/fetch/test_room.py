"""The room's wall: what it shows, and what importing it costs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fetchstash import fetch


@pytest.mark.slow
def test_importing_the_room_imports_no_http_library() -> None:
    heavy = "{'httpx2', 'httpcore2', 'hishel', 'idna', 'brotli', 'ifaddr', 'h11'}"
    program = f"import sys, fetchstash.fetch; print(sorted({heavy} & set(sys.modules)))"
    home = str(Path(fetch.__file__).parents[2])  # the checkout's, or the one that is installed
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": home},
    )
    assert done.stdout.strip() == "[]"
