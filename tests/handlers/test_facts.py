"""A fact of a document is one field of DocumentFacts: all else is derived from it."""

import json
from pathlib import Path
from typing import Any

import pytest

from fetchstash.handlers import Decision, Hints, WorkerPool, describe
from fetchstash.store import Facts
from fetchstash.text.facts import FACTS, DocumentFacts, Shape
from fetchstash.text.ranges import Heading
from tests.handlers.conftest import Install

DOCS = Path(__file__).parents[2] / "docs" / "facts.md"
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
    assert line in DOCS.read_text(encoding="utf-8").splitlines()
