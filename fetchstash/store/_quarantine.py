"""The quarantine: where repair moves what it cannot place. fetchstash never deletes from it."""

import contextlib
import time
from pathlib import Path

from fetchstash.store._disk import private_file, private_folder

LIST = "list.txt"


class Quarantine:
    """The folder ``quarantine`` of a store, with a list of what was moved there and why."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "quarantine"

    def move(self, path: Path, reason: str) -> Path | None:
        """Move a file there and return its new place; None if it is gone."""
        private_folder(self.folder)
        target = self.folder / f"{path.parent.name}-{path.name}"
        if target.exists():
            target = target.with_name(f"{target.name}-{time.time_ns()}")
        try:
            path.replace(target)
        except FileNotFoundError:
            return None
        with contextlib.suppress(OSError):  # a full disk: the file itself is safe
            private_file(self.folder / LIST)
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            with (self.folder / LIST).open("a", encoding="utf-8") as file:
                file.write(f"{when}\t{target.name}\t{target.stat().st_size}\t{reason}\n")
        return target

    def count(self) -> tuple[int, int]:
        """Return how many files there are, and their bytes."""
        with contextlib.suppress(FileNotFoundError):
            sizes = [path.stat().st_size for path in self.folder.iterdir() if path.name != LIST]
            return len(sizes), sum(sizes)
        return 0, 0
