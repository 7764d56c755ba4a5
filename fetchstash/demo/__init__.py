"""The demonstration: a small site on loopback, and the real server driven through MCP. No network, no key."""

from fetchstash.demo._screen import Write

__all__ = ["run"]


def run(write: Write | None = None) -> int:
    """Show, call by call, what a model sees and how many tokens each call costs; return the exit code.

    Lines go to ``write``, else to stdout. At the end, also after Ctrl-C (KeyboardInterrupt), the
    server and the site are stopped and what they kept is removed. Raises Internal where the command
    ``fetchstash`` is not installed.
    """
    import anyio  # noqa: PLC0415 - the tests' and the bench's use of the site need none of this

    from fetchstash.demo._screen import Screen  # noqa: PLC0415
    from fetchstash.demo._tour import tour  # noqa: PLC0415

    return 0 if anyio.run(tour, Screen(write)) else 1
