"""Windows: a worker starts itself again with a restricted token, in a job of its own.

A process cannot restrict its own token once it runs. So the process that the server starts makes a
restricted copy of its token at low integrity, starts the worker with it in a job that ends with
this process, and waits. The worker has no privileges, no administrator's rights, starts no program
and writes to its room alone. What it may read stays as it was, and is reported.

Constants and structures are those of the Windows SDK (winnt.h, winbase.h) on 64 bits.
"""

import ctypes
import errno
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import (
    byref,
    c_int64,
    c_size_t,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
    c_wchar_p,
    sizeof,
)
from pathlib import Path
from typing import Any

RESTRICTED = "--restricted"
"""Marks the command line of a worker that has the restricted token."""

LOW_INTEGRITY = "S-1-16-4096"
LOW_LABEL = "S:(ML;OICI;NW;;;LW)"
"""Files of this folder may be written at low integrity, and so may those that are made in it."""

_ASSIGN, _DUPLICATE, _QUERY, _ADJUST_DEFAULT = 0x1, 0x2, 0x8, 0x80
_DISABLE_MAX_PRIVILEGE, _LUA_TOKEN = 0x1, 0x4
_INTEGRITY_LEVEL, _GROUP_INTEGRITY = 25, 0x20
_EXTENDED_LIMITS, _UI_RESTRICTIONS, _ALL_UI = 9, 4, 0xFF
_ACTIVE_PROCESSES, _DIE_ON_EXCEPTION, _KILL_ON_CLOSE = 0x8, 0x400, 0x2000
_SUSPENDED, _NO_WINDOW, _USE_HANDLES, _INHERIT = 0x4, 0x08000000, 0x100, 0x1
_FILE_OBJECT, _LABEL_INFORMATION, _REVISION = 1, 0x10, 1
_INFINITE = 0xFFFFFFFF

Load = Callable[[str], Any]


def _structure(**fields: Any) -> Any:
    return type("Structure", (ctypes.Structure,), {"_fields_": [*fields.items()]})


# JOBOBJECT_BASIC_LIMIT_INFORMATION
BasicLimits = _structure(
    process_time=c_int64,
    job_time=c_int64,
    flags=c_uint32,
    smallest_set=c_size_t,
    largest_set=c_size_t,
    active_processes=c_uint32,
    affinity=c_size_t,
    priority=c_uint32,
    scheduling=c_uint32,
)
# JOBOBJECT_EXTENDED_LIMIT_INFORMATION
ExtendedLimits = _structure(basic=BasicLimits, io=c_uint64 * 6, memory=c_size_t * 4)
# TOKEN_MANDATORY_LABEL
Label = _structure(sid=c_void_p, attributes=c_uint32)
# STARTUPINFOW
StartupInfo = _structure(
    size=c_uint32,
    reserved=c_void_p,
    desktop=c_wchar_p,
    title=c_wchar_p,
    geometry=c_uint32 * 7,
    flags=c_uint32,
    show=c_uint16,
    reserved_size=c_uint16,
    reserved_bytes=c_void_p,
    handles=c_void_p * 3,
)
# PROCESS_INFORMATION
ProcessInformation = _structure(
    process=c_void_p, thread=c_void_p, process_id=c_uint32, thread_id=c_uint32
)


def missing(arguments: Sequence[str]) -> list[str]:
    """Return the rights that this worker keeps, as sentences without their full stop."""
    lacks = ["a reader may read any file of this user: Windows has no rule for it"]
    if RESTRICTED not in arguments:
        lacks.append("a reader may start programs and write files: no restricted token")
    return lacks


def restricted(arguments: list[str]) -> list[str]:
    """Return the arguments of a worker that has the restricted token, or cannot have it.

    Any other process starts one that has it, and ends with it.
    """
    if RESTRICTED in arguments:
        return [argument for argument in arguments if argument != RESTRICTED]
    with suppress(OSError):  # this process is the worker then, and reports what it lacks
        os._exit(run_restricted(arguments, _load))
    return arguments


def run_restricted(arguments: Sequence[str], load: Load) -> int:
    """Run the worker with a restricted token; return its exit status.

    The first of its arguments is its room. Raises OSError where Windows refuses.
    """
    kernel, security = load("kernel32"), load("advapi32")
    kernel.GetCurrentProcess.restype = c_void_p
    kernel.CreateJobObjectW.restype = c_void_p
    kernel.GetStdHandle.restype = c_void_p
    token = _restricted_token(kernel, security)
    _let_write(security, kernel, Path(arguments[0]) / "out")
    job = _job(kernel)
    command = [sys.executable, "-P", "-m", "fetchstash.handlers._worker._child", RESTRICTED]
    started = _start(kernel, security, token, subprocess.list2cmdline([*command, *arguments]))
    try:
        _check(kernel.AssignProcessToJobObject(job, c_void_p(started.process)))
        if kernel.ResumeThread(c_void_p(started.thread)) == _INFINITE:
            _check(0)
    except OSError:
        kernel.TerminateProcess(c_void_p(started.process), c_uint32(1))
        raise
    kernel.WaitForSingleObject(c_void_p(started.process), c_uint32(_INFINITE))
    status = c_uint32()
    _check(kernel.GetExitCodeProcess(c_void_p(started.process), byref(status)))
    return status.value


def _restricted_token(kernel: Any, security: Any) -> c_void_p:
    """Return a copy of this process's token: no privileges, no administrator, low integrity."""
    own, token, sid = c_void_p(), c_void_p(), c_void_p()
    process = c_void_p(kernel.GetCurrentProcess())
    access = c_uint32(_ASSIGN | _DUPLICATE | _QUERY | _ADJUST_DEFAULT)
    _check(security.OpenProcessToken(process, access, byref(own)))
    flags, none = c_uint32(_DISABLE_MAX_PRIVILEGE | _LUA_TOKEN), c_uint32(0)
    # SIDs to disable, privileges to delete, SIDs to restrict: none beyond what the flags say.
    lists = (none, None) * 3
    _check(security.CreateRestrictedToken(own, flags, *lists, byref(token)))
    _check(security.ConvertStringSidToSidW(LOW_INTEGRITY, byref(sid)))
    label = Label(sid, _GROUP_INTEGRITY)
    size = c_uint32(sizeof(label) + security.GetLengthSid(sid))
    level = c_uint32(_INTEGRITY_LEVEL)
    _check(security.SetTokenInformation(token, level, byref(label), size))
    kernel.LocalFree(sid)
    kernel.CloseHandle(own)
    return token


def _let_write(security: Any, kernel: Any, folder: Path) -> None:
    """Let a process of low integrity write in ``folder``."""
    descriptor, acl = c_void_p(), c_void_p()
    present, defaulted = c_uint32(), c_uint32()
    convert = security.ConvertStringSecurityDescriptorToSecurityDescriptorW
    _check(convert(LOW_LABEL, c_uint32(_REVISION), byref(descriptor), None))
    read = security.GetSecurityDescriptorSacl
    _check(read(descriptor, byref(present), byref(acl), byref(defaulted)))
    kind, what = c_uint32(_FILE_OBJECT), c_uint32(_LABEL_INFORMATION)
    failed = security.SetNamedSecurityInfoW(str(folder), kind, what, None, None, None, acl)
    _check(not failed)  # unlike the others it returns an error, 0 for none
    kernel.LocalFree(descriptor)


def _job(kernel: Any) -> c_void_p:
    """Return a job of one process, which ends with the last handle to it: this process's."""
    job = c_void_p(kernel.CreateJobObjectW(None, None))
    _check(job.value)
    limits = ExtendedLimits()
    limits.basic.flags = _ACTIVE_PROCESSES | _DIE_ON_EXCEPTION | _KILL_ON_CLOSE
    limits.basic.active_processes = 1
    for kind, value in ((_EXTENDED_LIMITS, limits), (_UI_RESTRICTIONS, c_uint32(_ALL_UI))):
        size = c_uint32(sizeof(value))
        _check(kernel.SetInformationJobObject(job, c_uint32(kind), byref(value), size))
    return job


def _start(kernel: Any, security: Any, token: c_void_p, command: str) -> Any:
    """Start a process with this token and our standard streams, not running yet."""
    startup, started = StartupInfo(), ProcessInformation()
    startup.size, startup.flags = sizeof(startup), _USE_HANDLES
    for place, number in enumerate((-10, -11, -12)):  # input, output, error
        handle = kernel.GetStdHandle(c_uint32(number & 0xFFFFFFFF))
        inherit = c_uint32(_INHERIT)
        kernel.SetHandleInformation(c_void_p(handle), inherit, inherit)
        startup.handles[place] = handle
    line = ctypes.create_unicode_buffer(command)  # CreateProcess writes into it
    flags = c_uint32(_SUSPENDED | _NO_WINDOW)
    _check(
        security.CreateProcessAsUserW(
            token,
            None,
            line,
            None,
            None,
            c_uint32(1),
            flags,
            None,
            None,
            byref(startup),
            byref(started),
        )
    )
    return started


def _check(worked: Any) -> None:
    if not worked:
        raise OSError(errno.EPERM, "Windows refuses to restrict a worker")


def _load(name: str) -> Any:
    if sys.platform != "win32":
        raise OSError(errno.ENOSYS, "this is not Windows")
    return ctypes.WinDLL(name)
