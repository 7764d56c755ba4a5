"""Run the programs of scripts/torture one after the other, and print how each ended.

    scripts/ci torture [--short] [NAME [ARGUMENT …]]

`--short` runs each for a few minutes, as CI does. Exit code: how many failed.
"""

import sys
from collections.abc import Mapping, Sequence

from scripts.drive.programs import ends_well
from scripts.drive.tools import ROOT

SHORT: Mapping[str, Sequence[str]] = {"handlers": ("--length", "65536"), "store": ("--kills", "40")}
"""The programs, and their arguments in a short run: fewer rounds, smaller files."""


def main() -> int:
    """Run all of them, or the one that is named with its own arguments; return how many failed."""
    arguments = sys.argv[1:]
    short = arguments[:1] == ["--short"]
    named, *arguments = arguments[short:] or [""]
    if named and named not in SHORT:
        print(f"There is no {named!r} here, but: {', '.join(SHORT)}.", file=sys.stderr)
        return 2
    failed = 0
    for name in [named] if named else SHORT:
        given = [*(SHORT[name] if short else ()), *arguments]
        program = [sys.executable, "-P", ROOT / "scripts" / "torture" / f"{name}.py", *given]
        failed += not ends_well(f"torture {name} {' '.join(given)}".rstrip(), program)
    return failed


if __name__ == "__main__":
    sys.exit(main())
