"""THIRD_PARTY.md against the locks and the metadata of each package."""

import re
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "THIRD_PARTY.md").read_text(encoding="utf-8")
NAMES = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0",
    "LGPL-3.0-only": "LGPL-3.0",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
"""Licences that a package's metadata words otherwise than SPDX does."""


def rows(title: str) -> dict[str, str]:
    """Return the row of each package that the section names."""
    section = TEXT.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return {
        name: row
        for row in section.splitlines()
        if row.startswith("|")
        for cell in row.split("|")[1:3]
        for name in re.findall(r"(?<![\w(.-])[a-z][\w.-]*", re.sub(r"\(.*?\)", "", cell))
    }


def locked(name: str) -> set[str]:
    lock = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    return set(re.findall(r"(?m)^([\w.-]+)==", lock))


def licences(package: str) -> set[str]:
    """Return the licences that a package's metadata names, none if it is not installed here."""
    try:
        read = metadata(package)
    except PackageNotFoundError:  # of another system
        return set()
    # Not read[name]: of a field that is missing it warns since 3.12.
    said: list[str] = read.get_all("License-Expression") or []
    if not said:
        classifiers: list[str] = read.get_all("Classifier") or []
        said = [name.rpartition(" :: ")[2] for name in classifiers if name.startswith("License ::")]
    if not said:
        said = [name for name in read.get_all("License") or [] if len(name) < 60]
    parts = {part for each in said for part in re.split(r" (?:AND|OR) |, ", each)}
    return {NAMES.get(part, part) for part in parts} - {"", "dependency licenses"}


def test_every_package_of_the_locks_is_named_with_the_licence_of_its_metadata() -> None:
    installed, brought = rows("Installed with it"), rows("Brought by these")
    default = installed | brought | rows("What builds it")
    every = default | rows("Extras")
    assert sorted(locked("run") - {*every}) == sorted(locked("team") - {*every}) == []
    compared = {name: licences(name) for name in locked("team")}
    assert len([name for name, found in compared.items() if found]) > 70
    wrong = {
        name: found
        for name, found in compared.items()
        if any(licence not in every[name] for licence in found)
    }
    assert wrong == {}


def test_what_is_under_the_lgpl_is_in_no_default_install() -> None:
    assert [name for name in locked("run") if any("GPL" in each for each in licences(name))] == []
    assert any("GPL" in each for each in licences("psycopg"))  # it would be seen
