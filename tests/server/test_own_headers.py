"""Headers of the operator, over stdio in both eras: a model cannot see, choose or spend them."""

import subprocess
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.loopback import Site
from tests.server.test_stdio import FETCHSTASH, flags
from tests.server.test_tools import ERAS, fail

pytestmark = [pytest.mark.anyio, pytest.mark.long]
SECRET = "t0k3n-of-the-operator"


@pytest.mark.parametrize("mode", ERAS)
async def test_a_token_reaches_its_origin_and_is_neither_shown_nor_logged_nor_kept(
    mode: str, site: Site, tmp_path: Path
) -> None:
    file, log, events = (tmp_path / name for name in ("fetchstash.toml", "log", "events"))
    file.write_text(
        f'[fetch.headers."{site.url("/")}"]\nx-token = "env:API_TOKEN"\n'
        f'[telemetry]\nevent_log = "{events}"\n'
    )
    got: list[str | None] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        got.append(request.headers["X-Token"])
        status = 304 if request.headers["If-None-Match"] else 200
        request.send_response(status)
        request.send_header("ETag", '"1"')
        request.send_header("Cache-Control", "no-cache")
        request.send_header("Content-Type", "text/plain")
        request.send_header("Content-Length", "0" if status == 304 else "4")
        request.end_headers()
        request.wfile.write(b"" if status == 304 else b"open")

    url = site.put("/open", script=answer)
    lost = site.put("/lost", "no", status=404)
    arguments = ["serve", "--config", str(file), *flags(site, tmp_path)]
    command = StdioServerParameters(command=FETCHSTASH, args=arguments, env={"API_TOKEN": SECRET})
    shown: list[str] = []
    with log.open("w") as stderr:
        async with Client(stdio_client(command, errlog=stderr), mode=mode) as client:
            for asked in (url, url, lost, "http://127.0.0.2/"):
                result = await client.call_tool("fetch_content", {"url": asked})
                shown.append(result.model_dump_json())
            chosen = await fail(client, "fetch_content", url=url, headers={"X-Token": "mine"})
            shown.append((await client.list_tools()).model_dump_json())
    assert got == [SECRET, SECRET]  # the second validates the stored copy
    assert "open" in shown[0]
    assert chosen.startswith("[bad_argument] fetch_content has no argument 'headers'.")
    written = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert not any(SECRET.encode() in data for data in written)
    assert not any(SECRET in text for text in shown)


def test_a_variable_that_is_not_set_is_one_clear_line_and_config_shows_no_value(
    tmp_path: Path,
) -> None:
    file = tmp_path / "fetchstash.toml"
    file.write_text('[fetch.headers."https://a.example"]\nx-token = "env:API_TOKEN"\n')
    command = [FETCHSTASH, "config", "--config", str(file)]
    failed = subprocess.run(command, capture_output=True, text=True, env={}, check=False)
    assert "reads the environment variable API_TOKEN, which is not set." in failed.stderr
    done = subprocess.run(
        command, capture_output=True, text=True, env={"API_TOKEN": SECRET}, check=True
    )
    assert SECRET not in done.stdout + done.stderr
