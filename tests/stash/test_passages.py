"""Passages that do not fit are cut around their hit, in every shape of text."""

import json
from pathlib import Path

import pytest

from fetchstash import as_shown, open_stash
from fetchstash.store import _rank, _search

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

ROWS = [f"{row},harbour,{row * 7 % 911},{'ok ' * 6}" for row in range(1, 4_000)]
ROWS[1_999] = "2000,harbour,77,the tern colony was counted twice"
RECORDS = [json.dumps({"id": row, "note": "nothing of note here " * 3}) for row in range(4_000)]
RECORDS[2_000] = json.dumps({"id": 2_000, "note": "word " * 300 + "tern colony " + "word " * 300})
ONE_LINE = "word " * 20_000 + "the tern colony was counted twice " + "word " * 20_000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("rows.csv", "\n".join(("id,place,n,state", *ROWS)), id="CSV"),
        pytest.param("records.jsonl", "\n".join(RECORDS), id="JSONL"),
        pytest.param("line.txt", ONE_LINE, id="one long line"),
    ],
)
@pytest.mark.parametrize("max_chars", [200, 400, 1_000])
async def test_the_shown_part_of_a_passage_holds_the_hit(
    name: str, text: str, max_chars: int, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    async with open_stash({"store.url": "memory:"}) as stash:
        artifact = await stash.add_file(tmp_path / name, focus="tern colony", max_chars=max_chars)
        assert "tern colony" in artifact.preview
        found = await stash.search("tern colony")
    assert "tern colony" in as_shown(found, max_chars=max_chars)


@pytest.mark.parametrize("focus", ["tern colony", "albatross"])
async def test_a_focus_that_was_sought_in_a_part_of_the_text_says_so(
    focus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows.csv").write_text("\n".join(("id,place,n,state", *ROWS)))
    async with open_stash({"store.url": "memory:"}) as stash:
        artifact = await stash.add_file(tmp_path / "rows.csv", focus=focus)
        assert "could be searched for the focus in time" not in as_shown(artifact)
        monkeypatch.setattr(_rank, "MAX_SECONDS", -1)
        monkeypatch.setattr(_search, "LITTLE_BYTES", -1)
        (tmp_path / "rows.csv").write_text("\n".join(("id,place,n", *ROWS)))
        artifact = await stash.add_file(tmp_path / "rows.csv", focus=focus)
        assert "[Only the beginning of the text could be searched for the focus in time.]" in (
            as_shown(artifact)
        )
