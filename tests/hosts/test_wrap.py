"""The servers of a host are put behind the gateway, in place, and brought back."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from fetchstash.errors import BadArgument
from fetchstash.hosts import HOSTS, FileHost, Place, unwrap, wrap
from tests.gateway.conftest import FETCHSTASH, plain

START = ["/opt/bin/fetchstash", "serve"]
ENTRIES: dict[str, dict[str, Any]] = {
    "files": {"command": "npx", "args": ["-y", "files", "--root", "/"], "env": {"KEY": "secret"}},
    "bare": {"command": "server"},
    "remote": {"url": "https://mcp.example.org/mcp", "headers": {"Authorization": "Bearer top"}},
    "old": {"type": "sse", "url": "https://mcp.example.org/sse"},
    "fetchstash": {"command": "/opt/bin/fetchstash", "args": ["serve"]},
}
CODEX = """# mine
model = "gpt"

[mcp_servers.files]
# the files
command = "npx"
args = [
  "-y",
  "files",
]
startup_timeout_sec = 20

[mcp_servers.files.env]
KEY = "secret"

[mcp_servers.other]
command = "other"
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place("linux", tmp_path, {})


def file_of(name: str, place: Place) -> Path:
    host = HOSTS[name]
    if isinstance(host, FileHost):
        return host.file(place)
    places = {"claude-code": ".claude.json", "gemini": ".gemini/settings.json"}
    return place.home / places.get(name, ".codex/config.toml")


@pytest.mark.parametrize("name", [name for name in HOSTS if name != "codex"])
def test_servers_are_wrapped_in_place_and_brought_back(name: str, place: Place) -> None:
    host, file = HOSTS[name], file_of(name, place)
    section = host.section if isinstance(host, FileHost) else "mcpServers"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({section: ENTRIES, "mine": 1}, indent=4))
    line = wrap(host, (), START, place)
    servers = json.loads(file.read_text())[section]
    assert "Wrapped files, bare, remote in" in line
    words = ["wrap", "--", "npx", "-y", "files", "--root", "/"]
    assert servers["files"] == {**ENTRIES["files"], "command": START[0], "args": words}
    assert servers["remote"]["args"][:3] == ["wrap", "--url", "https://mcp.example.org/mcp"]
    assert "top" not in str(servers["remote"]["args"])
    assert servers["old"] == ENTRIES["old"]
    assert servers["fetchstash"] == ENTRIES["fetchstash"]
    assert "nothing was changed" in wrap(host, (), START, place)
    unwrap(host, (), place)
    back = json.loads(file.read_text())
    assert back["mine"] == 1
    expected: dict[str, Any] = {**ENTRIES, "bare": {"command": "server", "args": []}}
    assert back[section] == expected


def test_only_the_servers_that_are_named_are_wrapped(place: Place) -> None:
    file = file_of("cursor", place)
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"mcpServers": ENTRIES}))
    wrap(HOSTS["cursor"], ("bare",), START, place)
    servers = json.loads(file.read_text())["mcpServers"]
    assert servers["bare"]["args"] == ["wrap", "--", "server"]
    assert servers["files"] == ENTRIES["files"]
    with pytest.raises(BadArgument) as refused:
        wrap(HOSTS["cursor"], ("files", "absent"), START, place)
    assert str(refused.value) == (
        f"[bad_argument] There is no server 'absent' in {file}. Check the name."
    )
    assert json.loads(file.read_text())["mcpServers"] == servers


def test_the_settings_of_codex_keep_their_comments(place: Place) -> None:
    file = file_of("codex", place)
    file.parent.mkdir()
    file.write_text(CODEX)
    wrap(HOSTS["codex"], (), START, place)
    text = file.read_text()
    servers = tomllib.loads(text)["mcp_servers"]
    assert servers["files"]["args"] == ["wrap", "--", "npx", "-y", "files"]
    assert servers["files"]["startup_timeout_sec"] == 20
    assert servers["files"]["env"] == {"KEY": "secret"}
    assert "# the files" in text
    unwrap(HOSTS["codex"], (), place)
    before = tomllib.loads(CODEX)
    before["mcp_servers"]["other"]["args"] = []
    assert tomllib.loads(file.read_text()) == before


def test_a_server_over_http_of_codex_stays_as_it_is(place: Place) -> None:
    file = file_of("codex", place)
    file.parent.mkdir()
    web = '[mcp_servers.web]\nurl = "https://mcp.example.org/mcp"\nbearer_token_env_var = "T"\n'
    file.write_text(web + CODEX)
    with pytest.raises(BadArgument, match=r": web is a server over HTTP\. Nothing"):
        wrap(HOSTS["codex"], ("web",), START, place)
    assert "Wrapped files" in wrap(HOSTS["codex"], (), START, place)
    text = file.read_text()
    assert web in text
    assert tomllib.loads(text)["mcp_servers"]["files"]["args"][0] == "wrap"


def test_a_table_of_codex_in_another_form_is_left_alone(place: Place) -> None:
    file = file_of("codex", place)
    file.parent.mkdir()
    text = 'mcp_servers = { one = { command = "x", args = ["]"] } }\n'
    file.write_text(text)
    with pytest.raises(BadArgument, match="written in another form"):
        wrap(HOSTS["codex"], (), START, place)
    assert file.read_text() == text


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_wrapped_entry_starts_and_answers(place: Place) -> None:
    file = file_of("cursor", place)
    file.parent.mkdir(parents=True)
    command = plain("legacy")
    entry = {"command": command[0], "args": command[1:], "env": {"SECRET": "from the entry"}}
    file.write_text(json.dumps({"mcpServers": {"plain": entry}}))
    wrap(HOSTS["cursor"], (), [FETCHSTASH, "serve"], place)
    wrapped = json.loads(file.read_text())["mcpServers"]["plain"]
    store = {"FETCHSTASH_STORE_FOLDER": str(place.home / "store")}
    server = StdioServerParameters(
        command=wrapped["command"], args=wrapped["args"], env={**wrapped["env"], **store}
    )
    async with Client(server, mode="legacy") as client:
        [block] = (await client.call_tool("environment", {})).content
    assert block.model_dump()["text"] == "from the entry"
