"""Make a team's database as docs/operations.md says, over TLS, and behind PgBouncer.

    python -P scripts/replicas/database.py

The SQL of the page makes the role and the database on Debian's PostgreSQL, which takes TLS alone.
Then `fetchstash doctor` must be content with deploy/team.toml's address, and must not be with
another authority's certificate. Through Debian's PgBouncer in transaction mode, many puts and
searches at once must all come back whole. Exit code 3: something of it did not hold.
"""

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import psycopg
import trustme

from fetchstash.cli.demo._tour import command
from fetchstash.store import StoreLimits, open_store, store_of_tenant
from scripts.drive.programs import options
from scripts.drive.service import free_port, running
from scripts.drive.tools import ROOT, debian
from scripts.torture.kept import FAULTS_FOUND, put, read_back, show
from tests.store.postgres import Server

PASSWORD = "a-password-of-a-test"  # noqa: S105 - of a database that ends with this program
PUTS, TENANTS = 40, ("red", "blue")


def page_sql() -> list[str]:
    """Return the statements of the page, with the test's password."""
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    return [line.replace("STASH_PASSWORD", PASSWORD) for line in block.strip().splitlines()]


def certificates(folder: Path, owner: Path) -> tuple[Path, Path, Path]:
    """Write a certificate with its key, its authority, and another authority."""
    authority, other = trustme.CA(), trustme.CA()
    issued = authority.issue_cert("localhost")
    pair = folder / "server.pem"
    issued.private_key_and_cert_chain_pem.write_to_path(str(pair))
    pair.chmod(0o600)
    status = owner.stat()
    os.chown(pair, status.st_uid, status.st_gid)
    places = folder / "authority.pem", folder / "other.pem"
    for place, ca in zip(places, (authority, other), strict=True):
        ca.cert_pem.write_to_path(str(place))
    return (pair, *places)


def doctor(catalog: str, folder: Path) -> tuple[int, str]:
    """Return the exit code of doctor on a store with this catalogue, and what it says."""
    environment = {
        **os.environ,
        "STASH_PASSWORD": PASSWORD,
        "FETCHSTASH_STORE_CATALOG": catalog,
        "FETCHSTASH_STORE_FOLDER": str(folder / "store"),
    }
    done = subprocess.run(
        [command(), "doctor"], env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


async def use(catalog: str, folder: Path) -> list[str]:
    """Put, search and read back, all at once, as two tenants; return what went wrong."""
    faults: list[str] = []
    limits = StoreLimits(folder / "store", catalog=catalog, run="default")

    async def one(tenant: str, number: int) -> None:
        raw, text = f"{tenant} raw {number}\n".encode(), f"{tenant} osprey{number}\n".encode()
        facts = await put(stores[tenant], raw, text)
        found = await stores[tenant].search(f"osprey{number}", (), 3)
        if facts.artifact_ref not in {passage.artifact_ref for passage in found.passages}:
            faults.append(f"{tenant} does not find text {number}")
        if await read_back(stores[tenant], facts.artifact_ref) != (raw, text):
            faults.append(f"{tenant} reads another text {number}")

    stores = {tenant: await open_store(store_of_tenant(limits, tenant)) for tenant in TENANTS}
    async with anyio.create_task_group() as tasks:
        for number in range(PUTS):
            for tenant in TENANTS:
                tasks.start_soon(one, tenant, number)
    for store in stores.values():
        if (total := (await store.list()).total) != PUTS:
            faults.append(f"{total} of {PUTS} are listed")
        await store.aclose()
    return faults


def pooler(stack: ExitStack, folder: Path, port: int, database: str) -> str:
    """Run PgBouncer in transaction mode until the stack is closed; return the catalogue."""
    own = free_port()
    (folder / "users").write_text(f'"fetchstash" "{PASSWORD}"\n')
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n{database} = host=localhost port={port}\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {own}\nunix_socket_dir =\nauth_type = plain\n"
        f"auth_file = {folder}/users\npool_mode = transaction\n"
        f"default_pool_size = 4\nserver_tls_sslmode = verify-full\n"
        f"server_tls_ca_file = {folder}/authority.pem\n"
    )
    words = ["pgbouncer", "-u", "postgres", str(settings)] if os.geteuid() == 0 else ["pgbouncer"]
    stack.enter_context(running(words, own, os.environ, folder / "pgbouncer.log"))
    return f"postgresql://fetchstash:env:STASH_PASSWORD@127.0.0.1:{own}/{database}"


def play(folder: Path) -> list[str]:
    """Run all of it; return the faults."""
    faults: list[str] = []
    team = tomllib.loads((ROOT / "deploy" / "team.toml").read_text(encoding="utf-8"))["store"]
    asked = urlsplit(str(team["catalog"]))
    database = asked.path.strip("/")
    place = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    postgres, port = Server(place), free_port()
    pair, authority, other = certificates(folder, place)
    more = f"ssl = on\nssl_cert_file = '{pair}'\nssl_key_file = '{pair}'\nport = {port}\n"
    with (place / "data" / "postgresql.conf").open("a") as settings:
        settings.write(more)
    access = place / "data" / "pg_hba.conf"
    access.write_text("local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n")
    postgres.start("localhost")
    with ExitStack() as stack:
        stack.callback(postgres.stop)
        admin = f"postgresql://postgres@/postgres?host={place}&port={port}"
        with psycopg.connect(admin, autocommit=True) as connection:
            for statement in page_sql():
                connection.execute(statement.encode())
        address = asked._replace(netloc=f"fetchstash:env:STASH_PASSWORD@localhost:{port}")
        catalogs = [
            address._replace(query=f"sslmode=verify-full&sslrootcert={path}").geturl()
            for path in (authority, other)
        ]
        code, said = doctor(catalogs[0], folder)
        print(f"  over TLS: doctor ends with {code}", flush=True)
        if code:
            faults.append(f"over TLS: {said}")
        code, said = doctor(catalogs[1], folder)
        print(f"  with another authority: {code}", flush=True)
        if not code or "Traceback" in said:
            faults.append(f"with another authority: {said}")
        os.environ["STASH_PASSWORD"] = PASSWORD
        if debian("pgbouncer", "pgbouncer"):
            pooled = pooler(stack, folder, port, database)
            wrong = anyio.run(use, pooled, folder)
            print(f"  behind PgBouncer: {PUTS * len(TENANTS)} puts at once, {len(wrong)} wrong")
            faults += wrong
    return faults


def main() -> int:
    """Play it; return the exit code."""
    options(__doc__)
    print("a database made by the page, TLS and PgBouncer", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL and PgBouncer are another user
        faults = play(folder)
    return FAULTS_FOUND if show(faults) else 0


if __name__ == "__main__":
    sys.exit(main())
