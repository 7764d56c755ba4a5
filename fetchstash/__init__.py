"""fetchstash lets an agent reach any web page or document without flooding its context.

Content flows one way, and each room knows only its own business:

    URL --fetch--> bytes on disk --handlers--> text and facts --store--> artifact --render--> at most N characters

    errors      the error tree, each error with a stable code and what to do next
    config      settings, read once and handed down as each room's limits
    text        cutting, windows and bounds of a text
    render      the only place where a result is framed: previews, notices, fences, next calls
    hygiene     invisible and deceptive characters out of any text that reaches a model
    tokens      token counts and estimates
    telemetry   spans, counters and the event log
    ranges      where the parts of a text stand: pages, tables, headings
    stash       Stash, where fetch, handlers and store meet
    files       read_file, for agents that have the file already
    results     @context_result and store_result, for any tool
    fetch       URL to bytes, safely
    handlers    bytes to text and facts
    store       artifacts, kept and read back
    client      the agent's side: overflow, rewrite, retry, compaction
    server      the MCP face of Stash
    cli         the terminal face of Stash
    demo        a small site, and the real server driven through MCP

docs/how-it-works.md walks through it.
"""

__version__ = "0.1.0"
