"""read_file: a short file comes whole, a long one as a preview, a failure as a sentence."""

import json
import os
import sys
from pathlib import Path

import pytest

from fetchstash.files import BinaryContent, FileType, TruncationInfo, read_file, read_file_as_string

pytestmark = pytest.mark.in_process


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


def test_long_json_comes_as_its_shape(tmp_path: Path) -> None:
    data = json.dumps({"users": [{"id": number, "name": "x" * 20} for number in range(2_000)]})
    result = read_file(written(tmp_path, "a.json", data), max_tokens=300)
    assert isinstance(result.content, str)
    assert "users" in result.content
    assert result.file_type is FileType.JSON


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


def test_a_string_that_is_not_all_ends_with_the_offset_to_read_on_from(tmp_path: Path) -> None:
    path = written(tmp_path, "a.txt", "line\n" * 900)
    assert read_file_as_string(path).endswith("line\n[Read on with offset=0.]")
    assert read_file_as_string(path, offset=0).endswith("line\n[Read on with offset=1000.]")
    assert read_file_as_string(path, offset=4_495) == "line\n"
    beyond = f"[Error reading {path}: it has 4500 characters, and the offset is 4500]"
    assert read_file_as_string(path, offset=4_500) == beyond
