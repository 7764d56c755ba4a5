"""A focus: what a fetch of one URL and of several shows of what is asked for."""

import re
from pathlib import Path

import pytest

from fetchstash.render import as_shown
from fetchstash.server.tools import tool_functions
from fetchstash.stash import Artifact, Stash, log_of
from fetchstash.text.tokens import estimate
from tests.handlers.pdf_pages import lines, pages, text
from tests.loopback import Site

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]
ANSWER = "The night tariff of the harbour ferry is 14 kroner for a bicycle."
FOCUS = "night tariff bicycle ferry"


def page(number: int, *, sentence: str = "", paragraphs: int = 40) -> str:
    """Return an article of some 6,000 characters on something else, with a sentence in it."""
    written = [
        f"<p>Page {number}, paragraph {n}: the keeper of the lighthouse wrote down the wind, the "
        f"height of the water at the {n}th mark, and who had come by boat that day.</p>"
        for n in range(paragraphs)
    ]
    written.insert(paragraphs * 2 // 3, f"<p>{sentence}</p>")
    return (
        f"<html><head><title>Log {number}</title></head><body><article>"
        f"<h1>Log {number}</h1>{''.join(written)}</article></body></html>"
    )


def ten(site: Site, *, holding: tuple[int, ...] = (6,)) -> list[str]:
    return [
        site.put(f"/{n}.html", page(n, sentence=ANSWER if n in holding else "A ferry passed."))
        for n in range(10)
    ]


async def test_ten_pages_with_a_focus_cost_the_passage_and_a_line_for_each_other(
    stash: Stash, site: Site
) -> None:
    results = await stash.fetch_many(ten(site), focus=FOCUS)
    shown = as_shown(results)
    assert ANSWER in shown
    assert estimate(shown) <= 1_500
    lines = shown.split("\n")
    assert sum("Others answer the focus better" in line for line in lines) == 9
    [slice_call] = re.findall(r"artifact_slice\(.*?\)", shown)
    holder = results[6]
    assert isinstance(holder, Artifact)
    assert f'artifact_ref="{holder.ref}", unit="lines"' in slice_call


async def test_with_a_focus_that_no_page_has_each_says_so_in_a_line(
    stash: Stash, site: Site
) -> None:
    shown = as_shown(await stash.fetch_many(ten(site), focus="albatross migration"))
    assert shown.count("No passage has a word of the focus.") == 10
    assert "untrusted" not in shown
    assert "artifact_grep(artifact_refs=[" in shown


async def test_several_pages_that_answer_each_show_their_passage(stash: Stash, site: Site) -> None:
    urls = [
        site.put(f"/{n}.html", page(n, sentence=f"The night tariff of ferry {n} is {n}0 kroner."))
        for n in range(4)
    ]
    shown = as_shown(await stash.fetch_many(urls, focus="night tariff of the ferry"))
    assert [f"ferry {n} is {n}0 kroner" in shown for n in range(4)] == [True] * 4


async def test_a_small_limit_does_not_drop_the_focus(stash: Stash, site: Site) -> None:
    results = await stash.fetch_many(ten(site), focus=FOCUS, max_chars=1_000)
    assert ANSWER in as_shown(results, 1_000)


async def test_a_page_that_fits_shows_with_a_focus_what_answers_and_says_what_all_would_cost(
    stash: Stash, site: Site
) -> None:
    url = site.put("/long.html", page(1, sentence=ANSWER, paragraphs=120))
    whole = as_shown(await stash.fetch(url))
    shown = as_shown(await stash.fetch(url, focus=FOCUS))
    assert ANSWER in shown
    assert estimate(shown) < estimate(whole) / 4
    artifact = await stash.get(url)
    assert f"[The whole text would fit, at {artifact.tokens} tokens.]" in shown


async def test_a_short_page_is_shown_whole_whatever_the_focus(stash: Stash, site: Site) -> None:
    url = site.put("/short.txt", "One line.\nAnother line.\n", "text/plain")
    shown = as_shown(await stash.fetch(url, focus="albatross"))
    assert "One line.\nAnother line." in shown
    assert "focus" not in shown


async def test_a_text_cut_to_its_share_is_shown_as_its_handler_previews_it(
    stash: Stash, site: Site
) -> None:
    rows = ", ".join(f'{{"id": {n}, "name": "station {n}"}}' for n in range(200))
    json = site.put("/rows.json", f"[{rows}]", "application/json")
    text = site.put("/a.txt", "word " * 6_000, "text/plain")
    shown = as_shown(await stash.fetch_many([json, text], max_chars=9_000), 9_000)
    assert "array of 200 objects" in shown


async def test_the_log_of_calls_says_which_page_was_shown(stash: Stash, site: Site) -> None:
    fetch_content = next(f for f in tool_functions(stash) if f.__name__ == "fetch_content")
    await fetch_content(urls=ten(site), focus=FOCUS)
    log = log_of(stash.settings)
    assert log
    record = Path(log.path).read_text(encoding="utf-8").splitlines()[-1]
    assert record.count('"facts"') == 9
    assert record.count('"preview"') == 1


async def test_a_passage_of_a_pdf_names_its_section_and_the_section_is_a_part(
    stash: Stash, tmp_path: Path
) -> None:
    told = [f"The observer wrote down reading {n} of the gauge by hand, twice." for n in range(24)]
    report = pages(
        text(60, 800, "1 Method", font=3, size=14)
        + lines(780, *told)
        + lines(450, "The kestrel nests on the wall, and was never disturbed at it.")
        + text(60, 420, "2 Results", font=3, size=14)
        + lines(400, "The mean level was higher than in the year before.")
    )
    (tmp_path / "report.pdf").write_bytes(report)
    kept = await stash.add_file(tmp_path / "report.pdf")
    [passage] = await stash.search("kestrel", [kept.ref])
    assert passage.heading == "1 Method"
    found = await stash.search("kestrel", [kept.ref])
    assert re.match(rf"-- {kept.ref}, lines? [\d to]+, in 1 Method\n", str(found))
    [of_section] = await stash.search("results level", [kept.ref])
    assert of_section.text.startswith("# 2 Results")
    assert not of_section.heading
    section = (await stash.slice(kept.ref, path="1 Method")).text
    assert section.startswith("# 1 Method\n")
    assert "kestrel" in section
    assert "Results" not in section
