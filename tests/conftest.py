"""What every test shares: the event loop, and a site on loopback."""

import functools
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from http.server import ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import settings

# Modules that tests share stand beside them. At the end of the path: the fetchstash that is
# installed goes before the checkout's.
sys.path.append(str(Path(__file__).parents[1]))

from tests.loopback import Page, Quiet, Site, serving

# The same examples in every run, however slow the machine is; --hypothesis-profile=default looks
# for new ones.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")

# Whoever runs the tests in the background ignores SIGINT for all of their children (POSIX, 2.11);
# the tests of Ctrl-C start some that must not.
signal.signal(signal.SIGINT, signal.default_int_handler)


MAY_START_A_WORKER = {"connect", "install_plugin", "open_public", "open_stash"}
"""Fixtures whose tests are slow without a mark: each opens a whole Stash or loads a plugin.

With the mark ``in_process`` they read documents without a worker, all else as it is, and
``--quick`` runs them too.
"""
COSTLY = Path(__file__).with_name("costly.txt")
"""The tests that take long for ``scripts/test --quick``, as ``--measure`` found them."""
MOST_SECONDS = {"tests/stash": 0.1}
"""What a case may take of a processor and not be costly: 0.04 s, more where all is composed."""
seconds: dict[str, float] = {}
processes: list[str] = []


def note_process(event: str, arguments: tuple[Any, ...]) -> None:
    """Note a fork, or a Python that starts (PEP 578).

    Others do not count: libraries ask `ldconfig` or `lsb_release` when they are imported.
    """
    if event in {"subprocess.Popen", "os.posix_spawn"}:  # the second is the first's, from 3.13
        program = Path(os.fsdecode(arguments[0])).name
        if program.startswith(("python", "fetchstash")):
            processes.append(program)
    elif event == "os.fork":
        processes.append(event)


sys.addaudithook(note_process)


def stay_on_loopback(event: str, arguments: tuple[Any, ...]) -> None:
    """Let no test dial another machine, whatever guard of ours would fail to refuse it."""
    if event == "socket.connect" and isinstance(address := arguments[1], tuple):
        host = str(cast("tuple[object, ...]", address)[0]).partition("%")[0]
        if host != "localhost" and not ip_address(host).is_loopback:
            raise AssertionError(f"A test dials {host}: tests stay on loopback.")


sys.addaudithook(stay_on_loopback)


# Nothing that collecting the tests makes is garbage: the collector would go through it all again.
gc.disable()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options for short runs.

    ``--cases N``: of each test's table of cases run N at most, from all over it; a test that is
    marked ``whole`` runs all of its table. ``--cheap``: leave out what COSTLY lists, and what needs
    PostgreSQL. ``--deal``: let each process read its share of the files alone: to read all takes it
    as long as the quick tests do (--dist each).
    ``--measure``: write the list, of the tests that are selected (-n 0).
    """
    parser.addoption("--cases", type=int, default=0)
    parser.addoption("--cheap", action="store_true")
    parser.addoption("--deal", action="store_true")
    parser.addoption("--measure", action="store_true")


def pytest_configure(config: pytest.Config) -> None:
    """Let the quick tests start no PostgreSQL: the other stores keep the same contract."""
    if config.option.cheap:
        os.environ["TESTS_WITHOUT_POSTGRESQL"] = "1"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files that ``--deal`` gives to other processes: the largest in turn."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    place = dealt().get(collection_path) if config.option.deal and worker else None
    if place is None:
        return None
    turn = place % int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    return turn != int(worker.removeprefix("gw")) or None


@functools.cache
def dealt() -> dict[Path, int]:
    """Return the files of tests, each with its place by size."""
    files = sorted(COSTLY.parent.rglob("test_*.py"), key=lambda file: -file.stat().st_size)
    return {file: place for place, file in enumerate(files)}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that use a fixture with a worker."""
    if most := config.option.cases:
        tables: dict[object, list[pytest.Item]] = {}
        for item in items:
            tables.setdefault((item.parent, getattr(item, "originalname", "")), []).append(item)
        kept = {item for cases in tables.values() for item in cases[:: -(-len(cases) // most)]}
        kept.update(item for item in items if item.get_closest_marker("whole"))
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]
    if config.option.cheap:
        costly = set(COSTLY.read_text(encoding="utf-8").split())
        kept = {item for item in items if name_of(item) not in costly}
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]
    for item in items:
        starts_worker = MAY_START_A_WORKER.intersection(getattr(item, "fixturenames", ()))
        in_process = item.get_closest_marker("in_process")
        if item.get_closest_marker("long") or (starts_worker and not in_process):
            item.add_marker(pytest.mark.slow)


def name_of(item: pytest.Item) -> str:
    """Return the name of a test without that of its case."""
    return item.nodeid.partition("[")[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure a case if it is asked for: its share of a processor, its fixtures' included."""
    if not item.config.option.measure:
        return (yield)
    begin = time.process_time()
    done = yield
    name = name_of(item)
    seconds[name] = max(seconds.get(name, 0), time.process_time() - begin)
    return done


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the list of costly tests if it is asked for."""
    if session.config.option.measure:
        over = (n for n, s in seconds.items() if s > MOST_SECONDS.get(n.rpartition("/")[0], 0.04))
        COSTLY.write_text("".join(f"{name}\n" for name in sorted(over)), encoding="utf-8")


def pytest_collection_finish() -> None:
    """Let no garbage collection go through all tests and modules, from here on either."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _rank_in_threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a quick test start no process to rank a text."""
    module = sys.modules.get("fetchstash.store._threads")
    if module and not request.node.get_closest_marker("slow"):
        monkeypatch.setattr(module, "LITTLE", 2**40)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Fail a test that starts a process and is not marked slow: ``--quick`` would run it."""
    yield
    if processes and not item.get_closest_marker("slow"):
        pytest.fail(f"{item.name} starts a process. Mark it with @pytest.mark.slow.", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None]:
    """Count the processes of each test from none."""
    processes.clear()
    yield


@pytest.fixture(autouse=True)
def read_in_process(request: pytest.FixtureRequest) -> None:
    """Let no worker read the documents of a quick test that is marked ``in_process``."""
    marked = request.node.get_closest_marker
    if marked("in_process") and not marked("slow"):
        from tests.in_process import InProcess

        # Asked for here alone: a patch of a test is undone before the fixtures of that test end.
        monkeypatch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
        monkeypatch.setattr("fetchstash.stash._open.WorkerPool", InProcess)
        if "fetchstash.files" in sys.modules:
            monkeypatch.setattr("fetchstash.files.WorkerPool", InProcess)
        monkeypatch.setattr("fetchstash.stash._open.ocr_is_installed", lambda: False)


@pytest.fixture
def anyio_backend() -> str:
    """Run async tests on asyncio, as the server does."""
    return "asyncio"


@pytest.fixture
def store_settings(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Return the settings of the store: a folder, unless ``both_stores`` says otherwise."""
    if getattr(request, "param", "folder") == "memory":
        return {"store.url": "memory:"}
    return {"store.folder": str(tmp_path / "store")}


@pytest.fixture
def site() -> Generator[Site]:
    """Serve a site for one test."""
    it = Site()

    class Handler(Quiet):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            it.asked.append(self.path)
            page = it.pages.get(self.path, Page(b"not here", {"Content-Type": "text/plain"}, 404))
            if page.script:
                page.script(self)
                return
            with suppress(OSError):
                self.send_response(page.status)
                for name, value in page.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(page.body)))
                self.end_headers()
                self.wfile.write(page.body)

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as it.port:
        yield it


@pytest.fixture
def install_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Return a function that installs a package, as pip would leave it, for the workers to find.

    Its entry point is ``FORMATS`` of the module whose source is given.
    """

    def install(package: str, module: str) -> None:
        site, name = tmp_path / "plugins", package.replace("-", "_")
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[fetchstash.formats]\n{name} = {name}:FORMATS\n")
        (site / f"{name}.py").write_text(module)
        if str(site) not in os.environ.get("PYTHONPATH", ""):
            monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)

    return install
