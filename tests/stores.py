"""The kinds of stores that a test may run on."""

import pytest

both_stores = pytest.mark.parametrize("store_settings", ["folder", "memory"], indirect=True)
"""Runs a test on a store in a folder and on one in memory."""
