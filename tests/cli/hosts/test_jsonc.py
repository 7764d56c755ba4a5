import json
import re
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

from fetchstash.cli.hosts import _files
from fetchstash.cli.hosts._files import Malformed

ENTRY = {"command": "/bin/fetchstash", "args": ["serve"]}
PATH = ["mcpServers", "fetchstash"]

ZED = """\
// Zed settings
{
    "theme": "One Dark", // dark
    /* servers of ours */
    "mcpServers": {
        "other": {"command": "x", "args": ["-y", "a//b"]}, // keep
    },
    "buffer_font_size": 15, // the last
}
"""

LAYOUTS = {
    "an empty file": "",
    "spaces alone": " \n",
    "an empty object": "{}",
    "an object without servers": '{\n  "theme": "dark"\n}\n',
    "servers, none of them": '{\n\t"mcpServers": {}\n}\n',
    "another server": '{\n  "mcpServers": {\n    "other": {"command": "x"}\n  }\n}\n',
    "one line": '{"mcpServers": {"other": {"command": "x"}}, "a": 1}',
    "Windows' line ends": '{\r\n  "mcpServers": {\r\n    "other": {"command": "x"}\r\n  }\r\n}\r\n',
    "comments and trailing commas": ZED,
    "a comment in an empty object": '{\n  "mcpServers": { // none yet\n  }\n}\n',
}


def plain(text: str) -> Any:
    """Read a layout of above as JSON."""
    text = re.sub(r"(?m)(^|\s)//.*$|/\*.*?\*/", "", text)
    return json.loads(re.sub(r",(\s*[}\]])", r"\1", text) if text.strip() else "{}")


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_a_server_is_added_and_removed_and_all_else_stays(text: str) -> None:
    after = _files.with_value(text, PATH, ENTRY)
    expected = plain(text)
    expected.setdefault("mcpServers", {})["fetchstash"] = ENTRY
    assert plain(after) == expected
    assert re.findall(r"//.*|/\*.*?\*/", after) == re.findall(r"//.*|/\*.*?\*/", text)
    assert after.count("\n") == after.count("\r\n") or "\r" not in text
    assert _files.with_value(after, PATH, ENTRY) == after
    removed = _files.without_value(after, PATH)
    assert plain(removed) == {"mcpServers": {}, **plain(text)}
    assert removed == text or "other" not in text


def test_the_text_of_a_settings_file_with_comments_is_written_as_its_neighbours() -> None:
    assert _files.with_value(ZED, PATH, ENTRY) == ZED.replace(
        "// keep\n",
        "// keep\n"
        '        "fetchstash": {\n'
        '            "command": "/bin/fetchstash",\n'
        '            "args": [\n'
        '                "serve"\n'
        "            ]\n"
        "        },\n",
    )


def test_a_file_of_comments_alone_has_no_server_to_remove() -> None:
    for text in ("", "// nothing yet\n"):
        assert _files.value_at(text, PATH) is None
        assert _files.without_value(text, PATH) == text
        assert _files.value_at(_files.with_value(text, PATH, ENTRY), PATH) == ENTRY


BROKEN = {
    "no end": '{"a": 1',
    "no comma": '{"a": 1 "b": 2}',
    "single quotes": "{'a': 1}",
    "two values": "{} {}",
    "a bare word": '{"a": yes}',
    "a comment without its end": '{"a": 1 /* }',
    "a list of servers": '{"mcpServers": []}',
    "a list": "[1]",
    "a nest": "[" * 5000,
    "nothing after a comma in a list": '{"a": [,]}',
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_malformed_file_is_refused_with_line_and_column(text: str) -> None:
    with pytest.raises(Malformed, match="line 1, column"):
        _files.with_value(text, PATH, ENTRY)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)
TRIVIA = st.sampled_from(["", " ", "\n", "\n    ", "\t", " // note }\n", '/* , { " */', "\n// x\n"])


@pytest.mark.long
@given(st.data(), st.dictionaries(st.text(), JSON), st.lists(st.text(), min_size=1, max_size=2))
def test_any_layout_of_any_object_is_edited_right(
    data: st.DataObject, value: dict[str, Any], path: list[str]
) -> None:
    def spaced(value: Any) -> str:
        def trivia() -> str:
            return data.draw(TRIVIA)

        if isinstance(value, dict) and value:
            parts = [
                f"{trivia()}{json.dumps(key)}{trivia()}:{trivia()}{spaced(item)}{trivia()}"
                for key, item in cast("dict[str, Any]", value).items()
            ]
            return "{" + ",".join(parts) + data.draw(st.sampled_from(["", ","])) + trivia() + "}"
        return f"{{{trivia()}}}" if value == {} else json.dumps(value)

    text = spaced(value)
    assert _files.value_at(text, []) == value
    for removed in value:
        others = {key: item for key, item in value.items() if key != removed}
        assert _files.value_at(_files.without_value(text, [removed]), []) == others
    target = value
    for key in path[:-1]:
        if not isinstance(target.setdefault(key, {}), dict):
            return
        target = target[key]
    target[path[-1]] = ENTRY
    changed = _files.with_value(text, path, ENTRY)
    assert _files.value_at(changed, []) == value
    del target[path[-1]]
    assert _files.value_at(_files.without_value(changed, path), []) == value
