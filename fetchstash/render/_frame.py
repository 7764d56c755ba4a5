"""Bounds of everything around a body, in characters."""

FRAME_CHARS = 1_200
"""Around the body of one artifact. The longest URL, name and path that are shown fit."""

FRAME_CHARS_OF_SEVERAL = 600
