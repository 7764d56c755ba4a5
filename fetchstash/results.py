"""@context_result and store_result: keep a tool's long result in a file and return a preview."""

import asyncio
import functools
import json
import os
import secrets
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from inspect import isawaitable, iscoroutinefunction
from pathlib import Path
from typing import Any, ParamSpec, Protocol, cast, runtime_checkable

from fetchstash.config import load
from fetchstash.errors import BadArgument, StoreError, type_checked
from fetchstash.files import FileType, read_within
from fetchstash.text import Truncation

P = ParamSpec("P")


@runtime_checkable
class Keeper(Protocol):
    """A context that keeps results itself, such as fetchstash.client.offload.StoreOffload."""

    def keep(self, text: str, name: str) -> str:
        """Keep ``text`` and return a reference to it."""
        ...


def context_result(
    profile: str | Truncation = "default",
) -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """Decorate a sync or async tool: return a result over the profile's threshold as a preview.

    A result at or under the threshold is returned unchanged. Text, bytes and JSON values are
    measured and kept as text. The keyword ``ctx`` is passed through; it also says where results are
    kept (see ``store_result``). A profile is a table ``[context.truncation.NAME]`` of the settings
    file, or one of text.TRUNCATIONS. Raises BadArgument for an unknown profile and for an invalid
    settings file.
    """
    if callable(profile):
        what = "context_result takes a profile, and was given a function."
        raise BadArgument(what, 'Write @context_result("default") above it.')
    return _decorator(profile)


@type_checked
def _decorator(profile: str | Truncation) -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    truncation = profile if isinstance(profile, Truncation) else _profile(profile)

    def decorate(tool: Callable[P, Any]) -> Callable[P, Any]:
        if iscoroutinefunction(tool):

            @functools.wraps(tool)
            async def asynchronous(*args: P.args, **kwargs: P.kwargs) -> Any:
                return await _shorten_later(tool(*args, **kwargs), truncation, kwargs.get("ctx"))

            return asynchronous

        @functools.wraps(tool)
        def synchronous(*args: P.args, **kwargs: P.kwargs) -> Any:
            result = tool(*args, **kwargs)
            if isawaitable(result):  # an async tool that another decorator wrapped
                return _shorten_later(result, truncation, kwargs.get("ctx"))
            return _shorten(result, truncation, kwargs.get("ctx"))

        return synchronous

    return decorate


async def _shorten_later(result: Awaitable[Any], truncation: Truncation, ctx: Any) -> Any:
    return await asyncio.to_thread(_shorten, await result, truncation, ctx)


def _profile(name: str) -> Truncation:
    known = load(environment=os.environ).truncation
    if name not in known:
        next_step = f"Use one of {', '.join(sorted(known))}."
        raise BadArgument(f"There is no truncation profile {name!r}.", next_step)
    return known[name]


def _shorten(result: Any, truncation: Truncation, ctx: Any) -> Any:
    """Return ``result``, or its preview and where it is kept if it is over the threshold."""
    content, file_type = _as_content(result)
    if len(content) <= truncation.threshold:
        return result
    path = _write(content, file_type, ctx)
    limits = load(environment=os.environ).extract
    rows = {"rows_head": truncation.rows_head, "rows_tail": truncation.rows_tail}
    preview = replace(limits.preview, max_tokens_per_file=truncation.max_preview_tokens, **rows)
    file = read_within(path, replace(limits, preview=preview), _ends(result, truncation))
    shown = file.content
    if not isinstance(shown, str):
        shown = f"({file.error_message or 'it is no text'})"
    place = str(path)
    if isinstance(ctx, Keeper) and isinstance(content, str):
        path.unlink(missing_ok=True)
        place = store_result(content, file_type, ctx)
    return f"Results saved to {place} ({len(content)} chars)\n\nPreview:\n{shown}"


def _ends(result: Any, truncation: Truncation) -> tuple[int, int] | None:
    """Return how many first and last lines to show, None if neither profile nor rows decide it."""
    if truncation.lines_head is not None and truncation.lines_tail is not None:
        return truncation.lines_head, truncation.lines_tail
    if isinstance(result, list | tuple) and all(map(_is_row, cast("list[Any]", result))):
        # The brackets stand on lines of their own.
        return truncation.rows_head + 1, truncation.rows_tail + 1
    return None


def _is_row(record: Any) -> bool:
    """Return whether ``record`` is a row of a query: named values without nested ones."""
    if not isinstance(record, dict):
        return False
    values = cast("Mapping[Any, Any]", record).values()
    return not any(isinstance(value, dict | list) for value in values)


@type_checked
def store_result(content: Any, content_type: FileType, ctx: Any = None) -> str:
    """Keep ``content`` (text, bytes or a JSON value) and return its path or reference.

    Writes the file ``result_{8 hex}{extension}`` in the folder ``ctx`` (a path), or in a private
    folder of this process. A ``ctx`` with ``keep`` keeps text itself and returns its reference.
    Raises StoreError.
    """
    plain = content if isinstance(content, str | bytes) else _as_content(content)[0]
    if isinstance(ctx, Keeper) and isinstance(plain, str):
        return ctx.keep(plain, f"result{content_type.extension}")
    return str(_write(plain, content_type, ctx))


def _as_content(result: Any) -> tuple[str | bytes, FileType]:
    """Return a result as the contents and the type of its file.

    A list has one record a line, so that it can be read back in parts.
    """
    if isinstance(result, str):
        return result, FileType.JSON if _is_json(result) else FileType.TEXT
    if isinstance(result, bytes | bytearray):
        return bytes(result), FileType.BINARY
    if isinstance(result, list | tuple):
        records: list[Any] = list(cast("list[Any]", result))
        return "[\n" + ",\n".join(_json(record) for record in records) + "\n]\n", FileType.JSON
    return _json(result, indent=1), FileType.JSON


def _json(value: Any, indent: int | None = None) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str, indent=indent)
    except (TypeError, ValueError, RecursionError):  # keys that are no strings, cycles, depth
        return json.dumps(str(value), ensure_ascii=False)


def _is_json(text: str) -> bool:
    with suppress(ValueError, RecursionError):
        return text.lstrip()[:1] in {"{", "["} and isinstance(json.loads(text), dict | list)
    return False


def _write(content: str | bytes, file_type: FileType, ctx: Any) -> Path:
    folder = Path(ctx) if isinstance(ctx, str | Path) else _own_folder()
    path = folder / f"result_{secrets.token_hex(4)}{file_type.extension}"
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    try:
        with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(data)
    except FileExistsError:
        return _write(content, file_type, ctx)  # the name is taken: use another
    except OSError as error:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        what = f"The result cannot be kept in {folder}: {error.strerror or 'it cannot be written'}."
        raise StoreError(what, "Free some room, or name another folder.") from None
    return path


@functools.cache
def _own_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="fetchstash-results-"))
