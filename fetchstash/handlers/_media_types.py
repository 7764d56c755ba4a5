"""The media types of text, read out of the declarations of the formats."""

from collections.abc import Mapping

from fetchstash.handlers._contract import ContentKind
from fetchstash.handlers._registry import built_in

TEXT_MEDIA_TYPES: Mapping[str, ContentKind] = built_in().text_media_types()
"""Media types whose bytes are text, and the kind of content that each names.

Beyond the table: every other ``text/*`` is "text" (``text/x-*`` is "code"), and the structured
suffixes of RFC 6839 and RFC 9512 decide the rest: ``+json`` is "json", ``+xml`` "xml", ``+yaml``
"yaml", ``+json-seq`` (RFC 8091) "jsonl".
"""
