"""An artifact in the place of an argument: what a model never read reaches another tool."""

import json
from pathlib import Path
from typing import Any

import pytest

from fetchstash import Stash, open_stash
from fetchstash.config import load
from fetchstash.gateway import _arguments
from fetchstash.gateway._arguments import reference_in
from fetchstash.stash import logged_calls
from tests.gateway.memory import Line, Message, Server
from tests.gateway.test_shortening import called, connected

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

STRING = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "body": STRING,
        "title": {"anyOf": [STRING, {"type": "null"}]},
        "any": {},
        "rows": {"type": "array"},
        "data": {"type": "object"},
        "count": {"type": "integer"},
        "kind": {"enum": ["a", "b"]},
        "files": {"type": "array", "items": {"$ref": "#/$defs/file"}},
        "own": {"type": "object", "properties": {"artifact_ref": STRING}},
    },
    "$defs": {"file": {"type": "object", "properties": {"name": STRING, "content": STRING}}},
}
TEXT = "".join(f"line {number} of the log\n" for number in range(2_000))
STATIONS = {"stations": [{"name": f"Pier {number}"} for number in range(50)]}


def server(**settings: Any) -> Server:
    """Return a server whose one tool takes many arguments and answers "done"."""

    async def works(line: Line, message: Message) -> None:
        done = {"content": [{"type": "text", "text": "done"}]}
        await line.send({"id": message["id"], "result": done})

    listed = {"tools/list": {"tools": [{"name": "read", "inputSchema": SCHEMA}]}}
    return Server("files", listed, works, **settings)


async def kept(stash: Stash, folder: Path, name: str, text: str) -> str:
    folder.mkdir(exist_ok=True)
    (file := folder / name).write_text(text, encoding="utf-8")
    return (await stash.add_file(file)).ref


def received(of: Server) -> dict[str, Any]:
    arguments: dict[str, Any] = of.got("tools/call")[-1]["params"]["arguments"]
    return arguments


async def test_a_text_stands_in_the_place_of_its_reference_and_the_call_is_logged(
    tmp_path: Path,
) -> None:
    files, folder = server(), tmp_path / "store"
    async with connected(files, folder=folder) as (host, stash):
        log = await kept(stash, tmp_path / "in", "a.log", TEXT)
        data = await kept(stash, tmp_path / "in", "a.json", json.dumps(STATIONS))
        one, pier = {"artifact_ref": log}, {"artifact_ref": data, "path": "$.stations[7].name"}
        arguments: dict[str, Any] = {
            "body": one,
            "title": json.dumps(pier),
            "any": {"artifact_ref": log, "path": None},
            "rows": {"artifact_ref": data, "path": "/stations"},
            "data": {"artifact_ref": data},
            "files": [{"name": "a", "content": one}],
            "own": one,
            "count": one,
            "kind": one,
            "unknown": one,
        }
        shown = await called(host, **arguments)
        [call] = logged_calls(load({"store.folder": str(folder)}))
    assert shown["content"] == [{"type": "text", "text": "done"}]
    assert received(files) == {
        "body": TEXT,
        "title": "Pier 7",
        "any": TEXT,
        "rows": STATIONS["stations"],
        "data": STATIONS,
        "files": [{"name": "a", "content": TEXT}],
        **dict.fromkeys(("own", "count", "kind", "unknown"), one),
    }
    assert log in call["asked"]["body"]
    assert [(item["ref"], item["how"]) for item in call["shown"]] == [
        (ref, "passed on") for ref in (log, data, log, data, data, log)
    ]


@pytest.mark.parametrize(
    "value",
    [
        "art_abc",
        {"artifact_ref": "art_abc", "other": 1},
        {"artifact_ref": 7},
        {"artifact_ref": "https://example.org/"},
        {"artifact_ref": "art_abc", "path": 7},
        'see {"artifact_ref": "art_abc"}',
        '{"artifact_ref": "art_abc"',
        '{"artifact_ref":' * 500,
        ["art_abc"],
    ],
)
def test_what_is_no_reference_alone_is_left_as_it_is(value: object) -> None:
    assert reference_in(value) is None


@pytest.mark.parametrize("names", [["read"], ["*"], ["other", "read"]])
async def test_a_tool_that_is_listed_takes_no_artifact(names: list[str], tmp_path: Path) -> None:
    files = server(no_artifacts=tuple(names))
    async with connected(files, folder=tmp_path / "store") as (host, stash):
        ref = await kept(stash, tmp_path / "in", "a.log", TEXT)
        shown = await called(host, body={"artifact_ref": ref})
        assert (await called(host, body="short"))["content"][0]["text"] == "done"
    assert shown["isError"]
    assert shown["content"][0]["text"] == (
        "[refused] read takes no artifact in the place of a text. Write the text itself."
    )
    assert [call["params"]["arguments"] for call in files.got("tools/call")] == [{"body": "short"}]


async def test_an_artifact_of_another_run_is_passed_on_to_nobody(tmp_path: Path) -> None:
    files, folder = server(), tmp_path / "store"
    settings = {"store.folder": str(folder), "store.run": "another"}
    async with open_stash(settings) as other:
        ref = await kept(other, tmp_path / "in", "a.log", TEXT)
    async with connected(files, folder=folder) as (host, stash):
        assert (await stash.get(ref)).ref == ref  # a reference opens in every run
        shown = await called(host, body={"artifact_ref": ref})
        unknown = await called(host, body={"artifact_ref": "art_" + "a" * 26})
    assert f"[bad_argument] There is no artifact {ref} in this run." in shown["content"][0]["text"]
    assert "in this run" in unknown["content"][0]["text"]
    assert files.got("tools/call") == []


async def test_more_than_the_bound_is_not_sent_and_parts_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = server()
    monkeypatch.setattr(_arguments, "PASSED_CHARS", 3 * len(TEXT) // 2)
    async with connected(files, folder=tmp_path / "store") as (host, stash):
        ref = await kept(stash, tmp_path / "in", "a.log", TEXT)
        one = {"artifact_ref": ref}
        both = await called(host, body=one, title=one)
        monkeypatch.setattr(_arguments, "REFERENCES", 1)
        monkeypatch.setattr(_arguments, "PASSED_CHARS", 9 * len(TEXT))
        many = await called(host, body=one, title=one)
        await called(host, body=one)
        array = await called(host, rows=one)
    assert f"The text of {ref} has more than" in both["content"][0]["text"]
    assert f'artifact_info(artifact_ref="{ref}") lists them' in both["content"][0]["text"]
    assert "[bad_argument] The call has more than 1 references" in many["content"][0]["text"]
    assert "holds no JSON array" in array["content"][0]["text"]
    assert len(files.got("tools/call")) == 1
