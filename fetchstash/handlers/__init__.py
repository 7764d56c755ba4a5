"""Bytes to text and facts. Knows formats; knows no network and no store."""

from fetchstash.handlers._contract import (
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
    PartText,
    Picture,
    Render,
)

__all__ = [
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
    "PartText",
    "Picture",
    "Render",
]
