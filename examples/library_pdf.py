"""Print a page of a local PDF.

python examples/library_pdf.py FILE PAGE
"""

import sys

import fetchstash

path, page = sys.argv[1], int(sys.argv[2])
with fetchstash.open_stash_sync() as stash:
    report = stash.add_file(path)
    print(report, *(heading.title for heading in report.outline), sep="\n")
    print(report.slice(unit="pages", start=page, end=page))
