"""Searching what is kept, while its texts are being indexed."""

from pathlib import Path
from typing import Any

import pytest

from fetchstash.cli import main
from fetchstash.stash import Passages, Stash


def test_one_search_waits_until_all_texts_are_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pending = [2, 1, 0]

    async def search(*_: Any, **__: Any) -> Passages:
        return Passages((), {}, searched=3, pending=pending.pop(0))

    monkeypatch.setattr(Stash, "search", search)
    with pytest.raises(SystemExit) as ended:
        main(["search", "gauge", "--folder", str(tmp_path)])
    assert ended.value.code == 1
    assert pending == []
    assert capsys.readouterr().err == ""
