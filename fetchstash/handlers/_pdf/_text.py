"""Cleaning the text of a PDF page: line ends, broken words, ligatures. Pure functions."""

import re

# pdfium replaces a hyphen and line end within a word by one of these.
_MARKED_BREAK = re.compile(r"[\ufffe\x02]([^\s\ufffe\x02]*)[ \t]*")
# A hyphen and a line end that pdfium leaves: the word breaks between two lower-case letters.
_PLAIN_BREAK = re.compile(
    r"(?:-(?<=[a-zß-ÿ]-)\n(?=[a-zß-ÿ])|\u00ad(?<=[^\W\d_]\u00ad)\n)(\S*)[ \t]*"
)
_EMPTY_LINES = re.compile(r"\n{3,}")
# Latin ligatures of the block Alphabetic Presentation Forms, which nobody searches for.
_LIGATURES = {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}


def mend(text: str) -> str:
    """Return a page's text with line feeds, joined words, plain letters and no outer blank lines.

    Most pages need little of this, and a check costs a tenth of the work.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\ufffe" in text or "\x02" in text:
        text = _MARKED_BREAK.sub(_join_marked, text)
    if "-\n" in text or "\u00ad" in text:
        text = _PLAIN_BREAK.sub(lambda match: f"{match[1]}\n", text)
    for ligature, letters in _LIGATURES.items():
        if ligature in text:
            text = text.replace(ligature, letters)
    text = "\n".join([line.rstrip() for line in text.split("\n")])
    if "\n\n\n" in text:
        text = _EMPTY_LINES.sub("\n\n", text)
    return text.strip("\n")


def _join_marked(match: re.Match[str]) -> str:
    """Return the rest of a broken word, then the line end; keep the hyphen of Jean-Paul."""
    rest = match[1]
    hyphen = "" if rest[:1].islower() else "-"
    return f"{hyphen}{rest}\n"
