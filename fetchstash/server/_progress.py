"""How far a call is, in numbers and in words, as MCP reports it: the number never goes back."""

import time
from collections.abc import Callable

from fetchstash.server.tools import Reports

_SECONDS = 0.1
_UNITS = ((2**30, "GB"), (2**20, "MB"), (2**10, "KB"), (1, "bytes"))

Send = Callable[[float, float | None, str], None]


def reports_to(send: Send) -> Reports:
    """Return who is told by a call; ``send`` takes progress, total and message.

    Pages count on from the bytes, because one call has one progress.
    """
    before, sent_at, last = 0, 0.0, 0

    def report(progress: int, total: int | None, message: str) -> None:
        nonlocal last
        if progress > last:
            last = progress
            send(progress, total, message)

    def received(done: int, total: int | None) -> None:
        nonlocal before
        before = done
        report(done, total, f"received {amount(done, total)}")

    def read(done: int, total: int | None) -> None:
        nonlocal sent_at
        now = time.monotonic()
        if now - sent_at >= _SECONDS or done == total:
            sent_at = now
            of = f" of {total}" if total else ""
            report(before + done, before + total if total else None, f"reading page {done}{of}")

    def fetched(done: int, total: int | None) -> None:
        report(done, total, f"fetched {done} of {total} URLs")

    return Reports(received, read, fetched)


def amount(done: int, total: int | None) -> str:
    """Return bytes in the unit of the whole: "3.4 of 16 MB", "812 KB"."""
    scale, unit = next(pair for pair in _UNITS if (total or done) >= pair[0] or pair[0] == 1)
    of = f" of {_number(total / scale)}" if total else ""
    return f"{_number(done / scale)}{of} {unit}"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"
