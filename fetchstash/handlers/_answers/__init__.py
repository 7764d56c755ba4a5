"""Answers of public APIs in place of a page (fetch/_rules.py), read as Markdown."""

from enum import unique

from fetchstash.handlers._contract import Format, family
from fetchstash.handlers._reasons import KEPT, ReasonTable


@unique
class AnswerReason(ReasonTable):
    """Why an answer is not read."""

    ANSWER_SHAPE = "the answer of the API has none of the values that were expected", KEPT


_ANSWER = Format(
    kind="json",
    word="",
    handler="fetchstash.handlers._answers._sites:AnswerHandler",
    media_types=(),
    is_markup=True,
    paths=("/*", "$*"),
)
_OURS = "application/vnd.fetchstash."

FORMATS = (
    *family(
        _ANSWER,
        ("thread", f"{_OURS}thread+json", ""),
        ("folder listing", f"{_OURS}folder+json", ""),
        ("release", f"{_OURS}release+json", ""),
        ("repository", f"{_OURS}repository+json", ""),
        ("gist", f"{_OURS}gist+json", ""),
        ("package", f"{_OURS}pypi+json {_OURS}npm+json {_OURS}crate+json", ""),
        ("question", f"{_OURS}questions+json", ""),
        ("story", f"{_OURS}story+json", ""),
    ),
    Format(
        kind="html",
        word="film page",
        handler="fetchstash.handlers._answers._film:FilmHandler",
        media_types=(f"{_OURS}film+html",),
        is_markup=True,
        paths=("page", "left_out", "links", "tables", "images", "images/*", "data", "#*"),
    ),
)
