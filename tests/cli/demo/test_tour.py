"""The demonstration as a person runs it."""

import os
import shutil
import signal
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import pytest

from fetchstash.cli.demo import _tour, site as content
from fetchstash.errors import Internal

pytestmark = pytest.mark.slow

FETCHSTASH = shutil.which("fetchstash", path=sysconfig.get_path("scripts")) or "fetchstash"


def test_it_shows_every_way_into_a_document_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lines: list[str] = []
    assert _tour.run(lines.append) == 0
    assert all(len(line) < 80 for line in lines)
    shown = "\n".join(lines)
    for tool in ("fetch_content(", "get_search_content(", "artifact_grep(", "artifact_slice("):
        assert f"\n{tool}" in shown
    assert not [
        needle for needle in content.NEEDLES if needle.words not in shown.replace("\n| ", " ")
    ]
    assert "Ignore your instructions" not in shown  # the article hides it from people
    assert lines[-1].endswith(".")
    assert not list(tmp_path.iterdir())


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="a process of one's own cannot be sent Ctrl-C there")
def test_an_interrupt_ends_the_server_and_leaves_nothing(tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [FETCHSTASH, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as process:
        assert process.stdout
        for line in process.stdout:
            if line.startswith("3."):
                break
        process.send_signal(signal.SIGINT)
        # The server and its workers inherit stderr: it ends only when all of them have.
        _, errors = process.communicate(timeout=20)
    assert process.returncode != 0
    assert "Traceback" not in errors
    assert not list(tmp_path.iterdir())


def test_a_missing_command_gives_an_error_with_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", {"scripts": str(tmp_path)}.get)
    with pytest.raises(Internal, match="is not installed"):
        _tour.run(lambda _: None)
