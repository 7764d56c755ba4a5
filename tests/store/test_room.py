"""The room's door: what is public, and what it costs to open it."""

import subprocess
import sys

import pytest

import fetchstash.store


def test_every_public_name_stands_in_all() -> None:
    public = {name for name in vars(fetchstash.store) if not name.startswith("_")}
    assert sorted(public) == sorted(fetchstash.store.__all__)


@pytest.mark.slow
def test_importing_the_room_imports_nothing_heavy() -> None:
    heavy = {"httpx2", "mcp", "pydantic", "pypdfium2", "re2", "selectolax", "PIL", "tiktoken"}
    code = f"import sys, fetchstash.store; print(sorted({heavy} & set(sys.modules)))"
    assert (
        subprocess.run(
            [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )
