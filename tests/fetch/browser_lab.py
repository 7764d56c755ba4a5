# ruff: noqa: E501 - scripts
"""A browser in a network namespace in which every address is local, and a witness of every packet.

From outside, as root: ``run_lab()``. It starts this file again inside, which renders pages
that try to reach addresses inside by all the ways that a page has, and prints what was sent.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.fetch.lab import FETCHSTASH, loopback_device, run_inside, set_up, target
from tests.loopback import Quiet

CHECKOUT = str(Path(__file__).parents[2])
PAGE = "93.184.216.34"
HOSTS = (
    "127.0.0.1",
    "127.1",
    "0x7f000001",
    "2130706433",
    "0.0.0.0",
    "[::1]",
    "[::ffff:10.0.0.1]",
    "[64:ff9b::a00:1]",
    "[fd00::1]",
    "localhost",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.100.100.200",
    "198.18.0.1",
    "inside.test",
    "metadata.google.internal",
)
PORTS = (80, 8080)
ATTEMPTS = 3
"""On a busy machine a page is taken before its script has ended: it is rendered again then."""

SCRIPT = """
const hosts = %s;
let n = 0;
function add(tag, attributes, where) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    (where || document.body).append(element);
    return element;
}
function attempt(action) { try { const it = action(); if (it && it.catch) it.catch(() => 0); } catch (e) {} }
for (const host of hosts) for (const port of [%s]) {
    const at = `${host}:${port}`, url = `http://${at}/x${n++}`;
    attempt(() => fetch(url, {mode: "no-cors"}));
    attempt(() => fetch(url.replace("http:", "https:"), {mode: "no-cors"}));
    attempt(() => fetch(`/to/${encodeURIComponent(url)}`, {mode: "no-cors"}));
    attempt(() => navigator.sendBeacon(url, "x"));
    attempt(() => new WebSocket(`ws://${at}/w`));
    attempt(() => new WebSocket(`wss://${at}/w`));
    attempt(() => new EventSource(url));
    attempt(() => { const x = new XMLHttpRequest(); x.open("GET", url); x.send(); });
    attempt(() => new Worker(URL.createObjectURL(new Blob([`fetch("${url}", {mode: "no-cors"}); importScripts("${url}")`]))));
    attempt(() => new SharedWorker(url));
    attempt(() => navigator.serviceWorker.register(`/worker.js?${n}`));
    attempt(() => import(url));
    attempt(() => {
        const peer = new RTCPeerConnection({iceServers: [{urls: `stun:${at}`},
            {urls: `turn:${at}?transport=tcp`, username: "a", credential: "b"}]});
        peer.createDataChannel("x");
        peer.createOffer().then(offer => peer.setLocalDescription(offer));
    });
    attempt(() => new WebTransport(`https://${at}/t`));
    for (const rel of ["dns-prefetch", "preconnect", "prefetch", "prerender", "stylesheet",
                       "modulepreload", "icon", "manifest"])
        add("link", {rel: rel, href: url}, document.head);
    add("link", {rel: "preload", as: "image", href: url}, document.head);
    add("img", {src: url, srcset: `${url}s 2x`});
    add("img", {src: `/to/${encodeURIComponent(url)}`});
    add("iframe", {src: url});
    add("iframe", {srcdoc: `<img src="${url}"><meta http-equiv="refresh" content="0;url=${url}">`});
    add("iframe", {src: `/to/${encodeURIComponent(url)}`});
    add("object", {data: url});
    add("embed", {src: url});
    add("video", {src: url, autoplay: "", poster: url});
    add("audio", {src: url, preload: "auto"});
    add("script", {src: url});
    add("div", {style: `background: url(${url}); border-image: url(${url})`}).textContent = "x";
    add("style", {}).textContent = `@import "${url}"; @font-face {font-family: f${n}; src: url(${url})}`;
    add("a", {href: url, ping: url, target: "_blank"}).click();
    const frame = add("iframe", {name: `f${n}`});
    const form = add("form", {action: url, method: "post", target: `f${n}`});
    attempt(() => form.submit());
    attempt(() => window.open(url));
}
document.getElementById("done").textContent = "tried " + n;
"""
LEAVING = '<body><p id="done">leaving</p><script>location.href = "http://10.0.0.1/"</script>'
SPECULATION = (
    '<script type="speculationrules">{"prefetch": [{"source": "list", "urls": '
    '["http://10.0.0.1/", "http://127.0.0.1:8080/"]}]}</script>'
)


def why_no_lab() -> str:
    """Return why there can be no lab here, or ""."""
    if sys.platform != "linux" or os.geteuid():
        return "it needs Linux and root"
    if not shutil.which("unshare") or not shutil.which("ip"):
        return "it needs unshare and ip"
    attempt = ["unshare", "--net", "--mount", "sh", "-c", "ip link set lo up"]
    tried = subprocess.run(attempt, capture_output=True, text=True, check=False)
    return (tried.stderr.strip() or f"exit {tried.returncode}") if tried.returncode else ""


def run_lab(hosts: Sequence[str] = HOSTS, **limits: Any) -> dict[str, Any]:
    """Render pages that try these hosts in a lab, under limits of fetch; return what happened."""
    paths = ":".join(path for path in (FETCHSTASH, *sys.path, CHECKOUT) if path)
    namespace = ("unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc")
    with tempfile.TemporaryDirectory() as folder:
        words = __file__, json.dumps([hosts, limits]), folder
        (result,) = run_inside(namespace, paths, folder, *words)
    return dict(result)


class Witness(threading.Thread):
    """Notes where TCP connections are tried and datagrams are sent, on the loopback device."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seen: set[tuple[str, str, int]] = set()
        self.asked: set[str] = set()
        self._socket = loopback_device()

    def run(self) -> None:
        while True:
            kind, address, port, part = target(self._socket.recv(200))
            if kind == "udp" and port == 53:
                name = re.sub(rb"[\x00-\x20]", b".", part[20:].partition(b"\0")[0])
                self.asked.add(name.strip(b".").decode("latin-1"))
            elif kind:
                self.seen.add((kind, address, port))


def serve(pages: dict[str, str]) -> None:
    """Serve the pages at PAGE, port 80; ``/to/URL`` redirects."""
    from http.server import ThreadingHTTPServer
    from socketserver import TCPServer
    from urllib.parse import unquote

    class Handler(Quiet):
        def do_GET(self) -> None:
            if self.path.startswith("/to/"):
                self.send_response(302)
                self.send_header("Location", unquote(self.path[4:]))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body = pages.get(self.path, "").encode()
            self.send_response(200 if body else 404)
            kind = "text/javascript" if self.path.startswith("/worker") else "text/html"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    class Server(ThreadingHTTPServer):
        server_bind = TCPServer.server_bind  # HTTPServer's looks up its own name

    server = Server((PAGE, 80), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()


async def render(hosts: list[str], limits: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Render each page; return the texts, the proxies' ports, and what the witness saw."""
    from fetchstash.errors import FetchstashError
    from fetchstash.fetch import FetchLimits, HttpFetcher

    ports: list[int] = []
    start = asyncio.start_server

    async def start_noted(accept: Any, *place: Any, **options: Any) -> asyncio.Server:
        async def accept_noted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            ports.append(writer.get_extra_info("sockname")[1])
            await accept(reader, writer)

        return await start(accept_noted, *place, **options)

    asyncio.start_server = start_noted  # type: ignore[assignment]
    settings: dict[str, Any] = {name: tuple(limits[name]) for name in limits}  # lists, all of them
    fetcher = HttpFetcher(FetchLimits(**settings))
    witness = Witness()
    witness.start()
    # Hundreds of frames of one page are more than a busy machine runs before it is taken.
    parts = [hosts[start : start + 6] for start in range(0, len(hosts), 6)]
    pages = {
        f"/{number}": f'<html><head>{SPECULATION}</head><body><p id="done"></p>'
        f"<script>{SCRIPT % (json.dumps(some), ', '.join(map(str, PORTS)))}</script></body></html>"
        for number, some in enumerate(parts)
    }
    pages["/leaving"] = LEAVING
    serve({**pages, "/worker.js": 'fetch("http://10.0.0.1/from-worker")'})
    outcomes: dict[str, str] = {}
    for path in pages:
        for _ in range(ATTEMPTS):
            try:
                page = await fetcher.render(f"http://{PAGE}{path}", folder, seconds=90)
                outcomes[path] = page.path.read_text().partition('id="done">')[2].partition("<")[0]
            except FetchstashError as error:
                outcomes[path] = error.what
            if outcomes[path]:
                break
    await fetcher.aclose()
    time.sleep(0.5)
    seen = [row for row in sorted(witness.seen) if row[2] not in ports or row[1] != "127.0.0.1"]
    return {
        "outcomes": outcomes,
        "seen": seen,
        "asked": sorted(witness.asked),
        "proxied": len(ports),
    }


def inside() -> None:
    (hosts, limits), folder = json.loads(sys.argv[1]), Path(sys.argv[2])
    names = "127.0.0.1 localhost\n::1 localhost\n10.0.0.9 inside.test\nfd00::9 inside.test\n"
    set_up(folder, names, 1)
    print(json.dumps(asyncio.run(render(hosts, limits, folder))))  # noqa: T201 - the answer


if __name__ == "__main__":
    inside()
