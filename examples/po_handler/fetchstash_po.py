"""A format of gettext's translations (.po), as a package of its own.

Install it beside fetchstash (``pip install examples/po_handler``) and name it in extract.plugins.
A translation is then previewed as its messages, its outline lists them, and the path ``/3`` is the
third message, ``/untranslated`` all that have no translation.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fetchstash.handlers import (
    Extracted,
    ExtractLimits,
    Format,
    Head,
    Hints,
    Part,
    Reason,
    Sniffed,
    TextParts,
    list_preview,
    read_text,
)
from fetchstash.text.ranges import Heading

MEDIA_TYPE = "text/x-gettext-translation"
KEYWORD = re.compile(r"(msgctxt|msgid|msgid_plural|msgstr(?:\[\d\])?)\s+(\".*\")\s*$")
MAX_TITLE = 100
MAX_OUTLINE = 2_000


@dataclass
class Message:
    """A message: its first line in the file, what it says, and its translations."""

    line: int
    text: dict[str, str]

    @property
    def source(self) -> str:
        """The text that is translated."""
        return self.text.get("msgid", "")

    @property
    def complete(self) -> bool:
        """Whether the next message may begin."""
        return any(name.startswith("msgstr") for name in self.text)

    @property
    def translated(self) -> bool:
        """Whether there is a translation."""
        return any(text for name, text in self.text.items() if name.startswith("msgstr"))

    def __str__(self) -> str:
        return "".join(f"{name}: {text}\n" for name, text in self.text.items())


def messages(source: Path, charset: str) -> Iterator[Message]:
    """Yield the messages of a file, without its header, which translates the empty text."""
    message, name = Message(1, {}), ""
    number = 0
    for chunk in read_text(source, charset):
        for line in chunk.removesuffix("\n").split("\n"):
            number += 1
            keyword = KEYWORD.match(line)
            if keyword and keyword[1] in ("msgctxt", "msgid") and message.complete:
                if message.source:
                    yield message
                message = Message(number, {})
            if keyword:
                name = keyword[1]
                message.text[name] = unquoted(keyword[2])
            elif line.startswith('"') and name:
                message.text[name] += unquoted(line.strip())
    if message.source:
        yield message


def unquoted(text: str) -> str:
    """Return a string of C without its quotes and escapes; as it is where it is none."""
    try:
        return str(ast.literal_eval(text))
    except (SyntaxError, ValueError):
        return text


class PoHandler(TextParts):
    """Reads translations."""

    name = "po"

    def extract(self, source: Path, hints: Hints, limits: ExtractLimits) -> Extracted:
        """Return the text as it is; its messages become the outline and the preview."""
        found = list(messages(source, hints.charset))
        titles = [" ".join(message.source.split())[:MAX_TITLE] for message in found]
        missing = sum(not message.translated for message in found)
        extracted = Extracted(Part(chunk) for chunk in read_text(source, hints.charset))
        extracted.learn(
            outline=tuple(
                Heading(title, 1, "lines", message.line)
                for title, message in zip(titles[:MAX_OUTLINE], found, strict=False)
            ),
            structure_info=f"{len(found)} messages, {missing} of them untranslated",
        )
        extracted.preview = list_preview(titles, len(found), limits.preview)
        return extracted

    def find(self, source: Path, path: str, hints: Hints) -> str:
        """Return the message ``/NUMBER``, or all that are ``/untranslated``."""
        found = list(messages(source, hints.charset))
        if path == "/untranslated":
            return "\n".join(str(message) for message in found if not message.translated)
        number = path.removeprefix("/")
        if number.isdecimal() and 0 < int(number) <= len(found):
            return str(found[int(number) - 1])
        raise Reason.NOTHING_THERE.error(name=path)


def sniff(head: Head) -> Sniffed | None:
    """Recognise the header, which translates the empty message."""
    if re.search(r'^msgid ""\nmsgstr ""\n"', head.text, re.MULTILINE):
        return Sniffed(MEDIA_TYPE, "header of a gettext translation")
    return None


FORMATS = (
    Format(
        kind="text",
        word="translation",
        handler=PoHandler,
        media_types=(MEDIA_TYPE, "text/x-po"),
        extensions=("po", "pot"),
        sniff=sniff,
        is_text=True,
        paths=("/*",),
    ),
)
