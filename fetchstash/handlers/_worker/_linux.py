"""Linux: a process gives up files, the network and other processes for good, without privilege.

Landlock (landlock(7), the kernel's Documentation/userspace-api/landlock.rst) refuses files, TCP and
signals. A seccomp filter, a classic BPF program (seccomp(2)), refuses with EPERM the calls that a
reader of documents never needs; a new process fails the same way, so that a library's abort still
ends as SIGABRT. Called through ctypes, because no library that is kept wraps them.
"""

import ctypes
import errno
import os
import platform
import signal
import stat
import struct
import sys
from collections.abc import Iterable
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

libc = ctypes.CDLL(None, use_errno=True)

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_CLONE_THREAD = 0x10000
_X32_CALL = 0x40000000

# BPF instructions: load a word, jump if equal, if at least, if any bit is set, return.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
# Offsets in struct seccomp_data; both architectures are little-endian.
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Numbers on x86_64 and on aarch64; None where the call is missing.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # network
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200),
    "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242),
    # programs and other processes
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "kcmp": (312, 272), "setpriority": (141, 140),
    "ioprio_set": (251, 30), "migrate_pages": (256, 238), "move_pages": (279, 239),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274), "process_mrelease": (448, 448),
    # memory and messages that processes share, by a number that can be guessed
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190),
    "semctl": (66, 191), "semop": (65, 193), "semtimedop": (220, 192), "msgget": (68, 186),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    # memory that no limit counts
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    # names of files that others make, which Landlock does not hide
    "inotify_init": (253, None), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    # what the machine or its user has only so many of: requests, watches, timers, locked pages
    "io_setup": (206, 0), "epoll_create": (213, None), "epoll_create1": (291, 20),
    "timer_create": (222, 107), "mlock": (149, 228), "mlock2": (325, 284), "mlockall": (151, 230),
    # a second name for a file that is open, by which a worker could write into it when it is stored
    "link": (86, None), "linkat": (265, 37),
    # attributes of files, which Landlock does not cover
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16), "setxattrat": (463, 463),
    "removexattrat": (466, 466), "getxattr": (191, 8), "lgetxattr": (192, 9),
    "fgetxattr": (193, 10), "getxattrat": (464, 464), "listxattr": (194, 11),
    "llistxattr": (195, 12), "flistxattr": (196, 13), "listxattrat": (465, 465),
    "file_getattr": (468, 468), "file_setattr": (469, 469), "truncate": (76, 45),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    # the kernel itself
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsmount": (432, 432), "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "fanotify_init": (300, 262),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "personality": (135, 92), "syslog": (103, 116), "init_module": (175, 105),
    "finit_module": (313, 273), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89),
    "delete_module": (176, 106), "iopl": (172, None), "ioperm": (173, None), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "adjtimex": (159, 171), "sethostname": (170, 161),
    "setdomainname": (171, 162), "vhangup": (153, 58), "fsconfig": (431, 431), "fspick": (433, 433),
    "statmount": (457, 457), "listmount": (458, 458),
    # the disk of everybody
    "sync": (162, 81), "syncfs": (306, 267),
}  # fmt: skip
_CLONE, _CLONE3 = (56, 220), (435, 435)
# Calls whose first argument is a process: allowed for this one alone, which prlimit64 may call 0.
# For kill(2) 0 is the process group, and so the server.
_ON_A_PROCESS = {"kill": (62, 129), "tgkill": (234, 131)}
_PRLIMIT = (302, 261)
# ioctl(2) sets flags of files that are open for reading: only what Python asks of a file is left
# (TCGETS, TIOCGWINSZ, FIONBIO, FIONREAD, FIONCLEX, FIOCLEX).
_IOCTL = (16, 29)
_IOCTL_REQUESTS = (0x5401, 0x5413, 0x5421, 0x541B, 0x5450, 0x5451)
# prctl(2) could keep this process alive when the server is gone: only names of threads and of
# memory are left (PR_SET_NAME, PR_GET_NAME, PR_SET_VMA).
_PRCTL = (157, 167)
_PRCTL_OPTIONS = (15, 16, 0x53564D41)
# fcntl(2) makes the kernel signal another process, holds up who opens the document, or takes the
# pages that a user has for pipes (F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY,
# F_SETPIPE_SZ).
_FCNTL = (72, 25)
_FCNTL_REFUSED = (8, 10, 15, 1024, 1026, 1031)
# Calls that are newer than this list are missing, as on an older kernel.
_FIRST_UNKNOWN = 470


class _Ruleset(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("files", "network", "scopes"))


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("folder", ctypes.c_int32))


def check_files() -> int:
    """Return the version of Landlock. Raises OSError if there is none, or it is turned off."""
    return _checked(_call(_CREATE_RULESET, None, 0, _GET_VERSION))


def restrict_files(rules: Iterable[tuple[Path, int]]) -> None:
    """Give up every right to files but these (path and rights), TCP, and signals to others.

    Paths that are missing are passed over. Raises OSError where the kernel refuses.
    """
    known = check_files()
    handled = sum(rights for since, rights in _HANDLED.items() if since <= known)
    ruleset = _Ruleset(
        handled, _TCP if known >= 4 else 0, _ABSTRACT_SOCKETS_AND_SIGNALS if known >= 6 else 0
    )
    size = 8 if known < 4 else 16 if known < 6 else ctypes.sizeof(_Ruleset)
    descriptor = _checked(_call(_CREATE_RULESET, ctypes.byref(ruleset), size, 0))
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
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    held = (ctypes.c_uint32 * 6)()
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
        _checked(_call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(_Rule(rights, folder)), 0))
    finally:
        os.close(folder)


def _call(number: int, *arguments: object) -> int:
    return int(libc.syscall(ctypes.c_long(number), *arguments))


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def check_calls() -> None:
    """Raise OSError if the kernel takes no filter: asked for none, it faults at the address."""
    if platform.machine() not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no filter for {platform.machine()}")
    libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, None, 0, 0)
    if ctypes.get_errno() != errno.EFAULT:
        raise OSError(ctypes.get_errno(), "the kernel refuses a seccomp filter")


def restrict_calls() -> None:
    """Give up the network and other processes for good. Raises OSError where the kernel refuses.

    Must run before the process has threads: a filter holds for the thread that sets it.
    """
    check_calls()
    code = _filter(os.getpid())
    program = _Program(len(code) // 8, code)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "the kernel refuses a seccomp filter")


def _filter(process: int) -> bytes:
    """Return the BPF program of this architecture, for the process of this id."""
    machine = platform.machine()
    column = list(_ARCHITECTURES).index(machine)
    refuse = [(_RETURN, 0, 0, _REFUSE | errno.EPERM)]
    code = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        *refuse,
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32_CALL),
        *refuse,
        (_AT_LEAST, 0, 1, _FIRST_UNKNOWN),
        (_RETURN, 0, 0, _REFUSE | errno.ENOSYS),
        # glibc falls back to clone, whose flags a filter can read.
        (_EQUAL, 0, 1, _CLONE3[column]),
        (_RETURN, 0, 0, _REFUSE | errno.ENOSYS),
        (_EQUAL, 0, 3, _CLONE[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 1, 0, _CLONE_THREAD),
        *refuse,
        (_LOAD, 0, 0, _NUMBER),
    ]
    # After clone's branch the number is loaded again: for a thread no number below matches.
    calls = [(numbers[column], process) for numbers in _ON_A_PROCESS.values()]
    for number, other_name in (*calls, (_PRLIMIT[column], 0)):
        code += [
            (_EQUAL, 0, 5, number),
            (_LOAD, 0, 0, _FIRST_ARGUMENT),
            (_EQUAL, 2, 0, process),
            (_EQUAL, 1, 0, other_name),
            *refuse,
            (_RETURN, 0, 0, _ALLOW),
        ]
    allow = [(_RETURN, 0, 0, _ALLOW)]
    for number, argument, values, (listed, others) in (
        (_IOCTL[column], _SECOND_ARGUMENT, _IOCTL_REQUESTS, (allow, refuse)),
        (_PRCTL[column], _FIRST_ARGUMENT, _PRCTL_OPTIONS, (allow, refuse)),
        (_FCNTL[column], _SECOND_ARGUMENT, _FCNTL_REFUSED, (refuse, allow)),
    ):
        code += [
            (_EQUAL, 0, len(values) + 3, number),
            (_LOAD, 0, 0, argument),
            *((_EQUAL, len(values) - n, 0, value) for n, value in enumerate(values)),
            *others,
            *listed,
        ]
    refused = (numbers[column] for numbers in _REFUSED.values())
    code += [
        instruction
        for number in refused
        if number is not None
        for instruction in ((_EQUAL, 0, 1, number), *refuse)
    ]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in code)
