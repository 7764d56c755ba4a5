"""Fetch the pages below a URL, and print the passages that fit some words best.

python examples/library_site.py https://docs.example.org/guide/ tide gauge
"""

import sys

import fetchstash

with fetchstash.open_stash_sync() as stash:
    index = stash.fetch_site(sys.argv[1])
    print(index.facts.structure_info)
    print(stash.search(" ".join(sys.argv[2:]), [index.ref], max_results=3))
