"""Settings with which a service would start and then fail: each is one line at the start."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fetchstash.config import HttpLimits, load
from fetchstash.errors import BadArgument
from fetchstash.service._checks import check_fetching, check_names
from tests.server.test_stdio import FETCHSTASH


def limits(name: str, *values: str) -> HttpLimits:
    named: dict[str, Any] = {name: values}
    return replace(HttpLimits(), **named)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hosts", "https://fetch.example.org"),
        ("hosts", "Fetch.Example.org"),
        ("hosts", "*"),
        ("hosts", "*.example.org"),
        ("hosts", ""),
        ("hosts", "a b"),
        ("hosts", "a\n"),
        ("hosts", "a/mcp"),
        ("hosts", "::1"),
        ("hosts", "a:b"),
        ("origins", "app.example.org"),
        ("origins", "https://app.example.org/"),
        ("origins", "https://App.example.org"),
        ("origins", "null"),
        ("origins", "*"),
        ("forwarded", "proxy"),
        ("forwarded", "*"),
        ("forwarded", ""),
        ("forwarded", "10.0.0.1/8"),
        ("forwarded", "10.0.0.0/33"),
    ],
)
def test_a_name_that_no_request_has_is_refused(name: str, value: str) -> None:
    with pytest.raises(BadArgument) as caught:
        check_names(limits(name, value))
    assert caught.value.what.startswith(f"http.{name} has {value!r}, which ")


def test_names_that_requests_have_are_taken() -> None:
    check_names(limits("hosts", "fetch.example.org", "a:8443", "10.0.0.1", "[::1]", "[::1]:80"))
    check_names(limits("origins", "https://app.example.org", "http://localhost:3000", "vscode://a"))
    check_names(limits("forwarded", "10.0.0.0/8", "192.0.2.1", "fd00::/8", "::1"))


def test_a_rule_of_fetching_that_cannot_be_read_is_refused_with_its_tenant(tmp_path: Path) -> None:
    file = tmp_path / "team.toml"
    file.write_text('[tenants.acme.fetch]\nallow_nets = ["10.0.0.0/99"]\n')
    with pytest.raises(BadArgument, match=r"^\[bad_argument\] The table \[tenants\.acme\] .*'10.0"):
        check_fetching(load(file=file))
    with pytest.raises(BadArgument, match=r"fetch\.deny_domains"):
        check_fetching(load({"fetch.deny_domains": ["a b"]}))


@pytest.mark.slow
def test_a_wrong_setting_is_one_line_before_anything_is_served(tmp_path: Path) -> None:
    file = tmp_path / "team.toml"
    file.write_text('[http]\nhosts = ["https://fetch.example.org/mcp"]\n')
    words = ["serve", "--http", "127.0.0.1:0", "--folder", str(tmp_path), "--config", str(file)]
    done = subprocess.run([FETCHSTASH, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("[bad_argument] http.hosts has 'https://fetch.example.org/mcp'")
