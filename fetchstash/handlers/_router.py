"""Decide what bytes are by the bytes themselves, not by their label, and record the reason.

Binary signatures and the members of containers come first, for no text looks like them. Bytes
without one must pass the text test, or are unknown_binary. Of a text, a full structure (HTML, XML,
JSON, mail) outweighs a label of another family; else a label that says something specific, the
extension, and a structure that shows less surely decide, in this order.

    mime        a specific label, and the bytes agree
    magic       a signature or the members of a container, against the label or without one
    structure   how the text is built, or only that it is text
    extension   the end of the URL's path
    fallback    nothing: unknown_binary
"""

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fetchstash.errors import NoText
from fetchstash.handlers._charset import TextTest, decode_head, text_test
from fetchstash.handlers._contract import ContentKind, DecidedBy, Decision, Format, Head, Sniffed
from fetchstash.handlers._registry import GENERIC_MEDIA_TYPES, Formats, built_in
from fetchstash.handlers._sniffers import looks_like, printable
from fetchstash.handlers._zip import Zip

HEAD_BYTES = 64 * 1024
# A printable signature counts only where this much does not read as text.
TEXT_REACH = 4_096

OCTETS = "application/octet-stream"
# Kinds that are written in one syntax, and the names that say no more than that syntax.
_JSON_FAMILY: frozenset[ContentKind] = frozenset({"json", "jsonl", "notebook"})
_XML_FAMILY: frozenset[ContentKind] = frozenset({"xml", "image"})
_FAMILIES: dict[ContentKind, frozenset[ContentKind]] = {
    **dict.fromkeys(_JSON_FAMILY, _JSON_FAMILY),
    **dict.fromkeys(_XML_FAMILY, _XML_FAMILY),
}
_FAMILY_NAMES = frozenset(
    {"application/json", "text/json", "text/x-json", "application/xml", "text/xml"}
)

# Labels that are true of what is found inside, if not the whole truth.
_WIDE_LABELS = GENERIC_MEDIA_TYPES - {"text/plain"} | {
    "application/zip",
    "application/x-zip-compressed",
}

# token "/" token (RFC 9110, section 8.3.1), and the one parameter that matters here.
_MEDIA_TYPE = re.compile(r"\s*([\w.+*-]{1,100}/[\w.+*-]{1,100})\s*(?:;|,|$)")
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:+-]{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Claim:
    """What a label or a name says, and the format that it means (None: nothing specific)."""

    media_type: str
    format: Format | None
    evidence: str

    @property
    def kind(self) -> ContentKind | None:
        return self.format.kind if self.format else None

    @property
    def is_text(self) -> bool:
        """Whether it claims a format whose bytes are text."""
        return self.format is not None and self.format.bytes_are_text


def detect_content_kind(
    headers: Mapping[str, str],
    first_bytes: bytes,
    url: str,
    *,
    members: Sequence[str] | None = None,
    complete: bool = False,
    shadow: bool = False,
    formats: Formats | None = None,
) -> Decision:
    """Decide what a document is.

    ``headers`` are those of the response (only Content-Type counts), ``first_bytes`` the first of
    its body (64 KiB decide best), ``url`` the address or name that it came under. ``members`` are
    the names in a container where they are known, ``complete`` says that the body ends with
    ``first_bytes``. ``shadow`` lets the declared type alone decide, and notes the router's own
    decision. ``formats`` are those that it may be of: by default the built-in ones.
    """
    formats = formats or built_in()
    content_type = next((v for k, v in headers.items() if k.lower() == "content-type"), "")
    declared, charset = _MEDIA_TYPE.match(content_type), _CHARSET.search(content_type)
    media_type = declared[1].lower() if declared else ""
    named = formats.by_label(media_type)
    shown = named.declared_name(media_type) if named else ""
    label = _Claim(media_type, named, f"label {shown}")
    charset_label = charset[1].lower() if charset else ""
    routing = _Routing(label, _name(url, formats), charset_label, formats)
    decision = routing.decide(first_bytes, members, complete=complete)
    return routing.as_declared(decision, first_bytes) if shadow else decision


def route_file(
    path: Path,
    headers: Mapping[str, str],
    url: str,
    *,
    shadow: bool = False,
    formats: Formats | None = None,
) -> Decision:
    """Decide what the file ``path`` is. Blocking: some reads of a few KiB."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        complete = not file.read(1)
    members = members_of_file(path) if is_container(head) else None
    return detect_content_kind(
        headers, head, url, members=members, complete=complete, shadow=shadow, formats=formats
    )


@dataclass(frozen=True, slots=True)
class _Routing:
    """One decision: what is claimed of a document, and the formats that it may be of."""

    label: _Claim
    name: _Claim
    charset: str
    formats: Formats

    def decide(self, data: bytes, members: Sequence[str] | None, *, complete: bool) -> Decision:
        if not data:
            return self._by_claims(["empty"])
        text = text_test(data[:TEXT_REACH])
        signature = find_signature(Head(data, is_text=text is not None), self.formats)
        if is_container(data):
            members = members or members_in_head(data)
            signature = identify(data, members, self.formats)
        if signature:
            return self._by_signature(signature)
        text = text and text_test(data)
        if text is None:
            return self._by_claims_of_binary()
        decoded = decode_head(data[: 4 * TEXT_REACH], text.charset)
        whole = complete and len(data) <= 4 * TEXT_REACH and len(decoded) <= TEXT_REACH
        head = Head(data, is_text=True, text=decoded[:TEXT_REACH], whole=whole)
        sniffed = (sniff(head) for sniff in self.formats.text_sniffers)
        return self._by_text(text, decoded, next(filter(None, sniffed), None))

    def as_declared(self, decision: Decision, head: bytes) -> Decision:
        """Let the declared type alone decide, except that binary is never decoded as text."""
        shadow = f"{decision.kind} ({decision.media_type}, {decision.decided_by})"
        is_text = not head or (decision.decided_by != "magic" and text_test(head) is not None)
        kind: ContentKind = self.label.kind or ("text" if is_text else "unknown_binary")
        if self.label.is_text and not is_text:
            kind = "unknown_binary"
        return replace(
            decision,
            kind=kind,
            media_type=self.label.media_type or OCTETS,
            decided_by="mime" if kind == self.label.kind else "fallback",
            evidence=("declared type",),
            shadow=shadow,
        )

    def _by_signature(self, signature: Sniffed) -> Decision:
        kind, media_type = self.formats.kind(signature.media_type), signature.media_type
        evidence = [signature.evidence]
        if media_type == OLE_STORAGE:
            # Its streams are out of sight; label or name say which of the formats it is.
            claims = (c for c in (self.label, self.name) if c.format and c.format.ole_members)
            if claim := next(claims, None):
                kind, media_type = claim.kind or kind, claim.media_type
                evidence.append(f"called {media_type}")
        agrees = self.label.kind == kind
        mismatch = not agrees and self.label.media_type not in _WIDE_LABELS
        by: DecidedBy = "mime" if agrees else "magic"
        return self._decision(kind, media_type, by, evidence, mismatch=mismatch)

    def _by_claims(self, evidence: list[str]) -> Decision:
        """Decide on no bytes at all: nothing contradicts what they are called."""
        if self.label.kind:
            return self._decision(self.label.kind, self.label.media_type, "mime", evidence)
        if self.name.kind:
            return self._as_claimed(self.name, "extension", evidence)
        return self._decision("text", "text/plain", "fallback", evidence)

    def _by_claims_of_binary(self) -> Decision:
        """Decide on bytes that are neither text nor signed.

        Only a format without a signature can be what label or name say.
        """
        evidence = ["not text", "no known signature"]
        for claim in (self.label, self.name):
            if claim.format and not claim.is_text and not claim.format.signed:
                by: DecidedBy = "mime" if claim is self.label else "extension"
                return self._as_claimed(claim, by, evidence)
        label = self.label.media_type
        claims_more = self.label.kind is not None or label == "text/plain"
        media_type = OCTETS if claims_more or label in GENERIC_MEDIA_TYPES else label
        return self._decision(
            "unknown_binary", media_type, "fallback", evidence, mismatch=claims_more
        )

    def _by_text(self, text: TextTest, head: str, structure: Sniffed | None) -> Decision:
        evidence = [text.evidence, *([structure.evidence] if structure else [])]
        if structure and structure.full:
            return self._by_structure(structure, evidence)
        label, name = self.label, self.name
        if label.kind and label.is_text and looks_like(label.kind, head):
            return self._as_claimed(label, "mime", evidence)
        mismatch = label.kind is not None
        named = name.is_text and name.media_type != "text/plain"
        if name.kind and named and looks_like(name.kind, head):
            return self._as_claimed(name, "extension", evidence, mismatch=mismatch)
        if structure:
            kind, media_type = self.formats.kind(structure.media_type), structure.media_type
            return self._decision(kind, media_type, "structure", evidence, mismatch=mismatch)
        by: DecidedBy = "mime" if label.media_type == "text/plain" else "structure"
        return self._decision("text", "text/plain", by, evidence, mismatch=mismatch)

    def _by_structure(self, structure: Sniffed, evidence: list[str]) -> Decision:
        """Decide by a full structure.

        A label or a name of the same family may say more than that it is JSON or XML.
        """
        label, name = self.label, self.name
        kind = self.formats.kind(structure.media_type)
        family = _FAMILIES.get(kind, {kind})
        plain = structure.media_type in _FAMILY_NAMES
        agrees = label.is_text and label.kind in family
        if agrees and (plain or label.media_type not in _FAMILY_NAMES):
            return self._as_claimed(label, "mime", evidence)
        by: DecidedBy = "mime" if agrees else "structure"
        mismatch = label.kind is not None and not agrees
        says_more = name.is_text and name.kind in family and name.media_type not in _FAMILY_NAMES
        if plain and says_more:
            return self._as_claimed(name, by, evidence, mismatch=mismatch)
        return self._decision(kind, structure.media_type, by, evidence, mismatch=mismatch)

    def _as_claimed(
        self, claim: _Claim, by: DecidedBy, evidence: list[str], *, mismatch: bool = False
    ) -> Decision:
        kind = claim.kind or "unknown_binary"
        evidence = [*evidence, claim.evidence]
        return self._decision(kind, claim.media_type, by, evidence, mismatch=mismatch)

    def _decision(
        self,
        kind: ContentKind,
        media_type: str,
        by: DecidedBy,
        evidence: Sequence[str],
        *,
        mismatch: bool = False,
    ) -> Decision:
        declared = self.label.media_type
        return Decision(kind, media_type, declared, by, tuple(evidence), mismatch, self.charset)


def _name(url: str, formats: Formats) -> _Claim:
    """Return what the end of the URL's path stands for."""
    try:
        path = urlsplit(url).path
    except ValueError:
        path = ""
    file_name = unquote(path.rpartition("/")[2])
    extension = file_name.rpartition(".")[2].lower() if "." in file_name else file_name
    named = formats.by_name(file_name)
    return _Claim(named.media_types[0] if named else "", named, f"extension .{extension}")


def find_signature(head: Head, formats: Formats) -> Sniffed | None:
    """Return the binary format that a file begins as, None if none; containers are not opened.

    Of a text only its sniffers count: any text may begin with a signature of printable characters.
    """
    for sniff in formats.binary_sniffers:
        if sniffed := sniff(head):
            return sniffed
    if head.is_text:
        return None
    for at, magic, media_type in formats.signatures:
        if head.data.startswith(magic, at):
            place = f" at {at}" if at else ""
            return Sniffed(media_type, f"signature {printable(magic)}{place}")
    return None


ZIP_MAGICS = (b"PK\3\4", b"PK\5\6", b"PK\7\x08PK\3\4")
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

MAX_MEMBERS = 2_000  # looked at; what a container is shows among its first
OLE_STORAGE = "application/x-ole-storage"

# A name in an OLE directory: printable UTF-16 with a NUL behind.
_OLE_NAME = re.compile(rb"(?:[\x20-\x7e]\0){3,31}(?=\0\0)")

# Types of EPUB (OCF, section 4.3) and OpenDocument (part 2, section 3.3): the first member, stored
# as it is, holds the media type.
_MIMETYPE = re.compile(
    rb"PK\x03\x04.{22}\x08\0\0\0mimetype([a-z]+/[a-zA-Z0-9.+-]{3,100})(?=PK|\s|$)", re.DOTALL
)


def is_container(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` is a ZIP or an OLE container."""
    return head.startswith((*ZIP_MAGICS, OLE_MAGIC))


def members_in_head(head: bytes) -> tuple[str, ...]:
    """Return the names of members that the first bytes of a container show."""
    if head.startswith(OLE_MAGIC):
        return tuple(name.decode("utf-16-le") for name in _OLE_NAME.findall(head))
    return tuple(_local_names(head))


def members_of_file(path: Path) -> tuple[str, ...]:
    """Return the names of a container's first members, none if it is damaged. Blocking."""
    with path.open("rb") as file:
        head = file.read(512)
        if head.startswith(OLE_MAGIC):
            # The first sector of the directory names the streams of the root.
            shift, first = struct.unpack_from("<H16xI", head.ljust(512), 30)
            if shift not in {9, 12}:
                return ()
            file.seek((first + 1) << shift)
            return members_in_head(head + file.read(4_096))
    names: list[str] = []
    with suppress(NoText), Zip(path) as container:
        names += (entry.name for entry in islice(container.entries(), MAX_MEMBERS))
    return tuple(names)


def identify(head: bytes, members: Sequence[str], formats: Formats) -> Sniffed:
    """Return what a container is by the names of its members."""
    if head.startswith(OLE_MAGIC):
        for name, media_type in formats.ole_members:
            if name in members:
                return Sniffed(media_type, f"OLE member {name}")
        return Sniffed(OLE_STORAGE, "signature of OLE")
    member = _MIMETYPE.match(head[:256])
    media_type = member[1].decode("ascii") if member else ""
    if formats.by_media_type(media_type):
        return Sniffed(media_type, "ZIP member mimetype")
    for required, media_type in formats.zip_members:
        if all(any(member.startswith(name) for member in members) for name in required):
            return Sniffed(media_type, f"ZIP member {required[-1]}")
    return Sniffed("application/zip", "signature PK")


def _local_names(head: bytes) -> Iterator[str]:
    """Walk the local file headers as far as sizes are known (APPNOTE.TXT, section 4.3.7)."""
    at = 0
    for _ in range(MAX_MEMBERS):
        if head[at : at + 4] != b"PK\3\4" or len(head) < at + 30:
            # A streamed member hides its size: the next header is found by its mark.
            at = head.find(b"PK\3\4", at)
            if at < 0 or len(head) < at + 30:
                return
        size, name_length, extra_length = struct.unpack_from("<I4xHH", head, at + 18)
        yield head[at + 30 : at + 30 + name_length].decode("utf-8", "replace")
        at += 30 + name_length + extra_length + (size if size != 0xFFFFFFFF else 0)
