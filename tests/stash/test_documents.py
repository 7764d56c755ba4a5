"""Documents of each kind, fetched and then read by rows, pages, words and paths."""

import io
import itertools
import json
import time
import wave
from pathlib import Path

import pytest

from fetchstash import open_stash
from fetchstash.errors import OutOfRange
from fetchstash.render import as_shown
from fetchstash.stash import Stash
from fetchstash.store import _rank, _search
from tests.handlers.pdf_pages import pages, text, unmapped
from tests.loopback import Site
from tests.stash.conftest import Put

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]


async def test_an_offset_behind_the_last_match_is_out_of_range(stash: Stash, put: Put) -> None:
    refs = [await put("hit\n" * 3), await put("hit\n" * 2)]
    assert [match.line for match in await stash.grep("hit", refs, offset=4)] == [2]
    with pytest.raises(OutOfRange, match="There are 5 matches, and offset is 5"):
        await stash.grep("hit", refs, offset=5)


async def test_a_grep_over_several_artifacts_shows_max_matches_of_all_of_them(
    stash: Stash, put: Put
) -> None:
    refs = [await put("hit\n" * 3), await put("hit\n" * 3), await put("hit\n" * 3)]
    matches = await stash.grep("hit", refs, max_matches=4)
    assert (len(list(matches)), matches.total) == (4, 9)


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


def sound(seconds: int) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(8_000)
        file.writeframes(bytes(8_000 * seconds))
    return out.getvalue()


async def test_the_line_of_a_fetch_says_how_long_a_sound_is(stash: Stash, site: Site) -> None:
    artifact = await stash.fetch(site.put("/call.wav", sound(65), "audio/wav"))
    assert artifact.facts.seconds == 65
    assert ", 1:05." in as_shown(artifact).split("\n")[0]


async def test_a_drawing_is_fetched_as_text_and_picture(stash: Stash, site: Site) -> None:
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text>Gate</text></svg>'
    artifact = await stash.fetch(site.put("/gate.svg", svg, "image/svg+xml"))
    assert "<text>Gate</text>" in await artifact.text()
    assert artifact.image is not None


def table(first: int, name: str) -> bytes:
    """Return a page that is a table of 30 rows under a header."""
    numbered = [(str(n), f"{name} {n}", str(n * n)) for n in range(first, first + 30)]
    rows = [("Number", "Name", "Square"), *numbered]
    return b"".join(
        text(60 + 120 * column, 760 - 20 * line, cell)
        for line, row in enumerate(rows)
        for column, cell in enumerate(row)
    )


async def test_rows_of_a_table_across_pages_count_on(stash: Stash, site: Site) -> None:
    data = pages(table(1, "gate"), table(31, "gate"))
    artifact = await stash.fetch(site.put("/gates.pdf", data, "application/pdf"))
    found = await artifact.slice(unit="rows", start=30, end=31)
    assert found.text == "| 30 | gate 30 | 900 |\n| 31 | gate 31 | 961 |\n"
    assert (await artifact.slice(unit="pages", start=2)).text.startswith("| 31 | gate 31 |")


async def test_one_of_several_tables_is_named_as_the_path(stash: Stash, site: Site) -> None:
    data = pages(table(1, "gate"), b"", table(100, "sluice"))
    artifact = await stash.fetch(site.put("/gates.pdf", data, "application/pdf"))
    assert artifact.facts.structure_info == (
        "2 tables: Table 1 (page 1), 30 rows; Table 2 (page 3), 30 rows"
    )
    found = await artifact.slice(path="Table 2 (page 3)", unit="rows", start=1, end=1)
    assert as_shown(found).count(f"\n{found.header}{found.text}") == 1
    assert (await artifact.slice(path="Table 2 (page 3)", end=3)).text == found.header + found.text


async def test_a_page_of_garbage_comes_with_the_call_for_its_picture(
    stash: Stash, site: Site
) -> None:
    data = unmapped("The wardens open the lower gate at the mark, and it fills slowly. " * 6)
    artifact = await stash.fetch(site.put("/old.pdf", data, "application/pdf"))
    look = f'artifact_slice(artifact_ref="{artifact.ref}", render="image", unit="pages", start=2)'
    assert f"[Fonts without a mapping to text: 1 page. {look}]" in as_shown(artifact)


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


# --- Parts that the handler reads in its worker: values, elements, links, members, EXIF.


PAGE = b"<title>t</title><p>Some words, and <a href=/b>a link</a>.</p>"


async def test_the_label_says_how_a_part_is_decoded(stash: Stash, put: Put) -> None:
    raw = '{"town": "Łódź"}'.encode("iso-8859-2")
    ref = await put(
        None, raw=raw, content_kind="json", media_type="application/json", charset="iso-8859-2"
    )
    assert (await stash.slice(ref, path="/town")).text == '"Łódź"\n'


@pytest.mark.slow
async def test_a_part_that_is_too_long_for_the_worker_says_that_it_goes_on(
    stash: Stash, put: Put
) -> None:
    raw = json.dumps({"a": ["x" * 98] * 10_200, "b": 1}).encode()
    ref = await put(None, raw=raw, content_kind="json", media_type="application/json")
    whole = await stash.slice(ref, path="/a", max_chars=1_000)
    assert (
        "[What this path names goes on behind its first 1000000 chars. "
        "Name a narrower path for the rest.]" in as_shown(whole)
    )
    assert whole.cut_at == 1_000_000
    assert "goes on behind" not in as_shown(await stash.slice(ref, path="/a/10199"))


async def test_rows_count_inside_the_columns_that_a_path_names(
    stash: Stash, tmp_path: Path
) -> None:
    rows = "".join(f"{n},name{n},{n * n}\n" for n in range(1, 101))
    (tmp_path / "table.csv").write_text(f"id,name,square\n{rows}")
    table = await stash.add_file(tmp_path / "table.csv")
    part = await table.slice(path="id,square", unit="rows", start=7, end=8)
    assert (part.text, part.start, part.end, part.count) == ("7,49\n8,64\n", 7, 8, 100)
    assert part.header == "id,square\n"
    part, pieces = await table.slice(path="square", unit="rows", max_chars=200), list[str]()
    while part.next:
        pieces.append(part.text)
        arguments = {name: part.next.arguments[name] for name in ("path", "unit", "start", "end")}
        part = await table.slice(**arguments, max_chars=200)
    assert "".join([*pieces, part.text]) == "".join(f"{n * n}\n" for n in range(1, 101))
    with pytest.raises(OutOfRange, match="There are 100 rows"):
        await table.slice(path="id", unit="rows", start=101)


@pytest.mark.slow
async def test_rows_behind_what_a_worker_reads_of_columns_lead_to_the_whole_rows(
    stash: Stash, tmp_path: Path
) -> None:
    rows = "".join(f"{n},{'x' * 90}\n" for n in range(1, 12_001))
    (tmp_path / "table.csv").write_text(f"id,text\n{rows}")
    table = await stash.add_file(tmp_path / "table.csv")
    with pytest.raises(OutOfRange, match=r"can be read up to row \d+\.") as beyond:
        await table.slice(path="text,id", unit="rows", start=11_999, end=11_999)
    (call,) = beyond.value.calls
    arguments = {name: call.arguments[name] for name in ("unit", "start", "end")}
    assert (await table.slice(**arguments)).text.startswith("11999,xxx")
