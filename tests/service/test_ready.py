"""/readyz over HTTP: one word of what keeps a replica from taking calls."""

from pathlib import Path

import pytest
from mcp.server.transport_security import TransportSecuritySettings

from fetchstash.config import load
from fetchstash.service import Tenants, build_app
from fetchstash.service._request import AuditLog
from fetchstash.service._serve import Readiness
from fetchstash.store import _disk, _schema, open_objects
from fetchstash.store._postgres import Database
from tests.service.asgi import HOST, running
from tests.store.postgres import server

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("word", ["schema_newer", "disk_full"])
@pytest.mark.parametrize("engine", ["folder", "postgres"])
async def test_a_replica_that_can_put_nothing_answers_503_and_why(
    engine: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "folder" and word == "schema_newer":
        pytest.skip("a folder's service has no catalogue of its own")
    catalog = server().new_database() if engine == "postgres" else ""
    settings = load({"store.folder": str(tmp_path / "store"), "store.catalog": catalog})
    objects = await open_objects(settings.store)
    ready = Readiness(objects, settings.extract, AuditLog(None)).reason
    security = TransportSecuritySettings(allowed_hosts=[HOST])
    if word == "disk_full":
        monkeypatch.setattr(_disk, "MIN_FREE_BYTES", 2**62)
    else:
        database = Database(catalog, "")
        with database.connection() as db:
            newer = str(len(_schema.STEPS) + 1).encode()
            db.execute("UPDATE setting SET value = ? WHERE name = 'schema'", (newer,))
        database.close()
    async with running(
        build_app(Tenants(settings), security, ready=ready, name="worker 1")
    ) as http:
        answer = await http.get("/readyz")
        assert (answer.status_code, answer.text) == (503, f"worker 1: {word}\n")
        assert (await http.get("/healthz")).status_code == 200
    await objects.aclose()
