"""Errors: the tree, the line, and the next step in the words of each front_end."""

import json
import pickle
import re
import shlex
from typing import Any, Literal, TypedDict

import pytest

from fetchstash import errors
from fetchstash.cli import as_command, commands
from fetchstash.errors import (
    BadArgument,
    Call,
    FetchstashError,
    OutOfRange,
    Refused,
    StoreError,
    did_you_mean,
    type_checked,
)
from fetchstash.render import as_tool, error_line

PAGES = Call("slice", {"ref": "art_a", "path": None, "unit": "pages", "start": 3, "end": 4})


@pytest.mark.parametrize(
    ("call", "tool", "command", "method"),
    [
        (
            PAGES,
            'artifact_slice(artifact_ref="art_a", unit="pages", start=3, end=4)',
            "`fetchstash slice art_a --unit pages --start 3 --end 4`",
            "artifact.slice(unit='pages', start=3, end=4)",
        ),
        (
            Call("grep", {"refs": ["art_a", "art_b"], "pattern": "two words", "literal": True}),
            'artifact_grep(artifact_refs=["art_a", "art_b"], pattern="two words", literal=true)',
            "`fetchstash grep 'two words' art_a art_b --literal`",
            "stash.grep(pattern='two words', literal=True, refs_or_urls=['art_a', 'art_b'])",
        ),
        (
            Call("search", {"query": "two words", "refs": ["art_" + "a" * 26]}),
            f'artifact_search(query="two words", artifact_refs=["art_{"a" * 26}"])',
            "`fetchstash search 'two words' --in aaaaaaa`",
            f"stash.search(query='two words', refs_or_urls=['art_{'a' * 26}'])",
        ),
        (
            Call("picture", {"ref": "art_a", "page": 3}),
            'artifact_slice(artifact_ref="art_a", render="image", unit="pages", start=3)',
            "`fetchstash slice art_a --start 3 --render page-3.png`",
            "artifact.picture(page=3)",
        ),
        (
            Call("read", {"ref": "art_a", "offset": 60_000, "max_chars": 500}),
            'get_search_content(artifact_ref="art_a", offset=60000, maxChars=500)',
            "`fetchstash get art_a --offset 60000 --max-chars 500`",
            "artifact.read(offset=60000, max_chars=500)",
        ),
        (
            Call("info", {"ref": "art_a"}),
            'artifact_info(artifact_ref="art_a")',
            "`fetchstash info art_a`",
            "fetchstash.as_shown(artifact.facts)",
        ),
        (
            Call("export", {"ref": "art_a", "target": "a b.bin", "raw": True}),
            'artifact_slice(artifact_ref="art_a", unit="bytes")',
            "`fetchstash get art_a -o 'a b.bin' --raw`",
            "stash.export(ref='art_a', target='a b.bin', raw=True)",
        ),
        (Call("list"), "artifact_info()", "`fetchstash ls`", "stash.list()"),
        (
            Call("repair"),
            "the operator can repair the store",
            "run `fetchstash doctor --repair`",
            "call stash.repair()",
        ),
        (
            Call("setting", {"name": "fetch.allow_hosts", "value": ["a.test:81"]}),
            "the operator can allow it by fetch.allow_hosts",
            "add --allow-host a.test:81 (fetch.allow_hosts)",
            "pass settings={'fetch.allow_hosts': ['a.test:81']} to open_stash",
        ),
        (
            Call("setting", {"name": "fetch.respect_robots", "value": False}),
            "the operator can change fetch.respect_robots",
            "add --no-respect-robots (fetch.respect_robots)",
            "pass settings={'fetch.respect_robots': False} to open_stash",
        ),
        (
            Call("setting", {"name": "extract.wall_seconds", "value": 120}),
            "the operator can change extract.wall_seconds",
            "set extract.wall_seconds = 120 in the settings file",
            "pass settings={'extract.wall_seconds': 120} to open_stash",
        ),
    ],
    ids=lambda value: value.action if isinstance(value, Call) else "",
)
def test_each_face_words_a_next_step_in_its_own_terms(
    call: Call, tool: str, command: str, method: str
) -> None:
    assert as_tool(call) == tool
    assert as_command(call) == command
    assert errors.as_method(call) == method


@pytest.mark.parametrize(
    "call",
    [
        PAGES,
        Call("slice", {"ref": "art_a", "path": "A heading", "max_chars": 500}),
        Call("grep", {"refs": ["art_a"], "pattern": "-x", "ignore_case": True, "context": 0}),
        Call("grep", {"ref": "art_a", "pattern": "x", "max_matches": 5, "offset": 3}),
        Call("search", {"query": "two words", "max_results": 3}),
        Call("read", {"ref": "art_a", "offset": 5, "max_chars": 500}),
        Call("fetch", {"url": "https://example.org/?a=b&c"}),
        Call("export", {"ref": "art_a", "target": "a", "raw": True}),
        Call("picture", {"ref": "art_a", "page": 2}),
        Call("info", {"ref": "art_a"}),
        Call("list"),
    ],
    ids=lambda call: call.action,
)
def test_a_command_line_is_one_that_the_command_takes(call: Call) -> None:
    _, name, *arguments = shlex.split(as_command(call).strip("`"))
    commands.commands[name].make_context(name, arguments)


def test_a_line_fills_its_calls_in_order_and_a_clause_begins_the_sentence() -> None:
    error = Refused(
        "a.test is private.",
        "{}; else read {}.",
        Call("setting", {"name": "fetch.allow_hosts", "value": ["a.test"]}),
        Call("list"),
    )
    assert error.line(as_tool) == (
        "[refused] a.test is private. The operator can allow it by fetch.allow_hosts; "
        "else read artifact_info()."
    )
    assert str(error).endswith(
        "Pass settings={'fetch.allow_hosts': ['a.test']} to open_stash; else read stash.list()."
    )


def test_a_sentence_without_calls_keeps_its_braces() -> None:
    error = BadArgument("There is no such thing.", "Use {} or {name}.")
    assert error.line() == "[bad_argument] There is no such thing. Use {} or {name}."


def test_braces_in_an_argument_are_not_filled() -> None:
    error = OutOfRange(
        "No.", "Try {}, then {}.", Call("search", {"query": "{}"}), Call("info", {"ref": "art_a"})
    )
    assert error.advice(as_tool) == (
        'Try artifact_search(query="{}"), then artifact_info(artifact_ref="art_a").'
    )


def test_a_long_reason_leaves_room_for_the_next_step() -> None:
    line = error_line(StoreError("x" * 5_000, "{}.", Call("repair")))
    assert len(line) < 800
    assert line.endswith("The operator can repair the store.")


def test_an_error_survives_pickling_with_its_calls() -> None:
    error = pickle.loads(pickle.dumps(OutOfRange("No.", "See {}.", PAGES)))
    assert error.line() == OutOfRange("No.", "See {}.", PAGES).line()


def test_a_call_is_json() -> None:
    assert json.loads(json.dumps([PAGES.action, PAGES.arguments]))[0] == "slice"


def test_codes_are_unique() -> None:
    classes = [
        item
        for item in vars(errors).values()
        if isinstance(item, type)
        and issubclass(item, FetchstashError)
        and item is not FetchstashError
    ]
    codes = [item.code for item in classes]
    assert len(set(codes)) == len(codes) == 17


@pytest.mark.parametrize(
    ("wrong", "question"),
    [
        ("max_chars", "Did you mean maxChars?"),
        ("url", ""),
        ("temperature", ""),
        ("x" * 10_000_000, ""),
    ],
)
def test_a_question_names_near_values_alone(wrong: str, question: str) -> None:
    assert did_you_mean(wrong, ["maxChars", "focus", "url"]) == question


class Bounds(TypedDict, total=False):
    most: int


@type_checked
def bounded(
    text: str, bounds: Bounds, *, at: int | None = None, by: Literal["a", "b"] = "a", **more: str
) -> str:
    return f"{text} {bounds} {at} {by} {more}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"text": 3}, "text is 3. It must be a string."),
        ({"bounds": 3}, "bounds is 3. It must be a dict."),
        ({"at": True}, "at is True. It must be a whole number or None."),
        ({"by": "c"}, "by is 'c'. It must be one of a, b."),
        ({"text": ["a" * 30]}, "text is of the type list. It must be a string."),
    ],
)
def test_an_argument_of_a_wrong_type_is_named(arguments: dict[str, Any], words: str) -> None:
    right: dict[str, Any] = {"text": "", "bounds": {"most": 3}}
    bounded(**right, other="kept", at=1, by="b")
    with pytest.raises(BadArgument, match=re.escape(words)):
        bounded(**right | arguments)
