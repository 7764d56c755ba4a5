"""A passage out of the middle of a large document, in two calls: what fetchstash is for."""

import pytest

from fetchstash.cli.demo._tour import ask, started
from fetchstash.cli.demo.site import NEEDLES, Needle, Site

pytestmark = pytest.mark.long


@pytest.mark.anyio
@pytest.mark.parametrize("needle", NEEDLES, ids=lambda needle: needle.path)
async def test_it_is_in_the_context_after_a_fetch_and_a_grep_and_fewer_than_900_tokens(
    needle: Needle,
) -> None:
    async with Site() as site, started(site) as client:
        fetched = await ask(client, "fetch_content", url=site.url(needle.path), maxChars=1_000)
        found = await ask(client, "artifact_grep", artifact_ref=fetched.ref, pattern=needle.pattern)
    assert needle.words not in fetched.text
    assert needle.words in found.text
    assert fetched.tokens + found.tokens < 900
