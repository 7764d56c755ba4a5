"""The page, and the policy that lets a browser run its own script and nothing else."""

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

_INLINE = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)


@cache
def view_html() -> str:
    """Return the page: one file, for a browser and for a host of MCP Apps."""
    return files("fetchstash.server.ui").joinpath("view.html").read_text(encoding="utf-8")


@cache
def page_policy() -> str:
    """Return the Content Security Policy of the page: its own blocks by their hash (CSP3 §2.3)."""
    digests = {
        kind: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for kind, text in _INLINE.findall(view_html())
    }
    return (
        f"default-src 'none'; script-src 'sha256-{digests['script']}'; "
        f"style-src 'sha256-{digests['style']}'; img-src 'self' data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
