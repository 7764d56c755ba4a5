"""Where sentences came from: what is supported, where it stands, and who was shown it."""

import sys
import tomllib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fetchstash import Origin, Stash, TooLarge, open_stash, open_stash_sync
from fetchstash.render import Host
from fetchstash.server.tools import answer, tool_specs

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]


def pairs_of(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


PAIRS, HELD_OUT = pairs_of("trace_pairs.toml"), pairs_of("trace_held_out.toml")


@asynccontextmanager
async def documented(
    folder: Path, pairs: dict[str, Any] = PAIRS, **settings: Any
) -> AsyncGenerator[Stash]:
    async with open_stash({"store.folder": str(folder / "store"), **settings}) as stash:
        for name, text in pairs["documents"].items():
            (folder / name).write_text(text.strip() + "\n", encoding="utf-8")
            await stash.add_file(folder / name)
        yield stash


@pytest.mark.long
@pytest.mark.parametrize(
    ("known", "expected"),
    [(PAIRS, (37, 2, 3)), (HELD_OUT, (34, 1, 6))],  # docs/view.md has these figures
    ids=["chosen on", "held out"],
)
async def test_sixty_sentences_are_told_apart(
    tmp_path: Path, known: dict[str, Any], expected: tuple[int, int, int]
) -> None:
    pairs = known["pairs"]
    asked = [*pairs["quoted"], *pairs["paraphrased"], *((text, "") for text in pairs["invented"])]
    async with documented(tmp_path, known) as stash:
        origins = [next(iter(await stash.trace(sentence))) for sentence, _ in asked]
        again = [next(iter(await stash.trace(sentence))) for sentence, _ in asked]
    assert [origin.to_json() for origin in again] == [origin.to_json() for origin in origins]
    right, wrong, missed = list[Origin](), list[Origin](), list[Origin]()
    for origin, (_, place) in zip(origins, asked, strict=True):
        # Around a line that was cut in two the words may stand apart.
        text = " ".join(origin.passage.text.split()) if origin.passage else ""
        if origin.is_supported:
            (right if place and place in text else wrong).append(origin)
        elif place:
            missed.append(origin)
    precision, recall = len(right) / len(right + wrong), len(right) / 40
    sys.stdout.write(f"\nprecision {precision:.2f}, recall {recall:.2f}\n")  # with -s
    for name, origin in [*(("wrong", o) for o in wrong), *(("missed", o) for o in missed)]:
        sys.stdout.write(f"{name}: {origin.sentence} ({origin.support:.2f})\n")
    assert (len(right), len(wrong), len(missed)) == expected


async def test_a_passage_names_its_lines_and_the_calls_that_showed_it(tmp_path: Path) -> None:
    text = "\n\n".join(f"Tower {n} of the coast was built in {1500 + n}." for n in range(900))
    path = tmp_path / "towers.md"
    path.write_text(text)
    async with documented(tmp_path, PAIRS, **{"ingest.read_roots": [str(tmp_path)]}) as stash:
        tools = {spec.name: spec for spec in tool_specs(stash.settings)}

        async def ask(tool: str, **arguments: Any) -> None:
            await answer(stash, Host(stash.settings.views), tools[tool], arguments)

        await ask("stash_file", path=str(path))
        ref = (await stash.list()).facts[0].artifact_ref
        await ask("artifact_slice", artifact_ref=ref, start=801, end=805)
        await ask("artifact_grep", artifact_ref=ref, pattern="Tower 402 ", context=0)
        sentences = [f"Tower {n} was built in {1500 + n}." for n in (1, 401, 402, 403)]
        traced = await stash.trace(" ".join(sentences))
    assert traced.is_logged
    assert [origin.sentence for origin in traced] == sentences
    assert [o.passage.first_line for o in traced if o.passage] == [3, 803, 805, 807]
    assert {o.facts.artifact_ref for o in traced if o.facts} == {ref}
    shown = [[call.tool for call in origin.shown] for origin in traced]
    assert shown == [["stash_file"], ["artifact_slice"], ["artifact_slice", "artifact_grep"], []]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(
            "One tall mast. Two red sails!", ["One tall mast.", "Two red sails!"], id="two"
        ),
        pytest.param("# Of masts\n\n- a tall mast\n- the **red** sail", 2, id="a list"),
        pytest.param("Dr. Ann E. Berg sails, e.g. Fig. 3 shows it.", 1, id="abbreviations"),
        pytest.param("A line that\nwas wrapped here. Then another short line.", 2, id="wrapped"),
        pytest.param("It is so. Yes.\n\n---\n", 0, id="nothing is said"),
    ],
)
async def test_a_text_is_taken_apart_into_sentences(
    text: str, found: int | list[str], tmp_path: Path
) -> None:
    async with open_stash({"store.folder": str(tmp_path)}) as stash:
        traced = await stash.trace(text)
    named = [origin.sentence for origin in traced]
    assert (named if isinstance(found, list) else len(named)) == found
    assert all(text[o.start :].startswith(o.sentence) for o in traced)
    assert not any(origin.is_supported or origin.passage for origin in traced)


def test_a_trace_blocks_for_other_code_and_has_a_bound(tmp_path: Path) -> None:
    with open_stash_sync({"store.folder": str(tmp_path)}) as stash:
        for text in ("red sails " * 20_000, "Red sails here. " * 400):
            with pytest.raises(TooLarge, match="A trace takes 100,000 characters and 300"):
                stash.trace(text)
