"""A text that is read by ranges: the same bytes in any order, in few requests."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from fetchstash.errors import StoreError
from fetchstash.store._bucket_cache import BlobCache
from fetchstash.store._bytes import BLOCK, RangedSource
from fetchstash.store._text import NotCached

MIB = 2**20


class Remote:
    """Bytes behind requests, which are counted."""

    def __init__(self, size: int) -> None:
        self.data = random.Random(size).randbytes(size)
        self.ranges: list[tuple[int, int]] = []
        self.fails = False

    def fetch(self, start: int, end: int) -> bytes:
        self.ranges.append((start, end))
        if self.fails:
            raise StoreError("The bucket does not answer.", "Try again.")
        return self.data[start:end]


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as executor:
        yield executor


def source_of(remote: Remote, executor: ThreadPoolExecutor, tmp_path: Path) -> RangedSource:
    filling = BlobCache(tmp_path / "cache", 0).filling("text", "0" * 64, len(remote.data))
    return RangedSource(remote.fetch, len(remote.data), executor, filling)


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * MIB + 7])
def test_reads_in_any_order_give_the_same_bytes(
    size: int, executor: ThreadPoolExecutor, tmp_path: Path
) -> None:
    remote = Remote(size)
    source = source_of(remote, executor, tmp_path)
    chance = random.Random(1)
    position = 0
    for _ in range(200):
        goes_on = chance.random() < 0.5
        start = position if goes_on else chance.randrange(size + 1)
        end = start + chance.choice([0, 1, 100, BLOCK, 5 * BLOCK, MIB])
        assert source.read(start, end) == remote.data[start:end]
        position = min(end, size)
    assert all(start < end <= size for start, end in remote.ranges)
    source.close()


def test_a_part_is_one_request_and_what_is_near_it_none(
    executor: ThreadPoolExecutor, tmp_path: Path
) -> None:
    remote = Remote(64 * MIB)
    source = source_of(remote, executor, tmp_path)
    with pytest.raises(NotCached):
        source.read_cached(40 * MIB, 40 * MIB + 10)
    source.read(40 * MIB, 40 * MIB + 10)
    assert source.read_cached(40 * MIB + BLOCK, 40 * MIB + BLOCK + 10)
    source.read(40 * MIB + BLOCK - 5, 40 * MIB + BLOCK + 5)
    assert remote.ranges == [(40 * MIB, 40 * MIB + 2 * BLOCK)]


def test_a_scan_is_read_ahead_in_whole_chunks_each_once(
    executor: ThreadPoolExecutor, tmp_path: Path
) -> None:
    remote = Remote(20 * MIB)
    source = source_of(remote, executor, tmp_path)
    step = 8 * BLOCK
    read = b"".join(source.read(at, at + step) for at in range(0, 20 * MIB, step))
    assert read == remote.data
    assert sorted(remote.ranges) == [(n * MIB, (n + 1) * MIB) for n in range(20)]


def test_what_was_read_is_forgotten_again(executor: ThreadPoolExecutor, tmp_path: Path) -> None:
    remote = Remote(20 * MIB)
    source = source_of(remote, executor, tmp_path)
    for at in range(0, 20 * MIB, 8 * BLOCK):
        source.read(at, at + 8 * BLOCK)
    with pytest.raises(NotCached):
        source.read_cached(0, 1)


def test_a_read_after_a_failed_one_works(executor: ThreadPoolExecutor, tmp_path: Path) -> None:
    remote = Remote(4 * MIB)
    source = source_of(remote, executor, tmp_path)
    remote.fails = True
    for end in (10, MIB):
        with pytest.raises(StoreError):
            source.read(0, end)
    remote.fails = False
    assert source.read(0, MIB) == remote.data[:MIB]


def test_a_closed_source_reads_no_more(executor: ThreadPoolExecutor, tmp_path: Path) -> None:
    source = source_of(Remote(10), executor, tmp_path)
    assert source.read(0, 10)
    source.close()
    source.close()
    with pytest.raises(StoreError, match="closed"):
        source.read(0, 10)
    with pytest.raises(NotCached):
        source.read_cached(0, 10)


def test_a_read_that_needs_no_request_waits_for_none(
    executor: ThreadPoolExecutor, tmp_path: Path
) -> None:
    began, may_end = Event(), Event()
    remote = Remote(MIB)

    def slow(start: int, end: int) -> bytes:
        began.set()
        may_end.wait(10)
        return remote.fetch(start, end)

    filling = BlobCache(tmp_path / "cache", 0).filling("text", "0" * 64, MIB)
    source = RangedSource(slow, MIB, executor, filling)
    running = executor.submit(source.read, 0, 10)
    began.wait(10)
    with pytest.raises(NotCached):
        source.read_cached(0, 10)
    may_end.set()
    assert running.result() == remote.data[:10]
