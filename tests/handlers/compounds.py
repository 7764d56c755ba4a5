"""Compound files made in code, for the tests of what stands in them."""

import struct
from collections.abc import Mapping

END, FREE, FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD


def entry(name: str, kind: int, right: int, child: int, start: int, size: int) -> bytes:
    raw = name.encode("utf-16-le")
    return struct.pack(
        "<64sHBB3L36xLQ", raw, len(raw) + 2, kind, 1, FREE, right, child, start, size
    )


def compound(streams: Mapping[str, bytes]) -> bytes:
    """Return a compound file (version 3) of streams by path; small ones are in the mini stream."""
    folders = list(dict.fromkeys(path.rpartition("/")[0] for path in streams if "/" in path))
    names = [*folders, *streams]
    children = {
        folder: [n for n, name in enumerate(names, 1) if name.rpartition("/")[0] == folder]
        for folder in ("", *folders)
    }
    sectors: list[bytes] = []
    table: list[int] = []
    mini, mini_table = b"", list[int]()

    def put(data: bytes) -> int:
        start = len(sectors)
        count = max(-(-len(data) // 512), 1)
        sectors.extend(data[n * 512 : (n + 1) * 512].ljust(512, b"\0") for n in range(count))
        table.extend([*range(start + 1, start + count), END])
        return start

    places: dict[str, int] = {}
    for path, data in streams.items():
        if len(data) >= 4096:
            places[path] = put(data)
        else:
            places[path] = len(mini_table)
            count = max(-(-len(data) // 64), 1)
            mini_table.extend([*range(len(mini_table) + 1, len(mini_table) + count), END])
            mini += data.ljust(count * 64, b"\0")
    entries = [entry("Root Entry", 5, FREE, children[""][0], put(mini), len(mini))]
    for number, name in enumerate(names, 1):
        siblings = children[name.rpartition("/")[0]]
        place = siblings.index(number)
        right = siblings[place + 1] if place + 1 < len(siblings) else FREE
        if name in streams:
            last, size = name.rpartition("/")[2], len(streams[name])
            entries.append(entry(last, 2, right, FREE, places[name], size))
        else:
            last = name.rpartition("/")[2]
            entries.append(entry(last, 1, right, children[name][0], 0, 0))
    directory = put(b"".join(entries))
    mini_at = put(struct.pack(f"<{len(mini_table)}L", *mini_table))
    fat_at = len(sectors)
    table.append(FAT)
    sectors.append(struct.pack(f"<{len(table)}L", *table).ljust(512, b"\xff"))
    assert len(table) <= 128
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    header += struct.pack("<5H6x", 62, 3, 0xFFFE, 9, 6)
    header += struct.pack("<9L", 0, 1, directory, 0, 4096, mini_at, 1, END, 0)
    header += struct.pack("<109L", fat_at, *[FREE] * 108)
    return header + b"".join(sectors)


def wide(text: str) -> bytes:
    return text.encode("utf-16-le")
