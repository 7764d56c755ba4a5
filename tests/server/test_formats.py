"""A format of ours and one of a plugin, read through the tools: preview, outline and a part."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.loopback import Site
from tests.server.conftest import Connect
from tests.server.test_tools import call, facts_of, text_of

pytestmark = pytest.mark.anyio
EXAMPLE = Path(__file__).parents[2] / "examples" / "po_handler"

TRANSLATION = 'msgid ""\nmsgstr ""\n"Language: de\\n"\n\n' + "".join(
    f'#: src/main.c:{n}\nmsgid "Number {n}"\nmsgstr "{"" if n == 30 else f"Nummer {n}"}"\n\n'
    for n in range(1, 2_000)
)


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
