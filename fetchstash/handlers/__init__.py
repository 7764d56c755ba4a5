"""Bytes to text and facts. Knows formats; knows no network and no store."""

from fetchstash.handlers._charset import charset_of_file
from fetchstash.handlers._contract import (
    TEXT_KINDS,
    ContentKind,
    DecidedBy,
    Decision,
    Extracted,
    Extraction,
    ExtractLimits,
    Extractor,
    Handler,
    Hints,
    Part,
    PartRequest,
    PartText,
    Picture,
    Render,
)
from fetchstash.handlers._routing._media_types import TEXT_MEDIA_TYPES
from fetchstash.handlers._routing._router import detect_content_kind, route_file
from fetchstash.handlers._words import kind_word
from fetchstash.handlers._worker._pool import WorkerPool

__all__ = [
    "TEXT_KINDS",
    "TEXT_MEDIA_TYPES",
    "ContentKind",
    "DecidedBy",
    "Decision",
    "ExtractLimits",
    "Extracted",
    "Extraction",
    "Extractor",
    "Handler",
    "Hints",
    "Part",
    "PartRequest",
    "PartText",
    "Picture",
    "Render",
    "WorkerPool",
    "charset_of_file",
    "detect_content_kind",
    "kind_word",
    "route_file",
]
