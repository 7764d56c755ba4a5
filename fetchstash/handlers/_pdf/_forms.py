"""Form fields of a PDF page, as words at their places, and notes written onto it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
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
# A label above or below a field begins where the field does, and stands this near, in sizes. It is
# nearer than what stands on the line of the field so far before it, in points.
_ALIGNED, _CLOSE, _NEAR_ABOVE = 1.0, 1.5, 30.0


class Field(NamedTuple):
    """A field: its name, its text, and where it stands."""

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
    """Yield the fields of a page that are not empty: texts, ticks and choices."""
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
    """Return the text of a field: its value, ``[x]``, ``( )``, the choice; "" for a button."""
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
    """Return words with the fields among them, each behind its label.

    That stands before or behind a field on its line, else above or below it. Also return the fields
    that have no label.
    """
    if len(words) * len(fields) > _MAX_PAIRS:
        return list(words), list(fields)
    out = list(words)
    alone: list[Field] = []
    for field in sorted(fields, key=lambda field: field.box[0]):
        box = turned(field.box, rotation)
        left, _, right, _ = box
        before, after = _beside(out, box)
        is_tick = field.text[0] in "[("
        label = _above(words, box)
        if (is_tick and (before or after)) or (before and left - before.right < _NEAR_ABOVE):
            label = None
        elif not before and not after:
            label = label or _below(words, box)
        near = label or before or after
        if near is None:
            alone.append(field)
            continue
        wide = min(right - left, _WIDTH * near.size * len(field.text))
        if near is label:  # the value goes on the label's line
            left = near.right + near.size / 4
            wide = min(wide, max(right - left, near.size))
            if near.text[-1].isalnum() and not is_tick:
                near.text += ":"
        place = out.index(near) + (near is not after)
        word = Word(field.text, left, left + wide, near.base, near.size, near.first, near.first)
        out.insert(place, word)
    return out, alone


def _beside(words: Iterable[Word], box: Box) -> tuple[Word | None, Word | None]:
    """Return the nearest words before and behind a field on its line."""
    left, bottom, right, top = box
    middle = (bottom + top) / 2
    beside = [
        word for word in words if abs(word.middle - middle) < max((top - bottom) / 2, word.size / 2)
    ]
    before = max(
        (word for word in beside if word.left <= left and word.right <= right),
        key=lambda word: word.right,
        default=None,
    )
    after = min(
        (word for word in beside if word.left > left), key=lambda word: word.left, default=None
    )
    if before and left - before.right > _NEAREST:
        before = None
    if after and after.left - right > _NEAREST:
        after = None
    return before, after


def _above(words: Iterable[Word], box: Box) -> Word | None:
    """Return the last word of the label that begins above a field."""
    left, _, right, top = box
    line = [word for word in words if -0.4 * word.size < word.base - top < _CLOSE * word.size]
    return _last_of_label(line, left, right)


def _below(words: Iterable[Word], box: Box) -> Word | None:
    """Return the last word of the label that begins below a field, as below a signature."""
    left, bottom, right, _ = box
    line = [word for word in words if -0.4 * word.size < bottom - word.top < _CLOSE * word.size]
    return _last_of_label(line, left, right)


def _last_of_label(line: Sequence[Word], left: float, right: float) -> Word | None:
    last: Word | None = None
    for word in sorted(line, key=lambda word: word.left):
        if last is None:
            if abs(word.left - left) < _ALIGNED * word.size:
                last = word
        elif abs(word.base - last.base) < 1 and word.left < right:
            if word.left - last.right > word.size:
                break
            last = word
    return last
