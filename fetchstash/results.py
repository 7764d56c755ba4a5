"""@context_result and store_result, for any tool: a long result goes into a file, and the model gets a preview and the path."""

import asyncio
import functools
import json
import os
import secrets
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from inspect import isawaitable, iscoroutinefunction
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeGuard, cast, runtime_checkable

from fetchstash.config import load
from fetchstash.errors import BadArgument, StoreError
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
    """Decorate a tool, sync or async: at or under the profile's threshold its result comes back as it was, else a preview.

    Text, bytes and whatever JSON can say are measured and kept as text. The keyword ``ctx`` is
    passed through, and says where results go (see ``store_result``). A profile is named by the
    settings file's ``[context.truncation.NAME]``, or is one of text.TRUNCATIONS. Raises
    BadArgument for one that is not there, and for a settings file that is not right.
    """
    truncation = _profile(profile) if isinstance(profile, str) else profile

    def decorate(tool: Callable[P, Any]) -> Callable[P, Any]:
        if iscoroutinefunction(tool):

            @functools.wraps(tool)
            async def asynchronous(*args: P.args, **kwargs: P.kwargs) -> Any:
                return await _awaited(tool(*args, **kwargs), truncation, kwargs.get("ctx"))

            return asynchronous

        @functools.wraps(tool)
        def synchronous(*args: P.args, **kwargs: P.kwargs) -> Any:
            result = tool(*args, **kwargs)
            if isawaitable(result):  # an async tool that another decorator wrapped
                return _awaited(result, truncation, kwargs.get("ctx"))
            return _shortened(result, truncation, kwargs.get("ctx"))

        return synchronous

    return decorate


async def _awaited(result: Awaitable[Any], truncation: Truncation, ctx: Any) -> Any:
    return await asyncio.to_thread(_shortened, await result, truncation, ctx)


def _profile(name: str) -> Truncation:
    known = load(environment=os.environ).truncation
    if name not in known:
        raise BadArgument(
            f"There is no truncation profile {name!r}.", f"Take one of {', '.join(sorted(known))}."
        )
    return known[name]


def _shortened(result: Any, truncation: Truncation, ctx: Any) -> Any:
    """Return ``result``, or where it is kept and a preview if it is longer than the threshold."""
    content, file_type = _as_content(result)
    if len(content) <= truncation.threshold:
        return result
    path = _written(content, file_type, ctx)
    limits = load(environment=os.environ).extract
    preview = replace(
        limits.preview,
        max_tokens_per_file=truncation.max_preview_tokens,
        rows_head=truncation.rows_head,
        rows_tail=truncation.rows_tail,
    )
    found = read_within(path, replace(limits, preview=preview), _ends(result, truncation))
    shown = (
        found.content
        if isinstance(found.content, str)
        else f"({found.error_message or 'it is no text'})"
    )
    return f"Results saved to {_kept(content, file_type, ctx, path)} ({len(content)} chars)\n\nPreview:\n{shown}"


def _ends(result: Any, truncation: Truncation) -> tuple[int, int] | None:
    """Return how many first and last lines of the file are shown, where a profile or the result's own form says so."""
    if truncation.lines_head is not None and truncation.lines_tail is not None:
        return truncation.lines_head, truncation.lines_tail
    if isinstance(result, list | tuple) and all(map(_is_row, cast("list[Any]", result))):
        return (
            truncation.rows_head + 1,
            truncation.rows_tail + 1,
        )  # the brackets stand on lines of their own
    return None


def _is_row(record: Any) -> bool:
    """Return whether ``record`` is what a query returns: named values that hold no others."""
    return _is_object(record) and not any(
        isinstance(value, dict | list) for value in record.values()
    )


def _is_object(value: Any) -> TypeGuard[dict[Any, Any]]:
    return isinstance(value, dict)


def store_result(content: Any, content_type: FileType, ctx: Any = None) -> str:
    """Keep ``content`` (text, bytes or what JSON can say) and return where: a path, or a reference.

    It becomes the file ``result_{8 hex}{extension}`` in the folder ``ctx`` (a path), or in one of
    this process's own, which only this user can read. A ``ctx`` that has ``keep`` keeps text
    itself, and its reference is returned. Raises StoreError.
    """
    plain = content if isinstance(content, str | bytes) else _as_content(content)[0]
    if isinstance(ctx, Keeper) and isinstance(plain, str):
        return ctx.keep(plain, f"result{content_type.extension}")
    return str(_written(plain, content_type, ctx))


def _as_content(result: Any) -> tuple[str | bytes, FileType]:
    """Return a result as what is written to its file. A list stands one record a line, so that it can be read back in parts."""
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
    except (TypeError, ValueError, RecursionError):  # keys that are no strings, rings, depths
        return json.dumps(str(value), ensure_ascii=False)


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in {"{", "["}:
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _kept(content: str | bytes, file_type: FileType, ctx: Any, path: Path) -> str:
    if isinstance(ctx, Keeper) and isinstance(content, str):
        path.unlink(missing_ok=True)
        return ctx.keep(content, f"result{file_type.extension}")
    return str(path)


def _written(content: str | bytes, file_type: FileType, ctx: Any) -> Path:
    folder = Path(ctx) if isinstance(ctx, str | Path) else _own_folder()
    path = folder / f"result_{secrets.token_hex(4)}{file_type.extension}"
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    try:
        with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(data)
    except FileExistsError:
        return _written(content, file_type, ctx)  # somebody else's: another name
    except OSError as error:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        what = f"The result cannot be kept in {folder}: {error.strerror or 'it cannot be written'}."
        raise StoreError(what, "Free some room, or name another folder.") from None
    return path


@functools.cache
def _own_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="fetchstash-results-"))
