"""Fetch a table and print the answer to a query over its rows.

python examples/library_rows.py URL "count, mean(height_m) by state"
"""

import sys

import fetchstash

with fetchstash.open_stash_sync() as stash:
    table = stash.fetch(sys.argv[1])
    print(table.slice(path=sys.argv[2]).text, end="")
