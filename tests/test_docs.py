"""The documents: everything that there is has a heading, and nothing is named that is not there."""

import os
import re
import tomllib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

import fetchstash
from compare._report import verdict
from fetchstash import errors, handlers
from fetchstash.cli import Command, commands
from fetchstash.cli.demo.site import make_pdf
from fetchstash.cli.hosts._servers import HOSTS
from fetchstash.config import KEYS, load
from fetchstash.server.tools import tool_specs
from fetchstash.stash import Artifact, Stash
from fetchstash.store import Facts
from fetchstash.text.facts import LANDINGS, PAGE_VERDICTS
from scripts.make import recipes, recording, surface, tables
from tests.loopback import Site

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "SECURITY.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "ROADMAP.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
TOOLS = {spec.name: spec for spec in tool_specs(load(surface.EVERY_TOOL))}
LEAVES = {
    name: [*command.commands.values()] if isinstance(command, click.Group) else [command]
    for name, command in commands.commands.items()
}
"""Each command, or what it has below it, under its name."""
FLAGS = {
    option
    for leaves in LEAVES.values()
    for command in leaves
    for parameter in command.params
    if isinstance(parameter, click.Option)
    for option in (*parameter.opts, *parameter.secondary_opts)
} | {"--help", "--version"}


EVERYWHERE = {"--json", "--as-model", "--help-settings", "--refresh", "--max-chars", "--all-runs"}
"""Options of many commands, which the page tells once."""


RENEW = "run .venv/bin/python scripts/make/renew.py"


def prose() -> list[Path]:
    """The pages that people read."""
    folders = (ROOT.glob("*.md"), (ROOT / "docs").rglob("*.md"), (ROOT / ".github").glob("*.md"))
    return sorted(page for pages in folders for page in pages)


@pytest.mark.parametrize("page", prose(), ids=lambda page: page.name)
def test_a_page_has_lines_of_at_most_100_columns(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    # A row of a table cannot be broken.
    assert [line for line in lines if len(line) > 100 and not line.startswith("|")] == []


def test_the_public_surface_is_the_one_that_is_kept() -> None:
    kept = set((ROOT / "tests" / "surface.txt").read_text(encoding="utf-8").splitlines())
    now = set(surface.lines().splitlines())
    assert (sorted(kept - now), sorted(now - kept)) == ([], []), (
        "The first list is gone or changed, which breaks the programs of users (docs/stability.md "
        f"says what may be); the second is new. If all of it is meant, {RENEW}."
    )


def reference(_: str) -> str:
    return surface.reference()


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("configuration.md", tables.with_settings),
        ("handlers.md", tables.with_formats),
        ("reference.md", reference),
        pytest.param(
            "recipes.md",
            recipes.run_again,
            marks=[
                pytest.mark.slow,
                pytest.mark.long,
                pytest.mark.skipif(os.name == "nt", reason="its commands run on a POSIX terminal"),
            ],
        ),
    ],
)
def test_a_page_shows_what_the_code_says(name: str, make: Callable[[str], str]) -> None:
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert make(page) == page, RENEW


def test_the_terminal_of_the_readme_shows_the_first_recipe() -> None:
    made = recording.picture((ROOT / "docs/recipes.md").read_text(encoding="utf-8"))
    assert (ROOT / "docs/terminal.svg").read_text(encoding="utf-8") == made, RENEW
    assert re.findall(r">\$</tspan>.*?> fetchstash (\w+)", made) == ["fetch", "grep", "slice"]
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    assert "(docs/terminal.svg)" in first_screen


def headings(page: str) -> set[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return set(re.findall(r"^#+ (.+)$", text, re.MULTILINE))


def test_every_setting_has_a_heading() -> None:
    assert headings("configuration.md") >= set(KEYS)


def test_how_it_works_shows_the_layers_that_are_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    page = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    assert " → ".join(layers) in " ".join(page.split())


def test_every_tool_and_argument_has_a_description() -> None:
    assert headings("tools.md") >= set(TOOLS)
    text = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8")
    for name, spec in TOOLS.items():
        section = text.partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert {
            argument for argument in spec.properties if f"`{argument}`" not in section
        } == set(), name


def test_every_error_code_has_a_heading() -> None:
    assert headings("errors.md") - {"Errors"} == surface.error_codes()


def test_every_command_has_a_heading() -> None:
    assert {heading for heading in headings("cli.md") if heading.startswith("fetchstash ")} == {
        f"fetchstash {name}" for name in commands.commands
    }


def test_every_option_of_a_command_stands_under_its_heading() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for name, leaf in ((name, leaf) for name, leaves in LEAVES.items() for leaf in leaves):
        assert isinstance(leaf, Command)
        section = text.partition(f"## fetchstash {name}\n")[2].partition("\n## ")[0]
        for option in leaf.own_options:
            told = text if set(option.opts) & EVERYWHERE else section
            assert any(re.search(rf"`[^`]*{flag}\b", told) for flag in option.opts), option.opts


def test_every_fact_has_a_description() -> None:
    text = (ROOT / "docs" / "facts.md").read_text(encoding="utf-8")
    assert [f.name for f in fields(Facts) if f"`{f.name}`" not in text] == [
        "caching"
    ]  # how long a copy stays fresh is our own affair


def test_every_verdict_landing_and_aggregate_stands_on_its_page() -> None:
    facts = (ROOT / "docs" / "facts.md").read_text(encoding="utf-8")
    for name, codes in (("page_verdict", PAGE_VERDICTS), ("landed", LANDINGS)):
        row = facts.partition(f"| `{name}` |")[2].partition("\n")[0]
        assert set(re.findall(r"`(\w+)`", row)) == codes.keys()
    queries = (ROOT / "docs" / "queries.md").read_text(encoding="utf-8")
    grammar = (ROOT / "fetchstash" / "handlers" / "_data" / "_query.py").read_text(encoding="utf-8")
    (functions,) = re.findall(r"FUNCTION\.3: /\(([\w|]+)\)", grammar)
    spellings = {"avg": "mean", "average": "mean"}
    assert all(f"`{spellings.get(name, name)}(x)`" in queries for name in functions.split("|"))


def test_the_library_page_names_every_public_name() -> None:
    text = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    errors_of_ours = {name for name in fetchstash.__all__ if hasattr(errors, name)}
    methods = {
        name
        for owner in (Stash, Artifact)
        for name, item in vars(owner).items()
        if not name.startswith("_") and (callable(item) or isinstance(item, property))
    }
    names = (set(fetchstash.__all__) - errors_of_ours - {"Settings"}) | methods
    assert {name for name in names if not re.search(rf"\b{name}\b", text)} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_only_settings_flags_tools_and_links_that_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # An excerpt of an example has the names of its SDK.
    text = re.sub(r"```python\n# examples/.*?```", "", text, flags=re.DOTALL)
    if page.name in {
        "CONTRIBUTING.md",
        "comparison.md",
        "comparison-cases.md",
    }:  # other people's commands and answers
        text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    sections = {key.section for key in KEYS.values()}
    for section, name in re.findall(r"`(\w+)\.([a-z_]+)`", text):
        assert section not in sections or f"{section}.{name}" in KEYS
    for variable in re.findall(r"FETCHSTASH_[A-Z]+_[A-Z_]+", text):
        assert variable in {key.variable for key in KEYS.values()}
    for flag in re.findall(r"`(?:fetchstash [a-z ]+ )?(--[a-z-]*[a-z])(?![a-z-])", text):
        assert flag in FLAGS
    for name in re.findall(r"`fetchstash ([a-z]+)", text):
        assert name in commands.commands
    for tool in re.findall(r"\b((?:artifact|fetch|get|stash)_[a-z_]+)\(", text):
        assert tool in TOOLS or hasattr(Stash, tool) or tool == "stash_oversized"
    for link, anchor in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", text):
        target = page.parent / link if link else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), f"{link}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_only_command_lines_that_the_command_takes(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    lines = [line.partition("#")[0] for line in lines if line.startswith("fetchstash ")]
    lines += re.findall(r"`(fetchstash [a-z][^`]*)`", text)
    for line in lines:
        _, name, *words = line.split()
        command = commands.commands.get(name)
        if command is None:
            assert not re.fullmatch("[a-z]+", name), line
            continue
        if isinstance(command, click.Group) and words:
            assert words[0] in command.commands, line
            command = command.commands[words.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts}
        known |= {option for parameter in command.params for option in parameter.secondary_opts}
        flags = {word.partition("=")[0] for word in words if re.match("--[a-z]", word)}
        assert flags <= known | {"--help"}, line


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as a code host and mkdocs make them."""
    found = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


QUESTIONS = {
    "what": ("README.md", "An MCP server, a command and a Python library"),
    "why": ("README.md", "One tool result can end an agent's session"),
    "how to install it in my host": ("docs/install.md", "## By the host's own command"),
    "is it safe": ("SECURITY.md", "what is promised"),
    "what does it cost": ("docs/start.md", "## What it costs"),
    "how to remove it": ("docs/install.md", "## Take it out again"),
    "where is my data": ("docs/start.md", "## Where your data is"),
    "offline": ("docs/start.md", "## Offline"),
    "license": ("LICENSE", "Apache License"),
    "it does not work": ("docs/trouble.md", "## The host shows no tools"),
    "how to update it": ("docs/trouble.md", "## Update it"),
    "how to help": ("CONTRIBUTING.md", "## Changes"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_readme_answers_a_newcomer_or_is_one_link_away_from_the_answer(question: str) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    page, answer = QUESTIONS[question]
    assert page == "README.md" or re.search(rf"\]\({re.escape(page)}(#[\w-]+)?\)", readme)
    assert answer in (ROOT / page).read_text(encoding="utf-8")


def test_the_list_for_models_names_every_page_of_the_site() -> None:
    def read(name: str) -> str:
        return (ROOT / name).read_text(encoding="utf-8")

    assert tables.llms_txt(read) == read("llms.txt"), RENEW
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= set(
        re.findall(r"/main/(docs/[\w-]+\.md)", read("llms.txt"))
    )


def test_the_comparison_begins_with_what_its_table_says() -> None:
    page = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    section = page.partition("\n## Servers\n")[2].partition("\n## ")[0]
    table = "\n".join(line for line in section.splitlines() if line.startswith("|"))
    assert page.startswith(f"# Comparison\n\n{verdict(table)}\n\n")
    worse = table.replace("| fetchstash | 22 / 0 / 0 |", "| fetchstash | 1 / 0 / 21 |")
    assert "is right in 1 of 22 cases, wrong in 21" in verdict(worse)
    assert verdict("").startswith("There is no verdict")


def test_readme_compares_by_the_rows_that_the_comparison_printed() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    page = ROOT / "docs" / "comparison.md"
    printed = page.read_text(encoding="utf-8") if page.exists() else ""
    assert tables.with_peers(readme, printed) == readme, RENEW
    rows = "| | safety |\n|---|---|\n| a | 1 / 0 / 0 |\n| planted: b | 0 |"
    made = f"\n## Servers\n\n{rows}\n\n## More\n|"
    shown = tables.with_peers(readme, made)
    assert "| a | 1 / 0 / 0 |\n\n<!--" in shown
    assert "planted" not in shown
    assert tables.with_peers(shown, made) == shown


def test_the_changes_to_come_say_each_thing_once_in_one_screen() -> None:
    unreleased = (ROOT / "CHANGELOG.md").read_text().split("(unreleased)\n")[-1].split("\n## ")[0]
    leads = re.findall(r"^- \*\*(.+?)\*\*", unreleased, re.MULTILINE)
    assert len(unreleased.splitlines()) <= 60
    assert len(leads) == len(set(leads))


def test_readme_has_a_line_to_install_for_each_host_and_at_most_150_lines() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.count("\n") <= 150
    assert readme.count("![") == 2  # a terminal, and what it is good for
    for host in HOSTS.values():
        line = " ".join(host.add("fetchstash", ["uvx", "fetchstash"])) if host.program else ""
        assert re.search(
            rf"^{line or f'uvx fetchstash register {host.name}'} +# ", readme, re.MULTILINE
        )


# --- Every block of Python in the documents runs, against a site on loopback.
SHOWING_PYTHON = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(page, number, id=f"{page.stem}-{number}")
    for page in SHOWING_PYTHON
    for number in range(page.read_text(encoding="utf-8").count("```python\n"))
]
REPORT = make_pdf([f"Page {n}. The torque is {n} Nm." for n in range(1, 41)], title="A report")


class Overflowing:
    """A client of a provider that refuses what is too long, as docs/client.md calls it."""

    def __init__(self) -> None:
        self.chat = self.completions = self
        self.sizes: list[int] = []

    def create(self, *, model: str, messages: list[dict[str, Any]]) -> str:
        self.sizes.append(sum(len(str(message["content"])) for message in messages))
        if self.sizes[-1] > 4_000:
            raise ValueError("maximum context length is 1000 tokens, you requested 9000 tokens")
        return f"{model} answers"


def history() -> list[dict[str, Any]]:
    call = {"id": "1", "type": "function", "function": {"name": "fetch", "arguments": "{}"}}
    again = {**call, "id": "2"}
    return [
        {"role": "user", "content": "Sum up the page."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "A line of a page.\n" * 2_000},
        {"role": "assistant", "content": None, "tool_calls": [again]},
        {"role": "tool", "tool_call_id": "2", "content": "The end."},
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "number"), BLOCKS)
def test_a_block_of_python_runs(
    page: Path, number: int, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.put("/report.pdf", REPORT, "application/pdf")
    site.put("/guide/", "<h1>Guide</h1><p>The tide gauge stands at the pier.</p>")
    (tmp_path / "report.pdf").write_bytes(REPORT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FETCHSTASH_STORE_FOLDER", str(tmp_path / "store"))
    monkeypatch.setenv("FETCHSTASH_FETCH_ALLOW_HOSTS", f"127.0.0.1:{site.port}")
    monkeypatch.setenv("FETCHSTASH_FETCH_RESPECT_ROBOTS", "false")
    text = page.read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[number]
    if code.startswith("# examples/"):  # run there, by scripts/ci adapters, with its SDK
        name, _, shown = code.partition("\n")
        assert shown in (ROOT / name.removeprefix("# ")).read_text(encoding="utf-8")
        return
    if code.startswith("# pip install"):  # run by scripts/ci adapters, too
        compile(code, page.name, "exec")
        return
    code = code.replace("https://example.org", f"http://127.0.0.1:{site.port}")
    client = Overflowing()
    names: dict[str, Any] = {"client": client, "MODEL": "gpt-5", "history": history()}
    if page.name == "plugins.md":  # the page says where its names come from
        names = {name: getattr(handlers, name) for name in handlers.__all__}
        names |= {"sniff": None, "PoHandler": object}
    exec(compile(code, f"{page.name} block {number}", "exec"), names)
    if page.name == "client.md" and "answer" in code:
        assert names["answer"] == "gpt-5 answers"
        assert len(client.sizes) == 2
        assert (tmp_path / "store").exists()


def test_the_pages_that_show_python_are_found() -> None:
    ids = {str(block.id) for block in BLOCKS}
    assert ids >= {"client-0", "plugins-0", "library-0"}
