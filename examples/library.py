"""fetchstash as a library, without MCP: list a page's outline and print the part that fits best.

python examples/library.py URL WORDS
"""

import sys

import anyio

from fetchstash.stash import open_stash


async def main(url: str, words: str) -> None:
    async with open_stash() as stash:
        page = await stash.fetch(url, max_chars=500)
        print(f"{page}, {page.tokens} tokens")
        for heading in page.outline[:10]:
            print(f"{'  ' * heading.level}{heading.title}")
        print(await page.search(words, max_results=1))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2])
