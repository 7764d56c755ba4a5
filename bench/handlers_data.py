"""Measure the CPU seconds of text, tables and JSON, beside the least work that is needed.

    python -P bench/handlers_data.py

The least is one pass of the standard library: json.loads for JSON, csv.reader for tables, decoding
for text.
"""

import argparse
import csv
import io
import json
import os
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from fetchstash.handlers import ExtractLimits, Hints, route_file
from fetchstash.handlers._registry import format_of, handler_of
from fetchstash.handlers._worker._writer import TextWriter


def main() -> None:
    """Print one line for each document."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, (text, least) in documents().items():
            source = Path(folder) / name
            source.write_text(text, encoding="utf-8")
            extract(
                source
            )  # imports and the vocabulary of the token counter are not what is measured
            cost, lower = seconds(partial(extract, source)), seconds(partial(least, text))
            print(
                f"{name:22} {len(text) / 1e6:5.1f} MB  {cost:6.2f} s  {cost / lower:6.1f} × "
                f"{least.__name__} ({lower:.2f} s)"
            )


def documents() -> dict[str, tuple[str, Callable[[str], object]]]:
    """Return documents by name, each with the least that must be done with it."""
    rng = random.Random(1)
    records = [
        {
            "id": i,
            "name": f"name {i}",
            "value": rng.random(),
            "tags": ["a", "b"],
            "at": {"lat": 1.5},
        }
        for i in range(50_000)
    ]
    rows = "id,name,value,date,note\n" + "".join(
        f"{i},name {i},{rng.random():.3f},2024-01-02,x\n" for i in range(100_000)
    )
    quoted = "id,name,value,date,note\n" + "".join(
        f'{i},"name ""{i}""",{rng.random():.3f},2024-01-02,"x\ny"\n' for i in range(100_000)
    )
    return {
        "one-line.json": (json.dumps(records), loads),
        "pretty.json": (json.dumps(records[:25_000], indent=2), loads),
        "numbers.json": (json.dumps([rng.random() for _ in range(250_000)]), loads),
        "records.jsonl": ("".join(json.dumps(record) + "\n" for record in records), loads_lines),
        "rows.csv": (rows, read_rows),
        "quoted.csv": (quoted, read_rows),
        "prose.txt": (
            "A line of prose, neither long nor short, of ordinary words.\n" * 90_000,
            decode,
        ),
        "one-line.xml": (
            "<r>" + "<item id='1'><name>some name</name><v>1</v></item>" * 100_000 + "</r>",
            decode,
        ),
    }


def extract(source: Path) -> None:
    """Do all that the worker does for one document, in this process."""
    decision = route_file(source, {}, source.name)
    hints = Hints(media_type=decision.media_type)
    extracted = handler_of(format_of(decision)).extract(source, hints, ExtractLimits())
    fd = os.open(source.with_suffix(".text"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    writer = TextWriter(fd, lambda _: None, None)
    writer.write_all(extracted.parts or ())
    writer.counter.result()
    os.close(fd)


def seconds(do: Callable[[], object]) -> float:
    """Return the CPU seconds of the quicker of two runs."""
    runs: list[float] = []
    for _ in range(2):
        before = time.process_time()
        do()
        runs.append(time.process_time() - before)
    return max(min(runs), 1e-6)


def loads(text: str) -> object:
    """Parse one JSON document."""
    return json.loads(text)


def loads_lines(text: str) -> object:
    """Parse JSON line by line."""
    return [json.loads(line) for line in text.splitlines()]


def read_rows(text: str) -> object:
    """Read a table."""
    return list(csv.reader(io.StringIO(text)))


def decode(text: str) -> object:
    """Encode and decode once."""
    return text.encode().decode()


if __name__ == "__main__":
    main()
