"""Take stdin and stdout for messages. Imports no SDK: the gateway starts before it is there."""

import os


def claim_streams() -> tuple[int, int]:
    """Return new descriptors of stdin and stdout.

    From now on stdin is empty, and what else is written to stdout goes to stderr: only JSON-RPC may
    reach the host. Both stay open until the process ends: a thread may still be reading.
    """
    streams = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return streams
