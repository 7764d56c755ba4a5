"""Copying a store: what was kept is found there as it was, and a copy cut short goes on."""

import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fetchstash.errors import BadArgument
from fetchstash.store import (
    ALL_RUNS,
    Copied,
    Facts,
    StoreLimits,
    copy_service,
    copy_store,
    open_objects,
    open_store,
    person_run,
    store_of_tenant,
    tenants_of,
)
from tests.store.buckets import Recorded
from tests.store.conftest import put_into
from tests.store.postgres import server

pytestmark = pytest.mark.anyio
Limits = Callable[[str], StoreLimits]
LONG = "a" * 63


@pytest.fixture
def place(tmp_path: Path, objects: Recorded) -> Limits:
    """Return the limits of a store of some kind."""

    def limits(kind: str) -> StoreLimits:
        folder = tmp_path / kind
        catalog = "" if kind == "folder" else server().new_database()
        url = "s3://bucket/copy" if kind == "bucket" else ""
        return StoreLimits(folder, url, run=ALL_RUNS, catalog=catalog)

    return limits


def nobody(done: int, total: int) -> None:
    assert done <= total


async def filled(limits: StoreLimits, artifacts: int = 12) -> list[Facts]:
    """Put artifacts, of which some share bytes, have no text, or are pinned."""
    kept: list[Facts] = []
    store = await open_store(limits)
    for n in range(artifacts):
        text = None if n % 4 == 3 else f"text {n % 5}\n".encode() * 2_000
        facts = Facts(title=f"title {n}", etag=f'"{n}"')
        url = f"https://example.org/{n}"
        kept.append(await put_into(store, text, f"raw {n % 5}".encode() * 900, facts, url=url))
        if n % 3 == 0:
            await store.pin(kept[-1].artifact_ref)
    await store.aclose()
    return kept


async def seen(limits: StoreLimits) -> list[dict[str, Any]]:
    """Return all that a store says of what it keeps, but for where the bytes lie."""
    store = await open_store(limits)
    rows: list[dict[str, Any]] = []
    for facts in (await store.list()).facts:
        ref, found = facts.artifact_ref, dict[str, Any]()
        found["facts"] = facts.to_json(without=("path",))
        async with store.open_raw(ref) as path:
            found["raw"] = path.read_bytes()
        if facts.text_bytes is not None:
            reader = await store.open_text(ref)
            found["text"] = await reader.read_chars(0, reader.chars)
            await reader.aclose()
        number = facts.title.removeprefix("title ")
        found["by URL"] = (await store.get(f"https://example.org/{number}")).artifact_ref
        rows.append(found)
    rows.append({"usage": await store.usage(), "runs": await store.runs()})
    rows.append({"found": {p.artifact_ref for p in (await store.search("text", [], 50)).passages}})
    await store.aclose()
    return rows


@pytest.mark.long
@pytest.mark.parametrize(
    "kinds", [("folder", "team"), ("team", "folder"), ("folder", "bucket"), ("bucket", "team")]
)
async def test_a_copy_has_all_that_the_store_has_once(
    place: Limits, kinds: tuple[str, str]
) -> None:
    source, target = map(place, kinds)
    kept = await filled(source)
    assert await copy_store(source, target, nobody) == Copied(copied=12)
    assert await seen(target) == await seen(source)
    one = await open_store(source)
    await one.delete(kept[0].artifact_ref)
    added = await put_into(one, b"later", url="https://example.org/later")
    await one.aclose()
    assert await copy_store(source, target, nobody) == Copied(copied=1, there=11)
    other = await open_store(target)
    assert (await other.get("https://example.org/later")).artifact_ref == added.artifact_ref
    put = await put_into(other, b"own", url="https://example.org/own")
    assert (await other.get("https://example.org/own")).artifact_ref == put.artifact_ref
    assert all(finding.level == "note" for finding in await other.check())
    await other.aclose()
    back = place("folder" if kinds[0] != "folder" else "team")
    if kinds[0] == "folder":  # and back, with the key of the first store
        await copy_store(target, back, nobody)
        again = await open_store(back)
        for n, facts in enumerate(kept):
            assert (await again.get(f"https://example.org/{n}")).artifact_ref == facts.artifact_ref
        await again.aclose()


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [("folder", "team"), ("team", "folder")])
async def test_a_copy_that_is_killed_again_and_again_ends_whole(
    place: Limits, kinds: tuple[str, str]
) -> None:
    source, target = map(place, kinds)
    await filled(source, 24)
    program = (
        "import sys, anyio\n"
        "from pathlib import Path\n"
        "from fetchstash.store import *\n"
        "def said(done, total): print(done, flush=True)\n"
        "one, other = (StoreLimits(Path(f), catalog=c, run='*') for f, c in "
        "(sys.argv[1:3], sys.argv[3:5]))\n"
        "anyio.run(copy_store, one, other, said)\n"
    )
    places = [word for limits in (source, target) for word in (str(limits.folder), limits.catalog)]
    for after in (1, 5, 9):
        with subprocess.Popen(
            [sys.executable, "-P", "-c", program, *places], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout
            for _ in range(after):
                assert process.stdout.readline()
            process.send_signal(signal.SIGKILL)
    done = await copy_store(source, target, nobody)
    assert done.copied + done.there == 24
    assert done.there >= 15
    assert done.lost == 0
    assert await seen(target) == await seen(source)
    store = await open_store(target)
    await store.gc()
    assert all(finding.level == "note" for finding in await store.check())
    await store.aclose()


@pytest.mark.parametrize("kind", ["team", "bucket"])
async def test_a_service_is_copied_with_tenants_persons_and_tokens(
    place: Limits, kind: str
) -> None:
    source, target = place("folder"), place(kind)
    refs: dict[str, str] = {}
    for name in ("", "acme", LONG):
        own = store_of_tenant(source, name) if name else source
        refs[name] = (await filled(own, 1))[0].artifact_ref
    objects = await open_objects(source)
    for key in ("tokens/abc", "tokens-were-made", "quota/one"):
        await objects.write(key, key.encode())
    await objects.aclose()
    assert (await copy_service(source, target, nobody)).copied == 3
    assert await tenants_of(target) == sorted(["acme", LONG])
    copied = await open_objects(target)
    assert set(await copied.items()) == {"tokens-were-made", "tokens/abc"}
    await copied.aclose()
    for name, ref in refs.items():
        copy = await open_store(store_of_tenant(target, name) if name else target)
        assert [facts.artifact_ref for facts in (await copy.list()).facts] == [ref]
        await copy.aclose()
    back = StoreLimits(source.folder.with_name("back"), run=ALL_RUNS)
    assert (await copy_service(target, back, nobody)).copied == 3
    assert await seen(store_of_tenant(back, "acme")) == await seen(store_of_tenant(source, "acme"))


async def test_what_one_run_keeps_is_copied_to_a_person(place: Limits) -> None:
    source, target = place("folder"), store_of_tenant(place("team"), "acme")
    await filled(source, 3)
    run = person_run("ada")
    assert (await copy_store(source, target, nobody, into=run)).copied == 3
    store = await open_store(target)
    assert [known.name for known in await store.runs()] == [run]
    await store.aclose()
    back = StoreLimits(source.folder.with_name("back"), run=ALL_RUNS)
    assert (await copy_store(target, back, nobody, run=person_run("bob"))).copied == 0
    assert (await copy_store(target, back, nobody, run=run)).copied == 3


async def test_lost_bytes_are_counted_and_the_others_copied(place: Limits) -> None:
    source, target = place("folder"), place("team")
    kept = await filled(source, 4)
    (source.folder / "raw" / kept[1].sha256).write_bytes(b"other")
    assert await copy_store(source, target, nobody) == Copied(copied=3, lost=1)


async def test_a_store_without_room_for_the_copy_is_refused_before_it_begins(
    place: Limits, tmp_path: Path
) -> None:
    source = place("folder")
    await filled(source, 4)
    small = StoreLimits(tmp_path / "small", run=ALL_RUNS)
    for limits, named in (
        (replace(small, max_artifacts=3), "store.max_artifacts"),
        (replace(small, max_total_bytes=1_000), "store.max_total_bytes"),
    ):
        with pytest.raises(BadArgument, match=named):
            await copy_store(source, limits, nobody)
    with pytest.raises(BadArgument, match="memory:"):
        await copy_store(StoreLimits(tmp_path, "memory:"), source, nobody)
