"""A server without an SDK, of one protocol era: ``plain.py legacy`` or ``plain.py modern``.

It knows no more than the tests ask for, and can misbehave in the ways that they name.
"""

import json
import os
import sys
import time
from typing import Any

MODERN = sys.argv[1] == "modern"
VERSION = "2026-07-28" if MODERN else "2025-06-18"
INFO = {"name": "plain", "version": "1"}
CAPABILITIES = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "prompts": {}}
NAMES = """
echo ask long rows both image sound flood flood-rows surrogate garbage die half hang progress
change environment large-resource long-error not-a-number unreadable
""".split()  # noqa: SIM905 - words read better so
Message = dict[str, Any]


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    return message


def answer(request: dict[str, Any], result: dict[str, Any]) -> None:
    send({"id": request["id"], "result": ({"resultType": "complete"} if MODERN else {}) | result})


def text(request: dict[str, Any], words: str, **more: Any) -> None:
    answer(request, {"content": [{"type": "text", "text": words}], **more})


def ask(request: dict[str, Any]) -> None:
    params: Message = {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}
    question: Message = {"method": "elicitation/create", "params": params}
    given = request["params"].get("inputResponses")
    if MODERN and not given:
        needed: Message = {"inputRequests": {"q": question}, "requestState": "state of the server"}
        answer(request, {"resultType": "input_required", **needed})
        return
    if MODERN:
        assert request["params"]["requestState"] == "state of the server"
        text(request, f"said {given['q']['action']}")
        return
    send({"id": 9_999, **question})
    while "result" not in (reply := receive()):
        pass
    text(request, f"said {reply['result']['action']}")


def call(request: dict[str, Any]) -> None:
    name = request["params"]["name"]
    arguments: Message = request["params"].get("arguments") or {}
    size = int(arguments.get("size", 0))
    match name:
        case "echo":
            meta = request["params"].get("_meta", {})
            words = json.dumps({"arguments": arguments, "meta": sorted(meta)}, ensure_ascii=False)
            answer(
                request,
                {
                    "content": [
                        {"type": "text", "text": words, "annotations": {"audience": ["user"]}},
                        {"type": "resource_link", "uri": "data://a", "name": "a", "x-odd": [1.5]},
                    ],
                    "structuredContent": {"value": 1, "list": [None, True, 1e3]},
                    "isError": False,
                    "_meta": {"server/own": {"deep": [1]}},
                },
            )
        case "ask":
            ask(request)
        case "long":
            text(request, "".join(f"line {number} of the log\n" for number in range(size)))
        case "rows" | "both":
            rows = [{"id": number, "name": f"name {number}"} for number in range(size)]
            words = json.dumps({"rows": rows}, indent=2) if name == "both" else "All rows."
            text(request, words, structuredContent={"rows": rows})
        case "image" | "sound":
            block: Message = {
                "type": "image",
                "data": arguments.get("data"),
                "mimeType": "image/png",
            }
            if name == "sound":
                block = {"type": "audio", "data": "QUJD" * size, "mimeType": "audio/wav"}
            beside = [{"type": "text", "text": said} for said in arguments.get("beside", [])]
            answer(request, {"content": [*beside, block]})
        case "flood" | "flood-rows":
            flood(request, size, rows=name == "flood-rows")
        case "surrogate":
            text(request, "half \ud800 of a pair")
        case "garbage":
            sys.stdout.write('{"jsonrpc": "2.0", "id": \nnot json at all\n[1, 2]\n{"id": 1}\n')
            send({"id": request["id"] + 1_000, "result": {"content": []}})
            text(request, "after the garbage")
            text(request, "a second answer to one request")
        case "die":
            os._exit(3)
        case "half":
            sys.stdout.write(f'{{"jsonrpc":"2.0","id":{request["id"]},"result":{{"content":[')
            sys.stdout.write('{"type":"text","text":"' + "some words " * size)
            sys.stdout.flush()
            sys.stderr.write("my last words")
            sys.stderr.flush()
            os._exit(3)
        case "hang":
            time.sleep(60)
        case "progress":
            token = request["params"]["_meta"]["progressToken"]
            for step in range(3):
                params = {"progressToken": token, "progress": step, "total": 3, "message": "on"}
                send({"method": "notifications/progress", "params": params})
            text(request, "done")
        case "change":
            send({"method": "notifications/tools/list_changed"})
            updated = {"uri": "data://a"}
            send({"method": "notifications/resources/updated", "params": updated})
            text(request, "changed")
        case "environment":
            sys.stderr.write(f"the key is {os.environ.get('SECRET')}\n")
            text(request, str(os.environ.get("SECRET")))
        case "large-resource":
            resource = {"uri": "data://a.csv", "mimeType": "text/csv", "text": "a,b\n" * size}
            answer(request, {"content": [{"type": "resource", "resource": resource}]})
        case "not-a-number":
            start = f'{{"jsonrpc":"2.0","id":{json.dumps(request["id"])},"result":'
            more = '"resultType":"complete","structuredContent":{"values":[NaN,-Infinity,1e999,2]}'
            sys.stdout.write(start + '{"content":[],' + more + "}}\n")
            sys.stdout.flush()
        case "unreadable":
            sys.stdout.write(f'{{"jsonrpc":"2.0","id":{json.dumps(request["id"])},"result":}}\n')
            sys.stdout.flush()
        case "long-error":
            error = {"code": -32_050, "message": "odd " * size, "data": {"why": ["because"]}}
            send({"id": request["id"], "error": error})
        case _:
            raise ValueError(name)


def flood(request: dict[str, Any], size: int, *, rows: bool) -> None:
    """Write a result of ``size`` bytes without holding it."""
    write = sys.stdout.write
    write(f'{{"jsonrpc":"2.0","id":{json.dumps(request["id"])},"result":')
    piece = '{"n":1,"word":"some"},' * 3_000 if rows else "some words and more\\n" * 3_000
    if rows:
        write('{"content":[],"structuredContent":{"rows":[')
    else:
        write('{"content":[{"type":"text","text":"')
    for _ in range(size // len(piece)):
        write(piece)
    write('{"n":2,"word":"last"}]}}' if rows else 'the last line"}]}')
    write("}\n")
    sys.stdout.flush()


def respond(request: dict[str, Any]) -> None:
    request.setdefault("params", {})
    method = request["method"]
    if method == "server/discover" and MODERN:
        found = {"supportedVersions": [VERSION], "capabilities": CAPABILITIES, "ttlMs": 0}
        answer(request, {**found, "cacheScope": "private", "instructions": "Be plain."})
    elif method == "initialize" and not MODERN:
        found = {"protocolVersion": VERSION, "capabilities": CAPABILITIES, "serverInfo": INFO}
        answer(request, {**found, "instructions": "Be plain."})
    elif method == "tools/list":
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        tools = [
            {
                "name": name,
                "title": name.title(),
                "description": f"{name}.",
                "inputSchema": schema,
                "outputSchema": schema,
                "annotations": {"readOnlyHint": True},
                "icons": [{"src": "data:,"}],
            }
            for name in NAMES
        ]
        cut = 5 if "cursor" not in request["params"] else 0
        page = {"tools": tools[:cut], "nextCursor": "5"} if cut else {"tools": tools[5:]}
        answer(request, {**page, "ttlMs": 0, "cacheScope": "private"} if MODERN else page)
    elif method == "tools/call":
        call(request)
    elif method == "resources/list":
        answer(request, {"resources": [{"uri": "data://a", "name": "a"}]})
    elif method == "resources/templates/list":
        answer(request, {"resourceTemplates": [{"uriTemplate": "data://{x}", "name": "t"}]})
    elif method == "prompts/list":
        answer(request, {"prompts": [{"name": "greet"}]})
    elif method in ("resources/subscribe", "resources/unsubscribe") and not MODERN:
        sys.stderr.write(f"{method}\n")
        answer(request, {})
    elif method == "subscriptions/listen" and MODERN:
        meta = {"io.modelcontextprotocol/subscriptionId": request["id"]}
        params = {"notifications": request["params"]["notifications"], "_meta": meta}
        send({"method": "notifications/subscriptions/acknowledged", "params": params})
    else:
        unknown = {"code": -32_601, "message": "Method not found"}
        send({"id": request["id"], "error": unknown})


while True:
    message = receive()
    if "method" in message and "id" in message:
        respond(message)
