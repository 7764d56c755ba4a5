"""Notebooks: cells in order, headings as outline, outputs bounded."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from fetchstash.errors import NoText
from fetchstash.handlers import ExtractLimits, Hints, handler_named
from tests.handlers.conftest import Read


def notebook(*cells: dict[str, Any]) -> bytes:
    return json.dumps(
        {"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4}
    ).encode()


def code(source: object, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs)}


def test_cells_come_in_order_with_their_outputs(read: Read) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "Some text."]},
        code(["a = 1\n", "print(a)"], {"output_type": "stream", "text": ["1\n"]}),
        code(
            "plot()",
            {
                "output_type": "display_data",
                "data": {"text/plain": "<Figure>", "image/png": "iVBORw0"},
            },
        ),
        code("1/0", {"output_type": "error", "traceback": ["Traceback", "ZeroDivisionError"]}),
        {"cell_type": "raw", "source": "raw"},
    ]
    found, text = read("notebook", notebook(*cells))
    assert text.split("\n\n") == [
        "# Title\nSome text.",
        "```python\na = 1\nprint(a)\n```",
        "```output\n1\n```",
        "```python\nplot()\n```",
        "```output\n<Figure>\n```",
        "(output: image/png)",
        "```python\n1/0\n```",
        "```output\nTraceback\nZeroDivisionError\n```",
        "```\nraw\n```",
        "",
    ]
    assert found.facts.structure_info == "5 cells, 3 of them code in python"


def test_headings_of_cells_are_the_outline(save: Callable[[bytes], Any]) -> None:
    one, two = ({"cell_type": "markdown", "source": source} for source in ("# One", "## Two"))
    cells = [one, code("x = '''\n# no heading\n'''"), two]
    found = handler_named("notebook").extract(save(notebook(*cells)), Hints(), ExtractLimits())
    assert found.parts is not None
    [part] = found.parts
    assert [
        (heading.title, heading.level, part.text.split("\n")[heading.start - 1])
        for heading in part.headings
    ] == [("One", 1, "# One"), ("Two", 2, "## Two")]


@pytest.mark.parametrize(("size", "cut"), [(2_000, False), (2_001, True), (5_000_000, True)])
def test_an_output_is_bounded(read: Read, size: int, cut: bool) -> None:
    _, text = read("notebook", notebook(code("x", {"output_type": "stream", "text": "y" * size})))
    assert ("…" in text) is cut
    assert len(text) < 2_100


def test_a_fence_within_code_does_not_end_the_block(read: Read) -> None:
    _, text = read("notebook", notebook(code("s = '''\n```\n'''")))
    assert text.startswith("````python\n")


def test_the_older_format_with_worksheets_is_read(read: Read) -> None:
    cells: list[dict[str, Any]] = [
        {"cell_type": "heading", "level": 2, "source": "Part"},
        {"cell_type": "code", "input": "x", "outputs": []},
    ]
    data = json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3}).encode()
    assert read("notebook", data)[1] == "## Part\n\n```\nx\n```\n\n"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "its JSON is damaged or cut short"),
        (notebook(code("x"))[:-5], "its JSON is damaged or cut short"),
        (b"[" * 200_000, "its JSON is nested too deeply"),
        (b"[]", "it holds no cells"),
        (b'{"cells": 7}', "the document holds no text"),
        (
            b'{"cells": [null, {"cell_type": "markdown", "source": 4}]}',
            "the document holds no text",
        ),
    ],
    ids=["empty", "cut short", "deep", "list", "number", "odd cells"],
)
def test_a_broken_notebook_gives_one_clear_line(read: Read, data: bytes, reason: str) -> None:
    with pytest.raises(NoText, match=reason):
        read("notebook", data)
