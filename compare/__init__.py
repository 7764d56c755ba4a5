"""A comparison with peers that anyone can run: ``compare/run`` (see docs/comparison.md)."""
