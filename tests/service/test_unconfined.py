"""Where the kernel cannot confine readers, it is said, and over HTTP no document is read."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from fetchstash.config import load
from fetchstash.service import for_clients_elsewhere
from tests.loopback import Site
from tests.server.test_stdio import FETCHSTASH, flags
from tests.server.test_tools import call, fail
from tests.service.pages import calling

WITHOUT_LANDLOCK = [str(Path(__file__).parents[1] / "unconfined.py"), FETCHSTASH]
LACK = "a reader may read any file of this user: no Landlock (Function not implemented)"
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux's")


@contextmanager
def served(*words: str, confine: str = "") -> Generator[tuple[str, "subprocess.Popen[str]"]]:
    """Serve over HTTP on a kernel without Landlock; yield the URL and the process."""
    environment = {**os.environ, **({"FETCHSTASH_EXTRACT_CONFINE": confine} if confine else {})}
    command = [sys.executable, *WITHOUT_LANDLOCK, "serve", "--http", "127.0.0.1:0", *words]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment)
    assert process.stdout
    try:
        line = process.stdout.readline()
        yield next(word for word in line.split() if word.startswith("http")), process
    finally:
        process.kill()
        process.communicate()


def warnings_of(process: "subprocess.Popen[str]") -> list[str]:
    process.terminate()
    _, errors = process.communicate(timeout=60)
    return [json.loads(line)["message"] for line in errors.splitlines()]


@on_linux
@pytest.mark.long
def test_over_http_nothing_is_read_where_the_kernel_cannot_confine_a_reader(
    site: Site, tmp_path: Path
) -> None:
    page = site.put("/page", "<p>The gate opens at nine.")
    with served(*flags(site, tmp_path)) as (url, process):
        answer = httpx2.post(url, **calling(page, "2026-07-28"), timeout=60).text
        ready = httpx2.get(url.replace("/mcp", "/readyz"), timeout=60).status_code
        warnings = warnings_of(process)
    assert f"[internal] This system cannot confine a reader of documents: {LACK}." in answer
    assert "extract.confine" in answer
    assert "nine" not in answer
    assert ready == 503
    no_document = f"No document is read: {LACK}, and extract.confine is required."
    assert warnings.count(no_document) == 1


@on_linux
@pytest.mark.long
def test_an_operator_may_have_documents_read_unconfined_and_is_told_once(
    site: Site, tmp_path: Path
) -> None:
    page = site.put("/page", "<p>The gate opens at nine.")
    with served(*flags(site, tmp_path), confine="auto") as (url, process):
        for _ in range(2):
            assert "nine" in httpx2.post(url, **calling(page, "2026-07-28"), timeout=60).text
        assert httpx2.get(url.replace("/mcp", "/readyz"), timeout=60).status_code == 200
        warnings = warnings_of(process)
    said = f"Workers are not confined: {LACK}. See extract.confine."
    assert [line for line in warnings if LACK in line] == [said]


@on_linux
@pytest.mark.long
@pytest.mark.anyio
@pytest.mark.parametrize("confine", ["auto", "required"])
async def test_a_host_finds_it_on_stderr_and_in_the_event_log(
    site: Site, tmp_path: Path, confine: str
) -> None:
    page = site.put("/page", "<p>The gate opens at nine.")
    log = tmp_path / "events.jsonl"
    environment = {
        "FETCHSTASH_EXTRACT_CONFINE": confine,
        "FETCHSTASH_TELEMETRY_EVENT_LOG": str(log),
    }
    errors = tmp_path / "errors"
    shell = ["-c", f'exec "$0" "$@" 2> {errors}', sys.executable]
    server = StdioServerParameters(
        command="/bin/sh",
        args=[*shell, *WITHOUT_LANDLOCK, "serve", *flags(site, tmp_path)],
        env={**os.environ, **environment},
    )
    async with Client(server) as client:
        await client.list_tools()
        for _ in range(2):
            if confine == "auto":
                assert "nine" in await call(client, "fetch_content", url=page, refresh=True)
            else:
                assert LACK in await fail(client, "fetch_content", url=page)
    assert errors.read_text().count(LACK) == 1
    events: list[Any] = [json.loads(line) for line in log.read_text().splitlines()]
    (event,) = (event for event in events if event["name"] == "worker.unconfined")
    assert event["attributes"] == {"lacks": [LACK], "confine": confine}


@on_linux
@pytest.mark.long
@pytest.mark.parametrize(("confine", "level"), [("auto", "warning"), ("required", "fault")])
def test_doctor_says_what_a_kernel_lacks_and_what_follows(
    tmp_path: Path, confine: str, level: str
) -> None:
    command = [sys.executable, *WITHOUT_LANDLOCK, "doctor", "--folder", str(tmp_path), "--json"]
    environment = {**os.environ, "FETCHSTASH_EXTRACT_CONFINE": confine}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    found: list[Any] = [json.loads(line) for line in done.stdout.splitlines()]
    (lack,) = (line for line in found if "no Landlock" in line["what"])
    assert (lack["level"], lack["what"]) == (level, f"worker: {LACK}.")


def test_a_service_over_http_confines_its_readers_unless_the_operator_says_otherwise() -> None:
    assert for_clients_elsewhere(load({})).extract.confine == "required"
    assert for_clients_elsewhere(load({})).for_tenant("acme").extract.confine == "required"
    by_choice = for_clients_elsewhere(load({}, {"FETCHSTASH_EXTRACT_CONFINE": "auto"}))
    assert by_choice.extract.confine == "auto"
    assert load({}).extract.confine == "auto"
