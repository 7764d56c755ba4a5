"""Facts that a tool result states of its artifact or of its own bytes.

The client imports no handler, so the kinds of content that it reads and writes stand here.
"""

import re
from dataclasses import dataclass

HEAD_CHARS = 4_000
"""How much of a result is read: facts stand at its head."""

TEXT_KIND = "text"
HEAVY_KINDS = frozenset({"pdf", "office_doc", "unknown_binary"})
"""Contents of which a stub loses least: their text can be read again from the artifact."""

_REF = re.compile(r"\bart_[a-z2-7]{26}\b")
_KIND = re.compile(r'"content_kind"\s*:\s*"([a-z_]{2,20})"')
_MEDIA_TYPE = re.compile(
    r'"(?:media_type|mimeType|mime_type)"\s*:\s*"([\w.+-]{1,60}/[\w.+-]{1,80})"'
)
_SIZE = re.compile(r'"size_bytes"\s*:\s*(\d{1,15})')
_URL = re.compile(r'"(?:source_url|final_url|url)"\s*:\s*"([^"\s\\]{1,200})"')
_FENCE = re.compile(r'<untrusted-[0-9a-f]+ source="([^"\s]{1,200})"')
_FACTS_LINE = re.compile(r"\[Fetched ([\w ]{1,20}?) (?:artifact|page|image): [^\n]{1,300}?\]")
_KIND_OF_WORD = {
    "PDF": "pdf", "DOCX": "office_doc", "PPTX": "office_doc", "ODT": "office_doc",
    "ODP": "office_doc", "EPUB": "office_doc",
    "XLSX": "spreadsheet", "HTML": "html",
}  # fmt: skip
_KIND_OF_TYPE = {"application/pdf": "pdf", "application/octet-stream": "unknown_binary"}
# Bytes that a careless tool decoded as text, or sent as base64: what PDF (ISO 32000-2, 7.5.2) and
# ZIP (APPNOTE, 4.3.7) begin with.
_SIGNATURES = (
    ("%PDF-", "pdf"),
    ("JVBERi0", "pdf"),
    ("PK\x03\x04", "office_doc"),
    ("UEsDB", "office_doc"),
)
_NO_TEXT = re.compile("[\ufffd\x00-\x08\x0e-\x1a\x1c-\x1f\x80-\x9f]")


@dataclass(frozen=True, slots=True)
class ArtifactFacts:
    """Facts of a result's content; "" and None where it states none; ``line`` is its facts line."""

    artifact_ref: str = ""
    content_kind: str = ""
    media_type: str = ""
    size_bytes: int | None = None
    source_url: str = ""
    line: str = ""


def facts_of(result: str) -> ArtifactFacts:
    """Read the facts of a tool result: fetchstash's own texts, structured facts, or plain bytes."""
    head = result[:HEAD_CHARS]
    fence = _FENCE.search(head)
    # Text inside the fence was fetched and may pretend to be facts.
    outside = head[: fence.start()] if fence else head
    kind, media_type, size, url, line = (
        pattern.search(outside) for pattern in (_KIND, _MEDIA_TYPE, _SIZE, _URL, _FACTS_LINE)
    )
    refs = set(_REF.findall(outside))  # a list of several artifacts is none of them
    media = media_type[1] if media_type else ""
    by_word = _KIND_OF_WORD.get(line[1].split()[0], "") if line else ""
    return ArtifactFacts(
        artifact_ref=refs.pop() if len(refs) == 1 else "",
        content_kind=kind[1] if kind else by_word or _by_bytes(head, media),
        media_type=media,
        size_bytes=int(size[1]) if size else None,
        source_url=url[1] if url else fence[1] if fence else "",
        line=line[0].strip("[]") if line else "",
    )


def _by_bytes(head: str, media_type: str) -> str:
    start = head.lstrip()[:400]
    for signature, kind in _SIGNATURES:
        # At the beginning, or as the beginning of a value in JSON.
        if start.startswith(signature) or f'"{signature}' in start:
            return kind
    if len(_NO_TEXT.findall(head)) * 10 > len(head):
        return "unknown_binary"
    return _KIND_OF_TYPE.get(media_type, "")
