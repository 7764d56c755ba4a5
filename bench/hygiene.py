"""Time the cleaning of clean texts in several scripts, and of texts full of hidden characters.

    python -P bench/hygiene.py

The peer is the least that any look at a text costs: encoding it to UTF-8.
"""

import argparse
import sys
import time
from collections.abc import Callable

from fetchstash.text.hygiene import clean

LINE = "The quick brown fox jumps over the lazy dog. 0123456789\n"
TEXTS = {
    "ASCII": LINE * 200_000,
    "ASCII, CR LF": LINE.replace("\n", "\r\n") * 200_000,
    "ASCII and a few dashes": (LINE * 20 + "an — em dash\n") * 10_000,
    "Persian with non-joiners": "نمی\u200cخواهم این متن را بخوانم و بفهمم.\n" * 150_000,  # noqa: RUF001 - Persian it is
    "Chinese": "天地玄黄宇宙洪荒日月盈昃辰宿列张\n" * 200_000,
    "emoji with joiners": "fine 👩\u200d🚀 and ❤\ufe0f too\n" * 200_000,
    "one soft hyphen": LINE * 200_000 + "hy\u00adphen",
    "a zero-width space a line": LINE.replace("fox", "f\u200box") * 200_000,
    "colours a line": f"\x1b[31m{LINE}\x1b[0m" * 150_000,
    "tags alone": "\U000e0041" * 2_000_000,
}


def seconds(work: Callable[[str], object], text: str) -> float:
    """Return the seconds that ``work`` takes, the best of five."""
    times: list[float] = []
    for _ in range(5):
        started = time.perf_counter()
        work(text)
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> int:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    for name, text in TEXTS.items():
        size = len(text.encode()) / 1e6
        taken, peer = seconds(clean, text), seconds(str.encode, text)
        print(f"{name:28}{size / taken:8,.0f} MB/s   {taken / peer:6.1f} x the time of encoding it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
