"""What a worker that was broken into would try: each attempt reaches something, or is refused.

The module is also the handler of the documents that order the attempts, so it imports nothing of
the tests.
"""

import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_LIBC: Any = None if sys.platform == "win32" else ctypes.CDLL(None, use_errno=True)


def read_file(path: str) -> None:
    Path(path).read_bytes()


def write_file(path: str) -> None:
    with Path(path).open("ab") as file:
        file.write(b"x")


def truncate(path: str) -> None:
    os.truncate(path, 0)


def chmod(path: str) -> None:
    Path(path).chmod(0o777)


def make_file(folder: str) -> None:
    Path(folder, "made by a worker").write_text("x")


def list_folder(path: str) -> None:
    os.listdir(path)  # noqa: PTH208 - the call itself


def list_labels(path: str) -> None:
    """Read the names of a file's attributes, which Landlock does not hide."""
    os.listxattr(path)


def link_out(path: str) -> None:
    """Make a second name of another's file in the worker's own folder."""
    os.link(path, Path(_own_folder(), "linked"))


def symbolic_link(path: str) -> None:
    Path(_own_folder(), "symbolic").symlink_to(path)


def write_source(_: str) -> None:
    """Write into the document itself, which shares its file with the store's blob."""
    with _source().open("ab") as file:
        file.write(b"x")


def _source() -> Path:
    return Path(_own_folder()).parent.joinpath("in", "document")


def touch_source(_: str) -> None:
    """Change the document's time, by which the store knows that a blob was altered."""
    os.utime(_source(), (1, 1))


def chmod_source(_: str) -> None:
    _source().chmod(0o666)


def label_source(_: str) -> None:
    os.setxattr(_source(), "user.fetchstash", b"x")


def cut_source(_: str) -> None:
    os.truncate(_source(), 0)


def flag_source(_: str) -> None:
    """Set an attribute of the document's inode (FS_IOC_SETFLAGS: do not record accesses)."""
    import fcntl

    with _source().open("rb") as file:
        fcntl.ioctl(file, 0x40086602, (0x80).to_bytes(8, "little"))


def affinity(process: str) -> None:
    """Hold the server to one processor."""
    os.sched_setaffinity(int(process), os.sched_getaffinity(int(process)))


def watch(folder: str) -> None:
    """See the names of files that others make (inotify(7))."""
    watcher = _checked(_LIBC.inotify_init1(0))
    _checked(_LIBC.inotify_add_watch(watcher, folder.encode(), 0x100))


def signal_by_pipe(process: str) -> None:
    """Let the kernel signal another process when a pipe is written to (fcntl(2), F_SETOWN)."""
    import fcntl

    read, write = os.pipe()
    try:
        fcntl.fcntl(read, fcntl.F_SETOWN, int(process))
    finally:
        os.close(read)
        os.close(write)


def lease_source(_: str) -> None:
    """Hold up everybody who opens the document (fcntl(2), F_SETLEASE)."""
    import fcntl

    with _source().open("rb") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)


_KEPT: list[int] = []


def keep_text(_: str) -> None:
    """Keep the text open, to write into it when it is stored."""
    _KEPT.append(os.open(Path(_own_folder(), "text"), os.O_WRONLY | os.O_APPEND))


def name_text_again(_: str) -> None:
    """Give the text a second name, to open it when it is stored."""
    os.link(Path(_own_folder(), "text"), Path(_own_folder(), "again"))


_AT_FDCWD, _AT_EMPTY_PATH = -100, 0x1000


def keep_text_to_read(_: str) -> None:
    """Keep the text open for reading alone, which no lease notices."""
    _KEPT.append(os.open(Path(_own_folder(), "text"), os.O_RDONLY))


def link_kept_text(_: str) -> None:
    """Give the text of an earlier job a name again, by which it can be opened to write."""
    again = os.fsencode(Path(_own_folder(), "again"))
    _checked(_LIBC.linkat(_KEPT[-1], b"", _AT_FDCWD, again, _AT_EMPTY_PATH))


def nest_folders(depth: str) -> None:
    """Nest folders deeper than a path or Python's stack reaches."""
    here = os.open(_own_folder(), os.O_RDONLY)
    for _ in range(int(depth)):
        os.mkdir("d", dir_fd=here)
        outer, here = here, os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(outer)


def garble_text(_: str) -> None:
    """Write into the text of an earlier job by all that is left of it."""
    for name in ("text", "again"):
        with contextlib.suppress(OSError):
            _KEPT.append(os.open(Path(_own_folder(), name), os.O_WRONLY | os.O_APPEND))
    for kept in _KEPT:
        os.write(kept, b"garbled")


def raise_limit(name: str) -> None:
    import resource

    try:
        unlimited = resource.RLIM_INFINITY, resource.RLIM_INFINITY
        resource.setrlimit(getattr(resource, name), unlimited)
    except ValueError as error:
        raise PermissionError(1, str(error)) from error


def stay_alive(_: str) -> None:
    """Take no signal when the server ends (prctl(2), PR_SET_PDEATHSIG)."""
    _checked(_LIBC.prctl(1, 0, 0, 0, 0))


def take_requests(_: str) -> None:
    """Take of the machine's asynchronous requests, of which it has 65,536 (io_setup(2))."""
    context = ctypes.c_ulong()
    number = {"x86_64": 206, "aarch64": 0}[os.uname().machine]
    _checked(_LIBC.syscall(number, 1, ctypes.byref(context)))


def watch_files(_: str) -> None:
    """Take of the user's watches (epoll(7), max_user_watches)."""
    os.close(_checked(_LIBC.epoll_create1(0)))


def take_timers(_: str) -> None:
    """Take of the user's queue of signals (timer_create(2))."""
    _checked(_LIBC.timer_create(1, None, ctypes.byref(ctypes.c_void_p())))


def grow_pipe(_: str) -> None:
    """Take of the user's pages for pipes (fcntl(2), F_SETPIPE_SZ)."""
    import fcntl

    read, write = os.pipe()
    try:
        fcntl.fcntl(read, 1031, 2**20)
    finally:
        os.close(read)
        os.close(write)


def lock_memory(_: str) -> None:
    _checked(_LIBC.mlock(ctypes.create_string_buffer(4096), 4096))


def open_files(count: str) -> None:
    opened: list[int] = []
    try:
        opened += (os.open(os.devnull, os.O_RDONLY) for _ in range(int(count)))
    finally:
        for descriptor in opened:
            os.close(descriptor)


def memory_file(_: str) -> None:
    """Take memory that RLIMIT_AS does not count."""
    os.close(os.memfd_create("probe"))


def host_name(_: str) -> None:
    """Do what only root may: give the machine its own name again."""
    name = os.uname().nodename.encode()
    _checked(_LIBC.sethostname(name, len(name)))


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def tcp(port: str) -> None:
    socket.create_connection(("127.0.0.1", int(port)), 2).close()


def udp(port: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", ("127.0.0.1", int(port)))


def unix(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)


def abstract(name: str) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(f"\0{name}")


def listen(_: str) -> None:
    with socket.create_server(("127.0.0.1", 0)):
        pass


def run_program(_: str) -> None:
    subprocess.run([sys.executable, "--version"], check=True, stdout=subprocess.DEVNULL)


def fork(_: str) -> None:
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)


def signal(process: str) -> None:
    os.kill(int(process), 0)


def signal_group(_: str) -> None:
    os.kill(0, 0)


def read_memory(process: str) -> None:
    buffer = ctypes.create_string_buffer(8)
    address = ctypes.c_void_p(ctypes.addressof(buffer))

    class Vector(ctypes.Structure):
        _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))

    mine, other = Vector(address, 8), Vector(address, 8)
    if _LIBC.process_vm_readv(int(process), ctypes.byref(mine), 1, ctypes.byref(other), 1, 0) < 0:
        code = ctypes.get_errno()
        if code == 14:  # EFAULT: allowed, and only the address is wrong
            return
        raise OSError(code, os.strerror(code))


def limit_other(process: str) -> None:
    import resource

    resource.prlimit(int(process), resource.RLIMIT_NOFILE)


ATTEMPTS: Mapping[str, Callable[[str], None]] = {
    attempt.__name__: attempt
    for attempt in (
        read_file, write_file, truncate, chmod, make_file, list_folder, link_out, symbolic_link,
        write_source, tcp, udp, unix, abstract, listen, run_program, fork, signal, signal_group,
        read_memory, limit_other, affinity, touch_source, chmod_source, label_source,
        cut_source, flag_source, watch, signal_by_pipe, lease_source, raise_limit, memory_file,
        host_name, keep_text, name_text_again, garble_text, keep_text_to_read, link_kept_text,
        nest_folders, list_labels, stay_alive, take_requests, watch_files, take_timers, grow_pipe,
        lock_memory, open_files,
    )
}  # fmt: skip


def _own_folder() -> str:
    import tempfile

    return tempfile.gettempdir()


def attempt(orders: list[tuple[str, str]]) -> list[str]:
    """Return a line for each attempt: its name, its target, and ``reached`` or ``refused``."""
    lines: list[str] = []
    for name, target in orders:
        try:
            ATTEMPTS[name](target)
        except OSError as error:
            lines.append(f"{name} {target}: refused ({error.strerror})")
        else:
            lines.append(f"{name} {target}: reached")
    return lines


def environment_of(process: int) -> str:
    return str(Path("/proc", str(process), "environ"))


def orders_in(source: Path) -> list[tuple[str, str]]:
    data: Any = json.loads(source.read_text())
    return [(str(name), str(target)) for name, target in data]


if __name__ == "__main__":
    sys.stdout.write("\n".join(attempt(orders_in(Path(sys.argv[1])))))
