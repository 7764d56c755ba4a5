"""Write anew all that is made from the code: pages of docs, and the list of the public surface.

.venv/bin/python scripts/make/renew.py        half a minute, most of it for the recipes

A name that is gone or changed in tests/surface.txt breaks the programs of users: see CONTRIBUTING.
"""

from collections.abc import Callable
from pathlib import Path

from scripts.make import recipes, recording, surface, tables

ROOT = Path(__file__).parents[2]


def read(name: str) -> str:
    """Return the text of a file of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


MADE: dict[str, Callable[[str], str]] = {
    "README.md": lambda page: tables.with_peers(page, read("docs/comparison.md")),
    "docs/configuration.md": tables.with_settings,
    "docs/handlers.md": tables.with_formats,
    "llms.txt": lambda _: tables.llms_txt(read),
    "docs/recipes.md": recipes.run_again,
    "docs/terminal.svg": lambda _: recording.picture(read("docs/recipes.md")),
    "deploy/registries/manifest.json": tables.with_tools,
    "docs/reference.md": lambda _: surface.reference(),
    "tests/surface.txt": lambda _: surface.lines(),
}
"""What makes each file, from its text as it is."""


def main() -> None:
    """Write each file, and say which of them changed."""
    for name, make in MADE.items():
        before = read(name) if (ROOT / name).exists() else ""
        if (text := make(before)) != before:
            (ROOT / name).write_text(text, encoding="utf-8")
            print(f"changed: {name}")


if __name__ == "__main__":
    main()
