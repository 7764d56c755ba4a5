"""Fetch a document and print the lines that match.

python examples/library_grep.py URL PATTERN
"""

import sys

import fetchstash

with fetchstash.open_stash_sync() as stash:
    document = stash.fetch(sys.argv[1])
    for match in document.grep(sys.argv[2]):
        print(f"line {match.line}: {match.text}")
