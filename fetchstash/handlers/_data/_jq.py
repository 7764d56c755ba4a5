"""Paths and filters of jq as JSONPath (RFC 9535), as far as that has them.

``.stations[] | select(.h > 5) | .name`` is ``$["stations"][?@.h > 5]["name"]``. What a program of
jq does with the values at its end (``length``, ``keys``, ``first`` …) is done to what was found.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fetchstash.text.untyped import is_object


def _keys(value: Any) -> list[Any]:
    return sorted(value) if is_object(value) else list(range(len(value)))


def _total(value: Any) -> Any:
    return sum(value)  # of numbers alone: lists would be copied again and again


def _unique(value: Any) -> list[Any]:
    return sorted(dict.fromkeys(value))


ENDS: dict[str, Callable[[Any], Any]] = {
    "length": len,
    "keys": _keys,
    "first": lambda value: value[0],
    "last": lambda value: value[-1],
    "add": _total,
    "min": min,
    "max": max,
    "sort": sorted,
    "unique": _unique,
}
"""What may stand behind the last | of a path. Raises TypeError or LookupError for other values."""

_STEP = re.compile(r"\.?([^.\[\]/|'\"$]+)|/([^/\[\]]+)|\.?\[([^\[\]]{0,100})\]|\.\"([^\"]*)\"")
_BRACKETED = re.compile(r"\*?|-?\d{1,10}|-?\d{0,10}:-?\d{0,10}|'[^']*'|\"[^\"]*\"|[^\W\d]\w*")
_SPLIT = re.compile(r'"(?:[^"\\]|\\.)*"|[()\[\]|]')
_CALLED = re.compile(r"(select|map)\s*\((.*)\)", re.DOTALL)
_OPTIONAL = re.compile(r"\?(?=[.\[\]|)\s]|\Z)")
_TOKEN = re.compile(
    r"\s*(?:(?P<value>\"(?:[^\"\\]|\\.)*\"|-?\d+(?:\.\d+)?\b|true\b|false\b|null\b)"
    r"|(?P<sign>==|!=|<=|>=|<|>)|(?P<joint>and\b|or\b)|(?P<bracket>[()])"
    r"|\|\s*(?P<tests>test|contains|startswith|endswith)\s*\(\s*(?P<words>\"(?:[^\"\\]|\\.)*\")\s*\)"
    r"|(?P<path>\.[^\s|()=<>!]*))\s*"
)
_MOST_CHARS = 1_000
_JOINTS = {"and": " && ", "or": " || "}
_MATCHES = {"test": "{}", "contains": "{}", "startswith": "^{}", "endswith": "{}$"}

Step = str | tuple[str]


@dataclass(slots=True)
class Piped:
    """A program of jq: the JSONPath that it picks by, and the functions that it applies then."""

    path: str = "$"
    ends: list[str] = field(default_factory=list[str])
    collected: bool = False


def read(program: str) -> Piped | None:
    """Return a program of jq as JSONPath, None if it is none, or one that JSONPath cannot say."""
    piped = Piped()
    if not 0 < len(program) <= _MOST_CHARS or program.startswith(("$", "/")):
        return None
    stages = _stages(_OPTIONAL.sub("", program))
    return piped if all(_add(piped, stage.strip()) for stage in stages) else None


def steps_of(path: str) -> list[Step] | None:
    """Return the names of a plain path; a step that may match several values is (selector,).

    None for what is no plain path.
    """
    steps: list[Step] = []
    at = len(path) if path == "." else 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        name, bracket, quoted = step[1] or step[2], step[3], step[4]
        if bracket is not None and not _BRACKETED.fullmatch(bracket):
            return None
        if name == "*" or bracket in ("", "*"):
            steps.append(("*",))
        elif bracket is None:
            steps.append(name or quoted)
        elif bracket[0] in "'\"":
            steps.append(bracket[1:-1])
        else:
            plain = bracket.isdigit() or not re.match(r"[-\d:]", bracket)
            steps.append(bracket if plain else (bracket,))
        at = step.end()
    return steps


def written(step: Step) -> str:
    """Return a step as JSONPath has it."""
    if isinstance(step, tuple):
        return f"[{step[0]}]"
    return f"[{step}]" if step.isdigit() else f"[{json.dumps(step)}]"


def _stages(program: str) -> list[str]:
    """Return the stages of a program, between bars outside of strings and brackets."""
    stages, begin, depth = list[str](), 0, 0
    for mark in _SPLIT.finditer(program):
        depth += (mark[0] in "([") - (mark[0] in ")]")
        if mark[0] == "|" and depth == 0:
            stages.append(program[begin : mark.start()])
            begin = mark.end()
    return [*stages, program[begin:]]


def _add(piped: Piped, stage: str) -> bool:
    """Add a stage to a program; return whether JSONPath has it."""
    if stage in ENDS:
        piped.ends.append(stage)
        return True
    if piped.ends or not stage:
        return False
    called = _CALLED.fullmatch(stage)
    if called is None and re.search(r"[(){},]", stage):
        return False
    if called is None and piped.path != "$" and stage[0] not in ".[":
        return False  # a function of jq
    if piped.collected:  # its items go on, or nothing does
        if not stage.startswith(".[]"):
            return False
        piped.collected, stage = False, stage[3:] or "."
    if called:
        return _call(piped, called[1], called[2])
    if stage.startswith("[.") and stage.endswith("]") and stage.count("[") == stage.count("]"):
        inner = all(_add(piped, part.strip()) for part in _stages(stage[1:-1]))
        piped.collected = True
        return inner and not piped.ends
    if stage == "..":
        piped.path += ".."
        return True
    if stage.startswith(".."):
        piped.path, stage = piped.path + "..", stage[1:]
    steps = steps_of(stage)
    if steps is None or (piped.path.endswith("..") and not steps):
        return False
    piped.path += "".join(map(written, steps))
    return True


def _call(piped: Piped, name: str, inner: str) -> bool:
    if name == "map":
        piped.path += "[*]"
        done = all(_add(piped, part.strip()) for part in _stages(inner))
        piped.collected = True
        return done and not piped.ends
    condition = _condition(inner)
    if not condition or not piped.path.endswith("[*]"):
        return False
    piped.path = f"{piped.path[:-3]}[?{condition}]"
    return True


def _condition(text: str) -> str:
    """Return the condition of a ``select`` as that of a filter, "" if JSONPath has none like it."""
    parts: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return ""
        kind, at = token.lastgroup or "", token.end()
        if token["words"]:
            if not parts or parts[-1][0] != "path":
                return ""
            words = json.loads(token["words"])
            words = words if token["tests"] == "test" else re.escape(words)
            pattern = json.dumps(_MATCHES[token["tests"]].format(words))
            parts[-1] = ("test", f"search({parts[-1][1]}, {pattern})")
        elif kind == "path":
            steps = steps_of(token["path"])
            if steps is None:
                return ""
            parts.append((kind, "@" + "".join(map(written, steps))))
        else:
            joint = _JOINTS.get(token[kind], f" {token[kind]} " if kind == "sign" else token[kind])
            parts.append((kind, joint))
    kinds = ["", *(kind for kind, _ in parts), ""]
    # A path alone holds where its value is neither false nor null.
    return "".join(
        f"({word} && {word} != false && {word} != null)"
        if kind == "path" and "sign" not in (kinds[place], kinds[place + 2])
        else word
        for place, (kind, word) in enumerate(parts)
    )
