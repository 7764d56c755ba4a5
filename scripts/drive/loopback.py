"""One server on loopback: a web site for the fetches, and the API of the model that makes them."""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from scripts.drive.speech import DONE, FINAL, Heard, Speech, Step, speech_of
from tests.client.loopback import Answer, sse
from tests.loopback import Quiet


@dataclass(frozen=True, slots=True)
class Page:
    """What a path of the site answers."""

    body: bytes
    media_type: str = "text/html; charset=utf-8"
    status: int = 200


@dataclass(slots=True)
class Loopback:
    """``with Loopback(pages) as it:`` serves; ``it.play(steps)`` begins a conversation."""

    pages: Mapping[str, Page]
    steps: Sequence[Step] = ()
    heard: list[Heard] = field(default_factory=list[Heard])
    requests: list[Any] = field(default_factory=list[Any])
    conclude: Callable[[Sequence[Heard]], str] = lambda _: DONE
    """What the model says in the end, of the results that it has."""
    window: int = 0
    """Bytes of a request that the model takes; 0 for all."""
    refused: int = 0
    """How many requests were longer."""
    calls: int = 0
    """How many calls the model has made."""
    held: threading.Event = field(default_factory=threading.Event)
    """Set when somebody asks for /held, which never answers."""
    first: threading.Event = field(default_factory=threading.Event)
    """Set when the first result has reached the model."""
    first_at: float = 0
    """When that was, by the monotonic clock."""
    _server: ThreadingHTTPServer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        loopback = self

        class Handler(Quiet):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                loopback.serve_page(self)

            def do_POST(self) -> None:
                loopback.serve_model(self)

            def do_HEAD(self) -> None:
                loopback.serve_page(self)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._server
        return int(self._server.server_address[1])

    def url(self, path: str = "") -> str:
        """Return the URL of a path."""
        return f"http://127.0.0.1:{self.port}{path}"

    def play(self, steps: Sequence[Step]) -> None:
        """Begin a conversation in which the model makes these calls."""
        self.steps, self.heard, self.requests = steps, [], []
        self.refused = self.calls = 0
        self.held.clear()
        self.first.clear()

    def serve_page(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer a GET."""
        path = handler.path.partition("?")[0]
        if path == "/held":
            self.held.set()
            threading.Event().wait(60)
            return
        page = self.pages.get(path, Page(b"There is no such page.\n", "text/plain", 404))
        _answer(handler, page.body, page.media_type, page.status)

    def serve_model(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer a request to the model."""
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        request, path = json.loads(body or b"{}"), handler.path
        spoken = speech_of(path, request)
        if spoken is None or "count_tokens" in path:
            counted = b'{"input_tokens": 1}' if "count_tokens" in path else b"{}"
            _answer(handler, counted, "application/json")
            return
        speech, streamed = spoken
        if 0 < self.window < len(body):
            self.refused += 1
            refusal = json.dumps(speech.refuse(len(body), self.window)).encode()
            _answer(handler, refusal, "application/json", 400)
            return
        with self._lock:
            whole, events = self._next(speech, request)
        if streamed:
            lines = "".join(sse(*events, named=speech.api.named))
            _answer(handler, lines.encode(), "text/event-stream")
        else:
            _answer(handler, json.dumps(whole).encode(), "application/json")

    def _next(self, speech: Speech, request: Any) -> Answer:
        offered = speech.offered(request)
        self.requests.append(request)
        if not offered:  # not started yet, or a side question: a title, how hard it is
            return speech.wait(request) or speech.say(
                '{"complexity_reasoning": "easy", "complexity_score": 1}'
            )
        heard = speech.heard(request)
        ends_by_call = FINAL in json.dumps(request.get("tools", []))
        if ends_by_call:  # smolagents says results as its user, whose older texts a client shortens
            heard = [*self.heard[: self.calls - 1], *heard[-1:]]
        if len(heard) > len(self.heard):
            self.heard = heard
            if not self.first.is_set():
                self.first_at = time.monotonic()
            self.first.set()
        if len(heard) >= len(self.steps):
            said = self.conclude(heard)
            if ends_by_call:
                return speech.call(Step(FINAL, {"answer": said}), FINAL, len(heard))
            return speech.say(said)
        step = self.steps[len(heard)]
        self.calls = len(heard) + 1
        return speech.call(step, offered.get(step.tool, offered.get("*", step.tool)), len(heard))


def _answer(
    handler: BaseHTTPRequestHandler, body: bytes, media_type: str, status: int = 200
) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", media_type)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)
