"""A body on its way to disk: decoded in bounded steps, hashed, and written to a file that only we may read."""

import hashlib
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

from fetchstash.errors import StoreError, TooLarge
from fetchstash.fetch._coding import decoders

# What honest text squeezes to is a hundredth at the most; zeros squeeze to a thousandth and less.
_MAX_GROWTH = 250
_GROWTH_UNASKED = 32 * 2**20
_PIECES_A_CALL = 64  # of 64 KiB: a call takes some ten milliseconds, and then whoever waits may cancel


class Spool:
    """One new file. Every method blocks and belongs in a worker thread; ``size`` and ``digest`` are of what was written."""

    def __init__(self, folder: Path, codings: tuple[str, ...], max_decoded_bytes: int) -> None:
        """Create the file. Raises StoreError, and BrokenCoding for too many codings."""
        self._decoders = decoders(codings)
        self._produced = [0] * len(self._decoders)
        self._taken = 0
        self._max = max_decoded_bytes
        self._hash = hashlib.sha256()
        self._pending: Iterator[bytes] = iter(())
        self.size = 0
        self.path = folder / f"fetch-{secrets.token_hex(16)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        try:
            self._file = os.fdopen(os.open(self.path, flags, 0o600), "wb", buffering=0)
        except OSError as error:
            raise StoreError(
                f"No file can be made in {folder}: {error.strerror}.", "Check the folder and the space on its disk."
            ) from None

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of what was written, in hexadecimal."""
        return self._hash.hexdigest()

    def put(self, batch: Sequence[bytes]) -> bool:
        """Begin to decode and write a batch; say whether ``go_on`` has more to do. Raises as ``go_on`` does."""
        self._taken += sum(map(len, batch))
        self._pending = self._decoded(batch)
        return self.go_on()

    def go_on(self) -> bool:
        """Write the next 4 MiB at the most, and say whether there is more.

        Raises TooLarge above the limit, BrokenCoding where the bytes cannot be decoded, StoreError where the disk is full.
        """
        for _ in range(_PIECES_A_CALL):
            piece = next(self._pending, None)
            if piece is None:
                return False
            self._write(piece)
        return True

    def finish(self, *, whole: bool) -> None:
        """Close the file. Raises BrokenCoding if the body is ``whole`` and its coding is not."""
        self._file.close()
        if whole:
            for decoder in self._decoders:
                decoder.finish()

    def discard(self) -> None:
        """Close and remove the file."""
        self._file.close()
        self.path.unlink(missing_ok=True)

    def _decoded(self, batch: Sequence[bytes]) -> Iterator[bytes]:
        pieces = iter(batch)
        for stage in range(len(self._decoders)):
            pieces = self._stage(stage, pieces)
        return pieces

    def _stage(self, stage: int, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Decode one coding. Each stage has the limit, so that what vanishes in the next one counts too."""
        for data in pieces:
            for piece in self._decoders[stage].feed(data):
                self._produced[stage] += len(piece)
                if self._produced[stage] > self._max:
                    raise too_large("decoded", self._max)
                if self._produced[stage] > max(_GROWTH_UNASKED, self._taken * _MAX_GROWTH):
                    raise TooLarge(f"The body grows more than {_MAX_GROWTH}-fold when it is decoded.", "Fetch another document.")
                yield piece

    def _write(self, piece: bytes) -> None:
        if self.size + len(piece) > self._max:
            raise too_large("decoded", self._max)
        self._hash.update(piece)
        try:
            view = memoryview(piece)
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            raise StoreError(f"The body could not be written: {error.strerror}.", "Make space on the disk.") from None
        self.size += len(piece)


def too_large(kind: str, limit: int) -> TooLarge:
    """Return the error for a body above one of the two limits."""
    return TooLarge(
        f"The body is larger than the {limit} bytes that are taken {'as sent' if kind == 'wire' else 'after decoding'}.",
        f"Ask the operator to raise fetch.max_{kind}_bytes, or fetch a smaller document.",
    )
