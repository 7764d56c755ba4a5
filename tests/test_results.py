"""context_result and store_result: a long result goes into a file, a short one is unchanged."""

import json
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fetchstash.errors import BadArgument, StoreError
from fetchstash.files import BinaryContent, FileType, TruncationInfo, read_file, read_file_as_string
from fetchstash.results import context_result, store_result

pytestmark = pytest.mark.in_process

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


@pytest.mark.anyio
async def test_an_async_tool_is_shortened_too(tmp_path: Path) -> None:
    @context_result("sql_query")
    async def tool(*, ctx: Path) -> list[dict[str, Any]]:
        return ROWS

    shown = await tool(ctx=tmp_path)
    assert json.loads(saved(shown).read_text()) == ROWS


@pytest.mark.anyio
async def test_an_async_tool_in_the_wrapping_of_another_decorator_is_shortened_too(
    tmp_path: Path,
) -> None:
    async def tool(*, ctx: Path) -> str:
        return "words " * 2_000

    def wrapping(**kwargs: Any) -> Any:
        return tool(**kwargs)

    assert (await context_result()(wrapping)(ctx=tmp_path)).startswith("Results saved to ")


def test_rows_come_with_the_first_and_the_last_that_the_profile_names(tmp_path: Path) -> None:
    shown = context_result("sql_query")(returning(ROWS))(ctx=tmp_path).split("\n")
    rows = [json.loads(line.rstrip(",")) for line in shown if line.startswith('{"id"')]
    assert rows == [*ROWS[:30], *ROWS[-10:]]
    assert "… 960 more lines …" in shown


def test_records_that_hold_others_come_as_their_shape(tmp_path: Path) -> None:
    records = [{"id": number, "tags": ["a", "b"]} for number in range(1_000)]
    assert "array of 1,000 objects\n" in context_result()(returning(records))(ctx=tmp_path)


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


def test_a_log_comes_with_its_first_and_last_lines(tmp_path: Path) -> None:
    log = "".join(f"12:00:{number % 60:02} event {number}\n" for number in range(3_000))
    shown = context_result("log_search")(returning(log))(ctx=tmp_path)
    assert "event 0\n" in shown
    assert "event 2999" in shown
    assert "more lines" in shown


def test_bytes_are_kept_and_only_named(tmp_path: Path) -> None:
    data = bytes(range(256)) * 40
    shown = context_result()(returning(data))(ctx=tmp_path)
    assert saved(shown).read_bytes() == data
    assert "no text" in shown


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


# --- read_file: a short file comes whole, a long one as a preview, a failure as a sentence.


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_short_text_comes_whole(tmp_path: Path) -> None:
    result = read_file(written(tmp_path, "a.txt", "One.\nTwo.\n"))
    assert result.success
    assert result.content == "One.\nTwo.\n"
    assert result.truncation_info is None
    assert result.file_type is FileType.TEXT
    assert result.metadata is not None
    assert result.metadata.size_bytes == 10


def test_a_long_text_comes_as_first_and_last_lines_within_its_tokens(tmp_path: Path) -> None:
    text = "".join(f"line {number} of a long text\n" for number in range(5_000))
    result = read_file(written(tmp_path, "a.txt", text), max_tokens=300)
    assert isinstance(result.content, str)
    shown, first, *_ = result.content.split("\n")
    assert shown == "[Shown: 29 of 5000 lines, 240 of 44000 tokens.]"
    assert first == "line 0 of a long text"
    assert result.content.endswith("line 4999 of a long text")
    assert "more lines" in result.content
    assert result.truncation_info is not None
    assert result.truncation_info.tokens_shown <= 300 < result.truncation_info.total_tokens


def test_a_long_line_is_cut_to_its_tokens(tmp_path: Path) -> None:
    result = read_file(written(tmp_path, "a.txt", "word " * 50_000), max_tokens=50)
    assert result.truncation_info is not None
    assert 0 < result.truncation_info.tokens_shown <= 50


def test_a_long_table_comes_with_its_header(tmp_path: Path) -> None:
    rows = "id,name\n" + "".join(f"{number},name of {number}\n" for number in range(5_000))
    result = read_file(written(tmp_path, "a.csv", rows), max_tokens=400)
    assert isinstance(result.content, str)
    assert "name of 0" in result.content
    assert result.file_type is FileType.CSV
    assert result.truncation_info is not None
    assert result.truncation_info.rows_shown == 30


def test_a_picture_comes_as_bytes_that_a_model_may_be_shown(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (3_000, 40)).save(tmp_path / "a.png")
    result = read_file(tmp_path / "a.png")
    assert isinstance(result.content, BinaryContent)
    assert result.content.mime_type.startswith("image/")
    assert result.file_type is FileType.IMAGE


def test_a_failure_is_a_sentence_in_brackets(tmp_path: Path) -> None:
    missing = tmp_path / "missing.txt"
    assert read_file_as_string(missing) == f"[Error reading {missing}: No such file or directory]"
    binary = written(tmp_path, "a.bin", bytes(range(256)) * 10)
    assert read_file_as_string(binary).startswith(f"[Error reading {binary}: it is ")


@pytest.mark.parametrize(
    "path", ["a\0b", "\ud800", "x" * 5_000, "."], ids=["NUL", "half a character", "long", "folder"]
)
def test_a_path_that_is_no_file_gives_an_error_that_says_so(path: str) -> None:
    result = read_file(path)
    assert not result.success
    assert result.error_message


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes among its files")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert read_file(tmp_path / "pipe").error_message == "it is no regular file"


@pytest.mark.anyio
async def test_it_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    assert read_file_as_string(written(tmp_path, "a.md", "# Title\n")) == "# Title\n"


def test_a_setting_of_the_environment_bounds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FETCHSTASH_CONTEXT_MAX_LINES", "3")
    result = read_file(written(tmp_path, "a.txt", "one\ntwo\nthree\nfour\n"))
    assert isinstance(result.truncation_info, TruncationInfo)
    assert (result.truncation_info.lines_shown, result.truncation_info.total_lines) == (3, 4)
    assert (
        result.content == "[Shown: 3 of 4 lines, 11 of 8 tokens.]\none\ntwo\n… 1 more line …\nfour"
    )


def test_settings_that_are_wrong_are_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FETCHSTASH_CONTEXT_MAX_LINES", "many")
    result = read_file(written(tmp_path, "a.txt", "one\n"))
    assert not result.success
    assert "FETCHSTASH_CONTEXT_MAX_LINES" in result.error_message


@pytest.mark.parametrize(
    ("name", "content", "encoding"),
    [
        pytest.param("a.txt", "Grüße".encode(), "utf-8", id="UTF-8"),
        pytest.param("a.txt", "Grüße".encode("utf-16"), "utf-16-le", id="UTF-16"),
        pytest.param("a.zip", b"PK\5\6" + bytes(18), "", id="no text"),
    ],
)
def test_the_encoding_of_a_text_is_among_its_facts(
    tmp_path: Path, name: str, content: bytes, encoding: str
) -> None:
    metadata = read_file(written(tmp_path, name, content)).metadata
    assert metadata is not None
    assert metadata.encoding == encoding


def test_following_the_offsets_reads_a_file_exactly_once(tmp_path: Path) -> None:
    text = "".join(f"line {number} of a long text\n" for number in range(1_000)) + "x" * 9_000
    path = written(tmp_path, "a.txt", text)
    first = read_file(path)
    assert first.next_offset == 0
    pieces: list[str] = []
    offset: int | None = 0
    while offset is not None:
        result = read_file(path, max_tokens=2_000, offset=offset)
        assert isinstance(result.content, str)
        assert result.truncation_info is not None
        assert result.truncation_info.tokens_shown <= 2_000
        assert result.content.count("\n") <= 200
        pieces.append(result.content)
        offset = result.next_offset
    assert "".join(pieces) == text


def test_more_than_200_lines_are_read_where_they_are_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, "a.txt", "line\n" * 900)
    assert read_file(path).truncation_info is not None
    whole = read_file(path, max_lines=900)
    assert whole.content == "line\n" * 900
    assert (whole.truncation_info, whole.next_offset) == (None, None)
    part = read_file(path, offset=5, max_lines=300)
    assert part.content == "line\n" * 300
    assert part.next_offset == 5 + 1_500


def test_a_decorator_without_brackets_is_refused_where_it_stands() -> None:
    without: Any = context_result
    with pytest.raises(BadArgument, match=r'Write @context_result\("default"\) above it'):
        without(returning("x"))


@pytest.mark.parametrize("limit", ["max_tokens", "max_lines"])
def test_a_limit_that_would_never_go_on_is_refused(limit: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("words\n" * 100)
    asked: dict[str, Any] = {limit: 0}
    result = read_file(path, offset=0, **asked)
    assert (result.success, result.next_offset) == (False, None)
    assert result.error_message == "max_tokens and max_lines must be at least 1. Give more."


def test_a_string_that_is_not_all_ends_with_the_offset_to_read_on_from(tmp_path: Path) -> None:
    path = written(tmp_path, "a.txt", "line\n" * 900)
    assert read_file_as_string(path).endswith("line\n[Read on with offset=0.]")
    assert read_file_as_string(path, offset=0).endswith("line\n[Read on with offset=1000.]")
    assert read_file_as_string(path, offset=4_495) == "line\n"
    beyond = f"[Error reading {path}: it has 4,500 characters, and the offset is 4500]"
    assert read_file_as_string(path, offset=4_500) == beyond
