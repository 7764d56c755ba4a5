"""fetchstash lets an agent reach any web page or document without flooding its context.

    async with fetchstash.open_stash() as stash:
        report = await stash.fetch("https://example.org/report.pdf")
        print(report.preview, await report.grep("torque"))

docs/library.md has more. Names are imported when they are first used. Content flows one way, and
each room knows only its own business:

    URL --fetch--> bytes --handlers--> text and facts --store--> artifact --render--> a bounded view

    errors      the error tree: a stable code each, and what to do next as data
    system      the machine and Python: telemetry, processes, folders, imports
    text        of a text: cutting, windows, tokens, hygiene, and where its parts stand
    config      settings, read once and handed down as each room's limits
    fetch       URL to bytes, safely
    handlers    bytes to text and facts
    store       artifacts, kept and read back
    stash       Stash and Artifact, where fetch, handlers and store meet
    files       read_file, for agents that have the file already
    results     @context_result and store_result, for any tool
    render      the only place where a result is framed: notices, fences, next calls
    server      the MCP front end: the tools and their answers, and the view
    service     the MCP front end over HTTP, for a team
    gateway     other MCP servers behind the artifact tools
    cli         the terminal, with the hosts that it registers in and the demonstration
    client      the agent's side: overflow, rewrite, retry, compaction

docs/how-it-works.md walks through it.
"""

from typing import TYPE_CHECKING

from fetchstash.system import lazy_names

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
    from fetchstash.server.tools import tool_functions
    from fetchstash.stash import (
        Artifact,
        Deleted,
        Failure,
        Listing,
        Match,
        Matches,
        Origin,
        Passages,
        Picture,
        Slice,
        Stash,
        Trace,
        open_stash,
        open_stash_sync,
    )

__version__ = "1.0.0"

__all__ = [
    "Artifact",
    "BadArgument",
    "BadPattern",
    "Busy",
    "Deleted",
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
    "Origin",
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
    "Trace",
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
        "Artifact Deleted Failure Listing Match Matches Origin Passages Picture Slice Stash Trace "
        "open_stash open_stash_sync"
    ),
    "server.tools": "tool_functions",
}
__getattr__ = lazy_names(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
