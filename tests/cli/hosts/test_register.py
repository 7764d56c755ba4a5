import json
import os
import re
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, strategies as st

from fetchstash.cli import commands
from fetchstash.cli.hosts import _files
from fetchstash.cli.hosts._files import Malformed
from fetchstash.cli.hosts._register import register, shown, unregister
from fetchstash.cli.hosts._servers import HOSTS, Environment, Host
from fetchstash.errors import BadArgument, Busy, StoreError
from tests.cli.hosts.conftest import settings
from tests.cli.terminal import FETCHSTASH, read_all, start_on_terminal

CURSOR = HOSTS["cursor"]
INSTALL = (Path(__file__).parents[3] / "docs" / "install.md").read_text(encoding="utf-8")
START = ["/opt/fetchstash", "serve"]
FILE_HOSTS = [host for host in HOSTS.values() if not host.program]
COMMAND_HOSTS = [host for host in HOSTS.values() if host.program]
FILES = {
    ("linux", "claude-desktop"): ".config/Claude/claude_desktop_config.json",
    ("darwin", "claude-desktop"): "Library/Application Support/Claude/claude_desktop_config.json",
    ("win32", "claude-desktop"): "AppData/Roaming/Claude/claude_desktop_config.json",
    ("linux", "cursor"): ".cursor/mcp.json",
    ("win32", "cursor"): ".cursor/mcp.json",
    ("linux", "vscode"): ".config/Code/User/mcp.json",
    ("darwin", "vscode"): "Library/Application Support/Code/User/mcp.json",
    ("win32", "vscode"): "AppData/Roaming/Code/User/mcp.json",
    ("darwin", "windsurf"): ".codeium/windsurf/mcp_config.json",
    ("linux", "zed"): ".config/zed/settings.json",
    ("darwin", "zed"): ".config/zed/settings.json",
    ("win32", "zed"): "AppData/Roaming/Zed/settings.json",
}
posix = pytest.mark.skipif(os.name == "nt", reason="links, modes and scripts of POSIX")


@pytest.fixture
def file(env: Environment) -> Path:
    text = '{\n  "mcpServers": {\n    "other": {"command": "x"}\n  }\n}\n'
    return settings(env, "cursor", text)


def backups(file: Path) -> list[Path]:
    return sorted(set(file.parent.iterdir()) - {file})


@pytest.mark.parametrize(("system", "name"), FILES, ids=[" ".join(key) for key in FILES])
def test_each_host_has_its_file_on_each_system(system: str, name: str, tmp_path: Path) -> None:
    assert HOSTS[name].file(Environment(system, tmp_path, {})) == tmp_path / FILES[system, name]


def test_the_folders_that_the_environment_names_are_used(tmp_path: Path) -> None:
    zed, desktop = HOSTS["zed"], HOSTS["claude-desktop"]
    xdg = Environment("linux", tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "conf")})
    assert zed.file(xdg) == tmp_path / "conf" / "zed" / "settings.json"
    assert zed.file(Environment("linux", tmp_path, {"XDG_CONFIG_HOME": "not/absolute"})) == (
        tmp_path / ".config" / "zed" / "settings.json"
    )
    windows = Environment("win32", tmp_path, {"APPDATA": str(tmp_path / "Roaming")})
    assert desktop.file(windows) == tmp_path / "Roaming/Claude/claude_desktop_config.json"


@pytest.mark.parametrize("host", FILE_HOSTS, ids=lambda host: host.name)
def test_a_host_without_a_file_gets_one_that_only_its_owner_reads(
    host: Host, env: Environment
) -> None:
    said = register(host, START, env)
    file = host.file(env)
    entry = json.loads(file.read_text())[host.section]["fetchstash"]
    assert (entry["command"], entry["args"]) == ("/opt/fetchstash", ["serve"])
    assert str(file) in said
    assert backups(file) == []
    if os.name != "nt":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_existing_settings_are_kept_and_backed_up_and_remove_undoes_the_entry(
    file: Path, env: Environment
) -> None:
    before = file.read_text()
    file.chmod(0o640)
    said = register(CURSOR, START, env)
    servers = json.loads(file.read_text())["mcpServers"]
    assert set(servers) == {"other", "fetchstash"}
    (backup,) = backups(file)
    assert str(backup) in said
    assert backup.read_text() == before
    if os.name != "nt":
        assert {stat.S_IMODE(path.stat().st_mode) for path in (file, backup)} == {0o640}
    assert "nothing was changed" in register(CURSOR, START, env)
    assert backups(file) == [backup]
    assert "Removed" in unregister(CURSOR, env)
    assert file.read_text() == before
    assert len(backups(file)) == 2


def test_a_new_place_of_the_program_replaces_the_old_one_and_keeps_what_was_added(
    file: Path, env: Environment
) -> None:
    register(CURSOR, START, env)
    value: Any = json.loads(file.read_text())
    entry = value["mcpServers"]["fetchstash"]
    entry["env"] = {"A": "b"}
    entry["args"].append("--ephemeral")
    file.write_text(json.dumps(value))
    register(CURSOR, ["/usr/bin/fetchstash", "serve"], env)
    assert json.loads(file.read_text())["mcpServers"]["fetchstash"] == {
        "command": "/usr/bin/fetchstash",
        "args": ["serve", "--ephemeral"],
        "env": {"A": "b"},
    }
    for _ in range(2):
        register(CURSOR, ["/usr/bin/fetchstash", "serve", "--browser", "auto"], env)
        args = json.loads(file.read_text())["mcpServers"]["fetchstash"]["args"]
        assert args == ["serve", "--ephemeral", "--browser", "auto"]


def test_removing_a_missing_entry_says_so(env: Environment, file: Path) -> None:
    assert "does not have it" in unregister(CURSOR, env)
    file.unlink()
    assert "does not have it" in unregister(CURSOR, env)
    assert not file.exists()


@posix
def test_a_symbolic_link_stays_one(file: Path, env: Environment) -> None:
    real = env.home / "dotfiles" / "mcp.json"
    real.parent.mkdir()
    file.replace(real)
    file.symlink_to(real)
    register(CURSOR, START, env)
    assert file.is_symlink()
    assert "fetchstash" in json.loads(real.read_text())["mcpServers"]


def test_a_byte_order_mark_stays(file: Path, env: Environment) -> None:
    file.write_bytes(b"\xef\xbb\xbf{}")
    register(CURSOR, START, env)
    assert file.read_bytes().startswith(b"\xef\xbb\xbf{\n")


@pytest.mark.parametrize("data", [b'{"mcpServers": ', b'{"mcpServers": []}', b"\xff\xfe{\x00}\x00"])
def test_a_malformed_file_is_left_as_it_is(data: bytes, file: Path, env: Environment) -> None:
    file.write_bytes(data)
    with pytest.raises(BadArgument, match="Nothing was changed") as caught:
        register(CURSOR, START, env)
    assert str(file) in caught.value.line()
    assert "\n" not in caught.value.line()
    assert file.read_bytes() == data
    assert backups(file) == []


def test_an_unwritable_file_gives_an_error_that_says_so(
    file: Path, env: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = file.read_text()

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(StoreError, match=r"mcp\.json cannot be changed: Permission denied\."):
        register(CURSOR, START, env)
    monkeypatch.undo()
    assert file.read_text() == before


def test_a_change_by_another_program_meanwhile_is_not_overwritten(
    file: Path, env: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def other(descriptor: int) -> None:
        fsync(descriptor)
        file.write_text("{}")

    monkeypatch.setattr(os, "fsync", other)
    with pytest.raises(Busy):
        register(CURSOR, START, env)
    assert file.read_text() == "{}"
    assert not [path for path in backups(file) if "new" in path.name]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that alone is PATH."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def put(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!{sys.executable}\nimport sys\n{script}\n")
    (folder / name).chmod(0o700)


@posix
@pytest.mark.parametrize("host", COMMAND_HOSTS, ids=lambda host: host.name)
def test_a_host_with_a_command_of_its_own_is_registered_by_it(
    host: Host, env: Environment, programs: Path
) -> None:
    put(programs, host.program, "print('said:', *sys.argv[1:])")
    words = " ".join((*host.scope, "fetchstash", *host.separator, *START))
    assert f"said: mcp add {words}" in register(host, START, env)
    removed = unregister(host, env)
    assert removed.endswith(f"said: mcp remove {' '.join((*host.scope, 'fetchstash'))}")


@posix
def test_a_refusal_of_a_hosts_command_is_one_line(env: Environment, programs: Path) -> None:
    with pytest.raises(BadArgument, match="command claude is not on PATH"):
        register(HOSTS["claude-code"], START, env)
    put(programs, "claude", "sys.exit('MCP server fetchstash already exists in user config')")
    assert "has it already" in register(HOSTS["claude-code"], START, env)
    put(programs, "claude", "sys.exit('no right to do that')")
    with pytest.raises(StoreError, match="no right to do that"):
        register(HOSTS["claude-code"], START, env)
    put(programs, "gemini", "print('Server \"fetchstash\" not found in user settings.')")
    assert "Gemini CLI does not have it: nothing" in unregister(HOSTS["gemini"], env)


OWN_ENTRIES = {
    "claude-code": '{"mcpServers": {"fetchstash": {"type": "stdio", "command": "/old", %s}}}',
    "codex": '# mine\n[mcp_servers.fetchstash] # here\ncommand = "/old"\n%s\n',
    "gemini": '{"mcpServers": {"fetchstash": {"command": "/old", %s, "trust": true}}}',
}


@pytest.mark.parametrize(("name", "text"), OWN_ENTRIES.items(), ids=OWN_ENTRIES)
def test_an_entry_of_a_host_with_a_command_is_brought_up_to_date_in_place(
    name: str, text: str, env: Environment, programs: Path
) -> None:
    host, sign = HOSTS[name], " = " if name == "codex" else ": "
    key = "args" if name == "codex" else '"args"'
    file = host.file(env)
    file.parent.mkdir(exist_ok=True)
    put(programs, "claude", "sys.exit(1)")
    for before, after in (
        ('["serve", "--ephemeral"]', '["serve", "--ephemeral"]'),
        ('["--from", "old.whl", "fetchstash", "serve"]', '["serve"]'),
    ):
        file.write_text(text % f"{key}{sign}{before}")
        assert "Registered with" in register(host, START, env)
        written = file.read_text()
        servers = tomllib.loads(written)["mcp_servers"] if name == "codex" else None
        entry = (servers or json.loads(written)["mcpServers"])["fetchstash"]
        assert (entry["command"], entry["args"]) == (START[0], json.loads(after))
        assert set(entry) >= {"trust"} or name != "gemini"
        assert "# here" in written or name != "codex"
        assert "has it already: nothing was changed" in register(host, START, env)


@pytest.mark.parametrize("name", ["codex", "cursor"])
def test_an_entry_over_http_of_the_same_name_is_not_mixed_with_ours(
    name: str, env: Environment
) -> None:
    text = '{"mcpServers": {"fetchstash": {"url": "https://team.example/mcp"}}}'
    if name == "codex":
        text = '[mcp_servers.fetchstash]\nurl = "https://team.example/mcp"\n'
    file = settings(env, name, text)
    with pytest.raises(BadArgument, match=r"Nothing was changed\. Take it out first: --remove"):
        register(HOSTS[name], START, env)
    assert file.read_text() == text


def run(home: Path, *arguments: str) -> Result:
    environment = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    return CliRunner().invoke(commands, ["register", *arguments], env=environment)


@posix
def test_print_shows_what_would_be_added_and_adds_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, "zed", "--print")
    entry = json.loads(done.stdout)["context_servers"]["fetchstash"]
    assert Path(entry["command"]).is_absolute()
    assert str(tmp_path / ".config" / "zed" / "settings.json") in done.stderr
    line = run(tmp_path, "claude-code", "--print").stdout
    assert line.startswith("claude mcp add -s user fetchstash -- /")
    assert list(tmp_path.iterdir()) == []


@posix
def test_the_command_registers_and_removes(tmp_path: Path) -> None:
    assert run(tmp_path, "cursor").exit_code == 0
    file = tmp_path / ".cursor" / "mcp.json"
    assert "fetchstash" in json.loads(file.read_text())["mcpServers"]
    assert run(tmp_path, "cursor", "--remove").exit_code == 0
    assert json.loads(file.read_text()) == {"mcpServers": {}}
    file.write_text("{")
    refused = run(tmp_path, "cursor")
    assert refused.exit_code == 2
    assert refused.stderr.count("\n") == 1


@posix
def test_without_a_host_those_on_the_machine_are_listed_where_nobody_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    none = run(tmp_path)
    assert none.exit_code == 2
    assert "No host was found on this machine. Name one: claude-code, " in none.stderr
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".config" / "zed").mkdir(parents=True)
    done = run(tmp_path, "--remove")
    assert [line.partition(" ")[2] for line in done.stdout.splitlines()] == [
        "register cursor --remove",
        "register zed --remove",
    ]
    assert done.stderr.startswith("Nothing was changed")
    assert list((tmp_path / ".cursor").iterdir()) == []


@posix
@pytest.mark.slow
def test_on_a_terminal_each_host_is_offered_and_one_that_fails_does_not_end_it(
    tmp_path: Path,
) -> None:
    for folder in (".codex", ".cursor", ".codeium/windsurf", ".config/zed"):
        (tmp_path / folder).mkdir(parents=True)
    broken = tmp_path / ".cursor" / "mcp.json"
    broken.write_text("{")
    env = {"HOME": str(tmp_path), "PATH": str(tmp_path), "TERM": "dumb"}
    process, leader = start_on_terminal([FETCHSTASH, "register"], env, tmp_path, columns=200)
    os.write(leader, b"y\nn\n\n")
    shown = read_all(leader)
    assert process.wait(60) == 2, shown
    assert "Codex" not in shown  # its program is not on PATH
    asked = re.findall(r"(\w+): register \w+\? \[Y/n\]", shown)
    assert asked == ["Cursor", "Windsurf", "Zed"]
    assert broken.read_text() == "{"
    assert not (tmp_path / ".codeium" / "windsurf" / "mcp_config.json").exists()
    zed = json.loads((tmp_path / ".config" / "zed" / "settings.json").read_text())
    assert "fetchstash" in zed["context_servers"]


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_the_page_of_installation_shows_what_register_does(host: Host) -> None:
    start = ["uvx", "fetchstash"]
    if host.program:
        assert f"\n{' '.join(host.add('fetchstash', start))}\n" in INSTALL
        return
    section = INSTALL.partition(f"**{host.title}**")[2]
    block = re.search(r"```json\n(.*?)```", section, re.DOTALL)
    assert block
    assert json.loads(block[1]) == json.loads(shown(host, start))


# --- test_jsonc

ENTRY = {"command": "/bin/fetchstash", "args": ["serve"]}
PATH = ["mcpServers", "fetchstash"]

ZED = """\
// Zed settings
{
    "theme": "One Dark", // dark
    /* servers of ours */
    "mcpServers": {
        "other": {"command": "x", "args": ["-y", "a//b"]}, // keep
    },
    "buffer_font_size": 15, // the last
}
"""

LAYOUTS = {
    "an empty file": "",
    "spaces alone": " \n",
    "an empty object": "{}",
    "an object without servers": '{\n  "theme": "dark"\n}\n',
    "servers, none of them": '{\n\t"mcpServers": {}\n}\n',
    "another server": '{\n  "mcpServers": {\n    "other": {"command": "x"}\n  }\n}\n',
    "one line": '{"mcpServers": {"other": {"command": "x"}}, "a": 1}',
    "Windows' line ends": '{\r\n  "mcpServers": {\r\n    "other": {"command": "x"}\r\n  }\r\n}\r\n',
    "comments and trailing commas": ZED,
    "a comment in an empty object": '{\n  "mcpServers": { // none yet\n  }\n}\n',
}


def plain(text: str) -> Any:
    """Read a layout of above as JSON."""
    text = re.sub(r"(?m)(^|\s)//.*$|/\*.*?\*/", "", text)
    return json.loads(re.sub(r",(\s*[}\]])", r"\1", text) if text.strip() else "{}")


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_a_server_is_added_and_removed_and_all_else_stays(text: str) -> None:
    after = _files.with_value(text, PATH, ENTRY)
    expected = plain(text)
    expected.setdefault("mcpServers", {})["fetchstash"] = ENTRY
    assert plain(after) == expected
    assert re.findall(r"//.*|/\*.*?\*/", after) == re.findall(r"//.*|/\*.*?\*/", text)
    assert after.count("\n") == after.count("\r\n") or "\r" not in text
    assert _files.with_value(after, PATH, ENTRY) == after
    removed = _files.without_value(after, PATH)
    assert plain(removed) == {"mcpServers": {}, **plain(text)}
    assert removed == text or "other" not in text


def test_the_text_of_a_settings_file_with_comments_is_written_as_its_neighbours() -> None:
    assert _files.with_value(ZED, PATH, ENTRY) == ZED.replace(
        "// keep\n",
        "// keep\n"
        '        "fetchstash": {\n'
        '            "command": "/bin/fetchstash",\n'
        '            "args": [\n'
        '                "serve"\n'
        "            ]\n"
        "        },\n",
    )


def test_a_file_of_comments_alone_has_no_server_to_remove() -> None:
    for text in ("", "// nothing yet\n"):
        assert _files.value_at(text, PATH) is None
        assert _files.without_value(text, PATH) == text
        assert _files.value_at(_files.with_value(text, PATH, ENTRY), PATH) == ENTRY


BROKEN = {
    "no end": '{"a": 1',
    "no comma": '{"a": 1 "b": 2}',
    "single quotes": "{'a': 1}",
    "two values": "{} {}",
    "a bare word": '{"a": yes}',
    "a comment without its end": '{"a": 1 /* }',
    "a list of servers": '{"mcpServers": []}',
    "a list": "[1]",
    "a nest": "[" * 5000,
    "nothing after a comma in a list": '{"a": [,]}',
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_malformed_file_is_refused_with_line_and_column(text: str) -> None:
    with pytest.raises(Malformed, match="line 1, column"):
        _files.with_value(text, PATH, ENTRY)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)
TRIVIA = st.sampled_from(["", " ", "\n", "\n    ", "\t", " // note }\n", '/* , { " */', "\n// x\n"])


@pytest.mark.long
@given(st.data(), st.dictionaries(st.text(), JSON), st.lists(st.text(), min_size=1, max_size=2))
def test_any_layout_of_any_object_is_edited_right(
    data: st.DataObject, value: dict[str, Any], path: list[str]
) -> None:
    def spaced(value: Any) -> str:
        def trivia() -> str:
            return data.draw(TRIVIA)

        if isinstance(value, dict) and value:
            parts = [
                f"{trivia()}{json.dumps(key)}{trivia()}:{trivia()}{spaced(item)}{trivia()}"
                for key, item in cast("dict[str, Any]", value).items()
            ]
            return "{" + ",".join(parts) + data.draw(st.sampled_from(["", ","])) + trivia() + "}"
        return f"{{{trivia()}}}" if value == {} else json.dumps(value)

    text = spaced(value)
    assert _files.value_at(text, []) == value
    for removed in value:
        others = {key: item for key, item in value.items() if key != removed}
        assert _files.value_at(_files.without_value(text, [removed]), []) == others
    target = value
    for key in path[:-1]:
        if not isinstance(target.setdefault(key, {}), dict):
            return
        target = target[key]
    target[path[-1]] = ENTRY
    changed = _files.with_value(text, path, ENTRY)
    assert _files.value_at(changed, []) == value
    del target[path[-1]]
    assert _files.value_at(_files.without_value(changed, path), []) == value
