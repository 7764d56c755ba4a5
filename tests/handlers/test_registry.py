"""The registry: every line leads to a handler, and every kind that has text is somebody's."""

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from fetchstash import handlers
from fetchstash.handlers import ContentKind, Decision, Handler
from fetchstash.handlers._registry import FALLBACK, HANDLERS, find, load

DOCS = Path(__file__).parents[2] / "docs" / "handlers.md"


@pytest.mark.parametrize("spec", [*(spec for spec, _ in HANDLERS), FALLBACK])
def test_a_line_of_the_registry_leads_to_a_handler(spec: str) -> None:
    handler: Handler = load(spec)
    assert handler.name
    assert handler.name.islower()
    assert callable(handler.extract)
    assert handler.can_handle("unknown_binary", "application/x-none") is (spec == FALLBACK)


def test_names_of_handlers_are_their_own() -> None:
    names = [load(spec).name for spec, _ in HANDLERS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("kind", get_args(ContentKind))
def test_a_kind_has_a_handler_and_a_line_in_the_documentation(kind: ContentKind) -> None:
    media_type = "application/rtf" if kind == "office_doc" else ""
    assert (find(Decision(kind, media_type, "", "mime", (), mismatch=False)).name == "binary") is (
        kind == "unknown_binary"
    )
    assert f"`{kind}`" in DOCS.read_text(encoding="utf-8")


def test_the_exported_names_are_those_that_are_visible() -> None:
    assert set(handlers.__all__) == {name for name in vars(handlers) if not name.startswith("_")}


def test_importing_the_room_imports_no_reader_of_formats() -> None:
    heavy = "selectolax pypdfium2 pypdf PIL tiktoken charset_normalizer jsonpath python_calamine magic re2 httpx2 pydantic email.parser"
    program = (
        f"import sys, fetchstash.handlers; print([m for m in {heavy.split()} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"
