"""Stash: the one place where fetch, handlers and store meet."""
