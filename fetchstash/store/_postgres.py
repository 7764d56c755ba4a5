"""The catalogue of a team in PostgreSQL: one schema for each tenant, one pool for each database.

The path to the schema is set for each transaction alone, so that no connection ever has that of
another tenant, behind a pooler such as PgBouncer either. What fails at the database is StoreError.
"""

import contextlib
import hashlib
import os
import re
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit, urlunsplit

from fetchstash.errors import BadArgument, Busy, StoreError
from fetchstash.store._disk import store_is_gone
from fetchstash.store._pool import LOCK_SECONDS, STATEMENT_SECONDS, Bounded, pool_of
from fetchstash.store._schema import POSTGRES, STEPS, CatalogDown, Cursor, refuse_newer, take_steps

if TYPE_CHECKING:
    import psycopg

_MIGRATION_SECONDS = 3600
"""Within which a step of the schema is done: one may build an index of all words anew."""

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


class Connection:
    """A connection in a transaction; its search path is one tenant's schema."""

    dialect = POSTGRES

    def __init__(self, connection: Bounded) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Cursor:
        return self._connection.execute(sql.replace("?", "%s").encode(), parameters)

    def be_patient(self, seconds: int) -> None:
        """Set the time limit of each statement of this transaction."""
        self.execute(f"SET LOCAL statement_timeout = '{seconds}s'")
        self._connection.patience, self._connection.ask = seconds, None


class Database:
    """The catalogue of one tenant. Raises StoreError where psycopg is not installed."""

    def __init__(self, catalog: str, tenant: str) -> None:
        self._url = connection_url(catalog)
        self._tenant = tenant
        self._schema = schema_of(tenant)
        self._pool = pool_of(self._url)
        with _translated():
            self._pool.borrow()

    def close(self) -> None:
        """Release the pool. It closes with the last catalogue of its database."""
        self._pool.give_back()

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
        begin = (
            f'BEGIN; SET LOCAL search_path TO "{self._schema}";'
            f" SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s';"
            f" SET LOCAL lock_timeout = '{LOCK_SECONDS}s';"
            f" SET LOCAL idle_in_transaction_session_timeout = '{STATEMENT_SECONDS}s'"
        ).encode()
        with _translated(), self._pool.transaction(begin) as connection:
            yield Connection(connection)

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


@contextlib.contextmanager
def _translated() -> Generator[None]:
    try:
        import psycopg  # noqa: PLC0415 - an extra
    except ImportError:
        what = "store.catalog is set, and psycopg is not installed."
        raise StoreError(what, 'pip install "fetchstash[team]"') from None
    try:
        yield
    except psycopg.Error as error:
        raise failure(error) from None  # its text quotes statements and values


def failure(error: "psycopg.Error") -> StoreError | Busy:
    """Return the error for a database failure. Only its class is quoted."""
    from psycopg import OperationalError, errors  # noqa: PLC0415 - an extra
    from psycopg_pool import PoolTimeout  # noqa: PLC0415 - an extra

    text = str(error)
    if isinstance(error, errors.LockNotAvailable | errors.DeadlockDetected):
        return Busy("Others have held the catalogue of the store for too long.", "Try again.")
    if isinstance(error, PoolTimeout):
        what = "All connections of this server to the store's database are in use."
        return CatalogDown(what, "Try again in a few seconds.")
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
    if not error.sqlstate:  # of a connection that was not made there is the text alone
        for sign, what, step in _NOT_CONNECTED:
            if re.search(sign, text):
                return StoreError(what, step)
        if re.search(_NO_SLOT, text):
            step = "Raise its max_connections, or put a pooler before it."
            return CatalogDown("The store's database has no connection left.", step)
    if isinstance(error, OperationalError):
        return CatalogDown("The store's database does not answer.", _RETRIED)
    state = f" ({error.sqlstate})" if error.sqlstate else ""
    return StoreError(f"The store's database failed{state}.", "The log of the database says why.")


_NOT_CONNECTED = (
    (
        "password authentication failed|no password supplied",
        "The store's database refuses the password.",
        "Correct the user or the password of store.catalog.",
    ),
    (
        'role "|pg_hba.conf|no such user',
        "The store's database does not let this user in from here.",
        "Correct the user of store.catalog, or pg_hba.conf on the server.",
    ),
    (
        'database "|no such database',
        "There is no such database, or this user may not use it.",
        "Make it as docs/operations.md says, or correct store.catalog.",
    ),
    # libpq's own words
    (
        r"invalid (URI|port|\w+ value)",
        _NO_ADDRESS,
        "Correct its port, or what stands behind its `?`.",
    ),
    (
        r"(?i)certificate|not support SSL|(tls|ssl)v[13]\S* alert",
        "The store's database cannot be reached over TLS as store.catalog asks.",
        "Correct its sslmode and sslrootcert, or the certificate of the server.",
    ),
)
_NO_SLOT = "too many (clients|connections)|connection slots|no more connections"
"""What the error of a connection may hold, what is said of it, and what to do next."""
