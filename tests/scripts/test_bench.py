"""What the runner of the benchmarks takes for a failure."""

import importlib
import os
from pathlib import Path
from types import ModuleType

import pytest

OTHER = 'import subprocess, sys; subprocess.run([sys.executable, "-c", "1 / 0"])'

pytestmark = pytest.mark.slow


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the runner, which finds its benchmarks in ``tmp_path``."""
    module = importlib.import_module("scripts.parts.bench")
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    return module


@pytest.mark.parametrize(
    ("program", "is_good"),
    [
        ("print(1)", True),
        ("raise SystemExit(1)", True),  # a bound is missed
        (f"{OTHER}", True),
        (f"{OTHER}; sys.exit(1)", True),
        ("1 / 0", False),
        ("import argparse; argparse.ArgumentParser().parse_args(['--what'])", False),
        ("import os; os.abort()", False),
        ("def", False),
    ],
)
def test_only_its_own_end_makes_a_benchmark_fail(
    bench: ModuleType, tmp_path: Path, program: str, *, is_good: bool
) -> None:
    tmp_path.joinpath("some.py").write_text(f"{program}{os.linesep}")
    assert bench.run("some", []) is is_good
