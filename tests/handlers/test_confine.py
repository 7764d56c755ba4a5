"""A worker that was broken into reaches nothing; the same attempts reach it from outside."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fetchstash.handlers import Decision, Extraction, Hints, WorkerPool
from tests.handlers import probe

pytestmark = [pytest.mark.anyio, pytest.mark.long]
linux = pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")

Install = Callable[..., None]

HANDLER = """

class Probe:
    name = "probe"

    def extract(self, source, hints, limits):
        return Extracted([Part("\\n".join(attempt(orders_in(source))) + "\\n")])


from fetchstash.handlers import Extracted, Format, Part

FORMATS = (
    Format(
        kind="unknown_binary", word="probe", handler=Probe, media_types=("application/x-probe",),
    ),
)
"""
DECISION = Decision("unknown_binary", "application/x-probe", "", "magic", (), mismatch=False)


@dataclass
class Prey:
    """What a user has beside a worker: files, sockets, and the server's own process."""

    folder: Path
    tcp: int
    udp: int
    abstract: str

    def orders(self) -> list[tuple[str, str]]:
        secret, catalog = str(self.folder / "id_ed25519"), str(self.folder / "catalog.db")
        me = str(os.getpid())
        return [
            ("read_file", secret),
            ("read_file", catalog),
            ("read_file", str(self.folder / "raw" / "another-blob")),
            ("read_file", "/etc/passwd"),
            ("read_file", probe.environment_of(os.getpid())),
            ("list_folder", str(self.folder)),
            ("list_folder", "/proc"),
            ("write_file", secret),
            ("write_file", catalog),
            ("list_labels", secret),
            ("truncate", str(self.folder / "victim")),
            ("chmod", str(self.folder / "victim")),
            ("make_file", str(self.folder)),
            ("tcp", str(self.tcp)),
            ("udp", str(self.udp)),
            ("unix", str(self.folder / "agent.sock")),
            ("abstract", self.abstract),
            ("listen", ""),
            ("run_program", ""),
            ("fork", ""),
            ("signal", me),
            ("signal_group", ""),
            ("read_memory", me),
            ("limit_other", me),
            ("affinity", me),
            ("watch", str(self.folder)),
            ("signal_by_pipe", me),
            ("raise_limit", "RLIMIT_AS"),
            ("raise_limit", "RLIMIT_CPU"),
            ("stay_alive", ""),
            ("take_requests", ""),
            ("watch_files", ""),
            ("take_timers", ""),
            ("grow_pipe", ""),
            ("lock_memory", ""),
            ("open_files", "500"),
            ("memory_file", ""),
            *([("host_name", "")] if os.geteuid() == 0 else []),
        ]


@pytest.fixture
def prey(tmp_path: Path) -> Iterator[Prey]:
    folder = tmp_path / "home"
    (folder / "raw").mkdir(parents=True)
    for name in ("id_ed25519", "catalog.db", "victim", "raw/another-blob"):
        (folder / name).write_text("secret")
    abstract = f"fetchstash-test-{os.getpid()}"
    with contextlib.ExitStack() as open_sockets:
        tcp = open_sockets.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = open_sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        for address in (str(folder / "agent.sock"), f"\0{abstract}"):
            unix = open_sockets.enter_context(socket.socket(socket.AF_UNIX))
            unix.bind(address)
            unix.listen()
        yield Prey(folder, tcp.getsockname()[1], udp.getsockname()[1], abstract)


@pytest.fixture
async def pool(tmp_path: Path, install_handler: Install) -> AsyncIterator[WorkerPool]:
    install_handler("probe_handler", Path(probe.__file__).read_text() + HANDLER)
    (tmp_path / "spool").mkdir()
    pool = WorkerPool(workers=1, folder=tmp_path / "spool")
    yield pool
    await pool.aclose()


async def run(pool: WorkerPool, tmp_path: Path, orders: list[tuple[str, str]]) -> list[str]:
    source = tmp_path / "orders.json"
    source.write_text(json.dumps(orders))
    extraction: Extraction = await pool.extract(source, DECISION, Hints(), tmp_path / "spool")
    assert extraction.text is not None, extraction.extraction_error
    return extraction.text.read_text().splitlines()


def orders_of_any_system(folder: Path, tcp: int) -> list[tuple[str, str]]:
    """Return what a worker is refused on Windows, too, and more where reading can be refused."""
    secret = str(folder / "id_ed25519")
    orders = [("write_file", secret), ("truncate", secret), ("make_file", str(folder))]
    orders += [("run_program", "")]
    if sys.platform != "win32":
        orders += [("read_file", secret), ("list_folder", str(folder)), ("tcp", str(tcp))]
        orders += [("listen", ""), ("fork", ""), ("signal", str(os.getpid()))]
    return orders


def attempted_outside(tmp_path: Path, orders: list[tuple[str, str]]) -> list[str]:
    source = tmp_path / "orders.json"
    source.write_text(json.dumps(orders))
    command = [sys.executable, "-P", probe.__file__, str(source)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


@pytest.mark.confinement
async def test_a_worker_is_confined_on_this_system(pool: WorkerPool, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "id_ed25519").write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        orders = orders_of_any_system(tmp_path / "home", server.getsockname()[1])
        confined = await run(pool, tmp_path, orders)
        assert (tmp_path / "home" / "id_ed25519").read_text() == "secret"
        outside = attempted_outside(tmp_path, orders)
    assert len(confined) == len(orders)
    assert [line for line in confined if ": refused" not in line] == []
    assert [line for line in outside if not line.endswith(": reached")] == []


@linux
async def test_a_worker_reaches_nothing_of_its_user(
    pool: WorkerPool, tmp_path: Path, prey: Prey
) -> None:
    lines = await run(pool, tmp_path, prey.orders())
    assert len(lines) == len(prey.orders())
    assert [line for line in lines if ": refused" not in line] == []
    assert (prey.folder / "victim").read_text() == "secret"


@linux
def test_the_same_attempts_reach_it_without_confinement(tmp_path: Path, prey: Prey) -> None:
    """Else the test above could not fail."""
    # Another process may not read this one's memory on some systems, whatever its user.
    orders = [order for order in prey.orders() if order[0] != "read_memory"]
    lines = attempted_outside(tmp_path, orders)
    assert len(lines) == len(orders)
    assert [line for line in lines if not line.endswith(": reached")] == []


@linux
async def test_a_worker_cannot_write_its_document_nor_name_others_files(
    pool: WorkerPool, tmp_path: Path, prey: Prey
) -> None:
    secret = str(prey.folder / "id_ed25519")
    orders = [("write_source", ""), ("link_out", secret), ("symbolic_link", secret)]
    lines = await run(pool, tmp_path, orders)
    assert [line for line in lines if ": refused" not in line] == []


@linux
async def test_a_worker_changes_nothing_about_its_document(
    pool: WorkerPool, tmp_path: Path
) -> None:
    """Its document is a second name of the store's own file, whose time and rights it shares."""
    changes = ("touch", "chmod", "label", "cut", "flag", "lease")
    orders = [(f"{change}_source", "") for change in changes]
    lines = await run(pool, tmp_path, orders)
    assert len(lines) == len(orders)
    assert [line for line in lines if ": refused" not in line] == []


@linux
async def test_a_worker_that_keeps_its_text_open_is_ended_before_the_text_is_taken(
    pool: WorkerPool, tmp_path: Path
) -> None:
    """The text becomes the store's own file, which another artifact may share."""
    source = tmp_path / "orders.json"
    source.write_text(json.dumps([("keep_text", "")]))
    extraction = await pool.extract(source, DECISION, Hints(), tmp_path / "spool")
    assert extraction.extraction_error == "its reader kept its text open"
    assert extraction.text is not None
    kept = extraction.text.read_bytes()
    await run(pool, tmp_path, [("garble_text", "")])
    assert extraction.text.read_bytes() == kept


@linux
async def test_a_worker_cannot_name_its_text_again_when_it_is_taken(
    pool: WorkerPool, tmp_path: Path
) -> None:
    lines = await run(pool, tmp_path, [("name_text_again", ""), ("keep_text_to_read", "")])
    assert [": refused" in line for line in lines] == [True, False]
    (line,) = await run(pool, tmp_path, [("link_kept_text", "")])
    assert ": refused" in line


@linux
async def test_a_worker_that_nests_folders_endlessly_is_replaced_and_its_folder_is_removed(
    pool: WorkerPool, tmp_path: Path
) -> None:
    orders = [("nest_folders", "3000")]
    assert await run(pool, tmp_path, orders) == ["nest_folders 3000: reached"]
    assert await run(pool, tmp_path, orders) == ["nest_folders 3000: reached"]
    await pool.aclose()
    assert list((tmp_path / "spool").glob("worker-*")) == []


@linux
async def test_a_worker_writes_files_in_its_own_folder_which_is_gone_with_it(
    pool: WorkerPool, tmp_path: Path
) -> None:
    await run(pool, tmp_path, [])
    (own,) = (tmp_path / "spool").glob("worker-*/out")
    lines = await run(pool, tmp_path, [("make_file", str(own)), ("list_folder", str(own))])
    assert all(line.endswith(": reached") for line in lines)
    await pool.aclose()
    assert list((tmp_path / "spool").glob("worker-*")) == []
