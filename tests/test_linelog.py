"""Logs that stay open: rotated, moved, deleted, forked and replaced under the writer."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fetchstash.system.linelog import MOST_OPEN, LineLog, append


def numbers(path: Path) -> list[int]:
    """Return what was written to a log."""
    return [json.loads(line)["n"] for line in path.read_text().splitlines()]


def open_files() -> int:
    """Return how many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
def test_a_log_is_opened_once_and_few_logs_stay_open(tmp_path: Path) -> None:
    before = open_files()
    for n in range(3 * MOST_OPEN):
        for _ in range(2):
            LineLog(tmp_path / f"{n}", 1_000).append({"n": n})
    assert open_files() <= before + MOST_OPEN
    assert all(numbers(tmp_path / f"{n}") == [n, n] for n in range(3 * MOST_OPEN))


def test_a_log_goes_on_in_a_new_file_where_its_own_was_moved_or_removed(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    log = LineLog(folder / "log", 1_000)
    log.append({"n": 0})
    log.path.rename(folder / "moved")
    log.append({"n": 1})
    folder.rename(tmp_path / "elsewhere")
    log.append({"n": 2})
    log.path.unlink()
    log.append({"n": 3})
    other = folder / "other"
    other.write_text('{"n":4}\n')
    other.replace(log.path)
    log.append({"n": 5})
    assert numbers(log.path) == [4, 5]
    assert numbers(tmp_path / "elsewhere" / "log") == [1]
    assert numbers(tmp_path / "elsewhere" / "moved") == [0]


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_in_the_place_of_an_open_log_is_not_followed(tmp_path: Path) -> None:
    log = LineLog(tmp_path / "log", 1_000)
    log.append({"n": 0})
    log.path.rename(tmp_path / "target")
    log.path.symlink_to(tmp_path / "target")
    log.append({"n": 1})
    with pytest.raises(OSError, match=r".+"):
        append(log.path, b"{}\n")
    assert numbers(tmp_path / "target") == [0]


def test_threads_lose_and_break_no_line_while_the_log_is_moved(tmp_path: Path) -> None:
    log = LineLog(tmp_path / "log", 10**6)
    with ThreadPoolExecutor(4) as pool:
        for n in range(400):
            pool.submit(log.append, {"n": n})
            if n % 40 == 20 and log.path.exists():
                log.path.rename(tmp_path / f"log-{n}")
    written = [n for path in tmp_path.iterdir() for n in numbers(path)]
    assert sorted(written) == list(range(400))


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no fork")
def test_a_forked_process_writes_to_the_log_of_its_parent(tmp_path: Path) -> None:
    log = LineLog(tmp_path / "log", 1_000)
    log.append({"n": 0})
    child = os.fork()
    if child == 0:
        log.append({"n": 1})
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    log.append({"n": 2})
    assert numbers(log.path) == [0, 1, 2]
