"""A worker that was taken over puts no word of its own outside the fence."""

import asyncio
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import Site
from tests.server.conftest import Connect
from tests.server.hostile_worker import ATTACKS, TEXT
from tests.server.test_fence import checked

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
WORKER = Path(__file__).with_name("hostile_worker.py")
DOCUMENTS = {"text/html": f"<p>{TEXT}", "application/pdf": f"%PDF-1.4\n{TEXT}"}


@pytest.mark.parametrize(("attack", "media_type"), [*zip(ATTACKS, cycle(DOCUMENTS), strict=False)])
async def test_a_worker_that_was_taken_over_says_nothing_outside_the_fence(
    site: Site, connect: Connect, monkeypatch: pytest.MonkeyPatch, attack: str, media_type: str
) -> None:
    start = asyncio.create_subprocess_exec

    async def start_hostile(*command: str, **options: Any) -> Any:
        at = command.index("-m")  # the module of a worker
        hostile = (*command[:at], str(WORKER), attack, *command[at + 2 :])
        return await start(*hostile, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_hostile)
    url = site.put("/file", DOCUMENTS[media_type], media_type)
    async with connect() as client:
        await checked(client, "fetch_content", url=url, maxChars=1_000)
        await checked(client, "artifact_info", artifact_ref=url)
        await checked(client, "artifact_info")
        await checked(client, "artifact_grep", artifact_ref=url, pattern="the|no")
        await checked(client, "artifact_search", query="page nowhere")
        for path in ("page", "nowhere", "#nowhere"):
            await checked(client, "artifact_slice", artifact_ref=url, path=path)
        await checked(client, "artifact_slice", artifact_ref=url, unit="pages", render="image")
