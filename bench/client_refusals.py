"""Print precision and recall of classify on files of refusals, and what it reads wrongly.

    python -P bench/client_refusals.py [--files FILE …] [--quiet]

A file has a refusal a line, as tests/client/refused.py describes them; without one it takes those
of the tests. Each refusal has ten decoys beside its words. "whole" is the share of rows of which
the sizes are right, too.
"""

import json
from pathlib import Path

from scripts.drive.programs import options
from tests.client.refused import HERE, Row, expected, scores, with_decoys


def main() -> None:
    """Print a line for each file, and one for each set in it."""
    taken = options(__doc__, files=[], quiet=False)
    names = taken.files or sorted(HERE.glob("*.jsonl"))
    print(f"{'':<24} rows  precision  recall  whole")
    for path in map(Path, names):
        rows: list[Row] = list(map(json.loads, path.read_text("utf-8").splitlines()))
        for part in sorted({row.get("set", "") for row in rows}):
            chosen = [with_decoys(row) for row in rows if row.get("set", "") == part]
            precision, recall, whole, wrong = scores(chosen)
            print(f"{path.stem + ' ' + part:<24} {len(chosen):>4}", end="")
            print(f"{precision:>11.3f} {recall:>7.3f} {whole:>6.3f}")
            for row, found, rule in [] if taken.quiet else wrong:
                words = json.dumps(row["body"], ensure_ascii=False)[:120]
                print(f"    {words}\n        {found} {rule}, and not {expected(row)}")


if __name__ == "__main__":
    main()
