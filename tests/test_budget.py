"""The size of the house: no room grows beyond its budget.

A change that needs more than its room has left takes something out of that room first.
"""

from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

BUDGET = {
    "bench": (17, 2_818),
    "compare": (11, 1_534),
    "fetchstash": (4, 967),
    "fetchstash/cli": (25, 5_854),
    "fetchstash/client": (23, 6_126),
    "fetchstash/config": (4, 1_180),
    "fetchstash/fetch": (21, 5_356),
    "fetchstash/gateway": (14, 3_553),
    "fetchstash/handlers": (88, 23_111),
    "fetchstash/render": (6, 1_215),
    "fetchstash/server": (18, 3_583),
    "fetchstash/service": (18, 4_795),
    "fetchstash/stash": (15, 4_518),
    "fetchstash/store": (28, 8_084),
    "fetchstash/system": (4, 621),
    "fetchstash/text": (7, 1_449),
    "scripts": (43, 6_299),
    "tests": (245, 55_262),
}
"""The most modules and lines of each room, and of what stands beside the package."""

ENTRIES = {"fetchstash": 16, "scripts": 15}
"""The most entries of a folder that a newcomer sees, caches and py.typed aside."""

LONGEST = 470
"""The most lines of a module: more is two themes."""


def room_of(path: Path) -> str:
    """Return the room of a source file."""
    folder, *rest = path.relative_to(ROOT).parts
    return f"{folder}/{rest[0]}" if folder == "fetchstash" and len(rest) > 1 else folder


def sources() -> list[Path]:
    folders = {room.split("/")[0] for room in BUDGET}
    return [path for folder in sorted(folders) for path in (ROOT / folder).rglob("*.py")]


@pytest.mark.parametrize("room", BUDGET)
def test_a_room_stays_within_its_budget(room: str) -> None:
    of_room = [path for path in sources() if room_of(path) == room]
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in of_room)
    modules, most = BUDGET[room]
    assert len(of_room) <= modules
    assert lines <= most


def test_every_room_has_a_budget() -> None:
    assert set(Counter(map(room_of, sources()))) == set(BUDGET)


@pytest.mark.parametrize("folder", ENTRIES)
def test_a_newcomer_sees_few_entries(folder: str) -> None:
    seen = {path.name for path in (ROOT / folder).iterdir()}
    assert len(seen - {"__init__.py", "__pycache__", "py.typed"}) <= ENTRIES[folder]


def test_no_module_holds_more_than_one_theme() -> None:
    own = [path for path in sources() if path.relative_to(ROOT).parts[0] == "fetchstash"]
    long = [path for path in own if len(path.read_text("utf-8").splitlines()) > LONGEST]
    assert not long
