"""Write anew all that is made from the code: pages of docs, and the list of the public surface.

.venv/bin/python scripts/make/renew.py        half a minute, most of it for the recipes

A name that is gone or changed in tests/surface.txt breaks the programs of users: see CONTRIBUTING.
"""

from pathlib import Path

from scripts.make import configuration_page, formats_page, recipes_page, surface

ROOT = Path(__file__).parents[2]
BEGIN, END = "<!-- scripts/make/renew.py copies this -->\n", "<!-- until here -->\n"
PEERS = """## Beside others

Right / tolerable / wrong answers to the same cases, judged by rules and never by a model. Tokens
count what was read until a right answer. [The comparison](docs/comparison.md) has the cases, the
versions, the answers, and what the others do better. `compare/run` prints it on your machine.
"""
HANDLERS = ROOT / "docs" / "handlers.md"


def with_peers(readme: str, comparison: str) -> str:
    """Return README with the table of servers as the comparison printed it."""
    before, _, rest = readme.partition(BEGIN)
    after = rest.partition(END)[2]
    section = comparison.partition("\n## Servers\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    shown = "\n".join(row for row in rows if not row.startswith("| planted"))
    return f"{before}{BEGIN}{PEERS}\n{shown}\n\n{END}{after}" if shown else readme


def main() -> None:
    """Write each file, and say which of them changed."""
    pages = {
        ROOT / "docs" / "configuration.md": configuration_page.page(),
        HANDLERS: formats_page.page(HANDLERS.read_text(encoding="utf-8")),
        ROOT / "docs" / "recipes.md": recipes_page.page(),
        ROOT / "docs" / "reference.md": surface.reference(),
        ROOT / "tests" / "surface.txt": surface.lines(),
    }
    comparison, readme = ROOT / "docs" / "comparison.md", ROOT / "README.md"
    if comparison.exists():
        texts = (page.read_text(encoding="utf-8") for page in (readme, comparison))
        pages[readme] = with_peers(*texts)
    for file, text in pages.items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            print(f"changed: {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
