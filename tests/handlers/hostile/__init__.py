"""Hostile files, made in code: small ones for the tests, full-sized ones for scripts/ci torture."""
