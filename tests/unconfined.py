"""Start a program on a kernel that has no Landlock, as far as the program can see.

A seccomp filter answers Landlock's three system calls as an older kernel does.
"""

import ctypes
import os
import struct
import sys


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def without_landlock() -> None:
    """Give Landlock up for this process and all that it starts."""
    # Load the number; 444 to 446 fail with ENOSYS (38).
    code = (
        (0x20, 0, 0, 0),
        (0x35, 0, 2, 444),
        (0x25, 1, 0, 446),
        (6, 0, 0, 0x50026),
        (6, 0, 0, 0x7FFF0000),
    )
    packed = b"".join(struct.pack("<HBBI", *instruction) for instruction in code)
    libc = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(code), packed)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "no seccomp")


if __name__ == "__main__":
    without_landlock()
    os.execv(sys.argv[1], sys.argv[1:])
