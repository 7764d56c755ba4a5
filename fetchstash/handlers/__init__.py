"""Bytes to text and facts. Knows formats; knows no network and no store."""

from collections.abc import Mapping as _Mapping

from fetchstash.handlers._charset import charset_named, charset_of_file, decode, read_text
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
    PageReader,
    PageText,
    Part,
    PartRequest,
    PartText,
    Picture,
    Render,
)
from fetchstash.handlers._format import Format, Head, Sniffed, family
from fetchstash.handlers._ocr import is_installed as ocr_is_installed, ocr_limits
from fetchstash.handlers._reasons import Reason
from fetchstash.handlers._registry import (
    built_in,
    describe,
    format_of,
    handler_named,
    handler_of,
    kind_of_name,
    kind_word,
)
from fetchstash.handlers._routing._router import detect_content_kind, route_file
from fetchstash.handlers._shared._list_preview import list_preview
from fetchstash.handlers._shared._pages import blank_page, ocr_page, ocr_text, unmapped_page
from fetchstash.handlers._shared._part_text import TextParts, part_text
from fetchstash.handlers._worker._pool import WorkerPool

__all__ = [
    "TEXT_MEDIA_TYPES",
    "ContentKind",
    "DecidedBy",
    "Decision",
    "ExtractLimits",
    "Extracted",
    "Extraction",
    "Extractor",
    "Format",
    "Handler",
    "Head",
    "Hints",
    "PageReader",
    "PageText",
    "Part",
    "PartRequest",
    "PartText",
    "Picture",
    "Reason",
    "Render",
    "Sniffed",
    "TextParts",
    "WorkerPool",
    "blank_page",
    "built_in",
    "charset_named",
    "charset_of_file",
    "decode",
    "describe",
    "detect_content_kind",
    "family",
    "format_of",
    "handler_named",
    "handler_of",
    "kind_of_name",
    "kind_word",
    "list_preview",
    "ocr_is_installed",
    "ocr_limits",
    "ocr_page",
    "ocr_text",
    "part_text",
    "read_text",
    "route_file",
    "unmapped_page",
]

TEXT_MEDIA_TYPES: _Mapping[str, ContentKind]
"""Media types whose bytes are text, and the kind of content that each names.

Beyond the table: every other ``text/*`` is "text" (``text/x-*`` is "code"), and the structured
suffixes of RFC 6839 and RFC 9512 decide the rest: ``+json`` is "json", ``+xml`` "xml", ``+yaml``
"yaml", ``+json-seq`` (RFC 8091) "jsonl".
"""


def __getattr__(name: str) -> object:
    # Read out of the declarations of formats, which are imported when they are needed.
    if name == "TEXT_MEDIA_TYPES":
        return built_in().text_media_types()
    raise AttributeError(name)
