"""A fact of a document is one field of DocumentFacts: all else is derived from it."""

import json
from pathlib import Path
from typing import Any

import pytest

from fetchstash.facts import FACTS, DocumentFacts, Shape
from fetchstash.handlers import Decision, Hints, WorkerPool
from fetchstash.ranges import Heading
from fetchstash.store import Facts
from tests.handlers.conftest import Install

DOCS = Path(__file__).parents[2] / "docs" / "facts.md"
EXAMPLES: dict[Shape, Any] = {
    "line": "a line",
    "lines": ("one", "two"),
    "count": 7,
    "flag": True,
    "headings": (Heading("One", 1, "lines", 1),),
}
EACH: dict[str, Any] = {name: EXAMPLES[fact.shape] for name, fact in FACTS.items()}
EACH["content_kind"] = "unknown_binary"
ALL = DocumentFacts(**EACH)
# Sets every fact that DocumentFacts has to an example.
HANDLER = """
from fetchstash.facts import FACTS, DocumentFacts
from fetchstash.handlers import Extracted, Format
from fetchstash.ranges import Heading

EXAMPLES = EXAMPLES_OF_THE_TEST
ALL = DocumentFacts(**{name: EXAMPLES[fact.shape] for name, fact in FACTS.items()})


class Knowing:
    name = "knowing"

    def extract(self, source, hints, limits):
        return Extracted(None, ALL)


FORMATS = (
    Format(
        kind="unknown_binary", word="a line", handler=Knowing,
        media_types=("application/x-knowing", "a line"), is_text=True, paths=("one", "two"),
        unit="a line", page_word="a line", pictures=True,
    ),
)
""".replace("EXAMPLES_OF_THE_TEST", repr(EXAMPLES))


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
    assert extraction.document_facts() == ALL.document_facts()


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
