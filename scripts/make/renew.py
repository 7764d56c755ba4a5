"""Write anew all that is made from the code: pages of docs, and the list of the public surface.

.venv/bin/python scripts/make/renew.py        half a minute, most of it for the recipes

A name that is gone or changed in tests/surface.txt breaks the programs of users: see CONTRIBUTING.
"""

from pathlib import Path

from scripts.make import configuration_page, formats_page, recipes_page, surface

ROOT = Path(__file__).parents[2]
HANDLERS = ROOT / "docs" / "handlers.md"


def main() -> None:
    """Write each file, and say which of them changed."""
    pages = {
        ROOT / "docs" / "configuration.md": configuration_page.page(),
        HANDLERS: formats_page.page(HANDLERS.read_text(encoding="utf-8")),
        ROOT / "docs" / "recipes.md": recipes_page.page(),
        ROOT / "docs" / "reference.md": surface.reference(),
        ROOT / "tests" / "surface.txt": surface.lines(),
    }
    for file, text in pages.items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            print(f"changed: {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
