"""What are these bytes? Decided by what they are, not by what they are called, and with the reason on record.

Binary signatures and the members of containers come first, for no text looks like them. What has
none must pass the text test, or it is unknown_binary. Of a text, a full structure (HTML, XML, JSON,
mail) outweighs a label of another family; else a label that says something specific, the extension,
and a structure that shows less surely decide, in this order.

    mime        a specific label, and the bytes agree
    magic       a signature or the members of a container, against the label or without one
    structure   how the text is built, or only that it is text
    extension   the end of the URL's path
    fallback    nothing: unknown_binary
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fetchstash.handlers._contract import TEXT_KINDS, ContentKind, DecidedBy, Decision
from fetchstash.handlers._languages import language_of_name
from fetchstash.handlers._routing import _containers
from fetchstash.handlers._routing._media_types import (
    EXTENSIONS,
    GENERIC_MEDIA_TYPES,
    SIGNED_MEDIA_TYPES,
    kind_of,
)
from fetchstash.handlers._routing._signatures import Signature, find_signature
from fetchstash.handlers._routing._structure import Structure, find_structure, looks_like
from fetchstash.handlers._routing._text_test import TextTest, decode_head, text_test

HEAD_BYTES = 64 * 1024
# A printable signature counts only where this much does not read as text.
TEXT_REACH = 4_096

OCTETS = "application/octet-stream"
_READ_AS_TEXT: frozenset[ContentKind] = frozenset({*TEXT_KINDS, "html", "notebook", "email"})
# Kinds that are written in one syntax, and the names that say no more than that syntax.
_JSON_FAMILY: frozenset[ContentKind] = frozenset({"json", "jsonl", "notebook"})
_XML_FAMILY: frozenset[ContentKind] = frozenset({"xml", "image"})
_FAMILIES: dict[ContentKind, frozenset[ContentKind]] = {
    "json": _JSON_FAMILY, "jsonl": _JSON_FAMILY, "notebook": _JSON_FAMILY, "xml": _XML_FAMILY, "image": _XML_FAMILY,
}  # fmt: skip
_FAMILY_NAMES = frozenset(
    {"application/json", "text/json", "text/x-json", "application/xml", "text/xml"}
)

# Labels that are true of what is found inside, if not the whole truth.
_WIDE_LABELS = GENERIC_MEDIA_TYPES - {"text/plain"} | {
    "application/zip",
    "application/x-zip-compressed",
}
_OLE_TYPES = {
    "application/msword",
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
    "application/vnd.ms-outlook",
}


@dataclass(frozen=True, slots=True)
class _Label:
    """What is claimed: the declared media type, its charset, and what kind of content it names (None: nothing specific)."""

    media_type: str
    charset: str
    kind: ContentKind | None


@dataclass(frozen=True, slots=True)
class _Name:
    """What the end of the URL's path stands for (None: nothing known)."""

    extension: str
    kind: ContentKind | None
    media_type: str


def detect_content_kind(
    headers: Mapping[str, str],
    first_bytes: bytes,
    url: str,
    *,
    members: Sequence[str] | None = None,
    complete: bool = False,
    shadow: bool = False,
) -> Decision:
    """Decide what a document is.

    ``headers`` are those of the response (only Content-Type counts), ``first_bytes`` the first of
    its body (64 KiB decide best), ``url`` the address or name that it came under. ``members`` are
    the names in a container where they are known, ``complete`` says that the body ends with
    ``first_bytes``. ``shadow`` lets the declared type alone decide, and notes the router's own
    decision.
    """
    label = _label(headers)
    decision = _decide(label, first_bytes, _name(url), members=members, complete=complete)
    return _as_declared(label, decision, first_bytes) if shadow else decision


def route_file(
    path: Path, headers: Mapping[str, str], url: str, *, shadow: bool = False
) -> Decision:
    """Decide what the file ``path`` is; containers are asked for their members. Blocking: some reads of a few KiB."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        complete = not file.read(1)
    members = _containers.members_of_file(path) if _containers.is_container(head) else None
    return detect_content_kind(
        headers, head, url, members=members, complete=complete, shadow=shadow
    )


def _decide(
    label: _Label, head: bytes, name: _Name, *, members: Sequence[str] | None, complete: bool
) -> Decision:
    if not head:
        return _empty(label, name)
    text = text_test(head[:TEXT_REACH])
    signature = find_signature(head, is_text=text is not None)
    if _containers.is_container(head):
        signature = _containers.identify(head, members or _containers.members_in_head(head))
    if signature:
        return _by_signature(label, name, signature)
    text = text and text_test(head)
    if text is None:
        return _by_name_of_binary(label, name)
    decoded = decode_head(head[: 4 * TEXT_REACH], text.charset)
    return _by_text(
        label,
        name,
        text,
        decoded,
        find_structure(decoded, complete=complete and len(head) <= 4 * TEXT_REACH),
    )


def _by_signature(label: _Label, name: _Name, signature: Signature) -> Decision:
    kind, media_type, evidence = signature.kind, signature.media_type, [signature.evidence]
    if media_type == "application/x-ole-storage":
        # Its streams are out of sight; the label or the name say which of the old office formats it
        # is.
        claim = label if label.media_type in _OLE_TYPES else name
        if claim.kind and claim.media_type in _OLE_TYPES:
            kind, media_type = claim.kind, claim.media_type
            evidence.append(f"called {media_type}")
    agrees = label.kind == kind and (kind != "unknown_binary" or label.media_type == media_type)
    contradicted = not agrees and label.media_type not in _WIDE_LABELS
    return _decision(
        label, kind, media_type, "mime" if agrees else "magic", evidence, mismatch=contradicted
    )


def _by_name_of_binary(label: _Label, name: _Name) -> Decision:
    """Decide on bytes that are neither text nor signed: only a format without a signature can be what label or name say."""
    evidence = ["not text", "no known signature"]
    if (
        label.kind
        and label.media_type not in SIGNED_MEDIA_TYPES
        and label.kind not in _READ_AS_TEXT
    ):
        return _decision(
            label, label.kind, label.media_type, "mime", [*evidence, f"label {label.media_type}"]
        )
    if name.kind and name.media_type not in SIGNED_MEDIA_TYPES and name.kind not in _READ_AS_TEXT:
        return _decision(
            label,
            name.kind,
            name.media_type,
            "extension",
            [*evidence, f"extension .{name.extension}"],
        )
    claims_more = label.kind is not None or label.media_type == "text/plain"
    media_type = (
        OCTETS if claims_more or label.media_type in GENERIC_MEDIA_TYPES else label.media_type
    )
    return _decision(
        label, "unknown_binary", media_type, "fallback", evidence, mismatch=claims_more
    )


def _by_text(
    label: _Label, name: _Name, text: TextTest, head: str, structure: Structure | None
) -> Decision:
    evidence = [text.evidence, *([structure.evidence] if structure else [])]
    if structure and structure.full:
        return _by_structure(label, name, structure, evidence)
    if label.kind and _claims_text(label) and looks_like(label.kind, head):
        return _decision(
            label, label.kind, label.media_type, "mime", [*evidence, f"label {label.media_type}"]
        )
    mismatch = label.kind is not None
    if (
        name.kind
        and _claims_text(name)
        and name.media_type != "text/plain"
        and looks_like(name.kind, head)
    ):
        return _decision(
            label,
            name.kind,
            name.media_type,
            "extension",
            [*evidence, f"extension .{name.extension}"],
            mismatch=mismatch,
        )
    if structure:
        return _decision(
            label, structure.kind, structure.media_type, "structure", evidence, mismatch=mismatch
        )
    return _decision(
        label,
        "text",
        "text/plain",
        "mime" if label.media_type == "text/plain" else "structure",
        evidence,
        mismatch=mismatch,
    )


def _by_structure(
    label: _Label, name: _Name, structure: Structure, evidence: Sequence[str]
) -> Decision:
    """Decide by a full structure, unless a label or a name of the same family says more than that it is JSON or XML."""
    family = _FAMILIES.get(structure.kind, {structure.kind})
    plain = structure.media_type in _FAMILY_NAMES
    if (
        label.kind
        and _claims_text(label)
        and label.kind in family
        and (plain or label.media_type not in _FAMILY_NAMES)
    ):
        return _decision(
            label, label.kind, label.media_type, "mime", [*evidence, f"label {label.media_type}"]
        )
    agrees = label.kind in family and _claims_text(label)
    by: DecidedBy = "mime" if agrees else "structure"
    mismatch = label.kind is not None and not agrees
    if (
        plain
        and name.kind
        and _claims_text(name)
        and name.kind in family
        and name.media_type not in _FAMILY_NAMES
    ):
        return _decision(
            label,
            name.kind,
            name.media_type,
            by,
            [*evidence, f"extension .{name.extension}"],
            mismatch=mismatch,
        )
    return _decision(label, structure.kind, structure.media_type, by, evidence, mismatch=mismatch)


def _claims_text(claim: _Label | _Name) -> bool:
    """Return whether a label or a name stands for a kind that is read as text; of images only SVG is."""
    return claim.kind in _READ_AS_TEXT or claim.media_type == "image/svg+xml"


def _empty(label: _Label, name: _Name) -> Decision:
    """Decide on no bytes at all: nothing contradicts what they are called."""
    if label.kind:
        return _decision(label, label.kind, label.media_type, "mime", ["empty"])
    if name.kind:
        return _decision(
            label,
            name.kind,
            name.media_type,
            "extension",
            ["empty", f"extension .{name.extension}"],
        )
    return _decision(label, "text", "text/plain", "fallback", ["empty"])


def _as_declared(label: _Label, decision: Decision, head: bytes) -> Decision:
    """Let the declared type alone decide, but that binary is never decoded as text."""
    shadow = f"{decision.kind} ({decision.media_type}, {decision.decided_by})"
    is_text = not head or (decision.decided_by != "magic" and text_test(head) is not None)
    kind: ContentKind = label.kind or ("text" if is_text else "unknown_binary")
    if kind in _READ_AS_TEXT and not is_text:
        kind = "unknown_binary"
    by: DecidedBy = "mime" if kind == label.kind else "fallback"
    return replace(
        decision,
        kind=kind,
        media_type=label.media_type or OCTETS,
        decided_by=by,
        evidence=("declared type",),
        shadow=shadow,
    )


def _decision(
    label: _Label,
    kind: ContentKind,
    media_type: str,
    by: DecidedBy,
    evidence: Sequence[str],
    *,
    mismatch: bool = False,
) -> Decision:
    return Decision(
        kind, media_type, label.media_type, by, tuple(evidence), mismatch, label.charset
    )


# token "/" token (RFC 9110, section 8.3.1), and the one parameter that matters here.
_MEDIA_TYPE = re.compile(r"\s*([\w.+*-]{1,100}/[\w.+*-]{1,100})\s*(?:;|,|$)")
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:+-]{1,40})", re.IGNORECASE)


def _label(headers: Mapping[str, str]) -> _Label:
    value = next((v for k, v in headers.items() if k.lower() == "content-type"), "")
    found, charset = _MEDIA_TYPE.match(value), _CHARSET.search(value)
    media_type = found[1].lower() if found else ""
    return _Label(media_type, charset[1].lower() if charset else "", kind_of(media_type))


def _name(url: str) -> _Name:
    try:
        path = urlsplit(url).path
    except ValueError:
        path = ""
    file_name = unquote(path.rpartition("/")[2])
    extension = file_name.rpartition(".")[2].lower() if "." in file_name else ""
    language = language_of_name(file_name)
    if language:
        return _Name(extension or file_name, "code", f"text/x-{language.replace(' ', '-')}")
    kind, media_type = EXTENSIONS.get(extension, (None, ""))
    return _Name(extension, kind, media_type)
