"""The headings that the structure tree of a tagged PDF names (ISO 32000-1, section 14.7)."""

import re
from ctypes import c_ushort
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

_MAX_ELEMENTS = 5_000
_HEADING = re.compile(r"H([1-6]?)|(Title)")


def is_tagged(document: "PdfDocument") -> bool:
    """Return whether a document has a structure tree."""
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    return bool(raw.FPDFCatalog_IsTagged(document))


def heading_levels(page: "PdfPage") -> dict[int, int]:
    """Return the levels of a page's headings by the numbers of their marked content."""
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    tree = raw.FPDF_StructTree_GetForPage(page)
    if not tree:
        return {}
    levels: dict[int, int] = {}
    try:
        count = min(raw.FPDF_StructTree_CountChildren(tree), _MAX_ELEMENTS)
        waiting = [(raw.FPDF_StructTree_GetChildAtIndex(tree, n), 0) for n in range(count)]
        seen = 0
        while waiting and seen < _MAX_ELEMENTS:
            element, level = waiting.pop()
            seen += 1
            if not element:
                continue
            if match := _HEADING.fullmatch(_type(element)):
                level = int(match[1] or 1)
            if level:
                for n in range(max(raw.FPDF_StructElement_GetMarkedContentIdCount(element), 0)):
                    levels[raw.FPDF_StructElement_GetMarkedContentIdAtIndex(element, n)] = level
            children = min(raw.FPDF_StructElement_CountChildren(element), _MAX_ELEMENTS)
            waiting += [
                (raw.FPDF_StructElement_GetChildAtIndex(element, n), level) for n in range(children)
            ]
    finally:
        raw.FPDF_StructTree_Close(tree)
    return levels


def _type(element: Any) -> str:
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    buffer = (c_ushort * 32)()
    length = raw.FPDF_StructElement_GetType(element, buffer, 64)
    return bytes(buffer)[: min(length, 64)].decode("utf-16-le", "replace").strip("\0")
