"""Documents that say themselves all there is to know: read from the file alone, and handed on part by part."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from fetchstash.handlers._contract import Extracted, ExtractLimits, Hints, Part


class Streamed(ABC):
    """What handlers share that need neither hints nor limits: a subclass reads, and writes what it learns into ``extracted``."""

    @abstractmethod
    def read(self, source: Path, extracted: Extracted) -> Iterator[Part]:
        """Yield the parts of ``source``. Raises NoText for what cannot be read, after what could be."""

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Read ``source``, when the parts are read."""
        del hints, limits
        extracted = Extracted(parts=None)
        extracted.parts = self.read(source, extracted)
        return extracted
