"""An offset behind the last match is out of range, but only if all matches were counted."""

import itertools
import time

import pytest

from fetchstash.errors import OutOfRange
from fetchstash.render import as_shown
from fetchstash.stash import Stash
from tests.stash.conftest import Put

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]


async def test_an_offset_behind_the_last_match_is_out_of_range(stash: Stash, put: Put) -> None:
    refs = [await put("hit\n" * 3), await put("hit\n" * 2)]
    assert [match.line for match in await stash.grep("hit", refs, offset=4)] == [2]
    with pytest.raises(OutOfRange, match="There are 5 matches, and offset is 5"):
        await stash.grep("hit", refs, offset=5)


async def test_an_offset_is_never_out_of_range_where_a_limit_stopped_the_count(
    stash: Stash, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = await put("hit\n" * 200)
    ticks = itertools.count(time.monotonic())
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks))  # a second passes at each look
    matches = await stash.grep("hit", [ref], offset=190)
    monkeypatch.undo()
    assert matches.stopped
    assert "stopped after 2 s" in as_shown(matches)
