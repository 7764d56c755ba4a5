"""The facts that are the store's to say, filled in the same way by every store."""

import base64
import hashlib
import re
import secrets
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fetchstash.errors import Busy
from fetchstash.store._contract import REF_PREFIX, Facts
from fetchstash.store._stride import StrideIndex

STORE_FACTS = (
    "artifact_ref", "path", "size_bytes", "sha256", "created_at", "expires_at", "pinned",
    "extracted_chars", "text_bytes", "text_lines",
)  # fmt: skip


_REF = re.compile(REF_PREFIX + "[a-z2-7]{26}")


def stamp(
    facts: Facts,
    sha256: str,
    size_bytes: int,
    text: StrideIndex | None,
    *,
    now: float,
    max_age_days: float,
    path: str | None = None,
) -> Facts:
    """Return the facts of a new artifact: a fresh reference, and what was measured of its bytes.

    ``now`` is seconds since 1970.
    """
    created = datetime.fromtimestamp(now, UTC)
    return replace(
        facts,
        artifact_ref=new_ref(),
        path=path,
        size_bytes=size_bytes,
        sha256=sha256,
        created_at=created,
        expires_at=created + timedelta(days=max_age_days),
        extracted_chars=text.chars if text else facts.extracted_chars,
        text_bytes=text.size if text else None,
        text_lines=text.lines if text else None,
        pinned=False,
    )


def new_facts(facts: Facts, raw: Path, text: Path | None, *, max_age_days: float = 7) -> Facts:
    """Return the facts of a new artifact of these two files, as ``stamp`` does. Blocks."""
    data = raw.read_bytes()
    index = StrideIndex.of(text.read_bytes()) if text else None
    sha256 = hashlib.sha256(data).hexdigest()
    return stamp(facts, sha256, len(data), index, now=time.time(), max_age_days=max_age_days)


def restamp(facts: Facts, kept: Facts, text: StrideIndex) -> Facts:
    """Return ``facts`` with the store's own as in ``kept``, but for those of a new text."""
    return replace(
        keep_store_facts(facts, kept),
        extracted_chars=text.chars,
        text_bytes=text.size,
        text_lines=text.lines,
    )


def refuse_changed(kept: Facts, known: Facts) -> None:
    """Raise Busy unless the document's facts are still those that a new text was made from."""
    if kept.document_facts() != known.document_facts():
        what = f"The text of {kept.artifact_ref} was replaced meanwhile."
        raise Busy(what, "Read it again.")


def is_ref(name: str) -> bool:
    """Return whether a name has the form of a reference."""
    return _REF.fullmatch(name) is not None


def new_ref() -> str:
    """Return a reference that nobody can guess: 128 random bits."""
    return REF_PREFIX + base64.b32encode(secrets.token_bytes(16)).decode().rstrip("=").lower()


def keep_store_facts(facts: Facts, kept: Facts) -> Facts:
    """Return ``facts`` with the store's own facts as they are in ``kept``."""
    return replace(facts, **{name: getattr(kept, name) for name in STORE_FACTS})
