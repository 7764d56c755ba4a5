"""A format of ours and one of a plugin, read through the tools: preview, outline and a part."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.loopback import Site
from tests.server.conftest import Connect
from tests.server.test_tools import REF, call, facts_of, text_of

pytestmark = pytest.mark.anyio
EXAMPLE = Path(__file__).parents[2] / "examples" / "po_handler"

CALENDAR = "BEGIN:VCALENDAR\n" + "".join(
    f"BEGIN:VEVENT\nUID:{n}@example.org\nDTSTART:202605{n:02}T100000Z\nSUMMARY:Meeting {n}\n"
    f"LOCATION:Room {n}\nDESCRIPTION:{'long ' * 200}\nEND:VEVENT\n"
    for n in range(1, 32)
)
TRANSLATION = 'msgid ""\nmsgstr ""\n"Language: de\\n"\n\n' + "".join(
    f'#: src/main.c:{n}\nmsgid "Number {n}"\nmsgstr "{"" if n == 30 else f"Nummer {n}"}"\n\n'
    for n in range(1, 2_000)
)


async def test_a_calendar_has_a_preview_an_outline_and_parts(site: Site, connect: Connect) -> None:
    url = site.put("/calendar.ics", CALENDAR, "text/calendar")
    async with connect() as client:
        shown = await call(client, "fetch_content", url=url, maxChars=2_000)
        assert shown.startswith("[Fetched calendar artifact: calendar.ics,")
        assert "2026-05-03 10:00 UTC · Meeting 3 · Room 3" in shown
        ref = REF.findall(shown)[0]
        assert "Meeting 31" in await call(client, "artifact_info", artifact_ref=ref)
        part = await call(client, "artifact_slice", artifact_ref=ref, path="/7", maxChars=400)
        assert "\nDTSTART: 2026-05-07 10:00 UTC\n" in part
        under = await call(client, "artifact_slice", artifact_ref=ref, path="Meeting 9")
        assert "SUMMARY:Meeting 9\n" in under


async def test_a_plugin_gives_a_translation_a_preview_an_outline_and_parts(
    site: Site, connect: Connect, install_plugin: Callable[[str, str], None]
) -> None:
    package = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    assert package["entry-points"]["fetchstash.formats"] == {"po": "fetchstash_po:FORMATS"}
    install_plugin("fetchstash-po", (EXAMPLE / "fetchstash_po.py").read_text())
    url = site.put("/de.po", TRANSLATION, "text/plain")
    async with connect(extract__plugins=["fetchstash-po"]) as client:
        result = await client.call_tool("fetch_content", {"url": url, "maxChars": 2_000})
        shown = text_of(result)
        assert shown.startswith("[Fetched translation artifact: de.po,")
        assert "\nNumber 5\n" in shown
        (facts,) = facts_of(result)
        assert (facts["handler"], facts["content_kind"], facts["paths"]) == ("po", "text", ["/*"])
        assert facts["evidence"][-1] == "read by plugin fetchstash-po"
        assert facts["structure_info"] == "1999 messages, 1 of them untranslated"
        ref = facts["artifact_ref"]
        part = await call(client, "artifact_slice", artifact_ref=ref, path="/7")
        assert "\nmsgid: Number 7\nmsgstr: Nummer 7\n" in part
        missing = await call(client, "artifact_slice", artifact_ref=ref, path="/untranslated")
        assert "\nmsgid: Number 30\nmsgstr: \n" in missing
        under = await call(client, "artifact_slice", artifact_ref=ref, path="Number 9")
        assert 'msgstr "Nummer 9"' in under


async def test_a_plugin_that_is_not_named_is_not_loaded(
    site: Site, connect: Connect, install_plugin: Callable[[str, str], None]
) -> None:
    install_plugin("fetchstash-po", "raise SystemExit('loaded')")
    url = site.put("/de.po", TRANSLATION, "text/plain")
    async with connect() as client:
        shown = await call(client, "fetch_content", url=url, maxChars=2_000)
        assert shown.startswith("[Fetched text artifact: de.po,")
