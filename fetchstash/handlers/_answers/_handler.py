"""Read the answer of an API as Markdown: what a person would have read on the page.

An answer is an array that fetch wrote: the address that was asked for, then each part as it came,
or null. All of it is untrusted and may be of any shape: what is not there is left out.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fetchstash.handlers._answers import AnswerReason, _forges, _others
from fetchstash.handlers._answers._values import Answer, Sections, moment, parts_of, person
from fetchstash.handlers._charset import decode
from fetchstash.handlers._contract import Extracted, Hints
from fetchstash.handlers._data._json_values import is_array, value_at
from fetchstash.handlers._limits import ExtractLimits
from fetchstash.handlers._shared._parts import TextParts

_BIG = 60 * 2**20

_SHAPES: Mapping[str, Callable[[Answer], Sections]] = {
    "thread+json": _forges.thread,
    "folder+json": _forges.folder,
    "release+json": _forges.release,
    "repository+json": _forges.repository,
    "gist+json": _forges.gist,
    "pypi+json": _others.pypi,
    "npm+json": _others.npm,
    "crate+json": _others.crate,
    "questions+json": _others.questions,
    "story+json": _others.story,
}


class AnswerHandler(TextParts):
    """Answers of APIs, each shape by a function of its own."""

    name = "answer"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return the answer as Markdown. Raises NoText if it is of another shape."""
        del limits  # the text is cut behind the handler
        value = _read(source, hints)
        request, *parts = value if is_array(value) and len(value) > 1 else (None, None)
        shape = _SHAPES.get(hints.media_type.removeprefix("application/vnd.fetchstash."))
        answer = Answer(request, parts)
        read = shape(answer) if shape and parts[0] else ()
        sections = [section for section in read if section.text or section.level == 1]
        if not sections or not sections[0].title:
            raise AnswerReason.ANSWER_SHAPE.error()
        extracted = Extracted(list(parts_of(sections)))
        extracted.learn(
            title=sections[0].title,
            author=person(answer.one("user"), answer.one("author"), answer.one("owner")),
            published=moment(answer.one("created_at", "creation_date", "published_at")),
        )
        return extracted

    def find(self, source: Path, path: str, hints: Hints) -> str:
        """Return the value at ``path`` of the answer itself. Raises OutOfRange or BadArgument."""
        return value_at(_read(source, hints), path)


def _read(source: Path, hints: Hints) -> Any:
    if source.stat().st_size > _BIG:
        raise AnswerReason.ANSWER_SHAPE.error()
    with AnswerReason.ANSWER_SHAPE.instead_of(ValueError, RecursionError):
        return json.loads(decode(source.read_bytes(), hints.charset))
