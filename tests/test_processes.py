"""Folders are removed however deep they are, and processors are those of the container."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from contextlib import suppress
from pathlib import Path

import pytest

from fetchstash.system.processes import is_gone, kill, processors, remove_tree


def test_a_folder_is_removed_with_all_that_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "a" / "b").mkdir(parents=True)
    for path in (folder, folder / "a", folder / "a" / "b"):
        (path / "file").write_text("x")
    remove_tree(folder)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="modes and links are POSIX's")
def test_links_are_removed_and_not_followed_and_closed_folders_are_opened(tmp_path: Path) -> None:
    folder, kept = tmp_path / "folder", tmp_path / "kept"
    (folder / "closed").mkdir(parents=True)
    kept.mkdir()
    (kept / "file").write_text("x")
    (folder / "closed" / "link").symlink_to(kept)
    (folder / "closed" / "file").touch()
    (folder / "closed").chmod(0o300)
    remove_tree(folder)
    assert list(tmp_path.iterdir()) == [kept]
    assert os.listdir(kept) == ["file"]  # noqa: PTH208 - names alone


def test_a_folder_that_is_missing_is_no_fault(tmp_path: Path) -> None:
    remove_tree(tmp_path / "missing")


@pytest.mark.skipif(sys.platform != "linux", reason="control groups are of Linux")
@pytest.mark.parametrize(
    ("cpu_max", "expected"),
    [
        ("200000 100000\n", 2), ("150000 100000\n", 2), ("10000 100000\n", 1), ("0 0\n", 1),
        ("max 100000\n", 64), ("6400000 50000\n", 64), ("", 64), ("nonsense\n", 64), (None, 64),
    ],
)  # fmt: skip
def test_a_container_has_the_processors_that_its_group_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpu_max: str | None, expected: int
) -> None:
    def all_64(_: int) -> set[int]:
        return set(range(64))

    monkeypatch.setattr(os, "sched_getaffinity", all_64)
    file = tmp_path / "cpu.max"
    if cpu_max is not None:
        file.write_text(cpu_max)
    assert processors(file) == expected


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows reaps no process")
async def test_a_process_that_has_ended_is_left_to_the_loop_which_warns_otherwise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for _ in range(20):  # on Python 3.11 a thread of the loop may be the first all the same
        process = await asyncio.create_subprocess_exec("true", stdin=PIPE, stdout=PIPE)
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        kill(process)
        assert await is_gone(process)
    assert caplog.messages == []
