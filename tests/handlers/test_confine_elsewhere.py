"""What confines a worker on macOS and Windows, as far as it can be tested on any system.

Neither was ever run: the profile and the calls are compared with what Apple and Microsoft document.
The test that shows it where it runs is marked `confinement` (test_confine).
"""

import ctypes
import re
import struct
from pathlib import Path
from typing import Any

import pytest

from fetchstash.handlers._worker import _confine, _windows
from fetchstash.handlers._worker._process import Room

FAILING = (
    "OpenProcessToken",
    "CreateRestrictedToken",
    "SetTokenInformation",
    "CreateProcessAsUserW",
    "AssignProcessToJobObject",
    "SetInformationJobObject",
)


@pytest.fixture
def room(tmp_path: Path) -> Room:
    (tmp_path / 'a "folder"').mkdir()
    return Room(tmp_path / 'a "folder"')


def test_the_profile_of_macos_denies_by_default_and_links_last(room: Room) -> None:
    lines = _confine.profile(room.path, room.readable).splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert lines[-2:] == ["(deny file-link)", "(deny file-write-create (vnode-type SYMLINK))"]
    writing = [line for line in lines if "file-write" in line and line.startswith("(allow")]
    assert len(writing) == 2
    assert r"a \"folder\"" in writing[0]
    assert writing[1] == '(allow file-read* file-write-data (literal "/dev/null"))'
    assert not [line for line in lines if re.search("network|process-fork|mach", line)]


def test_the_profile_of_macos_is_one_list_of_balanced_rules(room: Room) -> None:
    for line in _confine.profile(room.path, room.readable).splitlines():
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", line)
        assert bare.count("(") == bare.count(")")
        assert bare.startswith("(")
        assert '"' not in bare


def test_the_profile_of_macos_names_the_real_path_of_the_room(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    profile = _confine.profile(Room(tmp_path / "link").path, ())
    assert f'(allow file-write* (subpath "{tmp_path}/real/worker-' in profile


@pytest.mark.skipif(struct.calcsize("P") != 8, reason="the sizes are those of 64 bits")
def test_the_structures_of_windows_have_their_documented_sizes() -> None:
    sizes = {
        _windows.BasicLimits: 64,
        _windows.ExtendedLimits: 144,
        _windows.Label: 16,
        _windows.StartupInfo: 104,
        _windows.ProcessInformation: 24,
    }
    assert {structure: ctypes.sizeof(structure) for structure in sizes} == sizes
    assert _windows.StartupInfo.flags.offset == 60
    assert _windows.StartupInfo.handles.offset == 80
    assert _windows.ExtendedLimits.basic.offset == 0
    assert _windows.BasicLimits.flags.offset == 16
    assert _windows.BasicLimits.active_processes.offset == 40


class FakeLibrary:
    """A library of Windows that notes each call and its arguments."""

    def __init__(self, calls: list[tuple[str, tuple[Any, ...]]], failing: str = "") -> None:
        self._calls = calls
        self._failing = failing

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            self._calls.append((name, tuple(getattr(a, "value", a) for a in arguments)))
            if name == self._failing:
                return 0
            return 0 if name in ("SetNamedSecurityInfoW", "WaitForSingleObject") else 12

        call.restype = None  # type: ignore[attr-defined]
        setattr(self, name, call)
        return call


def run(failing: str = "") -> list[tuple[str, tuple[Any, ...]]]:
    calls: list[tuple[str, tuple[Any, ...]]] = []
    _windows.run_restricted(["room", "file"], lambda _: FakeLibrary(calls, failing))
    return calls


def test_the_worker_of_windows_runs_only_in_its_job_and_with_the_restricted_token() -> None:
    calls = run()
    names = [name for name, _ in calls if not name.startswith(("Get", "Local", "Close", "SetHan"))]
    assert names == [
        "OpenProcessToken",
        "CreateRestrictedToken",
        "ConvertStringSidToSidW",
        "SetTokenInformation",
        "ConvertStringSecurityDescriptorToSecurityDescriptorW",
        "SetNamedSecurityInfoW",
        "CreateJobObjectW",
        "SetInformationJobObject",
        "SetInformationJobObject",
        "CreateProcessAsUserW",
        "AssignProcessToJobObject",
        "ResumeThread",
        "WaitForSingleObject",
    ]
    arguments = dict(calls)
    assert arguments["OpenProcessToken"][1] == 0x8B  # assign, duplicate, query, adjust default
    # DISABLE_MAX_PRIVILEGE and LUA_TOKEN, then three empty lists, each with its count first.
    assert arguments["CreateRestrictedToken"][1:8] == (5, 0, None, 0, None, 0, None)
    assert arguments["ConvertStringSidToSidW"][0] == "S-1-16-4096"
    assert arguments["SetTokenInformation"][1:] == (25, arguments["SetTokenInformation"][2], 28)
    assert arguments["SetNamedSecurityInfoW"][:3] == (str(Path("room/out")), 1, 0x10)
    kinds = [given[1] for name, given in calls if name == "SetInformationJobObject"]
    assert kinds == [9, 4]  # extended limits, then what a user sees
    _, _, line, _, _, inherit, flags, *_ = arguments["CreateProcessAsUserW"]
    assert line.endswith("-P -m fetchstash.handlers._worker._child --restricted room file")
    assert (inherit, flags) == (1, 0x08000004)  # its pipes; no window, suspended
    assert len(arguments["CreateProcessAsUserW"]) == 11


@pytest.mark.parametrize("failing", FAILING)
def test_a_worker_of_windows_is_not_let_run_where_a_call_fails(failing: str) -> None:
    calls: list[tuple[str, tuple[Any, ...]]] = []
    with pytest.raises(OSError, match="Windows refuses"):
        _windows.run_restricted(["room"], lambda _: FakeLibrary(calls, failing))
    assert "ResumeThread" not in [name for name, _ in calls]
    assert ("TerminateProcess" in [name for name, _ in calls]) == (
        failing == "AssignProcessToJobObject"
    )


def test_a_worker_says_what_windows_does_not_hold_it_from() -> None:
    assert len(_windows.missing(["child", "room"])) == 2
    assert len(_windows.missing(["child", _windows.RESTRICTED, "room"])) == 1
    assert _windows.restricted([_windows.RESTRICTED, "room", "file"]) == ["room", "file"]
