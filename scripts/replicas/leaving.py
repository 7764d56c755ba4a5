"""Delete a person of a service with three replicas; after one clean-up turn nothing may be left.

    python -P scripts/replicas/leaving.py [--url URL --endpoint URL]

scripts/ci replicas runs it on a bucket whose keys stand in the environment. Two persons of a tenant
fetch and search, and read what they keep from each replica, which has a cache of its own. The
operator deletes one of them by `fetchstash person delete`. The hour that the clean-up waits for a
put of the same bytes is taken as passed; nothing is put. Rows, words, objects and the files of each
replica must be gone of the one, and stay of the other. Exit code 3: something is left.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from bench._calls import Caller
from fetchstash.cli.demo._tour import command
from fetchstash.config import Settings, load
from fetchstash.store import open_objects
from fetchstash.store._bucket import open_bucket
from fetchstash.store._postgres import Database
from scripts.drive.programs import options
from scripts.drive.service import token_of
from scripts.replicas.nginx import HOST, Replica, Web, settings_file, text_of
from scripts.replicas.torture import TURN_SECONDS, let_an_hour_pass
from scripts.torture.kept import FAULTS_FOUND, show

TENANT = "red"
PERSONS = {"ada": 918_273_645, "bob": 546_372_819}
"""Each with the number of the document that is theirs: it is a word of its text."""
TURN_WITHIN_SECONDS = 60.0


def left(settings: Settings, folder: Path, person: str) -> list[str]:
    """Return where something of a person's document still is."""
    word = str(PERSONS[person])
    found: list[str] = []
    database = Database(settings.store.catalog, TENANT)
    try:
        with database.connection() as db:
            rows = db.execute("SELECT facts::text FROM artifact").fetchall()
            terms = db.execute("SELECT terms::text FROM words").fetchall()
        found += ["a row" for (text,) in rows if word in text]
        found += ["words" for (text,) in terms if word in text]
    finally:
        database.close()
    if settings.store.endpoint:
        bucket = open_bucket(settings.store)
        for key, size, _ in bucket.objects(""):
            if word.encode() in (bucket.read_range(key, 0, size) or b""):
                found.append(f"the object {key}")
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".log"]
    found += [str(path.relative_to(folder)) for path in files if word.encode() in path.read_bytes()]
    return found


async def use(replicas: list[Replica], web: Web, tokens: dict[str, str]) -> list[str]:
    """Let each person fetch and search at each replica, and read there; return what went wrong."""
    faults: list[str] = []
    for person, number in PERSONS.items():
        for replica in replicas:
            caller = Caller(replica.port, token=tokens[person], host=HOST)
            url = f"http://127.0.0.1:{web.port}/{number}.txt"
            answers = [
                await caller.tool("fetch_content", url=url),
                await caller.tool("artifact_search", query=f"document {number}"),
                await caller.tool("get_search_content", artifact_ref=url, maxChars=20_000),
            ]
            await caller.aclose()
            faults += [f"{person}: {answer.text[:200]}" for answer in answers if answer.code]
            if text_of(number).rstrip() not in answers[-1].text:
                faults.append(f"{person} read {answers[-1].text[:200]}")
    return faults


async def let_turn_be_due(settings: Settings) -> None:
    """Let the hour pass that the clean-up waits for a put of the same bytes."""
    objects = await open_objects(settings.store)
    let_an_hour_pass(settings.store.catalog, TENANT)
    await objects.counts.note("clean-up", TENANT, ago=TURN_SECONDS + 1)
    await objects.aclose()


async def play(url: str, endpoint: str, folder: Path) -> list[str]:
    """Run all of it; return the faults."""
    web = Web()
    await web.start()
    file = settings_file(folder, url, endpoint, web.port)
    config = ("--config", str(file))
    settings = load({"store.folder": str(folder / "operator")} if endpoint else {}, {}, file)
    tokens = {who: token_of(TENANT, "--name", who, *config) for who in PERSONS}
    own = [
        {"FETCHSTASH_STORE_FOLDER": str(folder / f"cache-{n}")} if endpoint else {} for n in "123"
    ]
    replicas = [Replica(folder, file, {**os.environ, **more}) for more in own]
    async with AsyncExitStack() as stack:
        for replica in replicas:
            stack.callback(replica.close)
        await asyncio.gather(*(replica.start() for replica in replicas))
        faults = await use(replicas, web, tokens)
        places = {who: left(settings, folder, who) for who in PERSONS}
        needed = {"a row", "words"} | ({f"cache-{n}" for n in "123"} if endpoint else set[str]())
        for who, found in places.items():
            kinds = {place.partition("/")[0] for place in found}
            faults += [f"nothing of {who} in {kind}" for kind in needed - kinds]
        print(f"  before: {len(places['ada'])} places hold something of ada", flush=True)
        operator = {**os.environ, "FETCHSTASH_STORE_FOLDER": str(folder / "operator")}
        environment = operator if endpoint else {**os.environ}
        words = [command(), "person", "delete", "ada", "--tenant", TENANT, "--yes", *config]
        await asyncio.to_thread(subprocess.run, words, check=True, env=environment)
        print(f"  at once: {len(left(settings, folder, 'ada'))} places", flush=True)
        await let_turn_be_due(settings)
        begin = time.monotonic()
        while found := left(settings, folder, "ada"):
            if time.monotonic() > begin + TURN_WITHIN_SECONDS:
                break
            await asyncio.sleep(0.5)
        print(f"  {len(found)} places {time.monotonic() - begin:.1f} s after the hour", flush=True)
        faults += [f"left of ada: {place}" for place in found]
        if lost := set(places["bob"]) - set(left(settings, folder, "bob")):
            faults.append(f"gone of bob: {', '.join(sorted(lost))}")
    return faults


def main() -> int:
    """Play it on one store; return the exit code."""
    args = options(__doc__, url="", endpoint="")
    print(f"a person leaves three replicas on {args.url or 'a folder'}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        url = f"{args.url}/{folder.name}" if args.url else f"file:{folder}/store"
        faults = asyncio.run(play(url, args.endpoint, folder))
    return FAULTS_FOUND if show(faults) else 0


if __name__ == "__main__":
    sys.exit(main())
