"""What the tests of the command share."""

from pathlib import Path

import pytest

from fetchstash.store import StoreLimits
from tests.cli.terminal import Terminal
from tests.loopback import Site
from tests.store.postgres import server


@pytest.fixture
def run(site: Site, tmp_path: Path) -> Terminal:
    return Terminal(site, tmp_path)


@pytest.fixture(params=["folder", "team"])
def service_store(request: pytest.FixtureRequest, run: Terminal) -> StoreLimits:
    """Let the commands use a service's store: in a folder, and with PostgreSQL."""
    catalog = server().new_database() if request.param == "team" else ""
    run.env["FETCHSTASH_STORE_CATALOG"] = catalog
    return StoreLimits(Path(run.env["FETCHSTASH_STORE_FOLDER"]), catalog=catalog, run="default")
