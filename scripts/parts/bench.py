"""Run the benchmarks of bench/, and print what they print.

    scripts/ci bench [--long] [--corpora FOLDER] [NAME …]

CI runs a short form of each, to see that it still runs; --long prints the figures of docs/speed.md,
which are for quiet machines. A benchmark fails here if it raises, hangs or does not begin, not if
it misses a bound, and not for what another process says on stderr. Those that measure on corpora
need the folder that holds them. Exit code: how many failed.
"""

import sys
import tarfile
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from scripts.drive.programs import ends_well, options

FOLDER = Path(__file__).resolve().parents[2] / "bench"
MAX_SECONDS = 900
"""A benchmark that takes longer in its short form hangs."""

SHORT: Mapping[str, Sequence[str]] = {
    "client_replay": ("--share", "0.2", "--every", "3"),
    "client_refusals": ("--quiet",),
    "client_steps": ("--steps", "20"),
    "handlers_html": ("--every", "15", "--sample", "8"),
    "handlers_ocr": ("--sorts", "1"),
    "http": ("--seconds", "2", "--clients", "10", "--calls", "20", "--think", "0.5"),
    "speed": ("--small", "--rounds", "1"),
    "start": ("--runs", "2"),
    "store": ("--puts", "3", "--mb", "5", "--warm-up", "10", "--artifacts", "50"),
    "store_costs": ("--artifacts", "1000", "--tenants", "20"),
    "tenants": ("--seconds", "1", "--turns", "1", "--flood", "10"),
    "where": ("--pages", "20", "--every", "200"),
}
"""The arguments of a short run."""

CORPORA: Mapping[str, str] = {
    "client_replay": "transcripts",
    "handlers_html": "html",
    "handlers_office": "office",
    "handlers_pdf": "pdf",
    "where": "html",
}
"""The corpora that a benchmark cannot do without, by their names in the folder."""

ELSEWHERE: Mapping[str, str] = {
    "view": "it needs Chromium and Playwright, which scripts/ci extras installs",
    "gateway": "scripts/ci gateway runs it",
}
"""The benchmarks that run only where they are named, with the reason."""


@contextmanager
def corpus_of(name: str, corpora: Path) -> Generator[list[str] | None]:
    """Give the folder of a benchmark's corpus as its first argument, unpacked where it is packed.

    Nothing where it needs none; None where the corpus is missing, which is said.
    """
    folder = corpora / CORPORA[name] if name in CORPORA else None
    archive = folder.with_name(f"{folder.name}.tar.xz") if folder else None
    if name not in CORPORA:
        yield []
    elif folder and folder.is_dir():
        yield [str(folder)]
    elif archive and archive.is_file():
        with tempfile.TemporaryDirectory() as unpacked:
            with tarfile.open(archive) as packed:
                packed.extractall(unpacked, filter="data")
            yield [str(next(Path(unpacked).iterdir()))]
    else:
        print(f"SKIPPED: bench {name} needs the corpus {CORPORA[name]} (--corpora)", flush=True)
        yield None


def run(name: str, arguments: Sequence[str], seconds: int = MAX_SECONDS) -> bool:
    """Run one benchmark and return whether it ran to its end."""
    program = FOLDER / f"{name}.py"

    def is_good(code: int, said: str) -> bool:
        # A miss ends with 1, as what Python does not catch: only that names the program's file.
        return code == 0 or (code == 1 and f'File "{program}"' not in said)

    title = f"bench {name} {' '.join(arguments)}".rstrip()
    command = [sys.executable, "-P", program, *arguments]
    return ends_well(title, command, seconds, is_good=is_good, quiet=True)


def main() -> int:
    """Run all benchmarks, or those that are named; return how many failed."""
    names = sorted(path.stem for path in FOLDER.glob("[!_]*.py"))
    chosen = options(__doc__, names=names, corpora=Path(), long=False)
    failed = 0
    for name in chosen.names:
        if name in ELSEWHERE and chosen.names == names:
            continue
        with corpus_of(name, chosen.corpora) as corpus:
            if corpus is not None:  # an option may take all that follow
                arguments = () if chosen.long else SHORT.get(name, ())
                failed += not run(name, [*corpus, *arguments])
    return failed


if __name__ == "__main__":
    sys.exit(main())
