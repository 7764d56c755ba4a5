"""The media types of text, read out of the declarations of the formats."""

from collections.abc import Mapping
from types import MappingProxyType

from fetchstash.handlers._contract import ContentKind
from fetchstash.handlers._registry import built_in

TEXT_MEDIA_TYPES: Mapping[str, ContentKind] = MappingProxyType(
    {
        media_type: declared.kind
        for declared in built_in().all
        if declared.bytes_are_text
        for media_type in declared.media_types
        if "*" not in media_type
    }
)
"""Media types whose bytes are text, and the kind of content that each names.

Beyond the table: every other ``text/*`` is "text" (``text/x-*`` is "code"), and the structured
suffixes of RFC 6839 and RFC 9512 decide the rest: ``+json`` is "json", ``+xml`` "xml", ``+yaml``
"yaml", ``+json-seq`` (RFC 8091) "jsonl".
"""
