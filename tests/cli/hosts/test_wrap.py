"""The servers of a host are put behind the gateway, in place, and brought back."""

import json
import tomllib
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from mcp import Client, StdioServerParameters

from fetchstash.cli.hosts import _files, _servers
from fetchstash.cli.hosts._servers import HOSTS, Environment
from fetchstash.cli.hosts._wrap import unwrap, wrap
from fetchstash.config import ARTIFACT_TOOLS, SERVERS_VARIABLE, WrappedServer, load
from fetchstash.errors import BadArgument
from tests.cli.hosts.conftest import settings
from tests.gateway.conftest import FETCHSTASH, plain
from tests.gateway.servers.http_flood import ABOUT
from tests.loopback import Quiet, serving

START = ["/opt/bin/fetchstash", "serve"]
ENTRIES: dict[str, dict[str, Any]] = {
    "files": {"command": "npx", "args": ["-y", "files", "--root", "/"], "env": {"KEY": "secret"}},
    "bare": {"command": "server"},
    "empty": {"command": "server", "args": [], "env": {}},
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


def kept(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what the entry of a gateway replaced, by the servers' names."""
    return dict(json.loads(entry["env"][SERVERS_VARIABLE]))


@pytest.mark.parametrize("each", [False, True], ids=["one for all", "one for each"])
@pytest.mark.parametrize("name", [name for name in HOSTS if name != "codex"])
def test_servers_are_put_behind_a_gateway_and_brought_back(
    name: str, env: Environment, *, each: bool
) -> None:
    host, file, section = HOSTS[name], HOSTS[name].file(env), HOSTS[name].section
    file.parent.mkdir(parents=True, exist_ok=True)
    before = json.dumps({section: ENTRIES, "mine": 1}, indent=4)
    file.write_text(before)
    line = wrap(host, (), START, env, each=each)
    wrapped = file.read_text()
    servers = json.loads(wrapped)[section]
    assert "Wrapped files, bare, empty, remote in" in line
    assert "old stays as it is: its transport is sse, and" in line
    assert servers["old"] == ENTRIES["old"]
    if each:
        assert list(servers) == list(ENTRIES)
        entries = [servers[server] for server in ("files", "bare", "empty", "remote")]
        assert all(entry["args"] == ["wrap"] for entry in entries)
        assert servers["fetchstash"] == ENTRIES["fetchstash"]
    else:
        assert set(servers) == {"old", "gateway"}
        assert servers["gateway"]["args"] == ["wrap", "--with-fetch"]
        assert kept(servers["gateway"]) == {n: e for n, e in ENTRIES.items() if n != "old"}
    assert "nothing was changed" in wrap(host, (), START, env)
    unwrap(host, (), env)
    assert file.read_text() == before
    file.write_text(f"{wrapped} ")  # changed since
    unwrap(host, (), env)
    assert json.loads(file.read_text()) == {section: ENTRIES, "mine": 1}


def test_servers_join_the_gateway_and_leave_it_by_name(env: Environment) -> None:
    servers = {server: ENTRIES[server] for server in ("files", "bare", "remote")}
    file = settings(env, "cursor", json.dumps({"mcpServers": servers}))

    def shown() -> dict[str, Any]:
        return dict(json.loads(file.read_text())["mcpServers"])

    with pytest.raises(BadArgument, match=r"There is no server 'absent' in .*\. Check the name\."):
        wrap(HOSTS["cursor"], ("files", "absent"), START, env)
    assert shown() == servers
    wrap(HOSTS["cursor"], ("files", "bare"), START, env)
    assert list(shown()) == ["remote", "gateway"]
    assert list(kept(shown()["gateway"])) == ["files", "bare"]
    wrap(HOSTS["cursor"], (), START, env)
    assert list(kept(shown()["gateway"])) == ["files", "bare", "remote"]
    unwrap(HOSTS["cursor"], ("bare",), env)
    assert shown()["bare"] == ENTRIES["bare"]
    assert list(kept(shown()["gateway"])) == ["files", "remote"]
    unwrap(HOSTS["cursor"], (), env)
    assert shown() == servers


def test_what_a_host_fills_in_stands_in_a_variable_of_its_own(env: Environment) -> None:
    entry = {"command": "${HOME}/s", "args": ["--at=${workspaceFolder}"], "env": {"K": "${T}"}}
    before = json.dumps({"mcpServers": {"a": entry, "b": {"command": "b"}}})
    file = settings(env, "cursor", before)
    wrap(HOSTS["cursor"], (), START, env)
    gateway = json.loads(file.read_text())["mcpServers"]["gateway"]
    filled = {
        name: value.replace("${HOME}", "/h")
        .replace("${workspaceFolder}", "C:\\w")
        .replace("${T}", '"')
        for name, value in gateway["env"].items()
    }
    servers = load(environment=filled).wrapped
    assert servers["a"] == WrappedServer("a", "/h/s", ("--at=C:\\w",), {"K": '"'})
    unwrap(HOSTS["cursor"], (), env)
    assert file.read_text() == before


FILTERS_OF_GEMINI = """\
{ "mcpServers": {"files" :{"args":[ ], "includeTools":["read"],"command":"npx",
"excludeTools": ["x"]}, "b" : {"command": "b", "cwd":"/"}}}"""
FILTERS_OF_CODEX = """\
[mcp_servers.files]
command = "npx"  # mine
enabled_tools=[ "read", ] # one
disabled_tools = ["x"]
[mcp_servers.b]
command = "b"
cwd = "/"
"""


@pytest.mark.parametrize(
    ("name", "text"), [("gemini", FILTERS_OF_GEMINI), ("codex", FILTERS_OF_CODEX)]
)
def test_the_gateway_filters_tools_in_the_hosts_place_and_every_byte_comes_back(
    name: str, text: str, env: Environment
) -> None:
    file = settings(env, name, text)
    wrap(HOSTS[name], (), START, env)
    wrapped = file.read_text()
    read = tomllib.loads if name == "codex" else json.loads
    [entries] = read(wrapped).values()
    assert list(entries) == ["gateway"]
    servers = load(environment=entries["gateway"]["env"]).wrapped
    assert (servers["files"].tools, servers["files"].hidden_tools) == (("read",), ("x",))
    assert servers["b"].cwd == "/"
    unwrap(HOSTS[name], (), env)
    assert file.read_text() == text


APART: dict[str, tuple[str, str, str]] = {
    "a key of its own": ("codex", "required = true", "its entry has required"),
    "a token of the person's": ("codex", 'env_vars = ["TOKEN"]', "its entry has env_vars"),
    "off": ("codex", "enabled = false", "its entry has enabled"),
    "a permission": ("claude-code", "", "a permission of Claude Code names it"),
    "servers that are listed": ("gemini", "", "mcp.allowed or mcp.excluded of Gemini CLI name"),
}


@pytest.mark.parametrize(("name", "line", "why"), APART.values(), ids=APART)
def test_a_server_that_settings_name_or_say_more_of_keeps_its_name(
    name: str, line: str, why: str, env: Environment
) -> None:
    entries = {server: {"command": server} for server in ("a", "b", "c")}
    text = json.dumps({"mcpServers": entries, "mcp": {"excluded": ["a"]}})
    if name == "codex":
        tables = [f'[mcp_servers.{server}]\ncommand = "{server}"\n' for server in entries]
        text = f"{tables[0]}{line}\n{tables[1]}{tables[2]}"
    rules = env.home / ".claude" / "settings.json"
    rules.parent.mkdir(parents=True, exist_ok=True)
    rules.write_text(json.dumps({"permissions": {"deny": ["mcp__a__write"]}}))
    file = settings(env, name, text)
    said = wrap(HOSTS[name], (), START, env)
    assert f"\na has a gateway of its own: {why}" in said
    read = tomllib.loads if name == "codex" else json.loads
    servers = next(iter(read(file.read_text()).values()))
    assert list(servers) == ["a", "gateway"]
    assert servers["a"].get("required") == (True if "required" in line else None)
    unwrap(HOSTS[name], (), env)
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("rules", "missing"),
    [
        (["mcp__my_files__read", "mcp__other"], ARTIFACT_TOOLS),
        ([f"mcp__my_files__{tool}" for tool in ARTIFACT_TOOLS[1:]], ARTIFACT_TOOLS[:1]),
        (["mcp__my_files__read", "mcp__my_files"], ()),
        (["mcp__my_files__read", "mcp__my_files__*"], ()),
    ],
)
def test_what_claude_code_will_ask_for_is_said(
    rules: list[str], missing: tuple[str, ...], env: Environment
) -> None:
    settings(env, "claude-code", json.dumps({"mcpServers": {"my files": ENTRIES["files"]}}))
    file = env.home / ".claude" / "settings.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"permissions": {"allow": rules}}))
    said = wrap(HOSTS["claude-code"], (), START, env)
    names = ", ".join(f'"mcp__my_files__{tool}"' for tool in missing)
    asks = f"Claude Code asks before each artifact tool of my files: to allow them add {names} to"
    assert (asks in said) == ("asks before" in said) == bool(missing)


REMOTE = """[mcp_servers.web] # the web
# where
url = "https://mcp.example.org/mcp?key=k3y" # in production
bearer_token_env_var = "TOKEN"
enabled = false

[mcp_servers.web.http_headers] # for us
"X-Team" = "t3am"

[mcp_servers.web.env_http_headers]
X-User = "USER_ID"
"""


def test_a_server_over_http_of_codex_gets_its_token_from_a_variable(env: Environment) -> None:
    file = settings(env, "codex", CODEX + REMOTE)
    assert "Wrapped files, other, web in" in wrap(HOSTS["codex"], (), START, env)
    entry = tomllib.loads(file.read_text())["mcp_servers"]["web"]
    assert entry["args"] == ["wrap"]
    assert entry["env_vars"] == ["USER_ID", "TOKEN"]  # Codex passes few own on
    [server] = load(environment=entry["env"]).wrapped.values()
    assert server.url == "https://mcp.example.org/mcp?key=k3y"
    assert server.headers == {
        "X-Team": "t3am",
        "X-User": "env:USER_ID",
        "Authorization": "Bearer env:TOKEN",
    }
    assert entry["enabled"] is False
    assert set(entry) == {"command", "args", "env", "env_vars", "enabled"}
    unwrap(HOSTS["codex"], ("web",), env)
    text = file.read_text()
    assert tomllib.loads(text)["mcp_servers"]["web"] == tomllib.loads(REMOTE)["mcp_servers"]["web"]
    assert all(
        f"# {comment}" in text for comment in ("the web", "where", "in production", "for us")
    )


FORMS = {
    "an inline table": 'mcp_servers = {a = {command = "x", args = ["]"]}, w = {url = "http://w"}}',
    "inline tables": '[mcp_servers]\na = { command = "x", env = { K = "v" } } # c\nw={url="http://w"}\n',
    "dotted keys": (
        '[mcp_servers]\na.command = "x" # c\na.args = ["b"]\na.env.K = "v"\n'
        'w.url = "http://w"\nw.http_headers.X = "1"\n'
    ),
    "dotted keys at the top": 'mcp_servers.a.command = "x"\nmcp_servers.w.url = "http://w"\n',
    "quoted names": "[mcp_servers.\"a.b\"]\ncommand = \"x\"\n[mcp_servers.'c d']\nurl = 'http://w'\n",
    "no ASCII": '[mcp_servers."ü-日本"]\ncommand = "/ä" # ö\nargs = ["\\u00e9", "é"]\n',
    "lines of Windows": '# c\r\n[mcp_servers.a]\r\ncommand = "x"\r\nargs = [\r\n "b", # c\r\n]\r\n',
    "a byte order mark": '\ufeff[mcp_servers.a]\ncommand = "x"\n',
    "a table in two parts": (
        '[mcp_servers.w.http_headers]\nX = "1"\n[mcp_servers.a]\ncommand = "x"\nargs = []\n'
        '[other]\nk = 1\n[mcp_servers.w]\nurl = "http://w"\n[mcp_servers.a.env]\nK = "v"\n'
    ),
    "TOML 1.1": '[mcp_servers]\na = {\n  command = "x", # c\n  args = ["b"],\n}\n',
    "no end of the last line": '[mcp_servers.a]\nargs = [] # none\ncommand = "x"',
}


@pytest.mark.long
@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_any_form_of_a_codex_table_is_wrapped_and_brought_back(text: str, env: Environment) -> None:
    file = settings(env, "codex", text)
    before = tomlkit.parse(text.removeprefix("\ufeff")).unwrap()
    wrap(HOSTS["codex"], (), START, env)
    wrapped = file.read_bytes().decode()
    servers = tomlkit.parse(wrapped.removeprefix("\ufeff")).unwrap()["mcp_servers"]
    assert all(entry["command"] == START[0] for entry in servers.values())
    assert wrapped.startswith("\ufeff") == text.startswith("\ufeff")
    if "\r\n" in text:
        assert wrapped.count("\n") == wrapped.count("\r\n")
    unwrap(HOSTS["codex"], (), env)
    assert file.read_bytes().decode() == text
    file.write_bytes(f"{wrapped}\n# more".encode())  # changed since
    unwrap(HOSTS["codex"], (), env)
    back = file.read_bytes().decode().removeprefix("\ufeff")
    assert tomlkit.parse(back).unwrap() == before


LOGIN = "Codex logs in to it itself, and that login does not reach the gateway"
ELSEWHERE = "Codex starts it on another machine"
UNREADABLE = "its entry has neither a command nor a URL that can be read"
REFUSALS: dict[str, tuple[str, str]] = {
    "a login of the host": ('url = "https://w"\nscopes = ["a"]', LOGIN),
    "another machine": ('command = "x"\nexperimental_environment = "remote"', ELSEWHERE),
    "a text for arguments": ('command = "x"\nargs = "-y"', UNREADABLE),
}


@pytest.mark.parametrize(("entry", "reason"), REFUSALS.values(), ids=REFUSALS)
def test_a_server_that_cannot_be_wrapped_is_refused_with_the_reason(
    entry: str, reason: str, env: Environment
) -> None:
    file = settings(env, "codex", f"{CODEX}[mcp_servers.web]\n{entry}\n")
    with pytest.raises(BadArgument, match=r"Nothing was changed\.") as refused:
        wrap(HOSTS["codex"], ("web", "files"), START, env)
    assert refused.value.what == f"web stays as it is: {reason}."
    assert tomllib.loads(file.read_text())["mcp_servers"]["files"]["command"] == "npx"
    said = wrap(HOSTS["codex"], (), START, env)
    assert "Wrapped files, other in" in said
    assert f"\nweb stays as it is: {reason}." in said


def test_a_server_that_may_need_a_login_is_wrapped_only_if_it_is_named(env: Environment) -> None:
    servers = {"open": {"url": "https://o"}, "near": {"url": "http://127.0.0.1:3000/mcp"}}
    file = settings(env, "cursor", json.dumps({"mcpServers": servers}))
    said = wrap(HOSTS["cursor"], (), START, env)
    assert "Wrapped near in" in said
    assert (
        "\nopen stays as it is: its settings have no token, so Cursor may log in to it itself."
        " If it needs no login, name it: --wrap open."
    ) in said
    assert "Wrapped open in" in wrap(HOSTS["cursor"], ("open",), START, env)
    unwrap(HOSTS["cursor"], (), env)
    assert json.loads(file.read_text())["mcpServers"] == servers


def test_what_is_no_toml_is_said_to_be_that(env: Environment) -> None:
    settings(env, "codex", "[mcp_servers\n")
    with pytest.raises(BadArgument, match=r"config\.toml cannot be read: it is no TOML .*line 1"):
        wrap(HOSTS["codex"], (), START, env)


def test_the_servers_of_each_project_of_claude_code_are_wrapped(env: Environment) -> None:
    entry: dict[str, Any] = {"type": "stdio", "command": "npx", "args": ["x"], "env": {}}
    before: dict[str, Any] = {"projects": {"/a": {"mcpServers": {"own": entry}, "n": 1}, "/b": {}}}
    file = settings(env, "claude-code", json.dumps(before))
    assert "Wrapped own in" in wrap(HOSTS["claude-code"], (), START, env)
    wrapped = json.loads(file.read_text())["projects"]["/a"]["mcpServers"]["own"]
    assert kept(wrapped) == {"own": entry}
    unwrap(HOSTS["claude-code"], ("own",), env)
    assert json.loads(file.read_text()) == before


def test_the_large_file_of_claude_code_is_read_once_for_each_project_with_servers(
    env: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = HOSTS["claude-code"].file(env)
    servers = {f"s{number}": {"command": "npx", "args": ["x"]} for number in range(5)}
    projects: dict[str, Any] = {f"/{number}": {"mcpServers": {}} for number in range(50)}
    file.write_text(
        json.dumps({"mcpServers": servers, "projects": {**projects, "/a": {"mcpServers": servers}}})
    )
    whole: list[int] = []

    def part_at(text: str, path: list[str]) -> _files.Part:
        whole.append(len(text))
        return _files.part_at(text, path)

    monkeypatch.setattr(_servers, "part_at", part_at)
    before = file.read_text()
    wrap(HOSTS["claude-code"], (), START, env)
    assert len(whole) == 2
    unwrap(HOSTS["claude-code"], (), env)
    assert json.loads(file.read_text()) == json.loads(before)


@pytest.mark.parametrize(
    ("name", "variable", "file"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
    ],
)
def test_the_folder_that_a_hosts_own_variable_names_is_used(
    name: str, variable: str, file: str, tmp_path: Path
) -> None:
    env = Environment("linux", tmp_path / "home", {variable: str(tmp_path / "own")})
    with pytest.raises(BadArgument) as refused:
        wrap(HOSTS[name], (), START, env)
    assert f"has no settings file {tmp_path / 'own' / file}." in refused.value.what


def test_a_key_that_stands_twice_is_not_half_removed(env: Environment) -> None:
    text = '{"mcpServers": {"web": {"url": "http://a", "url": "http://b"}}}'
    file = settings(env, "cursor", text)
    with pytest.raises(BadArgument, match="in a form that cannot be changed safely"):
        wrap(HOSTS["cursor"], (), START, env)
    assert file.read_text() == text


BY_HAND: list[dict[str, Any]] = [
    {"command": "/x/fetchstash", "args": ["wrap"]},
    {"command": "fetchstash", "args": ["wrap", "--url", "http://a", "--header", "a=env:B"]},
    {
        "command": "uvx",
        "args": ["--from", "/w.whl", "fetchstash", "wrap", "--with-fetch", "--", "x"],
    },
    {"command": "/clone/scripts/run", "args": ["serve", "--ephemeral"]},
    {"command": "fetchstash", "args": ["wrap"], "env": {SERVERS_VARIABLE: "{"}},
]


def test_what_a_person_put_behind_the_gateway_by_hand_is_neither_wrapped_nor_lost(
    env: Environment,
) -> None:
    servers: dict[str, Any] = {f"own{number}": entry for number, entry in enumerate(BY_HAND)}
    servers["none"] = None
    file = settings(env, "cursor", json.dumps({"mcpServers": servers}))
    assert "nothing was changed" in wrap(HOSTS["cursor"], (), START, env)
    with pytest.raises(BadArgument, match=r"own1 stays as it is: it was put .* by hand"):
        unwrap(HOSTS["cursor"], ("own1",), env)
    said = unwrap(HOSTS["cursor"], (), env)
    assert [name in said for name in servers] == [True, True, True, False, True, False]
    assert json.loads(file.read_text())["mcpServers"] == servers


@pytest.mark.slow
@pytest.mark.anyio
async def test_one_gateway_runs_each_server_with_its_own_variables_and_without_one_that_fails(
    env: Environment,
) -> None:
    command = plain("legacy")
    servers: dict[str, Any] = {
        name: {"command": command[0], "args": command[1:], "env": {"SECRET": f"of {name}"}}
        for name in ("one", "two")
    }
    servers |= {"ends": {"command": "false"}, "absent": {"command": "/there/is/none"}}
    file = settings(env, "cursor", json.dumps({"mcpServers": servers}))
    wrap(HOSTS["cursor"], (), [FETCHSTASH, "serve"], env)
    wrapped = json.loads(file.read_text())["mcpServers"]["gateway"]
    store = {"FETCHSTASH_STORE_FOLDER": str(env.home / "store")}
    server = StdioServerParameters(
        command=wrapped["command"], args=wrapped["args"], env={**wrapped["env"], **store}
    )
    async with Client(server, mode="legacy") as client:
        for name in ("one", "two"):  # what both have is told apart by their names
            [block] = (await client.call_tool(f"{name}_environment", {})).content
            assert block.model_dump()["text"] == f"of {name}"


class Remote(Quiet):
    """A server over HTTP of one tool, which is offered to who has the token."""

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        tool = {"name": self.headers["x-user"], "inputSchema": {"type": "object"}}
        result = {"initialize": ABOUT, "tools/list": {"tools": [tool]}}.get(message["method"])
        if self.headers["authorization"] != "Bearer t0ken":
            self.send_error(401)
            return
        answer = {"result": result} if result else {"error": {"code": -32601, "message": "unknown"}}
        body = (
            json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}) if "id" in message else ""
        )
        self.send_response(200 if body else 202)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_GET(self) -> None:
        self.send_error(405)


@pytest.mark.long
@pytest.mark.anyio
async def test_a_wrapped_server_over_http_gets_its_headers(env: Environment) -> None:
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Remote)) as port:
        file = settings(
            env,
            "codex",
            f'[mcp_servers.w]\nurl = "http://127.0.0.1:{port}/mcp"\n'
            'bearer_token_env_var = "TOKEN"\nhttp_headers = { X-User = "tool_of_ann" }\n',
        )
        wrap(HOSTS["codex"], (), [FETCHSTASH, "serve"], env)
        wrapped = tomllib.loads(file.read_text())["mcp_servers"]["w"]
        passed_on = {"TOKEN": "t0ken", "OTHER": "not for it"}
        own = {name: passed_on[name] for name in wrapped["env_vars"]} | wrapped["env"]
        own["FETCHSTASH_STORE_FOLDER"] = str(env.home / "store")
        server = StdioServerParameters(command=wrapped["command"], args=wrapped["args"], env=own)
        async with Client(server, mode="legacy") as client:
            tools = (await client.list_tools()).tools
    assert "tool_of_ann" in [tool.name for tool in tools]
