"""An Extractor without worker processes, for quick tests of what stands around the workers."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from fetchstash.handlers import (
    Decision,
    Extraction,
    ExtractLimits,
    Hints,
    PartRequest,
    PartText,
    Picture,
)
from fetchstash.handlers._registry import format_of, handler_of, read_part
from fetchstash.handlers._worker import _answers, _child
from fetchstash.handlers._worker._protocol import Values


class InProcess:
    """Reads documents in this process: what a worker writes and reports is checked the same."""

    def __init__(self, limits: ExtractLimits, **_: Any) -> None:
        self._limits = limits

    def prepare(self) -> None:
        pass

    async def extract(
        self, source: Path, decision: Decision, hints: Hints, folder: Path, **_: Any
    ) -> Extraction:
        handler, frames = handler_of(format_of(decision)), list[dict[str, Any]]()
        hints = replace(hints, media_type=decision.media_type)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            text = Path(file.name)
        extracted = handler.extract(source, hints, self._limits)
        with source.open("rb") as document:
            _child.extract(extracted, text, self._limits.max_chars, frames.append, document)
        pieces = _answers.Pieces(most_bytes=4 * self._limits.max_chars, handler=handler.name)
        for frame in frames[:-1]:
            pieces.add(frame)
        done, lines = Values(frames[-1]["done"]), _answers.measure(text, pieces, source)
        return _answers.extraction(text, done, decision, pieces, lines)

    async def part(self, decision: Decision, request: PartRequest) -> PartText | Picture:
        return read_part(handler_of(format_of(decision)), request)

    def end_idle(self) -> None:
        pass

    async def aclose(self) -> None:
        pass
