"""Files of this machine: what is opened is what was checked, and nothing is left behind."""

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from fetchstash import open_stash
from fetchstash.errors import BadArgument, Refused, TooLarge

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]
posix = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes as POSIX has them")


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    folder = tmp_path / "inside"
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "a.txt").write_text("public\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_text("secret\n")
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    return {"store.folder": str(tmp_path / "store")}


def before_opening(
    monkeypatch: pytest.MonkeyPatch, path: Path, action: Callable[[], object]
) -> None:
    """Do something at the moment when ``path`` has been checked and is about to be opened."""
    original = os.open

    def opened(name: Any, *arguments: Any, **named: Any) -> int:
        if Path(os.fsdecode(name)) == path:
            monkeypatch.setattr(os, "open", original)
            action()
        return original(name, *arguments, **named)

    monkeypatch.setattr(os, "open", opened)


@posix
async def test_a_folder_that_is_swapped_before_the_file_is_opened_leads_nowhere(
    inside: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = inside / "notes"

    def swap() -> None:
        notes.rename(inside / "moved")
        notes.symlink_to(inside.parent / "outside")

    before_opening(monkeypatch, notes / "a.txt", swap)
    async with open_stash(settings) as stash:
        with pytest.raises(Refused):
            await stash.add_file(notes / "a.txt", within=[inside])
        assert list(stash.store.spool.glob("add-*")) == []


@pytest.mark.parametrize("kind", [str, Path])
async def test_one_folder_in_place_of_a_list_opens_no_other(
    kind: type, inside: Path, settings: dict[str, Any]
) -> None:
    one_folder: Any = kind(inside)  # the first character of its path is a folder, too
    async with open_stash(settings) as stash:
        with pytest.raises(BadArgument, match=r"within is .* It must be a list"):
            await stash.add_file(inside / "notes" / "a.txt", within=one_folder)


@posix
async def test_a_file_that_is_swapped_for_a_link_is_not_read(
    inside: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    note = inside / "notes" / "a.txt"

    def swap() -> None:
        note.unlink()
        note.symlink_to(inside.parent / "outside" / "a.txt")

    before_opening(monkeypatch, note, swap)
    async with open_stash(settings) as stash:
        with pytest.raises(BadArgument):
            await stash.add_file(note, within=[inside])


@posix
async def test_a_pipe_in_the_file_s_place_is_not_waited_for(
    inside: Path, settings: dict[str, Any]
) -> None:
    os.mkfifo(inside / "pipe")
    async with open_stash(settings) as stash:
        with pytest.raises(BadArgument, match="no regular file"):
            await stash.add_file(inside / "pipe", within=[inside])


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="only root can give a file away"
)
async def test_a_hard_link_to_another_user_s_file_is_refused(
    inside: Path, settings: dict[str, Any]
) -> None:
    others = inside.parent / "outside" / "a.txt"
    os.chown(others, 12_345, 12_345)
    os.link(others, inside / "linked.txt")
    async with open_stash(settings) as stash:
        with pytest.raises(Refused, match="hard link"):
            await stash.add_file(inside / "linked.txt", within=[inside])


@posix
async def test_a_folder_is_said_to_be_one_and_stays_open_nowhere(
    inside: Path, settings: dict[str, Any]
) -> None:
    async with open_stash(settings) as stash:
        with pytest.raises(BadArgument, match=r"notes is a folder\. Give the path of a file in it"):
            await stash.add_file(inside / "notes")
        before = os.dup(0)
        os.close(before)
        for _ in range(9):
            with pytest.raises(BadArgument):
                await stash.add_file(inside / "notes")
        after = os.dup(0)
        os.close(after)
    assert after == before


@pytest.mark.long
@pytest.mark.parametrize(("size", "fits"), [(9, True), (10, True), (11, False)])
async def test_a_file_is_taken_in_up_to_the_largest_document(
    size: int, fits: bool, inside: Path, settings: dict[str, Any]
) -> None:
    (inside / "long.txt").write_bytes(b"x" * size)
    async with open_stash(settings | {"fetch.max_decoded_bytes": 10}) as stash:
        if fits:
            assert (await stash.add_file(inside / "long.txt")).facts.size_bytes == size
        else:
            with pytest.raises(TooLarge, match="more than the 10 bytes"):
                await stash.add_file(inside / "long.txt")
        assert list(stash.store.spool.glob("add-*")) == []


async def test_a_call_that_is_cancelled_leaves_no_copy(
    inside: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    note, cancelled = inside / "notes" / "a.txt", threading.Event()
    before_opening(monkeypatch, note, lambda: cancelled.wait(20))
    async with open_stash(settings) as stash:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stash.add_file, note)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
            cancelled.set()
        assert list(stash.store.spool.glob("add-*")) == []
