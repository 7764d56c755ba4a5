"""Paths into the values of JSON: pointers, JSONPath, and those that jq and programs write."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from fetchstash.handlers._data import DataReason, _jq
from fetchstash.handlers._data._json_values import on_lines
from fetchstash.handlers._reasons import Reason
from fetchstash.text.untyped import is_array, is_object


def value_at(value: Any, path: str) -> str:
    """Return the part of ``value`` at ``path`` on lines. Raises what ``pick`` raises."""
    return on_lines(pick(value, path))


def pick(value: Any, path: str) -> Any:
    """Return the part of ``value`` that ``path`` points at.

    A JSON pointer (RFC 6901) begins with "/" or "#/", a JSONPath (RFC 9535) with "$". Other
    spellings are those of jq and of programs: ``.stations[5].name``, ``stations.5``,
    ``stations/5``, ``.stations[] | select(.lit) | .name``. A key of the outermost object goes
    first. A path that may match several values returns their list. Raises OutOfRange if nothing
    matches, BadArgument if it is no path.
    """
    if not path:
        return value
    if path.startswith(("/", "#/")):
        names = [name.replace("~1", "/").replace("~0", "~") for name in path.split("/")[1:]]
        for name in names:
            value = _step(value, name, path)
        return value
    if is_object(value) and path in value:
        return value[path]
    if ended := _ENDED.fullmatch(path):
        return _ended(_by_path(value, ended[1], path), [ended[2]], path)
    if _JQ.match(path):
        return _piped(value, path)
    steps = _jq.steps_of(path.removeprefix("$"))
    if steps is None or ".." in path:
        return _by_path(value, path, path) if path[0] == "$" else _step(value, path, path)
    if all(isinstance(step, str) for step in steps):
        for step in steps:
            value = _step(value, str(step), path)
        return value
    return _by_path(value, "$" + "".join(map(_jq.written, steps)), path)


_JQ = re.compile(r"(?!\$).*(?:\||\?(?=[.\[]|\Z)|\.\.|\.\"|\b(?:select|map)\()|\[\.", re.DOTALL)
"""What no plain path has, and a program of jq may have. "$" begins a JSONPath."""
_ENDED = re.compile(rf"(\$.*\S)\s*\|\s*({'|'.join(_jq.ENDS)})\s*", re.DOTALL)


def _piped(value: Any, path: str) -> Any:
    """Return what a program of jq yields. Raises BadArgument for one that is not understood."""
    piped = _jq.read(path)
    if piped is None:
        raise DataReason.BAD_JQ.error(name=path)
    found = _by_path(value, piped.path, path)
    found = [found] if piped.collected and not is_array(found) else found
    return _ended(found, piped.ends, path)


def _ended(found: Any, ends: Sequence[str], path: str) -> Any:
    """Apply the last functions of a jq program to the values that were found."""
    for end in ends:
        try:
            found = _jq.ENDS[end](found)
        except (TypeError, LookupError, ValueError):
            is_several = is_object(found) or is_array(found)
            reason = DataReason.BAD_JQ if is_several else DataReason.NOT_IN_VALUE
            raise reason.error(name=path) from None
    return found


def _step(value: Any, name: str, path: str) -> Any:
    if is_object(value):
        if name not in value:
            raise DataReason.NOT_IN_OBJECT.error(name=path, count=len(value))
        return value[name]
    if not is_array(value):
        raise DataReason.NOT_IN_VALUE.error(name=path)
    if name == "length":
        return len(value)
    # RFC 6901, section 4: an index has no sign and no leading zero.
    is_index = re.fullmatch(r"0|[1-9]\d{0,9}", name, re.ASCII)
    if not is_index or int(name) >= len(value):
        raise DataReason.NOT_IN_ARRAY.error(name=path, count=len(value))
    return value[int(name)]


def _by_path(value: Any, path: str, given: str) -> Any:
    """Return what a JSONPath finds. Errors name the path as it was ``given``."""
    from jsonpath import JSONPath, JSONPathEnvironment  # noqa: PLC0415 - heavy
    from jsonpath.exceptions import JSONPathError  # noqa: PLC0415

    try:
        environment = JSONPathEnvironment(strict=True)
        environment.function_extensions |= _linear_functions()
        query = environment.compile(path)
        values: list[Any] = query.findall(value)
    except JSONPathError as error:
        raise DataReason.BAD_JSONPATH.error(name=given) from error
    if not values:
        raise Reason.NOTHING_THERE.error(name=given)
    return values[0] if isinstance(query, JSONPath) and query.singular_query() else values


def _linear_functions() -> dict[str, Any]:
    """Return ``match`` and ``search`` (RFC 9535, section 2.4) by RE2, which takes linear time."""
    import re2  # noqa: PLC0415 - for JSONPath alone
    from jsonpath.function_extensions import ExpressionType, FilterFunction  # noqa: PLC0415

    @lru_cache(maxsize=100)  # a document may bring a pattern with each of its values
    def compiled(pattern: str) -> Any:
        options = re2.Options()
        options.log_errors = False
        try:
            return re2.compile(pattern.encode("utf-8", "surrogatepass"), options)
        except re2.error:
            return None  # RFC 9535: a bad pattern matches nothing

    class Linear(FilterFunction):
        """The JSONPath function ``match`` or ``search`` by RE2; ``method`` is the pattern's."""

        @property
        def arg_types(self) -> list[ExpressionType]:
            return [ExpressionType.VALUE, ExpressionType.VALUE]

        @property
        def return_type(self) -> ExpressionType:
            return ExpressionType.LOGICAL

        def __init__(self, method: str) -> None:
            self.method = method

        def __call__(self, value: object, pattern: object) -> bool:
            if not isinstance(value, str) or not isinstance(pattern, str):
                return False
            regex = compiled(pattern)
            if regex is None:
                return False
            return getattr(regex, self.method)(value.encode("utf-8", "surrogatepass")) is not None

    return {"match": Linear("fullmatch"), "search": Linear("search")}
