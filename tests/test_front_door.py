"""``import fetchstash``: what it gives, how little it costs, and its errors for a wrong call."""

import gc
import inspect
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import fetchstash
from fetchstash import errors
from fetchstash.errors import BadArgument, FetchstashError
from tests.loopback import Site

PAGE = "<title>Torque</title><h1>Torque</h1><p>Turn it to 12 Nm.</p>"
SETTINGS = ("STORE_FOLDER", "FETCH_ALLOW_HOSTS", "FETCH_RESPECT_ROBOTS")


@pytest.fixture
def environment(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set what the command would read, too."""
    values = (str(tmp_path / "store"), f"127.0.0.1:{site.port}", "false")
    for name, value in zip(SETTINGS, values, strict=True):
        monkeypatch.setenv(f"FETCHSTASH_{name}", value)


def test_all_equals_the_visible_names() -> None:
    for name in fetchstash.__all__:
        assert getattr(fetchstash, name).__module__.startswith("fetchstash.")
    visible = {
        name
        for name, value in vars(fetchstash).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert visible - {"TYPE_CHECKING", "lazy_names"} == set(fetchstash.__all__)
    assert dir(fetchstash) == sorted(fetchstash.__all__)
    tree = {name for name, item in vars(errors).items() if isinstance(item, type)}
    assert {name for name in tree if issubclass(getattr(errors, name), FetchstashError)} <= visible
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fetchstash.nothing


@pytest.mark.slow
def test_importing_it_imports_no_room_and_no_library() -> None:
    program = (  # these come from the standard library
        "import gc, importlib, sys, typing; before = set(sys.modules); import fetchstash; "
        "print(*sorted(set(sys.modules) - before))"
    )
    command = [sys.executable, "-P", "-c", program]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert out.split() == ["fetchstash", "fetchstash.system"]


@pytest.mark.slow
def test_the_command_is_a_module_too() -> None:
    command = [sys.executable, "-P", "-m", "fetchstash", "--version"]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert out == f"fetchstash, version {fetchstash.__version__}\n"


@pytest.mark.in_process
@pytest.mark.anyio
@pytest.mark.usefixtures("environment")
async def test_the_environment_is_read_as_by_the_command_and_settings_override_it(
    site: Site, tmp_path: Path
) -> None:
    url = site.put("/torque.html", PAGE, "text/html")
    async with fetchstash.open_stash() as stash:
        page = await stash.fetch(url)
        assert str(stash.settings.store.folder) == str(tmp_path / "store")
        assert page.preview == await page.text() == "# Torque\n\nTurn it to 12 Nm.\n"
        assert (page.outline[0].title, page.size) == ("Torque", len(PAGE))
        assert str(page) == f"{page.ref}: HTML page, torque.html, 60 bytes, 28 characters"
        assert [str(match) for match in await page.grep("Nm")] == ["3:Turn it to 12 Nm."]
        assert str(await page.slice(start=3)) == "Turn it to 12 Nm.\n"
        assert "3:Turn it" in str(await page.search("turn"))
        async with page.raw() as file:
            assert file.read_text() == PAGE
        assert fetchstash.as_shown(page).startswith("[Fetched HTML page artifact: torque.html")
        assert page.ref in str(await stash.list())
    other = {"store.url": "memory:"}
    async with fetchstash.open_stash(other) as stash:
        with pytest.raises(fetchstash.UnknownRef):
            await stash.get(page.ref)


@pytest.mark.in_process
@pytest.mark.usefixtures("environment")
def test_a_program_without_a_loop_has_the_same(site: Site, tmp_path: Path) -> None:
    url = site.put("/torque.html", PAGE, "text/html")
    with fetchstash.open_stash_sync() as stash:
        page = stash.fetch(url)
        assert page.preview == page.text()
        assert [match.line for match in page.grep("Nm")] == [3]
        with page.raw() as file:
            assert file.read_text() == PAGE
        stash.export(page.ref, tmp_path / "copy.md")
        assert (tmp_path / "copy.md").read_text() == page.text()
        good, bad = stash.fetch_many([url, "http://localhost.invalid/"])
        assert not isinstance(good, fetchstash.Failure)
        assert good.slice(start=3).text == "Turn it to 12 Nm.\n"
        assert isinstance(bad, fetchstash.Failure)
        assert str(bad).endswith("(http://localhost.invalid/)")
        assert fetchstash.as_shown(good).startswith("[Fetched HTML page")


def test_both_doors_open_to_the_same_methods() -> None:
    from fetchstash.stash import Artifact, Stash, SyncArtifact, SyncStash

    for ours, blocking in ((Stash, SyncStash), (Artifact, SyncArtifact)):
        own = {name for name in vars(ours) if not name.startswith("_")}
        fields = {
            "settings",
            "store",
            "documents",
            "intake",
            "scans",
            "screenshots",
            "stash",
            "target",
            "portal",
            "rooms",
            "close",
            "aclose",
        }
        assert own - fields == {n for n in vars(blocking) if not n.startswith("_")} - fields


@pytest.mark.anyio
@pytest.mark.usefixtures("environment")
async def test_every_method_refuses_an_argument_of_a_wrong_type_by_its_name() -> None:
    async with fetchstash.open_stash({"store.url": "memory:"}) as stash:
        public = (name for name in vars(type(stash)) if name[0] != "_")
        for name in (name for name in public if callable(getattr(stash, name))):
            method: Any = getattr(stash, name)
            for parameter in inspect.signature(method).parameters:
                with pytest.raises((BadArgument, TypeError)) as error:  # or one that is missing
                    method(**{parameter: object()}).send(None)
                if not isinstance(error.value, TypeError):
                    start = f"[bad_argument] {parameter} is of the type object. It must be "
                    assert str(error.value).startswith(start)
                    assert not str(error.value).endswith("be .")


WRONG: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("fetch_many", ["https://example.org/?key=secret"], {}, "of the type str. It must be a list"),
    ("fetch_many", [[b""]], {}, "of the type list. It must be a list, each item a string."),
    ("fetch", ["https://a.org/"], {"max_chars": "9"}, "'9'. It must be a whole number or None."),
    ("list", [], {"limit": True}, "True. It must be a whole number."),
    ("grep", [None, ["art_a"]], {}, "None. It must be a string."),
    ("slice", ["art_a"], {"unit": "line"}, "'line'. It must be one of lines, chars, bytes, "),
]


@pytest.mark.anyio
@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(("method", "args", "options", "line"), WRONG)
async def test_a_wrong_type_is_said_with_what_it_must_be(
    method: str, args: list[Any], options: dict[str, Any], line: str
) -> None:
    async with fetchstash.open_stash({"store.url": "memory:"}) as stash:
        with pytest.raises(BadArgument, match=f" is {re.escape(line)}"):
            await getattr(stash, method)(*args, **options)


@pytest.mark.parametrize("name", ["open_stash", "tool_functions", "as_shown", "context_result"])
def test_a_function_refuses_what_it_does_not_take(name: str) -> None:
    with pytest.raises(BadArgument, match=r"is 3\. It must be a"):
        getattr(fetchstash, name)(3)


def test_a_number_is_no_folder() -> None:
    with pytest.raises(BadArgument, match=r"store\.folder is 3 \(argument\)\. It must be a text\."):
        fetchstash.open_stash_sync({"store.folder": 3}).__enter__()


def test_a_mapping_of_settings_is_by_their_names() -> None:
    with pytest.raises(BadArgument, match=r"settings is .* a mapping, each key a string or None"):
        fetchstash.open_stash_sync({3: 1}).__enter__()  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]


@pytest.mark.in_process
def test_a_store_that_keeps_nothing_needs_no_folder_that_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("some words\n")
    settings = {"store.folder": f"{os.devnull}/none", "store.ephemeral": True}
    with fetchstash.open_stash_sync(settings) as stash:
        assert len(repr(stash)) < 200
        assert stash.add_file(tmp_path / "notes.txt").preview == "some words\n"


@pytest.mark.in_process
@pytest.mark.usefixtures("environment")
def test_a_page_is_one_artifact_under_every_spelling_of_its_url(site: Site) -> None:
    site.put("/a~b", PAGE, "text/html")
    url = site.url("/a~b")
    spellings = url, f" {url} ", f"{url}#x", url.replace("http", "HTTP")
    with fetchstash.open_stash_sync() as stash:
        refs = {stash.fetch(each).ref for each in spellings}
        assert len(refs) == stash.list().total == 1
        assert {stash.get(url.replace("~", "%7e")).ref, stash.get(f" {url}").ref} == refs
        with pytest.raises(errors.OutOfRange, match=r"Did you mean tables\?"):
            stash.slice(url, path="tabels")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    file = tmp_path / "notes.txt"
    file.write_text("some words\n" * 9)
    return file


@pytest.mark.in_process
@pytest.mark.usefixtures("environment")
def test_a_stash_that_is_closed_says_so(notes: Path) -> None:
    with fetchstash.open_stash_sync() as stash:
        kept = stash.add_file(notes)
    for use in (kept.text, stash.list, lambda: kept.raw().__enter__()):
        with pytest.raises(fetchstash.StoreError, match="The stash is closed"):
            use()


@pytest.mark.in_process
@pytest.mark.usefixtures("environment")
def test_a_stash_is_opened_and_closed_without_a_with(notes: Path) -> None:
    stash = fetchstash.open_stash_sync()
    assert stash.add_file(notes).text() == notes.read_text()
    stash.close()
    stash.close()
    with pytest.raises(fetchstash.StoreError, match="The stash is closed"):
        stash.list()


@pytest.mark.in_process
@pytest.mark.anyio
@pytest.mark.usefixtures("environment")
async def test_a_stash_is_awaited_and_closed_in_a_program_with_a_loop(notes: Path) -> None:
    stash = await fetchstash.open_stash()
    kept = await stash.add_file(notes)
    assert await kept.text() == notes.read_text()
    await stash.aclose()
    await stash.aclose()
    async with await fetchstash.open_stash() as again:
        assert (await again.get(kept.ref)).ref == kept.ref


def run(program: str) -> str:
    """Run a program that reads a document from ``page``; return what it prints."""
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    "how", ["stash = open_stash_sync()", "stash = open_stash_sync().__enter__()"]
)
@pytest.mark.parametrize("end", ["", "raise SystemExit", "os.kill(os.getpid(), signal.SIGINT)"])
def test_a_stash_that_is_left_open_ends_with_its_program(how: str, end: str, site: Site) -> None:
    url = site.put("/torque.html", PAGE, "text/html")
    program = f"""
import os, signal
from fetchstash import open_stash_sync
{how}
print(stash.fetch({url!r}).facts.size_bytes)
try:
    {end or "pass"}
except KeyboardInterrupt:
    pass
"""
    assert run(program) == f"{len(PAGE)}\n"


@pytest.mark.slow
@pytest.mark.usefixtures("environment")
def test_a_forked_child_is_told_and_opens_its_own(site: Site) -> None:
    url = site.put("/torque.html", PAGE, "text/html")
    program = f"""
import os
from fetchstash import FetchstashError, open_stash_sync
stash = open_stash_sync()
stash.fetch({url!r})
def child():
    try:
        stash.list()
    except FetchstashError as error:
        print(error, flush=True)
    stash.close()
    own = open_stash_sync()
    print(own.get({url!r}).facts.size_bytes, flush=True)  # and is left open
if os.fork():
    os.wait()
    print(stash.list().total)
else:
    child()
"""
    told = "The stash was opened before this process was forked. Open one in each process."
    assert run(program) == f"[store_error] {told}\n{len(PAGE)}\n1\n"


@pytest.mark.in_process
@pytest.mark.usefixtures("environment")
def test_a_call_has_a_deadline_of_its_own_and_says_what_is_incomplete(site: Site) -> None:
    def slow(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/plain")
        request.send_header("Content-Length", "1000")
        request.end_headers()
        request.wfile.write(b"some words\n")
        request.wfile.flush()
        waiting.wait(20)

    waiting = threading.Event()
    url = site.put("/slow", script=slow)
    with fetchstash.open_stash_sync() as stash:
        stash.fetch(site.put("/a", "words"))  # what a first call opens is open then
        kept = stash.fetch(url, deadline=1)
        waiting.set()
    assert kept.facts.incomplete
    assert str(kept).endswith(f"11 characters, incomplete: {kept.facts.incomplete}")


@pytest.mark.in_process
@pytest.mark.usefixtures("environment")
def test_a_file_that_is_never_left_keeps_no_stash_open(
    notes: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with fetchstash.open_stash_sync() as stash:
        never_left, left_late = stash.add_file(notes).raw(), stash.add_file(notes).raw()
        assert never_left.__enter__().read_bytes() == notes.read_bytes()
        left_late.__enter__()
    left_late.__exit__(None, None, None)
    assert [record.getMessage() for record in caplog.records] == [
        "A raw() was never left: use each in a `with` block."
    ]


@pytest.mark.in_process
@pytest.mark.usefixtures("environment")
def test_values_of_a_session_are_one_line_each(notes: Path) -> None:
    with fetchstash.open_stash_sync() as stash:
        kept = stash.add_file(notes)
        assert repr(kept) == f"<SyncArtifact {kept.ref}: text, notes.txt, 99 bytes, 99 characters>"
        for value in (
            kept.read(max_chars=9),
            kept.grep("words"),
            stash.search("words"),
            stash.list(),
        ):
            assert "media_type" not in repr(value)


@pytest.mark.in_process
@pytest.mark.usefixtures("environment")
def test_wrong_units_and_values_are_one_clear_line(notes: Path) -> None:
    with fetchstash.open_stash_sync() as stash:
        kept = stash.add_file(notes)
        with pytest.raises(BadArgument, match=r"unit is 'words'\. It must be one of lines, "):
            kept.slice(unit="words")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# --- Rooms that import a name when it is first used.

ROOMS = [
    ".".join(file.relative_to(Path(fetchstash.__path__[0]).parent).parent.parts)
    for file in sorted(Path(fetchstash.__path__[0]).glob("**/__init__.py"))
    if "= lazy_names(" in file.read_text()
]


@pytest.mark.parametrize("name", ROOMS)
def test_the_table_of_a_room_has_its_public_names_and_no_other(name: str) -> None:
    room = import_module(name)
    names = [name for listed in room._MODULES.values() for name in listed.split()]
    assert sorted(names) == sorted(room.__all__)
    assert all(hasattr(room, name) for name in names)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = room.nothing


def test_no_garbage_is_collected_while_a_room_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = tmp_path / "a_room"
    room.mkdir()
    (room / "__init__.py").write_text(
        "from fetchstash.system import lazy_names\n"
        "__getattr__ = lazy_names(__name__, {'_inner': 'COLLECTS', '_broken': 'WORSE'})\n"
    )
    (room / "_inner.py").write_text("import gc\nCOLLECTS = gc.isenabled()\n")
    (room / "_broken.py").write_text("raise ValueError\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    a_room = import_module("a_room")
    assert not a_room.COLLECTS
    with pytest.raises(ValueError):  # noqa: PT011 - its own
        _ = a_room.WORSE
    assert gc.isenabled()


@pytest.mark.slow
def test_reading_the_settings_imports_the_limits_of_a_room_and_nothing_else_of_it() -> None:
    rooms = ("fetch", "handlers", "store", "text")
    program = (
        "import sys, fetchstash.config as c; c.load();"
        " print(*sorted(m.removeprefix('fetchstash.') for m in sys.modules"
        f" if m.startswith('fetchstash.') and m.split('.')[1] in {rooms}))"
    )
    words = [sys.executable, "-P", "-c", program]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    limits = ["fetch._contract", "handlers._limits", "store._limits", "text._limits"]
    own = "text.untyped"  # five functions, by which the settings file is read
    assert sorted(done.stdout.split()) == sorted([*rooms, *limits, own])


@pytest.mark.slow
def test_a_server_lists_its_tools_before_it_imports_what_a_call_needs() -> None:
    program = (
        "import sys, fetchstash.server as s; from fetchstash.config import load;"
        " s.serve_stdio, s.build_server(s.LazyStash(load()));"
        " print(*sorted({'stash', 'render._view', 'fetch._fetcher', 'store._contract', 'sqlite3'}"
        " & {m.removeprefix('fetchstash.') for m in sys.modules}))"
    )
    words = [sys.executable, "-P", "-c", program]
    assert subprocess.run(words, check=True, capture_output=True, text=True).stdout == "\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "heavy"),
    [
        ("import fetchstash.store", "httpx2 mcp pydantic pypdfium2 re2 selectolax PIL tiktoken"),
        ("import fetchstash.gateway._serve", "mcp mcp_types pydantic httpx2 starlette PIL"),
        ("import fetchstash.cli as c; c.main(['--help'])", "mcp httpx2 pydantic re2 tiktoken PIL"),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(program: str, heavy: str) -> None:
    at_exit = f"print(sorted({set(heavy.split())} & set(sys.modules)))"
    code = f"import atexit, sys; atexit.register(lambda: {at_exit}); {program}"
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
