"""The demonstration: a small site on loopback, and the real server driven through MCP."""

from fetchstash.cli.demo._tour import Write

__all__ = ["run"]


def run(write: Write | None = None) -> int:
    """Show what a model sees of each call, and its tokens; return the exit code.

    Lines go to ``write``, else to stdout. At the end, also after Ctrl-C (KeyboardInterrupt), stops
    the server and the site and removes what they kept. Raises Internal if the command
    ``fetchstash`` is not installed.
    """
    import anyio  # noqa: PLC0415 - the site alone needs none of this

    from fetchstash.cli.demo._tour import Screen, tour  # noqa: PLC0415 - as above

    return 0 if anyio.run(tour, Screen(write)) else 1
