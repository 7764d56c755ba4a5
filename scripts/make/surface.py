"""The public surface: what a version 1 promises to keep, read from the code.

``lines()`` is the kept list of tests/surface.txt, ``reference()`` the page docs/reference.md.
Signatures are read from the source: adapters need SDKs, which are not installed everywhere.
"""

import ast
import importlib
import inspect
import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import click

from fetchstash import errors
from fetchstash.cli import Command, commands
from fetchstash.config import KEYS, load, toml_value
from fetchstash.errors import FetchstashError
from fetchstash.server.tools import tool_specs
from fetchstash.store import Facts
from fetchstash.store._schema import STEPS
from scripts.make.tables import wrapped

EVERY_TOOL = {"ingest.read_roots": ["/"], "ingest.site": True, "tenant.delete": True}
"""The settings that offer every tool."""
ADAPTERS = ("anthropic", "google_genai", "langchain", "litellm", "openai", "pydantic_ai")
MODULES = {
    "fetchstash": "The library. [Its page](library.md) begins with examples.",
    "fetchstash.client": "For authors of agents. [Its page](client.md) begins with examples.",
    "fetchstash.client.offload": "Where contents go that leave the context.",
    **{f"fetchstash.client.adapters.{name}": "" for name in ADAPTERS},
    "fetchstash.files": "`read_file` and its values.",
    "fetchstash.handlers": "For formats of your own. [Its page](plugins.md) has two.",
    "fetchstash.text.ranges": "What a handler says of the parts of a text.",
    "fetchstash.text.urls": "One key for all spellings of a URL, for stores of your own.",
    "fetchstash.store": "For stores of your own: `open_stash(store=…)`.",
    "fetchstash.fetch": "For fetchers and browsers of your own.",
}
"""The modules with public names, and what each is for."""

CHOSEN = {
    "fetchstash.handlers": (
        "DecidedBy Extracted ExtractLimits Extractor Format Handler Head Hints PageReader PageText "
        "Part PartRequest PartText Picture Reason Sniffed TextParts list_preview read_text"
    ),
    "fetchstash.text.ranges": "Heading Preview Ranges",
    "fetchstash.text.urls": "key_of",
    "fetchstash.store": (
        "ArtifactStore Facts Listing StoredText TextReader keep_store_facts new_facts"
    ),
    "fetchstash.fetch": "Fetched Fetcher Rendered Renderer",
    "fetchstash.client.adapters.pydantic_ai": "RecoveryCapability",
}
"""Of these only some names are for others; the rest is for the rooms of fetchstash."""

HEAD = """# Reference

Every public name of the library, as the code declares it. A name that is not here is private, and
may change in any version. [What is stable](stability.md) says what version 1 keeps.
"""


@dataclass(frozen=True, slots=True)
class Name:
    """A public name: its declaration, its docstring, and the members of a class."""

    path: str
    declaration: str
    doc: str = ""
    members: tuple["Name", ...] = ()


@cache
def tree(module: str) -> ast.Module:
    """Return the parsed source of a module, which is not imported."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


def declared(module: str, name: str) -> ast.stmt | None:
    """Return the statement of a module that declares a name."""
    for node in tree(module).body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if node.name == name:
                return node
            case ast.AnnAssign(target=ast.Name(id=target)) if target == name:
                return node
            case ast.Assign(targets=[ast.Name(id=target)]) if target == name:
                return node
            case _:
                pass
    return None


def origin(module: str, name: str) -> tuple[str, str]:
    """Return the module and the name under which a public name is declared."""
    if declared(module, name):
        return module, name
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fetchstash"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return origin(str(node.module), alias.name)
    raise LookupError(f"{module} does not declare {name}")


def names_of(module: str) -> list[str]:
    """Return the public names of a module, sorted."""
    if chosen := CHOSEN.get(module):
        return sorted(chosen.split())
    if ".adapters." not in module and (
        listed := getattr(importlib.import_module(module), "__all__", ())
    ):
        return sorted(listed)
    kinds = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef
    nodes = (node for node in tree(module).body if isinstance(node, kinds))
    return sorted(node.name for node in nodes if not node.name.startswith("_"))


def public_names(module: str) -> Iterator[Name]:
    """Yield the public names of a module."""
    for name in names_of(module):
        place, real = origin(module, name)
        node = declared(place, real)
        path = f"{module}.{name}"
        match node:
            case ast.ClassDef():
                bases = [ast.unparse(base) for base in node.bases]
                heading = f"class {name}({', '.join(bases)})" if bases else f"class {name}"
                members = {member.path: member for member in inherited(place, node)}
                yield Name(path, heading, ast.get_docstring(node) or "", (*members.values(),))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield Name(path, signature(node, name), ast.get_docstring(node) or "")
            case _:
                assert node is not None
                yield Name(path, ast.unparse(node))


def inherited(place: str, node: ast.ClassDef) -> Iterator[Name]:
    """Yield the members of a class, those of its bases in fetchstash first."""
    for named in node.bases:
        base = named.value if isinstance(named, ast.Subscript) else named
        if isinstance(base, ast.Name):
            try:
                above, name = origin(place, base.id)
            except LookupError:  # of Python or of a library
                continue
            found = declared(above, name)
            if isinstance(found, ast.ClassDef) and name not in every_name():
                yield from inherited(above, found)
    for item in node.body:
        match item:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if is_public(item.name):
                yield Name(item.name, signature(item, item.name), ast.get_docstring(item) or "")
            case ast.AnnAssign(target=ast.Name(id=name)) if is_public(name):
                yield Name(name, field_of(item, name))
            case ast.Assign(targets=[ast.Name(id=name)]) if is_public(name):
                # The value of an Enum's member is its own affair.
                value = "" if isinstance(item.value, ast.Tuple) else f" = {ast.unparse(item.value)}"
                yield Name(name, f"{name}{value}")
            case _:
                pass


@cache
def every_name() -> frozenset[str]:
    """Return the last parts of all public names."""
    return frozenset(name for module in MODULES for name in names_of(module))


def field_of(item: ast.AnnAssign, name: str) -> str:
    """Return a field with its type and its default, without what else a setting says of it."""
    text = f"{name}: {ast.unparse(item.annotation)}"
    match item.value:
        case None:
            return text
        case ast.Call(func=ast.Name(id="setting"), args=[default, *_]):
            return f"{text} = {ast.unparse(default)}"
        case ast.Call(func=ast.Name(id="field"), keywords=keywords):
            made = [word for word in keywords if word.arg in ("default", "default_factory")]
            return f"{text} = {ast.unparse(made[0].value)}" if made else text
        case ast.Call(func=ast.Name(id=maker)) if maker.startswith("_"):
            return text
        case value:
            return f"{text} = {ast.unparse(value)}"


def is_public(name: str) -> bool:
    """Return whether a member of a class is public."""
    return not name.startswith("_") or name == "__init__"


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> str:
    """Return how a function is called; a property has no parentheses."""
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    if decorators & {"property", "cached_property"}:
        return f"{name}{returns}"
    before = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    if decorators & {"contextmanager", "asynccontextmanager"}:
        before = "async with" if "asynccontextmanager" in decorators else "with"
    return f"{before} {name}({ast.unparse(node.args)}){returns}"


def error_codes() -> set[str]:
    """Return the code of every error."""
    classes = [error for error in vars(errors).values() if isinstance(error, type)]
    return {error.code for error in classes if issubclass(error, FetchstashError)}


def lines() -> str:
    """Return the kept list, a line for each promise."""
    kept: list[str] = []
    for spec in tool_specs(load(EVERY_TOOL)):
        kept.append(f"tool {spec.name}")
        for name, schema in spec.properties.items():
            values = {key: value for key, value in schema.items() if key != "description"}
            kept.append(f"tool {spec.name} {name} {json.dumps(values, sort_keys=True)}")
    for path, key in KEYS.items():
        flag = f" --{key.flag}" if key.flag else ""
        kept.append(f"setting {path} = {toml_value(key.default)} {key.variable}{flag}")
    for name, command in sorted(commands.commands.items()):
        below = command.commands if isinstance(command, click.Group) else {"": command}
        for word, leaf in sorted(below.items()):
            assert isinstance(leaf, Command)
            for parameter in leaf.params:
                if isinstance(parameter, click.Argument) or parameter in leaf.own_options:
                    options = " ".join((*parameter.opts, *parameter.secondary_opts))
                    kept.append(f"command {f'{name} {word}'.strip()}: {options}")
    kept += [f"error {code}" for code in sorted(error_codes())]
    kept += [f"fact {each.name}: {inspect.formatannotation(each.type)}" for each in fields(Facts)]
    kept.append(f"store schema {len(STEPS)}")
    for module in MODULES:
        for public in public_names(module):
            kept.append(f"library {public.path}: {one_line(public.declaration)}")
            for member in public.members:
                path = f"{public.path}.{member.path}"
                kept.append(f"library {path}: {one_line(member.declaration)}")
    return "\n".join([*kept, ""])


def one_line(text: str) -> str:
    """Return a declaration on one line."""
    return " ".join(text.split())


def reference() -> str:
    """Return the page docs/reference.md."""
    parts = [HEAD]
    for module, about in MODULES.items():
        parts.append(f"## {module}\n" + (f"\n{wrapped(about)}\n" if about else ""))
        for name in public_names(module):
            parts.append(f"### {name.path.removeprefix('fetchstash.')}\n")
            parts.append(f"```text\n{folded(name.declaration)}\n```\n")
            if name.doc:
                parts.append(name.doc + "\n")
            if name.members:
                parts.append("".join(map(member_line, name.members)))
    return "\n".join(parts)


def member_line(member: Name) -> str:
    """Return the item of a member in the list of its class."""
    head = f"- `{one_line(member.declaration).removeprefix('def ')}`"
    first = one_line(member.doc.partition("\n\n")[0])
    return wrapped(f"{head}: {first}" if first else head, "  ") + "\n"


def folded(declaration: str) -> str:
    """Return a declaration in lines of at most 100 columns."""
    return "\n".join(wrapped(line, "    ") for line in declaration.splitlines())
