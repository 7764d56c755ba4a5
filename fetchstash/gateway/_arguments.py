"""Put the text of an artifact in the place of its reference in the arguments of a call.

So a model passes on what it never read: ``{"artifact_ref": "art_…", "path": …}`` stands where the
tool's schema takes a string, or the JSON value of the artifact where it takes an object or array.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import anyio.to_thread

from fetchstash.config import WrappedServer
from fetchstash.errors import BadArgument, Call, Refused, TooLarge
from fetchstash.text import clip
from fetchstash.text.untyped import as_array, as_object, as_objects, is_array, is_object

if TYPE_CHECKING:
    from fetchstash.stash import Stash

PASSED_CHARS = 4_000_000
"""What all references of one call may become together."""

REFERENCES = 10
MAX_DEPTH = 20
_WRITTEN_CHARS = 2_000
_LISTED = 500
"""Artifacts of a run that are looked at in one go, to find whether one is of it."""

_NAMES = frozenset(("artifact_ref", "path"))
Get = Callable[[], Awaitable["Stash"]]


@dataclass(frozen=True)
class Reference:
    """An argument that refers to an artifact, or to a part of it."""

    ref: str
    path: str


def reference_in(value: object) -> Reference | None:
    """Return the reference that a value is, as an object or as its JSON text; None if it is none.

    Some hosts let a model put no object where a schema has a string.
    """
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _WRITTEN_CHARS or text[:1] != "{" or '"artifact_ref"' not in text:
            return None
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
    found = as_object(value)
    ref, path = found.get("artifact_ref"), found.get("path") or ""
    is_one = isinstance(ref, str) and ref.startswith("art_") and isinstance(path, str)
    return Reference(cast("str", ref), path) if is_one and _NAMES.issuperset(found) else None


def holds_reference(arguments: Mapping[str, Any]) -> bool:
    """Return whether a reference stands anywhere in the arguments, seen from outside."""
    left: list[tuple[object, int]] = [(arguments, 0)]
    while left:
        value, depth = left.pop()
        if depth and reference_in(value):
            return True
        if depth < MAX_DEPTH:
            inner = [*as_object(value).values(), *as_array(value)]
            left += [(item, depth + 1) for item in inner]
    return False


@dataclass
class Filling:
    """The references of one call and their texts. ``passed`` has what was put in, for the log."""

    get: Get
    server: WrappedServer
    tool: str
    schema: Mapping[str, Any]
    passed: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    async def filled(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with texts in place of references.

        Raises Refused, BadArgument, TooLarge, and what reading an artifact raises.
        """
        return cast("dict[str, Any]", await self._filled(self.schema, dict(arguments), 0))

    async def _filled(self, schema: Mapping[str, Any], value: Any, depth: int) -> Any:
        schema, kinds = self._resolved(schema)
        properties = as_object(schema.get("properties"))
        reference = reference_in(value) if depth and "artifact_ref" not in properties else None
        if reference and kinds & {"string", "object", "array"}:
            return await self._value(reference, kinds)
        if depth == MAX_DEPTH:
            return value
        if isinstance(value, dict):
            values = cast("dict[str, Any]", value).items()
            return {
                name: await self._filled(as_object(properties[name]), item, depth + 1)
                if name in properties
                else item
                for name, item in values
            }
        if is_array(value) and is_object(of_item := schema.get("items")):
            return [await self._filled(of_item, item, depth + 1) for item in value]
        return cast("object", value)

    def _resolved(self, schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], set[str]]:
        """Return a schema behind its local reference, and the types that it takes."""
        name = schema.get("$ref")
        if isinstance(name, str):
            place, _, key = name.removeprefix("#/").partition("/")
            schema = as_object(as_object(self.schema.get(place)).get(key))
        choices = as_objects(schema.get("anyOf")) + as_objects(schema.get("oneOf"))
        kinds: set[str] = set()
        for one in (schema, *choices):
            kind = one.get("type")
            kinds |= {kind} if isinstance(kind, str) else set(map(str, as_array(kind)))
        fixed = any(name in schema for name in ("enum", "const", "$ref"))
        return schema, kinds or (set() if fixed or choices else {"string"})

    async def _value(self, reference: Reference, kinds: set[str]) -> Any:
        if self.tool in self.server.no_artifacts or "*" in self.server.no_artifacts:
            what = f"{clip(self.tool, 60)} takes no artifact in the place of a text."
            raise Refused(what, "Write the text itself.", rule="no_artifacts")
        if len(self.passed) == REFERENCES:
            what = f"The call has more than {REFERENCES} references."
            raise BadArgument(what, "Pass on fewer.")
        stash = await self.get()
        await _check_run(stash, reference.ref)
        left = PASSED_CHARS - sum(chars for _, chars in self.passed)
        part = await stash.slice(reference.ref, path=reference.path, max_chars=left)
        if not part.is_whole or part.cut_at is not None:
            what = f"The text of {reference.ref} has more than {left} characters."
            parts = Call("info", {"ref": reference.ref})
            raise TooLarge(what, 'Pass on a part by its "path": {} lists them.', parts)
        self.passed.append((reference.ref, len(part.text)))
        is_json_string = bool(reference.path) and part.text[:1] == '"'
        value: object = None
        if is_json_string or "string" not in kinds:
            with suppress(ValueError, RecursionError):
                value = await anyio.to_thread.run_sync(json.loads, part.text)
        if "string" in kinds:
            return value if isinstance(value, str) else part.text
        if ("object" in kinds and isinstance(value, dict)) or (
            "array" in kinds and isinstance(value, list)
        ):
            return cast("object", value)
        what = f"{reference.ref} holds no JSON {' or '.join(sorted(kinds - {'null'}))}."
        raise BadArgument(what, "Pass on an artifact, or a part by its path, that does.")


async def _check_run(stash: "Stash", ref: str) -> None:
    """Raise BadArgument for an artifact of another run: a model may have read of it anywhere."""
    offset = 0
    while True:
        page = await stash.list(limit=_LISTED, offset=offset)
        if any(facts.artifact_ref == ref for facts in page):
            return
        offset += _LISTED
        if offset >= page.total:
            break
    what = f"There is no artifact {clip(ref, 40)} in this run."
    raise BadArgument(what, "Only what was fetched or kept here is passed on: {}.", Call("list"))
