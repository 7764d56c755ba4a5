"""Settings files of hosts: read, changed and written whole; JSON with comments."""

import json
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path
from typing import Any

from fetchstash.errors import BadArgument, Busy, StoreError


class Malformed(Exception):
    """The file's text is not of its format. The message is a clause that says why."""


def change_file(path: Path, edit: Callable[[str], str], *, by_hand: str) -> str | None:
    """Replace the text of a file by the result of ``edit``; a missing file counts as empty.

    Returns None if nothing changed, else where the old text is kept, in brackets ("" for a new
    file). A symbolic link stays one, and the file that it leads to is changed. Mode and owner stay.
    Raises BadArgument for a file that cannot be read as what it should be, and what ``edit``
    raises; StoreError if the system refuses; Busy if the file changed meanwhile. ``by_hand`` says
    what the person can do without us.
    """
    try:
        return _change(path.resolve(), path, edit)
    except OSError as error:
        what = f"{path} cannot be changed: {error.strerror or error}."
        raise StoreError(what, f"Mend that, or {by_hand}.") from None
    except UnicodeDecodeError:
        reason = "it is no UTF-8"
    except Malformed as error:
        reason = str(error)
    next_step = f"Nothing was changed. Mend the file, or {by_hand}."
    raise BadArgument(f"{path} cannot be read: {reason}.", next_step) from None


def _change(file: Path, shown: Path, edit: Callable[[str], str]) -> str | None:
    before = file.read_bytes() if file.exists() else None
    old = (before or b"").decode("utf-8")
    bom = "\ufeff" if old.startswith("\ufeff") else ""
    new = bom + edit(old.removeprefix(bom))
    if new == old:
        return None
    file.parent.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    kept = ""
    if before is not None:
        kept = f" (as it was before: {_write_beside(file, f'{stamp}.bak', before)})"
    written = _write_beside(file, f"{stamp}.new", new.encode("utf-8"))
    try:
        if (file.read_bytes() if file.exists() else None) != before:
            raise Busy(f"{shown} was changed by another program just now.", "Try again.")
        written.replace(file)
    finally:
        written.unlink(missing_ok=True)
    return kept


def backups_of(path: Path) -> list[Path]:
    """Return the backups that ``change_file`` made of a file, newest first."""
    file = path.resolve()
    found = file.parent.glob(f"{escape(file.name)}.*.bak*")
    return sorted(found, key=lambda backup: backup.stat().st_mtime_ns, reverse=True)


def _write_beside(file: Path, suffix: str, data: bytes) -> Path:
    """Write a new file beside another, with the mode and owner of that one if it exists."""
    for number in range(1, 100):
        path = file.with_name(f"{file.name}.{suffix}{number if number > 1 else ''}")
        with suppress(FileExistsError):
            # 0600: settings may hold keys.
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                with suppress(OSError):
                    status = file.stat()
                    path.chmod(status.st_mode & 0o7777)
                    if hasattr(os, "chown"):
                        os.chown(path, status.st_uid, status.st_gid)
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            return path
    raise FileExistsError(0, "too many backups stand beside it", str(file))


_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"[-+.\w]+")
_LINE_ENDS = re.compile(r"[ \t]*(?:\r?\n|//)")
_MAX_DEPTH = 200


@dataclass(slots=True)
class _Node:
    """A JSON value and its position: ``text[start:end]``."""

    value: Any
    start: int
    end: int
    members: "list[_Member]" = field(default_factory=list["_Member"])

    def member(self, key: str) -> "_Member | None":
        """Return the member of this key; of several the last, as readers of JSON do."""
        return next((member for member in reversed(self.members) if member.key == key), None)


@dataclass(slots=True)
class _Member:
    """A key and its value; ``comma`` is the offset of the comma after them, None without one."""

    key: str
    start: int
    node: _Node
    comma: int | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """The position and depth of a value in a text; its style of indentation and line ends."""

    start: int
    end: int
    depth: int
    unit: str
    newline: str


def part_at(text: str, path: list[str]) -> Part:
    """Return the position of the value at a path of keys, the text's end if there is none.

    A part can be changed alone, without reading the rest again. Raises Malformed.
    """
    root, node = _find(text, path)
    start, end = (node.start, node.end) if node else (len(text), len(text))
    unit, newline = _style(text, root) if root else ("", "")
    return Part(start, end, len(path), unit, newline)


def value_at(text: str, path: list[str]) -> Any:
    """Return the value at a path of keys, None if there is none. Raises Malformed."""
    _, node = _find(text, path)
    return node.value if node else None


def _find(text: str, path: list[str]) -> tuple["_Node | None", "_Node | None"]:
    """Parse a text; return its root, and the value at a path of keys."""
    node = root = None if _is_empty(text) else _parse(text)
    for key in path:
        member = node.member(key) if node else None
        node = member.node if member else None
    return root, node


def with_value(text: str, path: list[str], value: object, part: Part | None = None) -> str:
    """Return the text with the value at a path of keys set. Raises Malformed.

    Objects on the way that are missing are made. A text without a value becomes an object.
    ``part`` says of which part of a larger text this is the text.
    """
    if _is_empty(text):
        text += "{}\n"
    node = _parse(text)
    unit, newline = (part.unit, part.newline) if part else _style(text, node)
    outer = part.depth if part else 0
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict):
            raise _malformed(text, node.start, "an object is expected here")
        member = node.member(key)
        if member is None:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _inserted(text, node, key, value, unit * (outer + depth + 1), unit, newline)
        node = member.node
    if node.value == value:
        return text
    written = _written(value, unit * (outer + len(path)), unit, newline)
    return text[: node.start] + written + text[node.end :]


def without_value(text: str, path: list[str]) -> str:
    """Return the text without the member at a path of keys. Raises Malformed."""
    if _is_empty(text):
        return text
    node, parent, member = _parse(text), None, None
    for key in path:
        parent, member = node, node.member(key)
        if member is None:
            return text
        node = member.node
    assert parent is not None
    assert member is not None
    place = parent.members.index(member)
    end = node.end if member.comma is None else member.comma + 1
    start = len(text[: member.start].rstrip())
    if start != parent.start + 1 or text[end : parent.end - 1].strip():
        # A comment on the line before must not swallow what follows.
        alone = "\n" not in text[start : member.start] or _LINE_ENDS.match(text, end)
        result = text[: start if alone else member.start] + text[end:]
    else:
        result = text[:start] + text[parent.end - 1 :]
    if place and member is parent.members[-1] and member.comma is None:
        comma = parent.members[place - 1].comma
        assert comma is not None
        result = result[:comma] + result[comma + 1 :]
    return result


def _is_empty(text: str) -> bool:
    """Return whether there is nothing but spaces and comments."""
    return _skip(text, 0) == len(text)


def _inserted(
    text: str, node: _Node, key: str, value: object, indent: str, unit: str, newline: str
) -> str:
    """Insert a member at the end of an object, after the last member and its comments."""
    close = node.end - 1
    inner = len(text[:close].rstrip())
    has_lines = "\n" in text[node.start : close] or not node.members
    begin = newline + indent if has_lines else " "
    line = f"{begin}{json.dumps(key)}: {_written(value, indent, unit, newline)}"
    last = node.members[-1] if node.members else None
    if last is not None and last.comma is not None:
        line += ","
    tail = text[inner:close]
    if not node.members and "\n" not in tail:
        tail = newline + indent.removesuffix(unit)
    result = text[:inner] + line + tail + text[close:]
    if last is not None and last.comma is None:
        result = result[: last.node.end] + "," + result[last.node.end :]
    return result


def _written(value: object, indent: str, unit: str, newline: str) -> str:
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return (newline + indent).join(lines)


def _style(text: str, root: _Node) -> tuple[str, str]:
    """Return the file's indentation, taken from the first member, and its line ends."""
    newline = "\r\n" if "\r\n" in text else "\n"
    for member in root.members[:1]:
        before = text[text.rfind("\n", 0, member.start) + 1 : member.start]
        if before and not before.strip():
            return before, newline
    return "  ", newline


def _parse(text: str) -> _Node:
    start = _skip(text, 0)
    node = _value(text, start, 0)
    end = _skip(text, node.end)
    if end != len(text):
        raise _malformed(text, end, "there is more after its end")
    return node


def _value(text: str, at: int, depth: int) -> _Node:
    if depth > _MAX_DEPTH:
        raise _malformed(text, at, "it is nested too deeply")
    if text[at : at + 1] in ("{", "["):
        return _container(text, at, depth)
    match = (_STRING if text[at : at + 1] == '"' else _SCALAR).match(text, at)
    try:
        if match:
            return _Node(json.loads(match[0]), at, match.end())
    except ValueError:
        pass
    raise _malformed(text, at, "a value is expected here")


def _container(text: str, at: int, depth: int) -> _Node:
    """Read an object or an array; only an object has members."""
    is_object = text[at] == "{"
    close, closing = ("}", "a brace") if is_object else ("]", "a bracket")
    node = _Node({} if is_object else [], at, at)
    position, separated = _skip(text, at + 1), True
    while text[position : position + 1] != close:
        if not separated:
            raise _malformed(text, position, f"a comma or {closing} is expected here")
        start, name = position, _STRING.match(text, position) if is_object else None
        if is_object:
            colon = _skip(text, name.end()) if name else position
            if name is None or text[colon : colon + 1] != ":":
                raise _malformed(text, position, "a name and a colon are expected here")
            position = _skip(text, colon + 1)
        value = _value(text, position, depth + 1)
        position = _skip(text, value.end)
        separated = text[position : position + 1] == ","
        if name:
            key, comma = json.loads(name[0]), position if separated else None
            node.members.append(_Member(key, start, value, comma))
            node.value[key] = value.value
        else:
            node.value.append(value.value)
        if separated:
            position = _skip(text, position + 1)
    node.end = position + 1
    return node


def _skip(text: str, at: int) -> int:
    """Return the position after spaces and comments."""
    match = _TRIVIA.match(text, at)
    assert match is not None
    return match.end()


def _malformed(text: str, at: int, reason: str) -> Malformed:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return Malformed(f"line {line}, column {column}: {reason}")
