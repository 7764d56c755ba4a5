"""What an agent pays for taking the client in."""

import os
import subprocess
import sys

import pytest

from fetchstash import client


def test_names_that_were_not_imported_yet_are_shown_too() -> None:
    assert set(client.__all__) <= set(dir(client))


@pytest.mark.slow
def test_no_third_party_module_is_imported_by_any_part_of_the_client() -> None:
    use = "from fetchstash.client import *; classify('prompt is too long');"
    tell = (
        "import sys; {} print(*{{name.split('.')[0] for name in sys.modules}}"
        " - set(sys.stdlib_module_names))"
    )
    run, bare = (_run(tell.format(what)) for what in (use, "import fetchstash;"))
    # What the interpreter itself brings in (a .pth of the environment) is not the client's doing.
    assert set(run.split()) <= set(bare.split())


def _run(program: str) -> str:
    root = str(client.__file__).partition("fetchstash")[0]
    environment = {**os.environ, "PYTHONPATH": root}
    return subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    ).stdout
