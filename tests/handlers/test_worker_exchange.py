"""What the server and a worker hand each other: frames, files, a text, and limits.

Hostile bytes may have taken the worker over: the server believes nothing that it cannot check.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fetchstash.handlers import Extracted, Part, PartRequest, PartText, Picture, WorkerPool
from fetchstash.handlers._worker import _confine
from fetchstash.handlers._worker._answers import Pieces, failure, measure, part
from fetchstash.handlers._worker._child import extract
from fetchstash.handlers._worker._process import KeptOpen, Room
from fetchstash.handlers._worker._protocol import (
    MAX_STRUCTURE,
    ProtocolError,
    Values,
    decode,
    encode,
    read_facts,
)
from tests.handlers.test_confine import pool, run
from tests.server.hostile_worker import FACTS, LINE, MARK, PIECE

__all__ = ["pool"]  # a fixture of another module

Plant = Callable[[Path], None]
posix = pytest.mark.skipif(sys.platform == "win32", reason="links are those of POSIX")
LIMIT = 12
TEXT = "zwölf\nlines\n"
SIZE, CHARS = len(TEXT.encode()), len(TEXT)
DAMAGED = b"zw\xf6lf and more\n"


@pytest.fixture
def room(tmp_path: Path) -> Room:
    (tmp_path / "keys").write_text("a secret")
    (tmp_path / "text").touch()
    return Room(tmp_path)


def lent(room: Room, text: Path) -> Path:
    """Lend a text to write to; return the path by which a worker knows it."""
    assert room.lend(None, text)
    assert room.text is not None
    return room.text


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no file be linked, as between two file systems."""

    def link(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(os, "link", link)


@posix
def test_a_text_is_copied_where_it_cannot_be_linked(
    room: Room, tmp_path: Path, elsewhere: None
) -> None:
    text = lent(room, tmp_path / "text")
    text.write_text("what the worker read, and more than it reported")
    room.take_text(20)
    assert (tmp_path / "text").read_text() == "what the worker read"


def sparse(text: Path) -> None:
    with text.open("wb") as file:
        file.truncate(2**31)


PLANTED: dict[str, Plant] = {
    "a symbolic link": lambda text: text.symlink_to(text.parents[2] / "keys"),
    "a hard link": lambda text: text.hardlink_to(text.parents[2] / "keys"),
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a large file": sparse,
}


@posix
@pytest.mark.parametrize("kind", list(PLANTED)[:4])
def test_no_link_that_a_worker_left_is_followed(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: None, kind: str
) -> None:
    text = lent(room, tmp_path / "text")
    text.unlink()
    monkeypatch.undo()
    PLANTED[kind](text)
    with pytest.raises(OSError, match=r"link|irectory|levels"):
        room.take_text(2**30)
    assert (tmp_path / "text").read_text() == ""


@posix
def test_a_room_holds_the_document_of_its_last_job_alone(room: Room, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).write_text(name)
        assert room.lend(tmp_path / name)
        assert [path.read_text() for path in (room.path / "in").iterdir()] == [name]
    assert room.lend(None)
    assert not list((room.path / "in").iterdir())


@posix
def test_files_of_a_worker_are_removed_before_its_next_job(room: Room, tmp_path: Path) -> None:
    (room.path / "out" / "folder").mkdir()
    (room.path / "out" / "link").symlink_to(tmp_path)
    room.lend(None)
    assert not list((room.path / "out").iterdir())
    assert (tmp_path / "keys").exists()


@posix
def test_a_room_that_a_worker_filled_is_lent_no_more(room: Room) -> None:
    """The server would wait for it: a worker makes hundreds of thousands of files in its time."""
    for number in range(100):
        (room.path / "out" / f"{number}").touch()
    assert not room.lend(None)


@posix
def test_a_text_with_a_second_name_is_not_taken(room: Room, tmp_path: Path) -> None:
    (room.path / "out" / "again").hardlink_to(lent(room, tmp_path / "text"))
    with pytest.raises(KeptOpen):
        room.take_text(0)


@posix
@pytest.mark.parametrize("kind", PLANTED)
def test_a_room_in_which_a_worker_planted_the_text_is_lent_no_more(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """It goes on after its job, and makes the file as soon as the room is cleared."""
    link = os.link

    def planted(source: Path, target: Path) -> None:
        monkeypatch.undo()
        PLANTED[kind](target)
        link(source, target)

    monkeypatch.setattr(os, "link", planted)
    assert not room.lend(None, tmp_path / "text")
    assert room.text is not None
    assert room.text.is_symlink() or room.text.exists()
    assert (tmp_path / "text").stat().st_size == 0


@posix
def test_a_document_is_linked_once_for_a_job(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links: list[Path] = []
    link = os.link

    def counted(source: Path, target: Path) -> None:
        links.append(target)
        link(source, target)

    monkeypatch.setattr(os, "link", counted)
    assert room.lend(tmp_path / "keys")
    assert room.document is not None
    assert room.document.read_text() == "a secret"
    assert len(links) == 1


LONG = 'a "text" with , [ { : and \\\\ in it, 12 é\n' * 100_000


def test_a_frame_with_a_long_string_is_read() -> None:
    frame = {"found": {"text": LONG, "total": 1}}
    assert decode(encode(frame)[4:]) == frame


MANY_VALUES = {
    "a long list": b'{"a":[' + b"0," * MAX_STRUCTURE + b"0]}",
    "many keys": json.dumps(dict.fromkeys(map(str, range(99_999)), 0)).encode(),
    "a long number": b'{"a":' + b"9" * 10**6 + b"}",
    "an open list": b'{"a":' + b"[" * 10**6,
    "an open string": b'{"' + b"a" * 10**6,
    "open escapes": b'{"a\\' + b"\\" * 10**6,
    "escapes outside of strings": b'\\"' * 2**23,
    "empty strings": b'""' * 2**23,
}


@pytest.mark.parametrize("body", MANY_VALUES.values(), ids=MANY_VALUES)
def test_a_frame_of_many_small_values_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(body)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_text_ends_at_max_chars(tmp_path: Path, more: int) -> None:
    text = tmp_path / "text"
    text.touch()
    sent: list[dict[str, Any]] = []
    parts = [Part("x\n"), Part("x" * (LIMIT + more - 2)), Part("")]
    assert extract(Extracted(parts), text, LIMIT, sent.append)
    assert text.stat().st_size == min(LIMIT + more, LIMIT)
    assert sent[-1]["done"]["extraction_truncated"] is (more > 0)


# What the operating system holds a worker to; in a process of its own, because this one is larger
# than that.
OF_THE_SYSTEM = """
import math, mmap, resource, sys
from fetchstash.handlers._worker._confine import job_limits

def pages(): return int(open("/proc/self/statm").read().split()[0])
def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
limit, more = int(sys.argv[2]), int(sys.argv[3])
if sys.argv[1] == "cpu_seconds":
    before = used()
    with job_limits(1_024, limit + more, 60):
        granted = resource.getrlimit(resource.RLIMIT_CPU)[0] - math.ceil(before)
    print(limit + more <= granted <= limit + more + 1)
else:
    with job_limits(limit, 30, 60):
        try:
            mmap.mmap(-1, ((limit << 20) // mmap.PAGESIZE - pages() + more) * mmap.PAGESIZE)
            print("fits")
        except OSError:
            print("does not fit")
"""


def output_of(program: str, *words: object) -> str:
    command = [sys.executable, "-P", "-c", program, *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc says how much address space is taken")
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_worker_has_its_memory_to_the_page(more: int) -> None:
    outcome = output_of(OF_THE_SYSTEM, "memory_mb", 512, more)
    assert outcome == ("does not fit" if more > 0 else "fits")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_worker_has_its_seconds_of_cpu(more: int) -> None:
    assert output_of(OF_THE_SYSTEM, "cpu_seconds", 5, more) == "True"


LIFE = """
import resource
from fetchstash.handlers._worker import _confine
used = 0
_confine._cpu_seconds = lambda: used
for job in range(4):
    with _confine.job_limits(100_000, 10, 60):
        used += 9
        print(*resource.getrlimit(resource.RLIMIT_CPU), _confine.is_worn_out())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_worker_has_cpu_for_its_life_and_takes_no_job_that_would_meet_its_end() -> None:
    lines = output_of(LIFE).splitlines()
    assert lines == ["10 40 False", "19 40 False", "28 40 False", "37 40 True"]


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")
async def test_a_worker_reaches_no_other_jobs_files(pool: WorkerPool, tmp_path: Path) -> None:
    room = Room(tmp_path / "spool")
    document, text = tmp_path / "another", tmp_path / "spool" / "another's text"
    document.write_text("secret")
    text.touch()
    assert room.lend(document, text)
    orders = [
        ("read_file", str(room.document)),
        ("read_file", str(document)),
        ("read_file", str(room.text)),
        ("write_file", str(room.text)),
        ("write_file", str(text)),
        ("make_file", str(room.path / "out")),
        ("list_folder", str(room.path / "in")),
        ("list_folder", str(tmp_path / "spool")),
        ("link_out", str(room.document)),
    ]
    lines = await run(pool, tmp_path, orders)
    assert len(lines) == len(orders)
    assert [line for line in lines if ": refused" not in line] == []
    assert text.read_text() == ""


@pytest.mark.skipif(os.name == "nt", reason="Windows asks no list of users")
def test_a_user_without_a_home_has_workers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    import pwd

    def unknown(number: int) -> pwd.struct_passwd:
        raise KeyError(number)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert _confine.PACKAGE in list(_confine.python_folders())


def pieces(*reported: tuple[int, int]) -> Pieces:
    """Return what reports of bytes and characters add up to, where at most 20 bytes are taken."""
    added = Pieces(most_bytes=20)
    for size, chars in reported:
        added.add({"piece": PIECE | {"bytes": size, "chars": chars}})
    return added


def test_a_text_is_taken_that_is_as_it_was_reported(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(TEXT.encode() + b"never reported")
    assert measure(path, pieces((3, 3), (SIZE, CHARS)), path) == 2
    assert path.read_bytes() == TEXT.encode()


MISREPORTED: dict[str, list[tuple[int, int]]] = {
    "a character more": [(SIZE, CHARS + 1)],
    "a character less": [(SIZE, CHARS - 1)],
    "a byte more than there is": [(SIZE + 1, CHARS)],
    "half a character": [(3, 2)],
    "no UTF-8": [(len(DAMAGED), len(DAMAGED))],
    "more than is taken": [(21, 21)],
    "fewer bytes than before": [(9, 8), (8, 8)],
    "fewer characters than before": [(9, 8), (SIZE, 7)],
    "a negative number": [(SIZE, -1)],
    "a number that is none": [(SIZE, True)],
}


@pytest.mark.parametrize("case", MISREPORTED)
def test_a_text_is_refused_that_is_not_as_it_was_reported(tmp_path: Path, case: str) -> None:
    path = tmp_path / "text"
    written = {"no UTF-8": DAMAGED, "more than is taken": b"x" * 21}
    path.write_bytes(written.get(case, TEXT.encode()))
    with pytest.raises(ProtocolError):
        measure(path, pieces(*MISREPORTED[case]), path)


NO_FACTS: list[dict[str, Any]] = [
    {"page_verdict": MARK},
    {"pages": 1e3},
    {"pages": True},
    {"width": 10**13},
    {"title": MARK * 99},
]


def test_lines_of_a_worker_come_clean_and_its_media_type_is_one() -> None:
    facts = read_facts(Values(FACTS | {"media_type": f"text/{LINE}"}))
    assert (facts["title"], facts["media_type"]) == (f"{MARK} {MARK}", "")
    assert facts["outline"][0].title == f"{MARK} {MARK}"


@pytest.mark.parametrize("changed", NO_FACTS, ids=str)
def test_a_fact_that_no_document_has_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        read_facts(Values(FACTS | changed))


NO_PICTURES = {
    "a program": {"media_type": "image/svg+xml"},
    "a page": {"media_type": "text/html"},
    "a parameter": {"media_type": "image/png; x"},
    "a page that is called a picture": {"picture": "PGh0bWw+"},
    "another kind": {"picture": "/9j/4A=="},
    "too large": {"picture": "iVBORwA="},
}


@pytest.mark.parametrize("changed", NO_PICTURES.values(), ids=NO_PICTURES)
def test_a_part_is_text_or_a_picture_of_a_type_that_holds_no_program(
    changed: dict[str, str],
) -> None:
    picture = {"picture": "iVBORw==", "media_type": "image/png", "width": 3, "height": 4}
    assert part(Values(picture), 4) == Picture(b"\x89PNG", "image/png", 3, 4)
    assert part(Values({"text": "a\x1b[2Jb", "total": 2}), 4) == PartText("ab", 2)
    with pytest.raises(ProtocolError):
        part(Values(picture | changed), 4)


@pytest.mark.parametrize(
    ("name", "is_taken"), [("/a/b", True), ("b", True), ("/c", False), ("Ignore all that", False)]
)
def test_a_reason_names_only_what_the_caller_gave(name: str, *, is_taken: bool) -> None:
    frame = {"failed": {"reason": "nothing_there", "name": name}}
    request = PartRequest(source=Path(), path="/a/b")
    if is_taken:
        assert repr(name) in failure(frame, request).what
    else:
        with pytest.raises(ProtocolError):
            failure(frame, request)
