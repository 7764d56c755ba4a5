"""Open a copy of a kept file in the program that the system has for its kind."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fetchstash.errors import BadArgument, Call

if TYPE_CHECKING:
    from fetchstash.store import Facts

_KEPT_SECONDS = 86_400
"""A program may read the copy long after it was started; older copies are removed."""

_REFUSAL_SECONDS = 1
"""In so long xdg-open says that it found no program."""

_SAVE = "Save it with {}."

# The extension is ours, by what the document is, and never that of its name: what a system would
# run (a script, a shortcut, a program) is opened as text or not at all.
_BY_MEDIA_TYPE = {
    "text/html": ".html", "application/xhtml+xml": ".html", "application/json": ".json",
    "application/x-ipynb+json": ".txt",
    "text/xml": ".xml", "application/xml": ".xml", "text/csv": ".csv", "application/pdf": ".pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
    "application/msword": ".doc", "application/vnd.ms-excel": ".xls",
    "application/vnd.ms-powerpoint": ".ppt", "application/rtf": ".rtf", "text/rtf": ".rtf",
    "application/vnd.oasis.opendocument.text": ".odt",
    "application/vnd.oasis.opendocument.spreadsheet": ".ods",
    "application/vnd.oasis.opendocument.presentation": ".odp",
    "application/epub+zip": ".epub", "message/rfc822": ".eml", "text/calendar": ".ics",
    "text/tab-separated-values": ".tsv", "application/zip": ".zip", "image/svg+xml": ".svg",
    "image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp",
    "image/avif": ".avif", "image/tiff": ".tif", "image/bmp": ".bmp", "audio/mpeg": ".mp3",
    "audio/flac": ".flac", "audio/ogg": ".ogg", "audio/wav": ".wav", "audio/x-wav": ".wav",
    "video/mp4": ".mp4", "video/webm": ".webm", "video/quicktime": ".mov",
}  # fmt: skip


def extension(facts: "Facts") -> str:
    """Return the extension that a document is opened under, "" for what is not opened."""
    from fetchstash.stash import described  # noqa: PLC0415 - heavy

    is_text = described(facts).is_text or facts.media_type.startswith("text/")
    return _BY_MEDIA_TYPE.get(facts.media_type, ".txt" if is_text else "")


def open_copy(facts: "Facts", source: Path) -> Path:
    """Open a read-only copy of a document and return its path. Raises BadArgument."""
    ref = facts.artifact_ref
    ending = extension(facts)
    save = Call("export", {"ref": ref, "target": "FILE", "raw": True})
    if not ending:
        what = f"{facts.media_type} is nothing that is opened unseen: it may be a program."
        raise BadArgument(what, _SAVE, save)
    opener = _opener()
    if not opener and sys.platform != "win32":
        raise BadArgument("This system has no xdg-open.", _SAVE, save)
    folder = _folder()
    copy = folder / f"{ref}{ending}"
    if not copy.exists():
        handle, partial = tempfile.mkstemp(dir=folder)
        os.close(handle)
        shutil.copyfile(source, partial)
        Path(partial).chmod(0o400)
        Path(partial).replace(copy)
    if sys.platform == "win32":
        os.startfile(copy)  # noqa: S606 - the system picks the program
    else:
        # The program lives on its own: not ended with this terminal, and silent in it.
        process = subprocess.Popen(  # noqa: S603 - our own extension, in a folder of ours
            [*opener, str(copy)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with suppress(subprocess.TimeoutExpired):  # it stays for as long as its program
            if process.wait(_REFUSAL_SECONDS):
                raise BadArgument(f"No program of this system opens {ending}.", _SAVE, save)
    return copy


def _opener() -> list[str]:
    path = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
    return [path] if path else []


def _folder() -> Path:
    """Return a private folder for the copies, without those of yesterday."""
    import platformdirs  # noqa: PLC0415 - only where it is needed

    folder = platformdirs.user_cache_path("fetchstash", appauthor=False) / "open"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in folder.iterdir():
        if time.time() - old.stat().st_mtime > _KEPT_SECONDS:
            old.unlink(missing_ok=True)
    return folder
