"""Run the command: ``python -m fetchstash``, where the script ``fetchstash`` is not on the path."""

from fetchstash.cli import main

main()
