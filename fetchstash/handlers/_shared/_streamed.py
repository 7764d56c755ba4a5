"""Base of handlers that need the file alone."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from fetchstash.handlers._contract import Extracted, Hints, Part
from fetchstash.handlers._limits import ExtractLimits


class Streamed(ABC):
    """Base of handlers that need neither hints nor limits: a subclass yields the parts."""

    @abstractmethod
    def read(self, source: Path, extracted: Extracted) -> Iterator[Part]:
        """Yield the parts of ``source``, and add its facts to ``extracted``.

        Raises NoText if the file cannot be read, behind the text that could be.
        """

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return the document; its parts are read as they are consumed."""
        del hints, limits
        extracted = Extracted(parts=None)
        extracted.parts = self.read(source, extracted)
        return extracted
