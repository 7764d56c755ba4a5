"""Fetch a document and print its text.

python examples/library_text.py URL
"""

import sys

import fetchstash

with fetchstash.open_stash_sync() as stash:
    document = stash.fetch(sys.argv[1])
    print(document.text())
