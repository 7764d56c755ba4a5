"""Count the tokens of reaching one passage in the middle of a large document: two calls.

    python -P bench/two_calls.py

Fetches each document of the demonstration's site with fetch_content(maxChars=1000), finds the
passage by one artifact_grep, and counts the o200k tokens of both results; then the same with all
defaults. Ends with 1 if a passage is not reached, or costs 900 tokens or more with maxChars=1000.
"""

import asyncio
import sys
from typing import Any

from fetchstash.cli.demo._tour import ask, started
from fetchstash.cli.demo.site import NEEDLES, Site
from scripts.drive.programs import options

BOUND = 900


async def measure(title: str, **given: Any) -> list[int]:
    """Print a line for each document; return its tokens, over the bound if it was not reached."""
    print(f"{title}\n  {'document':16}{'fetch':>8}{'grep':>8}{'both':>8}{'whole':>12}{'share':>9}")
    costs: list[int] = []
    async with Site() as site, started(site) as client:
        for needle in NEEDLES:
            fetched = await ask(client, "fetch_content", url=site.url(needle.path), **given)
            found = await ask(
                client, "artifact_grep", artifact_ref=fetched.ref, pattern=needle.pattern
            )
            reached = needle.words in found.text
            both = fetched.tokens + found.tokens
            costs.append(both if reached else BOUND + both)
            share = both / max(fetched.whole.tokens, 1)
            figures = f"{fetched.tokens:8,}{found.tokens:8,}{both:8,}"
            figures += f"{f'{fetched.whole:,}':>12}{share:9.3%}"
            print(f"  {needle.path:16}{figures}{'' if reached else '  NOT REACHED'}")
    return costs


def main() -> int:
    options(__doc__)
    costs = asyncio.run(measure("fetch_content with maxChars=1000, artifact_grep", maxChars=1_000))
    asyncio.run(measure("fetch_content and artifact_grep with all defaults"))
    good = max(costs) < BOUND
    print(
        f"every passage in fewer than {BOUND} tokens with maxChars=1000: {'yes' if good else 'NO'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
