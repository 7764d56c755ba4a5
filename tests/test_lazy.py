"""Rooms that import a name when it is first used."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import fetchstash

ROOMS = [
    ".".join(file.relative_to(Path(fetchstash.__path__[0]).parent).parent.parts)
    for file in sorted(Path(fetchstash.__path__[0]).glob("**/__init__.py"))
    if "= lazy_names(" in file.read_text()
]


@pytest.mark.parametrize("name", ROOMS)
def test_the_table_of_a_room_has_its_public_names_and_no_other(name: str) -> None:
    room = import_module(name)
    names = [name for listed in room._MODULES.values() for name in listed.split()]
    assert sorted(names) == sorted(room.__all__)
    assert all(hasattr(room, name) for name in names)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = room.nothing


@pytest.mark.slow
def test_reading_the_settings_imports_the_limits_of_a_room_and_nothing_else_of_it() -> None:
    rooms = ("fetch", "handlers", "store", "text")
    program = (
        "import sys, fetchstash.config as c; c.load();"
        " print(*sorted(m.removeprefix('fetchstash.') for m in sys.modules"
        f" if m.startswith('fetchstash.') and m.split('.')[1] in {rooms}))"
    )
    words = [sys.executable, "-P", "-c", program]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    limits = ["fetch._contract", "handlers._limits", "store._limits", "text._limits"]
    assert sorted(done.stdout.split()) == sorted([*rooms, *limits])


@pytest.mark.slow
def test_a_server_lists_its_tools_before_it_imports_what_a_call_needs() -> None:
    program = (
        "import sys, fetchstash.server as s; from fetchstash.config import load;"
        " s.serve_stdio, s.build_server(s.LazyStash(load()));"
        " print(*sorted({'stash', 'render._view', 'fetch._fetcher', 'store._base'}"
        " & {m.removeprefix('fetchstash.') for m in sys.modules}))"
    )
    words = [sys.executable, "-P", "-c", program]
    assert subprocess.run(words, check=True, capture_output=True, text=True).stdout == "\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "heavy"),
    [
        ("import fetchstash.store", "httpx2 mcp pydantic pypdfium2 re2 selectolax PIL tiktoken"),
        ("import fetchstash.gateway._serve", "mcp mcp_types pydantic httpx2 starlette PIL"),
        ("import fetchstash.cli as c; c.main(['--help'])", "mcp httpx2 pydantic re2 tiktoken PIL"),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(program: str, heavy: str) -> None:
    at_exit = f"print(sorted({set(heavy.split())} & set(sys.modules)))"
    code = f"import atexit, sys; atexit.register(lambda: {at_exit}); {program}"
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
