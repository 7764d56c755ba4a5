"""The terminal face of Stash."""
