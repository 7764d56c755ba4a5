"""Every block of Python in the documents runs, against a site on loopback."""

import re
from pathlib import Path
from typing import Any

import pytest

from fetchstash import handlers
from fetchstash.cli.demo.site import make_pdf
from tests.loopback import Site

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(page, number, id=f"{page.stem}-{number}")
    for page in PAGES
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
    if page.name == "handlers.md":  # the page says where its names come from
        names = {name: getattr(handlers, name) for name in handlers.__all__}
        names |= {"sniff": None, "PoHandler": object}
    exec(compile(code, f"{page.name} block {number}", "exec"), names)
    if page.name == "client.md":
        assert names["answer"] == "gpt-5 answers"
        assert len(client.sizes) == 2
        assert (tmp_path / "store").exists()


def test_the_pages_that_show_python_are_found() -> None:
    ids = {str(block.id) for block in BLOCKS}
    assert ids >= {"client-0", "handlers-0", "library-0"}
