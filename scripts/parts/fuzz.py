"""Fuzz the parsers of what others wrote: property tests, guided by coverage.

    scripts/ci fuzz [--seconds N] [NAME …]

atheris feeds each Hypothesis test its bytes, and keeps those that reach new code. Each begins from
a fresh seed, which it prints: pass it on as ``--seed N`` to repeat the run. A test that fails
leaves its input in the folder build/, and prints its path. Exit code: how many failed. Needs
atheris, which the lock has for Linux on x86-64 alone.
"""

import secrets
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

from scripts.drive.programs import ends_well, options
from scripts.drive.tools import ROOT

TESTS: Mapping[str, str] = {
    "test_any_bytes_are_decoded_or_broken": "fetch.test_bodies",
    "test_any_header_is_read_and_what_comes_of_it_is_clean": "fetch.test_causes",
    "test_any_bytes_in_pieces_are_the_response_that_they_are_at_once": "fetch.test_framing",
    "test_any_robots_txt_is_read": "fetch.test_manners",
    "test_any_text_is_read_or_refused_and_what_was_read_reads_the_same_again": "fetch.test_url",
    "test_any_text_is_taken_and_masking_twice_changes_nothing_more": "fetch.test_url",
    "test_any_operators_are_a_page_that_is_read": "handlers.test_pdf_any",
    "test_no_word_of_any_page_is_lost": "handlers.test_pdf_any",
}
"""The tests, and the module of each."""
FUZZED = ["email", "fetchstash.fetch", "fetchstash.handlers", "fetchstash.text", "h11", "idna"]
INPUTS = ROOT / "build"
GRACE_SECONDS = 180
"""Time beyond its share after which a test counts as hanging."""


def fuzz(name: str, seconds: int, seed: int) -> None:
    """Fuzz one test in this process, which libFuzzer ends."""
    import atheris  # noqa: PLC0415 - not everywhere

    with atheris.instrument_imports(include=FUZZED):
        test = getattr(import_module(f"tests.{TESTS[name]}"), name)
    # A hang of 30 seconds for one input fails like a crash.
    limits = [f"-max_total_time={seconds}", f"-seed={seed}", "-timeout=30"]
    atheris.Setup(
        [sys.argv[0], *limits, f"-artifact_prefix={INPUTS}/{name}-"], test.hypothesis.fuzz_one_input
    )
    atheris.Fuzz()


def main() -> int:
    """Fuzz all of them, or those that are named; return how many failed."""
    chosen = options(__doc__, names=TESTS, seconds=120, seed=0, alone=False)
    if find_spec("atheris") is None:
        print("SKIPPED: atheris has no wheel for this machine")
        return 0
    if chosen.alone:
        fuzz(chosen.names[0], chosen.seconds, chosen.seed)
    INPUTS.mkdir(exist_ok=True)
    share = max(chosen.seconds // len(chosen.names), 1)
    failed = 0
    for name in chosen.names:
        seed = chosen.seed or secrets.randbelow(2**32 - 1) + 1
        given = [name, "--seconds", str(share), "--seed", str(seed)]
        command = [sys.executable, "-P", __file__, *given, "--alone"]
        failed += not ends_well(" ".join(given), command, share + GRACE_SECONDS, quiet=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
