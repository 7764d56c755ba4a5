"""Make the documentation a site; a broken link or anchor fails it.

    scripts/ci site                     to see that it can be made
    scripts/ci site --into FOLDER       and to keep it; FOLDER/index.html is the front page

The pages lie in the site as they lie in the repository, so that their links hold in both. What is
no page (a program, a folder) is linked to the repository itself.
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

REPOSITORY = "https://github.com/fetchstash/fetchstash"
LINK = re.compile(r"(\]\()([^)#:\s]+)([^)]*\))")

NAVIGATION = {
    "Start": [
        "README.md",
        "docs/start.md",
        "docs/install.md",
        "docs/recipes.md",
        "docs/limits.md",
        "docs/comparison.md",
    ],
    "Your agent": [
        "docs/tools.md",
        "docs/cli.md",
        "docs/view.md",
        "docs/rules.md",
        "docs/hosts.md",
    ],
    "Your program": ["docs/library.md", "docs/reference.md", "docs/errors.md", "docs/facts.md"],
    "Your agent's code": [
        "docs/frameworks.md",
        "docs/client.md",
        "docs/gateway.md",
        "docs/handlers.md",
    ],
    "Your team": [
        "docs/operations.md",
        "docs/operations-reference.md",
        "docs/sizing.md",
        "docs/runbook.md",
        "docs/identity.md",
        "docs/security.md",
        "docs/configuration.md",
    ],
    "The project": [
        "docs/how-it-works.md",
        "docs/speed.md",
        "docs/stability.md",
        "SECURITY.md",
        "CONTRIBUTING.md",
        "CODE_OF_CONDUCT.md",
        "THIRD_PARTY.md",
        "CHANGELOG.md",
        "CHANGELOG-0.md",
    ],
}
"""The pages under their headings. A page of ``docs`` that is not here stands under "More"."""

THEME = {
    "name": "material",
    "font": False,  # the reader's own: a page that asks another host for fonts tells it who reads
    "features": ["navigation.tabs", "navigation.top", "content.code.copy", "search.suggest"],
    "palette": [
        {
            "media": f"(prefers-color-scheme: {scheme})",
            "scheme": name,
            "primary": "teal",
            "accent": "teal",
            "toggle": {"icon": f"material/weather-{icon}", "name": f"Switch to {other}"},
        }
        for scheme, name, icon, other in (
            ("light", "default", "sunny", "dark"),
            ("dark", "slate", "night", "light"),
        )
    ],
}


def main() -> int:
    """Make the site; return the exit code of mkdocs."""
    parser = argparse.ArgumentParser(prog="scripts/ci site")
    parser.add_argument("--into", type=Path, help="the folder to keep it in")
    into: Path | None = parser.parse_args().into
    programs = python_tool("site")
    if programs is None:
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pages = staged(folder / "pages")
        settings = folder / "mkdocs.yml"
        site = into.resolve() if into else folder / "site"
        settings.write_text(json.dumps(configuration(pages, site)), encoding="utf-8")
        command: list[str | Path] = [
            programs / "python",
            "-P",
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "--quiet",
            "-f",
            settings,
        ]
        code = subprocess.run(command, check=False, env=quiet()).returncode
        made = sum(1 for _ in site.rglob("*.html")) if not code else 0
    if code:
        print("site: FAILED. Mend the links that are named above.")
    else:
        print(f"site: {made} pages" + (f". Open {site / 'index.html'}" if into else ""))
    return code


def quiet() -> dict[str, str]:
    """Return the environment of mkdocs. Its theme prints a notice about versions to come."""
    return {**os.environ, "NO_MKDOCS_2_WARNING": "1"}


def staged(folder: Path) -> list[str]:
    """Copy the pages and their pictures into a folder; return the pages."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*")]
    files = [file for file in found if file.suffix in (".md", ".svg", ".png")]
    names = {file.relative_to(ROOT).as_posix() for file in files}
    for name in names:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix == ".md":
            text = (ROOT / name).read_text(encoding="utf-8")
            target.write_text(with_repository(text, ROOT / name, names), encoding="utf-8")
        else:
            shutil.copy(ROOT / name, target)
    return sorted(name for name in names if name.endswith(".md"))


def with_repository(text: str, page: Path, names: set[str]) -> str:
    """Return a page whose links to other than pages lead to the repository."""

    def lead(link: re.Match[str]) -> str:
        target = (page.parent / link[2]).resolve()
        if not target.exists() or not target.is_relative_to(ROOT):
            return link[0]  # mkdocs says that it is broken
        name = target.relative_to(ROOT).as_posix()
        return link[0] if name in names else f"{link[1]}{REPOSITORY}/blob/main/{name}{link[3]}"

    return LINK.sub(lead, text)


def configuration(pages: list[str], site: Path) -> dict[str, object]:
    """Return the settings of mkdocs."""
    listed = {page for group in NAVIGATION.values() for page in group}
    more = [page for page in pages if page not in listed]
    groups = {
        heading: [page for page in group if page in pages] for heading, group in NAVIGATION.items()
    }
    if more:
        groups["More"] = more
    return {
        "site_name": "fetchstash",
        "site_description": "Fetch any web page or document without flooding an agent's context.",
        "repo_url": REPOSITORY,
        "docs_dir": "pages",
        "site_dir": str(site),
        "nav": [{heading: group} for heading, group in groups.items()],
        "theme": THEME,
        "plugins": ["search"],
        "markdown_extensions": [
            {"toc": {"permalink": True}},
            "pymdownx.highlight",
            "pymdownx.superfences",
            "tables",
        ],
        "validation": {
            "nav": {"omitted_files": "warn", "not_found": "warn"},
            "links": dict.fromkeys(
                ("not_found", "anchors", "absolute_links", "unrecognized_links"), "warn"
            ),
        },
    }


if __name__ == "__main__":
    sys.exit(main())
