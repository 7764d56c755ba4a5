"""No pattern has possessive quantifiers or atomic groups: broken before 3.11.5 (gh-106052)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import fetchstash
from fetchstash.handlers import detect_content_kind

PACKAGE = Path(fetchstash.__file__).parent
_ESCAPE_OR_CLASS = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]", re.DOTALL)


def possessive(source: str) -> list[str]:
    """Return the patterns in ``source`` that have such a quantifier or group."""
    tree = ast.parse(source)
    definitions: dict[str, ast.AST] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            definitions[node.targets[0].id] = node.value
        elif isinstance(node, ast.FunctionDef):
            definitions[node.name] = node
    pending: list[ast.AST] = [
        node.args[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).startswith("re.")
    ]
    strings: list[str] = []
    while pending:
        expression = pending.pop()
        strings += _strings(expression)
        for node in ast.walk(expression):
            if isinstance(node, ast.Name) and (definition := definitions.pop(node.id, None)):
                pending += [definition]
    return [text for text in strings if _is_possessive(text)]


def _strings(expression: ast.AST) -> Iterator[str]:
    for node in ast.walk(expression):
        if isinstance(node, ast.JoinedStr):
            pieces = [part.value if isinstance(part, ast.Constant) else "x" for part in node.values]
            yield "".join(map(str, pieces))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Constant) and isinstance(node.value, bytes):
            yield node.value.decode("latin-1")


def _is_possessive(pattern: str) -> bool:
    return bool(re.search(r"[*+?}]\+|\(\?>", _ESCAPE_OR_CLASS.sub("x", pattern)))


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_no_pattern_is_possessive_or_atomic(path: Path) -> None:
    assert not possessive(path.read_text(encoding="utf-8"))


def test_a_possessive_pattern_is_found_and_an_escaped_plus_is_none() -> None:
    assert possessive('import re\nre.match(r"a++", text)')
    assert possessive('import re\nP = re.compile("(?>ab)")')
    assert not possessive(r're.compile(r"\++[*+]\*\+")')


# A pattern with two ways to match each piece of these would try every combination of them: no test
# below would ever end.
PIECES = 200


@pytest.mark.parametrize(
    "head",
    [
        "<!-- a -->" * PIECES + "<nothing",
        "<!-- a --" * PIECES,
        "<?xml version='1.0'?>" + "<!-- a -->" * PIECES + "<nothing",
        "<!DOCTYPE a [ b ] " * PIECES,
        " " * 4_000 + "<",
        '{"' + '\\"' * 1_000,
        '["a", ' + "1 " * PIECES,
        '{"a": "' + "b\\" * PIECES + "\n",
        "---\n" + "# a\n \t\n" * PIECES + "a",
        "[a](/" * PIECES,
        ('"a""b' * PIECES + "\n") * 3,
    ],
)
def test_a_head_that_matches_nothing_costs_no_combinations(head: str) -> None:
    decision = detect_content_kind({}, head.encode(), "https://example.org/")
    assert decision.kind in {"text", "xml", "html", "json"}
