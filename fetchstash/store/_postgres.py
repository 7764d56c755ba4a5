"""The catalogue of a team in PostgreSQL: one schema for each tenant, one pool for each database.

The path to the schema is set for each transaction alone, so that no connection ever has that of
another tenant, behind a pooler such as PgBouncer either. What fails at the database is StoreError;
the next transaction begins with a connection that was tried.
"""

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Generator, Sequence
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import quote, urlsplit, urlunsplit

from fetchstash.errors import BadArgument, Busy, StoreError
from fetchstash.store._disk import store_is_gone
from fetchstash.store._schema import POSTGRES, STEPS, CatalogDown, Cursor, refuse_newer, take_steps

if TYPE_CHECKING:
    import psycopg
    from psycopg_pool import ConnectionPool

MOST_CONNECTIONS = 16
"""Of one process to one database, for all tenants."""

_CONNECT_SECONDS, _WAIT_SECONDS = 5, 10
_STATEMENT_SECONDS, _LOCK_SECONDS = 30, 30
_BEGIN_SECONDS, _ANSWER_SECONDS = 5.0, 35.0
"""Within which a BEGIN, and any other statement, is answered. libpq waits for ever, and a server
that is frozen, as its machine may be, keeps no time."""

_MIGRATION_SECONDS = 3600
"""Within which a step of the schema is done: one may build an index of all words anew."""

_SILENT_SECONDS = 5.0
"""After a BEGIN that was not answered, calls fail at once for so long: all would wait in line."""

_HASHED = 48
"""Digits of the hash in the schema of a tenant whose name is too long for one."""

_NO_ADDRESS = "store.catalog is no address of a database."
_RETRIED = "Try again in a minute; then look at store.catalog and at the database."


def connection_url(catalog: str) -> str:
    """Return the address for libpq, a password of ``env:NAME`` read. Raises BadArgument.

    A password can also come from libpq's own variables, and from a file (``passfile=``).
    """
    parts = urlsplit(catalog)
    if parts.scheme not in {"postgresql", "postgres"} or not parts.path.strip("/"):
        raise BadArgument(_NO_ADDRESS, "Set it to postgresql://USER@HOST/DATABASE.")
    names, at, host = parts.netloc.rpartition("@")
    user, colon, password = names.partition(":")
    if colon:
        if not (named := re.fullmatch(r"env:(\w+)", password)):
            step = "Name a variable: postgresql://USER:env:NAME@HOST/DATABASE, or set PGPASSFILE."
            raise BadArgument("store.catalog holds a password.", step)
        if (name := named[1]) not in os.environ:
            what = f"store.catalog names the variable {name}, which is not set."
            raise BadArgument(what, f"Set {name} to the password of the database.")
        password = quote(os.environ[name], safe="")
        return urlunsplit(parts._replace(netloc=f"{user}:{password}{at}{host}"))
    return catalog


def schema_of(tenant: str) -> str:
    """Return the schema of a tenant, of the store of all for ""."""
    name = f"fetchstash-{tenant}" if tenant else "fetchstash"
    if len(name) > 63:  # bytes, the most that PostgreSQL takes
        name = f"fetchstash-{hashlib.sha256(tenant.encode()).hexdigest()[:_HASHED]}"
    return name


class _Bounded(Protocol):
    """A connection's time limit for each answer, in seconds."""

    patience: float


class Connection:
    """A connection in a transaction; its search path is one tenant's schema."""

    dialect = POSTGRES

    def __init__(self, connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Cursor:
        return self._connection.execute(sql.replace("?", "%s").encode(), parameters)

    def be_patient(self, seconds: int) -> None:
        """Set the time limit of each statement of this transaction."""
        self.execute(f"SET LOCAL statement_timeout = '{seconds}s'")
        cast("_Bounded", self._connection).patience = seconds


class Database:
    """The catalogue of one tenant. Raises StoreError where psycopg is not installed."""

    def __init__(self, catalog: str, tenant: str) -> None:
        self._url = connection_url(catalog)
        self._tenant = tenant
        self._schema = schema_of(tenant)
        self._silent_until = 0.0
        self._pool = _borrow_pool(self._url)

    def close(self) -> None:
        """Release the pool. It closes with the last catalogue of its database."""
        _return_pool(self._url)

    def is_new(self) -> bool:
        """Return whether the schema does not exist yet."""
        with self.connection() as db:
            return not self._version(db)

    def prepare(self, *, make: bool = True) -> None:
        """Make or migrate the schema where needed.

        One replica does it, under a lock, and the others wait. Raises StoreError for a schema of a
        newer version, and for one that is not there and is not to be made.
        """
        with self.connection() as db:
            taken = self._version(db)
            if taken == len(STEPS):
                return
            db.execute("SELECT pg_advisory_xact_lock(hashtext(?))", (self._schema,))
            # Asked of the table: IF NOT EXISTS failed where another had just made it (23505).
            made = "SELECT 1 FROM pg_namespace WHERE nspname = ?"
            if not db.execute(made, (self._schema,)).fetchone():
                if not make:
                    raise store_is_gone()
                db.execute(f'CREATE SCHEMA "{self._schema}"')
            taken = self._version(db)
            db.be_patient(_MIGRATION_SECONDS)
            for number in take_steps(db, taken):
                db.execute(
                    "INSERT INTO setting VALUES ('schema', ?)"
                    " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                    (str(number).encode(),),
                )
            # The schema of a long name has its hash.
            known = "INSERT INTO setting VALUES ('tenant', ?) ON CONFLICT DO NOTHING"
            db.execute(known, (self._tenant.encode(),))

    def schema_fault(self) -> str:
        """Return why this version changes nothing in the schema, in one word; "" if it may.

        Another replica migrated it, or an operator restored an older dump; a start migrates that.
        """
        with self.connection() as db:
            taken = self._version(db)
        if taken > len(STEPS):
            return "schema_newer"
        return "schema_older" if taken < len(STEPS) else ""

    def drop(self) -> None:
        """Remove the schema with all that it holds."""
        with self.connection() as db:
            db.execute(f'DROP SCHEMA IF EXISTS "{self._schema}" CASCADE')

    def _version(self, db: Connection) -> int:
        table = f'"{self._schema}".setting'
        if db.execute("SELECT to_regclass(?)", (table,)).fetchone()[0] is None:
            return 0
        row = db.execute("SELECT value FROM setting WHERE name = 'schema'").fetchone()
        return int(bytes(row[0]))

    @contextlib.contextmanager
    def connection(self) -> Generator[Connection]:
        """Yield a connection in a transaction, which is committed at the end."""
        import psycopg  # noqa: PLC0415 - an extra

        try:
            with self._begun() as connection:
                yield Connection(connection)
        except psycopg.Error as error:
            raise _failure(error) from None  # its text quotes statements and values

    reading = connection

    @contextlib.contextmanager
    def changing(self) -> Generator[Connection]:
        """Yield a connection for changing rows. A tenant's changes run one after the other.

        The lock is the row that says which schema this is, so that no two changes wait for each
        other in a circle, and none is made to a schema that another replica has migrated since.
        """
        with self.connection() as db:
            taken = db.execute("SELECT value FROM setting WHERE name = 'schema' FOR UPDATE")
            refuse_newer(int(bytes(taken.fetchone()[0])))
            yield db

    @contextlib.contextmanager
    def _begun(self) -> Generator[Any]:
        import psycopg  # noqa: PLC0415 - an extra

        begin = (
            f'BEGIN; SET LOCAL search_path TO "{self._schema}";'
            f" SET LOCAL statement_timeout = '{_STATEMENT_SECONDS}s';"
            f" SET LOCAL lock_timeout = '{_LOCK_SECONDS}s';"
            f" SET LOCAL idle_in_transaction_session_timeout = '{_STATEMENT_SECONDS}s'"
        ).encode()
        if time.monotonic() < self._silent_until:
            raise psycopg.OperationalError
        for _ in range(MOST_CONNECTIONS + 1):  # after a restart each of them is broken
            connection = self._pool.getconn(timeout=_WAIT_SECONDS)
            try:
                bounded = cast("_Bounded", connection)
                bounded.patience = _BEGIN_SECONDS
                connection.execute(begin)
                bounded.patience = _ANSWER_SECONDS
            except psycopg.OperationalError as error:
                self._pool.putconn(connection)  # which drops it
                if isinstance(error, psycopg.errors.ConnectionTimeout):
                    self._silent_until = time.monotonic() + _SILENT_SECONDS
                    raise
                continue
            except BaseException:
                self._pool.putconn(connection)
                raise
            break
        else:
            raise psycopg.OperationalError
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(psycopg.Error):
                connection.execute("ROLLBACK")
            raise
        finally:
            self._pool.putconn(connection)


def tenants(catalog: str) -> list[str]:
    """Return the names of the tenants that have a schema in a database."""
    database = Database(catalog, "")
    listed = "SELECT nspname FROM pg_namespace WHERE starts_with(nspname::text, 'fetchstash-')"
    names: list[str] = []
    try:
        with database.connection() as db:
            for (schema,) in db.execute(listed).fetchall():
                name = str(schema).partition("-")[2]
                if len(name) == _HASHED:  # a long name stands inside
                    named = f"SELECT value FROM \"{schema}\".setting WHERE name = 'tenant'"  # noqa: S608
                    name = bytes(db.execute(named).fetchone()[0]).decode()
                names.append(name)
    finally:
        database.close()
    return sorted(names)


_pools: "dict[str, tuple[ConnectionPool, int]]" = {}
_pools_lock = Lock()


def _borrow_pool(url: str) -> "ConnectionPool":
    """Return the pool of this process for a database. Raises StoreError where there is none."""
    try:
        import psycopg  # noqa: PLC0415 - an extra
        from psycopg_pool import ConnectionPool  # noqa: PLC0415 - an extra
    except ImportError:
        what = "store.catalog is set, and psycopg is not installed."
        raise StoreError(what, 'pip install "fetchstash[team]"') from None
    options: dict[str, Any] = {
        "autocommit": True,
        "prepare_threshold": None,  # a pooler may give each transaction to another connection
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": "fetchstash",
        "keepalives_idle": 30,
        "tcp_user_timeout": _STATEMENT_SECONDS * 1000,
    }
    key = f"{os.getpid()} {url}"
    with _pools_lock:
        pool: ConnectionPool | None
        pool, users = _pools.get(key, (None, 0))
        if pool is None:
            try:
                psycopg.connect(url, **options).close()  # a pool does not say why it cannot
            except psycopg.Error as error:
                raise _failure(error) from None
            pool = ConnectionPool(
                url,
                connection_class=_bounded_connection(),
                kwargs=options,
                min_size=0,
                max_size=MOST_CONNECTIONS,
                timeout=_WAIT_SECONDS,
                reconnect_timeout=_CONNECT_SECONDS,
                open=True,
            )
        _pools[key] = pool, users + 1
    return pool


@cache
def _bounded_connection() -> Any:
    """Return the class of connections that are closed when an answer takes too long."""
    import psycopg  # noqa: PLC0415 - an extra

    class Bounded(psycopg.Connection[tuple[Any, ...]]):
        patience = _ANSWER_SECONDS

        def wait(self, gen: Any, *options: Any, **named: Any) -> Any:
            """Run an exchange with the server; it checks for cancellation ten times a second."""
            return super().wait(self._in_time(gen), *options, **named)

        def _in_time(self, gen: Any) -> Generator[Any, Any, Any]:
            deadline = time.monotonic() + self.patience
            try:
                wanted = next(gen)
                while True:
                    ready = yield wanted
                    if not ready and time.monotonic() > deadline:
                        self.close()
                        raise psycopg.errors.ConnectionTimeout
                    wanted = gen.send(ready)
            except StopIteration as end:
                return end.value

    return Bounded


def _return_pool(url: str) -> None:
    key = f"{os.getpid()} {url}"
    with _pools_lock:
        pool, users = _pools.pop(key)
        if users > 1:
            _pools[key] = pool, users - 1
            return
    pool.close()


def _failure(error: "psycopg.Error") -> StoreError | Busy:
    """Return the error for a database failure. Only its class is quoted."""
    from psycopg import OperationalError, errors  # noqa: PLC0415 - an extra
    from psycopg_pool import PoolTimeout, TooManyRequests  # noqa: PLC0415 - an extra

    text = str(error)
    if isinstance(error, errors.LockNotAvailable | errors.DeadlockDetected):
        return Busy("Others have held the catalogue of the store for too long.", "Try again.")
    if isinstance(error, errors.QueryCanceled):
        return StoreError("The store's database is too slow.", _RETRIED)
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return CatalogDown("The store's database can only be read.", _RETRIED)
    if isinstance(error, errors.InsufficientPrivilege):
        what = "The store's database does not let this user make or change its tables."
        return StoreError(what, "Give it CREATE on the database.")
    if isinstance(error, errors.UndefinedTable | errors.InvalidSchemaName):
        return store_is_gone()
    if isinstance(error, errors.DiskFull):
        return StoreError("The disk of the store's database is full.", "Make room on it.")
    if "password authentication failed" in text or "no password supplied" in text:
        what = "The store's database refuses the password."
        return StoreError(what, "Correct the user or the password of store.catalog.")
    if 'database "' in text and "does not exist" in text:
        return StoreError("There is no such database.", "Make it, or correct store.catalog.")
    if not error.sqlstate and re.search(r"invalid (URI|port|\w+ value)", text):  # libpq's own word
        return StoreError(_NO_ADDRESS, "Correct its port, or what stands behind its `?`.")
    if isinstance(error, OperationalError | PoolTimeout | TooManyRequests):
        return CatalogDown("The store's database does not answer.", _RETRIED)
    state = f" ({error.sqlstate})" if error.sqlstate else ""
    return StoreError(f"The store's database failed{state}.", _RETRIED)
