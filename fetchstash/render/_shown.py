"""One way in for every value: the view of it, and its text."""

from fetchstash.errors import BadArgument, FetchstashError
from fetchstash.render._fetched import fetched, fetched_several
from fetchstash.render._info import info, listing, picture
from fetchstash.render._matches import grep, search
from fetchstash.render._read import read
from fetchstash.render._view import Host, View, error_view
from fetchstash.stash import Failure, Listing, Matches, Passages, Picture, Slice, StoredDocument
from fetchstash.store import Facts

Value = (
    StoredDocument
    | tuple[StoredDocument | Failure, ...]
    | Slice
    | Matches
    | Passages
    | Picture
    | Listing
    | Facts
    | FetchstashError
)
"""What a Stash returns or raises, and a face shows."""


def view_of(host: Host, value: Value, max_chars: int | None = None) -> View:
    """Return the view of a value for ``host``. Raises BadArgument for too small a limit."""
    match value:
        case StoredDocument():
            return fetched(host, value, max_chars)
        case tuple():
            return fetched_several(host, value, max_chars)
        case Slice():
            return read(host, value, max_chars)
        case Matches():
            return grep(host, value, max_chars)
        case Passages():
            return search(host, value, max_chars)
        case Picture():
            return picture(host, value)
        case Listing():
            return listing(host, value)
        case Facts():
            return info(host, value)
        case FetchstashError():
            return error_view(host.shown(value), host.word)
        case _:  # a program without types
            what = f"A {type(value).__name__} is no value that a stash returns."
            raise BadArgument(what, "Hand in what its methods return: an Artifact, a Slice …")


def as_shown(value: Value, max_chars: int | None = None) -> str:
    """Return what a model is shown of a value: facts, notices, the fenced text and next calls.

    ``max_chars`` bounds the text as the tools' maxChars does. Facts are shown as artifact_info
    shows them.
    """
    return view_of(Host(), value, max_chars).text
