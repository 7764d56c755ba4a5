"""What the tests of the hosts share."""

from pathlib import Path

import pytest

from fetchstash.cli.hosts._servers import HOSTS, Environment


@pytest.fixture
def env(tmp_path: Path) -> Environment:
    return Environment("linux", tmp_path, {})


def settings(env: Environment, name: str, text: str) -> Path:
    """Write the settings file of a host, and return it."""
    file = HOSTS[name].file(env)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file
