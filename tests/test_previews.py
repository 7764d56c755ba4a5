"""Previews of long documents: their limits, and what they say of how much they show."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from fetchstash.config import load
from fetchstash.handlers import ExtractLimits, Hints
from fetchstash.render import Host, View, view_of
from fetchstash.stash import Excerpt, StoredDocument
from fetchstash.store import Facts
from fetchstash.text import PreviewLimits, TruncationInfo, ViewLimits, head_and_tail, picture_size
from fetchstash.text.ranges import Preview
from tests.handlers.parts import handler_named

LINES = [f"line {number} of a text" for number in range(1, 10_001)]
TEXT = "".join(f"{line}\n" for line in LINES)


def facts(text: str, **changes: Any) -> Facts:
    values: dict[str, Any] = {
        "artifact_ref": "art_a",
        "content_kind": "text",
        "media_type": "text/plain",
        "name": "a.txt",
        "final_url": "https://e.org/",
        "size_bytes": len(text),
        "extracted_chars": len(text),
        "text_bytes": len(text),
        "text_lines": len(text.splitlines()),
        "text_tokens": 70_000,
    }
    return Facts(**(values | changes))


def artifact(text: str, **excerpt: Any) -> StoredDocument:
    return StoredDocument(facts(text), load(), Excerpt(text=text[:30_001], **excerpt))


def view(
    text: str, max_chars: int | None = None, *, limits: PreviewLimits | None = None, **excerpt: Any
) -> View:
    host = Host(preview=limits or PreviewLimits())
    return view_of(host, artifact(text, **excerpt), max_chars)


def said(found: View) -> str:
    (line,) = (line for line in found.text.split("\n") if line.startswith("[Shown: "))
    return line


def test_a_text_is_shown_by_its_first_and_last_lines_to_the_bound() -> None:
    found = view(TEXT, ending=TEXT[-2_000:])
    lines = found.body.split("\n")
    between = next(number for number, line in enumerate(lines) if line.endswith(" more lines …"))
    assert len(found.body) == 2_000
    assert lines[: between - 1] == LINES[: between - 1]
    assert LINES[between - 1].startswith(lines[between - 1].removesuffix("…"))
    assert lines[between + 1 :] == LINES[between + 1 - len(lines) :]
    assert lines[between] == f"… {10_000 - len(lines) + 1} more lines …"
    assert said(found).startswith(f"[Shown: {len(lines) - 1} of 10000 lines, ≈")
    assert found.text.endswith("offset=0)")


def test_a_document_is_shown_by_its_beginning_and_reading_goes_on_behind_it() -> None:
    found = view(TEXT)
    assert found.body == TEXT[:2_000]
    lines = found.body.count("\n") + 1
    assert (
        said(found)
        == f"[Shown: {lines} of 10000 lines, ≈{_shown(found)['tokens_shown']} of 70000 tokens.]"
    )
    assert found.text.endswith("offset=2000)")


def _shown(found: View) -> dict[str, Any]:
    return found.facts[0]["shown"]  # type: ignore[return-value]


def test_how_much_is_shown_is_among_the_facts_of_a_preview_alone() -> None:
    shown = _shown(view(TEXT))
    assert (shown["total_lines"], shown["total_tokens"], shown["total_tokens_exact"]) == (
        10_000,
        70_000,
        True,
    )
    assert not shown["tokens_shown_exact"]
    assert "shown" not in view("short\n").facts[0]


def test_a_table_says_its_rows_columns_and_cells() -> None:
    cut = Preview(
        "a,b\n1,2…",
        rows_shown=1,
        total_rows=9,
        columns_shown=2,
        total_columns=80,
        cells_truncated=1,
    )
    assert said(view(TEXT, preview=cut)).startswith(
        "[Shown: 1 of 9 rows, 2 of 80 columns, 1 cell cut, ≈"
    )


def test_a_table_that_was_cut_twice_has_no_count_of_rows() -> None:
    cut = Preview("\n".join(["cell"] * 100), rows_shown=100, total_rows=900)
    found = view(TEXT, 200, preview=cut)
    assert found.body == "\n".join(["cell"] * 40)
    assert "rows" not in said(found)


@pytest.mark.parametrize("limit", [200, 400, 700, 1_000, 30_000])
def test_the_sample_of_json_is_whole_and_valid_or_not_there(tmp_path: Path, limit: int) -> None:
    source = tmp_path / "items.json"
    source.write_text(json.dumps({"items": [{"id": n, "text": "word " * 20} for n in range(900)]}))
    extracted = handler_named("json").extract(source, Hints(), ExtractLimits())
    list(extracted.parts or ())
    cut = extracted.preview
    body = view(TEXT, limit, preview=cut).body
    assert cut.text.startswith(body) or json.loads(body.removeprefix(cut.text))
    assert len(body) <= limit


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize(
    "setting", ["max_lines", "max_total_output", "max_tokens_per_file", "max_line_length"]
)
def test_the_settings_bound_the_preview_of_a_fetch(setting: str, more: int) -> None:
    limit = 100 + more
    limits = replace(PreviewLimits(), **{setting: limit})
    found = view(
        TEXT if setting != "max_line_length" else TEXT.replace(" ", " and more" * 9),
        limits=limits,
        ending=TEXT[-2_000:],
    )
    shown = _shown(found)
    lines = [line for line in found.body.split("\n") if not line.endswith("lines …")]
    if setting == "max_lines":
        assert shown["lines_shown"] == len(lines) == limit
    elif setting == "max_total_output":
        assert len(found.body) == limit
        assert shown["total_output_limit_reached"]
    elif setting == "max_tokens_per_file":
        assert shown["tokens_shown"] <= limit
    else:
        assert max(map(len, lines)) == limit


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("x" * 90_000, "1 of 1 line", id="one line without end"),
        pytest.param(f"{'x' * 14_999}\n" * 20, "3 of 20 lines", id="a few long lines"),
        pytest.param("[\n" * 90_000, "200 of 90000 lines", id="very short lines"),
    ],
)
def test_lines_of_any_length_give_a_preview(text: str, shown: str) -> None:
    found = view(text, ending=text[-30_000:])
    assert said(found).startswith(f"[Shown: {shown}, ")
    assert len(found.body) == 2_000 or "200 of" in shown


def test_long_lines_are_shortened_so_that_several_are_seen() -> None:
    lines = ["x" * 5_000] * 100
    shown, count = head_and_tail(
        lines, lines, 100, (133, 67), 1_000, lambda text: len(text) <= 2_000
    )
    assert count == 9
    assert len(shown) == 2_000
    assert shown.split("\n")[6] == "… 91 more lines …"


@pytest.mark.parametrize(("head", "tail"), [(3, 2), (0, 2), (2, 0), (0, 0)])
def test_as_many_lines_of_each_end_are_shown_as_there_may_be(head: int, tail: int) -> None:
    shown, count = head_and_tail(LINES, LINES, len(LINES), (head, tail), 99, lambda _: True)
    assert shown.split("\n") == [
        *LINES[:head],
        f"… {10_000 - head - tail} more lines …",
        *LINES[len(LINES) - tail :],
    ]
    assert count == head + tail


def test_an_estimate_is_marked_wherever_it_is_read() -> None:
    assert (
        TruncationInfo(tokens_shown=4, total_tokens=20_100, total_tokens_exact=False).line()
        == "[Shown: 4 of ≈20100 tokens.]"
    )
    sampled = facts(TEXT, text_tokens=20_100, text_tokens_exact=False)
    assert "\ntext_tokens: ≈20100\n" in view_of(Host(), sampled).text
    assert "\ntext_tokens: 70000\n" in view_of(Host(), facts(TEXT)).text


def test_a_host_that_counts_bytes_gets_a_preview_within_its_bytes() -> None:
    text = "Zürich–Köln\n" * 9_000
    host = Host(ViewLimits(6_800, 6_800, 6_800, count_bytes=True))
    found = view_of(host, artifact(text, ending=text[-2_000:]))
    assert 1_990 < len(found.body.encode()) <= 2_000


@pytest.mark.parametrize(
    ("form", "options"),
    [("PNG", {}), ("GIF", {}), ("JPEG", {}), ("WEBP", {}), ("WEBP", {"lossless": True})],
)
def test_the_width_and_height_of_a_picture_are_read_in_that_order(
    form: str, options: dict[str, Any]
) -> None:
    out = io.BytesIO()
    Image.new("RGB", (30, 20)).save(out, form, **options)
    assert picture_size(out.getvalue()) == (30, 20)
    assert picture_size(out.getvalue()[:6]) is None
