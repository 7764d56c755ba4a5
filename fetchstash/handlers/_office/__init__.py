"""Documents and slides of office programs, old and new, and books."""
