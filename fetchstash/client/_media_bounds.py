"""Bounds of providers on pictures, documents and pages in one request, with their sources.

``Policy(media_bounds=…)`` has other rows: a row of yours before these counts first.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

_compiled = cache(re.compile)


@dataclass(frozen=True, slots=True)
class MediaBounds:
    """What one provider takes of media in one request; 0 is no bound.

    ``pictures``, ``documents``, ``recordings`` and ``media`` (pictures and documents together)
    count them, ``pages`` those of all PDFs. ``pixels`` bounds the longer edge of a picture, and
    ``many_pixels`` does where there are more than ``many`` pictures. ``bytes`` bounds one of them,
    in base64. The row is about requests in whose provider, endpoint or model ``pattern`` is found,
    with ``window`` only about models that the table of windows gives at most so many tokens.
    """

    name: str
    pattern: str = ""
    pictures: int = 0
    documents: int = 0
    recordings: int = 0
    media: int = 0
    pages: int = 0
    pixels: int = 0
    many: int = 0
    many_pixels: int = 0
    bytes: int = 0
    window: int = 0
    source: str = ""


MEDIA_BOUNDS: tuple[MediaBounds, ...] = (
    MediaBounds(
        "bedrock",
        r"bedrock|amazonaws",
        pictures=20,
        documents=5,
        pixels=8_000,
        many=20,
        many_pixels=2_000,
        source="Amazon Bedrock API reference, Message (Converse), read 2026-11-29",
    ),
    MediaBounds(
        "anthropic, models with a window of 200,000 tokens",
        r"anthropic|claude",
        pictures=100,
        pages=100,
        pixels=8_000,
        many=20,
        many_pixels=2_000,
        bytes=5 * 2**20,
        window=200_000,
        source="Anthropic, Images and vision, General limits; PDF support; read 2026-11-29",
    ),
    MediaBounds(
        "anthropic",
        r"anthropic|claude",
        pictures=600,
        pages=600,
        pixels=8_000,
        many=20,
        many_pixels=2_000,
        bytes=5 * 2**20,
        source="Anthropic, Images and vision, General limits; PDF support; read 2026-11-29",
    ),
    MediaBounds(
        "gemini",
        r"gemini|generativelanguage|aiplatform",
        pictures=3_600,
        source="Google's own refusal: fewer than 3600 images (NarratoAI issue 33)",
    ),
    MediaBounds(
        "scaleway",
        r"scaleway",
        pictures=12,
        source="Scaleway, Generative APIs, vision models: the 13th is refused with 400",
    ),
)
"""The first row counts whose pattern is found."""


def bounds_for(table: Sequence[MediaBounds], where: str, window: int | None) -> MediaBounds | None:
    """Return the row for a request, None if no row is about it.

    ``where`` has its provider, endpoint and model; ``window`` is what is known of the model.
    """
    # A model of unknown window gets the row with the larger bounds: a refusal teaches the smaller
    # one, where the smaller one would drop pictures that the model takes.
    rows = (row for row in table if _compiled(row.pattern).search(where.lower()))
    return next((row for row in rows if not row.window or 0 < (window or 0) <= row.window), None)
