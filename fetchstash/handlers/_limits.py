"""The limits of an extraction: the settings extract.*."""

from dataclasses import dataclass, field
from typing import Literal

from fetchstash.text import PreviewLimits


@dataclass(frozen=True, slots=True)
class ExtractLimits:
    """Limits of one extraction: the settings extract.*, and context.* for previews.

    ``plugins`` names the packages whose formats are loaded. ``ocr`` "auto": pages without text are
    read when they are asked for, where the extra `ocr` is installed. ``confine`` "required": a
    worker that the system cannot confine reads nothing.
    """

    max_chars: int = 20_000_000
    pdf_max_pages: int = 5_000
    memory_mb: int = 1_024
    cpu_seconds: float = 30
    wall_seconds: float = 60
    plugins: tuple[str, ...] = ()
    ocr: Literal["auto", "off"] = "auto"
    confine: Literal["auto", "required"] = "auto"
    preview: PreviewLimits = field(default_factory=PreviewLimits)
