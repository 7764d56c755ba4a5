"""The web handlers of docs/library.md answer, with Flask and FastAPI themselves."""

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import Site

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        find_spec("flask") is None or find_spec("fastapi") is None,
        reason="Flask and FastAPI are not here: scripts/ci extras installs them",
    ),
]

PAGE = Path(__file__).parents[1] / "docs" / "library.md"
TEXT = "<main><h1>Tariff</h1><p>A night at the north pier costs 14 kroner.</p></main>"


def program(name: str) -> dict[str, Any]:
    """Run the program of the page that says it needs this package; return what it defines."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = (block for block in blocks if f"# pip install fetchstash {name}\n" in block)
    defined: dict[str, Any] = {"__name__": name}
    exec(compile(block, f"{PAGE.name}: {name}", "exec"), defined)
    return defined


@pytest.fixture
def url(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the address of a page that the settings of the environment allow."""
    monkeypatch.setenv("FETCHSTASH_STORE_FOLDER", str(tmp_path / "store"))
    monkeypatch.setenv("FETCHSTASH_FETCH_ALLOW_HOSTS", f"127.0.0.1:{site.port}")
    return site.put("/tariff", TEXT)


def test_flask_answers_with_the_preview_of_a_page(url: str) -> None:
    defined = program("flask")
    try:
        for _ in range(2):  # the second request finds the stash open
            answer = defined["app"].test_client().get("/preview", query_string={"url": url})
            assert answer.status_code == 200
            assert "costs 14 kroner" in answer.text
    finally:
        defined["stash"]().close()


def test_fastapi_answers_with_the_preview_of_a_page(url: str) -> None:
    testing: Any = import_module("fastapi.testclient")
    with testing.TestClient(program("fastapi")["app"]) as client:
        for _ in range(2):
            answer = client.get("/preview", params={"url": url})
            assert answer.status_code == 200
            assert "costs 14 kroner" in answer.json()
