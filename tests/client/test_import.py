"""What an agent pays for taking the client in."""

import os
import subprocess
import sys

import pytest

from fetchstash import client


def test_all_equals_the_visible_names() -> None:
    assert len(client.__all__) == len(set(client.__all__))
    assert all(hasattr(client, name) for name in client.__all__)
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


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(client, "nothing")


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
