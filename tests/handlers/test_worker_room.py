"""The room of a worker: what it is lent, and what the server takes out of it."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fetchstash.handlers._worker._room import Room

Make = Callable[[], None]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links are those of POSIX")


@pytest.fixture
def room(tmp_path: Path) -> Room:
    (tmp_path / "keys").write_text("a secret")
    (tmp_path / "text").touch()
    return Room(tmp_path)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no file be linked, as between two file systems."""

    def link(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(os, "link", link)


def test_a_text_is_copied_where_it_cannot_be_linked(
    room: Room, tmp_path: Path, elsewhere: None
) -> None:
    with room.lent({"text": str(tmp_path / "text")}) as inside:
        Path(inside["text"]).write_text("what the worker read")
    assert (tmp_path / "text").read_text() == "what the worker read"


@pytest.mark.parametrize("kind", ["symbolic link", "hard link", "pipe", "folder"])
def test_no_link_that_a_worker_left_is_followed(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: None, kind: str
) -> None:
    with room.lent({"text": str(tmp_path / "text")}) as inside:
        text = Path(inside["text"])
        text.unlink()
        monkeypatch.undo()
        make: dict[str, Make] = {
            "symbolic link": lambda: text.symlink_to(tmp_path / "keys"),
            "hard link": lambda: text.hardlink_to(tmp_path / "keys"),
            "pipe": lambda: os.mkfifo(text),
            "folder": text.mkdir,
        }
        make[kind]()
    assert (tmp_path / "text").read_text() == ""


def test_a_room_holds_the_document_of_its_last_job_alone(room: Room, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).write_text(name)
        assert room.lend(tmp_path / name)
        assert [path.read_text() for path in (room.path / "in").iterdir()] == [name]
    assert room.lend(None)
    assert not list((room.path / "in").iterdir())


def test_files_of_a_worker_are_removed_before_its_next_job(room: Room, tmp_path: Path) -> None:
    (room.path / "out" / "folder").mkdir()
    (room.path / "out" / "link").symlink_to(tmp_path)
    room.lend(None)
    assert not list((room.path / "out").iterdir())
    assert (tmp_path / "keys").exists()


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
    with room.lent({"source": "x"}) as inside:
        assert Path(inside["source"]).read_text() == "a secret"
    assert len(links) == 1
