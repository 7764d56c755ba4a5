"""References as people write them: in short, in brackets, with dots behind."""

from pathlib import Path

import pytest

from fetchstash import UnknownRef
from fetchstash.errors import BadArgument
from tests.stash.conftest import OpenStash

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]


async def test_a_program_opens_an_artifact_by_the_beginning_of_its_reference(
    open_stash: OpenStash, tmp_path: Path
) -> None:
    (file := tmp_path / "a.txt").write_text("some words")
    async with open_stash() as stash:
        ref = (await stash.add_file(file)).ref
        for written in (ref, ref[:12], f"{ref[:14]}…", f"{ref[:9]}...", f"[{ref}]"):
            assert (await stash.get(written)).ref == ref
        with pytest.raises(UnknownRef):
            await stash.get("art_22222" if ref[:9] != "art_22222" else "art_33333")


async def test_the_beginning_of_several_references_names_them(
    open_stash: OpenStash, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"words of {name}")
    refs = iter(("art_abcde" + "a" * 21, "art_abcde" + "b" * 21))
    monkeypatch.setattr("fetchstash.store._contract.new_ref", lambda: next(refs))
    async with open_stash() as stash:
        first = (await stash.add_file(tmp_path / "a.txt")).ref
        second = (await stash.add_file(tmp_path / "b.txt")).ref
        with pytest.raises(BadArgument, match="2 references begin with art_abcde: ") as failed:
            await stash.get("art_abcde")
    assert first in str(failed.value)
    assert second in str(failed.value)
