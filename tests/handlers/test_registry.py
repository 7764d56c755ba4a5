"""The registry: every format has a handler, and every kind of content a format."""

import ast
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from fetchstash import handlers
from fetchstash.errors import FetchstashError
from fetchstash.handlers import (
    ContentKind,
    Decision,
    ExtractLimits,
    Format,
    Hints,
    PartRequest,
    Reason,
    WorkerPool,
    built_in,
    describe,
    format_of,
    handler_of,
    route_file,
)
from fetchstash.handlers._reasons import ReasonTable
from fetchstash.handlers._registry import check_claims, reasons
from fetchstash.store import Facts
from fetchstash.text.facts import FACTS, DocumentFacts, Shape
from fetchstash.text.ranges import Heading
from tests.handlers.conftest import Install

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


# --- A fact of a document is one field of DocumentFacts: all else is derived from it.

PAGE = Path(__file__).parents[2] / "docs" / "facts.md"
EXAMPLES: dict[Shape, Any] = {
    "line": "a line",
    "lines": ("one", "two"),
    "count": 7,
    "flag": True,
    "headings": (Heading("One", 1, "lines", 1),),
}
EACH: dict[str, Any] = {
    **{name: EXAMPLES[fact.shape] for name, fact in FACTS.items()},
    # Two facts are words of a table.
    "media_type": "application/x-knowing",
    "page_verdict": "paywall",
}
ALL = DocumentFacts(**EACH)
# What the server itself says of a document: by its format, by the table of reasons, by a look.
OF_SERVER = {
    *("content_kind", "word", "is_text", "paths", "unit", "page_word", "pictures"),
    *("extraction_error", "leads_to"),
}
# Sets every fact that DocumentFacts has to an example.
HANDLER = """
from fetchstash.text.facts import DocumentFacts
from fetchstash.handlers import Extracted, Format
from fetchstash.text.ranges import Heading

ALL = DocumentFacts(**EACH_OF_THE_TEST)


class Knowing:
    name = "knowing"

    def extract(self, source, hints, limits):
        return Extracted(None, ALL)


FORMATS = (
    Format(
        kind="unknown_binary", word="a line", handler=Knowing,
        media_types=("application/x-knowing",), is_text=True,
    ),
)
""".replace("EACH_OF_THE_TEST", repr(EACH))


@pytest.mark.slow
@pytest.mark.anyio
async def test_every_fact_of_a_handler_comes_through_the_worker(
    tmp_path: Path, install_handler: Install
) -> None:
    install_handler("knowing", HANDLER)
    source = tmp_path / "document"
    source.touch()
    pool = WorkerPool(workers=1)
    decision = Decision("unknown_binary", "application/x-knowing", "", "magic", (), mismatch=False)
    extraction = await pool.extract(source, decision, Hints(), tmp_path)
    await pool.aclose()
    assert extraction.handler == "knowing"
    facts = extraction.document_facts()
    learnt = facts.keys() - OF_SERVER
    assert {name: facts[name] for name in learnt} == {name: EACH[name] for name in learnt}
    # The server has not imported the worker's format, and knows the document as it routed it.
    own = {name: facts[name] for name in OF_SERVER - {"extraction_error", "leads_to"}}
    assert own == describe("unknown_binary", "application/x-knowing")


def test_every_fact_is_in_the_manifest_and_is_read_from_it() -> None:
    facts = Facts(artifact_ref="art_1", **ALL.document_facts())
    manifest = json.loads(json.dumps(facts.to_json()))
    assert manifest.keys() >= FACTS.keys()
    assert Facts.from_json(manifest) == facts


def test_a_manifest_without_a_fact_that_is_new_is_read() -> None:
    manifest = Facts().to_json()
    for name in FACTS:
        del manifest[name]
    assert Facts.from_json(manifest) == Facts()


@pytest.mark.parametrize("name", FACTS)
def test_a_fact_of_the_document_stands_in_the_documentation_with_its_sentence(name: str) -> None:
    line = f"| `{name}` | {FACTS[name].doc} |"
    assert line in PAGE.read_text(encoding="utf-8").splitlines()


# --- Reasons are our own words: nothing that a document holds stands in them.

Pack = Callable[[Mapping[str, str | bytes]], bytes]


@pytest.mark.slow
@pytest.mark.anyio
async def test_an_error_quotes_60_characters_of_a_path_at_the_most(
    pack: Pack, tmp_path: Path
) -> None:
    source = tmp_path / "a.zip"
    source.write_bytes(pack({"x": "y"}))
    pool = WorkerPool(ExtractLimits(), workers=1)
    try:
        request = PartRequest(source=source, path="m" * 500)
        with pytest.raises(FetchstashError) as caught:
            await pool.part(route_file(source, {}, ""), request)
    finally:
        await pool.aclose()
    assert "m" * 59 in caught.value.what
    assert "m" * 61 not in caught.value.what


OWN_WORDS = {"NoText", "OutOfRange", "BadArgument", "TooLarge"}
MODULES = [
    path
    for path in sorted(Path(handlers.__file__).parent.rglob("*.py"))
    if path.parent.name != "_worker"
]


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_a_reader_takes_its_reasons_from_the_table(module: Path) -> None:
    calls = [node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Call)]
    names = {node.func.id for node in calls if isinstance(node.func, ast.Name)}
    assert not names & OWN_WORDS, "raise Reason.….error() (docs/plugins.md)"


@pytest.mark.slow
@pytest.mark.parametrize("reason", reasons().values(), ids=str)
def test_a_reason_is_a_whole_sentence_or_the_end_of_one(reason: ReasonTable) -> None:
    values: dict[str, int | str | ReasonTable] = dict.fromkeys(reason.names, 2)
    strings: dict[str, int | str | ReasonTable]
    strings = {"name": "nowhere", "unit": "lines", "why": Reason.EMPTY_FILE}
    strings |= {"error": "ValueError", "library": "PIL", "media_type": "text/html"}
    error = reason.error(**values | {k: v for k, v in strings.items() if k in values})
    assert error.next_step.endswith(".")
    assert error.what.endswith(".") or error.what[0].islower() or error.what == "no PDF"
    assert "{" not in error.line()
    assert len(error.what) <= 160


@pytest.mark.slow
def test_no_two_tables_of_reasons_have_the_same_code() -> None:
    assert sum(map(len, ReasonTable.__subclasses__())) == len(reasons())


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", [m for m in MODULES if m.stem != "_contract"], ids=lambda path: path.stem
)
def test_a_reader_gives_its_reason_for_missing_text_from_the_table(module: Path) -> None:
    calls = [node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Call)]
    learnt = {keyword.arg for call in calls for keyword in call.keywords}
    assert "extraction_error" not in learnt, "extracted.fail(Reason.….cause()) (docs/plugins.md)"
