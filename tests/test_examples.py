"""The examples run, and the hosts' configurations start the server that they name."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from fetchstash.cli import commands
from fetchstash.cli.demo.site import make_pdf
from fetchstash.config import load
from scripts.drive.loopback import Loopback
from scripts.drive.speech import Step
from tests.loopback import Site
from tests.server.test_stdio import flags as flags_of

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[1] / "examples"
HOSTS = sorted((EXAMPLES / "hosts").iterdir())
BOOK = "".join(
    f"## Chapter {n}\n\nThe answer to question {n} is {n * 3}.\n\n" for n in range(1, 2_001)
)


def run(name: str, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    folder = Path(sys.executable).parent
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, **(environment or {})}
    command = [sys.executable, "-P", str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def flags(site: Site, tmp_path: Path) -> list[str]:
    return flags_of(site, tmp_path)


@pytest.mark.long
def test_the_agents_client_finds_the_place_and_reads_around_it(
    site: Site, flags: list[str]
) -> None:
    out = run(
        "agent_client.py", site.put("/book.md", BOOK, "text/markdown"), "question 1234 is", *flags
    )
    assert "The answer to question 1234 is 3702." in out
    assert "## Chapter 1234\n" in out


@pytest.mark.long
def test_an_agents_client_reads_through_a_teams_service(
    site: Site, flags: list[str], tmp_path: Path
) -> None:
    fetchstash = str(Path(sys.executable).parent / "fetchstash")
    create = [fetchstash, "token", "create", "--tenant", "acme", "--name", "ci"]
    create += ["--folder", str(tmp_path / "store"), "--json"]
    made = subprocess.run(create, capture_output=True, text=True, timeout=60, check=True)
    token = json.loads(made.stdout)["token"]
    url = site.put("/book.md", BOOK, "text/markdown")
    command = [fetchstash, "serve", "--http", "127.0.0.1:0", *flags]
    unconfined = os.environ | {"FETCHSTASH_EXTRACT_CONFINE": "auto"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=unconfined) as served:
        assert served.stdout
        line = served.stdout.readline()
        service = re.findall(r"http://\S+", line)[0]
        environment = {"STASH_TOKEN": token}
        out = run("agent_client_http.py", service, url, "question 1234 is", environment=environment)
        served.terminate()
        assert served.wait(60) == 0
    assert line.endswith("/mcp to who sends a token.\n")
    assert "The answer to question 1234 is 3702." in out


@pytest.fixture
def environment(site: Site, tmp_path: Path) -> dict[str, str]:
    return {
        "FETCHSTASH_STORE_FOLDER": str(tmp_path / "store"),
        "FETCHSTASH_FETCH_ALLOW_HOSTS": f"127.0.0.1:{site.port}",
        "FETCHSTASH_FETCH_RESPECT_ROBOTS": "false",
    }


def test_a_program_prints_a_documents_text(site: Site, environment: dict[str, str]) -> None:
    url = site.put("/book.md", BOOK, "text/markdown")
    assert run("library_text.py", url, environment=environment) == f"{BOOK}\n"


def test_a_program_prints_the_lines_that_match(site: Site, environment: dict[str, str]) -> None:
    url = site.put("/book.md", BOOK, "text/markdown")
    out = run("library_grep.py", url, "question 1234 is", environment=environment)
    assert out == "line 4935: The answer to question 1234 is 3702.\n"


def test_a_program_prints_a_sum_over_rows(site: Site, environment: dict[str, str]) -> None:
    url = site.put("/sales.csv", "region,price\nEU,1.10\nUS,2\nEU,2.20\n", "text/csv")
    out = run("library_rows.py", url, "count, sum(price) by region", environment=environment)
    assert out == "region,count,sum(price)\nEU,2,3.30\nUS,1,2\n"


def test_a_program_prints_a_page_of_a_local_pdf(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "report.pdf").write_bytes(make_pdf(["Of rivers.", "Of hills."], title="A report"))
    out = run("library_pdf.py", str(tmp_path / "report.pdf"), "2", environment=environment)
    assert ": PDF, report.pdf, " in out
    assert "Of hills." in out
    assert "Of rivers." not in out


def test_a_program_finds_a_passage_in_a_site(site: Site, environment: dict[str, str]) -> None:
    pages = [f'<a href="{n}.html">{n}</a> <p>The answer {n} is {n * 3}.' for n in range(1, 4)]
    url = site.put("/guide/", "".join(pages))
    for n, text in enumerate(pages, start=1):
        site.put(f"/guide/{n}.html", f"<title>Page {n}</title><main><h1>{n}</h1>{text}</main>")
    out = run("library_site.py", url, "answer", "9", environment=environment)
    assert out.startswith("4 pages by links\n-- art_")
    assert "The answer 3 is 9." in out


def test_a_program_keeps_a_tools_long_result(environment: dict[str, str]) -> None:
    out = run("library_results.py", environment=environment)
    path = re.match(r"Results saved to (\S+) \(\d+ chars\)\n\nPreview:\n", out)
    assert path
    assert json.loads(Path(path[1]).read_text())[4_999] == {"id": 4_999, "square": 24_990_001}
    assert len(out) < 6_000


def test_no_program_of_the_library_is_longer_than_12_lines() -> None:
    programs = [*EXAMPLES.glob("library_*.py"), *EXAMPLES.glob("tools_*.py")]
    assert len(programs) == 8
    for path in programs:
        text = path.read_text(encoding="utf-8")
        code = text.split("\n")[ast.parse(text).body[0].end_lineno :]
        assert len([line for line in code if line]) <= 12


def test_the_agents_loop_answers_out_of_a_long_document_in_a_small_context(
    site: Site, flags: list[str]
) -> None:
    url = site.put("/book.md", BOOK, "text/markdown")
    find = {"artifact_ref": url, "pattern": "question 777 is", "context": 0}
    with Loopback({}, conclude=lambda heard: f"It says: {heard[-1].text}") as model:
        fetch = Step("fetch_content", {"url": url, "maxChars": 1_000})
        model.play([fetch, Step("artifact_grep", find)])
        asked = "What is the answer to question 777?"
        out = run("agent_loop.py", model.url("/v1"), asked, *flags)
    assert "The answer to question 777 is 2331." in out
    assert len(model.requests) == 3
    assert len(json.dumps(model.requests[-1]["messages"])) < len(BOOK) / 20


@pytest.mark.parametrize("path", HOSTS, ids=lambda path: path.stem)
def test_a_hosts_configuration_names_flags_and_a_profile_that_are_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    servers = data.get("mcpServers") or data.get("servers") or data["mcp_servers"]
    entry = servers["fetchstash"]
    assert entry["command"].endswith("/scripts/run")
    command, *given = entry["args"]
    assert command == "serve"
    context = commands.commands["serve"].make_context("serve", list(given))
    profile = context.params["setting__views__profile"]
    assert profile.replace("-", "_") in path.stem
    assert load({"views.profile": profile}).profile == profile


def test_the_script_that_hosts_start_is_installed() -> None:
    assert shutil.which("fetchstash", path=str(Path(sys.executable).parent))
