"""An operator's commands on the store of a service reach what its tenants keep."""

import json
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from fetchstash.store import (
    StoreLimits,
    open_store,
    store_of_tenant,
)
from tests.cli.terminal import Terminal, plain
from tests.store.conftest import keep_as, put_into

pytestmark = pytest.mark.long

Lose = Callable[[], None]


@pytest.fixture
def limits(service_store: StoreLimits, run: Terminal) -> StoreLimits:
    """Keep a text of a person of each of two tenants."""
    run("token", "create", "--tenant", "acme", "--name", "ada")
    for name in ("acme", "globex"):
        anyio.run(keep_as, service_store, name, "ada", f"of {name}")
    return service_store


def text_of(limits: StoreLimits, tenant: str) -> Path:
    """Return the file of the text that a tenant keeps."""
    (path,) = (limits.folder / "tenants" / tenant / "text").iterdir()
    return path


def test_doctor_finds_a_healthy_service_well(run: Terminal, limits: StoreLimits) -> None:
    lines = run("doctor").stdout.splitlines()
    assert lines[-1] == "All is well."
    state = "every row has its bytes" if limits.catalog else "every file is as it was put"
    for tenant in ("acme", "globex"):
        place = limits.folder / "tenants" / tenant
        assert f"ok       store of the tenant {tenant} {place}: {state}" in lines
    assert not (limits.folder / "catalog.db").exists()
    assert not [line for line in run("doctor", "--repair").stdout.splitlines() if "mended" in line]


def test_doctor_names_the_tenant_whose_text_is_lost_and_repair_mends_it(
    run: Terminal, limits: StoreLimits
) -> None:
    text_of(limits, "globex").unlink()
    said = run("doctor", code=3).stdout
    (fault,) = [line for line in said.splitlines() if line.startswith("fault")]
    assert fault.startswith("fault    store of the tenant globex: ")
    assert run("doctor", "--tenant", "acme").stdout.endswith("All is well.\n")
    assert "ok       store of the tenant globex: mended:" in run("doctor", "--repair").stdout
    assert run("doctor").stdout.endswith("All is well.\n")
    assert [row["tenant"] for row in run.data("ls")] == ["acme"]


def test_ls_and_stats_show_each_tenant_or_one(run: Terminal, limits: StoreLimits) -> None:
    assert limits
    assert [(row["title"], row["tenant"]) for row in run.data("ls")] == [
        ("of acme", "acme"),
        ("of globex", "globex"),
    ]
    assert [line.rpartition("\t")[2] for line in run("ls").stdout.splitlines()] == [
        "acme",
        "globex",
    ]
    shown = plain(run.on_terminal("ls", columns=110))
    assert [line.split()[-1] for line in shown.splitlines() if "@" in line] == ["acme", "globex"]
    assert [row["title"] for row in run.data("ls", "--tenant", "globex")] == ["of globex"]
    assert "Tenant globex:" in run("stats").stdout
    assert {row["tenant"] for row in run.data("stats")} == {"acme", "globex"}
    assert {row["tenant"] for row in run.data("stats", "--tenant", "acme")} == {"acme"}
    missing = run("ls", "--tenant", "initech", code=2).stderr
    assert "The tenant initech keeps nothing here. There are acme, globex." in missing


def test_rm_deletes_by_reference_and_by_the_number_that_ls_shows(
    run: Terminal, limits: StoreLimits
) -> None:
    assert limits
    first, second = run.data("ls")
    run("rm", "@2")
    assert run.data("ls") == [first]
    assert "There is no @2: @1 is the oldest." in run("rm", "@2", code=3).stderr
    run("rm", second["artifact_ref"], code=3)
    run("rm", first["artifact_ref"], "--tenant", "globex", code=3)
    assert run.data("ls") == [first]
    run("rm", first["artifact_ref"])
    assert run.data("ls") == []


def test_gc_applies_retention_to_each_tenant(run: Terminal, limits: StoreLimits) -> None:
    assert limits
    planned = run.data("gc", "--dry-run", "--max-total-bytes", "1")
    assert {row["tenant"] for row in planned} == {"acme", "globex"}
    assert len(run.data("ls")) == 2
    run("gc", "--tenant", "acme", "--max-total-bytes", "1")
    assert [row["tenant"] for row in run.data("ls")] == ["globex"]
    done = run("gc", "--max-total-bytes", "1")
    assert "globex" in done.stdout
    assert "\n1 removed, " in done.stderr
    assert run.data("ls") == []


def test_orphans_of_a_restored_database_are_counted_and_removed(
    run: Terminal, limits: StoreLimits
) -> None:
    if not limits.catalog:
        pytest.skip("in a folder gc removes what no row names")
    orphan = text_of(limits, "acme").with_name("0" * 64)
    orphan.write_bytes(b"newer than the backup")
    said = run("doctor", code=3).stdout
    assert "warning  store of the tenant acme: 1 object (21 bytes) have no row" in said
    run("gc")
    run("gc", "--orphans")
    assert orphan.exists(), "it is not a day old"
    assert "1 would go" in run("gc", "--orphans", "--older-than", "0m", "--dry-run").stderr
    removed = run.data("gc", "--orphans", "--older-than", "0m")
    assert [(row["reason"], row["size_bytes"], row["tenant"]) for row in removed] == [
        ("orphan", 21, "acme")
    ]
    assert not orphan.exists()
    assert len(run.data("ls")) == 2
    assert run("doctor").stdout.endswith("All is well.\n")
    assert "is no age" in run("gc", "--orphans", "--older-than", "soon", code=2).stderr


def test_what_several_tenants_keep_is_not_deleted_by_its_url(
    run: Terminal, limits: StoreLimits
) -> None:
    async def put(tenant: str) -> None:
        store = await open_store(store_of_tenant(limits, tenant))
        await put_into(store, b"shared\n", url="https://example.org/shared")
        await store.aclose()

    for tenant in ("acme", "globex"):
        anyio.run(put, tenant)
    said = run("rm", "https://example.org/shared", code=2).stderr
    assert "is kept by several: acme, globex. Add --tenant TENANT." in said
    run("rm", "https://example.org/shared", "--tenant", "acme")
    assert json.dumps([row["tenant"] for row in run.data("ls")]) == '["acme", "globex", "globex"]'
