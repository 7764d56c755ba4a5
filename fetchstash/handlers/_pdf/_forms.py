"""What is written onto a page: the fields of a form, as words at their places, and notes."""

from collections.abc import Callable, Iterator, Sequence
from ctypes import byref, c_uint, c_ushort
from typing import TYPE_CHECKING, Any, NamedTuple

from fetchstash.handlers._pdf._hidden import FAINT, WHITE
from fetchstash.handlers._pdf._words import Box, Word, turned

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

_MAX_FIELDS = 2_000
_MAX_CHARS = 4_000
_MAX_PAIRS = 2_000_000
# Fields that are hidden, or not shown on a screen (ISO 32000-1, table 165).
_UNSEEN = 1 << 1 | 1 << 5
# Fields whose value is shown as asterisks (table 228).
_PASSWORD = 1 << 13
_WIDTH = 0.5
_NEAREST = 250.0


class Field(NamedTuple):
    """A field: its name, what it says, and where it stands."""

    name: str
    text: str
    box: Box


def has_form(document: "PdfDocument") -> bool:
    """Return whether a document has fields to fill in."""
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    return document.get_formtype() != raw.FORMTYPE_NONE


def has_field(page: "PdfPage") -> bool:
    """Return whether a field stands on a page."""
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    for index in range(min(raw.FPDFPage_GetAnnotCount(page), _MAX_FIELDS)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        subtype = raw.FPDFAnnot_GetSubtype(annotation)
        raw.FPDFPage_CloseAnnot(annotation)
        if subtype == raw.FPDF_ANNOT_WIDGET:
            return True
    return False


def read_fields(document: "PdfDocument", page: "PdfPage") -> Iterator[Field]:
    """Yield the fields of a page that say something: texts, ticks and choices."""
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    form = document.formenv
    for index in range(min(raw.FPDFPage_GetAnnotCount(page), _MAX_FIELDS)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        try:
            is_seen = not raw.FPDFAnnot_GetFlags(annotation) & _UNSEEN
            is_field = raw.FPDFAnnot_GetSubtype(annotation) == raw.FPDF_ANNOT_WIDGET
            if form and is_seen and is_field and (text := _text(form, annotation)):
                rect = raw.FS_RECTF()
                raw.FPDFAnnot_GetRect(annotation, byref(rect))
                name = _string(raw.FPDFAnnot_GetFormFieldName, form, annotation)
                yield Field(name, text, (rect.left, rect.bottom, rect.right, rect.top))
        finally:
            raw.FPDFPage_CloseAnnot(annotation)


def read_notes(page: "PdfPage") -> Iterator[str]:
    """Yield the texts that are written onto a page as annotations (FreeText), and can be seen."""
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    for index in range(min(raw.FPDFPage_GetAnnotCount(page), _MAX_FIELDS)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        try:
            if (
                raw.FPDFAnnot_GetSubtype(annotation) == raw.FPDF_ANNOT_FREETEXT
                and not raw.FPDFAnnot_GetFlags(annotation) & _UNSEEN
                and _has_ink(annotation)
                and (text := _string(raw.FPDFAnnot_GetStringValue, annotation, b"Contents"))
            ):
                yield text
        finally:
            raw.FPDFPage_CloseAnnot(annotation)


def _has_ink(annotation: Any) -> bool:
    """Return whether the picture of a note shows text that is not white or transparent.

    Without a picture, viewers draw one.
    """
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    count = min(raw.FPDFAnnot_GetObjectCount(annotation), _MAX_FIELDS)
    items = [raw.FPDFAnnot_GetObject(annotation, index) for index in range(count)]
    texts = [item for item in items if raw.FPDFPageObj_GetType(item) == raw.FPDF_PAGEOBJ_TEXT]
    red, green, blue, alpha = colour = c_uint(), c_uint(), c_uint(), c_uint()
    for item in texts:
        raw.FPDFPageObj_GetFillColor(item, *map(byref, colour))
        if alpha.value > FAINT and min(red.value, green.value, blue.value) < WHITE:
            return True
    return not texts


def _text(form: Any, annotation: Any) -> str:
    """Return what a field says: its value, ``[x]``, ``( )``, what is chosen; "" for a button."""
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in {raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON}:
        mark = "x" if raw.FPDFAnnot_IsChecked(form, annotation) else " "
        return f"[{mark}]" if kind == raw.FPDF_FORMFIELD_CHECKBOX else f"({mark})"
    if kind == raw.FPDF_FORMFIELD_LISTBOX:
        chosen = (
            _option(form, annotation, index)
            for index in range(min(raw.FPDFAnnot_GetOptionCount(form, annotation), 100))
            if raw.FPDFAnnot_IsOptionSelected(form, annotation, index)
        )
        return ", ".join(filter(None, chosen))
    if kind == raw.FPDF_FORMFIELD_TEXTFIELD:
        flags = raw.FPDFAnnot_GetFormFieldFlags(form, annotation)
        if flags & _PASSWORD:  # nobody sees it
            return ""
    if kind in {raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX}:
        return _string(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
    return ""


def _option(form: Any, annotation: Any, index: int) -> str:
    from pypdfium2 import raw  # noqa: PLC0415 - a heavy import

    return _string(
        lambda *rest: raw.FPDFAnnot_GetOptionLabel(form, annotation, index, *rest[2:]), None, None
    )


def _string(get: Callable[..., int], form: Any, annotation: Any) -> str:
    """Return a string of pdfium, which says its length in bytes first."""
    length = min(get(form, annotation, None, 0), 2 * _MAX_CHARS)
    if length <= 2:
        return ""
    buffer = (c_ushort * (length // 2 + 1))()
    get(form, annotation, buffer, length)
    text = bytes(buffer)[:length].decode("utf-16-le", "replace")
    return " ".join(text.replace("\0", "").split())


def placed(
    words: Sequence[Word], fields: Sequence[Field], rotation: int
) -> tuple[list[Word], list[Field]]:
    """Return words with the fields among them, each behind what stands before it on its line.

    Also return the fields that have no word beside them.
    """
    if len(words) * len(fields) > _MAX_PAIRS:
        return list(words), list(fields)
    out = list(words)
    alone: list[Field] = []
    for field in sorted(fields, key=lambda field: field.box[0]):
        left, bottom, right, top = turned(field.box, rotation)
        middle = (bottom + top) / 2
        beside = [
            word
            for word in out
            if abs(word.middle - middle) < max((top - bottom) / 2, word.size / 2)
        ]
        before = [word for word in beside if word.left <= left and word.right <= right]
        after = [word for word in beside if word.left > left]
        near_before = max(before, key=lambda word: word.right, default=None)
        near_after = min(after, key=lambda word: word.left, default=None)
        if near_before and left - near_before.right > _NEAREST:
            near_before = None
        if near_after and near_after.left - right > _NEAREST:
            near_after = None
        near = near_before or near_after
        if near is None:
            alone.append(field)
            continue
        place = out.index(near) + (near is near_before)
        wide = min(right - left, _WIDTH * near.size * len(field.text))
        word = Word(field.text, left, left + wide, near.base, near.size, near.first, near.first)
        out.insert(place, word)
    return out, alone
