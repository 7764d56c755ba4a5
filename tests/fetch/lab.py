"""Fetch in a network namespace in which every address is local.

In a private user, network and mount namespace ``ip route add local 0.0.0.0/0 dev lo`` (and ::/0)
makes every address answer. A socket on the loopback device sees each connection attempt that
leaves: "refused" means that no packet went anywhere forbidden.

From outside: ``run_lab(rows)``. It starts this file again inside, which prints one line of JSON for
each row. A row may name the ``via`` by which its URL comes in: "redirect", or one of WAYS, which a
public server has and a Stash takes.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import quote

import fetchstash

# Where the fetchstash under test lies: the checkout's, or the one that is installed.
FETCHSTASH = str(Path(fetchstash.__file__).parents[1])
REDIRECTOR = "http://public.test/to/"
WAYS = (
    "cookies",
    "refresh",
    "meta",
    "frame",
    "script",
    "embed",
    "alternate",
    "twin",
    "next",
    "outline",
    "site",
    "rule",
    "part",
)
"""Where a server may name an address: lab_servers.py has a page for each.

No rule takes an address out of an answer: "rule" and "part" are redirects of a rule's requests, for
the document itself and for a further part of it.
"""
FOLLOWED = frozenset(("cookies", "refresh", "meta", "frame", "script", "embed", "rule", "part"))
"""Ways that lead to an allowed address, whatever its site and its text."""
# Where a way's page is, if not at its name; two are of the rules gitea-file and gitea-repository.
_PATHS = {"site": "", "outline": "", "rule": "a/b/src/branch/main/c", "part": "a/b"}
_NAMESPACE = ("unshare", "--user", "--map-root-user", "--net", "--mount")
_ROUTES = (
    ("ip", "link", "set", "lo", "up"),
    ("ip", "route", "add", "local", "0.0.0.0/0", "dev", "lo"),
    ("ip", "-6", "route", "add", "local", "::/0", "dev", "lo"),
)

Row = dict[str, Any]


def why_no_lab() -> str:
    """Return why there can be no lab here, or ""."""
    if sys.platform != "linux" or not shutil.which("unshare") or not shutil.which("ip"):
        return "network namespaces need Linux with unshare and ip"
    routes = "ip link set lo up && ip route add local 0.0.0.0/0 dev lo"
    attempt = f"{routes} && mount --bind /dev/null /etc/hosts"
    tried = subprocess.run(
        [*_NAMESPACE, "sh", "-c", attempt], capture_output=True, text=True, check=False
    )
    return (tried.stderr.strip() or f"exit {tried.returncode}") if tried.returncode else ""


def run_lab(rows: Iterable[Row]) -> list[Row]:
    """Fetch each row's ``url`` in a lab, and return the results."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.json")
        path.write_text(json.dumps(list(rows)))
        return run_inside(_NAMESPACE, FETCHSTASH, folder, __file__, str(path))


def run_inside(namespace: Iterable[str], paths: str, folder: str, *program: str) -> list[Any]:
    """Run a program in a namespace, and return the lines of JSON that it prints."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": paths}
    command = [*namespace, sys.executable, "-P", *program]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, cwd=folder
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def leaks(result: Row) -> list[str]:
    """Return the forbidden addresses that a connection was tried to."""
    from fetchstash.fetch import plain, why_not_public

    return [d for d in result["dialled"] if why_not_public(plain(d.rpartition(" ")[0]))]


def is_safe(row: Row, result: Row) -> bool:
    """Say whether nothing inside was dialled for a row, and what is allowed was fetched."""
    if leaks(result):
        return False
    if row.get("via") in WAYS:
        # Many an allowed address cannot stand in a page as it is; and one that is malformed may be
        # another, public one there: a header and an attribute have no control characters.
        is_another = row["expected"] == "allow" or row.get("severity") == "hygiene"
        return is_another or not result["fetched"]
    if row["expected"] == "allow":
        return bool(result["fetched"])
    # A rebinding name may be fetched from its first, public answer: only packets count.
    return not result["fetched"] or row.get("category") == "rebinding"


def loopback_device() -> socket.socket:
    """Return a socket that sees every packet on the loopback device."""
    device = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    device.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**24)
    device.bind(("lo", 0))
    return device


def target(frame: bytes) -> tuple[str, str, int, bytes]:
    """Return where a frame goes, and its UDP or TCP part: "tcp" only for an attempt to connect."""
    packet = frame[14:]
    if frame[12:14] == b"\x08\x00":
        protocol, address, part = packet[9], packet[16:20], packet[(packet[0] & 15) * 4 :]
    elif frame[12:14] == b"\x86\xdd":
        protocol, address, part = packet[6], packet[24:40], packet[40:]
    else:
        return "", "", 0, b""
    kind = "udp" if protocol == socket.IPPROTO_UDP else ""
    if protocol == socket.IPPROTO_TCP and part[13] & 0x12 == 0x02:  # SYN without ACK
        kind = "tcp"
    return kind, str(ip_address(address)), int.from_bytes(part[2:4], "big"), part


class Sniffer:
    """Sees every TCP connection attempt on the loopback device."""

    def __init__(self) -> None:
        self._socket = loopback_device()
        self._socket.setblocking(False)

    def attempts(self) -> list[str]:
        """Return address and port of each attempt since the last call; packets arrive at once."""
        attempts: dict[str, None] = {}
        while True:
            try:
                kind, address, port, _ = target(self._socket.recv(200))
            except BlockingIOError:
                return list(attempts)
            if kind == "tcp":
                attempts[f"{address} {port}"] = None


async def fetch_row(fetcher: Any, row: Row, sniffer: Sniffer, folder: Path) -> Row:
    """Fetch one row, directly or by a redirect, and return the outcome and what was dialled."""
    from fetchstash.errors import FetchstashError

    url = REDIRECTOR + quote(row["url"], safe="") if row.get("via") == "redirect" else row["url"]
    sniffer.attempts()
    result: Row = {"id": row["id"], "fetched": "", "error": ""}
    began = time.monotonic()
    try:
        fetched = await fetcher.fetch(url, folder)
        report = json.loads(fetched.path.read_text())
        result |= {"fetched": report["reached"], "tunnels": report["tunnels"]}
        result["final_url"] = fetched.final_url
    except FetchstashError as error:
        result["error"] = error.line()
    milliseconds = (time.monotonic() - began) * 1000
    return result | {"milliseconds": milliseconds, "dialled": sniffer.attempts()}


async def take_row(fetcher: Any, extractor: Any, row: Row, sniffer: Sniffer) -> Row:
    """Let a Stash take the row's page, which names the URL; return what came and was dialled."""
    from fetchstash.errors import FetchstashError
    from fetchstash.stash import open_stash

    page = f"http://{row['host']}/"
    via: str = row["via"]
    url = page + _PATHS.get(via, via)
    settings = {
        "store.url": "memory:",
        "fetch.deadline_seconds": 10,
        "fetch.browser": ["off"],
        "ingest.site_rate": 0,  # its pace would take nearly half of a row's time
    }
    result: Row = {"id": row["id"], "fetched": "", "error": ""}
    sniffer.attempts()
    try:
        async with open_stash(settings, fetcher=fetcher, extractor=extractor) as stash:
            if via == "site":
                await stash.fetch_site(url)
            else:
                artifact = await stash.fetch(url)
                if via == "outline":
                    await artifact.slice(path="site")
            for facts in (await stash.list()).facts:
                if facts.extracted_chars and facts.final_url != page:
                    text = await (await stash.get(facts.artifact_ref)).text()
                    result["fetched"] = result["fetched"] or ("reached" in text and text)
    except FetchstashError as error:
        result["error"] = error.line()
    return result | {"dialled": sniffer.attempts()}


async def fetch_rows(rows: list[Row]) -> None:
    """Fetch all rows, each by a fetcher of its own, and print a line of JSON for each."""
    import anyio

    from fetchstash.fetch import FetchLimits, HttpFetcher
    from fetchstash.handlers import ExtractLimits, WorkerPool

    sniffer = Sniffer()
    extractor = WorkerPool(ExtractLimits())
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            limits: dict[str, Any] = {"deadline_seconds": 10, **row.get("limits", {})}
            fetcher = HttpFetcher(FetchLimits(**limits))
            if "host" in row:
                result = await take_row(fetcher, extractor, row, sniffer)
                print(json.dumps(result), flush=True)  # noqa: T201 -- the answer
                await fetcher.aclose()
                continue
            async with anyio.create_task_group() as beside:
                for url in row.get("beside", ()):  # fetches that hang while this one is measured
                    beside.start_soon(fetcher.fetch, url, Path(folder))
                await anyio.sleep(0.2 if row.get("beside") else 0)
                print(json.dumps(await fetch_row(fetcher, row, sniffer, Path(folder))), flush=True)  # noqa: T201 -- the answer
                beside.cancel_scope.cancel()
            await fetcher.aclose()
    await extractor.aclose()


def set_up(folder: Path, hosts: str, timeout: int, own: Iterable[str] = ()) -> None:
    """Make every address local, ``own`` ones too, and names those of ``hosts`` and the lab."""
    addresses = [("ip", "address", "add", address, "dev", "lo") for address in own]
    for words in (*_ROUTES, *addresses):
        subprocess.run(words, check=True)
    resolver = f"nameserver 127.0.0.53\noptions timeout:{timeout} attempts:1\n"
    for name, text in (("resolv.conf", resolver), ("hosts", hosts)):
        (folder / name).write_text(text)
        command = ("mount", "--bind", str(folder / name), str(Path("/etc", name).resolve()))
        subprocess.run(command, check=True)


def inside() -> None:
    """Set up the namespace, start the servers, and fetch."""
    import anyio

    rows: list[Row] = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(sys.argv[1]).parent
    hosts = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
    set_up(folder, hosts, 30, [address for row in rows for address in row.get("own", ())])
    names: dict[str, list[str]] = {}
    vectors: dict[str, str] = {}
    for number, row in enumerate(rows):
        names.update(row.get("dns") or {})
        if row.get("via") in WAYS:
            row["host"] = f"gitea.v{number}.test"  # its first label is what some rules ask for
            vectors[row["host"]] = row["url"]
    (folder / "names.json").write_text(json.dumps(names))
    (folder / "vectors.json").write_text(json.dumps(vectors))
    program = Path(__file__).with_name("lab_servers.py")
    files = folder / "names.json", folder / "ca.pem", folder / "vectors.json"
    command = [sys.executable, "-P", *map(str, (program, *files))]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as servers:
        assert servers.stdout is not None
        assert servers.stdout.readline() == "ready\n"
        os.environ["SSL_CERT_FILE"] = str(folder / "ca.pem")
        anyio.run(partial(fetch_rows, rows))
        servers.kill()


if __name__ == "__main__":
    inside()
