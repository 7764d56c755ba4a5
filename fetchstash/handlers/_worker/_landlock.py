"""Landlock: a process gives up the file system, the network and other processes for good.

Needs no privilege. Called through ctypes, because no library that is kept wraps it. The kernel's
interface is documented in landlock(7) and in the kernel's Documentation/userspace-api/landlock.rst.
"""

import ctypes
import os
import signal
import stat
import sys
from collections.abc import Iterable
from ctypes import CDLL, byref, c_int32, c_long, c_uint32, c_uint64, get_errno, sizeof
from pathlib import Path

# System calls 444 to 446 have the same number on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_GET_VERSION = 1
_PATH_BENEATH = 1
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38

_CAPABILITY_VERSION = 0x20080522
_KEPT_CAPABILITIES = 0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH

# Rights to files, by the version of the interface that introduced them.
_WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(1, 6))
_MAKE_DIR, _MAKE_REG, _TRUNCATE = 1 << 7, 1 << 8, 1 << 14
_HANDLED = {1: (1 << 13) - 1, 2: 1 << 13, 3: _TRUNCATE, 5: 1 << 15}
_TCP = 0b11  # bind and connect, from version 4
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11  # from version 6

READ = _READ_FILE | _READ_DIR
CHANGE = READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _TRUNCATE
_OF_A_FILE = _READ_FILE | _WRITE_FILE | _TRUNCATE

libc = CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", c_uint64), ("network", c_uint64), ("scopes", c_uint64))


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", c_uint64), ("folder", c_int32))


def version() -> int:
    """Return the version of the kernel's interface, 0 if it has none or it is turned off."""
    return max(_call(_CREATE_RULESET, None, 0, _GET_VERSION), 0)


def check() -> None:
    """Raise OSError if the kernel has no Landlock, or it is turned off."""
    _checked(_call(_CREATE_RULESET, None, 0, _GET_VERSION))


def restrict(rules: Iterable[tuple[Path, int]]) -> None:
    """Give up every right to files but these (path and rights), TCP, and signals to others.

    Paths that are missing are passed over. Raises OSError where the kernel refuses.
    """
    known = version()
    handled = sum(rights for since, rights in _HANDLED.items() if since <= known)
    ruleset = _Ruleset(
        handled, _TCP if known >= 4 else 0, _ABSTRACT_SOCKETS_AND_SIGNALS if known >= 6 else 0
    )
    size = 8 if known < 4 else 16 if known < 6 else sizeof(_Ruleset)
    descriptor = _checked(_call(_CREATE_RULESET, byref(ruleset), size, 0))
    try:
        for path, rights in rules:
            _allow(descriptor, path, rights & handled)
        _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(_call(_RESTRICT_SELF, descriptor, 0))
    finally:
        os.close(descriptor)


def end_with(parent: int) -> None:
    """Have the kernel kill this process when the process ``parent`` ends (0: with any).

    The signal is that of the parent's thread which started this process (PR_SET_PDEATHSIG(2const)):
    the thread of the event loop, which the workers belong to. A parent that is gone already sends
    none.
    """
    _checked(libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    if parent and os.getppid() != parent:
        sys.exit("The server has ended.")


def drop_capabilities() -> None:
    """Give up what root may do beyond reading files (capset(2)); other users have nothing of it.

    What is kept reads Python's folders where they are another user's, and Landlock bounds it.
    Raises OSError.
    """
    header = (c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    held = (c_uint32 * 6)()
    _checked(libc.capget(header, held))
    for number in range(6):
        held[number] &= _KEPT_CAPABILITIES if number < 3 else 0
    _checked(libc.capset(header, held))


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(folder).st_mode):
            rights &= _OF_A_FILE
        _checked(_call(_ADD_RULE, ruleset, _PATH_BENEATH, byref(_Rule(rights, folder)), 0))
    finally:
        os.close(folder)


def _call(number: int, *arguments: object) -> int:
    return int(libc.syscall(c_long(number), *arguments))


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(get_errno(), os.strerror(get_errno()))
    return result
