"""The limits of an extraction: the settings extract.*."""

from dataclasses import dataclass, field
from typing import Literal

from fetchstash.text import PreviewLimits, setting


@dataclass(frozen=True, slots=True)
class ExtractLimits:
    """Limits of one extraction: the settings extract.*, and context.* for previews.

    ``plugins`` names the packages whose formats are loaded. ``ocr`` "auto": pages without text are
    read when they are asked for, where the extra `ocr` is installed. ``confine`` "required": a
    worker that the system cannot confine reads nothing.
    """

    max_chars: int = setting(
        20_000_000,
        "Most characters extracted from one document; what is text already is kept whole",
        low=1,
    )
    pdf_max_pages: int = setting(5_000, "Pages of a PDF that are read", low=1)
    memory_mb: int = setting(1_024, "Memory of a worker, in MiB", low=64)
    cpu_seconds: float = setting(30, "CPU seconds of one extraction", low=0.1)
    wall_seconds: float = setting(60, "Seconds of one extraction", low=0.1)
    plugins: tuple[str, ...] = setting(
        (), "Installed packages whose formats are loaded, in the worker alone"
    )
    ocr: Literal["auto", "off"] = setting(
        "auto",
        "auto: pages without text are read when they are asked for, where the extra ocr is "
        "installed; off: never",
    )
    confine: Literal["auto", "required"] = setting(
        "auto",
        "required: a worker that this system cannot confine reads nothing (the default of "
        "serve --http); auto: serve says so once at its start",
    )
    preview: PreviewLimits = field(default_factory=PreviewLimits)
