"""A full disk of each kind: nothing is lost, and every failure is a store_error, not a SIGBUS."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("full_disk.py")
DISKS = {
    "ext4, blocks of 1 KiB": ("mkfs.ext4", "-q", "-b", "1024"),
    "ext4, blocks of 2 KiB": ("mkfs.ext4", "-q", "-b", "2048"),
    "ext4, blocks of 4 KiB": ("mkfs.ext4", "-q", "-b", "4096"),
    "xfs": ("mkfs.xfs", "-q"),
    "btrfs": ("mkfs.btrfs", "-q", "--mixed"),
    "tmpfs": (),
}
SIZES = {"xfs": 304, "btrfs": 64}  # in MiB; xfs takes no less than 300

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="mounts small disks"),
    pytest.mark.slow,
]


@pytest.mark.parametrize("name", DISKS)
def test_a_disk_that_is_really_full(name: str, tmp_path: Path) -> None:
    make, size = DISKS[name], SIZES.get(name, 32)
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("mounting a small disk needs root and unshare")
    if make and not shutil.which(make[0]):
        pytest.skip(f"{make[0]} is missing")
    image, mounted = tmp_path / "image", tmp_path / "disk"
    mounted.mkdir()
    mount = f"mount -t tmpfs -o size={size}m tmpfs {mounted}"
    if make:
        with image.open("wb") as file:
            file.truncate(size * 2**20)
        subprocess.run([*make, image], check=True, capture_output=True)
        mount = f"mount -o loop {image} {mounted}"
    script = f'{mount} || exit 77; "$@" {mounted}; code=$?; umount {mounted}; exit $code'
    program = [sys.executable, "-P", str(PROGRAM)]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", *program],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode == 77:
        pytest.skip(f"no {name} may be mounted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "kept" in done.stdout
