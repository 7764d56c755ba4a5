"""Opening a kept file in the program that the system has for it."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from select import select

import anyio
import pytest

from fetchstash.cli import main
from fetchstash.store import Facts, StoreLimits, open_store
from tests.cli.terminal import Terminal
from tests.loopback import Site
from tests.store.conftest import put_into


class Opener:
    """An xdg-open that ends with a code; the copies that it was given are ``opened``."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.opened: list[str] = []

    def __call__(self, words: list[str], **_: object) -> "Opener":
        self.opened.append(words[-1])
        return self

    def wait(self, _: float) -> int:
        return self.code


def kept(folder: Path, **facts: str) -> str:
    """Put an artifact into a store and return its reference."""

    async def put() -> str:
        store = await open_store(StoreLimits(folder, run="default"))
        ref = (await put_into(store, None, b"bytes", Facts(**facts))).artifact_ref  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        await store.aclose()
        return ref

    return anyio.run(put)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path))

    def which(program: str) -> str:
        return program

    monkeypatch.setattr(shutil, "which", which)


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    ("media_type", "kind", "name", "wanted"),
    [
        ("application/pdf", "pdf", "report.exe", ".pdf"),
        ("text/html", "html", "page.hta", ".html"),
        ("text/x-python", "code", "run.py", ".txt"),
        ("text/plain", "text", "start.bat", ".txt"),
        ("image/png", "image", "a.png", ".png"),
        ("application/x-ipynb+json", "notebook", "a.ipynb", ".txt"),
        ("application/x-msdownload", "unknown_binary", "a.pdf", ""),
        ("application/java-archive", "archive", "a.zip", ""),
    ],
)
@pytest.mark.parametrize("code", [0, 3])
def test_a_kept_file_is_opened_under_the_extension_of_what_it_is(
    media_type: str,
    kind: str,
    name: str,
    wanted: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    opener = Opener(code)
    monkeypatch.setattr(subprocess, "Popen", opener)
    ref = kept(tmp_path / "store", media_type=media_type, content_kind=kind, name=name)
    with pytest.raises(SystemExit) as ended:
        main(["open", ref, "--folder", str(tmp_path / "store")])
    said = capsys.readouterr().err
    assert [Path(copy).name for copy in opener.opened] == ([f"{ref}{wanted}"] if wanted else [])
    assert ended.value.code == (0 if wanted and not code else 2)
    assert ("may be a program" in said) is (not wanted)
    assert (f"No program of this system opens {wanted}." in said) is bool(wanted and code)


@pytest.fixture
def opened(run: Terminal) -> Path:
    """Put an xdg-open on the PATH that writes what it is given to a pipe; return the pipe."""
    tools, notes = run.folder / "tools", run.folder / "opened"
    tools.mkdir()
    os.mkfifo(notes)
    for name in ("xdg-open", "open"):
        (tools / name).write_text(f'#!/bin/sh\nprintf %s "$1" > {notes}\n')
        (tools / name).chmod(0o755)
    run.env["PATH"] = f"{tools}{os.pathsep}{run.env['PATH']}"
    return notes


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows opens files by itself")
def test_a_copy_is_opened_that_nobody_can_write_to(run: Terminal, site: Site, opened: Path) -> None:
    url = site.put("/run.sh", "<h1>Title</h1><p>words</p>")
    ref = run.ref(url)
    reader = os.open(opened, os.O_RDONLY | os.O_NONBLOCK)
    run("open", "@1")
    ready, _, _ = select([reader], [], [], 30)
    assert ready
    copy = Path(os.read(reader, 4_096).decode())
    assert copy.name == f"{ref}.html"
    assert copy.read_text() == "<h1>Title</h1><p>words</p>"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o400
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    old = copy.parent / "old.txt"
    old.write_text("x")
    os.utime(old, (0, 0))
    run("open", ref[4:11])
    assert not old.exists()
    os.close(reader)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="Windows opens files by itself")
def test_what_may_be_a_program_and_what_is_not_kept_are_not_opened(
    run: Terminal, site: Site, opened: Path
) -> None:
    site.put("/a.pdf", b"MZ\x90\x00" + bytes(200), "application/pdf")
    run("fetch", site.url("/a.pdf"))
    done = run("open", "@1", code=2)
    assert "may be a program. Save it with `fetchstash get " in done.stderr
    assert "[unknown_ref]" in run("open", "@2", code=3).stderr
    run.env["PATH"] = str(run.folder)
    run("fetch", site.put("/a.txt", "words", "text/plain"))
    assert "This system has no xdg-open." in run("open", "@1", code=2).stderr
