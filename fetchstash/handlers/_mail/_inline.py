"""Pictures in the text of a mail: attachments that the text shows by their content ids."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

# The address of a part by its content id (RFC 2392), as the reader of HTML writes it.
_ADDRESS = re.compile(r"\]\(cid:([^\s()<>]+)\)")
_NO_ADDRESS = re.compile(r"[<>\\\n]")


@dataclass(slots=True)
class Inline:
    """The names of attachments by content id, and those that the text has shown."""

    names: Mapping[str, str]
    shown: set[str] = field(default_factory=set[str])

    def show(self, text: str) -> str:
        """Return Markdown with `addressed`, and remember the attachments that it shows.

        A reader asks for a picture by its name, so the list of attachments need not repeat it.
        """
        self.shown.update(map(self._name, _ADDRESS.finditer(text)))
        return self.addressed(text)

    def addressed(self, text: str) -> str:
        """Return Markdown whose pictures have the names of attachments as their addresses."""
        return _ADDRESS.sub(self._addressed, text)

    def _name(self, match: re.Match[str]) -> str:
        name = self.names.get(unquote(match[1]), "")
        return "" if _NO_ADDRESS.search(name) else name

    def _addressed(self, match: re.Match[str]) -> str:
        if not (name := self._name(match)):
            return match[0]
        is_plain = not re.search(r"[\s()]", name)
        return f"]({name})" if is_plain else f"](<{name}>)"
