"""Bytes to text and facts. Knows formats; knows no network and no store."""

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
    PartText,
    Picture,
    Render,
)
from fetchstash.handlers._worker_pool import WorkerPool

__all__ = [
    "TEXT_KINDS",
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
    "WorkerPool",
]
