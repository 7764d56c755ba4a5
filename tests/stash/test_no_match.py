"""A grep that finds nothing, or that RE2 does not take, names a call that finds something."""

from typing import Any

import pytest

from fetchstash.errors import BadPattern, Call
from fetchstash.render import as_shown
from fetchstash.stash import Stash
from tests.loopback import Site
from tests.stash.conftest import Put

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]
TEXT = """\
The Flywheel turns at 3,000 rpm.
Its price is $4.50 (net), so don\u2019t wait.
**Total** cost: 12 EUR
report_2024.pdf and report_2025.pdf
A keeper walked along the pier at night.
path C:\\temp\\new
The Stra\u00dfe to the na\u00efve caf\u00e9, and the \u201cold\u201d q&a at ?x=1
"""

NO_MATCH: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("flywheel", {}, "ignoring case", {"ignore_case": True}),
    ("/flywheel/i", {}, "without the slashes", {"pattern": "flywheel"}),
    ("/Flywheel/", {}, "without the slashes", {"pattern": "Flywheel"}),
    ("/flywheel/", {}, "without the slashes, ignoring case", {"pattern": "flywheel"}),
    (r"rotor\|Flywheel", {}, r"with | in place of \|", {"pattern": "rotor|Flywheel"}),
    (r"\\d,\\d", {}, "with single backslashes", {"pattern": r"\d,\d"}),
    ("report*2024", {}, "with .* in place of *", {"pattern": "report.*2024"}),
    ("$4.50 (net)", {}, "as plain text", {"literal": True}),
    (r"report_\d+", {"literal": True}, "as a pattern", {"pattern": r"report_\d+"}),
    ("Total  cost", {}, "with any signs between the words", {"ignore_case": True}),
    ("so don't wait", {}, "with any signs between the words", {"ignore_case": True}),
    ("pier keeper", {}, "with the words in any order", {"ignore_case": True}),
    ("flywheels", {}, "with another ending", {"pattern": "flywhee"}),
    ("flywheelies", {}, "with another ending", {"pattern": "flywheel"}),
    (r"\<flywheel\>", {}, r"with \b in place of \< and \>, ignoring case", {"ignore_case": True}),
    ("*flywheel*turns", {"literal": True}, "with any signs between the words", {}),
    ("flywheel*rpm", {}, "with .* in place of *, ignoring case", {"pattern": "flywheel.*rpm"}),
    ("night AND keeper", {}, "with all of them in any order", {"ignore_case": True}),
    ("walked && at night", {}, "with all of them in any order", {"ignore_case": True}),
    ("rotor OR flywheel", {}, "with | in place of OR", {"pattern": "rotor|flywheel"}),
    ("naive cafe", {}, "with or without accents", {"ignore_case": True}),
    ("strasse", {}, "with or without accents", {"ignore_case": True}),
    ("fl\u00ffwheel", {}, "with or without accents", {"ignore_case": True}),
    ('"old"', {}, "without the signs around the word", {"pattern": "old"}),
    ("q&amp;a", {}, "with its characters decoded", {"pattern": "q&a", "literal": True}),
    ("%3Fx=1", {}, "with its characters decoded", {"pattern": "?x=1", "literal": True}),
]
REFUSED = [
    (r"(?<=price is )\$\d", "in RE2's terms", r"(?:price is )\$\d"),
    (r"keeper(?! ran).*(?= at night)", "in RE2's terms", "keeper.*(?: at night)"),
    (r"(?i)total.++cost", "in RE2's terms", "(?i)total.+cost"),
    ("*.pdf", "with .* in place of *", r".*\.pdf"),
    ("*keeper*NIGHT*", "with .* in place of *, ignoring case", ".*keeper.*NIGHT.*"),
    (r"caf\u00e9", "in RE2's terms", r"caf\x{00e9}"),
    (r"\hTHE\h", "in RE2's terms, ignoring case", r"[ \t]THE[ \t]"),
    ("(?#a comment)keeper", "in RE2's terms", "keeper"),
    ("(?>keeper) walked", "in RE2's terms", "(?:keeper) walked"),
    ("price is $4.50 (net", "as plain text", "price is $4.50 (net"),
    ("walked along\nthe pier", "on one line", "walked along"),
]


def arguments(call: Call) -> dict[str, Any]:
    return {name: value for name, value in call.arguments.items() if name != "ref"}


@pytest.mark.parametrize(("pattern", "options", "how", "some"), NO_MATCH)
async def test_a_grep_without_a_match_names_a_spelling_that_matches(
    pattern: str,
    options: dict[str, Any],
    how: str,
    some: dict[str, Any],
    stash: Stash,
    put: Put,
) -> None:
    ref = await put(TEXT)
    matches = await stash.grep(pattern, [ref], **options)
    assert matches.total == 0
    assert matches.hint
    assert matches.hint.how == how
    asked = arguments(matches.hint.call)
    assert some.items() <= asked.items()
    again = await stash.grep(refs_or_urls=[ref], **asked)
    assert f"{again.total} line" in matches.hint.found
    assert f"[As written nothing matches. {matches.hint.found} {how}: artifact_grep(" in as_shown(
        matches
    )


@pytest.mark.parametrize(("pattern", "how", "offered"), REFUSED)
async def test_a_pattern_that_re2_does_not_take_gets_one_that_it_takes_and_that_matches(
    pattern: str, how: str, offered: str, stash: Stash, put: Put
) -> None:
    ref = await put(TEXT)
    with pytest.raises(BadPattern) as raised:
        await stash.grep(pattern, [ref])
    assert f" {how}: " in raised.value.advice()
    [call] = raised.value.calls
    assert call.arguments["pattern"] == offered
    assert (await stash.grep(refs_or_urls=[ref], **arguments(call))).total


async def test_what_a_pattern_escapes_is_no_word_to_search_for(stash: Stash, put: Put) -> None:
    ref = await put("The keeper\nof the pier\nalpha 50")
    matches = await stash.grep(r"keeper\s+pier\b", [ref])
    assert matches.hint
    assert matches.hint.call.arguments["query"] == "keeper pier"
    assert (await stash.grep("[[:alpha:]]{50}", [ref])).hint is None


async def test_words_that_share_no_line_are_searched_for(stash: Stash, put: Put) -> None:
    ref = await put(TEXT)
    matches = await stash.grep("keeper of the Flywheel price", [ref])
    assert matches.hint
    assert matches.hint.call.action == "search"
    found = await stash.search(matches.hint.call.arguments["query"], [ref])
    assert found.best_first


@pytest.mark.parametrize("pattern", ["albatross", "x+", "albatross colony", "(?=albatross)", "[a"])
async def test_no_call_is_printed_that_finds_nothing(pattern: str, stash: Stash, put: Put) -> None:
    ref = await put(TEXT)
    try:
        shown = as_shown(await stash.grep(pattern, [ref]))
    except BadPattern as error:
        shown = as_shown(error)
    assert "artifact_" not in shown.replace(ref, "")


async def test_what_a_page_leaves_out_is_searched_without_reading_the_page_again(
    stash: Stash, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    menu = "".join(f'<li><a href="/{n}">Menu entry {n}</a></li>' for n in range(60))
    words = "<p>The keeper wrote down the wind and the height of the water that day.</p>" * 20
    url = site.put(
        "/page.html",
        f"<html><body><nav><ul>{menu}</ul></nav><main><h1>Log</h1>{words}</main>"
        "<footer>Printed by Gull Press</footer></body></html>",
    )
    artifact = await stash.fetch(url)
    assert artifact.facts.left_out_chars
    async with stash.documents.text(artifact.ref) as reader:
        assert f"Menu entry 7 {site.url('/7')}\n" in reader.ranges.left_out

    async def never(*_: Any) -> None:
        pytest.fail("the page is read again")

    monkeypatch.setattr(stash.documents.extractor, "part", never)
    [here] = (await stash.grep("Gull Press", [url])).artifacts
    assert (here.total, here.left_out) == (0, 1)
    [here] = (await stash.grep("/5[0-9]", [url])).artifacts
    assert here.left_out == 10
    found = await stash.search("gull press keeper", [url])
    assert found.left_out == {artifact.ref: 1}
