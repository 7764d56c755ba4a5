"""What a word of the command line names."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from fetchstash.cli import main
from fetchstash.errors import FetchFailed
from fetchstash.fetch import Fetched, HttpFetcher
from fetchstash.handlers import WorkerPool
from fetchstash.stash import Passages, Stash
from tests.cli.terminal import FETCHSTASH, Terminal, plain
from tests.loopback import Site
from tests.service.team import copied

Get = Callable[..., tuple[list[str], str, str]]


@pytest.fixture
def get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Get:
    """Return a function that gets a source, and returns what was asked of the web or is shown."""
    asked: list[str] = []

    async def fetch(_: HttpFetcher, url: str, *__: Any, **___: Any) -> Fetched:
        asked.append(url)
        raise FetchFailed("Nothing is reached.", "Look elsewhere.")

    monkeypatch.setattr(HttpFetcher, "fetch", fetch)
    monkeypatch.setattr(WorkerPool, "extract", copied)
    monkeypatch.setattr(WorkerPool, "prepare", Mock())
    monkeypatch.setenv("FETCHSTASH_STORE_FOLDER", str(tmp_path / "store"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def run(*words: str) -> tuple[list[str], str, str]:
        asked.clear()
        with pytest.raises(SystemExit):
            main(["get", *words])
        shown = capsys.readouterr()
        return asked, shown.out, shown.err

    return run


@pytest.mark.parametrize(
    ("word", "kind", "value"),
    [
        ("@1", "newest", "1"),
        ("@12", "newest", "12"),
        ("art_abcd", "prefix", "abcd"),
        ("abcd234", "prefix", "abcd234"),
        ("https://example.org/a", "url", "https://example.org/a"),
        ("ftp://example.org/a", "url", "ftp://example.org/a"),
        ("example.com", "url", "https://example.com"),
        ("example.com/a/b?c=d", "url", "https://example.com/a/b?c=d"),
        ("bücher.example", "url", "https://bücher.example"),
        ("example.com:8443/x", "url", "https://example.com:8443/x"),
        ("127.0.0.1:8080/x", "url", "http://127.0.0.1:8080/x"),
        ("localhost:3000", "url", "http://localhost:3000"),
        ("[::1]:8080", "url", "http://[::1]:8080"),
        ("nas:8080/x", "url", "http://nas:8080/x"),
        ("a.file", "file", "a.file"),
        ("./example.org", "file", "example.org"),
        ("example.org", "file", "example.org"),
    ],
)
def test_a_word_names_one_thing(get: Get, word: str, kind: str, value: str) -> None:
    for name in ("a.file", "example.org"):
        Path(name).write_text(f"the file {name}\n")
    Path("example.com").mkdir()
    asked, shown, said = get(word)
    assert asked == ([value] if kind == "url" else [])
    assert shown == (f"the file {value}\n" if kind == "file" else "")
    if kind == "newest":
        assert f"There is no @{value}: nothing is kept" in said
    elif kind == "prefix":
        assert word in said
        assert value in said
        assert "no reference begins so" in said


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("none.pdf", "There is no file none.pdf"),
        ("./none", "There is no file"),
        ("/", "/ is a folder"),
        ("/none/at/all", "There is no file"),
        ("~/none-at-all", "There is no file"),
        ("@0", "is no URL, no file and no reference"),
        ("two words", "is no URL, no file and no reference"),
        ("", "is no URL, no file and no reference"),
        ("x\0y", "is no URL, no file and no reference"),
    ],
)
def test_a_word_that_names_nothing_is_said_to(get: Get, word: str, reason: str) -> None:
    asked, shown, said = get(word)
    assert (asked, shown) == ([], "")
    assert said.startswith("[bad_argument] ")
    assert reason in said


def test_a_file_goes_before_the_site_of_its_name_and_both_are_said(get: Get) -> None:
    for name in ("notes.md", "main.rs", "example.org"):
        Path(name).write_text("x\n")
    assert get("notes.md", "main.rs") == ([], "x\nx\n", "")
    asked, shown, said = get("example.org", "example.net")
    assert (asked, shown) == (["https://example.net"], "x\n")
    assert "example.org is a file here; https://example.org is the site." in said
    assert "There is no file example.net; it was taken for a site." in said


@pytest.mark.long
def test_a_short_reference_is_taken_by_every_command(run: Terminal, site: Site) -> None:
    for n in (1, 2, 3):
        run("fetch", site.put(f"/{n}.txt", f"text {n}\n", "text/plain"))
    refs = [facts["artifact_ref"] for facts in run.data("ls")]
    for word in ("@2", refs[1], refs[1][:12], refs[1][4:11]):
        assert run("get", word).stdout == "text 2\n"
    short = refs[1][4:11]
    assert run("grep", "text", short).stdout == "1:text 2\n"
    assert run("slice", short, "--start", "1").stdout == "text 2\n"
    assert "1:text 2" in run("search", "text", "--in", short).stdout
    assert run("fetch", short).stdout == "text 2\n"
    assert refs[1] in run("info", short).stdout
    run("pin", short)
    assert run("ls").stdout.splitlines()[1].split("\t")[6] == "pinned"
    run("rm", "@1", "@2")
    assert [row.split("\t")[0] for row in run("ls").stdout.splitlines()] == refs[2:]


@pytest.mark.slow
def test_the_first_is_what_was_fetched_last_though_it_was_kept_before(
    run: Terminal, site: Site
) -> None:
    urls = [site.put(f"/{name}.txt", f"The word of {name}.") for name in ("a", "b")]
    for url in (*urls, urls[0]):
        run("get", url)
    for _ in range(2):  # a read moves nothing
        assert "The word of b." in run("get", "@2").stdout
    assert "The word of a." in run("get", "@1").stdout
    assert run("ls").stdout.index("a.txt") < run("ls").stdout.index("b.txt")


@pytest.mark.slow
def test_a_reference_that_is_ambiguous_or_unknown_says_so(run: Terminal, site: Site) -> None:
    for n in range(33):  # one more than there are letters
        (run.folder / f"{n}.txt").write_text(f"text {n}\n")
    run("fetch", *(f"{n}.txt" for n in range(33)))
    first = [row[4] for row in run("ls").stdout.splitlines()]
    letter = max(first, key=first.count)
    assert "references begin with art_" in run("get", f"art_{letter}", code=2).stderr
    assert "There is no @34: @33 is the oldest." in run("get", "@34", code=3).stderr
    assert "no reference begins so" in run("get", "abcdefgh", code=3).stderr


@pytest.mark.slow
def test_files_and_stdin_are_read_like_pages(run: Terminal) -> None:
    (run.folder / "page.html").write_text("<h1>Title</h1><p>The tide gauge.</p>")
    assert run("get", "page.html").stdout == "# Title\n\nThe tide gauge.\n"
    assert run("grep", "gauge", "page.html").stdout == "3:The tide gauge.\n"
    assert run("slice", "page.html", "--path", "Title").stdout.startswith("# Title")
    assert "The tide gauge." in run("search", "tide", "gauge", "--in", "page.html").stdout
    assert run("fetch", "page.html").stdout == "# Title\n\nThe tide gauge.\n"
    assert len(run("ls").stdout.splitlines()) == 1, "the same file is kept once"
    given = "<h1>Piped</h1><p>words</p>"
    assert run("get", "-", given=given).stdout == "# Piped\n\nwords\n"
    assert run("grep", "wor", "-", given=given).stdout == "3:words\n"
    empty = run("get", "-", given=b"")
    assert (empty.stdout, empty.stderr) == ("", "Nothing came in: stdin is empty.\n")
    assert "stdin is named twice" in run("get", "-", "-", code=2).stderr


@pytest.mark.slow
def test_a_terminal_says_what_a_number_was(run: Terminal) -> None:
    for name in ("one.md", "two.md"):
        (run.folder / name).write_text(f"The word of {name}.\n")
        run("fetch", name)
    shown = plain(run.on_terminal("get", "@2"))
    assert re.search(r"@2 is \w{7}, one\.md\.\s+The word of one\.md\.", shown)
    assert run("get", "@2").stderr == ""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes with names like these")
def test_a_pipe_with_a_name_is_read_to_its_end(run: Terminal) -> None:
    line = f"'{FETCHSTASH}' grep b <(printf 'a\\nb\\n')"
    done = subprocess.run(
        ["bash", "-c", line], env=run.env, cwd=run.folder, capture_output=True, check=True
    )
    assert done.stdout == b"2:b\n"


@pytest.mark.slow
def test_a_file_is_opened_safely(run: Terminal) -> None:
    (run.folder / "link.txt").symlink_to("page.txt")
    (run.folder / "page.txt").write_text("words\n")
    (run.folder / "folder").mkdir()
    assert run("get", "link.txt").stdout == "words\n"
    assert "folder/ is a folder" in run("get", "folder/", code=2).stderr
    run.env["FETCHSTASH_FETCH_MAX_DECODED_BYTES"] = "3"
    assert "[too_large]" in run("get", "page.txt", code=3).stderr
    assert "[too_large]" in run("get", "-", code=3, given="words").stderr


@pytest.mark.slow
def test_search_takes_its_words_unquoted_and_a_plain_source_among_them(
    run: Terminal, site: Site
) -> None:
    one = site.put("/1.txt", "The tide gauge stands here.\n", "text/plain")
    two = site.put("/2.txt", "A tide table of the gauge.\n", "text/plain")
    run("fetch", one, two)
    both = run("search", "tide", "gauge").stdout
    assert "The tide gauge" in both
    assert "A tide table" in both
    for where in (["--in", one], [one]):
        done = run("search", "tide", *where).stdout
        assert "The tide gauge" in done
        assert "A tide table" not in done
    assert "Name the words" in run("search", "@1", code=2).stderr


@pytest.mark.slow
def test_a_url_that_is_kept_is_read_without_asking_and_refresh_asks(
    run: Terminal, site: Site
) -> None:
    url = site.put("/a.txt", "old\n", "text/plain")
    assert run("get", url).stdout == "old\n"
    site.put("/a.txt", "new\n", "text/plain")
    assert run("get", url).stdout == "old\n"
    assert run("get", url, "--refresh").stdout == "new\n"
    assert run("fetch", "@1", "--refresh").stdout == "new\n"
    assert run("get", f"127.0.0.1:{site.port}/a.txt").stdout == "new\n"


@pytest.mark.slow
def test_a_folder_lists_its_own_and_a_reference_works_in_every_folder(run: Terminal) -> None:
    home = run.folder
    for name in ("one", "two"):
        (home / name).mkdir()
        (home / name / "a.txt").write_text(f"text {name}\n")
    run.folder = home / "one"
    run("fetch", "a.txt")
    (ref,) = [row.split("\t")[0] for row in run("ls").stdout.splitlines()]
    run.folder = home / "two"
    assert run("ls").stdout == ""
    assert "fetchstash ls --all-runs" in run.on_terminal("ls")
    assert run("get", "@1", code=3).stdout == ""
    assert run("get", ref[4:11]).stdout == "text one\n"
    assert run("get", "@1", "--all-runs").stdout == "text one\n"
    assert run("ls", "--all-runs").stdout.startswith(ref)


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
