"""Our own tokens: created once, stored as hashes beside the artifacts, verified from a cache.

A token is ``fstash_``, its id of 12 characters, its secret of 43, and a CRC-32 of all that in 6:
scanners of secrets find it, and a slip of the pen is rejected without a look into the store.
"""

import contextlib
import hmac
import json
import logging
import re
import secrets
import string
import time
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, cast

import anyio

from fetchstash.errors import BadArgument, Busy, FetchstashError
from fetchstash.service.access._principal import SCOPES, Principal, Rejected, Verifier, is_tenant
from fetchstash.store import Objects

PREFIX = "fstash_"
KEYS = "tokens/"
"""Where the records lie, each under the id of its token."""
_CLOSED = "tokens-were-made"
"""The key of a mark that stays when the last token goes: the service is not open then."""
FRESH = 10.0
"""Seconds after which one request reads the list of tokens again; others need not wait for it."""
MAX_AGE = 25.0
"""Seconds for which a list is believed: so long a revoked token may still be taken."""
EARLIEST = 1.0
"""Seconds between two lists, however many unknown ids are tried."""
MOST_WAITING = 200
"""Unknown tokens that may wait for a list at a time: they hold places of requests meanwhile."""
MAX_DAYS = 3_650

_ID = "abcdefghijklmnopqrstuvwxyz234567"  # also a name of an object
_SECRET = string.digits + string.ascii_letters
_TOKEN = re.compile(rf"{PREFIX}([a-z2-7]{{12}})([0-9A-Za-z]{{43}})([0-9A-Za-z]{{6}})")
_TEXTS = ("id", "tenant", "name", "created", "expires", "hash")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")

_log = logging.getLogger("fetchstash.service.access")


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """The stored record of a token. ``created`` and ``expires`` are UTC times in ISO 8601.

    ``hash`` is the SHA-256 of the token: of 256 random bits, so that nothing slower is needed.
    """

    id: str
    tenant: str
    name: str
    scopes: tuple[str, ...]
    created: str
    expires: str
    hash: str

    def listed(self) -> dict[str, object]:
        """Return the record without its hash, for lists."""
        facts = asdict(self)
        del facts["hash"]
        return facts


@dataclass(frozen=True, slots=True)
class Token:
    """A new token: ``text`` is shown once, and kept nowhere."""

    text: str
    record: TokenRecord


class OwnTokens:
    """The tokens in a store. It verifies them, and lets ``provider`` verify those of others.

    Records never change, so the list of their keys says all: a record is read once, and a key
    that is gone is a token that was revoked. An unknown id causes a new list at most once in
    EARLIEST seconds: random tokens cost the store nothing more, and no memory.
    """

    def __init__(
        self,
        objects: Objects,
        provider: Verifier | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._objects = objects
        self._provider = provider
        self._clock = clock
        self._now = now
        self._records: Mapping[str, TokenRecord] = {}
        self._listed_at = self._ended_at = float("-inf")
        self._failure: FetchstashError | None = None
        self._lock = anyio.Lock()

    async def verify(self, token: str) -> Principal:
        """Return the principal of a token. Raises Rejected, StoreError, or Busy."""
        if self._provider and not token.startswith(PREFIX):
            return await self._provider.verify(token)
        match = _TOKEN.fullmatch(token)
        if match is None or match[3] != _checksum(token[: match.start(3)]):
            raise Rejected("malformed", "This is no token of this service.")
        age = self._clock() - self._listed_at
        if age >= MAX_AGE:
            await self._refresh()
        elif match[1] not in self._records:
            if self._lock.statistics().tasks_waiting >= MOST_WAITING:
                raise Busy("Too many unknown tokens are tried.", "Try again in a second.")
            await self._refresh()
        elif age >= FRESH and not self._lock.locked():
            with contextlib.suppress(FetchstashError):  # the list is good for a while yet
                await self._refresh()
        record = self._records.get(match[1])
        hashed = _hash(token)
        # Compared in any case, and in the same time however much of it is right.
        if not hmac.compare_digest(hashed, record.hash if record else "0" * 64) or record is None:
            raise Rejected("unknown", "The token is unknown, or was revoked.")
        if self._now() >= datetime.fromisoformat(record.expires).timestamp():
            raise Rejected("expired", "The token has expired.")
        return Principal(record.tenant, record.name, frozenset(record.scopes), token=record.id)

    async def create(
        self, tenant: str, name: str, days: int = 90, scopes: Collection[str] = SCOPES
    ) -> Token:
        """Make a token. Raises BadArgument for an invalid name, scope or age."""
        if not is_tenant(tenant):
            what = f"The tenant {tenant[:80]!r} has a wrong name."
            raise BadArgument(what, "Take a-z, 0-9 and -, at most 63, the first no -.")
        if _NAME.fullmatch(name) is None:
            what = f"The name {name[:80]!r} of the token cannot be used."
            raise BadArgument(what, "Take letters, digits and ._@+-, at most 64.")
        if not 1 <= days <= MAX_DAYS:
            raise BadArgument(f"A token cannot last {days} days.", f"Take 1 to {MAX_DAYS:,}.")
        if not scopes or set(scopes) - set(SCOPES):
            raise BadArgument("There is no such scope.", f"Take {' or '.join(SCOPES)}.")
        token_id = "".join(secrets.choice(_ID) for _ in range(12))
        text = PREFIX + token_id + "".join(secrets.choice(_SECRET) for _ in range(43))
        text += _checksum(text)
        created = datetime.fromtimestamp(int(self._now()), UTC)
        record = TokenRecord(
            token_id,
            tenant,
            name,
            tuple(scope for scope in SCOPES if scope in scopes),
            created.isoformat(),
            (created + timedelta(days=days)).isoformat(),
            _hash(text),
        )
        await self._objects.write(_CLOSED, b"")  # first: there is no token without it
        await self._objects.write(KEYS + token_id, json.dumps(asdict(record)).encode())
        return Token(text, record)

    async def were_made(self) -> bool:
        """Return whether a token was ever created, even if all have expired or were revoked."""
        return await self._objects.read(_CLOSED) is not None or bool(
            await self._objects.items(KEYS)
        )

    async def records(self) -> list[TokenRecord]:
        """Return the tokens that are not revoked, the oldest first; also those that expired."""
        async with self._lock:
            await self._list()
        return sorted(self._records.values(), key=lambda record: (record.created, record.id))

    async def of(self, name: str = "", tenant: str = "") -> list[TokenRecord]:
        """Return the tokens of a name and of a tenant, "" for any, also those that expired."""
        return [
            record
            for record in await self.records()
            if name in ("", record.name) and tenant in ("", record.tenant)
        ]

    async def revoke(self, token_id: str) -> TokenRecord:
        """Forget a token: no replica takes it 30 s later. Raises BadArgument for an unknown id."""
        record = next((item for item in await self.records() if item.id == token_id), None)
        if record is None:
            what = f"There is no token {token_id[:40]!r}."
            raise BadArgument(what, "Its id stands in the list of tokens.")
        await self._objects.write(_CLOSED, b"")  # a token of an earlier version came without
        await self._objects.delete(KEYS + token_id)
        return record

    async def _refresh(self) -> None:
        """Read the list again, unless that was done, or failed, within EARLIEST seconds."""
        async with self._lock:  # whoever waited takes what another has read
            if self._clock() - self._ended_at >= EARLIEST:
                await self._list()
            elif self._failure is not None:
                failure = self._failure
                raise type(failure)(failure.what, failure.next_step, *failure.calls)

    async def _list(self) -> None:
        """Read the list. A client that leaves meanwhile does not interrupt it for others."""
        begin, self._failure = self._clock(), None
        try:
            with anyio.CancelScope(shield=True):
                self._records = await self._read_all()
            self._listed_at = begin
        except FetchstashError as error:
            self._failure = error
            raise
        finally:
            self._ended_at = self._clock()

    async def _read_all(self) -> Mapping[str, TokenRecord]:
        """Return all records by their ids."""
        records: dict[str, TokenRecord] = {}
        for key, data in (await self._objects.items(KEYS)).items():
            token_id, record = key.removeprefix(KEYS), _record(data)
            if record and record.id == token_id:
                records[token_id] = record
            else:
                damaged = "the record of the token %s is damaged, and the token not taken"
                _log.warning(damaged, token_id)
        return records


def _record(data: bytes) -> TokenRecord | None:
    """Return the record of its JSON, None if it is none that we wrote."""
    try:
        value = json.loads(data)
        texts = {name: value[name] for name in _TEXTS}
        times = value["created"], value["expires"]
        scopes: Any = value["scopes"]
        is_whole = (
            isinstance(scopes, list)
            and all(isinstance(text, str) for text in texts.values())
            and is_tenant(texts["tenant"])
            and all(datetime.fromisoformat(time).tzinfo for time in times)
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not is_whole:
        return None
    return TokenRecord(scopes=tuple(map(str, cast("Collection[Any]", scopes))), **texts)


def _hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def _checksum(text: str) -> str:
    """Return the CRC-32 of a text in six characters."""
    rest, digits = zlib.crc32(text.encode()), ""
    for _ in range(6):
        rest, digit = divmod(rest, len(_SECRET))
        digits += _SECRET[digit]
    return digits
