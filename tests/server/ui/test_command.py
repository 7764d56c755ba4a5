"""The command ``fetchstash ui``, as a person starts and ends it."""

import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import httpx2
import pytest

COMMAND = [sys.executable, "-P", "-c", "from fetchstash.cli import main; main()"]
pytestmark = pytest.mark.long


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "FETCHSTASH_STORE_FOLDER": str(folder / "store")}


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is sent otherwise there")
def test_the_link_opens_the_page_and_ctrl_c_ends_it_with_a_page_open(tmp_path: Path) -> None:
    started = subprocess.Popen(
        [*COMMAND, "ui", "--no-browser"],
        env=environment(tmp_path),
        cwd=tmp_path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert started.stdout
    link = started.stdout.readline().strip()
    with httpx2.Client() as client:
        assert client.get(link).status_code == 200
        events = link.partition("?")[0] + "api/events"
        with client.stream("GET", events) as stream:
            assert next(stream.iter_lines()) == "retry: 1000"
            started.send_signal(signal.SIGINT)
            _, errors = started.communicate(timeout=30)
    assert started.returncode == 130
    assert "Traceback" not in errors


def test_stats_draw_their_plot_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Some words.\n")
    plot = tmp_path / "plot.svg"
    for words in (["fetch", "a.txt"], ["stats", "--plot", str(plot)]):
        subprocess.run([*COMMAND, *words], env=environment(tmp_path), cwd=tmp_path, check=True)
    texts = [element.text for element in ET.parse(plot).iter("{http://www.w3.org/2000/svg}text")]
    assert {"By kind", "By host", "text", "this machine"} <= set(texts)
