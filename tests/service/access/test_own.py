"""Tokens of our own: made, listed, revoked, and verified on several replicas."""

import json
import re
import string
import zlib
from collections.abc import Sequence

import anyio
import pytest
from hypothesis import given, strategies as st

from fetchstash.errors import BadArgument, StoreError
from fetchstash.service.access import OwnTokens, Principal, Rejected
from fetchstash.store import MemoryObjects, Objects
from tests.service.access.floods import turned_away
from tests.service.asgi import Clock

PREFIX, KEYS = "fstash_", "tokens/"  # of tokens, and of their records
pytestmark = [pytest.mark.anyio, pytest.mark.whole]

DAY = 86_400.0


class Counting:
    """Objects that count what they are asked, and fail when told to."""

    def __init__(self, inner: Objects) -> None:
        self._inner, self.counts = inner, inner.counts
        self.lists = self.reads = 0
        self.is_down = False
        self.answers = anyio.Event()
        self.answers.set()

    async def read(self, key: str) -> bytes | None:
        self.reads += 1
        return await self._inner.read(key)

    async def write(self, key: str, data: bytes) -> None:
        await self._inner.write(key, data)

    async def delete(self, key: str) -> None:
        await self._inner.delete(key)

    async def failing(self) -> str:
        return "bucket" if self.is_down else ""

    async def items(self, folder: str = "") -> dict[str, bytes]:
        self.lists += 1
        await anyio.lowlevel.checkpoint()
        await self.answers.wait()
        if self.is_down:
            raise StoreError("The bucket does not answer.", "Try again.")
        return await self._inner.items(folder)

    async def aclose(self) -> None:
        await self._inner.aclose()


@pytest.fixture
def objects() -> Counting:
    return Counting(MemoryObjects())


@pytest.fixture
def now() -> Clock:
    return Clock(1_800_000_000.0)


@pytest.fixture
def tokens(objects: Counting, clock: Clock, now: Clock) -> OwnTokens:
    return OwnTokens(objects, clock=clock, now=now)


@pytest.fixture
async def known(tokens: OwnTokens) -> str:
    """Return a token that was verified before."""
    text = (await tokens.create("team-a", "ci")).text
    await tokens.verify(text)
    return text


async def reason(tokens: OwnTokens, token: str) -> str:
    with pytest.raises(Rejected) as caught:
        await tokens.verify(token)
    assert len(token) < 20 or token not in f"{caught.value}"
    return caught.value.reason


async def test_a_token_stands_for_its_tenant_name_and_scopes(tokens: OwnTokens) -> None:
    people = ("team-a", "ci"), ("team-b", "ada")
    made = [await tokens.create(*person, scopes=["read"]) for person in people]
    for (tenant, name), token in zip(people, made, strict=True):
        principal = Principal(tenant, name, frozenset({"read"}), token=token.record.id)
        assert await tokens.verify(token.text) == principal


async def test_the_id_of_a_token_with_another_secret_is_unknown(tokens: OwnTokens) -> None:
    token, other = await tokens.create("team-a", "ci"), await tokens.create("team-b", "ci")
    secret = slice(len(PREFIX) + 12, -6)
    forged = PREFIX + token.record.id + other.text[secret]
    rest, checksum = zlib.crc32(forged.encode()), ""
    for _ in range(6):
        rest, digit = divmod(rest, 62)
        checksum += (string.digits + string.ascii_letters)[digit]
    assert await reason(tokens, forged + checksum) == "unknown"
    assert (await tokens.verify(token.text)).tenant == "team-a"


async def test_a_token_has_a_form_that_scanners_find_and_256_random_bits(tokens: OwnTokens) -> None:
    texts = {(await tokens.create("a", "n")).text for _ in range(50)}
    assert len(texts) == 50
    assert all(re.fullmatch(r"fstash_[a-z2-7]{12}[0-9A-Za-z]{49}", text) for text in texts)
    secrets = "".join(text[len(PREFIX) + 12 : -6] for text in texts)
    assert len(set(secrets)) == 62  # 43 characters of 62: 256 bits


async def test_the_store_holds_a_hash_and_nothing_of_the_secret(
    tokens: OwnTokens, objects: Counting
) -> None:
    token = await tokens.create("team-a", "ci")
    ((key, data),) = (await objects.items(KEYS)).items()
    secret = token.text.removeprefix(PREFIX + token.record.id)
    assert secret not in key + data.decode()
    assert secret[:8] not in key + data.decode()
    assert json.loads(data)["hash"] == token.record.hash


async def test_a_list_shows_everything_but_the_hash(tokens: OwnTokens, now: Clock) -> None:
    first = await tokens.create("team-a", "ci", days=1)
    now.seconds += 1
    await tokens.create("team-b", "ada", scopes=["fetch"])
    listed, second = [record.listed() for record in await tokens.records()]
    assert listed == {
        "id": first.record.id,
        "tenant": "team-a",
        "name": "ci",
        "scopes": ("read", "fetch"),
        "created": "2027-01-15T08:00:00+00:00",
        "expires": "2027-01-16T08:00:00+00:00",
    }
    assert (second["expires"], second["scopes"]) == ("2027-04-15T08:00:01+00:00", ("fetch",))


async def test_a_token_ends_when_its_days_are_over(tokens: OwnTokens, now: Clock) -> None:
    token = await tokens.create("team-a", "ci", days=2)
    now.seconds += 2 * DAY - 1
    await tokens.verify(token.text)
    now.seconds += 1
    assert await reason(tokens, token.text) == "expired"


async def test_another_replica_takes_a_new_token_at_once_and_forgets_a_revoked_one_in_10_s(
    tokens: OwnTokens, objects: Counting, clock: Clock, now: Clock
) -> None:
    replica = OwnTokens(objects, clock=clock, now=now)
    assert await reason(replica, (await tokens.create("a", "n")).text[:-1]) == "malformed"
    token = await tokens.create("team-a", "ci")
    await replica.verify(token.text)
    await tokens.revoke(token.record.id)
    assert await tokens.records() != [token.record]
    assert await reason(tokens, token.text) == "unknown"
    await replica.verify(token.text)  # it may, for a while
    clock.seconds += 10
    assert await reason(replica, token.text) == "unknown"


async def test_a_token_made_while_random_ones_are_tried_is_taken_within_a_second(
    tokens: OwnTokens, objects: Counting, clock: Clock, now: Clock
) -> None:
    replica = OwnTokens(objects, clock=clock, now=now)
    other = OwnTokens(MemoryObjects())
    stranger = (await other.create("team-a", "ci")).text
    assert await reason(replica, stranger) == "unknown"
    token = await tokens.create("team-a", "ci")
    assert await reason(replica, token.text) == "unknown"
    clock.seconds += 1
    await replica.verify(token.text)


async def test_a_flood_of_well_formed_random_tokens_costs_the_store_one_list_a_second(
    tokens: OwnTokens, known: str, objects: Counting, clock: Clock
) -> None:
    clock.seconds += 1
    others = OwnTokens(MemoryObjects())
    strangers = [(await others.create("team-a", "ci")).text for _ in range(200)]
    objects.lists = objects.reads = 0
    async with anyio.create_task_group() as tasks:
        for stranger in strangers:
            tasks.start_soon(reason, tokens, stranger)
        tasks.start_soon(tokens.verify, known)
    assert (objects.lists, objects.reads) == (1, 0)


async def test_what_is_no_token_costs_the_store_nothing(
    tokens: OwnTokens, objects: Counting
) -> None:
    text = (await tokens.create("team-a", "ci")).text
    changed = text[:25] + ("a" if text[25] != "a" else "b") + text[26:]
    for wrong in ("", "fstash_", changed, text + "a", text.upper(), f" {text}", f"{text}\n"):
        assert await reason(tokens, wrong) == "malformed"
    assert objects.lists == 0


@pytest.mark.slow
@given(st.text(max_size=100) | st.from_regex(r"\Afstash_[a-z2-7]{12}[0-9A-Za-z]{49}\Z"))
async def test_no_text_at_all_is_taken_or_makes_the_verifier_fail(text: str) -> None:
    tokens = OwnTokens(MemoryObjects())
    await tokens.create("team-a", "ci")
    assert await reason(tokens, text) in ("malformed", "unknown")


async def test_a_token_with_the_id_of_another_is_unknown(
    tokens: OwnTokens, objects: Counting
) -> None:
    first, second = await tokens.create("a", "n"), await tokens.create("b", "n")
    data = await objects.read(KEYS + first.record.id)
    assert data
    await objects.write(KEYS + second.record.id, data)  # a record under the key of another
    assert await reason(tokens, second.text) == "unknown"
    await tokens.verify(first.text)


DAMAGED: dict[str, bytes | dict[str, object]] = {
    "empty": b"",
    "no fields": b"{}",
    "a list": b"[]",
    "no text": b"\xff",
    "deep": b"[" * 100_000,
    "wrong types": b'{"id": 1}',
    "another folder": {"tenant": "../b"},
    "no time": {"expires": "soon"},
    "a time without a zone": {"expires": "2027-01-01"},
    "scopes that are none": {"scopes": "read"},
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
async def test_a_damaged_record_is_no_token_and_harms_no_other(
    tokens: OwnTokens,
    objects: Counting,
    caplog: pytest.LogCaptureFixture,
    damage: bytes | dict[str, object],
) -> None:
    damaged, good = await tokens.create("a", "n"), await tokens.create("a", "n")
    key = KEYS + damaged.record.id
    if isinstance(damage, dict):
        damage = json.dumps(json.loads(await objects.read(key) or b"") | damage).encode()
    await objects.write(key, damage)
    await tokens.verify(good.text)
    assert await reason(tokens, damaged.text) == "unknown"
    assert f"the record of the token {damaged.record.id} is damaged" in caplog.text


async def test_a_token_is_taken_for_25_s_while_the_store_is_down_and_then_it_is_an_error(
    tokens: OwnTokens, known: str, objects: Counting, clock: Clock
) -> None:
    objects.is_down = True
    clock.seconds += 24
    await tokens.verify(known)
    clock.seconds += 1
    objects.lists = 0
    for _ in range(20):
        with pytest.raises(StoreError):
            await tokens.verify(known)
    assert objects.lists == 1  # asked again after a second
    objects.is_down = False
    clock.seconds += 1
    await tokens.verify(known)


async def test_a_list_that_hangs_holds_up_nobody_until_the_last_one_is_25_s_old(
    tokens: OwnTokens, known: str, objects: Counting, clock: Clock
) -> None:
    objects.answers = anyio.Event()
    clock.seconds += 11
    taken = 0

    async def verify() -> None:
        nonlocal taken
        await tokens.verify(known)
        taken += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(verify)  # reads the list
        await anyio.wait_all_tasks_blocked()
        for _ in range(20):
            tasks.start_soon(verify)
        await anyio.wait_all_tasks_blocked()
        assert taken == 20
        clock.seconds += 14
        tasks.start_soon(verify)
        await anyio.wait_all_tasks_blocked()
        assert taken == 20
        objects.answers.set()
    assert taken == 22


async def test_unknown_tokens_do_not_fill_the_places_of_known_ones_while_a_list_hangs(
    tokens: OwnTokens, known: str, objects: Counting, clock: Clock
) -> None:
    stranger = (await OwnTokens(MemoryObjects()).create("team-a", "ci")).text
    objects.answers = anyio.Event()
    clock.seconds += 1
    flood = await turned_away(tokens, stranger, known, objects.answers)
    assert flood == (1_000 - 201, {"unknown"})  # one reads the list, and 200 wait for it


async def test_a_client_that_leaves_does_not_interrupt_the_list_for_others(
    tokens: OwnTokens, objects: Counting
) -> None:
    token = await tokens.create("team-a", "ci")
    objects.answers = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tokens.verify, token.text)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
        objects.answers.set()
    await tokens.verify(token.text)
    assert objects.lists == 1


async def test_a_record_that_cannot_be_read_now_is_an_error_and_no_rejection(
    tokens: OwnTokens, objects: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await tokens.create("team-a", "ci")

    async def fails(_: str) -> dict[str, bytes]:
        raise StoreError("The bucket does not answer.", "Try again.")

    monkeypatch.setattr(objects, "items", fails)
    with pytest.raises(StoreError):
        await tokens.verify(token.text)


WRONG: Sequence[tuple[str, str, int, list[str]]] = [
    ("", "ci", 90, ["read"]),
    ("Team", "ci", 90, ["read"]),
    ("../a", "ci", 90, ["read"]),
    ("a", "", 90, ["read"]),
    ("a", "two words", 90, ["read"]),
    ("a", "x" * 65, 90, ["read"]),
    ("a", "\x1b[2J", 90, ["read"]),
    ("a", "ci", 0, ["read"]),
    ("a", "ci", 3_651, ["read"]),
    ("a", "ci", 90, []),
    ("a", "ci", 90, ["admin"]),
]


@pytest.mark.parametrize(("tenant", "name", "days", "scopes"), WRONG)
async def test_a_token_for_nobody_is_not_made(
    tokens: OwnTokens, objects: Counting, tenant: str, name: str, days: int, scopes: list[str]
) -> None:
    with pytest.raises(BadArgument):
        await tokens.create(tenant, name, days, scopes)
    assert await objects.items() == {}


async def test_a_store_whose_only_token_was_revoked_is_not_one_that_never_had_any(
    tokens: OwnTokens, objects: Counting
) -> None:
    """A service without tokens is open to the user of its machine."""
    assert not await tokens.were_made()
    await tokens.revoke((await tokens.create("team-a", "ci")).record.id)
    assert await tokens.records() == []
    assert await OwnTokens(objects).were_made()


async def test_revoking_what_is_not_there_is_an_error(tokens: OwnTokens) -> None:
    with pytest.raises(BadArgument, match="no token 'abc'"):
        await tokens.revoke("abc")
