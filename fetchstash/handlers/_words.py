"""What a kind of content is called in a sentence for people: "PDF", "HTML page", "PNG image"."""

from collections.abc import Mapping
from types import MappingProxyType

from fetchstash.handlers._contract import ContentKind, Decision
from fetchstash.handlers._languages import LANGUAGES

_KINDS: Mapping[ContentKind, str] = MappingProxyType({
    "text": "text", "code": "code", "markdown": "Markdown", "html": "HTML page", "json": "JSON", "jsonl": "JSON Lines",
    "yaml": "YAML", "xml": "XML", "csv": "CSV", "spreadsheet": "spreadsheet", "pdf": "PDF", "office_doc": "office document",
    "email": "email", "notebook": "notebook", "image": "image", "audio": "audio", "video": "video", "archive": "archive",
    "unknown_binary": "binary",
})  # fmt: skip

_MEDIA_TYPES: Mapping[str, str] = MappingProxyType({
    "application/msword": "DOC", "application/vnd.ms-powerpoint": "PPT", "application/vnd.ms-excel": "XLS",
    "application/rtf": "RTF", "text/rtf": "RTF", "application/epub+zip": "EPUB",
    "application/vnd.ms-word.document.macroenabled.12": "DOCM",
    "application/vnd.ms-powerpoint.presentation.macroenabled.12": "PPTM",
    "application/vnd.ms-excel.sheet.macroenabled.12": "XLSM", "application/vnd.ms-excel.sheet.binary.macroenabled.12": "XLSB",
    "application/vnd.ms-outlook": "Outlook message",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "DOCX",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "PPTX",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "XLSX",
    "application/vnd.oasis.opendocument.text": "ODT", "application/vnd.oasis.opendocument.presentation": "ODP",
    "application/vnd.oasis.opendocument.spreadsheet": "ODS", "application/vnd.oasis.opendocument.graphics": "ODG",
    "application/zip": "ZIP", "application/x-zip-compressed": "ZIP", "application/java-archive": "JAR",
    "application/gzip": "gzip archive", "application/x-tar": "TAR", "application/x-7z-compressed": "7z archive",
    "application/vnd.rar": "RAR", "application/zstd": "Zstandard archive", "application/vnd.android.package-archive": "APK",
    "application/vnd.debian.binary-package": "Debian package", "application/x-bzip2": "bzip2 archive",
    "application/x-xz": "xz archive", "application/toml": "TOML", "text/tab-separated-values": "TSV",
    "application/rss+xml": "RSS feed", "application/atom+xml": "Atom feed", "application/x-sitemap+xml": "sitemap",
    "image/svg+xml": "SVG image", "image/x-icon": "icon", "image/vnd.adobe.photoshop": "Photoshop image",
    "image/vnd.djvu": "DjVu image", "audio/mpeg": "MP3 audio", "audio/mp4": "M4A audio", "audio/x-wav": "WAV audio",
    "audio/midi": "MIDI audio", "video/quicktime": "QuickTime video", "video/x-matroska": "Matroska video",
    "video/x-msvideo": "AVI video", "text/x-diff": "diff", "text/css": "CSS code", "text/calendar": "calendar",
    "text/vcard": "vCard", "application/vnd.sqlite3": "SQLite database", "application/vnd.apache.parquet": "Parquet file",
    "application/wasm": "WebAssembly module", "application/x-elf": "ELF executable",
    "application/vnd.microsoft.portable-executable": "Windows executable", "application/x-mach-binary": "Mach-O executable",
    "application/java-vm": "Java class",
})  # fmt: skip

_SPELLINGS = {
    "javascript": "JavaScript",
    "typescript": "TypeScript",
    "sql": "SQL",
    "php": "PHP",
    "css": "CSS",
    "scss": "SCSS",
    "r": "R",
}


def kind_word(decision: Decision) -> str:
    """Return what a document is called in the facts line: "PDF", "DOCX", "HTML page", "PNG image", "JSON", "Python code"."""
    top, _, sub = decision.media_type.partition("/")
    if decision.media_type in _MEDIA_TYPES:
        return _MEDIA_TYPES[decision.media_type]
    if decision.kind == "code" and sub.removeprefix("x-") in LANGUAGES.values():
        language = sub.removeprefix("x-")
        return f"{_SPELLINGS.get(language, language.capitalize())} code"
    if decision.kind in {"image", "audio", "video"} and top == decision.kind and sub.isalnum():
        return f"{sub.upper()} {decision.kind}"
    return f"{sub.upper()} font" if top == "font" else _KINDS[decision.kind]
