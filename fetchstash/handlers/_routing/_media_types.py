"""Media types, extensions, and what kind of content each names. Tables; the router weighs them."""

from collections.abc import Mapping
from types import MappingProxyType

from fetchstash.handlers._contract import ContentKind

GENERIC_MEDIA_TYPES = frozenset({
    "", "text/plain", "application/octet-stream", "binary/octet-stream", "application/binary", "application/download",
    "application/x-download", "application/force-download", "application/unknown", "application/x-unknown", "content/unknown",
    "unknown/unknown", "*/*", "application/x-binary", "application/x-octet-stream",
})  # fmt: skip
"""Labels that servers use for want of a better one (WHATWG MIME Sniffing, section 7, has some of them)."""

TEXT_MEDIA_TYPES: Mapping[str, ContentKind] = MappingProxyType({
    "text/plain": "text",
    "text/calendar": "text",
    "text/vcard": "text",
    "text/css": "code",
    "text/ecmascript": "code",
    "text/javascript": "code",
    "text/x-diff": "code",
    "text/x-patch": "code",
    "text/csv": "csv",
    "text/tab-separated-values": "csv",
    "text/html": "html",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/x-web-markdown": "markdown",
    "text/xml": "xml",
    "text/yaml": "yaml",
    "text/x-yaml": "yaml",
    "text/json": "json",
    "text/x-json": "json",
    "text/rtf": "office_doc",
    "application/csv": "csv",
    "application/ecmascript": "code",
    "application/graphql": "code",
    "application/hjson": "text",
    "application/javascript": "code",
    "application/json": "json",
    "application/json5": "code",
    "application/jsonl": "jsonl",
    "application/json-seq": "jsonl",
    "application/jsonlines": "jsonl",
    "application/mbox": "email",
    "application/ndjson": "jsonl",
    "application/n-quads": "text",
    "application/n-triples": "text",
    "application/pgp-keys": "text",
    "application/pgp-signature": "text",
    "application/postscript": "text",
    "application/rtf": "office_doc",
    "application/sql": "code",
    "application/toml": "text",
    "application/trig": "text",
    "application/typescript": "code",
    "application/vnd.apple.mpegurl": "text",
    "application/wasm-text": "code",
    "application/x-httpd-php": "code",
    "application/x-ipynb+json": "notebook",
    "application/x-javascript": "code",
    "application/x-jsonlines": "jsonl",
    "application/x-ndjson": "jsonl",
    "application/x-perl": "code",
    "application/x-pem-file": "text",
    "application/x-python-code": "code",
    "application/x-sh": "code",
    "application/x-shellscript": "code",
    "application/x-subrip": "text",
    "application/x-tex": "text",
    "application/x-typescript": "code",
    "application/x-yaml": "yaml",
    "application/xhtml+xml": "html",
    "application/xml": "xml",
    "application/xml-dtd": "xml",
    "application/yaml": "yaml",
    "image/svg+xml": "image",
    "message/rfc822": "email",
})  # fmt: skip
"""Media types whose bytes are text, and the kind of content that each names.

Beyond the table: every other ``text/*`` is "text" (``text/x-*`` is "code"), and the structured
suffixes of RFC 6839 and RFC 9512 decide the rest: ``+json`` is "json", ``+xml`` "xml", ``+yaml``
"yaml", ``+json-seq`` (RFC 8091) "jsonl".
"""

_SUFFIXES: tuple[tuple[str, ContentKind], ...] = (
    ("+json", "json"),
    ("+xml", "xml"),
    ("+yaml", "yaml"),
    ("+json-seq", "jsonl"),
)

_TOP_LEVEL: Mapping[str, ContentKind] = {
    "image": "image",
    "audio": "audio",
    "video": "video",
    "message": "email",
}

_OFFICE = "application/vnd.openxmlformats-officedocument."
_ODF = "application/vnd.oasis.opendocument."

BINARY_MEDIA_TYPES: Mapping[str, ContentKind] = MappingProxyType({
    "application/pdf": "pdf",
    "application/x-pdf": "pdf",
    "application/msword": "office_doc",
    "application/vnd.ms-word.document.macroenabled.12": "office_doc",
    "application/vnd.ms-powerpoint": "office_doc",
    "application/vnd.ms-powerpoint.presentation.macroenabled.12": "office_doc",
    f"{_OFFICE}wordprocessingml.document": "office_doc",
    f"{_OFFICE}wordprocessingml.template": "office_doc",
    f"{_OFFICE}presentationml.presentation": "office_doc",
    f"{_OFFICE}presentationml.slideshow": "office_doc",
    f"{_OFFICE}presentationml.template": "office_doc",
    f"{_OFFICE}spreadsheetml.sheet": "spreadsheet",
    f"{_OFFICE}spreadsheetml.template": "spreadsheet",
    f"{_ODF}text": "office_doc",
    f"{_ODF}text-template": "office_doc",
    f"{_ODF}presentation": "office_doc",
    f"{_ODF}graphics": "office_doc",
    f"{_ODF}spreadsheet": "spreadsheet",
    "application/epub+zip": "office_doc",
    "application/vnd.ms-excel": "spreadsheet",
    "application/vnd.ms-excel.sheet.binary.macroenabled.12": "spreadsheet",
    "application/vnd.ms-excel.sheet.macroenabled.12": "spreadsheet",
    "application/vnd.sqlite3": "spreadsheet",
    "application/x-sqlite3": "spreadsheet",
    "application/vnd.apache.parquet": "spreadsheet",
    "application/x-parquet": "spreadsheet",
    "application/vnd.ms-outlook": "email",
    "application/zip": "archive",
    "application/x-zip-compressed": "archive",
    "application/gzip": "archive",
    "application/x-gzip": "archive",
    "application/x-tar": "archive",
    "application/x-bzip2": "archive",
    "application/x-xz": "archive",
    "application/zstd": "archive",
    "application/x-7z-compressed": "archive",
    "application/vnd.rar": "archive",
    "application/x-rar-compressed": "archive",
    "application/java-archive": "archive",
    "application/vnd.android.package-archive": "archive",
    "application/vnd.debian.binary-package": "archive",
    "application/ogg": "audio",
})  # fmt: skip
"""Media types whose bytes are not text. ``image/*``, ``audio/*`` and ``video/*`` are kinds by themselves; others name no kind."""

# Formats that cannot be without their signature: where it is missing, a label or an extension that
# names them is wrong.
SIGNED_MEDIA_TYPES = frozenset(BINARY_MEDIA_TYPES) | {
    "image/png", "image/jpeg", "image/gif", "image/webp", "image/tiff", "image/bmp", "image/avif", "image/heic", "image/x-icon",
    "audio/wav", "audio/flac", "audio/ogg", "video/mp4", "video/webm", "video/x-matroska", "font/woff", "font/woff2",
}  # fmt: skip

EXTENSIONS: Mapping[str, tuple[ContentKind, str]] = MappingProxyType({
    "txt": ("text", "text/plain"), "text": ("text", "text/plain"), "log": ("text", "text/plain"), "rst": ("text", "text/x-rst"),
    "adoc": ("text", "text/asciidoc"), "org": ("text", "text/org"), "tex": ("text", "application/x-tex"),
    "bib": ("text", "text/x-bibtex"), "srt": ("text", "application/x-subrip"), "vtt": ("text", "text/vtt"),
    "ics": ("text", "text/calendar"), "vcf": ("text", "text/vcard"), "ini": ("text", "text/x-ini"),
    "cfg": ("text", "text/x-ini"), "conf": ("text", "text/plain"), "properties": ("text", "text/plain"),
    "env": ("text", "text/plain"), "pem": ("text", "application/x-pem-file"), "m3u8": ("text", "application/vnd.apple.mpegurl"),
    "ps": ("text", "application/postscript"), "eps": ("text", "application/postscript"), "md": ("markdown", "text/markdown"),
    "markdown": ("markdown", "text/markdown"), "mdx": ("markdown", "text/markdown"), "html": ("html", "text/html"),
    "htm": ("html", "text/html"), "xhtml": ("html", "application/xhtml+xml"), "json": ("json", "application/json"),
    "geojson": ("json", "application/geo+json"), "har": ("json", "application/json"),
    "webmanifest": ("json", "application/manifest+json"), "jsonld": ("json", "application/ld+json"),
    "map": ("json", "application/json"), "jsonl": ("jsonl", "application/jsonl"), "ndjson": ("jsonl", "application/x-ndjson"),
    "yaml": ("yaml", "application/yaml"), "yml": ("yaml", "application/yaml"), "toml": ("text", "application/toml"),
    "xml": ("xml", "application/xml"), "xsd": ("xml", "application/xml"), "xsl": ("xml", "application/xml"),
    "xslt": ("xml", "application/xml"), "rss": ("xml", "application/rss+xml"), "atom": ("xml", "application/atom+xml"),
    "rdf": ("xml", "application/rdf+xml"), "kml": ("xml", "application/vnd.google-earth.kml+xml"),
    "gpx": ("xml", "application/gpx+xml"), "plist": ("xml", "application/xml"), "svg": ("image", "image/svg+xml"),
    "csv": ("csv", "text/csv"), "tsv": ("csv", "text/tab-separated-values"), "tab": ("csv", "text/tab-separated-values"),
    "ipynb": ("notebook", "application/x-ipynb+json"), "eml": ("email", "message/rfc822"),
    "mbox": ("email", "application/mbox"), "msg": ("email", "application/vnd.ms-outlook"), "pdf": ("pdf", "application/pdf"),
    "doc": ("office_doc", "application/msword"), "docx": ("office_doc", f"{_OFFICE}wordprocessingml.document"),
    "ppt": ("office_doc", "application/vnd.ms-powerpoint"), "pptx": ("office_doc", f"{_OFFICE}presentationml.presentation"),
    "odt": ("office_doc", f"{_ODF}text"), "odp": ("office_doc", f"{_ODF}presentation"),
    "epub": ("office_doc", "application/epub+zip"), "rtf": ("office_doc", "application/rtf"),
    "xls": ("spreadsheet", "application/vnd.ms-excel"), "xlsx": ("spreadsheet", f"{_OFFICE}spreadsheetml.sheet"),
    "xlsb": ("spreadsheet", "application/vnd.ms-excel.sheet.binary.macroenabled.12"),
    "ods": ("spreadsheet", f"{_ODF}spreadsheet"), "png": ("image", "image/png"), "jpg": ("image", "image/jpeg"),
    "jpeg": ("image", "image/jpeg"), "gif": ("image", "image/gif"), "webp": ("image", "image/webp"),
    "bmp": ("image", "image/bmp"), "tif": ("image", "image/tiff"), "tiff": ("image", "image/tiff"),
    "ico": ("image", "image/x-icon"), "avif": ("image", "image/avif"), "heic": ("image", "image/heic"),
    "tga": ("image", "image/x-tga"), "mp3": ("audio", "audio/mpeg"), "wav": ("audio", "audio/wav"),
    "flac": ("audio", "audio/flac"), "ogg": ("audio", "audio/ogg"), "m4a": ("audio", "audio/mp4"),
    "aac": ("audio", "audio/aac"), "opus": ("audio", "audio/ogg"), "mp4": ("video", "video/mp4"), "m4v": ("video", "video/mp4"),
    "mov": ("video", "video/quicktime"), "webm": ("video", "video/webm"), "mkv": ("video", "video/x-matroska"),
    "avi": ("video", "video/x-msvideo"), "mpg": ("video", "video/mpeg"), "mpeg": ("video", "video/mpeg"),
    "zip": ("archive", "application/zip"), "jar": ("archive", "application/java-archive"),
    "whl": ("archive", "application/zip"), "tar": ("archive", "application/x-tar"), "gz": ("archive", "application/gzip"),
    "tgz": ("archive", "application/gzip"), "bz2": ("archive", "application/x-bzip2"), "xz": ("archive", "application/x-xz"),
    "zst": ("archive", "application/zstd"), "7z": ("archive", "application/x-7z-compressed"),
    "rar": ("archive", "application/vnd.rar"), "woff": ("unknown_binary", "font/woff"),
    "woff2": ("unknown_binary", "font/woff2"), "ttf": ("unknown_binary", "font/ttf"), "otf": ("unknown_binary", "font/otf"),
    "wasm": ("unknown_binary", "application/wasm"), "sqlite": ("spreadsheet", "application/vnd.sqlite3"),
    "sqlite3": ("spreadsheet", "application/vnd.sqlite3"), "db": ("spreadsheet", "application/vnd.sqlite3"),
    "parquet": ("spreadsheet", "application/vnd.apache.parquet"),
})  # fmt: skip
"""Extensions of URLs and file names; those of programming languages are in ``_languages``."""


def kind_of(media_type: str) -> ContentKind | None:
    """Return the kind of content that a bare media type in lower case names, None if it is generic or says nothing to us."""
    if media_type in GENERIC_MEDIA_TYPES:
        return None
    known = TEXT_MEDIA_TYPES.get(media_type) or BINARY_MEDIA_TYPES.get(media_type)
    if known:
        return known
    top, _, sub = media_type.partition("/")
    for suffix, kind in _SUFFIXES:
        if sub.endswith(suffix):
            return kind
    if top == "text":
        return "code" if sub.startswith("x-") else "text"
    return _TOP_LEVEL.get(top)
