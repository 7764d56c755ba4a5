"""The server of the view: who is let in, and what is answered."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from asyncio import base_events
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from mcp_types import TextResourceContents

from fetchstash.config import load
from fetchstash.errors import BadArgument, BadPattern
from fetchstash.render import Host, view_of
from fetchstash.server import EXTENSION
from fetchstash.server.tools import LoggedCall, answer, tool_specs
from fetchstash.server.ui import Totals, ViewServer, plot, view_html
from fetchstash.server.ui._timeline import costs
from fetchstash.stash import Stash, log_of, open_stash
from fetchstash.store import Facts
from fetchstash.text.facts import PAGE_VERDICTS
from fetchstash.text.ranges import Ranges
from tests.server.conftest import Connect

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

PROSE = "".join(f"Line {number} of a long text about lighthouses.\n" for number in range(1, 2_001))


@dataclass
class Opened:
    """A view with a browser that was let in."""

    stash: Stash
    client: httpx2.AsyncClient
    base: str
    link: str
    origin: str

    async def get(self, name: str, **query: Any) -> Any:
        answered = await self.client.get(f"{self.base}api/{name}", params=query)
        assert answered.status_code == 200, answered.text
        return answered.json()

    async def post(self, name: str, **more: Any) -> httpx2.Response:
        request: dict[str, Any] = {"headers": {"origin": self.origin}, **more}
        return await self.client.post(f"{self.base}api/{name}", **request)


@asynccontextmanager
async def viewed(folder: Path, **settings: Any) -> AsyncGenerator[Opened]:
    values = {"store.folder": str(folder / "store"), "store.run": "first", **settings}
    async with (
        open_stash(values) as stash,
        ViewServer.open(load(values)) as server,
        httpx2.AsyncClient(verify=False) as client,
    ):
        base = server.link.partition("?")[0]
        origin = base.rsplit("/", 2)[0]
        assert (await client.get(server.link)).status_code == 200
        yield Opened(stash, client, base, server.link, origin)


def saved(folder: Path, name: str, data: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


async def test_the_link_opens_the_page_once(tmp_path: Path) -> None:
    async with viewed(tmp_path) as view:
        page = await view.client.get(view.base)
        assert page.text == view_html()
        async with httpx2.AsyncClient(verify=False) as stranger:
            again = await stranger.get(view.link)
            assert again.status_code == 401
            assert "Start fetchstash ui again" in again.text
            assert (await stranger.get(view.base)).status_code == 401
            earlier = await stranger.get(view.origin + "/0123456789abcdef/")
            assert (earlier.status_code, earlier.text) == (404, again.text)
            refused = await stranger.get(view.base + "api/runs")
            assert refused.status_code == 401
            assert refused.json()["code"] == "expired"


async def test_no_answer_waits_for_an_acknowledgement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_nodelay: Callable[[socket.socket], None] = vars(base_events)["_set_nodelay"]
    options: list[int] = []

    def seen(connection: socket.socket) -> None:
        set_nodelay(connection)
        options.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(base_events, "_set_nodelay", seen)
    async with viewed(tmp_path) as view:
        await view.get("runs")
    assert len(options) >= 2  # the browser's side and the server's
    assert all(options)


async def test_the_cookie_is_bound_to_the_path_and_no_script_reads_it(tmp_path: Path) -> None:
    values = {"store.folder": str(tmp_path / "store")}
    async with ViewServer.open(load(values)) as server, httpx2.AsyncClient(verify=False) as client:
        cookie = (await client.get(server.link)).headers["set-cookie"]
        path = "/" + server.link.split("/")[3] + "/"
        for part in ("HttpOnly", "SameSite=strict", f"Path={path}"):
            assert part in cookie


async def test_the_page_may_run_its_own_script_and_nothing_else(tmp_path: Path) -> None:
    async with viewed(tmp_path) as view:
        headers = (await view.client.get(view.base)).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "trusted-types 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example:80"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
    ],
)
async def test_no_foreign_page_can_read(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    async with viewed(tmp_path) as view:
        answered = await view.client.get(view.base + "api/runs", headers=headers)
    assert answered.status_code == status


async def test_no_foreign_page_can_change_anything(tmp_path: Path) -> None:
    async with viewed(tmp_path) as view:
        kept = await view.stash.add_file(saved(tmp_path, "a.txt", "Some words."))
        body = json.dumps({"ref": kept.ref})
        for headers in (
            {"content-type": "application/json"},
            {"content-type": "application/json", "origin": "https://evil.example"},
            {"content-type": "application/json", "origin": view.origin.replace("127", "128")},
        ):
            url = view.base + "api/delete"
            refused = await view.client.post(url, headers=headers, content=body)
            assert refused.status_code == 403
        form = {"origin": view.origin, "content-type": "text/plain"}
        refused = await view.post("delete", headers=form, content=body)
        assert refused.status_code == 400
        assert (await view.get("list"))["total"] == 1


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "POST"])
async def test_other_methods_are_refused(tmp_path: Path, method: str) -> None:
    async with viewed(tmp_path) as view:
        own = {"origin": view.origin}
        url = view.base + "api/list"
        assert (await view.client.request(method, url, headers=own)).status_code == 405
        assert (await view.client.get(view.base + "api/delete")).status_code == 405


@pytest.mark.parametrize(
    "path", ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "api/..%2f..%2f", "view.html", "api/"]
)
async def test_no_path_leads_to_a_file(tmp_path: Path, path: str) -> None:
    async with viewed(tmp_path) as view:
        assert (await view.client.get(view.base + path)).status_code == 404
        for ref in ("../../etc/passwd", "/etc/passwd", "art_../../x"):
            asked = await view.client.get(view.base + "api/download", params={"ref": ref})
            assert asked.status_code == 400
            assert asked.json()["code"] == "unknown_ref"


async def test_a_list_has_the_artifacts_of_one_project_or_of_all(tmp_path: Path) -> None:
    async with viewed(tmp_path) as view:
        await view.stash.add_file(saved(tmp_path, "a.txt", "Some words."))
        other = {"store.folder": str(tmp_path / "store"), "store.run": "second"}
        async with open_stash(other) as stash:
            kept = await stash.add_file(saved(tmp_path, "b.txt", "Other words."))
        runs = await view.get("runs")
        assert runs["run"] == "first"
        assert {run["name"]: run["artifacts"] for run in runs["runs"]} == {"first": 1, "second": 1}
        assert [row["title"] for row in (await view.get("list"))["items"]] == ["b.txt", "a.txt"]
        only = await view.get("list", run="second")
        assert [row["ref"] for row in only["items"]] == [kept.ref]
        unknown = await view.client.get(view.base + "api/list", params={"run": "third"})
        assert unknown.json()["line"].startswith("[bad_argument] There is no such run.")


async def test_lines_come_from_any_place_of_a_text(tmp_path: Path) -> None:
    async with viewed(tmp_path) as view:
        kept = await view.stash.add_file(saved(tmp_path, "a.txt", PROSE))
        window = await view.get("lines", ref=kept.ref, start=1_999, n=100)
        assert window == {"start": 1_999, "lines": PROSE.splitlines()[1_998:], "cut": {}} | {
            "total": 2_000
        }
        assert (await view.get("lines", ref=kept.ref, start=5_000, n=9))["lines"] == []


async def test_a_line_without_end_is_cut_and_read_on_in_pieces(tmp_path: Path) -> None:
    async with viewed(tmp_path) as view:
        text = "first\n" + "0123456789" * 100_000 + "\nlast\n"
        kept = await view.stash.add_file(saved(tmp_path, "a.txt", text))
        window = await view.get("lines", ref=kept.ref, start=1, n=9)
        assert [len(line) for line in window["lines"]] == [5, 2_000, 4]
        assert window["cut"] == {"1": [6, 1_000_006]}
        piece = await view.get("piece", ref=kept.ref, start=2_006, end=1_000_006)
        assert piece["text"] == text[2_006:12_006]


async def test_grep_counts_all_matches(tmp_path: Path) -> None:
    async with viewed(tmp_path) as view:
        kept = await view.stash.add_file(saved(tmp_path, "a.txt", PROSE))
        found = await view.get("grep", ref=kept.ref, pattern="LIGHT|x", ignore_case="1")
        assert (found["total"], len(found["matches"])) == (2_000, 200)
        assert found["matches"][6] == {"line": 7, "text": PROSE.splitlines()[6]}
        bad = await view.client.get(
            view.base + "api/grep", params={"ref": kept.ref, "pattern": "("}
        )
        assert bad.json()["code"] == "bad_pattern"


async def test_search_ranks_passages_of_a_project(tmp_path: Path) -> None:
    async with viewed(tmp_path) as view:
        await view.stash.add_file(saved(tmp_path, "a.txt", PROSE))
        kept = await view.stash.add_file(saved(tmp_path, "b.txt", "A heron stands in the reeds.\n"))
        other = {**view.stash.settings.values, "store.run": "other"}
        async with open_stash(other) as stash:
            await stash.add_file(saved(tmp_path, "c.txt", "A heron stands in the fog.\n"))
        LoggedCall(view.stash.settings, "read", {}, "files").showed(
            kept, view_of(Host(view.stash.settings.views), kept)
        )
        found = await view.get("search", run="first", query="heron reeds")
        (hit,) = found["passages"]
        assert (hit["row"]["ref"], hit["line"], hit["words"]) == (kept.ref, 1, ["heron", "reeds"])
        assert (found["searched"], hit["row"]["host"]) == (2, "files: read")
        fog = "A heron stands in the fog."
        for run, is_there in (("first", False), ("other", True)):
            traced = (await view.post("trace", json={"run": run, "text": fog})).json()
            assert traced["origins"][0]["is_supported"] is is_there
        marked = [["A ", False], ["heron", True], [" stands in the ", False], ["reeds", True]]
        assert hit["parts"] == [*marked, [".", False]]


async def test_json_is_opened_level_by_level(tmp_path: Path) -> None:
    async with viewed(tmp_path) as view:
        data = {"a/b": {"~": [1, "two", None]}, "odd": "\ud800", "many": list(range(500))}
        kept = await view.stash.add_file(saved(tmp_path, "a.json", json.dumps(data)))
        root = await view.get("tree", ref=kept.ref)
        children = {child["key"]: child for child in root["children"]}
        assert children["a/b"] == {"key": "a/b", "path": "/a~1b", "type": "object", "count": 1}
        leaf = await view.get("tree", ref=kept.ref, path="/a~1b/~0")
        assert [child["text"] for child in leaf["children"]] == ["1", '"two"', "null"]
        rest = await view.get("tree", ref=kept.ref, path="/many", start=400)
        assert [len(rest["children"]), rest["children"][0]["key"]] == [100, "400"]
        lost = await view.client.get(
            view.base + "api/tree", params={"ref": kept.ref, "path": "/no/where"}
        )
        assert lost.json()["code"] == "bad_argument"
        other = await view.stash.add_file(saved(tmp_path, "b.json", '{"other": 1}'))
        of_other = await view.get("tree", ref=other.ref)
        assert [child["key"] for child in of_other["children"]] == ["other"]


async def test_pin_and_delete_change_the_store(tmp_path: Path) -> None:
    async with viewed(tmp_path) as view:
        kept = await view.stash.add_file(saved(tmp_path, "a.txt", "Some words."))
        pinned = await view.post("pin", json={"ref": kept.ref, "pinned": True})
        assert pinned.json()["row"]["pinned"] is True
        assert (await view.stash.store.get(kept.ref)).pinned
        assert (await view.post("delete", json={"ref": kept.ref})).status_code == 200
        assert (await view.get("list"))["total"] == 0
        gone = await view.post("pin", json={"ref": kept.ref})
        assert gone.json()["code"] == "unknown_ref"


async def answer_to(view: Opened, framing: str, body: Iterator[bytes]) -> bytes:
    """Return the answer to a change whose body goes on until the server has had enough."""
    host, port = view.origin.removeprefix("http://").split(":")
    cookies = "; ".join(f"{name}={value}" for name, value in view.client.cookies.items())
    head = (
        f"POST {view.base.removeprefix(view.origin)}api/pin HTTP/1.1\r\nhost: {host}:{port}\r\n"
        f"origin: {view.origin}\r\ncookie: {cookies}\r\n"
        f"content-type: application/json\r\n{framing}\r\n\r\n"
    )
    async with await anyio.connect_tcp(host, int(port)) as stream:
        await stream.send(head.encode())
        answer = b""

        async def read() -> None:
            nonlocal answer
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while True:
                    answer += await stream.receive()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            with suppress(anyio.BrokenResourceError):
                for piece in body:
                    await stream.send(piece)
                await stream.send_eof()
        return answer


@pytest.mark.parametrize(
    ("framing", "piece"),
    [
        pytest.param("content-length: 80000000", b" " * 8_000, id="declared"),
        pytest.param(
            "transfer-encoding: chunked", b"1f40\r\n" + b" " * 8_000 + b"\r\n", id="chunked"
        ),
    ],
)
async def test_a_change_of_any_length_is_refused_in_one_line_as_soon_as_it_is_too_long(
    framing: str, piece: bytes, tmp_path: Path
) -> None:
    async with viewed(tmp_path) as view:
        answer = await answer_to(view, framing, repeat(piece, 10_000))
        assert answer.startswith(b"HTTP/1.1 413 ")
        body = json.loads(answer.partition(b"\r\n\r\n")[2])
        line = "[too_large] A change has at most 4,096 bytes. Load the page again."
        assert body == {"code": "too_large", "line": line}
        assert (await view.get("list"))["total"] == 0


@pytest.mark.parametrize(
    ("framing", "body"),
    [
        pytest.param("content-length: 900", b'{"ref": "art_', id="less than it said"),
        pytest.param("x-none: 1", b'{"ref": "art_a"}', id="no length"),
        pytest.param("content-length: 4000", b"[" * 4_000, id="nested"),
    ],
)
async def test_a_change_that_is_no_whole_request_harms_nothing(
    framing: str, body: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with viewed(tmp_path) as view:
        answer = await answer_to(view, framing + "\r\nconnection: close", iter([body]))
        assert b" 500 " not in answer
        assert (await view.get("list"))["total"] == 0
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_download_is_an_attachment_that_no_browser_shows(tmp_path: Path) -> None:
    async with viewed(tmp_path) as view:
        page = b"<script>alert(1)</script><h1>Title</h1><p>Some words are here.</p>"
        kept = await view.stash.add_file(saved(tmp_path, "a page.html", page))
        for raw, body in (("1", page), ("0", (await kept.text()).encode())):
            url = view.base + "api/download"
            answered = await view.client.get(url, params={"ref": kept.ref, "raw": raw})
            assert answered.content == body
            assert answered.headers["content-type"] == "application/octet-stream"
            assert answered.headers["content-disposition"].startswith("attachment; filename*=")
            assert "sandbox" in answered.headers["content-security-policy"]


async def test_a_download_has_a_name_with_its_extension(tmp_path: Path) -> None:
    async with viewed(tmp_path) as view:
        page = b"<!doctype html><h1>Title</h1><p>Some words are here.</p>"
        for name, raw, text in (
            ("a" * 100 + ".md", "a" * 80 + ".md", "a" * 80 + ".md.txt"),
            ("words.txt", "words.txt", "words.txt"),
            ("tides", "tides.html", "tides.txt"),
            ("\u202egnp.exe", "gnp.exe", "gnp.exe.txt"),
        ):
            body = page if name == "tides" else b"Words."
            kept = await view.stash.add_file(saved(tmp_path, name, body))
            for is_raw, expected in (("1", raw), ("0", text)):
                query = {"ref": kept.ref, "raw": is_raw}
                answered = await view.client.get(view.base + "api/download", params=query)
                assert answered.headers["content-disposition"].endswith(f"''{expected}")


@pytest.mark.parametrize("run", ["first", "*"])
async def test_an_arrival_and_another_text_are_told_at_once(tmp_path: Path, run: str) -> None:
    async with (
        viewed(tmp_path) as view,
        view.client.stream("GET", view.base + "api/events") as stream,
    ):
        events = (line async for line in stream.aiter_lines() if line.startswith("data: "))
        assert json.loads((await anext(events))[6:])[:2] == [0, ""]
        kept = await view.stash.add_file(saved(tmp_path, "a.txt", "Some words."))
        assert json.loads((await anext(events))[6:])[:2] == [1, kept.ref]
        before = await view.get("stats", run=run)
        store, known = view.stash.store, await view.stash.store.get(kept.ref)
        text = store.spool / "text"  # as OCR reads a page later
        text.write_text("Some words, and those of a page that was a picture.")
        facts = replace(known, text_tokens=12)
        await store.replace_text(kept.ref, text, facts, Ranges(), known=known)
        assert json.loads((await anext(events))[6:])[:2] == [1, kept.ref]
        after = await view.get("stats", run=run)
        assert after["tokens"] == before["tokens"] + 12 - (known.text_tokens or 0)


async def ask(stash: Stash, tool: str, **arguments: Any) -> str:
    tools = {spec.name: spec for spec in tool_specs(stash.settings)}
    view = await answer(stash, Host(stash.settings.views), tools[tool], arguments)
    return str(view.facts[0]["artifact_ref"]) if view.facts else ""


async def test_each_call_is_kept_with_the_lines_that_the_model_was_shown(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.md", "\n\n".join(PROSE.splitlines()))
    async with viewed(tmp_path, **{"ingest.read_roots": [str(tmp_path)]}) as view:
        ref = await ask(view.stash, "stash_file", path=str(path))
        await ask(view.stash, "artifact_slice", artifact_ref=ref, start=101, end=140)
        await ask(view.stash, "artifact_grep", artifact_ref=ref, pattern="Line 77[78] ", context=0)
        await ask(view.stash, "artifact_search", query="lighthouses 1234")
        await ask(view.stash, "artifact_info", artifact_ref=ref)
        data = await view.get("artifact", ref=ref)
        calls = data["calls"]
        assert [call["how"] for call in calls] == [
            "preview",
            "part",
            "matches",
            "passages",
            "facts",
        ]
        first, last = calls[0]["lines"][0]
        assert first == 1
        assert 10 < last < 200
        assert calls[1]["lines"] == [[101, 140]]
        assert calls[2]["lines"] == [[1_553, 1_553], [1_555, 1_555]]
        assert calls[2]["asked"]["pattern"] == "Line 77[78] "
        assert calls[3]["lines"]
        assert all(call["tokens"] > 0 for call in calls)
        sums = await view.get("stats", run="first")
        assert sums["calls"] == 5
        assert sums["shown"] == sum(call["tokens"] for call in calls)
        assert sums["tokens"] == data["row"]["tokens"]


async def test_a_timeline_says_what_was_asked_and_shown_and_what_it_cost(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.md", "\n\n".join(PROSE.splitlines()))
    async with viewed(tmp_path, **{"ingest.read_roots": [str(tmp_path)]}) as view:
        ref = await ask(view.stash, "stash_file", path=str(path))
        with pytest.raises(BadPattern):
            await ask(view.stash, "artifact_grep", artifact_ref=ref, pattern="(")
        hostile = "</code><script>alert(1)</script>\u202e"
        await ask(view.stash, "artifact_grep", artifact_ref=ref, pattern=hostile)
        await ask(view.stash, "artifact_slice", artifact_ref=ref, start=7, end=9)

        began = time.monotonic() - 75
        LoggedCall(view.stash.settings, "read", {"path": "x"}, "files", began).passed(400)
        old: dict[str, Any] = {"time": "2026-11-01T10:00:00+00:00", "run": "first"}
        old |= {"tool": "artifact_info", "asked": {}, "tokens": 7, "shown": []}
        log = log_of(view.stash.settings)
        assert log
        log.append(old)  # of a version that kept no durations
        shown = await view.get("timeline", run="first")
        assert [(call["server"], call["tool"], call["error"]) for call in shown["items"]] == [
            ("fetchstash", "artifact_info", ""),
            ("files", "read", ""),
            ("fetchstash", "artifact_slice", ""),
            ("fetchstash", "artifact_grep", ""),
            ("fetchstash", "artifact_grep", "bad_pattern"),
            ("fetchstash", "stash_file", ""),
        ]
        assert shown["items"][2]["shown"][0]["title"] == "a.md"
        assert shown["items"][1]["tokens"] == 100
        times = [call["ms"] for call in shown["items"]]
        assert times[0] is None
        assert times[1] >= 75_000
        assert all(0 < ms < 75_000 for ms in times[2:])
        assert shown["ms"] == pytest.approx(sum(times[1:]))
        by_server = {name: rest for name, *rest in shown["costs"]["server"]}
        assert {name: calls for name, (calls, *_) in by_server.items()} == {
            "fetchstash": 5,
            "files": 1,
        }
        assert sum(tokens for _, tokens, _ in by_server.values()) == shown["tokens"]
        assert by_server["files"][2] == times[1]
        rest = await view.get("timeline", run="first", offset=5, limit=9)
        assert [call["tool"] for call in rest["items"]] == ["stash_file"]
        exported = await view.client.get(view.base + "api/timeline.html", params={"run": "first"})
        assert exported.headers["content-disposition"].endswith("''timeline.html")
        assert "default-src 'none'" in exported.text
        assert '<td class="n">1 min 15 s</td>' in exported.text
        assert "failed: bad_pattern" in exported.text
        assert "<script" not in exported.text
        assert "\u202e" not in exported.text
        assert "&lt;script&gt;" in exported.text
        body = {"text": "Line 4 of a long text about lighthouses.", "run": "first"}
        traced = (await view.post("trace", json=body)).json()
        (origin,) = traced["origins"]
        assert origin["passage"]["first_line"] == 7
        assert [call["tool"] for call in origin["shown"]] == ["stash_file", "artifact_slice"]
        assert (await view.post("trace", json={"run": "first"})).status_code == 400


def test_a_call_that_showed_artifacts_of_two_hosts_costs_each_its_share() -> None:
    hosts = {"a": "one.example", "b": "one.example", "c": "two.example"}
    artifacts = {ref: Facts(final_url=f"https://{host}/{ref}") for ref, host in hosts.items()}
    shown = [{"ref": ref} for ref in (*hosts, "gone")]
    call = {"tool": "artifact_search", "tokens": 300, "ms": 30.0, "shown": shown}
    shares = [("one.example", 1, 200, 20.0), ("two.example", 1, 100, 10.0)]
    assert costs([call], artifacts)["host"] == shares


async def test_the_log_of_calls_is_private_and_an_ephemeral_run_leaves_none(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.txt", "Some words.")
    values: dict[str, Any] = {
        "store.folder": str(tmp_path / "store"),
        "ingest.read_roots": [str(tmp_path)],
    }
    log = tmp_path / "store" / "calls.jsonl"
    async with open_stash({**values, "store.ephemeral": True}) as stash:
        await ask(stash, "stash_file", path=str(path))
        assert not log.exists()
    async with open_stash(values) as stash:
        await ask(stash, "stash_file", path=str(path))
    assert log.stat().st_mode & 0o777 == 0o600
    assert "Some words" not in log.read_text()
    shutil.rmtree(log.parent)  # a call that ends later leaves nothing of what was deleted
    LoggedCall(load(values, {}), "stash_file", {"path": str(path)}).failed(TimeoutError())
    assert not log.parent.exists()


async def test_the_plot_is_a_picture_that_names_hosts_as_text(tmp_path: Path) -> None:
    async with viewed(tmp_path) as view:
        await view.stash.add_file(saved(tmp_path, "a.txt", PROSE))
        answered = await view.client.get(view.base + "api/plot.svg", params={"width": 400})
        assert answered.headers["content-type"] == "image/svg+xml"
        assert 'width="400"' in answered.text
        assert "this machine" in answered.text


@pytest.mark.skipif(sys.platform == "win32", reason="time.tzset is missing there")
async def test_the_times_of_a_plot_are_those_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sums = Totals(1, 0, 10, 0, ((1_000_000_000.0, 10, 0), (1_000_003_600.0, 10, 0)), (), ())
    monkeypatch.setenv("TZ", "UTC-3")  # POSIX's sign: three hours east
    time.tzset()
    try:
        assert all(label in plot(sums, 760) for label in (">04:46<", ">05:46<"))
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_a_page_without_content_is_described_in_a_sentence(tmp_path: Path) -> None:
    async with viewed(tmp_path) as view:
        shell = saved(tmp_path, "a.html", "<!doctype html><div id=root></div><script>x</script>")
        kept = await view.stash.add_file(shell)
        data = await view.get("artifact", ref=kept.ref)
        assert data["verdict"] == PAGE_VERDICTS[data["facts"]["page_verdict"]]


async def test_a_port_that_is_taken_is_refused_in_one_line(tmp_path: Path) -> None:
    async with viewed(tmp_path) as view:
        port = int(view.origin.rpartition(":")[2])
        with pytest.raises(BadArgument, match=f"Port {port} cannot be used"):
            async with ViewServer.open(load({"store.folder": str(tmp_path / "x")}), port=port):
                pass


# --- The view as an MCP App.

both_eras = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])


@both_eras
async def test_the_tools_that_open_documents_name_the_view(connect: Connect, mode: str) -> None:
    async with connect(mode=mode) as client:
        tools = (await client.list_tools()).tools
    views: dict[str, Any] = {
        tool.name: meta["ui"]["resourceUri"] for tool in tools if "ui" in (meta := tool.meta or {})
    }
    assert set(views) == {"fetch_content", "artifact_info"}
    assert len(set(views.values())) == 1
    assert all(uri.startswith("ui://") for uri in views.values())
    assert {tool.name for tool in tools if "ui/resourceUri" in (tool.meta or {})} == set(views)


@both_eras
async def test_the_view_is_one_file_that_loads_nothing(connect: Connect, mode: str) -> None:
    async with connect(mode=mode) as client:
        tools = (await client.list_tools()).tools
        (uri,) = {meta["ui"]["resourceUri"] for tool in tools if "ui" in (meta := tool.meta or {})}
        (page,) = (await client.read_resource(uri)).contents
    assert isinstance(page, TextResourceContents)
    assert page.text == view_html()
    assert page.mime_type == APP_MIME_TYPE
    assert (page.meta or {})["ui"]["csp"] == {"connectDomains": [], "resourceDomains": []}
    for sign in ('src="', 'href="', "@import", "url(", "innerHTML", "<form", "eval("):
        assert sign not in page.text


async def test_the_server_says_that_it_has_an_app(connect: Connect) -> None:
    async with connect() as client:  # the handshake era has no place for it
        capabilities = client.server_capabilities
    assert EXTENSION == EXTENSION_ID
    assert capabilities is not None
    assert EXTENSION in (capabilities.extensions or {})


# --- The command ``fetchstash ui``, as a person starts and ends it.

COMMAND = [sys.executable, "-P", "-c", "from fetchstash.cli import main; main()"]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "FETCHSTASH_STORE_FOLDER": str(folder / "store")}


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is sent otherwise there")
def test_the_link_opens_the_page_and_ctrl_c_ends_it_with_a_page_open(tmp_path: Path) -> None:
    started = subprocess.Popen(
        [*COMMAND, "ui", "--no-browser"],
        env=environment(tmp_path),
        cwd=tmp_path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert started.stdout
    link = started.stdout.readline().strip()
    with httpx2.Client() as client:
        assert client.get(link).status_code == 200
        events = link.partition("?")[0] + "api/events"
        with client.stream("GET", events) as stream:
            assert next(stream.iter_lines()) == "retry: 1000"
            started.send_signal(signal.SIGINT)
            _, errors = started.communicate(timeout=30)
    assert started.returncode == 130
    assert "Traceback" not in errors


@pytest.mark.long
def test_stats_draw_their_plot_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Some words.\n")
    plot = tmp_path / "plot.svg"
    for words in (["fetch", "a.txt"], ["stats", "--plot", str(plot)]):
        subprocess.run([*COMMAND, *words], env=environment(tmp_path), cwd=tmp_path, check=True)
    texts = [element.text for element in ET.parse(plot).iter("{http://www.w3.org/2000/svg}text")]
    assert {"By kind", "By host", "text", "this machine"} <= set(texts)
