"""Promises that the file system under a store keeps, and its free room."""

import os
import sys
from pathlib import Path

from fetchstash.errors import StoreError
from fetchstash.store._advice import OTHER_FOLDER

# Locks and shared memory, which SQLite's WAL needs (https://sqlite.org/wal.html), fail on these.
NETWORK = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph",
    "fuse.sshfs", "fuse.rclone", "fuse.glusterfs",
})  # fmt: skip
COPY_ON_WRITE = frozenset({"btrfs", "zfs", "bcachefs"})
PAGE_BYTES = 4096
MIN_FREE_BYTES = 4 * 2**20
"""A put begins only if so much is free: the catalogue's log and its checkpoint fit in."""


def file_system(folder: Path) -> str:
    """Return the type of the file system of ``folder``; "" if unknown (proc(5), mountinfo)."""
    longest, kind = -1, ""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        mounted = Path(left.split(" ")[4].replace("\\040", " "))
        if folder.is_relative_to(mounted) and len(mounted.parts) >= longest:
            longest, kind = len(mounted.parts), right.split(" ")[0]
    return kind


def refuse_network(folder: Path) -> None:
    """Raise StoreError for a folder on a network file system."""
    kind = file_system(folder)
    if kind in NETWORK:
        raise StoreError(
            f"The store is on a network file system ({kind}), where locks do not hold.",
            "{}.",
            OTHER_FOLDER,
        )


def can_map_on_full_disk(folder: Path) -> bool:
    """Return whether a write to mapped memory of an allocated file works on a full disk.

    It ends the process with SIGBUS where the write needs new blocks: on copy-on-write file systems,
    and where SQLite allocates one block of several in a page.
    """
    if sys.platform == "win32":
        return True
    return file_system(folder) not in COPY_ON_WRITE and os.statvfs(folder).f_frsize >= PAGE_BYTES


def free_unlinked_blocks(folder: Path) -> None:
    """Make the blocks of unlinked files free on a disk that is full.

    Copy-on-write file systems free them only when they commit.
    """
    if sys.platform != "win32" and is_full(folder) and file_system(folder) in COPY_ON_WRITE:
        os.sync()


def is_full(folder: Path) -> bool:
    """Return whether less is free than a put needs."""
    if sys.platform == "win32":
        return False
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES


def check_room(folder: Path) -> None:
    """Raise StoreError if a put would not find room for the catalogue's log."""
    if is_full(folder):
        raise StoreError(
            f"The disk of the store is full: less than {MIN_FREE_BYTES // 2**20} MiB are free.",
            "Make room on it.",
        )
