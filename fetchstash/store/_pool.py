"""The connections of a process to a database, one pool for all of its tenants.

libpq waits for ever, and a server that is frozen, as its machine may be, keeps no time. Here a
transaction begins within WAIT_SECONDS and one question more, and a statement that is not answered
as soon asks on a connection of its own whether the server still lives: whoever waits for a database
that is away waits less than ten seconds. What follows within SILENT_SECONDS fails at once, so that
a call of several transactions waits once.
"""

import contextlib
import os
import time
from collections.abc import Callable, Generator, Sequence
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from fetchstash.store._schema import Cursor

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool

MOST_CONNECTIONS = 16
"""Of one process to one database, for all tenants."""

WAIT_SECONDS = 4.0
"""For a free connection, for the answer to a BEGIN, and of a statement before the server is asked
whether it lives."""

ASK_SECONDS = 4
"""For a new connection to each address of the server, and for its first answer."""

SILENT_SECONDS = 5.0
"""After a server was silent, transactions fail at once for so long."""

STATEMENT_SECONDS, LOCK_SECONDS = 30, 30
_ANSWER_SECONDS = 35.0
"""Within which a statement is answered by a server that lives."""

_AWAY_SECONDS = 0.1
"""For a free connection while the server was last found away."""


class Bounded(Protocol):
    """A connection that is closed if its server does not answer in time."""

    patience: float
    """Seconds for each answer."""

    ask: Callable[[], None] | None
    """Raises psycopg.Error if the server is away; called for an answer that takes long."""

    def execute(self, query: bytes, parameters: Sequence[Any] = (), /) -> Cursor:
        """Execute a statement. Raises psycopg.Error."""
        ...


class Pool:
    """The connections to one database. All methods raise psycopg.Error."""

    _pool: "ConnectionPool[Any]"

    def __init__(self, url: str) -> None:
        self._url = url
        self._users = 0
        self._lock = Lock()
        self._is_away = False
        self._silent_until = 0.0

    def borrow(self) -> None:
        """Open the pool for its first user: a database that cannot be used is an error here."""
        from psycopg_pool import ConnectionPool  # noqa: PLC0415 - an extra

        with self._lock:
            if not self._users:
                self._ask()
                self._pool = ConnectionPool(
                    self._url,
                    connection_class=_bounded_connection(),
                    kwargs=_options(),
                    min_size=0,
                    max_size=MOST_CONNECTIONS,
                    reconnect_timeout=WAIT_SECONDS,
                    open=True,
                )
            self._users += 1

    def give_back(self) -> None:
        """Close the pool after its last user."""
        with self._lock:
            self._users -= 1
            last = None if self._users else self._pool
        if last:
            last.close()

    @contextlib.contextmanager
    def transaction(self, begin: bytes) -> Generator[Bounded]:
        """Yield a connection that has begun a transaction by ``begin``, and commit it."""
        import psycopg  # noqa: PLC0415 - an extra

        connection = self._begun(begin)
        try:
            yield connection
            connection.execute(b"COMMIT")
        except BaseException:
            with contextlib.suppress(psycopg.Error):
                connection.execute(b"ROLLBACK")
            raise
        finally:
            self._pool.putconn(connection)

    def _begun(self, begin: bytes) -> Bounded:
        import psycopg  # noqa: PLC0415 - an extra
        from psycopg_pool import PoolTimeout  # noqa: PLC0415 - an extra

        self._refuse_silent()
        deadline = time.monotonic() + STATEMENT_SECONDS
        wait = _AWAY_SECONDS if self._is_away else WAIT_SECONDS
        for _ in range(MOST_CONNECTIONS + 1):  # after a restart each of them is broken
            try:
                connection: Any = self._pool.getconn(timeout=wait)
            except PoolTimeout:
                self._ask()
                if time.monotonic() > deadline:
                    raise
                wait = WAIT_SECONDS  # the server lives, and all connections are in use
                continue
            try:
                connection.patience, connection.ask = WAIT_SECONDS, None
                connection.execute(begin)
            except psycopg.OperationalError as error:
                self._pool.putconn(connection)  # which drops it
                if isinstance(error, psycopg.errors.ConnectionTimeout):
                    self._note_silence()
                    raise
                continue
            except BaseException:
                self._pool.putconn(connection)
                raise
            connection.patience, connection.ask = _ANSWER_SECONDS, self._ask
            bounded: Bounded = connection
            return bounded
        raise psycopg.OperationalError

    def _ask(self) -> None:
        """Ask the server something on a connection of its own."""
        import psycopg  # noqa: PLC0415 - an extra

        self._refuse_silent()
        try:
            connection = _bounded_connection().connect(self._url, **_options())
            try:
                connection.patience = ASK_SECONDS
                connection.execute(b"SELECT 1")
            finally:
                connection.close()
        except psycopg.Error as error:
            self._is_away = True
            if isinstance(error, psycopg.errors.ConnectionTimeout):
                self._note_silence()
            raise
        self._is_away = False

    def _note_silence(self) -> None:
        self._is_away, self._silent_until = True, time.monotonic() + SILENT_SECONDS

    def _refuse_silent(self) -> None:
        import psycopg  # noqa: PLC0415 - an extra

        if time.monotonic() < self._silent_until:
            raise psycopg.errors.ConnectionTimeout


_pools: dict[str, Pool] = {}
_pools_lock = Lock()


def pool_of(url: str) -> Pool:
    """Return the pool of this process for a database."""
    with _pools_lock:
        return _pools.setdefault(f"{os.getpid()} {url}", Pool(url))


def _options() -> dict[str, Any]:
    """Return libpq's options for each connection."""
    return {
        "autocommit": True,
        "prepare_threshold": None,  # a pooler may give each transaction to another connection
        "connect_timeout": ASK_SECONDS,
        "application_name": "fetchstash",
        "keepalives_idle": 30,
        "tcp_user_timeout": STATEMENT_SECONDS * 1000,
    }


@cache
def _bounded_connection() -> Any:
    """Return the class of connections that are closed when an answer takes too long."""
    import psycopg  # noqa: PLC0415 - an extra

    class Connection(psycopg.Connection[tuple[Any, ...]]):
        patience = _ANSWER_SECONDS
        ask: Callable[[], None] | None = None

        def wait(self, gen: Any, *options: Any, **named: Any) -> Any:
            """Run an exchange with the server; it checks for cancellation ten times a second."""
            return super().wait(self._in_time(gen), *options, **named)

        def _in_time(self, gen: Any) -> Generator[Any, Any, Any]:
            deadline = time.monotonic() + self.patience
            asked = time.monotonic()
            try:
                wanted = next(gen)
                while True:
                    ready = yield wanted
                    if not ready and time.monotonic() > deadline:
                        self._give_up()
                    if not ready and self.ask and time.monotonic() > asked + WAIT_SECONDS:
                        try:
                            self.ask()
                        except psycopg.OperationalError as error:
                            if "FATAL" not in str(error):  # a server's own word: it lives
                                self._give_up()
                        asked = time.monotonic()
                    wanted = gen.send(ready)
            except StopIteration as end:
                return end.value

        def _give_up(self) -> None:
            self.close()
            raise psycopg.errors.ConnectionTimeout

    return Connection
