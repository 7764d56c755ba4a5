"""The demonstration as a person runs it, and how it looks."""

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from fetchstash.cli._terminal import screen_of
from fetchstash.cli.demo import _tour, site as content
from fetchstash.cli.demo._tour import (
    COLUMNS,
    HEAD_ROWS,
    TAIL_ROWS,
    call_rows,
    print_rows,
    result_rows,
)
from fetchstash.errors import Internal

FETCHSTASH = shutil.which("fetchstash", path=sysconfig.get_path("scripts")) or "fetchstash"


@pytest.mark.long
def test_it_shows_every_way_into_a_document_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert _tour.run() == 0
    shown = capsys.readouterr().out.rstrip("\n")
    lines = shown.split("\n")
    assert all(len(line) < 80 for line in lines)
    for tool in ("fetch_content(", "get_search_content(", "artifact_grep(", "artifact_slice("):
        assert f"\n{tool}" in shown
    assert not [
        needle for needle in content.NEEDLES if needle.words not in shown.replace("\n| ", " ")
    ]
    assert "Ignore your instructions" not in shown  # the article hides it from people
    assert lines[-1].endswith(".")
    shares = [float(share) for share in re.findall(r"([\d.]+)%$", shown, re.MULTILINE)]
    assert len(shares) > 8
    assert max(shares) < 100
    assert any(line.endswith(" whole") for line in lines)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
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
        _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "Traceback" not in errors
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_missing_command_gives_an_error_with_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", {"scripts": str(tmp_path)}.get)
    with pytest.raises(Internal, match="is not installed"):
        _tour.run()


@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        pytest.param(
            {"artifact_ref": "art_a", "start": 30, "literal": True},
            ['slice(artifact_ref="art_a", start=30, literal=true)'],
            id="short",
        ),
        pytest.param(
            {"path": 'a"b', "urls": ["x", "y"]},
            ['slice(path="a\\"b", urls=["x", "y"])'],
            id="quoted",
        ),
        pytest.param(
            {"a": "x" * 60, "b": "y" * 60},
            ["slice(", f'    a="{"x" * 60}",', f'    b="{"y" * 60}",', ")"],
            id="long",
        ),
    ],
)
def test_a_call_stands_as_a_model_makes_it(arguments: dict[str, object], rows: list[str]) -> None:
    assert call_rows("slice", arguments) == rows


@pytest.mark.parametrize("lines", [0, 1, HEAD_ROWS + TAIL_ROWS, HEAD_ROWS + TAIL_ROWS + 1, 1_000])
@pytest.mark.parametrize("line", ["", "word", "a long line of many words " * 50, "x" * 5_000])
def test_a_result_is_bounded_in_rows_and_columns(lines: int, line: str) -> None:
    rows = result_rows("\n".join(["first", *[line] * lines, "last"]))
    assert len(rows) <= HEAD_ROWS + TAIL_ROWS + 1
    assert all(len(row) < COLUMNS for row in rows)
    assert (rows[0], rows[-1]) == ("| first", "| last")
    if line == "word" and len(rows) > HEAD_ROWS + TAIL_ROWS:
        left_out = lines + 2 - HEAD_ROWS - TAIL_ROWS
        assert rows[HEAD_ROWS] == f"| [... {left_out} more rows ...]"


@pytest.mark.parametrize(
    ("terminal", "variables", "styled"),
    [
        pytest.param(True, {"TERM": "xterm"}, True, id="terminal"),
        pytest.param(False, {"TERM": "xterm"}, False, id="pipe"),
        pytest.param(True, {"TERM": "xterm", "NO_COLOR": "1"}, False, id="NO_COLOR"),
        pytest.param(True, {"TERM": "xterm", "NO_COLOR": ""}, True, id="empty NO_COLOR"),
        pytest.param(True, {"TERM": "dumb"}, False, id="dumb terminal"),
    ],
)
def test_only_a_terminal_that_likes_it_gets_colours(
    terminal: bool,
    variables: dict[str, str],
    styled: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    screen_of.cache_clear()
    print_rows(["Title"], "title")
    screen_of.cache_clear()
    assert ("\x1b[" in capsys.readouterr().out) is styled


def test_a_terminal_of_another_encoding_gets_question_marks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", out)
    print_rows(["1 … 2 ≈ 3"])
    out.seek(0)
    assert out.read() == "1 … 2 ? 3\n"
