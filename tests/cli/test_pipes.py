"""A pipe gets everything, and nothing else."""

import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from select import select

import pytest

from tests.cli.terminal import FETCHSTASH, Terminal, plain, read_all
from tests.loopback import Site

pytestmark = pytest.mark.long

TEXT = "".join(f"line {n} é\n" for n in range(1, 20_001)) + "no feed at the end"


def test_a_demonstration_whose_reader_goes_away_ends_quietly(run: Terminal) -> None:
    words = ["sh", "-c", f"{FETCHSTASH} demo | head -n 1"]
    done = subprocess.run(words, capture_output=True, timeout=120, check=True, env=run.env)
    assert (done.stdout.count(b"\n"), done.stderr) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
@pytest.mark.parametrize(
    ("words", "what"),
    [("--help", b"No space left"), ("config", b"No space left"), ("get @9 --json", b"no @9")],
)
def test_a_stdout_that_is_full_is_one_line(words: str, what: bytes, run: Terminal) -> None:
    line = ["sh", "-c", f"{FETCHSTASH} {words} > /dev/full"]
    done = subprocess.run(line, capture_output=True, timeout=60, check=False, env=run.env)
    assert (done.returncode, done.stderr.count(b"\n"), what in done.stderr) == (3, 1, True)


@pytest.mark.parametrize("command", ["get", "fetch"])
def test_the_whole_text_comes_through_a_pipe(command: str, run: Terminal, site: Site) -> None:
    url = site.put("/long.txt", TEXT, "text/plain; charset=utf-8")
    done = run(command, url)
    assert done.stdout == TEXT
    assert done.stderr == ""
    assert run(command, url, "-o", "-").stdout == TEXT
    assert run("get", url, "--offset", "100").stdout == TEXT[100:]
    assert run("get", url, "--max-chars", "200").stdout == TEXT[:200]


def test_every_match_comes_through_a_pipe_and_every_line_is_whole(
    run: Terminal, site: Site
) -> None:
    long = "x" * 5_000 + " line"
    url = site.put("/long.txt", f"{TEXT}\n{long}\n", "text/plain; charset=utf-8")
    lines = run("grep", "line", url).stdout.splitlines()
    assert len(lines) == 20_001
    assert lines[76] == "77:line 77 é"
    assert lines[-1] == f"20002:{long}"
    assert run("grep", "line", url, "-m", "2").stdout == "1:line 1 é\n2:line 2 é\n"
    assert run("grep", "77 é$", url, "-C", "1", "-m", "2").stdout == (
        "76-line 76 é\n77:line 77 é\n78-line 78 é\n--\n"
        "176-line 176 é\n177:line 177 é\n178-line 178 é\n"
    )
    assert len(run("grep", "line", url, "--json").stdout.splitlines()) == 20_001


def test_grep_takes_the_flags_and_folders_that_grep_takes(run: Terminal, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    for name, text in {
        "a.txt": "tide\na gauge\nfür\ngauges\n",
        "in/b.txt": "gauge\n",
        "in/c.txt": "none\n",
        ".hidden/d.txt": "gauge\n",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    a, b, c = (str(folder / name) for name in ("a.txt", "in/b.txt", "in/c.txt"))
    everywhere = f"{a}:2:a gauge\n{a}:4:gauges\n{b}:1:gauge\n"
    for words, said in (
        (("gauge", str(folder)), everywhere),
        (("-n", "gauge", a, b), everywhere),
        (("-w", "gauge", str(folder)), f"{a}:2:a gauge\n{b}:1:gauge\n"),
        (("-w", "-F", "f", a), ""),
        (("-c", "gauge", str(folder)), f"{a}:2\n{b}:1\n{c}:0\n"),
        (("-c", "gauge", a), "2\n"),
        (("-l", "gauge", str(folder)), f"{a}\n{b}\n"),
        (("-v", "gauge", a), "1:tide\n3:für\n"),
        (("-A", "1", "a gauge", a), "2:a gauge\n3-für\n"),
        (("-B", "1", "a gauge", a), "1-tide\n2:a gauge\n"),
    ):
        assert run("grep", *words, code=0 if said else 1).stdout == said, words
    assert [hit["count"] for hit in run.data("grep", "-c", "gauge", a, b)] == [2, 1]
    assert "no model has them" in run("grep", "-v", "gauge", a, "--as-model", code=2).stdout
    (empty := tmp_path / "empty").mkdir()
    assert "folder without a file" in run("grep", "x", str(empty), code=2).stderr


def test_matches_in_several_sources_are_named_as_grep_names_files(
    run: Terminal, site: Site
) -> None:
    url = site.put("/a.txt", "a needle\n", "text/plain")
    run("fetch", url)
    assert run("grep", "needle", "@1", url).stdout == f"@1:1:a needle\n{url}:1:a needle\n"


def test_the_bytes_come_through_a_pipe(run: Terminal, site: Site) -> None:
    data = bytes(range(256)) * 9_000
    url = site.put("/a.bin", data, "application/octet-stream")
    assert run.in_bytes("get", url, "--raw").stdout == data
    assert run.in_bytes("fetch", url, "--raw", "-o", "-").stdout == data


def test_a_slice_and_the_list_are_whole(run: Terminal, site: Site) -> None:
    url = site.put("/long.txt", TEXT, "text/plain; charset=utf-8")
    assert run("slice", url).stdout == TEXT
    (part,) = run.data("slice", url)
    assert part["text"] == TEXT
    run("fetch", *(site.put(f"/{n}.txt", f"text {n}\n", "text/plain") for n in range(12)))
    rows = [row.split("\t") for row in run("ls").stdout.splitlines()]
    assert len(rows) == 13
    assert [len(row) for row in rows] == [8] * 13
    assert rows[-1][2:6] == [str(len(TEXT.encode())), "text", "long.txt", url]
    assert len(run("ls", "--json").stdout.splitlines()) == 13
    assert len(run("ls", "-n", "2").stdout.splitlines()) == 2


def test_of_several_urls_one_that_fails_makes_the_exit_code_and_the_others_are_shown(
    run: Terminal, site: Site
) -> None:
    urls = [
        site.put("/a.txt", "first\n", "text/plain"),
        site.url("/none"),
        site.put("/b.txt", "last\n", "text/plain"),
    ]
    for command in ("fetch", "get"):
        done = run(command, *urls, code=3)
        assert done.stdout == "first\nlast\n"
        assert done.stderr.startswith(f"{urls[1]}: [http_error] ")
    assert run("grep", "first", *urls, code=3).stdout == f"{urls[0]}:1:first\n"
    done = run("fetch", *urls, "--as-model", code=3)
    assert "[http_error]" in done.stdout


def piped(run: Terminal, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a command whose output goes into pipes."""
    pipe = subprocess.PIPE
    command = [FETCHSTASH, *arguments]
    return subprocess.Popen(command, env=run.env, cwd=run.folder, stdout=pipe, stderr=pipe)


def test_a_reader_that_goes_away_ends_the_command_quietly(run: Terminal, site: Site) -> None:
    url = site.put("/long.txt", TEXT * 20, "text/plain; charset=utf-8")
    run("fetch", url, "-o", "out.txt")
    for arguments in (["get", url], ["grep", "line", url], ["slice", url, "--json"]):
        with piped(run, *arguments) as process:
            assert process.stdout
            assert process.stderr
            process.stdout.read(10)
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(30) == 0


def test_a_file_is_written_as_a_whole_keeps_its_mode_and_its_link(
    run: Terminal, site: Site
) -> None:
    url = site.put("/a.txt", "words\n", "text/plain")
    target, link = run.folder / "a.txt", run.folder / "link.txt"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    run("get", url, "-o", str(link))
    assert link.is_symlink()
    assert target.read_text() == "words\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    run("get", url, "-o", "new.txt")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((run.folder / "new.txt").stat().st_mode) == 0o666 & ~mask
    run("get", url, "-o", "/dev/null")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_file_is_left_as_it_was_where_a_fetch_fails(run: Terminal, site: Site) -> None:
    def break_off(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True

    target = run.folder / "a.txt"
    target.write_text("old")
    run("fetch", site.put("/broken", script=break_off), "-o", str(target), code=3)
    assert target.read_text() == "old"
    assert [path.name for path in run.folder.iterdir() if path.name.startswith(".a")] == []


@pytest.mark.skipif(sys.platform == "win32", reason="closing by a shell of POSIX")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_no_traceback(run: Terminal, closed: str) -> None:
    command = f"'{FETCHSTASH}' get - {closed}; echo $? >{run.folder}/code"
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        env=run.env,
        cwd=run.folder,
        input=b"words\n",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    assert (run.folder / "code").read_text() == "0\n"


def test_the_plain_text_form_of_a_wrong_pattern_names_its_sources(run: Terminal) -> None:
    (run.folder / "notes.txt").write_text("f(x)\n")
    wrong = run("grep", "f(", "notes.txt", code=2).stderr
    assert "`fetchstash grep 'f(' notes.txt --literal`" in wrong
    assert run("grep", "f(", "notes.txt", "--literal").stdout == "1:f(x)\n"


# --- Ctrl-C leaves nothing behind, and what takes long shows itself on a terminal alone.

SECONDS = 60

# However fast or busy the machine is, it is still reading when ^C comes.
ENDLESS = """
import time
from fetchstash.handlers import Format

class Endless:
    name = "endless"

    def extract(self, source, hints, limits):
        while True:
            time.sleep(0.01)

FORMATS = Format(
    kind="text", word="endless", handler=Endless, media_types=("text/x-endless",),
    extensions=("endless",), is_text=True,
)
"""


@contextmanager
def interrupted(run: Terminal, shown: str, *arguments: str) -> Generator[None]:
    """Run a command on a terminal, press ^C once ``shown`` is there, and check what is left."""
    process, leader = run.start(*arguments)
    seen = ""
    while shown not in seen:
        ready, _, _ = select([leader], [], [], SECONDS)
        assert ready, f"{shown!r} was never shown: {seen!r}"
        seen += os.read(leader, 65_536).decode(errors="replace")
    os.write(leader, b"\x03")
    rest = read_all(leader)
    assert process.wait(SECONDS) == 130, seen + rest
    assert "Traceback" not in rest
    assert plain(rest).replace("^C", "").strip() == ""
    yield
    left = {path.name for path in run.folder.iterdir()} - {"store", "given.endless", "plugins"}
    assert left == set()
    assert list((run.folder / "store" / "spool").iterdir()) == []
    with pytest.raises(ProcessLookupError):  # no worker lives on in its group
        os.killpg(process.pid, 0)
    assert run("ls").stdout == ""
    run("doctor")


def test_ctrl_c_while_a_host_does_not_answer(run: Terminal, site: Site) -> None:
    def say_nothing(handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(1)  # returns when the client gives up

    url = site.put("/silent", script=say_nothing)
    with interrupted(run, "no answer yet, 0:01 of at most 0:45", "get", url, "-o", "out.txt"):
        pass


def test_ctrl_c_in_the_middle_of_a_body(run: Terminal, site: Site) -> None:
    def falter_half_way(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/plain")
        handler.send_header("Content-Length", str(2**21))
        handler.end_headers()
        handler.wfile.write(b"words\n" * (2**20 // 6))
        with suppress(OSError):
            while not select([handler.connection], [], [], 0.05)[0]:  # until the client gives up
                handler.wfile.write(b"words\n")

    url = site.put("/half", script=falter_half_way)
    with interrupted(run, "1.0 MB of 2.0 MB", "fetch", url, "-o", "out.txt"):
        pass


def test_ctrl_c_while_a_document_is_read(
    run: Terminal, install_plugin: Callable[[str, str], None]
) -> None:
    install_plugin("endless", ENDLESS)
    run.env |= {"PYTHONPATH": os.environ["PYTHONPATH"], "FETCHSTASH_EXTRACT_PLUGINS": "endless"}
    (run.folder / "given.endless").write_text("a line\n")
    with interrupted(run, "given.endless: reading", "get", "given.endless", "-o", "out.txt"):
        pass


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send to one process")
def test_a_pipe_shows_no_progress_and_an_interrupt_says_nothing(run: Terminal, site: Site) -> None:
    asked = threading.Event()

    def say_nothing(handler: BaseHTTPRequestHandler) -> None:
        asked.set()
        handler.rfile.read(1)

    url = site.put("/silent", script=say_nothing)
    with piped(run, "fetch", url) as process:
        assert asked.wait(SECONDS)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=SECONDS) == (b"", b"")
        assert process.returncode == 130
