"""Run the benchmarks of bench/ in a short form and print what they print.

    scripts/ci bench [--corpora FOLDER] [NAME …]

CI runs it to see that each benchmark still runs; its figures are for quiet machines and long runs.
A benchmark fails here if it raises, hangs or does not begin, not if it misses a bound, and not for
what another process says on stderr. Those that measure on corpora need the folder that holds them.
Exit code: how many failed.
"""

import argparse
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "bench"
MAX_SECONDS = 900
"""A benchmark that takes longer in its short form hangs."""

SHORT: Mapping[str, Sequence[str]] = {
    "client_replay": ("--share", "0.5"),
    "client_rewrite": ("--megabytes", "0.5", "--times", "3"),
    "gateway_flood": ("--mb", "20"),
    "handlers_html": ("--every", "20"),
    "handlers_ocr": ("--pages", "1", "--sorts", "1"),
    "http": ("--seconds", "2", "--clients", "10", "--calls", "20", "--think", "0.5"),
    "ping": ("--artifacts", "500"),
    "speed": ("--small", "--rounds", "1", "--only", "fetching"),
    "start": ("--runs", "2"),
    "store_costs": ("--artifacts", "1000", "--tenants", "20"),
    "store_put": ("--repeat", "3"),
    "store_read": ("--mb", "1", "--grep-mb", "5", "--search-mb", "5", "--repeat", "5"),
    "tenants": ("--seconds", "1", "--turns", "1", "--rounds", "20"),
}
"""The arguments of a short run."""

CORPORA: Mapping[str, str] = {"client_replay": "transcripts", "handlers_html": "html"}
"""The corpora that a benchmark cannot do without, by their names in the folder."""

ELSEWHERE: Mapping[str, str] = {
    "view": "it needs Chromium and Playwright, which scripts/ci extras installs",
    "gateway": "scripts/ci gateway runs it",
}
"""The benchmarks that run only where they are named, with the reason."""


@contextmanager
def corpus_of(name: str, corpora: Path | None) -> Generator[list[str] | None]:
    """Give the folder of a benchmark's corpus as its first argument, unpacked where it is packed.

    Nothing where it needs none; None where the corpus is missing, which is said.
    """
    folder = corpora / CORPORA[name] if corpora and name in CORPORA else None
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
    print(f"--- bench {name} {' '.join(arguments)}".rstrip(), flush=True)
    start = time.monotonic()
    program = FOLDER / f"{name}.py"
    command = [sys.executable, "-P", str(program), *arguments]
    try:
        done = subprocess.run(
            command, check=False, stderr=subprocess.PIPE, text=True, errors="replace",
            timeout=seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        print(f"--- bench {name}: FAILED, it did not end in {seconds} s", flush=True)
        return False
    # A miss ends with 1, as what Python does not catch: only the latter names the program's file.
    raised = done.returncode == 1 and f'File "{program}"' in done.stderr
    failed = raised or done.returncode not in {0, 1}
    if failed:
        print(done.stderr)
    ended = "FAILED" if failed else "a bound is missed" if done.returncode else "ok"
    print(f"--- bench {name}: {ended} after {time.monotonic() - start:.0f} s", flush=True)
    return not failed


def main() -> int:
    """Run all benchmarks, or those that are named; return how many failed."""
    names = sorted(path.stem for path in FOLDER.glob("[!_]*.py"))
    parser = argparse.ArgumentParser(prog="scripts/ci bench")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--corpora", type=Path, help="the folder of the corpora")
    options = parser.parse_args()
    if unknown := set(options.names) - set(names):
        parser.error(f"there is no benchmark {unknown.pop()!r}, but: {', '.join(names)}")
    failed = 0
    for name in options.names or (name for name in names if name not in ELSEWHERE):
        with corpus_of(name, options.corpora) as corpus:
            if corpus is not None:  # an option may take all that follow
                failed += not run(name, [*corpus, *SHORT.get(name, ())])
    return failed


if __name__ == "__main__":
    sys.exit(main())
