"""Jupyter notebooks: cells in order, code as blocks, outputs bounded (nbformat 3 and 4)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fetchstash.handlers._contract import Extracted, Part
from fetchstash.handlers._data import DataReason
from fetchstash.handlers._parts import Streamed
from fetchstash.handlers._prose import Prose
from fetchstash.text import clip_middle, counted
from fetchstash.text.untyped import as_object, as_objects, is_array, is_object

# Pictures in a notebook are base64 within its JSON; more than this is not held in memory.
_MAX_BYTES = 128 * 1024 * 1024
_MAX_OUTPUT_CHARS = 2_000

Json = dict[str, Any]


class NotebookHandler(Streamed):
    """Reads IPYNB files."""

    name = "notebook"

    def read(self, source: Path, extracted: Extracted) -> Iterator[Part]:
        """Yield the cells. Raises NoText for an unreadable notebook."""
        notebook = _load(source)
        metadata = as_object(notebook.get("metadata"))
        cells = as_objects(notebook.get("cells"))
        if not cells:  # nbformat 3
            sheets = as_objects(notebook.get("worksheets"))
            cells = [cell for sheet in sheets for cell in as_objects(sheet.get("cells"))]
        language = _language(metadata)
        prose = Prose()
        for cell in cells:
            _write_cell(cell, language, prose)
            yield from prose.full()
        code_cells = sum(cell.get("cell_type") == "code" for cell in cells)
        within = f" in {language}" if language else ""
        title = metadata.get("title")
        extracted.learn(
            structure_info=f"{counted(len(cells), 'cell')}, {code_cells:,} of them code{within}",
            title=title if isinstance(title, str) else "",
        )
        yield from prose.end()


def _load(source: Path) -> Json:
    if source.stat().st_size > _MAX_BYTES:
        raise DataReason.NOTEBOOK_LARGE.error(limit=_MAX_BYTES)
    damaged = DataReason.NOTEBOOK_DAMAGED.instead_of(ValueError)  # of JSON and of UTF-8
    with damaged, DataReason.NOTEBOOK_DEPTH.instead_of(RecursionError):
        notebook = json.loads(source.read_bytes())
    if not is_object(notebook):
        raise DataReason.NOTEBOOK_EMPTY.error()
    return notebook


def _language(metadata: Json) -> str:
    for name, key in (("language_info", "name"), ("kernelspec", "language")):
        language = as_object(metadata.get(name)).get(key)
        if isinstance(language, str) and language.replace("+", "").isalnum():
            return language
    return ""


def _write_cell(cell: Json, language: str, prose: Prose) -> None:
    text = _text(cell.get("source", cell.get("input")))
    match cell.get("cell_type"):
        case "code":
            prose.code(text, language)
            for output in as_objects(cell.get("outputs")):
                _write_output(output, prose)
        case "heading":  # of nbformat 3
            level = cell.get("level")
            prose.heading(text, level if isinstance(level, int) else 1)
        case "markdown":
            prose.markdown(text)
        case _:
            prose.code(text)


def _write_output(output: Json, prose: Prose) -> None:
    """Write what a cell printed, as a block called ``output``; a picture is named."""
    data = as_object(output.get("data")) or output
    if output.get("output_type") in {"error", "pyerr"}:
        trace = _text(output.get("traceback"), "\n")
        printed, data = trace or f"{output.get('ename')}: {output.get('evalue')}", {}
    else:
        printed = _text(data.get("text/plain")) or _text(data.get("text"))
    if printed:
        prose.code(clip_middle(printed, _MAX_OUTPUT_CHARS), "output")
    for media_type in data:
        if media_type.startswith("image/"):
            prose.paragraph(f"(output: {media_type})")


def _text(value: object, between: str = "") -> str:
    """Return a text that may stand as a list of its lines."""
    if is_array(value):
        return between.join(piece for piece in value if isinstance(piece, str))
    return value if isinstance(value, str) else ""
