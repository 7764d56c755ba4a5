"""Kill what keeps artifacts, start it again, and compare with what it had acknowledged.

The processes report on stdout, one JSON list a line: ["kept", *OWNER, REF, RAW, TEXT] with the
SHA-256 of both, ["deleting", *OWNER, REF] before a delete, ["half", REF] and ["seen", *OWNER, REF]
for what must not be. Other words are of a program's own.
"""

import hashlib
import json
import random
import secrets
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from fetchstash.store import ArtifactStore, Facts
from fetchstash.text.ranges import Ranges

FAULTS_FOUND = 3
"""The exit code of a program that found faults: an exception ends with 1."""
PIPE_BYTES = 2**20
"""What a child may report before anybody reads it: one whose pipe is full stands still."""


def dice(seed: float) -> random.Random:
    """Return chance that can be repeated."""
    return random.Random(seed)  # noqa: S311 - it guards nothing


def say(*words: str) -> None:
    """Report to the parent."""
    print(json.dumps(words), flush=True)


def sums(raw: bytes, text: bytes) -> tuple[str, str]:
    """Return the SHA-256 of both."""
    return hashlib.sha256(raw).hexdigest(), hashlib.sha256(text).hexdigest()


async def put(
    store: ArtifactStore, raw: bytes, text: bytes, facts: Facts | None = None, url: str = ""
) -> Facts:
    """Put bytes by way of the spool."""
    of_raw, of_text = (store.spool / secrets.token_hex(8) for _ in range(2))
    of_raw.write_bytes(raw)
    of_text.write_bytes(text)
    return await store.put(of_raw, of_text, facts or Facts(), Ranges(), url=url)


async def read_text(store: ArtifactStore, ref: str) -> bytes:
    """Return the text of an artifact."""
    reader = await store.open_text(ref)
    text = await reader.read_chars(0, reader.chars)
    await reader.aclose()
    return text.encode()


async def read_back(store: ArtifactStore, ref: str) -> tuple[bytes, bytes]:
    """Return the raw bytes and the text of an artifact."""
    text = await read_text(store, ref)
    async with store.open_raw(ref) as path:
        return path.read_bytes(), text


def show(faults: Sequence[str]) -> bool:
    """Print the first faults; return whether there are any."""
    for fault in faults[:20]:
        print(f"FAULT {fault}")
    print(f"{len(faults)} faults")
    return bool(faults)


@dataclass
class Ledger:
    """What was acknowledged, what is deleted or about to be, who was killed, what is wrong."""

    kept: dict[tuple[str, ...], tuple[str, str]] = field(
        default_factory=dict[tuple[str, ...], tuple[str, str]]
    )
    deleted: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])
    kills: Counter[str] = field(default_factory=Counter[str])
    faults: list[str] = field(default_factory=list[str])

    def note(self, what: str, *words: str) -> None:
        """Note a report."""
        match what:
            case "kept":
                *key, raw, text = words
                self.kept[tuple(key)] = raw, text
            case "deleting":
                self.deleted.add(words)
            case "half":
                self.faults.append(f"a reader saw a half artifact: {words[0]}")
            case "seen":
                self.faults.append(f"{words[-1]} was seen by {' '.join(words[:-1])}")
            case _:
                pass


class Child:
    """A process of torture, started by its program and arguments."""

    def __init__(self, ledger: Ledger, name: str, *words: str) -> None:
        self.name = name
        self._ledger = ledger
        self.process = subprocess.Popen(
            [sys.executable, "-P", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pipesize=PIPE_BYTES,
        )

    def report(self) -> list[str]:
        """Return its next report, or [] if it ended."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        report: list[str] = json.loads(line) if line.endswith(b"\n") else []  # cut by the kill
        if report:
            self._ledger.note(*report)
        return report

    def wait_for(self, *words: str) -> list[str]:
        """Return its next report that begins with these words. Raises RuntimeError if it ended."""
        while report := self.report():
            if report[: len(words)] == list(words):
                return report
        raise RuntimeError(f"{self.name} ended by itself")

    def go_on(self) -> None:
        """Let it go on from where it waits."""
        assert self.process.stdin
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def kill(self, where: str) -> None:
        """Kill it, and note what it reported before."""
        if self.process.poll() is not None:
            self._ledger.faults.append(f"{self.name} ended by itself")
        self.process.kill()
        while self.report():
            pass
        self.end()
        self._ledger.kills[where] += 1

    def end(self) -> None:
        """Wait for its end."""
        self.process.wait(60)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()
