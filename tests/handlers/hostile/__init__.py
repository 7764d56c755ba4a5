"""Files that mean harm, made in code: a share of their sizes runs in the tests, all of it in scripts/torture."""
