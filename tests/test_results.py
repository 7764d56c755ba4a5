"""context_result and store_result: a long result goes into a file, a short one is unchanged."""

import json
import re
import secrets
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fetchstash.errors import BadArgument, StoreError
from fetchstash.files import FileType
from fetchstash.results import context_result, store_result

ROWS = [{"id": number, "name": f"name {number}"} for number in range(1_000)]


def returning(result: Any) -> Callable[..., Any]:
    """A tool that returns this."""

    def tool(ctx: Any = None) -> Any:
        return result

    return tool


def saved(shown: Any) -> Path:
    found = re.match(r"Results saved to (.+) \((\d+) chars\)\n\nPreview:\n", shown)
    assert found
    return Path(found[1])


def test_a_result_at_the_threshold_comes_back_unchanged() -> None:
    for result in ("x" * 5_000, b"x" * 5_000, {"a": 1}, [1, 2], None):
        assert context_result()(returning(result))() is result


@pytest.mark.in_process
def test_above_it_comes_a_preview_and_the_path_of_the_whole(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(2_000))

    @context_result("default")
    def tool(*, ctx: Path) -> str:
        """Tell."""
        assert ctx == tmp_path
        return text

    shown = tool(ctx=tmp_path)
    assert tool.__doc__ == "Tell."
    assert saved(shown).read_text() == text
    assert saved(shown).parent == tmp_path
    assert re.fullmatch(r"result_[0-9a-f]{8}\.txt", saved(shown).name)
    assert "line 0\n" in shown
    assert len(shown) < 4_000


@pytest.mark.in_process
@pytest.mark.anyio
async def test_an_async_tool_is_shortened_too(tmp_path: Path) -> None:
    @context_result("sql_query")
    async def tool(*, ctx: Path) -> list[dict[str, Any]]:
        return ROWS

    shown = await tool(ctx=tmp_path)
    assert json.loads(saved(shown).read_text()) == ROWS


@pytest.mark.in_process
@pytest.mark.anyio
async def test_an_async_tool_in_the_wrapping_of_another_decorator_is_shortened_too(
    tmp_path: Path,
) -> None:
    async def tool(*, ctx: Path) -> str:
        return "words " * 2_000

    def wrapping(**kwargs: Any) -> Any:
        return tool(**kwargs)

    assert (await context_result()(wrapping)(ctx=tmp_path)).startswith("Results saved to ")


@pytest.mark.in_process
def test_rows_come_with_the_first_and_the_last_that_the_profile_names(tmp_path: Path) -> None:
    shown = context_result("sql_query")(returning(ROWS))(ctx=tmp_path).split("\n")
    rows = [json.loads(line.rstrip(",")) for line in shown if line.startswith('{"id"')]
    assert rows == [*ROWS[:30], *ROWS[-10:]]
    assert "… 960 more lines …" in shown


@pytest.mark.in_process
def test_records_that_hold_others_come_as_their_shape(tmp_path: Path) -> None:
    records = [{"id": number, "tags": ["a", "b"]} for number in range(1_000)]
    assert "array of 1,000 objects\n" in context_result()(returning(records))(ctx=tmp_path)


@pytest.mark.in_process
def test_values_that_json_cannot_express_are_kept_as_words(tmp_path: Path) -> None:
    ring: dict[Any, Any] = {(1, 2): "x" * 6_000}
    ring["ring"] = ring
    shown = context_result()(returning(ring))(ctx=tmp_path)
    assert "(1, 2)" in json.loads(saved(shown).read_text())


def test_a_folder_that_cannot_be_written_to_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot be kept in .*missing"):
        store_result("text", FileType.TEXT, tmp_path / "missing")
    (tmp_path / "file").write_text("words")
    with pytest.raises(StoreError, match=r"cannot be kept in .*file"):
        store_result("text", FileType.TEXT, tmp_path / "file")


def test_a_name_that_is_taken_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = iter(["00000000", "00000000", "11111111"])

    def drawn(_size: int) -> str:
        return next(names)

    monkeypatch.setattr(secrets, "token_hex", drawn)
    first, second = (
        Path(store_result(text, FileType.TEXT, tmp_path)) for text in ("first", "second")
    )
    assert (first.read_text(), second.read_text(), second.name) == (
        "first",
        "second",
        "result_11111111.txt",
    )


@pytest.mark.skipif(sys.platform == "win32", reason="the modes are those of POSIX")
def test_a_result_can_be_read_by_its_user_alone(tmp_path: Path) -> None:
    assert stat.S_IMODE(Path(store_result("text", FileType.TEXT, tmp_path)).stat().st_mode) == 0o600


@pytest.mark.in_process
def test_a_log_comes_with_its_first_and_last_lines(tmp_path: Path) -> None:
    log = "".join(f"12:00:{number % 60:02} event {number}\n" for number in range(3_000))
    shown = context_result("log_search")(returning(log))(ctx=tmp_path)
    assert "event 0\n" in shown
    assert "event 2999" in shown
    assert "more lines" in shown


@pytest.mark.in_process
def test_bytes_are_kept_and_only_named(tmp_path: Path) -> None:
    data = bytes(range(256)) * 40
    shown = context_result()(returning(data))(ctx=tmp_path)
    assert saved(shown).read_bytes() == data
    assert "no text" in shown


@pytest.mark.in_process
def test_a_context_that_keeps_results_itself_gets_them() -> None:
    class Keeper:
        texts: list[str] = []  # noqa: RUF012 - one instance

        def keep(self, text: str, name: str) -> str:  # noqa: ARG002 - the protocol names it
            self.texts.append(text)
            return "art_x"

    shown = context_result()(returning("words " * 2_000))(ctx=Keeper())
    assert shown.startswith("Results saved to art_x (12000 chars)\n\nPreview:\n")
    assert Keeper.texts == ["words " * 2_000]
    assert store_result("text", FileType.TEXT, Keeper()) == "art_x"


def test_store_result_names_its_file_by_type(tmp_path: Path) -> None:
    path = Path(store_result({"a": [1]}, FileType.JSON, tmp_path))
    assert re.fullmatch(r"result_[0-9a-f]{8}\.json", path.name)
    assert json.loads(path.read_text()) == {"a": [1]}


def test_a_profile_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadArgument, match="log_search"):
        context_result("nothing")
