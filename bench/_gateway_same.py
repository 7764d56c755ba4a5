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
NODE = ("cohort-heatmap", "customer-segmentation", "pdf", "everything", "sequential-thinking")
"""Whose chance and clock stand still. A browser needs its own."""

Asked = tuple[str, dict[str, Any]]
"""A tool with its arguments, or another method with its parameters."""


def asked(data: Path, url: str) -> dict[str, list[Asked]]:
    """Return what is asked of each server, in order. Each leaves its data as they were."""
    for name in ("notes.txt", "odd\u2028näme.txt"):
        text = 'Tab\t"quote" \\ 20 € \u2028 \U0001f6a8\u0000\x7f\r\nend'
        (data / name).write_text(text, newline="")
    (data / "made").mkdir(exist_ok=True)
    (data / "new.txt").write_text("näw")
    Image.new("RGB", (40, 30), "teal").save(data / "dot.png")
    text = Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
    known: dict[str, list[Asked]] = json.loads(
        text.replace("{data}", str(data)).replace("{url}", url)
    )
    longest = THRESHOLD - len("Echo: ")
    known["everything"] += [("echo", {"message": "x" * size}) for size in (longest, longest + 1)]
    people = [
        {"name": f"person {n}", "entityType": "person", "observations": ["ü"]} for n in range(800)
    ]
    names = {"entityNames": [person["name"] for person in people]}
    known["memory"] += [("create_entities", {"entities": people}), ("read_graph", {})]
    known["memory"] += [("delete_entities", names)]
    return known


def same(known: Mapping[str, list[str]], data: Path, url: str) -> bool:
    """Print what was compared and what differs; return whether nothing does."""
    still = Path(__file__).with_name("_still.cjs")
    each = [
        {
            **{name: {"NODE_OPTIONS": f'--require "{still}"'} for name in NODE},
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
