"""A small web of many hosts in a network namespace: a name server and a web server, fed by cases.

Names end in ``.test`` (RFC 6761) and lead to one address that looks public. Every other address
of the namespace is local too: what arrives there is a visit inside, and is answered by a secret.
"""

import json
import re
import socket
import socketserver
import struct
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from compare import _documents

PUBLIC = "93.184.216.34"
NAME_SERVER = "127.0.0.53"
SECRET = "INSIDE-SECRET-7731"  # noqa: S105 - the word that no model may read
PORTS = (80, 8080, 6379, 2375)
LAYOUTS = Path(__file__).with_name("layouts")
_REPEAT = re.compile(r"\{\{(\d+)\*(.*?)\*\}\}", re.DOTALL)
_NOW = re.compile(r"\{now\+(\d+)\}")

Page = Mapping[str, Any]


def expand(text: str) -> str:
    """Repeat ``{{N*…*}}`` N times with ``{n}`` counting from 1, and fill in ``{now+SECONDS}``."""
    text = _REPEAT.sub(
        lambda match: "".join(
            match[2].replace("{n}", str(number)) for number in range(1, int(match[1]) + 1)
        ),
        text,
    )
    return _NOW.sub(lambda match: str(int(time.time()) + int(match[1])), text)


def body_of(page: Page) -> bytes:
    """Return the body of a page: made by a document's maker, or from its layout and its words."""
    if make := page.get("make"):
        return _documents.MAKERS[make](page)
    text = expand(page.get("body", ""))
    if layout := page.get("layout"):
        frame = expand((LAYOUTS / f"{layout}.html").read_text(encoding="utf-8"))
        words = {"title": page.get("title", ""), "head": page.get("head", ""), "body": text}
        for name, value in words.items():
            frame = frame.replace(f"<!--{name}-->", expand(value))
        text = frame
    return text.encode(page.get("charset", "utf-8"))


class Web:
    """``with Web(pages):`` serves them in this namespace; ``inside`` collects the secret visits."""

    def __init__(self, pages: Sequence[Page], names: Mapping[str, str]) -> None:
        """Take the pages with their URLs, and the names that lead elsewhere than to the web."""
        self.pages = {self._key(page["url"]): page for page in pages}
        self.names = dict(names)
        self.inside: list[str] = []
        self._asked: Counter[str] = Counter()
        self._servers: list[socketserver.BaseServer] = []
        self.body = cache(self._body)

    def _body(self, key: str) -> bytes:
        return body_of(self.pages[key])

    @staticmethod
    def _key(url: str) -> str:
        parts = urlsplit(url)
        return f"{parts.hostname}{parts.path or '/'}" + (f"?{parts.query}" if parts.query else "")

    def __enter__(self) -> Self:
        """Start the servers."""
        for words in (
            ("link", "set", "lo", "up"),
            ("route", "add", "local", "0.0.0.0/0", "dev", "lo"),
            ("-6", "route", "add", "local", "::/0", "dev", "lo"),
        ):
            subprocess.run(["ip", *words], check=True)
        web = self
        handler = type("Handler", (_Handler,), {"site": self})

        class Names(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                query, asked = self.request
                asked.sendto(web.resolve(query), self.client_address)

        socketserver.ThreadingUDPServer.daemon_threads = True
        self._servers = [socketserver.ThreadingUDPServer((NAME_SERVER, 53), Names)]
        self._servers += [_DualStack(("::", port), handler) for port in PORTS]
        for server in self._servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop them."""
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def resolve(self, query: bytes) -> bytes:
        """Answer a DNS query (RFC 1035, section 4): A alone, with a TTL of 0."""
        end, labels, at = query.index(b"\0", 12), list[str](), 12
        while at < end:
            labels.append(query[at + 1 : at + 1 + query[at]].decode("latin-1"))
            at += 1 + query[at]
        name, kind = ".".join(labels).lower(), struct.unpack(">H", query[end + 1 : end + 3])[0]
        question = query[12 : end + 5]
        address = self.names.get(name, PUBLIC if name.endswith(".test") else "")
        if "," in address and kind == 1:  # rebinding: the second look-up gets the second address
            self._asked[name] += 1
            address = address.split(",")[min(self._asked[name], 2) - 1]
        found = bool(address) and kind == 1
        flags = 0x8180 if address else 0x8183  # NXDOMAIN for the world outside
        head = query[:2] + struct.pack(">HHHHH", flags, 1, int(found), 0, 0)
        record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + socket.inet_aton(address or "0")
        return head + question + (record if found else b"")


class _DualStack(ThreadingHTTPServer):
    address_family = socket.AF_INET6
    daemon_threads = True
    request_queue_size = 64

    def server_bind(self) -> None:
        """Answer on IPv4 addresses too."""
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "web.test", self.server_address[1]


class _Handler(BaseHTTPRequestHandler):
    site: Web
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with the page of this host and path."""
        try:
            self._serve()
        except (BrokenPipeError, ConnectionError):
            self.close_connection = True

    do_HEAD = do_GET
    do_POST = do_GET

    def _serve(self) -> None:
        address = self.connection.getsockname()[0].removeprefix("::ffff:")
        host = (self.headers.get("Host") or "").partition(":")[0].lower()
        if address != PUBLIC:
            self.site.inside.append(f"{address} {host}{self.path}")
            self._send(200, {"Content-Type": "text/plain"}, f"{SECRET} of {address}\n".encode())
            return
        key = host + self.path
        key = key if key in self.site.pages else key.partition("?")[0]
        key = key.removesuffix("/v1/chat/completions")
        page = self.site.pages.get(key)
        if page is None:
            self._send(404, {"Content-Type": "text/html"}, b"<h1>404 Not Found</h1>")
            return
        if (cookie := page.get("needs_cookie")) and cookie not in self.headers.get("Cookie", ""):
            self._send(302, {"Location": page["otherwise"]}, b"")
            return
        if "window" in page:
            self._provide(page, self.site.body(key))
            return
        accepted = page.get("accept", {})
        for media_type, instead in accepted.items():
            if media_type in self.headers.get("Accept", ""):
                kind = {"Content-Type": media_type, "Vary": "Accept"}
                self._send(200, kind, expand(instead).encode())
                return
        headers = {"Content-Type": page.get("type", "text/html; charset=utf-8")}
        headers |= {name: expand(value) for name, value in page.get("headers", {}).items()}
        if not headers["Content-Type"]:
            del headers["Content-Type"]
        if flood := page.get("flood_mb"):
            self._flood(headers, self.site.body(key), flood)
            return
        self._send(page.get("status", 200), headers, self.site.body(key))

    def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status, None if status != 999 else "Request denied")
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and status not in {204, 304}:
            self.wfile.write(body)

    def _provide(self, page: Page, refusal: bytes) -> None:
        """Answer as a model's provider whose window has so many characters, 0 if it never does."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if len(body) > page["window"]:
            kind = {"Content-Type": page.get("type", "application/json")}
            self._send(page["status"], kind, refusal)
            return
        messages = json.loads(body)["messages"]
        calls = [call["id"] for each in messages for call in each.get("tool_calls") or ()]
        results = [each["tool_call_id"] for each in messages if each["role"] == "tool"]
        facts = {
            "question kept": b"NEEDLE-QUESTION" in body,
            "newest result kept": b"NEEDLE-NEWEST" in body,
            "pairs whole": calls == results,
        }
        text = ", ".join(name if holds else f"not: {name[:8]}" for name, holds in facts.items())
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        about = {"id": "1", "object": "chat.completion", "created": 1, "model": "local"}
        answer = {**about, "choices": [choice], "usage": usage}
        self._send(200, {"Content-Type": "application/json"}, json.dumps(answer).encode())

    def _flood(self, headers: Mapping[str, str], body: bytes, megabytes: int) -> None:
        """Send the body again and again, with no length, until so many megabytes are sent."""
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for _ in range(0 if self.command == "HEAD" else megabytes * 2**20 // len(body)):
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Say nothing."""


def resolver_files(folder: Path) -> None:
    """Let this namespace's programs ask our name server; the mounts end with the namespace."""
    (folder / "resolv.conf").write_text(f"nameserver {NAME_SERVER}\noptions timeout:2 attempts:1\n")
    (folder / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    for name in ("resolv.conf", "hosts"):
        place = Path("/etc", name).resolve()
        subprocess.run(["mount", "--bind", str(folder / name), str(place)], check=True)
