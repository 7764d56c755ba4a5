"""How the text of a PDF page reads: line ends, words broken at line ends, ligatures. Pure functions."""

import re

# pdfium sets one of these two for a hyphen that breaks a word at the end of a line, and drops the line end itself.
_MARKED_BREAK = re.compile(r"[\ufffe\x02]([^\s\ufffe\x02]*)[ \t]*")
# Where the library leaves the hyphen and the line end as they are: a word breaks between two lower-case letters.
_PLAIN_BREAK = re.compile(r"(?<=[^\W\d_])(?:\u00ad|(?<=[a-zß-ÿ])-(?=\n[a-zß-ÿ]))\n(\S*)[ \t]*")
_EMPTY_LINES = re.compile(r"\n{3,}")
# Latin ligatures of the block Alphabetic Presentation Forms: one glyph for what everybody searches as letters.
_LIGATURE = re.compile("[ﬀ-ﬆ]")
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})


def mend(text: str) -> str:
    """Return a page's text with lines ended by a line feed, whole words, plain letters for ligatures, and no outer blank lines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\ufffe" in text or "\x02" in text:
        text = _MARKED_BREAK.sub(_join_marked, text)
    if "-\n" in text or "\u00ad\n" in text:
        text = _PLAIN_BREAK.sub(lambda found: f"{found[1]}\n", text)
    if _LIGATURE.search(text):  # to look is ten times faster than to translate
        text = text.translate(_LIGATURES)
    lines = [line.rstrip() for line in text.split("\n")]
    return _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip("\n")


def _join_marked(found: re.Match[str]) -> str:
    """End the broken word, and only then the line. A hyphen before anything but a small letter was part of the word: Jean-Paul."""
    rest = found[1]
    hyphen = "" if rest[:1].islower() else "-"
    return f"{hyphen}{rest}\n"
