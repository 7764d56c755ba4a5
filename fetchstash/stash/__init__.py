"""Stash: the one place where fetch, handlers and store meet.

Each tool of the server and each command of the terminal is a thin face of one method.
"""

from fetchstash.stash._stash import Stash

__all__ = ["Stash"]
