"""Jupyter notebooks: cells in order, code as blocks, outputs bounded (nbformat 3 and 4)."""

import json
from collections.abc import Iterator
from enum import unique
from pathlib import Path
from typing import Any, cast

from fetchstash.handlers._contract import Extracted, Format, Hints, Part
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._reasons import FETCH_AGAIN, KEPT, ReasonTable
from fetchstash.handlers._shared._prose import Prose
from fetchstash.text import clip_middle


@unique
class NotebookReason(ReasonTable):
    """Why a notebook is not read."""

    NOTEBOOK_LARGE = "the notebook is larger than {limit:,} bytes", KEPT
    NOTEBOOK_EMPTY = "it holds no cells", KEPT
    NOTEBOOK_DEPTH = "its JSON is nested too deeply", KEPT
    NOTEBOOK_DAMAGED = "its JSON is damaged or cut short", FETCH_AGAIN


# Pictures in a notebook are base64 within its JSON; more than this is not held in memory.
_MAX_BYTES = 128 * 1024 * 1024
_MAX_OUTPUT_CHARS = 2_000

Json = dict[str, Any]


class NotebookHandler:
    """Reads IPYNB files."""

    name = "notebook"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:  # noqa: ARG002 - JSON is UTF-8
        """Read ``source``. An unreadable notebook raises NoText when its parts are read."""
        extracted = Extracted(parts=None)
        extracted.parts = _read(source, extracted)
        return extracted


def _read(source: Path, extracted: Extracted) -> Iterator[Part]:
    notebook = _load(source)
    cells = _cells(notebook)
    language = _language(notebook)
    prose = Prose()
    for cell in cells:
        source_text = _text(cell.get("source", cell.get("input")))
        match cell.get("cell_type"):
            case "code":
                prose.code(source_text, language)
                for output in _dicts(cell.get("outputs")):
                    _write_output(output, prose)
            case "heading":  # of nbformat 3
                level = cell.get("level")
                prose.heading(source_text, level if isinstance(level, int) else 1)
            case "markdown":
                prose.markdown(source_text)
            case _:
                prose.code(source_text)
        yield from prose.full()
    code_cells = sum(cell.get("cell_type") == "code" for cell in cells)
    within = f" in {language}" if language else ""
    extracted.learn(structure_info=f"{len(cells):,} cells, {code_cells:,} of them code{within}")
    title = _dict(notebook.get("metadata")).get("title")
    extracted.learn(title=title if isinstance(title, str) else "")
    yield from prose.end()


def _load(source: Path) -> Json:
    if source.stat().st_size > _MAX_BYTES:
        raise NotebookReason.NOTEBOOK_LARGE.error(limit=_MAX_BYTES)
    try:
        notebook = json.loads(source.read_bytes())
    except RecursionError:
        raise NotebookReason.NOTEBOOK_DEPTH.error() from None
    except ValueError:  # of JSON and of UTF-8
        raise NotebookReason.NOTEBOOK_DAMAGED.error() from None
    if not isinstance(notebook, dict):
        raise NotebookReason.NOTEBOOK_EMPTY.error()
    return cast("Json", notebook)


def _cells(notebook: Json) -> list[Json]:
    sheets = _dicts(notebook.get("worksheets"))  # of nbformat 3
    return _dicts(notebook.get("cells")) or [
        cell for sheet in sheets for cell in _dicts(sheet.get("cells"))
    ]


def _language(notebook: Json) -> str:
    metadata = _dict(notebook.get("metadata"))
    for name in ("language_info", "kernelspec"):
        about = _dict(metadata.get(name))
        language = about.get("name" if name == "language_info" else "language")
        if isinstance(language, str) and language.replace("+", "").isalnum():
            return language
    return ""


def _write_output(output: Json, prose: Prose) -> None:
    """Write what a cell printed, as a block called ``output``; a picture is named."""
    if output.get("output_type") in {"error", "pyerr"}:
        trace = (
            _text(output.get("traceback"), "\n") or f"{output.get('ename')}: {output.get('evalue')}"
        )
        prose.code(clip_middle(trace, _MAX_OUTPUT_CHARS), "output")
        return
    data = _dict(output.get("data")) or output
    printed = _text(data.get("text/plain")) or _text(data.get("text"))
    if printed:
        prose.code(clip_middle(printed, _MAX_OUTPUT_CHARS), "output")
    for media_type in data:
        if media_type.startswith("image/"):
            prose.paragraph(f"(output: {media_type})")


def _text(value: object, between: str = "") -> str:
    """Return a text that may stand as a list of its lines."""
    if isinstance(value, list):
        return between.join(
            piece for piece in cast("list[object]", value) if isinstance(piece, str)
        )
    return value if isinstance(value, str) else ""


def _dict(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _dicts(value: object) -> list[Json]:
    return (
        [cast("Json", item) for item in cast("list[object]", value) if isinstance(item, dict)]
        if isinstance(value, list)
        else []
    )


FORMATS = (
    Format(
        kind="notebook",
        word="notebook",
        handler=NotebookHandler,
        media_types=("application/x-ipynb+json",),
        extensions=("ipynb",),
        is_markup=True,  # sniffed with JSON
    ),
)
