"""Confine this worker: whatever its libraries do, it reads its job and nothing of anybody else.

It may read Python, its packages and the system's libraries, and what is in its room: the folder
that the server made for it, with the job's document in ``in`` and room for files in ``out``. It
cannot reach the network, start programs, touch another process, or outlive the server. What the
system lacks is left out and reported, and `fetchstash doctor` prints it.
"""

import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]

# Shared libraries and data that libraries read. Nothing here is a user's.
_SYSTEM = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share", "/etc/ld.so.cache",
    "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/fonts", "/etc/localtime", "/etc/mime.types",
    "/dev/urandom", "/dev/random", "/dev/zero", "/sys/devices/system/cpu",
)  # fmt: skip


_LACKS = (
    "a reader may do what root may",
    "a reader may read any file of this user: no Landlock",
    "a reader may use the network: no seccomp",
)


def confine(room: Path, readable: Iterable[Path]) -> list[str]:
    """Confine this process to ``room`` and what is ``readable``; return what could not be done.

    Each entry is a sentence without its full stop.
    """
    sys.dont_write_bytecode = True
    tempfile.tempdir = str(room / "out")
    if sys.platform == "win32":
        from fetchstash.handlers._worker import _windows  # noqa: PLC0415 - Windows alone has it

        return _windows.missing(sys.argv)
    if sys.platform != "linux":
        return missing()  # macOS: the server started this process in a sandbox (_process)
    from fetchstash.handlers._worker import _landlock, _seccomp  # noqa: PLC0415 - Linux alone

    rules = [(path, _landlock.READ) for path in (*python_folders(), *readable, room / "in")]
    rules += [(Path("/dev/null"), _landlock.CHANGE), (room / "out", _landlock.CHANGE)]
    steps = _landlock.drop_capabilities, lambda: _landlock.restrict(rules), _seccomp.restrict
    return list(_failures(zip(_LACKS, steps, strict=True)))


def missing() -> list[str]:
    """Return what this system lacks to confine workers, as far as a look at it tells."""
    if sys.platform == "win32":
        from fetchstash.handlers._worker import _windows  # noqa: PLC0415 - Windows alone has it

        return _windows.missing([_windows.RESTRICTED])
    if sys.platform != "linux":
        has_sandbox = shutil.which("sandbox-exec") is not None
        return [] if has_sandbox else ["a reader may do what this user may: no sandbox-exec"]
    from fetchstash.handlers._worker import _landlock, _seccomp  # noqa: PLC0415 - Linux alone

    return list(_failures(zip(_LACKS[1:], (_landlock.check, _seccomp.check), strict=True)))


def _failures(steps: Iterable[tuple[str, Callable[[], None]]]) -> Iterator[str]:
    for lack, step in steps:
        try:
            step()
        except OSError as error:
            yield f"{lack} ({error.strerror})"


def python_folders() -> Iterator[Path]:
    """Yield the folders that Python and its packages are imported from, and the system's own."""
    yield from map(Path, _SYSTEM)
    yield PACKAGE
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    yield from (Path(sysconfig.get_path(name)) for name in names)
    yield from (Path(prefix) / "lib" for prefix in (sys.prefix, sys.base_prefix))
    private = [PACKAGE.parent]
    with suppress(RuntimeError):  # a user without a home, as a container's number has none
        private.append(Path("~").expanduser())
    for entry in map(Path, sys.path):
        folder = entry.resolve()
        # `pip install --target` and PEX leave packages in any folder, each with its record. A
        # project that is installed in place has its root on the path, with all that is in it.
        has_records = any(folder.glob("*.dist-info"))
        is_private = any(path.is_relative_to(folder) for path in private)
        if folder.name in ("site-packages", "dist-packages") or (has_records and not is_private):
            yield folder
