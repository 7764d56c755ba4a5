"""Formats of other packages: loaded in the worker alone, and only if the operator named them.

A package declares Formats by the entry points ``fetchstash.formats``. Whatever goes wrong in one
has its package's name on it, so that the built-in formats can take over.
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from fetchstash.handlers._contract import ContentKind, Decision, Format, Head, Hints, Sniffed
from fetchstash.handlers._reasons import Cause, Reason
from fetchstash.handlers._registry import Formats, built_in, format_of, package_name
from fetchstash.handlers._router import route_file
from fetchstash.handlers._worker._protocol import PluginReport
from fetchstash.text import clip
from fetchstash.text.hygiene import clean_line
from fetchstash.text.ranges import Unit

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "fetchstash.formats"
MAX_WORD, MAX_PATHS, MAX_REASON = 40, 20, 200
SHOWN = ("kind", "word", "media_types", "is_text", "paths", "unit", "page_word", "pictures")
"""The fields of a Format that the server needs to describe a document."""


class PluginError(Exception):
    """A plugin failed while documents were routed."""

    def __init__(self, package: str, cause: Cause) -> None:
        super().__init__(cause.words())
        self.package = package
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Choice:
    """The format that reads a document, and the package that brings it ("" for ours).

    ``number`` is the format's place among those of its package, from 0.
    """

    format: Format
    decision: Decision
    package: str = ""
    number: int = 0


def choose(decision: Decision, hints: Hints, source: Path | None, names: tuple[str, ...]) -> Choice:
    """Return the format for a document. Raises PluginError if a plugin's sniffer fails.

    With plugins the file is routed again, among their formats too; without ``source`` the decision
    stands as it is.
    """
    formats, packages = _with_plugins(names)
    if packages and source and not decision.shadow:
        label = {"content-type": decision.declared_type}
        again = route_file(source, label, hints.name or hints.url, formats=formats)
    else:
        again = decision
    best = formats.candidates(again.kind, again.media_type)[0]
    if best in packages:
        return Choice(best, again, *packages[best])
    return Choice(format_of(decision), decision)


def report(names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the formats of the named packages, and the names of other installed ones, as JSON."""
    enabled = set(map(package_name, names))
    packages = sorted({*enabled, *_installed()})
    reports = [load(name) if name in enabled else PluginReport(name) for name in packages]
    return [
        {
            "package": report.package,
            "formats": [{name: getattr(f, name) for name in SHOWN} for f in report.formats],
            "failure": report.failure,
        }
        for report in reports
    ]


def locate(names: tuple[str, ...]) -> list[Path]:
    """Find where the modules of plugins are, and return what they are imported from.

    Nothing of them is run. A confined worker cannot list the root of a project that is installed
    in place, so the finders' answers are kept.
    """
    specs: dict[str, ModuleSpec] = {}
    for name in names:
        for entry in _installed().get(package_name(name), ()):
            module = entry.module.partition(".")[0]
            with suppress(ImportError, ValueError, AttributeError):  # ``load`` says what is wrong
                if spec := find_spec(module):
                    specs[module] = spec

    class Located(MetaPathFinder):
        def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
            return specs.get(fullname)

    sys.meta_path.insert(0, Located())
    return [
        Path(place)
        for spec in specs.values()
        for place in spec.submodule_search_locations or [spec.origin or ""]
    ]


@cache
def load(package: str) -> PluginReport:
    """Load what a package declares. An error is in ``failure``."""
    entries = _installed().get(package_name(package))
    if not entries:
        return PluginReport(package, failure=f"no installed package of this name has {GROUP}")
    formats: list[Any] = []
    try:
        for entry in entries:
            declared: Any = entry.load()
            formats += declared if isinstance(declared, tuple) else (declared,)
        for declared in formats:
            check(declared)
    except Exception as error:  # noqa: BLE001 - somebody else's package must not break ours
        reason = clip(clean_line(f"{type(error).__name__}: {error}"), MAX_REASON)
        return PluginReport(package, failure=reason)
    guarded = (replace(f, sniff=_guarded(f.sniff, package)) if f.sniff else f for f in formats)
    return PluginReport(package, tuple(guarded))


def check(declared: Any) -> None:
    """Raise TypeError or ValueError for what is no Format that could be used."""
    if not isinstance(declared, Format):
        raise TypeError(f"{type(declared).__name__} is no Format")
    values: dict[str, Any] = {f.name: getattr(declared, f.name) for f in fields(declared)}
    if values["kind"] not in get_args(ContentKind):
        raise ValueError(f"{values['kind']!r} is no kind of content")
    if values["unit"] not in get_args(Unit):
        raise ValueError(f"{values['unit']!r} is no unit")
    for name in ("word", "page_word"):
        if not isinstance(values[name], str) or not 0 < len(values[name]) <= MAX_WORD:
            raise ValueError(f"{name} is no name")
    for name in ("media_types", "extensions", "file_names", "paths", "zip_members", "ole_members"):
        strings = values[name]
        if not isinstance(strings, tuple) or any(type(s) is not str for s in strings):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            raise TypeError(f"{name} is no tuple of strings")
    if not declared.media_types or len(declared.paths) > MAX_PATHS:
        raise ValueError("there is no media type, or there are too many paths")
    for at, magic in values["signatures"]:
        if not isinstance(at, int) or not isinstance(magic, bytes):
            raise TypeError("signatures are no pairs of offset and bytes")
    if not isinstance(values["handler"], str) and not callable(values["handler"]):
        raise TypeError("handler is no class")


@cache
def _with_plugins(names: tuple[str, ...]) -> tuple[Formats, Mapping[Format, tuple[str, int]]]:
    plugins = [load(name) for name in names]
    packages = {
        f: (plugin.package, number) for plugin in plugins for number, f in enumerate(plugin.formats)
    }
    return (Formats([*built_in().all, *packages]) if packages else built_in()), packages


@cache
def _installed() -> "dict[str, list[EntryPoint]]":
    from importlib.metadata import entry_points  # noqa: PLC0415 - a sixth of a worker's start

    packages: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=GROUP):
        if entry.dist:
            packages.setdefault(package_name(entry.dist.name), []).append(entry)
    return packages


def _guarded(
    sniff: Callable[[Head], Sniffed | None], package: str
) -> Callable[[Head], Sniffed | None]:
    def guarded(head: Head) -> Sniffed | None:
        try:
            sniffed: Any = sniff(head)
        except Exception as error:
            cause = Reason.SNIFFER_FAILED.cause(error=type(error).__name__)
            raise PluginError(package, cause) from error
        if sniffed is not None and not isinstance(sniffed, Sniffed):
            raise PluginError(package, Reason.SNIFFER_ANSWER.cause())
        return sniffed

    return guarded
