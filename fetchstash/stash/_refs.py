"""References as models and people write them: in short, in brackets, with dots behind."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fetchstash.errors import BadArgument
from fetchstash.text import clip

if TYPE_CHECKING:
    from fetchstash.stash._stash import Stash

_BEGINNING = re.compile(r"\[?(art_[a-z2-7]{3,26})(?:\u2026|\.{2,3})?\]?")
_WHOLE_CHARS = 30
_MOST_LISTED = 1_000
"""Artifacts of a run among which a beginning is looked for."""


async def whole_refs(stash: "Stash", refs: Sequence[str]) -> list[str]:
    """Return each reference whole where one alone of the run begins so; others as they are.

    Raises BadArgument for the beginning of several.
    """
    beginnings = [match[1] if (match := _BEGINNING.fullmatch(ref)) else "" for ref in refs]
    known: list[str] = []
    if any(beginning and len(beginning) < _WHOLE_CHARS for beginning in beginnings):
        known = [facts.artifact_ref for facts in await stash.list(limit=_MOST_LISTED)]
    whole: list[str] = []
    for ref, beginning in zip(refs, beginnings, strict=True):
        matches = [other for other in known if beginning and other.startswith(beginning)]
        if len(matches) > 1:
            some = ", ".join(matches[:5])
            what = f"{len(matches)} references begin with {clip(ref, 40)}: {some}."
            raise BadArgument(what, "Give one of them whole.")
        whole += matches or [beginning or ref]
    return whole
