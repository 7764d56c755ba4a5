"""The room's door: what is public, and what it costs to open it."""

import subprocess
import sys

import pytest


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
