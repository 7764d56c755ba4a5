"""A query over the rows of a CSV beside Python's csv module: CPU seconds and memory, in one run.

    python -P bench/handlers_rows.py [--mb 100]

Each way groups a column of a made file and adds up another, in a process of its own. The peer is
the shortest program that gives the same figures: csv.reader, a dictionary and Decimal, all typed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

OURS = """
import sys
from pathlib import Path
from fetchstash.handlers import PartRequest, handler_named
request = PartRequest(source=Path(sys.argv[1]), path="sum(price) by region", unit="chars")
shown = handler_named("csv").part(request).text
"""
PEER = """
import csv, sys
from collections import defaultdict
from decimal import Decimal
sums = defaultdict(Decimal)
with open(sys.argv[1], newline="", encoding="utf-8") as file:
    for row in csv.DictReader(file):
        sums[row["region"]] += Decimal(row["price"])
shown = "region,sum(price)\\n"
for region in sorted(sums, key=sums.get, reverse=True):
    shown += f"{region},{sums[region]}\\n"
"""
MEASURED = """
import resource
used = resource.getrusage(resource.RUSAGE_SELF)
print(f"{used.ru_utime + used.ru_stime:.2f} {used.ru_maxrss // 1024}")
print(shown, end="")
"""


def write(path: Path, size: int) -> int:
    """Write a table of about ``size`` bytes, and return its rows."""
    rows = 0
    with path.open("w", encoding="utf-8") as file:
        file.write("id,region,price,note\n")
        while file.tell() < size:
            batch = (
                f'{n},region {n % 40},{n % 9_973}.{n % 100:02d},"a note, of {n}"\n'
                for n in range(rows, rows + 10_000)
            )
            file.writelines(batch)
            rows += 10_000
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=100)
    size = parser.parse_args().mb * 10**6
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        print(f"{size / 1e6:.0f} MB, {write(table, size):,} rows, load {os.getloadavg()[0]:.1f}")
        answers: list[str] = []
        for name, program in (("csv, Decimal", PEER), ("fetchstash", OURS)):
            command = [sys.executable, "-P", "-c", program + MEASURED, str(table)]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            figures, _, answer = out.partition("\n")
            seconds, megabytes = figures.split()
            answers.append(answer)
            print(f"{name:<14}{float(seconds):7.2f} s of CPU{int(megabytes):6} MiB")
    print("the same answer" if answers[0] == answers[1] else "DIFFERENT ANSWERS")
    return int(answers[0] != answers[1])


if __name__ == "__main__":
    sys.exit(main())
