"""What can go wrong, for a user, a model, a server or a file: each with a stable code and what to do next.

FetchstashError
    Refused           refused        an address, port, scheme or domain that policy forbids
    RobotsRefused     robots         robots.txt says no
    FetchFailed       fetch_failed   no answer, or a broken one
    HttpError         http_error     the server answered with 4xx or 5xx
    TimedOut          timeout        the deadline passed
    TooLarge          too_large      more than a limit allows
    UnknownRef        unknown_ref    no such artifact
    ExpiredRef        expired_ref    an artifact that was here and was cleaned up
    NoText            no_text        an artifact without text was asked for text
    OutOfRange        out_of_range   a part that is not there
    BadArgument       bad_argument   a call, setting or file that is not as it must be
    BadPattern        bad_pattern    a pattern that RE2 does not take
    Busy              busy           somebody else holds what is needed
    StoreError        store_error    the disk or the catalogue failed
    Internal          internal       a fault of fetchstash itself

Rooms raise these and nothing else across their walls. A face shows ``line()`` and never a
traceback.
"""

from typing import Any, ClassVar


class FetchstashError(Exception):
    """Base of all: ``what`` happened and what to do ``next``, each a plain sentence with its full stop.

    ``details`` are facts for ``_meta`` and ``--json`` (a status, seconds to wait, an excerpt),
    never for the line.
    """

    code: ClassVar[str] = "internal"

    def __init__(self, what: str, next_step: str, **details: Any) -> None:
        super().__init__(what, next_step)
        self.what = what
        self.next_step = next_step
        self.details = details

    def line(self) -> str:
        """Return the one line that a user or a model is shown: ``[code] what happened. What to do next.``."""
        return f"[{self.code}] {self.what} {self.next_step}"

    def __str__(self) -> str:
        return self.line()


class Refused(FetchstashError):
    """An address, port, scheme or domain that policy forbids."""

    code = "refused"


class RobotsRefused(FetchstashError):
    """The site's robots.txt forbids this URL to us (RFC 9309)."""

    code = "robots"


class FetchFailed(FetchstashError):
    """No answer came, or one that is no HTTP."""

    code = "fetch_failed"


class HttpError(FetchstashError):
    """The server answered with 4xx or 5xx (RFC 9110, section 15)."""

    code = "http_error"


class TimedOut(FetchstashError):
    """The one deadline of a fetch passed before there was anything to keep."""

    code = "timeout"


class TooLarge(FetchstashError):
    """More than a limit allows."""

    code = "too_large"


class UnknownRef(FetchstashError):
    """There is no artifact of this reference or URL."""

    code = "unknown_ref"


class ExpiredRef(FetchstashError):
    """The artifact was here, and retention removed it."""

    code = "expired_ref"


class NoText(FetchstashError):
    """The artifact has no text: it is binary, or nothing could be extracted."""

    code = "no_text"


class OutOfRange(FetchstashError):
    """A line, page, row, character, heading, sheet, member or JSON value that is not there."""

    code = "out_of_range"


class BadArgument(FetchstashError):
    """An argument, setting or file that is not as it must be."""

    code = "bad_argument"


class BadPattern(FetchstashError):
    """A pattern that RE2 does not take."""

    code = "bad_pattern"


class Busy(FetchstashError):
    """Somebody else holds what is needed; the same call may go through later."""

    code = "busy"


class StoreError(FetchstashError):
    """The disk or the catalogue failed."""

    code = "store_error"


class Internal(FetchstashError):
    """A fault of fetchstash itself."""

    code = "internal"
