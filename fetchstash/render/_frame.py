"""Bounds of everything around a body, in characters."""

FRAME_CHARS = 1_200
"""Everything around the body of one artifact; the longest URL, name and path that are shown fit in."""

FRAME_CHARS_OF_SEVERAL = 600
