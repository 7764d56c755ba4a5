"""Bodies that are whole, cut off, too large, late or cancelled: what stays and what goes."""

import asyncio
import gzip
import hashlib
import itertools
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import anyio
import anyio.lowlevel
import brotli
import pytest

from fetchstash.errors import FetchFailed, StoreError, TimedOut, TooLarge
from fetchstash.fetch import FetchLimits, Progress
from tests.fetch.sending import OK, Fetch, Make, content, raw
from tests.fetch.test_coding import CODED
from tests.loopback import Site

pytestmark = pytest.mark.anyio


INCOMPLETE = {
    "short": (b"Content-Length: 100\r\n\r\nhello", "the connection closed before its end"),
    "chunked, cut off": (
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n9\r\nwor",
        "the connection closed before its end",
    ),
    "chunked, broken": (
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\nworld",
        "its chunked framing is broken",
    ),
    "gzip, cut off": (
        b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"hello" * 1000)[:-9],
        "it has a gzip coding that ends too soon",
    ),
    "gzip, broken": (
        b"Content-Encoding: gzip\r\n\r\n"
        + gzip.compress(b"hello")
        + gzip.compress(b"")[:10]
        + b"\x07" * 20,
        "it has a gzip coding that is broken",
    ),
    "coding unknown": (
        b"Content-Encoding: aes128gcm\r\n\r\nhello",
        "it has an unknown content coding and is kept as sent",
    ),
}


@pytest.mark.parametrize(("answer", "reason"), INCOMPLETE.values(), ids=INCOMPLETE)
async def test_a_body_that_is_not_whole_is_never_passed_off_as_whole(
    site: Site, fetch: Fetch, answer: bytes, reason: str
) -> None:
    fetched = await fetch(raw(site, OK + answer))
    assert content(fetched).startswith(b"hello")
    assert fetched.incomplete == reason


@pytest.mark.parametrize(
    ("coding", "words"),
    [(b"gzip", "gzip coding that is broken"), (b"gzip, gzip, gzip", "3 content codings")],
)
async def test_a_body_that_decodes_to_nothing_is_a_failure(
    site: Site, fetch: Fetch, tmp_path: Path, coding: bytes, words: str
) -> None:
    with pytest.raises(FetchFailed, match=words):
        await fetch(raw(site, OK + b"Content-Encoding: " + coding + b"\r\n\r\nno gzip at all"))
    assert list(tmp_path.iterdir()) == []


WORDS = b"".join(b"%d words\n" % number for number in range(20_000))
FIRST_PARTS = {
    "announced": (b"Content-Length: 999999999\r\n\r\n" + WORDS, "20,000 bytes as sent", 20_000),
    "as sent": (b"\r\n" + WORDS, "20,000 bytes as sent", 20_000),
    "in chunks": (
        b"Transfer-Encoding: chunked\r\n\r\n" + b"3e8\r\n%b\r\n" % WORDS[:1_000] * 30,
        "20,000 bytes as sent",
        None,
    ),
    "in one large chunk": (
        b"Transfer-Encoding: chunked\r\n\r\n30d40\r\n" + WORDS,
        "20,000 bytes as sent",
        None,
    ),
    "after decoding": (
        b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(WORDS[:50_001]),
        "50,000 bytes",
        50_000,
    ),
    "after decoding twice": (
        b"Content-Encoding: gzip, br\r\n\r\n" + brotli.compress(gzip.compress(WORDS[:90_000], 1)),
        "50,000 bytes",
        50_000,
    ),
    "encoded, as sent": (
        b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(WORDS[:45_000], 0),
        "20,000 bytes as sent",
        None,
    ),
}


@pytest.mark.parametrize(("answer", "limit", "size"), FIRST_PARTS.values(), ids=FIRST_PARTS)
async def test_a_body_over_a_limit_keeps_its_first_part(
    site: Site, fetch: Fetch, answer: bytes, limit: str, size: int | None
) -> None:
    url = raw(site, OK + answer)
    fetched = await fetch(url, max_wire_bytes=20_000, max_decoded_bytes=50_000)
    first = f"only its first {limit} were taken, the most that one body may have"
    assert fetched.incomplete == first
    kept = content(fetched)
    assert 0 < len(kept) <= 50_000
    assert size in {None, len(kept)}
    if answer != FIRST_PARTS["in chunks"][0]:
        assert WORDS.startswith(kept)
    assert fetched.size_bytes == len(kept)


async def test_a_body_of_just_the_limit_is_whole(site: Site, fetch: Fetch) -> None:
    body = WORDS[:20_000]
    url = site.put("/x", gzip.compress(body), "text/plain", headers={"Content-Encoding": "gzip"})
    fetched = await fetch(url, max_decoded_bytes=20_000)
    assert (fetched.incomplete, content(fetched)) == ("", body)


TOO_LARGE = {
    "a bomb": b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(bytes(40 * 2**20)),
    "between two codings": b"Content-Encoding: gzip, gzip\r\n\r\n"
    + gzip.compress(gzip.compress(b"") * 10_000),
    "header": b"X-Long: " + b"a" * 70_000 + b"\r\n\r\n",
    "many headers": b"".join(b"X-%d: a\r\n" % number for number in range(9_000)) + b"\r\n",
}


@pytest.mark.parametrize("answer", TOO_LARGE.values(), ids=TOO_LARGE)
async def test_more_than_a_limit_allows_is_an_error_and_leaves_no_file(
    site: Site, fetch: Fetch, tmp_path: Path, answer: bytes
) -> None:
    limit = 2**30 if answer == TOO_LARGE["a bomb"] else 50_000
    with pytest.raises(TooLarge):
        await fetch(raw(site, OK + answer), max_decoded_bytes=limit)
    assert list(tmp_path.iterdir()) == []


HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


async def test_endless_interim_responses_count_as_one_header(site: Site, fetch: Fetch) -> None:
    with pytest.raises(TooLarge, match="header"):
        await fetch(raw(site, HINT, times=100_000))


async def test_interim_responses_before_the_final_one_are_skipped(site: Site, fetch: Fetch) -> None:
    url = raw(site, HINT * 2 + OK + b"Content-Length: 2\r\n\r\nok")
    assert (await fetch(url)).size_bytes == 2


@pytest.mark.parametrize("parts", [(b"",), (OK, b"X-A: b\r\n")], ids=["no answer", "slow header"])
async def test_a_server_that_does_not_answer_runs_into_the_deadline(
    site: Site, fetch: Fetch, tmp_path: Path, parts: tuple[bytes, ...]
) -> None:
    url = raw(site, *parts, pause=0.05, times=20)
    with pytest.raises(TimedOut, match=r"within 0\.3 s"):
        await fetch(url, deadline_seconds=0.3375)
    assert list(tmp_path.iterdir()) == []


async def test_an_unrequested_range_is_marked_incomplete(site: Site, fetch: Fetch) -> None:
    url = raw(site, b"HTTP/1.1 206 Partial Content\r\nContent-Length: 4\r\n\r\npart")
    assert (await fetch(url)).incomplete == "the server sent only a part of it"


@contextmanager
def deadline_after(seconds: float, patch: pytest.MonkeyPatch) -> Generator[Progress]:
    """Stop the event loop's clock; yield a ``progress`` that sets it to the end of ``seconds``."""
    loop = asyncio.get_running_loop()
    now = loop.time()

    def skip(_received: int, _announced: int | None) -> None:
        patched.setattr(loop, "time", lambda: now + seconds + 0.01)

    with patch.context() as patched:
        patched.setattr(loop, "time", lambda: now)
        yield skip


async def test_a_body_cut_at_the_deadline_is_kept_and_marked(
    site: Site, fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = FetchLimits(deadline_seconds=90)
    url = raw(site, OK + b"\r\n", b"drop drop ", pause=0.05, times=200)
    with deadline_after(limits.fetch_seconds, monkeypatch) as progress:
        fetched = await fetch(url, progress=progress, deadline_seconds=90)
    assert content(fetched).startswith(b"drop drop ")
    assert fetched.incomplete == "the deadline passed before its end"


async def test_a_fetch_takes_no_longer_than_the_caller_has_left(
    site: Site, fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = raw(site, OK + b"\r\n", b"drop ", pause=0.05, times=200)
    with deadline_after(30, monkeypatch) as progress:
        fetched = await fetch(url, seconds=30, progress=progress)
    assert fetched.incomplete == "the deadline passed before its end"


def test_the_deadline_leaves_time_before_the_usual_client_gives_up_and_for_extraction() -> None:
    assert FetchLimits().deadline_seconds == 45
    assert FetchLimits().fetch_seconds == 40


@pytest.mark.parametrize("status", [b"200 OK", b"204 No Content"])
async def test_an_empty_body_gets_a_notice(site: Site, fetch: Fetch, status: bytes) -> None:
    fetched = await fetch(raw(site, b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n"))
    assert fetched.size_bytes == 0
    assert fetched.incomplete == f"the server answered {status.decode()} and sent no content"


@pytest.mark.slow
@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
async def test_slow_bodies_that_are_encoded_keep_no_other_waiting(
    coding: str, site: Site, fetcher: Make, tmp_path: Path
) -> None:
    begun, release = threading.Semaphore(0), threading.Event()
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\n\r\n".encode()
    body = CODED[coding][1](b"here " * 100_000)

    def script(handler: BaseHTTPRequestHandler) -> None:
        handler.connection.sendall(head + body[:-4])
        begun.release()
        release.wait(30)
        handler.close_connection = True

    good = site.put("/good", body, headers={"Content-Encoding": coding})
    http = fetcher(per_host_concurrency=100)

    async def hang(url: str) -> None:
        with suppress(FetchFailed):
            await http.fetch(url, tmp_path)

    size = 0
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(hang, site.put(f"/{number}", script=script))
        for _ in range(20):
            await anyio.to_thread.run_sync(begun.acquire)
        with anyio.move_on_after(15):
            size = (await http.fetch(good, tmp_path)).size_bytes
        release.set()
    assert size == 500_000


async def test_events_during_the_write_of_a_batch_arrive_in_order(site: Site, fetch: Fetch) -> None:
    body = b"".join(b"%07d\n" % number for number in range(500_000))
    url = site.put("/large", gzip.compress(body), headers={"Content-Encoding": "gzip"})
    for address in (url, site.put("/plain", body)):
        fetched = await fetch(address)
        assert content(fetched) == body
        assert fetched.sha256 == hashlib.sha256(body).hexdigest()


async def test_cancelling_closes_the_socket_at_once_and_leaves_no_file(
    site: Site, fetcher: Make, tmp_path: Path
) -> None:
    begun, closed = threading.Event(), threading.Event()

    def script(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        # A file is made for the first half megabyte, or for a whole body.
        handler.connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(600_000))
        begun.set()
        handler.connection.settimeout(5)
        if handler.connection.recv(1) == b"":
            closed.set()

    url = site.put("/endless", script=script)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fetcher().fetch, url, tmp_path)
        await anyio.to_thread.run_sync(begun.wait, 5)
        while not list(tmp_path.iterdir()):  # noqa: ASYNC110 -- a folder has no event
            await anyio.sleep(0.001)
        tasks.cancel_scope.cancel()
    assert await anyio.to_thread.run_sync(closed.wait, 2)
    assert list(tmp_path.iterdir()) == []


async def test_progress_counts_up_to_the_whole_and_not_too_often(site: Site, fetch: Fetch) -> None:
    reports: list[tuple[int, int | None]] = []
    url = site.put("/big", bytes(3_000_000), "application/octet-stream")

    def report(done: int, total: int | None) -> None:
        reports.append((done, total))

    await fetch(url, progress=report)
    assert reports[-1] == (3_000_000, 3_000_000)
    assert reports == sorted(set(reports))
    assert len(reports) < 30


@pytest.mark.long
async def test_tiny_chunks_end_and_do_not_hold_up_the_loop(
    site: Site, fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, looks = time.monotonic, itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: now() + next(looks) * 0.02)
    head, body = b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n" * 60_000 + b"0\r\n\r\n"
    url = raw(site, OK + head, body)
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    incomplete = ""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take_turns)
        incomplete = (await fetch(url, deadline_seconds=10_000)).incomplete
        tasks.cancel_scope.cancel()
    assert "tiny chunks" in incomplete
    assert turns > 50_000  # one for each chunk


async def test_a_task_cancelled_by_asyncio_leaves_no_file_either(
    site: Site, fetcher: Make, tmp_path: Path
) -> None:
    url = raw(site, OK + b"\r\n", b"x" * 100_000, times=10_000)
    for wait in (0.0, 0.02, 0.05, 0.1):
        task = asyncio.create_task(fetcher().fetch(url, tmp_path))
        await asyncio.sleep(wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert list(tmp_path.iterdir()) == []


async def test_a_missing_folder_is_a_store_error(site: Site, fetcher: Make, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No file can be made"):
        await fetcher().fetch(site.put("/x", b"x"), tmp_path / "nowhere")
