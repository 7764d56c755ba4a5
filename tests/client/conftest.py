"""Makes the modules that the client's tests share importable by name, in importlib's mode."""

import sys
from pathlib import Path

import pytest

from fetchstash.client import learned_windows

# At the end: an installed fetchstash goes before the checkout's.
sys.path.append(str(Path(__file__).parents[2]))


@pytest.fixture(autouse=True)
def forget() -> None:
    """Forget the windows that other tests learned: a port may be given twice."""
    learned_windows.clear()
