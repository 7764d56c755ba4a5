"""A whole site through the tool of a client, and a command that is killed in the middle."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fetchstash.config import load
from fetchstash.server.tools import tool_specs
from fetchstash.text import tokens
from tests.loopback import Site
from tests.server.conftest import Connect
from tests.server.test_next_calls import next_call
from tests.server.test_stdio import FETCHSTASH, flags
from tests.server.test_tools import call, fail, ref_in, text_of
from tests.stash.test_sites import put_pages


@pytest.mark.anyio
@pytest.mark.in_process
async def test_a_site_is_one_call_and_any_passage_in_it_two(site: Site, connect: Connect) -> None:
    put_pages(site, 6)
    seen: list[str] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        assert total is None or progress <= total
        seen.append(message or "")

    async with connect(ingest__site=True, ingest__site_rate=0) as client:
        arguments = {"url": site.url("/docs/")}
        made = await client.call_tool("fetch_site", arguments, progress_callback=report)
        assert "6 pages by sitemap" in text_of(made)
        assert "fetched 6 of 6 pages" in seen
        index = ref_in(text_of(made))
        found = await call(client, "artifact_grep", artifact_ref=index, pattern="wort35")
        assert "matches 1 to 1 of 1, in 1 of 6 pages" in found
        tool, asked = next_call(found)
        assert "The word of page 5 is wort35." in await call(client, tool, **asked)


@pytest.mark.long
def test_a_command_that_was_killed_goes_on_and_asks_for_no_page_twice(
    site: Site, tmp_path: Path
) -> None:
    paths = put_pages(site, 30)
    answer = site.pages["/docs/20.html"]
    command = [FETCHSTASH, "site", site.url("/docs/"), *flags(site, tmp_path)]
    command += ["--per-host-concurrency", "1", "--site-rate", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as killed:

        def kill(handler: Any) -> None:
            killed.kill()
            handler.close_connection = True

        site.put("/docs/20.html", script=kill)
        killed.wait(300)
    site.pages["/docs/20.html"] = answer
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    listed = re.findall(r"^- art_\w+ \d+ chars http://[^/]+(\S+)", done.stdout, re.MULTILINE)
    assert listed == paths
    said = re.fullmatch(r"(\w{7}): 30 pages by sitemap\.\n", done.stderr)
    assert said
    twice = {path for path in paths if site.asked.count(path) > 1}
    assert twice == {"/docs/20.html"}  # it never answered
    every = [FETCHSTASH, "grep", "wort140", said[1], *flags(site, tmp_path)]
    found = subprocess.run(every, capture_output=True, text=True, timeout=300, check=False)
    assert f"{site.url('/docs/20.html')}:3:" in found.stdout


@pytest.mark.anyio
async def test_the_tool_is_there_only_if_it_is_switched_on_and_is_short(connect: Connect) -> None:
    async with connect() as client:
        assert "There is no tool 'fetch_site'" in await fail(client, "fetch_site", url="x")
    (spec,) = [s for s in tool_specs(load({"ingest.site": True})) if s.name == "fetch_site"]
    listed = {"name": spec.name, "description": spec.description, "input_schema": spec.input_schema}
    assert tokens.count(json.dumps(listed, separators=(",", ":"))).tokens <= 200
