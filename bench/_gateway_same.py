"""Compare what real servers answer with what they answer behind one gateway, byte by byte.

Lists, pages of MCP Apps, prompts, resources and calls, errors too. At or under the threshold a
result is the same bytes. Over it, the page of an App gets the same bytes as its data, the model of
a tool a preview, and the artifact holds the same bytes as the text. Chance and clock stand still in
both (NODE_OPTIONS), where a server draws its figures anew for each call.
"""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image

from bench._calls import Pipe, piped
from bench._gateway import entry_of
from fetchstash.cli.demo._tour import command
from fetchstash.config import WrappedServer

LISTS = ("tools", "resources", "resources/templates", "prompts")
THRESHOLD = WrappedServer("").threshold
STILL = """
let seed = 7;
Math.random = () => (seed = seed * 48271 % 2147483647) / 2147483647;
let count = 0;
const uuid = () => "00000000-0000-4000-8000-" + String(++count).padStart(12, "0");
const crypto = require("node:crypto");
crypto.randomUUID = uuid;
globalThis.crypto.randomUUID = uuid;
require("node:module").syncBuiltinESMExports();
const Clock = Date;
globalThis.Date = class extends Clock {
  constructor(...parts) { parts.length ? super(...parts) : super(Date.now()); }
  static now() { return 1700000000000; }
};
"""
NODE = ("cohort-heatmap", "customer-segmentation", "pdf", "everything", "sequential-thinking")
"""Whose chance and clock stand still. A browser needs its own."""

Asked = tuple[str, dict[str, Any]]
"""A tool with its arguments, or another method with its parameters."""


def asked(data: Path, url: str) -> dict[str, list[Asked]]:
    """Return what is asked of each server, in order. Each leaves its data as they were."""
    notes, odd = str(data / "notes.txt"), str(data / "odd\u2028näme.txt")
    for path in (notes, odd):
        Path(path).write_text('Tab\t"quote" \\ 20 € \u2028 \U0001f6a8\u0000\x7f\r\nend', newline="")
    (data / "made").mkdir(exist_ok=True)
    (data / "new.txt").write_text("näw")
    Image.new("RGB", (40, 30), "teal").save(data / "dot.png")
    log, tree = str(data / "app.log"), str(data / "tree")
    repo = {"repo_path": str(data / "repo")}
    pdf = {"url": (data / "report.pdf").as_uri()}
    people = [
        {"name": f"person {n}", "entityType": "person", "observations": ["ü"]} for n in range(800)
    ]
    knows = [{"from": "person 1", "to": "person 2", "relationType": "knows"}]
    sees = [{"entityName": "person 1", "contents": ["sees", "hears"]}]
    message = "trigger-long-running-operation"
    return {
        "cohort-heatmap": [
            ("get-cohort-data", {}),
            ("get-cohort-data", {"metric": "revenue", "cohortCount": 3, "maxPeriods": 3}),
            ("get-cohort-data", {"cohortCount": 24, "maxPeriods": 24}),
            ("get-cohort-data", {"metric": "none"}),
        ],
        "customer-segmentation": [
            ("get-customer-data", {}),
            ("get-customer-data", {"segment": "Enterprise"}),
            ("get-customer-data", {"segment": 3}),
        ],
        "pdf": [
            ("list_pdfs", {}),
            ("display_pdf", pdf),
            ("read_pdf_bytes", {**pdf, "offset": 0, "byteCount": 500_000}),
            ("submit_viewer_state", {"requestId": "none", "state": "{}"}),
            ("display_pdf", {"url": "file:///etc/passwd"}),
        ],
        "sequential-thinking": [
            (
                "sequentialthinking",
                {"thought": t, "nextThoughtNeeded": n < 2, "thoughtNumber": n, "totalThoughts": 2},
            )
            for n, t in ((1, "first"), (2, "sécond"))
        ],
        "filesystem": [
            ("read_text_file", {"path": notes}),
            ("read_text_file", {"path": odd}),
            ("read_text_file", {"path": log, "tail": 3}),
            ("read_text_file", {"path": log}),
            ("read_text_file", {"path": str(data / "none")}),
            ("read_text_file", {"path": 7}),
            ("read_text_file", {"path": "/etc/passwd"}),
            ("read_multiple_files", {"paths": [notes, str(data / "none")]}),
            ("read_media_file", {"path": str(data / "dot.png")}),
            ("list_directory", {"path": str(data)}),
            ("list_directory_with_sizes", {"path": str(data / "tree" / "part7")}),
            ("directory_tree", {"path": str(data / "tree" / "part7")}),
            ("directory_tree", {"path": tree}),
            ("search_files", {"path": tree, "pattern": "**/*plan*"}),
            ("search_files", {"path": tree, "pattern": "**/*.py"}),
            ("get_file_info", {"path": str(data / "cities.json")}),
            ("write_file", {"path": str(data / "new.txt"), "content": "näw"}),
            (
                "edit_file",
                {
                    "path": str(data / "new.txt"),
                    "dryRun": True,
                    "edits": [{"oldText": "näw", "newText": "old"}],
                },
            ),
            ("move_file", {"source": str(data / "new.txt"), "destination": str(data / "n.txt")}),
            ("move_file", {"source": str(data / "n.txt"), "destination": str(data / "new.txt")}),
            ("create_directory", {"path": str(data / "made")}),
            ("list_allowed_directories", {}),
        ],
        "everything": [
            ("echo", {"message": "short ü \u2028 \U0001f6a8"}),
            ("echo", {"message": "x" * (THRESHOLD - len("Echo: "))}),
            ("echo", {"message": "x" * (THRESHOLD + 1 - len("Echo: "))}),
            ("echo", {}),
            *(
                ("get-annotated-message", {"messageType": kind, "includeImage": True})
                for kind in ("error", "success", "debug")
            ),
            ("get-resource-links", {"count": 10}),
            *(
                ("get-resource-reference", {"resourceType": kind, "resourceId": 1})
                for kind in ("Text", "Blob")
            ),
            ("get-structured-content", {"location": "Chicago"}),
            ("get-structured-content", {"location": "Nowhere"}),
            ("get-sum", {"a": 0.1, "b": 0.2}),
            ("get-sum", {"a": 1e21, "b": 1}),
            ("get-tiny-image", {}),
            ("gzip-file-as-resource", {"name": "a.gz", "data": "data:text/plain,abc"}),
            (message, {"duration": 0.2, "steps": 2}),
            ("prompts/get", {"name": "simple-prompt"}),
            ("prompts/get", {"name": "args-prompt", "arguments": {"city": "Köln"}}),
            ("prompts/get", {"name": "args-prompt"}),
            (
                "completion/complete",
                {
                    "ref": {"type": "ref/prompt", "name": "completable-prompt"},
                    "argument": {"name": "department", "value": "E"},
                },
            ),
        ],
        "memory": [
            ("create_entities", {"entities": people[:5]}),
            ("create_relations", {"relations": knows}),
            ("add_observations", {"observations": sees}),
            ("add_observations", {"observations": [{"entityName": "none", "contents": []}]}),
            ("read_graph", {}),
            ("search_nodes", {"query": "sees"}),
            ("open_nodes", {"names": ["person 1", "person 2"]}),
            ("create_entities", {"entities": people}),
            ("read_graph", {}),
            ("delete_relations", {"relations": knows}),
            (
                "delete_observations",
                {"deletions": [{"entityName": "person 1", "observations": ["sees", "hears"]}]},
            ),
            ("delete_entities", {"entityNames": [person["name"] for person in people]}),
        ],
        "git": [
            ("git_status", repo),
            ("git_log", {**repo, "max_count": 2}),
            ("git_log", {**repo, "max_count": 300}),
            ("git_show", {**repo, "revision": "HEAD~200"}),
            ("git_show", {**repo, "revision": "HEAD"}),
            ("git_show", {**repo, "revision": "none"}),
            ("git_diff", {**repo, "target": "HEAD~1"}),
            ("git_diff_unstaged", repo),
            ("git_diff_staged", repo),
            ("git_branch", {**repo, "branch_type": "local"}),
            ("git_add", {**repo, "files": ["values.py"]}),
            ("git_reset", repo),
            ("git_status", {"repo_path": "/"}),
            ("git_status", {}),
        ],
        "sqlite": [
            ("list_tables", {}),
            ("describe_table", {"table_name": "sales"}),
            ("read_query", {"query": "SELECT *, amount / 3.0, 'ü \u2028' FROM sales LIMIT 3"}),
            ("read_query", {"query": "SELECT * FROM sales"}),
            ("read_query", {"query": "SELECT * FROM none"}),
            ("read_query", {"query": "DROP TABLE sales"}),
            ("create_table", {"query": "CREATE TABLE more (id INTEGER)"}),
            ("write_query", {"query": "INSERT INTO more VALUES (1), (2)"}),
            ("write_query", {"query": "DROP TABLE more"}),
            ("append_insight", {"insight": "Sales are fine."}),
            ("resources/read", {"uri": "memo://insights"}),
            ("prompts/get", {"name": "mcp-demo", "arguments": {"topic": "ships"}}),
            ("describe_table", {}),
        ],
        "postgres": [
            ("query", {"sql": "SELECT *, 1.5, now() < now(), 'ü \u2028' FROM cities LIMIT 3"}),
            ("query", {"sql": "SELECT * FROM cities"}),
            ("query", {"sql": "SELECT * FROM none"}),
        ],
        "playwright": [
            ("browser_resize", {"width": 800, "height": 600}),
            ("browser_navigate", {"url": url}),
            ("browser_evaluate", {"function": "() => document.title + ' ü'"}),
            ("browser_evaluate", {"function": "() => none.none"}),
            ("browser_snapshot", {"depth": 2}),
            ("browser_snapshot", {}),
            ("browser_find", {"text": "Item 777"}),
            ("browser_take_screenshot", {"scale": "css"}),
            ("browser_press_key", {"key": "End"}),
            ("browser_tabs", {"action": "list"}),
            ("browser_network_requests", {"static": True}),
            ("browser_click", {"target": "none"}),
            ("browser_close", {}),
        ],
    }


def same(known: Mapping[str, list[str]], data: Path, url: str) -> bool:
    """Print what was compared and what differs; return whether nothing does."""
    still = data.parent / "still.cjs"
    still.write_text(STILL)
    each = [
        {
            **{name: {"NODE_OPTIONS": f"--require {still}"} for name in NODE},
            "memory": {"MEMORY_FILE_PATH": str(data.parent / f"memory-{turn}.json")},
        }
        for turn in range(2)
    ]
    questions, faults = asked(data, url), list[str]()
    env = {**os.environ, "FETCHSTASH_STORE_FOLDER": str(data.parent / "store")}
    bare: dict[str, tuple[Lists, list[bytes]]] = {}
    for name, words in known.items():
        with piped(words, {**env, **each[0].get(name, {})}, data.parent) as one:
            listed = _lists(one)
            questions[name] += _resources(listed)
            bare[name] = listed, [one.answer(*_request(item)) for item in questions[name]]
    print(f"\n{'behind one gateway':24}" + "".join(f"{kind:>20}" for kind in KINDS))
    sums = Counter[str]()
    with piped([command(), "wrap"], {**env, **entry_of(known, each[1])}, data.parent) as one:
        behind = _lists(one)
        for name, (listed, before) in bare.items():
            tallies = Counter[str]()
            for field, items in listed.items():
                for item in items:
                    tallies[kind := _kind_of_entry(name, item, behind[field])] += 1
                    faults += [f"{name}: {field} {item['name']}"] if kind == DIFFERS else []
            whole, apps = _tools_of_apps(listed)
            for question, old in zip(questions[name], before, strict=True):
                tool, arguments = question
                new = one.answer(*_request(_exposed(name, question, behind)))
                tallies[kind := _kind(old, new, tool in whole, tool in apps)] += 1
                faults += [f"{name}: {tool} {arguments}"[:200]] if kind == DIFFERS else []
            print(f"{name:24}" + "".join(f"{tallies[kind]:20,}" for kind in KINDS))
            sums += tallies
    print(f"{'together':24}" + "".join(f"{sums[kind]:20,}" for kind in KINDS))
    print("".join(f"differs: {fault}\n" for fault in faults), end="")
    return not faults


Lists = dict[str, list[dict[str, Any]]]
ENTRY, BYTES, TIMES, PREVIEW, DATA, DIFFERS = KINDS = (
    "prefix or no schema",
    "same bytes",
    "but for times",
    "preview, all kept",
    "and data of an App",
    "differs",
)
"""Entries of lists are the same, or have a prefix or no ``outputSchema``; results are the same, too
but for times in names of files; or a preview whose artifacts hold every byte."""


def _lists(one: Pipe) -> Lists:
    """Return what a server lists, which may have no list of a kind."""
    return {
        field: one.ask(f"{field}/list").get(field.replace("resources/t", "resourceT"), [])
        for field in LISTS
    }


def _resources(listed: Lists) -> list[Asked]:
    """Return the reading of each listed resource, the pages of Apps among them."""
    return [("resources/read", {"uri": item["uri"]}) for item in listed["resources"]]


def _tools_of_apps(listed: Lists) -> tuple[set[str], set[str]]:
    """Return the tools for a page alone, and those with a page."""
    ui = {tool["name"]: tool.get("_meta", {}).get("ui", {}) for tool in listed["tools"]}
    whole = {name for name, meta in ui.items() if meta.get("visibility") == ["app"]}
    return whole, {name for name, meta in ui.items() if "resourceUri" in meta} - whole


def _kind_of_entry(server: str, item: dict[str, Any], behind: list[dict[str, Any]]) -> str:
    """Return how an entry of a list stands behind the gateway."""
    lines = set(map(json.dumps, behind))
    if json.dumps(item) in lines:
        return BYTES
    short = {key: value for key, value in item.items() if key != "outputSchema"}
    names = (item["name"], f"{server}_{item['name']}")
    forms = ({**form, "name": name} for form in (item, short) for name in names)
    return ENTRY if any(json.dumps(form) in lines for form in forms) else DIFFERS


def _exposed(server: str, item: Asked, behind: Lists) -> Asked:
    """Return a question with the name that a tool has behind the gateway."""
    name, arguments = item
    prefixed = f"{server}_{name}"
    return (prefixed if any(t["name"] == prefixed for t in behind["tools"]) else name, arguments)


def _request(item: Asked) -> Asked:
    name, arguments = item
    return item if "/" in name else ("tools/call", {"name": name, "arguments": arguments})


def _kind(old: bytes, new: bytes, is_whole: bool, is_app: bool) -> str:
    """Return how a result came through the gateway."""
    before, after = json.loads(old), json.loads(new)
    structured = before.get("structuredContent")
    chars = _chars(before) + (0 if structured is None or is_app else len(json.dumps(structured)))
    is_short = is_whole or chars <= THRESHOLD or str(_uri(before)).startswith("ui://")
    times = re.compile(rb"\d{4}-\d\d-\d\dT[\d-]+Z")
    if times.sub(b"", old) == times.sub(b"", new):
        return (BYTES if old == new else TIMES) if is_short else DIFFERS
    facts = after.get("_meta", {}).get("fetchstash/artifact", [])
    hashes = {fact["sha256"] for fact in facts}
    if is_short or not hashes or not hashes <= _hashes(before) or _chars(after) > THRESHOLD:
        return DIFFERS
    if is_app:
        is_kept = json.dumps(after.get("structuredContent")) == json.dumps(structured)
        return DATA if is_kept else DIFFERS
    return DIFFERS if "structuredContent" in after else PREVIEW


def _uri(result: dict[str, Any]) -> object:
    return next((item.get("uri") for item in result.get("contents", [])), "")


def _texts(result: dict[str, Any]) -> list[str]:
    """Return what of a result a model reads as text, apart from structured content."""
    blocks = [*result.get("content", []), *result.get("contents", [])]
    blocks += [message["content"] for message in result.get("messages", [])]
    texts = [block.get("text", block.get("resource", {}).get("text")) for block in blocks]
    return [text for text in texts if text]


def _chars(result: dict[str, Any]) -> int:
    return sum(map(len, _texts(result)))


def _hashes(result: dict[str, Any]) -> set[str]:
    """Return the digests that an artifact of this result may have."""
    texts = _texts(result)
    values = [*texts, "\n".join(texts)]
    if structured := result.get("structuredContent"):
        values.append(json.dumps(structured, ensure_ascii=False))
        values += [value for value in structured.values() if isinstance(value, str)]
    return {hashlib.sha256(value.encode()).hexdigest() for value in values}
