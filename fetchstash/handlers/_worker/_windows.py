"""Windows: a process joins a job that may start no other, and gives up writing above low integrity.

A process cannot take a restricted token for itself once it runs, so reading stays as it was; what
is missing is reported.
"""

import ctypes
import sys
from typing import Any

if sys.platform == "win32":
    from ctypes import wintypes

    _EXTENDED_LIMITS, _UI_RESTRICTIONS, _INTEGRITY_LEVEL = 9, 4, 25
    _ACTIVE_PROCESSES, _DIE_ON_EXCEPTION = 0x8, 0x400
    _ADJUST_DEFAULT_AND_QUERY = 0x80 | 0x8
    _GROUP_INTEGRITY = 0x20
    LOW_INTEGRITY = "S-1-16-4096"

    class _BasicLimits(ctypes.Structure):
        _fields_ = (
            ("process_time", ctypes.c_int64),
            ("job_time", ctypes.c_int64),
            ("flags", wintypes.DWORD),
            ("smallest_set", ctypes.c_size_t),
            ("largest_set", ctypes.c_size_t),
            ("active_processes", wintypes.DWORD),
            ("affinity", ctypes.c_size_t),
            ("priority", wintypes.DWORD),
            ("scheduling", wintypes.DWORD),
        )

    class _Limits(ctypes.Structure):
        _fields_ = (
            ("basic", _BasicLimits),
            ("io", ctypes.c_uint64 * 6),
            ("memory", ctypes.c_size_t * 4),
        )

    class _Label(ctypes.Structure):
        _fields_ = (("sid", ctypes.c_void_p), ("attributes", wintypes.DWORD))

    def restrict() -> list[str]:
        """Join the job and lower the integrity; return what could not be done, as sentences."""
        missing = ["a reader may read any file of this user: Windows has no rule for it"]
        kernel: Any = ctypes.WinDLL("kernel32", use_last_error=True)
        security: Any = ctypes.WinDLL("advapi32", use_last_error=True)
        kernel.GetCurrentProcess.restype = wintypes.HANDLE
        kernel.CreateJobObjectW.restype = wintypes.HANDLE
        process = wintypes.HANDLE(kernel.GetCurrentProcess())
        if not _join_job(kernel, process):
            missing.append("a reader may start programs: no job object")
        if not _lower_integrity(kernel, security, process):
            missing.append("a reader may write files of this user: its integrity stays")
        return missing

    def _join_job(kernel: Any, process: wintypes.HANDLE) -> bool:
        job = wintypes.HANDLE(kernel.CreateJobObjectW(None, None))
        limits = _Limits()
        limits.basic.flags = _ACTIVE_PROCESSES | _DIE_ON_EXCEPTION
        limits.basic.active_processes = 1
        ui = wintypes.DWORD(0xFF)
        for kind, value in ((_EXTENDED_LIMITS, limits), (_UI_RESTRICTIONS, ui)):
            if not kernel.SetInformationJobObject(
                job, kind, ctypes.byref(value), ctypes.sizeof(value)
            ):
                return False
        return bool(kernel.AssignProcessToJobObject(job, process))

    def _lower_integrity(kernel: Any, security: Any, process: wintypes.HANDLE) -> bool:
        token, sid = wintypes.HANDLE(), ctypes.c_void_p()
        opened = security.OpenProcessToken(process, _ADJUST_DEFAULT_AND_QUERY, ctypes.byref(token))
        if not opened or not security.ConvertStringSidToSidW(LOW_INTEGRITY, ctypes.byref(sid)):
            return False
        label = _Label(sid, _GROUP_INTEGRITY)
        size = ctypes.sizeof(label) + security.GetLengthSid(sid)
        lowered = security.SetTokenInformation(token, _INTEGRITY_LEVEL, ctypes.byref(label), size)
        kernel.LocalFree(sid)
        kernel.CloseHandle(token)
        return bool(lowered)
