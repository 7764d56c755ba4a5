"""What the command gives the view: its words for a next step, and how a file is opened."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fetchstash.errors import Wording, as_method
from fetchstash.store import Facts


@dataclass(frozen=True, slots=True)
class Person:
    """Whoever looks: ``word`` words a next step, ``open_copy`` opens a kept file (None: nobody)."""

    word: Wording = as_method
    open_copy: Callable[[Facts, Path], object] | None = None
