"""What a text is by its structure: HTML, XML and what its root says, JSON, mail, and a few that show less surely.

Judged on the first few KiB, which must go on as they begin: a text that merely mentions a tag or
opens a brace is none of these. Pure functions.
"""

import json
import re
from dataclasses import dataclass

from fetchstash.handlers._contract import ContentKind
from fetchstash.handlers._languages import language_of_shebang

REACH = 4_096


@dataclass(frozen=True, slots=True)
class Structure:
    """What the text is built like. ``full``: so plainly that it outweighs a label of another family."""

    kind: ContentKind
    media_type: str
    evidence: str
    full: bool = True


def find_structure(head: str, *, complete: bool) -> Structure | None:
    """Return what the beginning of a text shows, None if nothing. ``complete``: it is the whole text."""
    whole = complete and len(head) <= REACH
    head = head[:REACH]
    if "<" in head[:256] and (found := _html(head) or _xml(head)):
        return found
    return (
        _json(head, whole=whole)
        or _mail(head)
        or _script(head)
        or _yaml(head)
        or _markdown(head)
        or _csv(head, whole=whole)
    )


# WHATWG MIME Sniffing, section 7.1: the tags that open an HTML document, after white space and
# comments. There is one way to match a comment: ``.*?-->`` could go on beyond its end, and the number
# of ways would grow with each comment.
_COMMENT = "<!--[^-]*(?:-(?!->)[^-]*)*-->"
_COMMENTS = rf"\s*(?:{_COMMENT}\s*)*"
_HTML_FULL = re.compile(
    rf"{_COMMENTS}(?:<\?xml[^>]*>{_COMMENTS})?<(?:!doctype\s+html|html|head|body)[\s>]",
    re.IGNORECASE,
)
_HTML_TAG = re.compile(
    r"\s*<(?:script|iframe|h[1-6]|div|font|table|a|style|title|b|br|p|main|article|section|nav|ul|ol|meta|link|form|span|center)[\s>/]",
    re.IGNORECASE,
)


def _html(head: str) -> Structure | None:
    if _HTML_FULL.match(head):
        return Structure("html", "text/html", "HTML document")
    if _HTML_TAG.match(head):
        return Structure("html", "text/html", "begins with an HTML tag", full=False)
    return None


_XML_PROLOG = re.compile(
    rf"(?:\s+|{_COMMENT}|<\?[^?]*(?:\?(?!>)[^?]*)*\?>|<!DOCTYPE[^>\[]*(?:\[[^\]]*\]\s*)?>)*",
    re.IGNORECASE,
)
_XML_ROOT = re.compile(r"<([A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)([^<>]*)/?>?")

_ROOTS: dict[str, tuple[ContentKind, str]] = {
    "html": ("html", "application/xhtml+xml"),
    "svg": ("image", "image/svg+xml"),
    "rss": ("xml", "application/rss+xml"),
    "feed": ("xml", "application/atom+xml"),
    "RDF": ("xml", "application/rdf+xml"),
    # No type was ever registered for sitemaps (sitemaps.org); this one names them inside
    # fetchstash.
    "urlset": ("xml", "application/x-sitemap+xml"),
    "sitemapindex": ("xml", "application/x-sitemap+xml"),
    "kml": ("xml", "application/vnd.google-earth.kml+xml"),
    "gpx": ("xml", "application/gpx+xml"),
    "OpenSearchDescription": ("xml", "application/opensearchdescription+xml"),
}


def _xml(head: str) -> Structure | None:
    prolog = _XML_PROLOG.match(head)
    root = _XML_ROOT.match(head, prolog.end() if prolog else 0)
    declared = bool(re.match(r"\s*<\?xml\s", head))
    if not root:
        return Structure("xml", "application/xml", "XML declaration") if declared else None
    name, attributes = root[2], root[3]
    kind, media_type = _ROOTS.get(name, ("xml", "application/xml"))
    if name == "feed" and "w3.org/2005/Atom" not in attributes:
        kind, media_type = "xml", "application/xml"
    if not declared and "xmlns" not in attributes and media_type == "application/xml":
        return None  # a tag in angle brackets: a template, a log line, a mail address
    return Structure(kind, media_type, f"XML, root {name[:40]}")


# Strings are stepped over whole, the last one up to the end where that cuts it.
_JSON_STRING = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*'
_JSON_MARK = re.compile(rf'{_JSON_STRING}(?:"|\\?\Z)|[{{}}\[\],]')
# What may stand between the last whole value and the end: a name, and a value that the end cuts.
_JSON_TAIL = re.compile(
    rf'[\s,:]*(?:{_JSON_STRING}(?:"[\s:]*|\\?\Z)){{0,2}}(?:(?:[\d.eE+-]+|[tfn][a-z]{{0,4}})\s*)?\Z'
)
_JSON = json.JSONDecoder(parse_int=float)  # as floats: integers of many digits are refused


def _json(head: str, *, whole: bool) -> Structure | None:
    text = head.lstrip("\ufeff \t\r\n")
    if text[:1] not in {"{", "["}:
        return None
    end, closers, cut = _json_extent(text)
    if end:
        if not _is_json(text[:end]):
            return None
        return _json_lines(text, whole=whole) if text[end:].strip() else _json_named(text)
    if (
        whole
        or not closers
        or not _JSON_TAIL.match(text[cut:])
        or not _is_json(text[:cut] + closers)
    ):
        return None
    return _json_named(text)


def _json_extent(text: str) -> tuple[int, str, int]:
    """Return where the first value ends (0 if it does not), and what closes it after which character."""
    closers: list[str] = []
    cut = 0
    for found in _JSON_MARK.finditer(text):
        mark = found[0]
        if mark in {"{", "["}:
            closers.append("}" if mark == "{" else "]")
            cut = found.end()
        elif mark in {"}", "]"}:
            if not closers or closers.pop() != mark:
                return 0, "", 0
            cut = found.end()
            if not closers:
                return cut, "", cut
        elif mark == ",":
            cut = found.start()
    return 0, "".join(reversed(closers)), cut


def _is_json(text: str) -> bool:
    try:
        _JSON.decode(text)
    except RecursionError:
        return True  # nothing else is nested so deeply
    except ValueError:
        return False
    return True


def _json_named(text: str) -> Structure:
    """Tell the documents that are written in JSON by their first names."""
    if text[0] == "{":
        if re.match(r'\{\s*"(?:cells|metadata|nbformat)"', text) and '"cell_type"' in text:
            return Structure(
                "notebook", "application/x-ipynb+json", "JSON with cells of a notebook"
            )
        if re.match(r'\{\s*"type"\s*:\s*"(?:FeatureCollection|Feature)"', text):
            return Structure("json", "application/geo+json", "JSON of GeoJSON")
        if re.match(r'\{\s*"@context"', text):
            return Structure("json", "application/ld+json", "JSON of JSON-LD")
    return Structure("json", "application/json", "JSON")


def _json_lines(text: str, *, whole: bool) -> Structure | None:
    lines = [line for line in text.split("\n") if line.strip()]
    if not whole:
        lines.pop()
    if len(lines) < 2 or not all(
        line.lstrip()[:1] in {"{", "["} and _is_json(line) for line in lines
    ):
        return None
    return Structure("jsonl", "application/jsonl", "JSON, one value a line")


_MAIL_HEADER = re.compile(r"([A-Za-z][A-Za-z0-9-]*):[ \t]|[ \t]+\S")
_MAIL_NAMES = frozenset({
    "received", "return-path", "delivered-to", "message-id", "mime-version", "from", "to", "subject", "date", "reply-to", "cc",
    "dkim-signature", "x-mailer", "content-type",
})  # fmt: skip


def _mail(head: str) -> Structure | None:
    """Tell a message (RFC 5322) by its header: From, and at least two more of the usual fields, before the first empty line."""
    mbox = re.match(r"From \S+ .*\d{4}\r?\n", head)
    fields: set[str] = set()
    for line in head[mbox.end() if mbox else 0 :].splitlines():
        header = _MAIL_HEADER.match(line)
        if not header:
            break
        fields.add((header[1] or "").lower())
    if "from" not in fields or len(fields & _MAIL_NAMES) < 3:
        return None
    return (
        Structure("email", "application/mbox", "mbox")
        if mbox
        else Structure("email", "message/rfc822", "header of a mail message")
    )


def _script(head: str) -> Structure | None:
    language = language_of_shebang(head.split("\n", 1)[0])
    if language:
        return Structure("code", f"text/x-{language}", f"#! line of {language}")
    if re.match(r"\s*<\?php\s", head):
        return Structure("code", "text/x-php", "<?php")
    if re.match(r"(?:diff --git |--- \S.*\n\+\+\+ \S.*\n@@ )", head):
        return Structure("code", "text/x-diff", "diff")
    return None


def _yaml(head: str) -> Structure | None:
    if head.startswith("%YAML "):
        return Structure("yaml", "application/yaml", "%YAML")
    front = re.match(r"---[ \t]*\r?\n(?:#.*\n|[ \t]*\r?\n)*[\w\"'-]+:(?:\s|$)", head)
    if not front:
        return None
    if re.search(r"^---[ \t]*\r?\n\s*[^\s\w-]{0,9}[#<>!*\[A-Z]", head[front.end() :], re.MULTILINE):
        return Structure("markdown", "text/markdown", "front matter", full=False)
    return Structure("yaml", "application/yaml", "begins as YAML", full=False)


def _markdown(head: str) -> Structure | None:
    """Tell Markdown by two kinds of its marks: a comment in a script may look like a heading, but nothing else there is a link."""
    marks = [
        bool(re.search(r"^#{1,6} \S", head, re.MULTILINE)),
        bool(re.search(r"^##{1,5} \S", head, re.MULTILINE)),
        bool(re.search(r"^(?:```|~~~)[\w+-]*\s*$", head, re.MULTILINE)),
        bool(re.search(r"\[[^\[\]\n]+\]\((?:https?://|[./#])[^)\s]*\)", head)),
        bool(re.search(r"^\|?[ \t]*:?-{3,}:?[ \t]*\|", head, re.MULTILINE)),
    ]
    if marks[0] and sum(marks) >= 3:
        return Structure(
            "markdown", "text/markdown", "headings and other marks of Markdown", full=False
        )
    return None


def _csv(head: str, *, whole: bool) -> Structure | None:
    """Tell tables by lines that all have the same number of cells, at least three in at least four lines (RFC 4180)."""
    lines = [re.sub(r'"[^"]*(?:""[^"]*)*"(?!")', "", line) for line in head.splitlines()]
    if not whole and lines:
        lines.pop()
    lines = [line for line in lines if line.strip()]
    if len(lines) < 4:
        return None
    for delimiter, media_type in (
        ("\t", "text/tab-separated-values"),
        (",", "text/csv"),
        (";", "text/csv"),
    ):
        cells = lines[0].count(delimiter)
        if (
            cells >= 2
            and all(line.count(delimiter) == cells for line in lines)
            and not any(line[0] in " \t" for line in lines)
        ):
            return Structure(
                "csv", media_type, f"{len(lines)} lines of {cells + 1} cells", full=False
            )
    return None


def looks_like(kind: ContentKind, head: str) -> bool:
    """Return whether a text may be of a kind that its label names: what every document of that kind must have is there."""
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
    if kind == "jsonl":
        return start != "" and start in '{["\x1e'
    return True
