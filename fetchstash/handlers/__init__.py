"""Bytes to text and facts. Knows formats; knows no network and no store."""

from typing import TYPE_CHECKING

from fetchstash.system import lazy_names

if TYPE_CHECKING:
    from fetchstash.handlers._charset import charset_named, charset_of_file, decode, read_text
    from fetchstash.handlers._contract import (
        ContentKind,
        DecidedBy,
        Decision,
        Extracted,
        Extraction,
        Extractor,
        Format,
        Handler,
        Head,
        Hints,
        PageReader,
        PageText,
        Part,
        PartRequest,
        PartText,
        Picture,
        Render,
        Sniffed,
        family,
    )
    from fetchstash.handlers._leads import (
        LEADING,
        PageLinks,
        checked_lead,
        is_picture,
        page_links,
        refreshed,
    )
    from fetchstash.handlers._limits import ExtractLimits
    from fetchstash.handlers._ocr import ocr_is_installed, ocr_limits
    from fetchstash.handlers._parts import (
        TextParts,
        blank_page,
        ocr_page,
        ocr_text,
        part_text,
        unmapped_page,
    )
    from fetchstash.handlers._previews import list_preview
    from fetchstash.handlers._reasons import Reason
    from fetchstash.handlers._registry import (
        built_in,
        describe,
        format_of,
        handler_of,
        kind_of_name,
    )
    from fetchstash.handlers._router import detect_content_kind, route_file
    from fetchstash.handlers._worker._pool import WorkerPool
    from fetchstash.handlers._worker._process import warn_unconfined

__all__ = [
    "LEADING",
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
    "PageLinks",
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
    "checked_lead",
    "decode",
    "describe",
    "detect_content_kind",
    "family",
    "format_of",
    "handler_of",
    "is_picture",
    "kind_of_name",
    "list_preview",
    "ocr_is_installed",
    "ocr_limits",
    "ocr_page",
    "ocr_text",
    "page_links",
    "part_text",
    "read_text",
    "refreshed",
    "route_file",
    "unmapped_page",
    "warn_unconfined",
]

_MODULES = {
    "_charset": "charset_named charset_of_file decode read_text",
    "_contract": (
        "ContentKind DecidedBy Decision Extracted Extraction Extractor Format Handler Head "
        "Hints PageReader PageText Part PartRequest PartText Picture Render Sniffed family"
    ),
    "_leads": "LEADING PageLinks checked_lead is_picture page_links refreshed",
    "_limits": "ExtractLimits",
    "_ocr": "ocr_is_installed ocr_limits",
    "_reasons": "Reason",
    "_registry": "built_in describe format_of handler_of kind_of_name",
    "_router": "detect_content_kind route_file",
    "_parts": "TextParts blank_page ocr_page ocr_text part_text unmapped_page",
    "_previews": "list_preview",
    "_worker._pool": "WorkerPool",
    "_worker._process": "warn_unconfined",
}
__getattr__ = lazy_names(__name__, _MODULES)
