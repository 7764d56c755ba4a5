"""The formats that fetchstash reads, and which of them reads a document.

A format of ours is one module and one line here. Importing this costs nothing: declarations are
imported when the first document is routed, handlers in the worker alone.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, cast

from fetchstash.handlers._contract import (
    ContentKind,
    Decision,
    Handler,
    PartHandler,
    PartRequest,
    PartText,
    Picture,
)
from fetchstash.handlers._format import Format
from fetchstash.handlers._formats import Formats, check_claims, load_handler
from fetchstash.handlers._reasons import Reason, ReasonTable

# Sniffers are tried in this order, and the first format of a kind is the kind's own.
MODULES = (
    "fetchstash.handlers._binary",
    "fetchstash.handlers._text",
    "fetchstash.handlers._image",
    "fetchstash.handlers._pdf",
    "fetchstash.handlers._office",
    "fetchstash.handlers._mail",
    "fetchstash.handlers._html",
    "fetchstash.handlers._data",
    "fetchstash.handlers._notebook",
    "fetchstash.handlers._code",
    "fetchstash.handlers._markdown",
    "fetchstash.handlers._ics",
    "fetchstash.handlers._media",
    "fetchstash.handlers._archive",
)


@cache
def built_in() -> Formats:
    """Return the formats of fetchstash itself. Raises ValueError where two claim the same."""
    formats = Formats(f for module in MODULES for f in import_module(module).FORMATS)
    check_claims(formats.all)
    return formats


@cache
def reasons() -> Mapping[str, ReasonTable]:
    """Return all reasons by code: those of our formats stand beside their declarations."""
    built_in()  # imports the declarations
    tables = ReasonTable.__subclasses__()
    return {reason.name.lower(): reason for table in tables for reason in table}


@cache
def handler_of(declared: Format) -> Handler:
    """Return the handler of a format, made once. Raises what importing it raises."""
    return load_handler(declared)


def format_of(decision: Decision) -> Format:
    """Return the built-in format that reads a document."""
    return built_in().candidates(decision.kind, decision.media_type)[0]


def handler_named(name: str) -> PartHandler:
    """Return the built-in handler of this name. Raises KeyError where there is none.

    It reads in this process: it is for tests and for documents that the caller wrote. Not every
    handler has ``part``.
    """
    handlers = {handler.name: handler for handler in map(handler_of, built_in().all)}
    return cast("PartHandler", handlers[name])


def kind_word(decision: Decision) -> str:
    """Return what a document is called in the facts line: "PDF", "DOCX", "PNG image"."""
    return format_of(decision).name(decision.media_type)


def kind_of_name(file_name: str) -> ContentKind:
    """Return the kind of content that a file name stands for."""
    named = built_in().by_name(file_name)
    return named.kind if named else "unknown_binary"


def describe(kind: str, media_type: str) -> dict[str, Any]:
    """Return the facts that the built-in format of such a document declares.

    A ``kind`` of "" is that of the media type.
    """
    known = cast("ContentKind", kind) if kind else built_in().kind(media_type)
    return built_in().candidates(known, media_type)[0].facts(media_type)


def read_part(handler: Handler, request: PartRequest) -> PartText | Picture:
    """Return the part that was asked for. Raises what the handler raises, NoText if it has none."""
    part = getattr(handler, "part", None)
    if part is None:
        raise Reason.NO_PATHS.error()
    answer: PartText | Picture = part(request)
    return answer
