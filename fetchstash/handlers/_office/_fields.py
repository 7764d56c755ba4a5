"""Fields of Word (ECMA-376-1, section 17.16): the text of each, its target, its form."""

import re
from dataclasses import dataclass, field

from fetchstash.handlers._symbols import seen

_HYPERLINK = re.compile(r"""\s*HYPERLINK\s+(?:["“]([^"”]*)["”]|([^\s"“\\]\S*))""", re.IGNORECASE)
_ANCHOR = re.compile(r"""\\l\s+["“]?([^"”\s]+)""", re.IGNORECASE)
_SYMBOL = re.compile(r"\s*SYMBOL\s+(0x[0-9a-f]{1,5}|\d{1,6})\b(.*)", re.IGNORECASE | re.DOTALL)
_FONT = re.compile(r"""\\f\s+(?:["“]([^"”]*)["”]|(\S+))""", re.IGNORECASE)
_EQUATION = re.compile(r"\s*EQ\s+(\S.*)", re.DOTALL)
# LibreOffice writes into RTF that there is a box, but not whether it is ticked.
_BOX = "[checkbox]"
_MAX_CODE = 4_000
_MAX_ENTRIES = 1_000
# What stands for the default where a person chose nothing ([MS-DOC], section 2.9.78).
CHOSE_NONE = 25


@dataclass(slots=True)
class Form:
    """A legacy form field (section 17.16.5.20 f.): a check box, or a list with its entries."""

    is_box: bool = False
    entries: list[str] = field(default_factory=list[str])
    default: int = 0
    chosen: int | None = None

    def text(self) -> str:
        """Return ``[x]`` or ``[ ]``, the chosen entry, or "" for a field of text."""
        chosen = self.default if self.chosen is None else self.chosen
        if self.is_box:
            return "[x]" if chosen else "[ ]"
        return self.entries[chosen] if 0 <= chosen < len(self.entries) else ""

    def add_entry(self, text: str) -> None:
        """Add an entry to the list."""
        if len(self.entries) < _MAX_ENTRIES:
            self.entries.append(text)


@dataclass(slots=True)
class Field:
    """An open field: its code, whether the result has begun, and the form that it is."""

    code: str = ""
    has_result: bool = False
    form: Form | None = None

    def add_code(self, text: str) -> None:
        """Add to the code. No honest one is longer than the limit."""
        if len(self.code) < _MAX_CODE:
            self.code += text

    def target(self) -> str:
        """Return the address of a link; "" for any other field and for a place in the document."""
        link = _HYPERLINK.match(self.code)
        address = (link[1] or link[2] or "").replace("\\\\", "\\").strip() if link else ""
        if not link or not address:
            return ""
        anchor = _ANCHOR.search(self.code, link.end())
        return "%20".join(address.split()) + (f"#{anchor[1]}" if anchor else "")

    def without_result(self) -> str:
        """Return the text of a field that stores no result: a form, a symbol, an equation."""
        if self.form and (self.form.is_box or self.form.entries):
            return self.form.text()
        if symbol := _SYMBOL.match(self.code):
            code = int(symbol[1], 0) if symbol[1][:2].lower() == "0x" else int(symbol[1])
            font = _FONT.search(symbol[2])
            name = (font[1] or font[2]) if font else ""
            in_range = 0x20 <= code < 0x110000 and not 0xD800 <= code < 0xE000
            return seen(chr(code), name) if in_range else ""
        if self.code.split(maxsplit=1)[:1] == ["FORMCHECKBOX"]:
            return _BOX
        equation = _EQUATION.match(self.code)
        return equation[1].strip() if equation else ""
