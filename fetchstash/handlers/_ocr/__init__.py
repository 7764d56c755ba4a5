"""Text of pictures by OCR: scanned pages, photos, screenshots (extra `ocr`).

The models are those that come with `rapidocr`; nothing is downloaded. Pages are read in a worker of
their own, because the models need more memory than a document may.
"""

from dataclasses import replace
from importlib.util import find_spec

from fetchstash.handlers._limits import ExtractLimits

LIBRARIES = ("rapidocr", "onnxruntime")
MEMORY_MB = 3_072
"""Address space of the worker: 1.9 GB were taken for a dense page, 1.0 GB of them resident."""
CPU_SECONDS = 120
WALL_SECONDS = 120
"""For one page: the densest took 15 s of CPU. The call's own deadline mostly ends it sooner."""


def ocr_is_installed() -> bool:
    """Return whether the libraries of the extra `ocr` are there."""
    return all(find_spec(name) is not None for name in LIBRARIES)


def ocr_limits(limits: ExtractLimits) -> ExtractLimits:
    """Return the limits of a worker that reads pictures."""
    return replace(
        limits,
        memory_mb=max(limits.memory_mb, MEMORY_MB),
        cpu_seconds=CPU_SECONDS,
        wall_seconds=WALL_SECONDS,
        plugins=(),
    )
