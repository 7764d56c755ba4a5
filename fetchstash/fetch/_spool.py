"""A body on its way to disk: decoded in bounded steps, hashed, and written to a file that only we may read."""

import hashlib
import os
import secrets
from collections.abc import Iterator, Sequence
from io import FileIO
from itertools import chain
from pathlib import Path
from threading import Lock

from fetchstash.errors import StoreError, TooLarge
from fetchstash.fetch._coding import Decoder

# What honest text squeezes to is a hundredth at the most; zeros squeeze to a thousandth and less.
_MAX_GROWTH = 250
_GROWTH_UNASKED = 32 * 2**20
_PIECES_A_CALL = (
    64  # of 64 KiB: a call takes some ten milliseconds, and then whoever waits may cancel
)


class Spool:
    """One new file, decoded on its way by ``stages``. ``size`` and ``sha256`` are of what was written.

    Every method blocks and belongs in a worker thread. They hold a lock: a task can be cancelled
    from outside while its thread is at work, and what it works on is then discarded under it.
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
    def sha256(self) -> str:
        """Return the SHA-256 of what was written, in hexadecimal."""
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
        """Begin to decode and write a batch; say whether ``go_on`` has more to do. Raises as ``go_on`` does."""
        with self._lock:
            self._taken += sum(map(len, batch))
            self._pending = self._decoded(batch)
        return self.go_on()

    def go_on(self) -> bool:
        """Write the next 4 MiB at the most, and say whether there is more.

        Raises TooLarge above the limit, BrokenCoding where the bytes cannot be decoded, StoreError
        where the disk is full.
        """
        with self._lock:
            for _ in range(_PIECES_A_CALL):
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
        """Close and remove the file; nothing makes it again."""
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
        """Decode one coding. Each stage has the limits, so that what vanishes in the next one counts too."""
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
    """Return the error for a body above one of the two limits."""
    return TooLarge(
        f"The body is larger than the {limit} bytes that are taken {'as sent' if kind == 'wire' else 'after decoding'}.",
        f"Ask the operator to raise fetch.max_{kind}_bytes, or fetch a smaller document.",
    )
