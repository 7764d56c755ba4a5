"""Values of an answer, of any shape, as words; what is not there is ""."""

import base64
import binascii
import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from fetchstash.handlers._contract import Part
from fetchstash.handlers._prose import fence_for
from fetchstash.text import clip, counted
from fetchstash.text.ranges import Heading
from fetchstash.text.untyped import is_array, is_object

MAX_LIST = 300
MAX_LINE = 300

Sections = Iterator["Section"]


class Section:
    """A heading ("" for none) with its level, and the Markdown below it."""

    def __init__(self, level: int, title: str, *paragraphs: str) -> None:
        self.level, self.title = level, line(title)
        self.text = "\n\n".join(text for part in paragraphs if (text := part.strip("\n")))


def parts_of(sections: Iterable[Section]) -> Iterator[Part]:
    """Yield sections as parts of a text, each with its heading."""
    for number, section in enumerate(sections):
        gap = "\n" if number else ""
        if section.title:
            heading = Heading(section.title, section.level, "lines", 1 + len(gap))
            text = f"\n{section.text}\n" if section.text else ""
            yield Part(f"{gap}{'#' * section.level} {section.title}\n{text}", headings=(heading,))
        else:
            yield Part(f"{gap}{section.text}\n")


class Answer:
    """An answer: the page's address and number, and the parts."""

    def __init__(self, request: Any, parts: Sequence[Any]) -> None:
        asked: dict[str, Any] = request if is_object(request) else {}
        self.url, self.page = str(asked.get("url", "")), asked.get("page", 1)
        self.first: Any = parts[0]
        self.others = parts[1:]

    def one(self, *names: str) -> Any:
        """Return the first of these members of the first part that is not empty."""
        return member(self.first, *names)

    def rest(self, number: int = 0) -> Any:
        """Return one of the other parts, None if it did not come."""
        return self.others[number] if len(self.others) > number else None


def member(value: Any, *names: str) -> Any:
    """Return the first non-empty member of these names; "a.b" looks inside another."""
    for name in names:
        found = value
        for key in name.split("."):
            found = found.get(key) if is_object(found) else None
        if found not in (None, "", [], {}):
            return found
    return ""


def listed(value: Any) -> list[Any]:
    return value[:MAX_LIST] if is_array(value) else []


def line(value: Any) -> str:
    """Return a value on one line; of an object its name."""
    if is_object(value):
        value = member(value, "name", "login", "username", "title", "label", "id")
    if is_array(value):
        return ", ".join(filter(None, map(line, value[:30])))
    if isinstance(value, (dict, bool)) or value is None:
        return ""
    return clip(" ".join(str(value).split()), MAX_LINE)


def prose(value: Any) -> str:
    """Return Markdown as it was written."""
    return value.replace("\r\n", "\n").strip() if isinstance(value, str) else ""


def markup(value: Any, url: str = "") -> str:
    """Return a piece of HTML as Markdown."""
    from fetchstash.handlers._html._reading import whole  # noqa: PLC0415 - heavy

    if not isinstance(value, str) or not value.strip():
        return ""
    return "".join(part.text for part in whole(value, url).parts).strip()


def field(value: Any, *names: str) -> str:
    """Return the first non-empty member of these names, on one line."""
    return line(member(value, *names))


def moment(value: Any) -> str:
    """Return a date or time as ISO 8601 to the minute; a number counts seconds (Unix)."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d %H:%MZ}"
        except (ValueError, OverflowError, OSError):
            return ""
    match = re.match(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d))?", line(value))
    return (match[1] + (f" {match[2]}Z" if match[2] else "")) if match else ""


def person(*people: Any) -> str:
    names = (line(member(p, "login", "username", "display_name", "name") or p) for p in people)
    return html.unescape(next(filter(None, names), ""))


def said(post: Any) -> str:
    """Return the author of a post and its date."""
    people = (member(post, name) for name in ("user", "author", "owner"))
    return joined(person(*people), moment(member(post, "created_at", "creation_date")))


def number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else ""


def amount(value: Any, word: str) -> str:
    return counted(value, word) if number(value) else ""


def joined(*words: str) -> str:
    return ", ".join(filter(None, words))


def facts_of(label: Mapping[str, str]) -> str:
    """Return the known facts as a list, a line each."""
    return "\n".join(f"- {name}: {value}" for name, value in label.items() if value)


def link(name: Any, address: Any, *more: str) -> str:
    """Return a line of a list: a name, its address and what else is known."""
    label, target = line(name), line(address)
    is_web = target.startswith(("http://", "https://"))
    shown = f"[{label}]({target.replace(' ', '%20')})" if is_web and label else label or target
    return f"- {joined(shown, *more)}"


def decoded(part: Any) -> str:
    """Return the text of a file that an API gives in base64, or as it is."""
    if isinstance(part, str):
        return prose(part)
    content = member(part, "content")
    if not isinstance(content, str) or member(part, "encoding") not in ("base64", ""):
        return ""
    try:
        return prose(base64.b64decode(content).decode("utf-8", "replace"))
    except (binascii.Error, ValueError):
        return ""


def fenced(text: str, language: str = "") -> str:
    if not text:
        return ""
    mark = fence_for(text)
    return f"{mark}{language}\n{text}\n{mark}"
