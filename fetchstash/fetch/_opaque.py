"""Recognise path segments that serve as keys: share links, document IDs, invitations.

A capability URL (W3C, "Good Practices for Capability URLs") holds a random part that nobody can
guess. Random letters and digits change their kind far more often than words and numbers do.
"""

import re
from itertools import pairwise
from urllib.parse import unquote

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_RUN = re.compile(r"[A-Za-z0-9]+")
_HASHES = re.compile(r"[0-9a-fA-F]+(?:\.{2,3}[0-9a-fA-F]+)?")
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,5}\Z")
# Names of a public hash of content, such as a commit, ...
_PUBLIC = frozenset({"blob", "blobs", "commit", "commits", "compare", "raw", "tree"})
# ... and before what only those know who were given the link.
_SHARED = frozenset(
    """
    accept activate confirm folders invitation invitations invite invites join magic private reset
    reset-password s secret share shared sharing token unsubscribe verify
    """.split()  # noqa: SIM905 -- twenty quoted words are no easier to read
)
_WORD_ENDS = re.compile(r"[\W_]+|(?<=[a-z]{2})(?=[A-Z][a-z]{2})")  # also inProgress
_MAX_WORDS = 80
_MAX_CHARS = 1_024  # a longer segment is judged by its beginning


def mask_segments(path: str, mask: str) -> str:
    """Return ``path`` with the keys in its segments replaced; words and extensions stay."""
    masked: list[str] = []
    before = ""
    for segment in path.split("/"):
        extension = _EXTENSION.search(segment)
        stem = segment[: extension.start()] if extension else segment
        masked.append(_masked(stem, before, mask) + segment[len(stem) :])
        before = segment.lower()
    return "/".join(masked)


def _masked(segment: str, before: str, mask: str) -> str:
    """Return a segment without its keys; all of it is replaced unless the rest are words."""
    text = unquote(segment[:_MAX_CHARS])
    if before in _PUBLIC and _HASHES.fullmatch(text):
        return segment
    rest = _UUID.sub("", text)
    runs = _RUN.findall(rest)
    keys = {run for run in runs if _is_random(run, is_shared=before in _SHARED)}
    if rest == text and not keys:
        return mask if _is_scattered(runs) else segment
    if text == segment and all(run in keys or _is_word(run) for run in runs):
        parts = _UUID.sub(mask, segment)
        return _RUN.sub(lambda run: mask if run[0] in keys else run[0], parts)
    return mask


def is_words(text: str) -> bool:
    """Return whether a value of a parameter is words, names or a short number, and no key."""
    return len(text) <= _MAX_WORDS and all(
        len(run) <= (5 if run.isdigit() else 20) and (len(run) < 2 or _is_word(run))
        for run in _WORD_ENDS.split(text)
    )


def _is_word(run: str) -> bool:
    return run.isdigit() or (run.isalpha() and (run[1:].islower() or run.isupper()))


def _is_random(run: str, *, is_shared: bool) -> bool:
    """Say whether letters and digits look random: of one case, mixed, or hexadecimal."""
    size = len(run)
    if size < 8 or run.isalpha() or run.isdigit():
        return False
    changes = _changes(run)
    if is_shared:
        return changes >= 3
    if run.islower() or run.isupper():
        return size >= 20 and changes >= size / 6
    return size >= 16 and changes >= size / 3


def _is_scattered(runs: list[str]) -> bool:
    """Say whether short runs are one key in base64url, in which "-" and "_" stand for digits."""
    pieces = [run for run in runs if not _is_word(run)]
    changes = sum(_changes(piece) for piece in pieces)
    size = sum(map(len, pieces))
    return size >= 16 and changes >= 0.45 * size


def _changes(run: str) -> int:
    return sum(_kind(first) != _kind(second) for first, second in pairwise(run))


def _kind(char: str) -> int:
    return 0 if char.isdigit() else 1 if char.islower() else 2
