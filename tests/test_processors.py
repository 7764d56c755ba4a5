import os
import sys
from pathlib import Path

import pytest

from fetchstash.system.processors import processors


@pytest.mark.skipif(sys.platform != "linux", reason="control groups are of Linux")
@pytest.mark.parametrize(
    ("cpu_max", "expected"),
    [
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),
        ("10000 100000\n", 1),
        ("0 0\n", 1),
        ("max 100000\n", 64),
        ("6400000 50000\n", 64),
        ("", 64),
        ("nonsense\n", 64),
        (None, 64),
    ],
)
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
