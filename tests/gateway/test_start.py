"""What stands between the start of the gateway and its first answer."""

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_nothing_of_the_sdk_is_imported_before_it_is_needed() -> None:
    heavy = {"mcp", "mcp_types", "pydantic", "httpx2", "starlette", "PIL", "pypdfium2"}
    code = f"import sys, fetchstash.gateway._serve; print(sorted({heavy} & set(sys.modules)))"
    words = [sys.executable, "-P", "-c", code]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "[]\n"
