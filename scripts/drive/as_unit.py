"""Run a command as a systemd unit would, where no systemd runs. Linux, as root.

    python as_unit.py UNIT FOLDER USER_ID COMMAND [ARGUMENT …]

FOLDER/state, FOLDER/logs and FOLDER/etc become the unit's folders. These directives are done with
the same means as systemd's: the user, no capabilities, NoNewPrivileges, a read-only root, /home,
/root, /tmp and /dev of its own, /proc with its own processes alone, and by seccomp the lists of
system calls, namespaces, address families, memory that is written and run, set-id bits and
personalities. Left out: user namespaces, the limits of cgroups, and the network's.
"""

import ctypes
import errno
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS = 0x00020000
NAMESPACES = 0x7E020000 | 0x80  # CLONE_NEW*, as in clone(2)
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
MS_NOSUID, MS_NODEV = 2, 4
PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP = 38, 24
ALLOW, EPERM_ACTION = 0x7FFF0000, 0x00050000 | errno.EPERM
NOT_THERE, NO_FAMILY = 0x00050000 | errno.ENOSYS, 0x00050000 | errno.EAFNOSUPPORT
# SCMP_CMP_*
UNEQUAL, MASKED = 1, 7
PROT_WRITE, PROT_EXEC, SHM_EXEC, SET_ID = 2, 4, 0o100000, 0o6000
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}


def directives(unit: Path) -> dict[str, list[str]]:
    """Return what a unit says, each directive as often as it stands there."""
    values: dict[str, list[str]] = {}
    for line in unit.read_text(encoding="utf-8").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            values.setdefault(name, []).append(value)
    return values


def check(result: int, what: str) -> None:
    """Raise OSError for a system call that failed."""
    if result < 0:
        number = ctypes.get_errno() or -result
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """Mount (mount(2))."""
    arguments = (source.encode(), target.encode(), kind.encode() if kind else None)
    check(LIBC.mount(*arguments, ctypes.c_ulong(flags), data.encode() or None), f"mount {target}")


def mount_points() -> Iterator[str]:
    """Return where file systems are mounted, the deepest first."""
    lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    points = {line.split()[1].encode().decode("unicode_escape") for line in lines}
    yield from sorted(points, key=len, reverse=True)


def separate(folder: Path, interpreter: Path) -> None:
    """Give this process the unit's view of the file system."""
    check(LIBC.unshare(CLONE_NEWNS), "unshare")
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    inside = {name: folder / name for name in ("state", "logs", "etc")}
    opened = {name: os.open(path, os.O_PATH) for name, path in inside.items()}
    home = os.open(interpreter, os.O_PATH)
    mount("tmpfs", "/mnt", "tmpfs", 0, "mode=755")
    Path("/mnt/etc/fetchstash").mkdir(parents=True)
    mount("overlay", "/etc", "overlay", MS_RDONLY, "lowerdir=/mnt/etc:/etc")
    for name, place in (("state", "/var/lib"), ("logs", "/var/log")):
        mount("tmpfs", place, "tmpfs", 0, "mode=755")
        Path(place, "fetchstash").mkdir()
        mount(f"/proc/self/fd/{opened[name]}", f"{place}/fetchstash", None, MS_BIND)
    mount(f"/proc/self/fd/{opened['etc']}", "/etc/fetchstash", None, MS_BIND)
    for place in ("/home", "/root"):
        mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    # Where the tests' own Python lies below /root, it stays: a real unit's lies in /opt.
    if interpreter.is_relative_to("/root") or interpreter.is_relative_to("/home"):
        interpreter.mkdir(parents=True)
        mount(f"/proc/self/fd/{home}", str(interpreter), None, MS_BIND)
    mount("tmpfs", "/mnt", "tmpfs", 0, "mode=755")
    devices = ("null", "zero", "full", "random", "urandom", "tty")
    for name in devices:
        Path("/mnt", name).touch()
        mount(f"/dev/{name}", f"/mnt/{name}", None, MS_BIND)
    Path("/mnt/shm").mkdir(mode=0o1777)
    mount("/mnt", "/dev", None, MS_BIND | MS_REC)
    temporary = ("/tmp", "/var/tmp")  # noqa: S108 - new ones
    for place in temporary:
        mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
    mount("proc", "/proc", "proc", 0, "hidepid=2,subset=pid")
    writable = ("/var/lib/fetchstash", "/var/log/fetchstash", *temporary, "/proc", "/dev")
    for point in mount_points():
        if not point.startswith(writable) or point in ("/var/lib", "/var/log"):
            try:
                mount("none", point, None, MS_REMOUNT | MS_BIND | MS_RDONLY)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOENT):  # another mount hides it
                    raise


def system_calls(lists: list[str]) -> set[str]:
    """Return the system calls of SystemCallFilter; systemd-analyze knows the groups."""
    allowed: set[str] = set()
    for line in lists:
        names = expanded(line.removeprefix("~").split())
        allowed = allowed - names if line.startswith("~") else allowed | names
    # systemd allows these whatever the list says: without them nothing starts.
    return allowed | {"execve", "exit", "exit_group", "rt_sigreturn", "brk", "mmap", "arch_prctl"}


def expanded(names: list[str]) -> set[str]:
    """Return names with each group (@system-service) replaced by its system calls."""
    calls = {name for name in names if not name.startswith("@")}
    for group in (name for name in names if name.startswith("@")):
        told = subprocess.run(
            ["systemd-analyze", "syscall-filter", group, "--no-pager"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        members = [line.strip() for line in told.splitlines()[1:] if line.startswith("    ")]
        calls |= expanded([name for name in members if name and not name.startswith("#")])
    return calls


class Compare(ctypes.Structure):
    """struct scmp_arg_cmp of libseccomp."""

    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    )


class Filter:
    """A seccomp filter that is added to those that hold already."""

    def __init__(self, default: int) -> None:
        self._library = ctypes.CDLL("libseccomp.so.2")
        self._library.seccomp_init.restype = ctypes.c_void_p
        self._context = ctypes.c_void_p(self._library.seccomp_init(ctypes.c_uint32(default)))

    def add(self, action: int, name: str, *compared: tuple[int, int, int, int]) -> None:
        """Add a rule; a system call that this machine does not have is left out."""
        number = self._library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:
            return
        array = (Compare * len(compared))(*(Compare(*comparison) for comparison in compared))
        check(
            self._library.seccomp_rule_add_array(
                self._context, ctypes.c_uint32(action), number, len(compared), array
            ),
            name,
        )

    def load(self) -> None:
        """Put the filter on this process, for good."""
        check(self._library.seccomp_load(self._context), "seccomp_load")


def confine(values: dict[str, list[str]], calls: set[str]) -> None:
    """Put the unit's seccomp filters on this process."""
    bans = Filter(ALLOW)
    for name in ("unshare", "setns"):
        bans.add(EPERM_ACTION, name)
    bans.add(NOT_THERE, "clone3")  # its flags lie in memory; libc then takes clone
    for bit in range(64):
        if NAMESPACES >> bit & 1:
            bans.add(EPERM_ACTION, "clone", (0, MASKED, 1 << bit, 1 << bit))
    written_and_run = PROT_WRITE | PROT_EXEC
    bans.add(EPERM_ACTION, "mmap", (2, MASKED, written_and_run, written_and_run))
    for name in ("mprotect", "pkey_mprotect"):
        bans.add(EPERM_ACTION, name, (2, MASKED, PROT_EXEC, PROT_EXEC))
    bans.add(EPERM_ACTION, "shmat", (2, MASKED, SHM_EXEC, SHM_EXEC))
    for name, argument in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("mkdirat", 2)):
        for bit in (0o4000, 0o2000):
            bans.add(EPERM_ACTION, name, (argument, MASKED, bit, bit))
    bans.add(EPERM_ACTION, "personality", (0, UNEQUAL, 0, 0))
    families = {FAMILIES[name] for name in values["RestrictAddressFamilies"][0].split()}
    for family in set(range(50)) - families:
        bans.add(NO_FAMILY, "socket", (0, 4, family, 0))
    allowed = Filter(EPERM_ACTION)
    for name in sorted(calls):
        allowed.add(ALLOW, name)
    bans.load()
    allowed.load()


def main() -> None:
    """Become the unit's process and run the command."""
    unit, folder, user, *command = sys.argv[1:]
    values = directives(Path(unit))
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    for line in values["Environment"]:
        environment |= dict(word.split("=", 1) for word in shlex.split(line))
    for line in Path(folder, "etc", "environment").read_text(encoding="utf-8").splitlines():
        environment |= dict([line.split("=", 1)])
    calls = system_calls(values["SystemCallFilter"])
    separate(Path(folder).resolve(), Path(sys.base_prefix).resolve())
    os.chdir(values["WorkingDirectory"][0])
    os.umask(int(values["UMask"][0], 8))
    for capability in range(64):
        LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups([])
    os.setresgid(int(user), int(user), int(user))
    os.setresuid(int(user), int(user), int(user))
    check(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    confine(values, calls)
    os.execve(command[0], command, environment)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
