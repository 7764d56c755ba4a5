"""The registry: every format has a handler, and every kind of content a format."""

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from fetchstash import handlers
from fetchstash.handlers import ContentKind, Decision, Format, built_in, format_of, handler_of
from fetchstash.handlers._registry import check_claims

PACKAGE = Path(handlers.__file__).parents[1]
DOCS = Path(__file__).parents[2] / "docs" / "handlers.md"


def literal_kinds(source: str) -> list[str]:
    """Return the expressions of a module that name a kind of content by a literal."""
    expressions: list[str] = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.keyword(arg="content_kind", value=value) if "'" in ast.unparse(value):
                expressions.append(ast.unparse(node))
            case ast.Compare() if "content_kind" in (text := ast.unparse(node)) and "'" in text:
                expressions.append(text)
            case ast.Constant(value="office_doc" | "spreadsheet" | "unknown_binary" | "notebook"):
                expressions.append(ast.unparse(node))
            case _:
                pass
    return expressions


@pytest.mark.slow
def test_no_module_but_the_handlers_names_a_kind_of_content() -> None:
    # The client imports no handler: it reads kinds in what others fetched.
    spared = {PACKAGE / "client" / "_stubs.py"}
    outside = {path for path in PACKAGE.rglob("*.py") if "handlers" not in path.parts} - spared
    assert {path: kinds for path in outside if (kinds := literal_kinds(path.read_text()))} == {}
    assert literal_kinds('Facts(content_kind="pdf") if a.content_kind == "pdf" else "office_doc"')


@pytest.mark.parametrize("declared", built_in().all, ids=lambda f: f"{f.kind} {f.media_types}")
def test_a_format_declares_a_handler_that_is_there(declared: Format) -> None:
    handler = handler_of(declared)
    assert handler.name.islower()
    answers_parts = bool(declared.paths) or declared.pictures
    assert not answers_parts or callable(getattr(handler, "part", None))


@pytest.mark.parametrize(
    ("extension", "media_type"), [("pdf", "application/x-other"), ("other", "application/pdf")]
)
def test_two_formats_that_claim_the_same_are_an_error(extension: str, media_type: str) -> None:
    pdf = built_in().by_name("a.pdf")
    assert pdf
    other = replace(pdf, word="other", media_types=(media_type,), extensions=(extension,))
    with pytest.raises(ValueError, match="PDF and other both claim"):
        check_claims([pdf, other])
    check_claims([pdf, replace(other, priority=1)])


@pytest.mark.parametrize("kind", get_args(ContentKind))
def test_a_kind_has_a_handler_and_a_line_in_the_documentation(kind: ContentKind) -> None:
    declared = format_of(Decision(kind, "", "", "mime", (), mismatch=False))
    assert declared.kind == kind
    assert (handler_of(declared).name == "binary") is (kind == "unknown_binary")
    assert f"`{kind}`" in DOCS.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "media_type", "name"),
    [
        ("xml", "application/rss+xml", "feed"),
        ("xml", "application/xml", "xml"),
        ("xml", "application/vnd.anything+xml", "xml"),
        ("image", "image/svg+xml", "svg"),
        ("image", "image/x-anything", "image"),
        ("text", "application/toml", "yaml"),
        ("text", "text/anything", "text"),
        ("office_doc", "application/vnd.oasis.opendocument.text", "odf"),
        ("unknown_binary", "text/html", "binary"),
        ("unknown_binary", "application/x-ole-storage", "old_office"),
    ],
)
def test_a_document_is_read_by_the_handler_of_its_media_type_and_kind(
    kind: ContentKind, media_type: str, name: str
) -> None:
    decision = Decision(kind, media_type, "", "mime", (), mismatch=False)
    assert handler_of(format_of(decision)).name == name


@pytest.mark.slow
def test_importing_the_room_imports_no_reader_of_formats() -> None:
    heavy = (
        "selectolax pypdfium2 pypdf PIL tiktoken charset_normalizer jsonpath python_calamine"
        " magic re2 httpx2 pydantic email.parser zipfile"
    )
    program = (
        "import sys, fetchstash.handlers as h; h.format_of(h.detect_content_kind({}, b'a', ''));"
        f" print([m for m in {heavy.split()} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"
