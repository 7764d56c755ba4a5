"""Formats of texts by their structure.

They look at the first 4,096 characters, which must go on as they begin: a text that mentions a tag
or opens a brace is none of these. Pure functions.
"""

import json
import re

from fetchstash.handlers._contract import ContentKind, Head, Sniffed


def printable(magic: bytes) -> str:
    """Return the ASCII letters of a signature, or hexadecimal where there are fewer than two."""
    letters = bytes(b for b in magic if 0x20 < b < 0x7F).decode("ascii")
    return letters if len(letters) >= 2 else magic.hex()


_MARKUP_REACH = 256

# WHATWG MIME Sniffing, section 7.1: the tags that open an HTML document, after white space and
# comments. There is one way to match a comment: ``.*?-->`` could go on beyond its end, and the
# number of ways would grow with each comment.
_COMMENT = "<!--[^-]*(?:-(?!->)[^-]*)*-->"
_COMMENTS = rf"\s*(?:{_COMMENT}\s*)*"
_HTML_FULL = re.compile(
    rf"{_COMMENTS}(?:<\?xml[^>]*>{_COMMENTS})?<(?:!doctype\s+html|html|head|body)[\s>]",
    re.IGNORECASE,
)
_HTML_TAG = re.compile(
    r"\s*<(?:script|iframe|h[1-6]|div|font|table|a|style|title|b|br|p|main|article|section|nav|ul|ol"
    r"|meta|link|form|span|center)[\s>/]",
    re.IGNORECASE,
)


def sniff_html(head: Head) -> Sniffed | None:
    """Recognise HTML by the tag that it begins with."""
    if "<" not in head.text[:_MARKUP_REACH]:
        return None
    if _HTML_FULL.match(head.text):
        return Sniffed("text/html", "HTML document")
    if _HTML_TAG.match(head.text):
        return Sniffed("text/html", "begins with an HTML tag", full=False)
    return None


_XML_PROLOG = re.compile(
    rf"(?:\s+|{_COMMENT}|<\?[^?]*(?:\?(?!>)[^?]*)*\?>|<!DOCTYPE[^>\[]*(?:\[[^\]]*\]\s*)?>)*",
    re.IGNORECASE,
)
_XML_ROOT = re.compile(r"<([A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)([^<>]*)/?>?")

_ROOTS = {
    "html": "application/xhtml+xml",
    "svg": "image/svg+xml",
    "rss": "application/rss+xml",
    "feed": "application/atom+xml",
    "RDF": "application/rdf+xml",
    # No type was ever registered for sitemaps (sitemaps.org); this one names them inside
    # fetchstash.
    "urlset": "application/x-sitemap+xml",
    "sitemapindex": "application/x-sitemap+xml",
    "kml": "application/vnd.google-earth.kml+xml",
    "gpx": "application/gpx+xml",
    "OpenSearchDescription": "application/opensearchdescription+xml",
}


_RSS_1 = re.compile(r"""\sxmlns\s*=\s*["']http://purl\.org/rss/1\.0/["']""")


def sniff_xml(head: Head) -> Sniffed | None:
    """Recognise XML by its declaration or a namespace, and what it is by its root."""
    if "<" not in head.text[:_MARKUP_REACH]:
        return None
    prolog = _XML_PROLOG.match(head.text)
    root = _XML_ROOT.match(head.text, prolog.end() if prolog else 0)
    declared = bool(re.match(r"\s*<\?xml\s", head.text))
    if not root:
        return Sniffed("application/xml", "XML declaration") if declared else None
    name, attributes = root[2], root[3]
    media_type = _ROOTS.get(name, "application/xml")
    if name == "feed" and "w3.org/2005/Atom" not in attributes:
        media_type = "application/xml"
    if name == "RDF" and _RSS_1.search(attributes):
        media_type = "application/rss+xml"  # RSS 1.0, section 5.1
    if not declared and "xmlns" not in attributes and media_type == "application/xml":
        return None  # a tag in angle brackets: a template, a log line, a mail address
    return Sniffed(media_type, f"XML, root {name}" if name in _ROOTS else "XML")


# Strings are stepped over whole, the last one up to the end where that cuts it.
_JSON_STRING = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*'
_JSON_MARK = re.compile(rf'{_JSON_STRING}(?:"|\\?\Z)|[{{}}\[\],]')
# What may stand between the last whole value and the end: a name, and a value that the end cuts.
_JSON_TAIL = re.compile(
    rf'[\s,:]*(?:{_JSON_STRING}(?:"[\s:]*|\\?\Z)){{0,2}}(?:(?:[\d.eE+-]+|[tfn][a-z]{{0,4}})\s*)?\Z'
)
_JSON = json.JSONDecoder(parse_int=float)  # as floats: integers of many digits are refused


def sniff_json(head: Head) -> Sniffed | None:
    """Recognise JSON, one value or several in lines; one that is cut must go on as it begins."""
    text = head.text.lstrip("\ufeff \t\r\n")
    if text[:1] not in {"{", "["}:
        return None
    end, closers, cut = _json_extent(text)
    if end:
        if not _is_json(text[:end]):
            return None
        return _json_lines(text, whole=head.whole) if text[end:].strip() else _json_named(text)
    if (
        head.whole
        or not closers
        or not _JSON_TAIL.match(text[cut:])
        or not _is_json(text[:cut] + closers)
    ):
        return None
    return _json_named(text)


def _json_extent(text: str) -> tuple[int, str, int]:
    """Return where the first value ends (0: it does not), and what closes it where."""
    closers: list[str] = []
    cut = 0
    for match in _JSON_MARK.finditer(text):
        mark = match[0]
        if mark in {"{", "["}:
            closers.append("}" if mark == "{" else "]")
            cut = match.end()
        elif mark in {"}", "]"}:
            if not closers or closers.pop() != mark:
                return 0, "", 0
            cut = match.end()
            if not closers:
                return cut, "", cut
        elif mark == ",":
            cut = match.start()
    return 0, "".join(reversed(closers)), cut


def _is_json(text: str) -> bool:
    try:
        _JSON.decode(text)
    except RecursionError:
        return True  # nothing else is nested so deeply
    except ValueError:
        return False
    return True


def _json_named(text: str) -> Sniffed:
    """Return the kind of a JSON document by its first names."""
    if text[0] == "{":
        if re.match(r'\{\s*"version"\s*:\s*"https?:\\?/\\?/jsonfeed\.org\\?/version', text):
            return Sniffed("application/feed+json", "JSON of a feed")
        if re.match(r'\{\s*"(?:cells|metadata|nbformat)"', text) and '"cell_type"' in text:
            return Sniffed("application/x-ipynb+json", "JSON with cells of a notebook")
        if re.match(r'\{\s*"type"\s*:\s*"(?:FeatureCollection|Feature)"', text):
            return Sniffed("application/geo+json", "JSON of GeoJSON")
        if re.match(r'\{\s*"@context"', text):
            return Sniffed("application/ld+json", "JSON of JSON-LD")
    return Sniffed("application/json", "JSON")


def _json_lines(text: str, *, whole: bool) -> Sniffed | None:
    lines = [line for line in text.split("\n") if line.strip()]
    if not whole:
        lines.pop()
    if len(lines) < 2 or not all(
        line.lstrip()[:1] in {"{", "["} and _is_json(line) for line in lines
    ):
        return None
    return Sniffed("application/jsonl", "JSON, one value a line")


_MAIL_HEADER = re.compile(r"([A-Za-z][A-Za-z0-9-]*):[ \t]|[ \t]+\S")
_MAIL_NAMES = frozenset(
    {
        "received",
        "return-path",
        "delivered-to",
        "message-id",
        "mime-version",
        "from",
        "to",
        "subject",
        "date",
        "reply-to",
        "cc",
        "dkim-signature",
        "x-mailer",
        "content-type",
    }
)


def sniff_mail(head: Head) -> Sniffed | None:
    """Recognise a message (RFC 5322) by its header: From, and two more of the usual fields."""
    mbox = re.match(r"From \S+ .*\d{4}\r?\n", head.text)
    fields: set[str] = set()
    for line in head.text[mbox.end() if mbox else 0 :].splitlines():
        header = _MAIL_HEADER.match(line)
        if not header:
            break
        fields.add((header[1] or "").lower())
    if "from" not in fields or len(fields & _MAIL_NAMES) < 3:
        return None
    return (
        Sniffed("application/mbox", "mbox")
        if mbox
        else Sniffed("message/rfc822", "header of a mail message")
    )


def sniff_yaml(head: Head) -> Sniffed | None:
    """Recognise YAML by its directive or its first document; front matter belongs to Markdown."""
    text = head.text
    if text.startswith("%YAML "):
        return Sniffed("application/yaml", "%YAML")
    front = re.match(r"---[ \t]*\r?\n(?:#.*\n|[ \t]*\r?\n)*[\w\"'-]+:(?:\s|$)", text)
    if not front:
        return None
    if re.search(r"^---[ \t]*\r?\n\s*[^\s\w-]{0,9}[#<>!*\[A-Z]", text[front.end() :], re.MULTILINE):
        return Sniffed("text/markdown", "front matter", full=False)
    return Sniffed("application/yaml", "begins as YAML", full=False)


_TABLES = {"\t": "text/tab-separated-values", ",": "text/csv", ";": "text/csv"}
_FIGURE = re.compile(r"\W*\d[\W\d]*")
_SENTENCE_END = re.compile(r"[^\W\d_]{3}[.!?](?:\s|$)")
_MOST_WORDS = 2.5  # of the cells of a table whose delimiters are followed by a space, on average


def sniff_csv(head: Head) -> Sniffed | None:
    """Recognise tables (RFC 4180): at least four lines of three cells, all of the same number."""
    lines = [re.sub(r'"[^"]*(?:""[^"]*)*"(?!")', "", line) for line in head.text.splitlines()]
    if not head.whole and lines:
        lines.pop()
    lines = [line for line in lines if line.strip()]
    if len(lines) < 4:
        return None
    for delimiter, media_type in _TABLES.items():
        cells = lines[0].count(delimiter)
        if (
            cells >= 2
            and all(line.count(delimiter) == cells for line in lines)
            and not any(line[0] in " \t" for line in lines)
            and (delimiter == "\t" or not _is_prose(lines, delimiter))
        ):
            return Sniffed(media_type, f"{len(lines)} lines of {cells + 1} cells", full=False)
    return None


def _is_prose(lines: list[str], delimiter: str) -> bool:
    """Return whether lines are sentences: a space behind most delimiters, and no column of figures.

    Of the rest, which may be names and words, many words or ends of sentences tell.
    """
    rows = [line.split(delimiter) for line in lines]
    behind = [cell for row in rows for cell in row[1:] if cell]
    if 2 * sum(cell[0] == " " for cell in behind) <= len(behind):
        return False
    figures = (filter(_FIGURE.fullmatch, column) for column in zip(*rows, strict=True))
    if any(2 * len(list(column)) > len(rows) for column in figures):
        return False
    words = sum(len(line.split()) for line in lines)
    ends = sum(bool(_SENTENCE_END.search(line)) for line in lines)
    return words > _MOST_WORDS * sum(map(len, rows)) or 4 * ends > len(rows)


def looks_like(kind: ContentKind, head: str) -> bool:
    """Return whether a text has what every document of the kind that its label names has."""
    start = head.lstrip("\ufeff \t\r\n")[:1]
    if kind == "html":
        return bool(re.search(r"<[A-Za-z!/?]", head)) or "&" in head
    if kind == "xml":
        return start == "<"
    if kind in {"json", "notebook"}:
        return start != "" and (
            start in '{["-/)'
            or start.isdigit()
            or head.lstrip().startswith(("true", "false", "null"))
        )
    return kind != "jsonl" or (start != "" and start in '{["\x1e')
