"""The router beside libmagic: how many files each calls what they are, and what a look costs.

    python -P bench/handlers_router.py [--corpus FOLDER]

Measured on the lists of the tests (mislabelled files, odd texts, nasty files) and, if given, on a
folder of files whose extensions are right. libmagic sees the bytes alone, as it does wherever it is
used; on the lists the router sees label and name too. Both get the first 64 KiB.
"""

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fetchstash.handlers import detect_content_kind
from fetchstash.handlers._registry import built_in
from fetchstash.handlers._routing._router import HEAD_BYTES

TESTS = Path(__file__).parents[1] / "tests" / "handlers"
ROUNDS = 20


@dataclass(frozen=True)
class Sample:
    """A file: its first bytes, what it is called, and the kind that it really is."""

    head: bytes
    label: str
    url: str
    kind: str


def main() -> None:
    """Print one line for each list and program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, help="a folder of files whose extensions are right")
    arguments = parser.parse_args()
    lists: dict[str, list[Sample]] = {
        "mislabelled": mislabelled(),
        "odd texts": odd_texts(),
        "nasty": nasty(),
    }
    if arguments.corpus is None:
        print("no --corpus: only the lists of the tests", file=sys.stderr)
    elif not arguments.corpus.is_dir():
        sys.exit(f"{arguments.corpus} is no folder")
    else:
        lists["corpus"] = list(corpus(arguments.corpus))
    programs: dict[str, Callable[[Sample], str]] = {"router": by_router}
    libmagic = libmagic_program()
    if libmagic:
        programs["libmagic"] = libmagic
    for name, samples in lists.items():
        for program, look in programs.items():
            right = sum(accept(look(sample), sample.kind) for sample in samples)
            print(
                f"{name:12} {program:9} {right:5} of {len(samples):5} right  "
                f"{cost(look, samples):8.1f} µs a file"
            )


def accept(found: str, kind: str) -> bool:
    """Return whether what was found is right; of an odd text it is enough that it is no binary."""
    return found == kind or (kind == "any text" and found != "unknown_binary")


def cost(look: Callable[[Sample], str], samples: Iterable[Sample]) -> float:
    """Return the microseconds of CPU that a look at one sample takes."""
    samples = list(samples)
    before = time.process_time()
    for _ in range(ROUNDS):
        for sample in samples:
            look(sample)
    return (time.process_time() - before) * 1e6 / ROUNDS / max(len(samples), 1)


def by_router(sample: Sample) -> str:
    """Return the kind that the router decides on."""
    return detect_content_kind({"content-type": sample.label}, sample.head, sample.url).kind


def libmagic_program() -> Callable[[Sample], str] | None:
    """Return a look by libmagic, None where the extra is not installed."""
    from fetchstash.handlers._binary import _prepare_library  # noqa: PLC0415 # pyright: ignore[reportPrivateUsage]

    try:
        database = _prepare_library()
        import magic  # noqa: PLC0415

        program = magic.Magic(mime=True, magic_file=database)
    except Exception as error:  # noqa: BLE001 - it is optional, whatever is wrong with it
        print(f"no libmagic: {type(error).__name__}", file=sys.stderr)
        return None

    def look(sample: Sample) -> str:
        media_type: str = program.from_buffer(sample.head)
        if named := built_in().by_label(media_type):
            return named.kind
        return "text" if media_type.startswith("text/") else "unknown_binary"

    return look


def mislabelled() -> list[Sample]:
    """Return the list of mislabelled files of the tests."""
    cases: dict[str, Any] = tests("test_router").MISLABELLED
    return [
        Sample(data[:HEAD_BYTES], label, f"https://example.org{url}", kind)
        for data, label, url, kind, _ in cases.values()
    ]


def odd_texts() -> list[Sample]:
    """Return the list of odd texts of the tests."""
    cases: dict[str, Any] = tests("test_odd_texts").ODD
    return [
        Sample(data[:HEAD_BYTES], label, "https://example.org/file", "any text")
        for data, label, _ in cases.values()
    ]


def nasty() -> list[Sample]:
    """Return the tests' texts that look like binaries, and binaries labelled as text."""
    lists = tests("test_nasty_files")
    samples = [
        Sample(data[:HEAD_BYTES], label, f"https://example.org{path}", kind)
        for data, label, path, kind in lists.TEXTS.values()
    ]
    return samples + [
        Sample(data[:HEAD_BYTES], "text/plain", f"https://example.org{path}", kind)
        for data, path, kind in lists.BINARIES.values()
    ]


def tests(name: str) -> Any:
    """Return a module of the tests."""
    spec = importlib.util.spec_from_file_location(name, TESTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def corpus(folder: Path) -> Iterable[Sample]:
    """Yield the files of a folder with a known extension, which the router does not see."""
    for path in sorted(folder.rglob("*")):
        named = built_in().by_name(path.name)
        if named and path.is_file():
            with path.open("rb") as file:
                yield Sample(file.read(HEAD_BYTES), "", "https://example.org/file", named.kind)


if __name__ == "__main__":
    main()
