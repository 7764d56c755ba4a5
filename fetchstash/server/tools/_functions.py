"""The tools as plain async functions, for agents that run in the same process."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Optional

from fetchstash.errors import FetchstashError
from fetchstash.render import Host, error_line
from fetchstash.server.tools._answer import answer
from fetchstash.server.tools._specs import Schema, ToolSpec, tool_specs
from fetchstash.stash import Stash

_TYPES: dict[str, Any] = {"string": str, "integer": int, "boolean": bool, "array": list[str]}

ToolFunction = Callable[..., Awaitable[str]]


def tool_functions(stash: Stash) -> list[ToolFunction]:
    """Return the tools of ``stash`` as async functions, as agent frameworks take them.

    Names, docstrings and signatures are those of the MCP server's tools. Each function returns the
    text that a model is shown; an error is its one line, so that the model can act on it.
    Pictures need the server.
    """
    settings = stash.settings
    host = Host(settings.views, preview=settings.context)
    return [_function(stash, host, tool) for tool in tool_specs(settings)]


def _function(stash: Stash, host: Host, tool: ToolSpec) -> ToolFunction:
    async def function(**arguments: Any) -> str:
        try:
            return (await answer(stash, host, tool, arguments)).text
        except FetchstashError as error:
            return error_line(error)

    parameters = [
        _parameter(name, schema, required=name in tool.required)
        for name, schema in tool.properties.items()
        if name != "render"
    ]
    parameters.sort(key=lambda parameter: parameter.default is not parameter.empty)
    function.__name__ = function.__qualname__ = tool.name
    function.__doc__ = _docstring(tool)
    function.__annotations__ = {item.name: item.annotation for item in parameters} | {"return": str}
    # Frameworks read it to make their own schema of the arguments.
    function.__signature__ = inspect.Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    return function


def _docstring(tool: ToolSpec) -> str:
    """Return the description of a tool and of its arguments, as frameworks parse docstrings."""
    arguments = [
        f"    {name}: {schema['description']}"
        for name, schema in tool.properties.items()
        if "description" in schema and name != "render"
    ]
    return "\n".join(
        [tool.description, "", "Args:", *arguments] if arguments else [tool.description]
    )


def _parameter(name: str, schema: Schema, *, required: bool) -> inspect.Parameter:
    kind: Any = Literal[tuple(schema["enum"])] if "enum" in schema else _TYPES[schema["type"]]
    default = inspect.Parameter.empty if required else schema.get("default")
    if default is None:
        kind = Optional[kind]  # noqa: UP045 - the type is computed
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
