"""Quotas: strict on one replica, within a stated bound on several, over restarts and odd clocks."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from time import monotonic
from typing import TypeVar

import anyio
import pytest
from hypothesis import given, strategies as st

from fetchstash.errors import OverQuota, StoreError
from fetchstash.fetch import FetchLimits
from fetchstash.service import Quotas
from fetchstash.service._work import SharedLimits
from fetchstash.store import Counts, MemoryObjects, StoreLimits, open_objects
from fetchstash.store._counts import CountsFile
from fetchstash.store._schema import Db
from tests.service.asgi import Clock
from tests.store.buckets import empty_place

T = TypeVar("T")

pytestmark = pytest.mark.anyio
DAY = 86_400
EXCHANGE_SECONDS = 5  # as docs/operations.md says


def admitted(quotas: Quotas, limit: int, tries: int = 1, tenant: str = "acme") -> int:
    count = 0
    for _ in range(tries):
        try:
            quotas.request({tenant: limit})
        except OverQuota as error:
            over = error
        else:
            count += 1
            continue
        assert 1 <= over.details["retry_after_seconds"] <= 70
    return count


@given(gaps=st.lists(st.floats(0, 20), min_size=1, max_size=80), limit=st.integers(1, 10))
def test_no_minute_has_more_requests_than_the_quota(gaps: list[float], limit: int) -> None:
    clock = Clock()
    quotas = Quotas(clock=clock)
    times: list[float] = []
    for gap in gaps:
        clock.seconds += gap
        times += [clock.seconds] * admitted(quotas, limit, 3)
    for time in times:
        assert sum(time <= other < time + 60 for other in times) <= limit


@given(gaps=st.lists(st.floats(0, 20), max_size=20), limit=st.integers(1, 5))
def test_a_request_at_the_time_that_was_named_goes_through(gaps: list[float], limit: int) -> None:
    clock = Clock()
    quotas = Quotas(clock=clock)
    for gap in gaps:
        clock.seconds += gap
        admitted(quotas, limit, 2)
    while admitted(quotas, limit):
        pass
    with pytest.raises(OverQuota) as refused:
        quotas.request({"acme": limit})
    clock.seconds += refused.value.details["retry_after_seconds"]
    assert admitted(quotas, limit) == 1


def test_a_quota_of_zero_is_none(clock: Clock) -> None:
    quotas = Quotas(clock=clock)
    assert admitted(quotas, 0, 1_000) == 1_000
    quotas.fetched(["acme"], 10**15)
    quotas.may_fetch({"acme": 0})


def test_tenants_do_not_use_each_others_quotas(clock: Clock) -> None:
    quotas = Quotas(clock=clock)
    assert admitted(quotas, 3, 10) == 3
    assert admitted(quotas, 3, 10, "other") == 3


def test_what_was_fetched_counts_until_midnight_in_utc(clock: Clock) -> None:
    clock.seconds = clock.seconds // DAY * DAY + 20 * 3_600
    quotas = Quotas(clock=clock)
    quotas.fetched(["acme"], 60)
    quotas.may_fetch({"acme": 100})
    quotas.fetched(["acme"], 60)
    with pytest.raises(OverQuota) as over:
        quotas.may_fetch({"acme": 100})
    assert over.value.details == {"retry_after_seconds": 4 * 3_600}
    assert "You may fetch 100 bytes a day, and have fetched 120." in over.value.line()
    assert "Try again in 4 h" in over.value.line()
    quotas.may_fetch({"other": 100})
    clock.seconds += 4 * 3_600
    quotas.may_fetch({"acme": 100})


@given(jumps=st.lists(st.floats(-3 * DAY, 3 * DAY), max_size=10))
async def test_a_clock_that_jumps_makes_no_wait_that_is_negative_or_long(
    jumps: list[float],
) -> None:
    clock = Clock()
    counts = MemoryObjects().counts
    one, two = Quotas(counts, clock), Quotas(counts, clock)
    for jump in jumps:
        clock.seconds += jump
        for quotas in (one, two):
            admitted(quotas, 2, 5)  # asserts the bounds of the wait
            quotas.fetched(["acme"], 10)
            with pytest.raises(OverQuota) as over:
                quotas.may_fetch({"acme": 5})
            assert 1 <= over.value.details["retry_after_seconds"] <= DAY
            await quotas.exchange()
    clock.seconds += 10 * DAY
    assert admitted(one, 2, 5) == 2


class Replicas:
    """Replicas that exchange their counts on time, each at a moment of its own."""

    def __init__(self, counts: Counts, clock: Clock, n: int) -> None:
        self.clock = clock
        self.all = [Quotas(counts, clock) for _ in range(n)]
        self._due = [clock.seconds + EXCHANGE_SECONDS * i / n for i in range(n)]

    async def advance(self, seconds: float) -> None:
        until = self.clock.seconds + seconds
        while min(self._due) <= until:
            first = self._due.index(min(self._due))
            self.clock.seconds = self._due[first]
            self._due[first] += EXCHANGE_SECONDS
            await self.all[first].exchange()
        self.clock.seconds = until


@pytest.fixture(params=["memory", "folder", "team"])
async def counts(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Counts]:
    with empty_place(request.param) as place:
        objects = await open_objects(StoreLimits(tmp_path / "store", **place))
        yield objects.counts
        await objects.aclose()


@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize("rate", [1, 4])
async def test_replicas_together_admit_the_quota_and_what_the_others_do_in_two_exchanges(
    counts: Counts, clock: Clock, n: int, rate: int
) -> None:
    limit = 60
    replicas = Replicas(counts, clock, n)
    times: list[float] = []
    for _ in range(180):
        for quotas in replicas.all:
            times += [clock.seconds] * admitted(quotas, limit, rate)
        await replicas.advance(1)
    bound = limit + (n - 1) * rate * 2 * EXCHANGE_SECONDS
    worst = max(sum(time <= other < time + 60 for other in times) for time in times)
    assert limit <= worst <= min(bound, n * limit)


async def test_replicas_keep_one_pace_at_a_site(counts: Counts) -> None:
    fetch = FetchLimits(per_host_rate=20)
    replicas = [SharedLimits.of(2, 1, Quotas(counts), fetch) for _ in range(2)]
    began = monotonic()
    for replica in replicas * 2:
        async with replica.gates.turn("a.example"):
            pass
    assert monotonic() - began >= 3 / 20


async def test_what_was_fetched_elsewhere_counts_here_after_an_exchange(
    counts: Counts, clock: Clock
) -> None:
    one, two = Quotas(counts, clock), Quotas(counts, clock)
    one.fetched(["acme"], 200)
    two.may_fetch({"acme": 100})
    await one.exchange()
    await two.exchange()
    with pytest.raises(OverQuota):
        two.may_fetch({"acme": 100})


async def test_counts_survive_a_restart(counts: Counts, clock: Clock) -> None:
    before = Quotas(counts, clock)
    assert admitted(before, 5, 9) == 5
    before.fetched(["acme"], 200)
    await before.exchange()
    for _ in range(3):  # restarts
        clock.seconds += 1
        again = Quotas(counts, clock)
        await again.exchange()
        assert admitted(again, 5, 9) == 0
        with pytest.raises(OverQuota):
            again.may_fetch({"acme": 100})


async def test_what_is_over_is_not_kept(counts: Counts, clock: Clock) -> None:
    quotas = Quotas(counts, clock)
    admitted(quotas, 5, 5)
    quotas.fetched(["acme"], 200)
    await quotas.check_host("acme/alice", "a.example", 2)
    await quotas.exchange()
    clock.seconds += 3 * DAY
    await quotas.exchange()
    for kind in ("requests", "fetched"):
        assert await counts.add(kind, {}, 0, 0) == {}


async def test_a_replica_that_is_idle_is_read_again_as_soon_as_it_counts(
    counts: Counts, clock: Clock
) -> None:
    replicas = Replicas(counts, clock, 2)
    one, two = replicas.all
    await replicas.advance(600)
    one.fetched(["acme"], 200)
    await replicas.advance(2 * EXCHANGE_SECONDS)
    with pytest.raises(OverQuota):
        two.may_fetch({"acme": 100})


async def test_what_is_counted_while_counts_are_exchanged_counts_once(
    counts: Counts, clock: Clock
) -> None:
    one, two = Quotas(counts, clock), Quotas(counts, clock)
    for _ in range(4):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.exchange)
            await anyio.lowlevel.checkpoint()
            one.request({"acme": 9})  # requests are exchanged first
            one.fetched(["acme"], 10)
    await one.exchange()
    await two.exchange()
    assert admitted(two, 5, 9) == 1
    for quotas in (one, two):
        quotas.may_fetch({"acme": 41})
        with pytest.raises(OverQuota, match="have fetched 40"):
            quotas.may_fetch({"acme": 40})


async def test_a_store_that_fails_leaves_a_replica_to_its_own_counts(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    is_down = True

    async def run(work: Callable[[Db], T]) -> T:
        if is_down:
            raise StoreError("The database is away.", "Try again.")
        return await file.run(work)

    file = CountsFile()
    quotas, other = Quotas(Counts(run), clock), Quotas(Counts(run), clock)
    for _ in range(3):
        await quotas.exchange()
    assert admitted(quotas, 3, 9) == 3
    assert [record.getMessage() for record in caplog.records] == [
        "quotas are counted by this replica alone: The database is away."
    ]
    is_down = False
    await quotas.exchange()
    await other.exchange()
    assert admitted(quotas, 3, 9) == admitted(other, 3, 9) == 0


async def test_a_file_of_counts_that_is_damaged_is_made_anew(tmp_path: Path, clock: Clock) -> None:
    objects = await open_objects(StoreLimits(tmp_path))
    (tmp_path / "service").mkdir()
    (tmp_path / "service" / ".counts.db").write_bytes(b"no database " * 1000)
    quotas = Quotas(objects.counts, clock)
    admitted(quotas, 5, 5)
    await quotas.exchange()
    assert len(await objects.counts.add("requests", {}, 0, 0)) == 1
    await objects.aclose()


async def test_a_person_may_ask_so_many_hosts_a_minute_and_those_again(
    counts: Counts, clock: Clock
) -> None:
    first, second = Quotas(counts, clock), Quotas(counts, clock)
    await first.check_host("acme/alice", "a.example", 2)
    clock.seconds += 10
    await second.check_host("acme/alice", "b.example", 2)
    for quotas in (first, second):
        await quotas.check_host("acme/alice", "b.example", 2)
        with pytest.raises(OverQuota, match="2 different hosts a minute") as over:
            await quotas.check_host("acme/alice", "c.example", 2)
        assert over.value.details["retry_after_seconds"] == 50
        await quotas.check_host("acme/bob", "c.example", 2)
        await quotas.check_host("acme/alice", "c.example", 0)
    clock.seconds += 51
    await second.check_host("acme/alice", "c.example", 2)
