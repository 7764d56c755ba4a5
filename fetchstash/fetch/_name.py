"""Name a download: by its Content-Disposition header, or by its URL."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from urllib.parse import unquote, unquote_to_bytes

from fetchstash.fetch._mask import mask_url
from fetchstash.fetch._url import Target
from fetchstash.text.hygiene import clean_line

_MAX_CHARS = 200
_PARAMETER = re.compile(r""";\s*(filename\*?)\s*=\s*("(?:\\.|[^"\\])*"|[^;]*)""", re.IGNORECASE)
_EXTENDED = re.compile(r"\s*([\w-]+)'[\w-]*'(.*)", re.ASCII | re.DOTALL)  # RFC 8187, section 3.2.1
_NOT_IN_NAMES = re.compile(r'[<>:"|?*\x00-\x1f]')


def file_name(headers: Mapping[str, str], target: Target) -> str:
    """Return a file name of at most 200 characters, without folders and control characters.

    Taken from Content-Disposition (RFC 6266, the extended form of RFC 8187 first), else from the
    URL's path, else from the host. Never ``.`` or ``..``.
    """
    from_header = disposition_name(headers.get("content-disposition", ""))
    from_path = unquote(mask_url(target.path.partition("?")[0]), errors="replace")
    return safe_name(from_header) or safe_name(PurePosixPath(from_path).name) or target.host


def disposition_name(header: str) -> str:
    """Return the file name in a Content-Disposition header, unchanged, or ""."""
    parameters: dict[str, str] = {}
    for match in _PARAMETER.finditer(header):
        value = match[2].strip()
        if value.startswith('"'):
            value = re.sub(r"\\(.)", r"\1", value[1:-1])
        parameters.setdefault(match[1].lower(), value)
    return _extended(parameters.get("filename*", "")) or parameters.get("filename", "")


def safe_name(name: str) -> str:
    """Return ``name`` without folders and characters that file systems forbid; may be ""."""
    last = re.split(r"[/\\]", clean_line(name).rstrip("/\\"))[-1]
    plain = _NOT_IN_NAMES.sub("_", last).strip(" .") if last.strip(". ") else ""
    if len(plain) <= _MAX_CHARS:
        return plain
    suffix = PurePosixPath(plain).suffix[:20]
    return plain[: _MAX_CHARS - len(suffix)] + suffix


def _extended(value: str) -> str:
    match = _EXTENDED.fullmatch(value)
    if match is None or match[1].lower() not in {"utf-8", "iso-8859-1"}:
        return ""
    return unquote_to_bytes(match[2]).decode(match[1].lower(), "replace")
