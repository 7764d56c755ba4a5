"""What the tests of the command share."""

from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.loopback import Site


@pytest.fixture
def run(site: Site, tmp_path: Path) -> Terminal:
    return Terminal(site, tmp_path)
