"""A store with very many artifacts, and one with a very long text."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from fetchstash.config import load
from fetchstash.store import Facts, open_store
from fetchstash.text.ranges import Ranges


@contextmanager
def quick_folder() -> Generator[Path]:
    """Yield a folder in memory where there is one: ten thousand fsyncs take minutes on a disk."""
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as name:
        yield Path(name)


async def put_many(folder: Path, run: str, count: int) -> None:
    """Put ``count`` small texts from a hundred hosts."""
    limits = {"store.folder": str(folder), "store.run": run, "store.max_artifacts": count + 10}
    store = await open_store(load(limits).store)
    kinds = ("html", "pdf", "json", "csv", "text")
    for number in range(count):
        raw, text = store.spool / f"raw{number}", store.spool / f"text{number}"
        raw.write_text(f"document {number}\n")
        text.write_text(f"document {number}\n")
        url = f"https://host{number % 100}.example/{number}"
        facts = Facts(content_kind=kinds[number % 5], final_url=url, title=f"document {number}")
        await store.put(raw, text, replace(facts, text_tokens=number), Ranges(), url=url)
    await store.aclose()


LINE = "{:09} the keeper of the lamp writes down the wind, the tide and the ships he sees.\n"


async def put_long(
    folder: Path, run: str, size: int, *, kind: str = "text", line: str = LINE, ends: str = ""
) -> str:
    """Put a text of about ``size`` bytes and return its reference.

    Its lines are ``line`` with their number; ``ends`` are the first and the last character of it.
    """
    store = await open_store(load({"store.folder": str(folder), "store.run": run}).store)
    raw, text = store.spool / "raw", store.spool / "text"
    with raw.open("w") as file:
        file.write(ends[:1])
        for number in range(1, size // len(line.format(0)) + 1):
            file.write(line.format(number))
        file.write(line.format(0).rstrip(",\n") + ends[1:] if ends else "")
    text.write_bytes(raw.read_bytes())
    kept = await store.put(raw, text, Facts(content_kind=kind, title=kind), Ranges())
    await store.aclose()
    return kept.artifact_ref
