"""The memory of a server's process: it holds what requests are signed with."""

import ctypes
import sys

_PR_SET_DUMPABLE = 4


def hide_memory() -> None:
    """Keep other processes of this user from tracing this one (PR_SET_DUMPABLE, prctl(2)).

    On Linux alone; then /proc hides its environment, its memory and its descriptors, too.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
