"""Write a body to a private file: decode it in bounded steps, and hash it."""

import hashlib
import os
import secrets
from collections.abc import Iterator, Sequence
from io import FileIO
from itertools import chain
from pathlib import Path
from threading import Lock

from fetchstash.errors import Call, StoreError, TooLarge
from fetchstash.fetch._coding import Decoder

# Real text compresses to a hundredth at best; zeros to a thousandth and less.
_MAX_GROWTH = 250
_GROWTH_UNASKED = 32 * 2**20
_PIECES_AT_FIRST = 16
_PIECES_A_CALL = 64  # of 64 KiB: a call takes some 10 ms, so that a fetch can be cancelled


class Spool:
    """One new file, decoded by ``stages``. ``size`` and ``sha256`` are of the decoded bytes.

    Every method blocks: call it in a worker thread. A lock protects the file, because a task can
    be cancelled while its thread still writes, and the file is then discarded.
    """

    def __init__(self, folder: Path, stages: Sequence[Decoder], max_decoded_bytes: int) -> None:
        self.path = folder / f"fetch-{secrets.token_hex(16)}"
        self.size = 0
        self._stages = stages
        self._produced = [0] * len(stages)
        self._taken = 0
        self._max = max_decoded_bytes
        self._hash = hashlib.sha256()
        self._pending: Iterator[bytes] = iter(())
        self._file: FileIO | None = None
        self._lock = Lock()
        self._discarded = False

    @property
    def needs_window(self) -> bool:
        """Say whether a decoder holds much memory between two batches."""
        return any(stage.has_large_window for stage in self._stages)

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of the written bytes, in hexadecimal."""
        return self._hash.hexdigest()

    def open(self) -> None:
        """Create the file. Raises StoreError."""
        flags = (
            os.O_WRONLY
            | os.O_CREAT
            | os.O_EXCL
            | getattr(os, "O_NOFOLLOW", 0)
            | getattr(os, "O_BINARY", 0)
        )
        with self._lock:
            if self._discarded:
                return
            try:
                self._file = FileIO(os.open(self.path, flags, 0o600), "wb")
            except OSError as error:
                what = f"No file can be made in {self.path.parent}: {error.strerror}."
                raise StoreError(what, "Check the folder and the space on its disk.") from None

    def put(self, batch: Sequence[bytes]) -> bool:
        """Begin to write a batch, and say whether ``go_on`` has more to do. Raises as that does."""
        with self._lock:
            self._taken += sum(map(len, batch))
            self._pending = self._decoded(batch)
        return self.go_on(_PIECES_AT_FIRST)

    def go_on(self, pieces: int = _PIECES_A_CALL) -> bool:
        """Write some 4 MiB more, and say whether there is more.

        Raises TooLarge above the limit, BrokenCoding if the bytes cannot be decoded, StoreError if
        the disk is full.
        """
        with self._lock:
            for _ in range(pieces):
                piece = next(self._pending, None)
                if piece is None or self._file is None:
                    return False
                self._write(self._file, piece)
            return True

    def finish(self, *, whole: bool) -> None:
        """Close the file. Raises BrokenCoding if the body is ``whole`` and its coding is not."""
        with self._lock:
            self._close()
            if whole:
                for stage in self._stages:
                    stage.finish()

    def discard(self) -> None:
        """Close and remove the file for good."""
        with self._lock:
            self._discarded = True
            self._close()
            self.path.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _decoded(self, batch: Sequence[bytes]) -> Iterator[bytes]:
        pieces = iter(batch)
        for number, stage in enumerate(self._stages):
            pieces = self._bounded(number, stage, pieces)
        return pieces

    def _bounded(self, number: int, stage: Decoder, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Decode one coding. The limits hold for each stage: the next one may drop its output."""
        for piece in chain.from_iterable(map(stage.feed, pieces)):
            self._produced[number] += len(piece)
            if self._produced[number] > self._max:
                raise too_large("decoded", self._max)
            if self._produced[number] > max(_GROWTH_UNASKED, self._taken * _MAX_GROWTH):
                raise TooLarge(
                    f"The body grows more than {_MAX_GROWTH}-fold when it is decoded.",
                    "Fetch another document.",
                )
            yield piece

    def _write(self, file: FileIO, piece: bytes) -> None:
        if self.size + len(piece) > self._max:
            raise too_large("decoded", self._max)
        self._hash.update(piece)
        try:
            view = memoryview(piece)
            while view:
                view = view[file.write(view) :]
        except OSError as error:
            raise StoreError(
                f"The body could not be written: {error.strerror}.", "Make space on the disk."
            ) from None
        self.size += len(piece)


def too_large(kind: str, limit: int) -> TooLarge:
    """Return the error for a body above the limit of ``kind``, "wire" or "decoded"."""
    measured = "as sent" if kind == "wire" else "after decoding"
    return TooLarge(
        f"The body is larger than {limit} bytes {measured}.",
        "Fetch a smaller document, or {}.",
        Call("setting", {"name": f"fetch.max_{kind}_bytes", "value": 2 * limit}),
    )
