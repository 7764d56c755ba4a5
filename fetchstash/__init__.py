"""fetchstash lets an agent reach any web page or document without flooding its context.

    async with fetchstash.open_stash() as stash:
        report = await stash.fetch("https://example.org/report.pdf")
        print(report.preview, await report.grep("torque"))

docs/library.md has more. Names are imported when they are first used. Content flows one way, and
each room knows only its own business:

    URL --fetch--> bytes --handlers--> text and facts --store--> artifact --render--> a bounded view

    errors      the error tree: a stable code each, and what to do next as data
    config      settings, read once and handed down as each room's limits
    text        cutting, windows and bounds of a text
    hygiene     invisible and deceptive characters out of any text that reaches a model
    tokens      token counts and estimates
    telemetry   spans, counters and the event log
    ranges      where the parts of a text stand: pages, tables, headings
    facts       what a handler learns of a document
    fetch       URL to bytes, safely
    handlers    bytes to text and facts
    store       artifacts, kept and read back
    stash       Stash and Artifact, where fetch, handlers and store meet
    files       read_file, for agents that have the file already
    results     @context_result and store_result, for any tool
    render      the only place where a result is framed: notices, fences, next calls
    tools       the tools without a protocol: their table, arguments and answers
    server      the MCP face
    cli         the terminal face
    demo        a small site, and the real server driven through MCP
    client      the agent's side: overflow, rewrite, retry, compaction

docs/how-it-works.md walks through it.
"""

from typing import TYPE_CHECKING

from fetchstash._lazy import lazy_names

if TYPE_CHECKING:
    from fetchstash.config import Settings
    from fetchstash.errors import (
        BadArgument,
        BadPattern,
        Busy,
        ExpiredRef,
        FetchFailed,
        FetchstashError,
        HttpError,
        Internal,
        NoText,
        OutOfRange,
        OverQuota,
        Refused,
        RobotsRefused,
        ServerFailed,
        StoreError,
        TimedOut,
        TooLarge,
        UnknownRef,
    )
    from fetchstash.files import read_file
    from fetchstash.render import as_shown
    from fetchstash.results import context_result, store_result
    from fetchstash.stash import (
        Artifact,
        Failure,
        Listing,
        Match,
        Matches,
        Passages,
        Picture,
        Slice,
        Stash,
        open_stash,
        open_stash_sync,
    )
    from fetchstash.tools import tool_functions

__version__ = "0.1.0"

__all__ = [
    "Artifact",
    "BadArgument",
    "BadPattern",
    "Busy",
    "ExpiredRef",
    "Failure",
    "FetchFailed",
    "FetchstashError",
    "HttpError",
    "Internal",
    "Listing",
    "Match",
    "Matches",
    "NoText",
    "OutOfRange",
    "OverQuota",
    "Passages",
    "Picture",
    "Refused",
    "RobotsRefused",
    "ServerFailed",
    "Settings",
    "Slice",
    "Stash",
    "StoreError",
    "TimedOut",
    "TooLarge",
    "UnknownRef",
    "as_shown",
    "context_result",
    "open_stash",
    "open_stash_sync",
    "read_file",
    "store_result",
    "tool_functions",
]

_MODULES = {
    "config": "Settings",
    "errors": (
        "BadArgument BadPattern Busy ExpiredRef FetchFailed FetchstashError HttpError Internal "
        "NoText OutOfRange OverQuota Refused RobotsRefused ServerFailed StoreError TimedOut "
        "TooLarge UnknownRef"
    ),
    "files": "read_file",
    "render": "as_shown",
    "results": "context_result store_result",
    "stash": (
        "Artifact Failure Listing Match Matches Passages Picture Slice Stash open_stash "
        "open_stash_sync"
    ),
    "tools": "tool_functions",
}
__getattr__ = lazy_names(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
