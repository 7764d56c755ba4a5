"""Make the documentation a site; a broken link or anchor, or a page without a place, fails it.

    scripts/ci site                     to see that it can be made
    scripts/ci site --into FOLDER       and to keep it; FOLDER/index.html is the front page

The pages lie in the site as they lie in the repository, so that their links hold in both. What is
no page (a program, a folder) is linked to the repository itself. site.yml has the settings.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.drive.tools import ROOT, python_tool

SETTINGS = Path(__file__).with_suffix(".yml")
FILES = "https://github.com/fetchstash/fetchstash/blob/main"
LINK = re.compile(r"(\]\()([^)#:\s]+)([^)]*\))")


def staged(folder: Path) -> None:
    """Copy the pages and their pictures into a folder."""
    found = [*ROOT.glob("*.md"), ROOT / "llms.txt", *(ROOT / "docs").rglob("*")]
    files = [file for file in found if file.suffix in (".md", ".svg", ".png", ".txt")]
    names = {file.relative_to(ROOT).as_posix() for file in files}
    for name in names:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix == ".md":
            text = (ROOT / name).read_text(encoding="utf-8")
            target.write_text(with_repository(text, ROOT / name, names), encoding="utf-8")
        else:
            shutil.copy(ROOT / name, target)


def with_repository(text: str, page: Path, names: set[str]) -> str:
    """Return a page whose links to other than pages lead to the repository."""

    def lead(link: re.Match[str]) -> str:
        target = (page.parent / link[2]).resolve()
        if not target.exists() or not target.is_relative_to(ROOT):
            return link[0]  # mkdocs says that it is broken
        name = target.relative_to(ROOT).as_posix()
        return link[0] if name in names else f"{link[1]}{FILES}/{name}{link[3]}"

    return LINK.sub(lead, text)


def main() -> int:
    """Make the site; return the exit code of mkdocs."""
    parser = argparse.ArgumentParser(prog="scripts/ci site")
    parser.add_argument("--into", type=Path, help="the folder to keep it in")
    into: Path | None = parser.parse_args().into
    programs = python_tool("site")
    if programs is None:
        return 0
    with tempfile.TemporaryDirectory() as name:
        pages, settings = Path(name, "pages"), Path(name, "mkdocs.yml")
        site = into.resolve() if into else Path(name, "site")
        staged(pages)
        of_run = {"INHERIT": str(SETTINGS), "docs_dir": str(pages), "site_dir": str(site)}
        settings.write_text(json.dumps(of_run), encoding="utf-8")
        words = f"-P -m mkdocs build --strict --quiet -f {settings}".split()
        # Its theme prints a notice about versions to come.
        env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        code = subprocess.run([programs / "python", *words], check=False, env=env).returncode
        made = sum(1 for _ in site.rglob("*.html"))
    if code:
        print("site: FAILED. Mend what is named above.")
    else:
        print(f"site: {made} pages" + (f". Open {site / 'index.html'}" if into else ""))
    return code


if __name__ == "__main__":
    sys.exit(main())
