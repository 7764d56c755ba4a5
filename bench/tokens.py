"""How fast tokens are counted, and how far the samples and the estimate are off.

    python -P bench/tokens.py [FOLDER ...]

Counts the demonstration's documents, the Python sources of this environment, and the .txt, .md,
.html, .json and .csv files in the folders that are named (.gz too). The peers are tiktoken on the
whole text at once, and a fourth of the characters or bytes.
"""

import argparse
import gzip
import statistics
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import tiktoken

from fetchstash.cli.demo.site import documents
from fetchstash.text import tokens

SUFFIXES = {".txt", ".md", ".html", ".htm", ".json", ".csv", ".py"}
FILES, MAX_CHARS = 400, 1_000_000


def texts_in(folder: Path) -> Iterator[str]:
    """Yield at most ``FILES`` texts, evenly chosen by name."""
    paths = [
        path
        for path in sorted(folder.rglob("*"))
        if Path(path.name.removesuffix(".gz")).suffix in SUFFIXES and path.is_file()
    ]
    for path in paths[:: max(1, len(paths) // FILES)]:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = raw.decode("utf-8", "replace")[:MAX_CHARS]
        if len(text) > 1_000:
            yield text


def large(texts: list[str]) -> list[str]:
    """Join ``texts`` to some that are large enough to be sampled."""
    joined = "\n".join(texts)
    size = 3 * tokens.EXACT
    return [joined[start : start + size] for start in range(0, len(joined) - size // 2, size)]


def timed(count: Callable[[str], int], text: str) -> tuple[int, float]:
    """Return the tokens of ``text`` and the seconds that counting them took."""
    started = time.perf_counter()
    return count(text), time.perf_counter() - started


def off(name: str, texts: list[str], exact: list[int], way: Callable[[str], float]) -> None:
    errors = [abs(way(text) - count) / count for text, count in zip(texts, exact, strict=True)]
    print(
        f"  {name:24} off by {statistics.mean(errors):6.1%} on average, {max(errors):6.1%} at the "
        "most"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path)
    folders: list[Path] = parser.parse_args().folders
    for folder in folders:
        if not folder.is_dir():
            parser.error(f"there is no folder {folder}")

    started = time.perf_counter()
    tokens.count("load")
    print(f"loading the vocabulary: {time.perf_counter() - started:.3f} s")
    whole = tiktoken.get_encoding("o200k_base")

    html, table = (documents()[path].body.decode() for path in ("/handbook.html", "/readings.csv"))
    for name, text in (("HTML", html), ("CSV", table)):
        part = text[: tokens.EXACT]
        at_once, peer = timed(lambda text: len(whole.encode_ordinary(text)), part)
        counted, ours = timed(lambda text: tokens.count(text).tokens, part)
        _, sampling = timed(lambda text: tokens.count(text).tokens, text)
        print(
            f"1 MB of {name}: {ours:.3f} s, {ours / peer:.2f} x tiktoken at once, "
            f"{counted - at_once:+} of {at_once:,} tokens"
        )
        print(f"{len(text) / 1e6:.1f} MB of {name} by samples: {sampling:.3f} s")

    for folder in (Path(sysconfig.get_path("purelib")), *folders):
        texts = [*texts_in(folder)]
        if not texts:
            print(f"{folder}: no texts")
            continue
        print(f"{folder}: {len(texts)} texts")
        exact = [len(whole.encode_ordinary(text)) for text in texts]
        off("slices", texts, exact, lambda text: tokens.count(text).tokens)
        off("estimate", texts, exact, tokens.estimate)
        off("characters / 4", texts, exact, lambda text: len(text) / 4)
        off("bytes / 4", texts, exact, lambda text: len(text.encode()) / 4)
        joined = large(texts)
        exact = [len(whole.encode_ordinary(text)) for text in joined]
        if joined:
            off(
                f"samples of {len(joined)} x 3 MB",
                joined,
                exact,
                lambda text: tokens.count(text).tokens,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
