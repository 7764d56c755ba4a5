"""fetchstash as a library, without MCP: fetch a URL, list its outline, and print the part that matches best.

python examples/library.py URL WORDS [SETTING=VALUE ...]       lists with commas, as in the
environment
"""

import sys

import anyio

from fetchstash.config import load
from fetchstash.stash import Stash


async def main(url: str, words: str, *settings: str) -> None:
    environment = {
        f"FETCHSTASH_{name.upper().replace('.', '_')}": value
        for name, _, value in (s.partition("=") for s in settings)
    }
    async with Stash.open(load(environment=environment)) as stash:
        view = await stash.fetch([url], max_chars=500)
        ref = str(view.facts[0]["artifact_ref"])
        facts = await stash.store.get(ref)
        print(
            f"{facts.title or facts.name}: {facts.extracted_chars} characters, {facts.text_tokens} tokens"
        )
        for heading in facts.outline[:10]:
            print(f"{'  ' * heading.level}{heading.title}")
        print((await stash.search(words, [ref], max_results=1)).body)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], *sys.argv[3:])
