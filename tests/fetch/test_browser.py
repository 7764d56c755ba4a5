"""A real browser behind the guard. Runs where the extra `browser` and a Chromium are."""

import asyncio
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import suppress
from pathlib import Path

import pytest

from fetchstash.errors import FetchFailed, FetchstashError, Refused, TimedOut, TooLarge
from fetchstash.fetch import FetchLimits, HttpFetcher, browser_fault
from tests.fetch.browser_lab import PAGE, run_lab, why_no_lab
from tests.fetch.sending import OK, sends
from tests.loopback import Page, Site

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SCRIPTED = """<html><head><title>t</title></head><body><main id="a"></main><script>
fetch("/words").then(r => r.text()).then(t => document.getElementById("a").textContent = t)
</script></body></html>"""


@pytest.fixture(autouse=True, scope="module")
def browser() -> None:
    """Skip all where no browser starts."""
    if fault := asyncio.run(browser_fault()):
        pytest.skip(f"{fault} scripts/ci extras")


@pytest.fixture
async def fetcher(site: Site) -> AsyncGenerator[HttpFetcher]:
    it = HttpFetcher(FetchLimits(allow_hosts=(f"127.0.0.1:{site.port}",), respect_robots=False))
    yield it
    await it.aclose()


class Inside(threading.Thread):
    """Listens on loopback by TCP and UDP, as a service of the machine would."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.visits = 0
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        self.udp.settimeout(0.05)

    def run(self) -> None:
        with suppress(OSError):
            while True:
                self.tcp.accept()
                self.visits += 1

    def close(self) -> int:
        with suppress(TimeoutError, OSError):
            while self.udp.recv(2_000):
                self.visits += 1
        self.tcp.close()
        self.udp.close()
        return self.visits


@pytest.fixture
def inside() -> Generator[Inside]:
    it = Inside()
    it.start()
    yield it
    it.close()


async def test_a_page_of_scripts_is_rendered(
    fetcher: HttpFetcher, site: Site, tmp_path: Path
) -> None:
    site.put("/words", "what the scripts wrote", "text/plain")
    url = site.put("/", SCRIPTED)
    page = await fetcher.render(url, tmp_path, seconds=60)
    assert "what the scripts wrote</main>" in page.path.read_text()
    assert page.path.stat().st_mode & 0o777 == 0o600
    assert page.browser.startswith("Chromium 1")
    assert page.url == url
    assert "token" not in page.path.read_text()


async def test_a_page_is_shown_as_a_picture_within_the_bounds(
    fetcher: HttpFetcher, site: Site, tmp_path: Path
) -> None:
    url = site.put("/", "<body style='background:#eef'>" + "<p>long</p>" * 400)
    page = await fetcher.render(url, tmp_path, seconds=60, edge=900, max_bytes=2**20)
    assert page.path.read_bytes().startswith(b"\x89PNG")
    assert (page.media_type, page.width, page.height) == ("image/png", 900, 900)


async def test_a_page_reaches_no_service_of_the_machine(
    fetcher: HttpFetcher, site: Site, tmp_path: Path, inside: Inside
) -> None:
    at = f"127.0.0.1:{inside.port}"
    attempts = "".join(
        f'<img src="http://{host}:{inside.port}/i"><iframe src="http://{host}:{inside.port}/f">'
        f'</iframe><link rel=preconnect href="http://{host}:{inside.port}">'
        for host in ("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "127.1", "2130706433")
    )
    url = site.put(
        "/",
        f"""<body>{attempts}<p id=a></p><script>
        fetch("http://{at}/", {{mode: "no-cors"}}).catch(() => 0);
        new WebSocket("ws://{at}/");
        try {{ new RTCPeerConnection({{iceServers: [{{urls: "stun:{at}"}}]}}) }}
        catch (e) {{ document.getElementById("a").textContent = "no WebRTC" }}
        </script>""",
    )
    page = await fetcher.render(url, tmp_path, seconds=60)
    assert 'id="a">no WebRTC<' in page.path.read_text()
    assert inside.close() == 0


@pytest.mark.skipif(bool(why_no_lab()), reason=f"no network namespace here: {why_no_lab()}")
async def test_no_packet_of_a_hostile_page_goes_anywhere_but_to_its_public_server() -> None:
    result = await asyncio.to_thread(run_lab)
    assert result["seen"] == [["tcp", PAGE, 80]]
    assert set(result["asked"]) <= {"inside.test"}
    assert result["outcomes"] == {
        **{f"/{number}": "tried 12" for number in range(3)},
        "/leaving": "The scripts of the page lead to another site.",
    }
    assert result["proxied"] > 300


@pytest.mark.skipif(bool(why_no_lab()), reason=f"no network namespace here: {why_no_lab()}")
async def test_the_lab_sees_a_guard_that_lets_everything_through() -> None:
    hosts, everything = ("10.0.0.1", "127.0.0.1", "[::1]"), ["0.0.0.0/0", "::/0"]
    result = await asyncio.to_thread(run_lab, hosts, allow_nets=everything)
    assert {address for _, address, _ in result["seen"]} >= {"10.0.0.1", "127.0.0.1", "::1"}


async def test_a_forbidden_address_is_refused_before_a_browser_starts(
    fetcher: HttpFetcher, tmp_path: Path
) -> None:
    with pytest.raises(Refused):
        await fetcher.render("http://127.0.0.1:1/", tmp_path, seconds=60)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("page", "error"),
    [
        (
            Page(b"<script>location = 'http://127.0.0.2/'</script>", {"Content-Type": "text/html"}),
            FetchFailed,
        ),
        (Page(b"no", {"Content-Type": "text/html"}, 500), FetchFailed),
        (Page(b"bytes", {"Content-Type": "application/octet-stream"}), FetchFailed),
    ],
    ids=["leads inside", "server error", "download"],
)
async def test_what_is_no_page_is_one_clear_error(
    page: Page, error: type[FetchstashError], fetcher: HttpFetcher, site: Site, tmp_path: Path
) -> None:
    site.pages["/"] = page
    with pytest.raises(error):
        await fetcher.render(site.url("/"), tmp_path, seconds=60)
    assert list(tmp_path.iterdir()) == []


async def test_a_page_that_never_ends_is_ended_with_its_browser(
    fetcher: HttpFetcher, site: Site, tmp_path: Path
) -> None:
    url = site.put("/", "<script>while (true);</script>")
    with pytest.raises(TimedOut):
        await fetcher.render(url, tmp_path, seconds=8)
    assert list(tmp_path.iterdir()) == []
    assert running(str(site.port)) == []


async def test_a_page_larger_than_the_limit_keeps_its_first_part_and_a_picture_is_refused(
    fetcher: HttpFetcher, site: Site, tmp_path: Path
) -> None:
    url = site.put("/", "<body><script>document.body.append('x'.repeat(200000))</script>")
    page = await fetcher.render(url, tmp_path, seconds=60, max_bytes=100_000)
    assert page.path.stat().st_size == 100_000
    assert page.incomplete.startswith("only its first 100,000 bytes were taken")
    with pytest.raises(TooLarge):
        await fetcher.render(url, tmp_path, seconds=60, edge=900, max_bytes=10)


@pytest.mark.parametrize("part", ["/image", "/page"])
async def test_a_page_that_floods_its_network_is_kept_as_it_stands(
    part: str, site: Site, tmp_path: Path
) -> None:
    site.put(
        "/image", script=sends(OK + b"Content-Type: image/png\r\n\r\n", b"x" * 65_536, times=999)
    )
    head = OK + b"Content-Type: text/html\r\n\r\n<h1>The beginning</h1>"
    site.put("/page", script=sends(head, b"<p>more of it</p>" * 4_096, times=999))
    script = "document.querySelector('main').textContent = 'The beginning'; fetch('/image').then"
    url = site.put("/", f"<body><main></main><script>{script}(r => r.arrayBuffer())</script>")
    limits = FetchLimits(
        allow_hosts=("127.0.0.1",), respect_robots=False, max_wire_bytes=2**20, browser=("auto",)
    )
    http = HttpFetcher(limits)
    page = await http.render(url if part == "/image" else site.url(part), tmp_path, seconds=90)
    await http.aclose()
    assert "The beginning" in page.path.read_text()
    assert page.incomplete.startswith("its scripts loaded more than 1,048,576 bytes")


async def test_a_page_whose_loading_never_ends_is_kept_as_it_stands(
    fetcher: HttpFetcher, site: Site, tmp_path: Path
) -> None:
    site.put(
        "/image", script=sends(OK + b"Content-Length: 999\r\n\r\n", b"x", pause=0.2, times=999)
    )
    url = site.put("/", "<body><h1>The beginning</h1><img src=/image>")
    page = await fetcher.render(url, tmp_path, seconds=90)
    assert "The beginning" in page.path.read_text()


async def test_nothing_of_one_page_is_there_for_the_next(
    fetcher: HttpFetcher, site: Site, tmp_path: Path
) -> None:
    script = """<body><p id=a></p><script>
    document.getElementById("a").textContent = document.cookie + (localStorage.x || "fresh");
    document.cookie = "x=kept; max-age=999"; localStorage.x = "kept";
    navigator.serviceWorker && navigator.serviceWorker.register("/w.js").catch(() => 0);
    </script>"""
    url = site.put("/", script)
    for _ in range(2):
        page = await fetcher.render(url, tmp_path, seconds=60)
        assert 'id="a">fresh<' in page.path.read_text()
    assert "/w.js" not in site.asked


async def test_the_browser_has_its_own_sandbox_and_is_not_root_s(
    fetcher: HttpFetcher, site: Site, tmp_path: Path
) -> None:
    seen: list[tuple[int, str]] = []

    def look(handler: object) -> None:
        # Other browsers may run on this machine.
        for pid in {*running("--type=renderer")}.intersection(descendants(os.getpid())):
            status = Path(f"/proc/{pid}/status").read_text()
            seen.append((Path(f"/proc/{pid}").stat().st_uid, status))
        handler.send_response(200)  # type: ignore[attr-defined]
        handler.end_headers()  # type: ignore[attr-defined]

    site.pages["/look"] = Page(script=look)
    url = site.put("/", '<body><img src="/look">')
    await fetcher.render(url, tmp_path, seconds=60)
    assert seen
    for user, status in seen:
        assert user != 0
        assert "Seccomp:\t2" in status


def running(word: str) -> list[int]:
    """Return the processes of a browser whose command line has ``word``."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                line = (entry / "cmdline").read_bytes().decode("latin-1")
                if word in line and "chrom" in line:
                    found.append(int(entry.name))
    return found


SERVER = """
import anyio, sys
from pathlib import Path
from fetchstash.fetch import FetchLimits, HttpFetcher, browser_fault
fetcher = HttpFetcher(FetchLimits(allow_hosts=(sys.argv[1],), respect_robots=False))
anyio.run(lambda: fetcher.render(f"http://{sys.argv[1]}/", Path(sys.argv[2]), seconds=120))
"""


async def test_a_browser_does_not_outlive_a_server_that_is_killed(
    site: Site, tmp_path: Path
) -> None:
    asked = threading.Event()

    def hang(_: object) -> None:
        asked.set()
        threading.Event().wait(60)

    site.put("/", '<body><img src="/hang">')
    site.pages["/hang"] = Page(script=hang)
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-c", SERVER, f"127.0.0.1:{site.port}", str(tmp_path)
    )
    assert await asyncio.to_thread(asked.wait, 60)
    folders = {Path(name) for name in folders_of(server.pid)}
    below = descendants(server.pid)
    assert len(below) > 3
    server.send_signal(signal.SIGKILL)
    await server.wait()
    async with asyncio.timeout(30):
        while any(map(alive, below)) or any(map(Path.exists, folders)):  # noqa: ASYNC110 - others'
            await asyncio.sleep(0.1)


def descendants(process: int) -> list[int]:
    """Return the processes that a process started, and those that they started."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)] = int(fields[1])
    below = [process]
    for above in below:
        below += [child for child, parent in parents.items() if parent == above]
    return below[1:]


def folders_of(server: int) -> set[str]:
    """Return the temporary folders that the browser below ``server`` uses."""
    lines = [(Path("/proc") / str(pid) / "cmdline").read_text() for pid in descendants(server)]
    return {word for line in lines for word in re.findall(r"/[\w/]*/fetchstash-\w+", line)}


def alive(process: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
