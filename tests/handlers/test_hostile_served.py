"""Hostile files through a real server over stdio, which answers pings meanwhile."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.long]

TORTURE = Path(__file__).parents[2] / "scripts" / "torture" / "handlers.py"


@pytest.mark.skipif(
    not TORTURE.exists(), reason="the programs of scripts/ are not part of a source distribution"
)
def test_a_server_answers_hostile_files_with_text_or_one_clear_line_and_stays_small() -> None:
    command = [
        sys.executable,
        "-P",
        str(TORTURE),
        "texts",
        "pages",
        "pictures",
        "--only",
        "an",
        "--length",
        "9999",
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert "no clear line" not in done.stdout
    assert (held := re.search(r"The server held (\d+) MB", done.stdout)), done.stderr
    assert int(held[1]) < 150
