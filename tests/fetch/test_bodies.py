"""Bodies that are whole, cut off, too large, late or cancelled: what stays and what goes."""

import asyncio
import gzip
import hashlib
import itertools
import sys
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import anyio
import anyio.lowlevel
import brotli
import pytest
from hypothesis import given, strategies as st

from fetchstash.errors import FetchFailed, StoreError, TimedOut, TooLarge
from fetchstash.fetch import FetchLimits, Progress
from fetchstash.fetch._coding import STEP, BrokenCoding, codings, decode_beginning, decoders
from tests.fetch.sending import OK, Fetch, Make, content, raw
from tests.loopback import Site

pytestmark = pytest.mark.anyio


INCOMPLETE = {
    "short": (b"Content-Length: 100\r\n\r\nhello", "the connection closed before its end"),
    "large": (b"Content-Length: 9999999\r\n\r\nhello", "the connection closed before its end"),
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


@pytest.mark.whole
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


@pytest.mark.whole
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
    "a bomb in another coding": b"Content-Encoding: gzip, gzip\r\n\r\n"
    + gzip.compress(gzip.compress(bytes(40 * 2**20))),
    "between two codings": b"Content-Encoding: gzip, gzip\r\n\r\n"
    + gzip.compress(gzip.compress(b"") * 10_000),
    "header": b"X-Long: " + b"a" * 70_000 + b"\r\n\r\n",
    "many headers": b"".join(b"X-%d: a\r\n" % number for number in range(9_000)) + b"\r\n",
}


@pytest.mark.whole
@pytest.mark.parametrize("name", TOO_LARGE)
async def test_more_than_a_limit_allows_is_an_error_and_leaves_no_file(
    site: Site, fetch: Fetch, tmp_path: Path, name: str
) -> None:
    limit = 2**30 if "bomb" in name else 50_000
    with pytest.raises(TooLarge):
        await fetch(raw(site, OK + TOO_LARGE[name]), max_decoded_bytes=limit)
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


@pytest.mark.parametrize("length", [b"", b"Content-Length: 9999999\r\n"])
async def test_cancelling_closes_the_socket_at_once_and_leaves_no_file(
    length: bytes, site: Site, fetcher: Make, tmp_path: Path
) -> None:
    begun, closed = threading.Event(), threading.Event()

    def script(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        # A file is made for the first two megabytes, or for a whole body.
        handler.connection.sendall(b"HTTP/1.1 200 OK\r\n" + length + b"\r\n" + bytes(2_500_000))
        begun.set()
        handler.connection.settimeout(5)
        with suppress(ConnectionResetError):  # closed before all of it was read
            assert handler.connection.recv(1) == b""
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


# --- Content codings: decoded whole, in bounded steps, and broken ones told.

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TEXT = b"".join(b"line %d of a text that repeats itself\n" % number for number in range(20_000))


def raw_deflate(data: bytes) -> bytes:
    squeezer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return squeezer.compress(data) + squeezer.flush()


CODED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "br": ("br", lambda data: brotli.compress(data, quality=5)),
    "zstd": ("zstd", zstd.compress),
}


def decode(header: str, data: bytes, chunk: int = 10_000) -> bytes:
    """Decode ``data`` in chunks, as it comes, and check that every step is bounded."""
    names = codings(header)
    assert names is not None
    stages = decoders(names)
    out = b""
    for begin in range(0, len(data), chunk):
        pieces = [data[begin : begin + chunk]]
        for stage in stages:
            pieces = [piece for some in pieces for piece in stage.feed(some)]
        assert all(len(piece) <= STEP * 3 // 2 for piece in pieces)
        out += b"".join(pieces)
    for stage in stages:
        stage.finish()
    return out


@pytest.mark.parametrize("chunk", [1, 7, 10_000, 10_000_000])
@pytest.mark.parametrize(("header", "encode"), CODED.values(), ids=CODED)
def test_a_coding_is_decoded_from_pieces_of_any_size(
    header: str, encode: Callable[[bytes], bytes], chunk: int
) -> None:
    text = TEXT if chunk > 10 else TEXT[:5_000]
    assert decode(header, encode(text), chunk) == text


@pytest.mark.whole
@pytest.mark.parametrize(("header", "encode"), CODED.values(), ids=CODED)
def test_a_coding_that_ends_too_soon_is_broken(
    header: str, encode: Callable[[bytes], bytes]
) -> None:
    with pytest.raises(BrokenCoding, match="ends too soon"):
        decode(header, encode(TEXT)[:-9])


@pytest.mark.parametrize("header", ["gzip", "br", "zstd"])
def test_bytes_of_another_coding_are_broken(header: str) -> None:
    with pytest.raises(BrokenCoding, match="broken"):
        decode(header, b"<!doctype html><p>no coding at all</p>" * 3)


@pytest.mark.parametrize("header", ["gzip", "deflate", "br", "zstd"])
def test_an_empty_body_is_whole_in_every_coding(header: str) -> None:
    assert decode(header, b"") == b""


@pytest.mark.parametrize(("header", "encode"), [("gzip", gzip.compress), ("zstd", zstd.compress)])
def test_all_members_and_frames_are_read(header: str, encode: Callable[[bytes], bytes]) -> None:
    assert decode(header, encode(b"one ") + encode(b"") + encode(b"two"), chunk=5) == b"one two"


def test_bytes_after_the_last_gzip_member_are_left_out() -> None:
    assert (
        decode("gzip", gzip.compress(b"one") + b"\0\0\0" + gzip.compress(b"two") + b"\0\0trailing")
        == b"onetwo"
    )


def test_a_flood_of_empty_gzip_members_ends() -> None:
    with pytest.raises(BrokenCoding, match="members"):
        decode("gzip", gzip.compress(b"") * 10_001, chunk=1_000_000)


def test_two_codings_are_decoded_in_reverse_order() -> None:
    assert decode("br, gzip", gzip.compress(brotli.compress(TEXT, quality=5))) == TEXT


@pytest.mark.whole
@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("", ()),
        ("identity", ()),
        ("GZIP", ("gzip",)),
        ("gzip, identity, br", ("gzip", "br")),
        ("compress", None),
        ("UTF-8", ()),
    ],
)
def test_a_header_with_an_unknown_coding_has_no_codings(
    header: str, names: tuple[str, ...] | None
) -> None:
    assert codings(header) == names


@pytest.mark.long
@pytest.mark.parametrize(("header", "encode"), CODED.values(), ids=CODED)
def test_a_bomb_takes_memory_for_one_step_at_a_time(
    header: str, encode: Callable[[bytes], bytes]
) -> None:
    bomb = encode(bytes(64 * 2**20))
    (stage,) = decoders(codings(header) or ())
    tracemalloc.start()
    try:
        total = sum(
            len(piece)
            for begin in range(0, len(bomb), 4096)
            for piece in stage.feed(bomb[begin : begin + 4096])
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == 64 * 2**20
    assert peak < 2 * 2**20


def test_the_readable_beginning_of_a_broken_body_is_kept() -> None:
    assert decode_beginning(gzip.compress(TEXT)[:200], "gzip", 50) == TEXT[:50]
    assert decode_beginning(b"plain", "gzip", 50) == b""
    assert decode_beginning(b"plain", "", 3) == b"pla"


@given(st.sampled_from(["gzip", "deflate", "br", "zstd", "gzip, br"]), st.binary(max_size=300))
def test_any_bytes_are_decoded_or_broken(header: str, data: bytes) -> None:
    with suppress(BrokenCoding):
        decode(header, data, chunk=17)
