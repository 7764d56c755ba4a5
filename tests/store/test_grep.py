"""Grep finds and counts the lines that grep would, and shows a bounded part of each."""

import itertools
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest
import re2

from fetchstash.errors import BadPattern
from fetchstash.store import ArtifactStore, GrepQuery, Line, Matches, compile_pattern
from tests.store.conftest import OpenText

POEM = "The fox\nruns\nover\nthe Fox\n\nand the dog\nbarks at foxes\n"


def shown(matches: Matches) -> list[str]:
    """Print matches as grep -n does."""
    printed: list[str] = []
    for group in matches.groups:
        printed += ["--"] * bool(printed) + [
            f"{line.number}{':' if line.match else '-'}{line.text}" for line in group
        ]
    return printed


def lines(matches: Matches) -> list[Line]:
    return [line for group in matches.groups for line in group]


def matching(pattern: str, text: str) -> list[int]:
    """Return the lines that match, as Python's own re sees them."""
    split = text.split("\n")
    if split[-1] == "":
        split.pop()
    return [number for number, line in enumerate(split, start=1) if re.search(pattern, line)]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param(
            {"pattern": "fox", "context": 0},
            ["1:The fox", "--", "7:barks at foxes"],
            id="groups are apart",
        ),
        pytest.param(
            {"pattern": "fox", "context": 1},
            ["1:The fox", "2-runs", "--", "6-and the dog", "7:barks at foxes"],
            id="context",
        ),
        pytest.param(
            {"pattern": "fox", "context": 1, "ignore_case": True, "max_matches": 2},
            ["1:The fox", "2-runs", "3-over", "4:the Fox", "5-"],
            id="neighbours join",
        ),
        pytest.param({"pattern": "^the", "context": 0}, ["4:the Fox"], id="a line's beginning"),
        pytest.param(
            {"pattern": "s$", "context": 0}, ["2:runs", "--", "7:barks at foxes"], id="a line's end"
        ),
        pytest.param({"pattern": "^$", "context": 0}, ["5:"], id="an empty line"),
        pytest.param(
            {"pattern": "fox|dog", "context": 0, "max_matches": 1, "offset": 1},
            ["6:and the dog"],
            id="a page of matches",
        ),
        pytest.param(
            {"pattern": "fox|dog", "context": 9, "max_matches": 1},
            ["1:The fox", "2-runs", "3-over", "4-the Fox", "5-"],
            id="context ends before the next match",
        ),
        pytest.param({"pattern": "[fF]ox.*", "literal": True}, [], id="literal"),
        pytest.param(
            {"pattern": "s\\s", "context": 0}, ["7:barks at foxes"], id="no match across lines"
        ),
        pytest.param(
            {"pattern": "", "context": 0, "max_matches": 1},
            ["1:The fox"],
            id="an empty pattern matches every line",
        ),
    ],
)
async def test_what_is_shown(
    query: dict[str, Any], expected: list[str], open_text: OpenText
) -> None:
    reader = await open_text(POEM.encode())
    assert shown(await reader.grep(GrepQuery(**query))) == expected


@pytest.mark.anyio
async def test_all_matching_lines_are_counted_however_few_are_shown(open_text: OpenText) -> None:
    reader = await open_text(b"a a a\nb\n" * 1000 + b"a")
    matches = await reader.grep(GrepQuery("a", max_matches=3, offset=10))
    assert (matches.first, matches.shown, matches.total, matches.stopped) == (11, 3, 1001, "")
    assert [line.number for line in lines(matches) if line.match] == [21, 23, 25]


@pytest.mark.anyio
async def test_following_the_offsets_shows_every_match_once(open_text: OpenText) -> None:
    reader = await open_text(b"".join(b"%d\n" % n for n in range(500)))
    numbers: list[int] = []
    while True:
        matches = await reader.grep(GrepQuery("7", offset=len(numbers), max_matches=30, context=3))
        numbers += [line.number for line in lines(matches) if line.match]
        if len(numbers) == matches.total:
            break
    assert numbers == [n + 1 for n in range(500) if "7" in str(n)]


@pytest.mark.anyio
async def test_no_match_is_a_result(open_text: OpenText) -> None:
    for text in (b"", b"abc"):
        matches = await (await open_text(text)).grep(GrepQuery("x"))
        assert (matches.groups, matches.shown, matches.total) == ((), 0, 0)


@pytest.mark.anyio
async def test_a_hit_in_a_line_of_three_megabytes_comes_as_a_window_around_it(
    open_text: OpenText,
) -> None:
    reader = await open_text(("ä" * 800_000 + "needle" + "ö" * 700_000 + "\nnext").encode())
    matches = await reader.grep(GrepQuery("needle"))
    line, following = lines(matches)
    assert matches.total == 1
    assert (line.number, len(line.text), line.text.count("needle")) == (1, 160, 1)
    assert line.text.startswith("…ä")
    assert line.text.endswith("ö…")
    assert following == Line(2, "next", match=False)


@pytest.mark.anyio
@pytest.mark.parametrize("filler", [300, 700_000, 4_000_000])
async def test_each_place_in_a_long_line_counts_that_no_window_before_it_shows(
    filler: int, open_text: OpenText
) -> None:
    places = ("x" * filler).join(f"hit {n}, and hit {n} again" for n in range(5))
    reader = await open_text(f"a hit, a hit\n{places}\nhit\n".encode())
    matches = await reader.grep(GrepQuery("hit", context=0))
    assert (matches.total, [line.number for line in lines(matches)]) == (7, [1, 2, 2, 2, 2, 2, 3])
    paged = [await reader.grep(GrepQuery("hit", max_matches=2, offset=n)) for n in range(0, 7, 2)]
    seen = [line for page in paged for line in lines(page) if line.match]
    assert seen == lines(matches)
    assert "hit 3, and hit 3 again" in seen[4].text


@pytest.mark.anyio
@pytest.mark.parametrize("length", [159, 160, 161, 1000])
async def test_a_line_of_more_than_160_characters_is_a_window_and_a_shorter_one_is_whole(
    length: int, open_text: OpenText
) -> None:
    text = "😀" * (length - 1) + "x"
    reader = await open_text(f"{text}\n{text}\n".encode())
    match, context = lines(await reader.grep(GrepQuery("x", max_matches=1, context=0))), None
    assert match[0].text == (text if length <= 160 else "…" + text[-158:])
    context = lines(await reader.grep(GrepQuery("^.", max_matches=1, offset=1, context=1)))
    assert context[-1].text == (text if length <= 160 else text[:158] + "…")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        pytest.param("(?=x)", "invalid perl operator: (?=", id="look-ahead"),
        pytest.param(r"(a)\1", r"invalid escape sequence: \1", id="back-reference"),
        pytest.param("[a", "missing ]: [a", id="open class"),
        pytest.param("(((x{100}){100}){100})", "invalid repetition size", id="repetition bomb"),
    ],
)
async def test_a_bad_pattern_gets_the_words_of_re2_and_a_hint(
    pattern: str, message: str, open_text: OpenText
) -> None:
    reader = await open_text(b"text")
    with pytest.raises(BadPattern) as raised:
        await reader.grep(GrepQuery(pattern))
    assert message in raised.value.what
    assert "no look-around and no back-references" in raised.value.next_step


@pytest.mark.anyio
async def test_a_pattern_of_several_lines_is_refused_rather_than_never_found(
    open_text: OpenText,
) -> None:
    reader = await open_text(b"a\nb\n")
    with pytest.raises(BadPattern, match="line feed"):
        await reader.grep(GrepQuery("a\nb", literal=True))


@pytest.mark.anyio
async def test_a_count_that_was_stopped_by_time_says_so(
    open_text: OpenText, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = await open_text(b"a\n" * 10)
    ticks = itertools.count(time.monotonic())
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks))  # a second passes at each look
    matches = await reader.grep(GrepQuery("a"))
    monkeypatch.undo()
    assert matches.total < 10
    assert matches.stopped == "after 2 s"


@pytest.mark.anyio
async def test_a_scan_that_has_to_wait_for_a_processor_counts_all_matches(
    open_text: OpenText, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = await open_text(b"a\n" * 10)
    now, looks, loop = time.monotonic, itertools.count(), threading.current_thread()

    def waits() -> float:
        """Let three seconds pass after the first look of the scan."""
        return now() + (0 if threading.current_thread() is loop else 3 * bool(next(looks)))

    monkeypatch.setattr(time, "monotonic", waits)
    matches = await reader.grep(GrepQuery("a"))
    monkeypatch.undo()
    assert (matches.total, matches.stopped) == (10, "")


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize(
    "pattern", [r"\pL{1,200}é$", r"\pL{1000}", ".{0,900}" * 30, r"(?i)(\pL{1,9}\pN){30}"]
)
async def test_a_pattern_whose_program_is_too_large_is_refused(
    pattern: str, open_text: OpenText
) -> None:
    reader = await open_text("é".encode() * 100_000)
    with pytest.raises(BadPattern, match=r"The pattern is too large"):
        await reader.grep(GrepQuery(pattern))


def test_a_large_pattern_is_given_up_before_it_is_compiled_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """RE2 holds the interpreter, and so the server, for .1 s where it compiles all of it."""
    memory: list[int] = []
    compile_ = re2.compile

    def noted(pattern: bytes, options: Any) -> Any:
        memory.append(options.max_mem)
        return compile_(pattern, options)

    monkeypatch.setattr(re2, "compile", noted)
    with pytest.raises(BadPattern, match="The pattern is too large"):
        compile_pattern(GrepQuery(r"\pL{1,200}é$"))
    assert memory == [2_880_000]


def watch_searches(patch: pytest.MonkeyPatch, on_search: Callable[[int], None]) -> None:
    """Call ``on_search`` with the size of what RE2 is to search, before each search."""
    compile_ = re2.compile

    class Watched:
        def __init__(self, *arguments: Any) -> None:
            self._compiled = compile_(*arguments)
            self.programsize = self._compiled.programsize

        def search(self, data: bytes, start: int, stop: int) -> Any:
            on_search(stop - start)
            return self._compiled.search(data, start, stop)

    patch.setattr(re2, "compile", Watched)


@pytest.mark.long
@pytest.mark.anyio
@pytest.mark.parametrize("pattern", ["x{9}$", r"((x{1,30}){1,30})y", r"\pL{1,9}é$"])
@pytest.mark.parametrize("text", [b"x" * 4_000_000, b"xx\n" * 1_000_000], ids=["line", "lines"])
async def test_re2_never_gets_more_than_a_piece_at_a_time(
    text: bytes, pattern: str, open_text: OpenText, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = list[int]()
    watch_searches(monkeypatch, sizes.append)
    await (await open_text(text)).grep(GrepQuery(pattern))
    assert 0 < max(sizes) <= 64 * 2**10


@pytest.mark.anyio
async def test_compiling_rests_as_long_as_it_held_the_interpreter(
    open_text: OpenText, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_, rests = re2.compile, list[float]()

    def slow(*arguments: Any) -> Any:
        end = time.thread_time() + 0.003
        while time.thread_time() < end:
            pass
        return compile_(*arguments)

    monkeypatch.setattr(re2, "compile", slow)
    monkeypatch.setattr(time, "sleep", rests.append)
    assert (await (await open_text(b"x\n")).grep(GrepQuery("x"))).total == 1
    assert sum(rests) >= 0.003


@pytest.mark.anyio
async def test_greps_that_are_cancelled_stop_and_hold_nobody_up(
    store: ArtifactStore, open_text: OpenText, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, released = threading.Semaphore(0), threading.Event()

    def hold(_: int) -> None:
        running.release()
        released.wait(60)

    watch_searches(monkeypatch, hold)
    reader = await open_text(b"x\n" * 1000)
    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(reader.grep, GrepQuery("x"))
        await anyio.to_thread.run_sync(running.acquire)
        assert (await store.list()).total == 1
        tasks.cancel_scope.cancel()
    released.set()
    monkeypatch.undo()
    assert (await reader.grep(GrepQuery("x"))).total == 1000


@pytest.mark.anyio
async def test_literal_text_is_taken_as_it_is_and_case_folds_beyond_ascii(
    open_text: OpenText,
) -> None:
    reader = await open_text("1 + (2 * 3) = \\E?\nÄRGER\n".encode())
    assert (await reader.grep(GrepQuery("(2 * 3) = \\E?", literal=True))).total == 1
    assert (await reader.grep(GrepQuery("ärger", literal=True, ignore_case=True))).total == 1
