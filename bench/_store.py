"""The large text that the benchmarks of the store measure on."""

import random
from pathlib import Path

WORDS = (
    "system", "time", "value", "data", "user", "request", "server", "result", "memory", "order",
    "page", "1984", "42", "naïve", "well-known", "12-34", "2026-x", "数据",
)  # fmt: skip
NEEDLE = "the quarterly needle of 2026-11-21 is aaaa\n"


def write_text(path: Path, megabytes: int, *, longest: int = 30, needles: float = 0) -> None:
    """Write numbered blocks of lines of 1 to ``longest`` words, and a needle after some of them."""
    chance = random.Random(1)
    block = ""
    while len(block) < 2**20:
        block += " ".join(chance.choices(WORDS, k=chance.randint(1, longest))) + "\n"
        if chance.random() < needles:
            block += NEEDLE
    encoded = block.encode()[: 2**20].rsplit(b"\n", 1)[0] + b"\n"
    with path.open("wb") as file:
        for number in range(megabytes):
            file.write(b"block %d\n" % number + encoded)
