"""How a host starts this installation of fetchstash."""

import json
import os
import shutil
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname


def start_command() -> list[str]:
    """Return the command line that starts the server, by absolute paths.

    A host that was started from a desktop has not the PATH of a terminal.
    """
    return [*_program(), "serve"]


def _program() -> list[str]:
    root = Path(__file__).parents[3]
    run = root / "scripts" / ("run.cmd" if os.name == "nt" else "run")
    if run.exists() and root in Path(sys.prefix).parents:
        return [str(run)]
    uvx = shutil.which("uvx")
    if uvx and _is_temporary(Path(sys.prefix)):
        source = _source()
        return [uvx, *(["--from", source] if source else []), "fetchstash"]
    beside = shutil.which("fetchstash", path=sysconfig.get_path("scripts"))
    return [beside or shutil.which("fetchstash") or str(Path(sys.argv[0]).absolute())]


def _is_temporary(prefix: Path) -> bool:
    """Return whether an environment is uvx's, which `uv cache clean` deletes."""
    return any(part.startswith(("archive-v", "environments-v")) for part in prefix.parts)


def _source() -> str:
    """Return where the package was installed from, "" for a registry (PEP 610)."""
    try:
        text = distribution("fetchstash").read_text("direct_url.json") or "{}"
    except PackageNotFoundError:
        return ""
    origin: dict[str, Any] = json.loads(text)
    url = str(origin.get("url", ""))
    if vcs := origin.get("vcs_info"):
        return f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    parts = urlsplit(url)
    return url2pathname(parts.path) if parts.scheme == "file" else url
