"""Sentences of errors that several readers use."""

from fetchstash.text import clip

_MAX_QUOTED = 60

KEPT = "Its bytes are kept."
FETCH_AGAIN = "Fetch it again."
READ_LINES = "Slice its text by lines, or grep it."
"""The next step for a document without parts by path."""

ENCRYPTED = "the document is encrypted and opens only with its password"
EMPTY_FILE = "the file is empty"
NO_DOCUMENT = "the package holds no document"
DAMAGED_ARCHIVE = "the archive is damaged or cut short"
OUTSIDE = "its name leads out of the archive"
LINK = "it is a link"
FOLDER = "it is a folder"


def quoted(argument: str) -> str:
    """Return a name or a path that the caller gave, for an error: quoted, within 60 characters."""
    return repr(clip(argument, _MAX_QUOTED))
