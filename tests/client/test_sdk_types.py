"""After a rewrite every item, block and part is what the SDK's own types allow.

A type that an SDK adds is noticed.
Each case is a large item of a conversation that has to shrink. ``shrinks``: whether a stub may take
its place. What may not be replaced stays as it is, and the report says so.
"""

import copy
import importlib
import json
from dataclasses import dataclass
from typing import Any

import pytest

from fetchstash.client import Format, Policy, Report, State, compact, orphans, rewrite
from tests.client.fakes import prose
from tests.client.sdk_types import fault, tags
from tests.client.sdks import needs

LARGE = prose(9_000)


@dataclass(frozen=True)
class Case:
    """Items of one type, and those that it needs around it."""

    items: tuple[dict[str, Any], ...]
    shrinks: bool = True


def responses_message(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text}


def function_call(arguments: str = "{}", number: int = 0) -> dict[str, Any]:
    call = {"type": "function_call", "call_id": f"c{number}", "name": "fetch"}
    return call | {"arguments": arguments}


def function_output(output: Any, number: int = 0) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"c{number}", "output": output}


def one(kind: str, *, shrinks: bool = False, **fields: Any) -> Case:
    """Return one item that stands for itself."""
    return Case(({"type": kind, **fields},), shrinks)


def two(
    kind: str, call: dict[str, Any], output: dict[str, Any], *, shrinks: bool = True, end: str = ""
) -> Case:
    """Return a call and its output, which bear its id."""
    answer = {"type": end or f"{kind}_output", "call_id": "c"}
    return Case(({"type": kind, "call_id": "c"} | call, answer | output), shrinks)


OK: dict[str, Any] = {"output": "ok"}
BIG: dict[str, Any] = {"output": LARGE}
FILE = {"type": "input_file", "file_data": "data:application/pdf;base64," + "QUJD" * 900}
OUTPUT = {"stdout": LARGE, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
SCREENSHOT = {"type": "computer_screenshot", "image_url": "data:image/png;base64," + "A" * 9_000}
CLICK = {"type": "click", "button": "left", "x": 1, "y": 1}
TOOL = {"type": "function", "name": "fetch", "parameters": {"d": LARGE}, "strict": True}
DONE: dict[str, Any] = {"status": "completed"}
COMPUTER: dict[str, Any] = {"id": "i", "pending_safety_checks": [], **DONE}
MCP = {"id": "m", "name": "fetch", "server_label": "s"}
CODE: dict[str, Any] = {"id": "m", "container_id": "c"} | DONE
PROGRAM = {"id": "i", "fingerprint": "f"}


def local_shell(environment: dict[str, str], output: str, *, shrinks: bool) -> Case:
    action = {"type": "exec", "command": ["cat", "log"], "env": environment}
    call = {"type": "local_shell_call", "id": "i", "call_id": "c", "action": action} | DONE
    return Case((call, {"type": "local_shell_call_output", "id": "c", "output": output}), shrinks)


def approval(arguments: str, **reason: str) -> Case:
    request = {"type": "mcp_approval_request", "arguments": arguments} | MCP
    answer = {"type": "mcp_approval_response", "approval_request_id": "m", "approve": True}
    return Case((request, answer | reason), shrinks=False)


def patch(operation: dict[str, str], output: str) -> Case:
    return two("apply_patch_call", DONE | {"operation": operation}, DONE | {"output": output})


RESPONSES: dict[str, Case] = {
    "function_call": Case((function_call(json.dumps({"body": LARGE})), function_output("ok"))),
    "function_call_output": Case((function_call(), function_output(LARGE))),
    "function_call_output of blocks": Case(
        (function_call(), function_output([{"type": "input_text", "text": LARGE}, FILE]))
    ),
    "custom_tool_call": two("custom_tool_call", {"name": "run", "input": LARGE}, OK),
    "custom_tool_call_output": two("custom_tool_call", {"name": "run", "input": "x"}, BIG),
    "tool_search_call": two(
        "tool_search_call",
        {"arguments": {"q": LARGE}},
        {"tools": []},
        shrinks=False,
        end="tool_search_output",
    ),
    "tool_search_output": two(
        "tool_search_call",
        {"arguments": {"q": "x"}},
        {"tools": [TOOL]},
        shrinks=False,
        end="tool_search_output",
    ),
    "computer_call": two(
        "computer_call",
        COMPUTER | {"action": {"type": "type", "text": LARGE}},
        {"output": {"type": "computer_screenshot"}},
        shrinks=False,
    ),
    "computer_call_output": two(
        "computer_call", COMPUTER | {"action": CLICK}, {"output": SCREENSHOT}, shrinks=False
    ),
    "local_shell_call": local_shell({"A": LARGE}, "ok", shrinks=False),
    "local_shell_call_output": local_shell({}, LARGE, shrinks=True),
    "shell_call": two(
        "shell_call",
        {"action": {"commands": [LARGE]}},
        {"output": [OUTPUT | {"stdout": "ok"}]},
        shrinks=False,
    ),
    "shell_call_output": two(
        "shell_call", {"action": {"commands": ["cat log"]}}, {"output": [OUTPUT, OUTPUT]}
    ),
    "apply_patch_call": patch({"type": "create_file", "path": "a", "diff": LARGE}, "ok"),
    "apply_patch_call_output": patch({"type": "delete_file", "path": "a"}, LARGE),
    "mcp_call": one("mcp_call", shrinks=True, **MCP, arguments="{}", **BIG),
    "mcp_call with an error": one(
        "mcp_call", shrinks=True, **MCP, arguments=json.dumps({"body": LARGE}), output=None
    ),
    "code_interpreter_call": one(
        "code_interpreter_call",
        shrinks=True,
        **CODE,
        code="1",
        outputs=[{"type": "logs", "logs": LARGE}],
    ),
    "code_interpreter_call without outputs": one(
        "code_interpreter_call", shrinks=True, **CODE, code=LARGE, outputs=None
    ),
    "file_search_call": one(
        "file_search_call",
        shrinks=True,
        **DONE,
        id="m",
        queries=["x"],
        results=[{"text": LARGE, "filename": "a.pdf"}],
    ),
    "mcp_approval_request": approval(LARGE),
    "mcp_approval_response": approval("", reason=LARGE),
    "program": two(
        "program", PROGRAM | {"code": LARGE}, DONE | {"id": "j", "result": "ok"}, shrinks=False
    ),
    "program_output": two("program", PROGRAM | {"code": "1"}, DONE | {"id": "j", "result": LARGE}),
    "message": Case((responses_message("user", LARGE),), shrinks=False),
    "reasoning": one("reasoning", id="r", summary=[], encrypted_content=LARGE),
    "additional_tools": one("additional_tools", role="developer", tools=[TOOL]),
    "compaction": one("compaction", encrypted_content=LARGE),
    "compaction_trigger": one("compaction_trigger", id=LARGE),
    "configuration_update": one("configuration_update", id=LARGE),
    "image_generation_call": one("image_generation_call", **DONE, id="i", result="A" * 9_000),
    "item_reference": one("item_reference", id=LARGE),
    "mcp_list_tools": one(
        "mcp_list_tools",
        id="i",
        server_label="s",
        tools=[{"name": "f", "input_schema": {"d": LARGE}}],
    ),
    "web_search_call": one(
        "web_search_call", **DONE, id="i", action={"type": "search", "query": LARGE}
    ),
}

PDF = {"type": "base64", "media_type": "application/pdf", "data": "QUJD" * 900}
TEXT_SOURCE = {"type": "text", "media_type": "text/plain", "data": LARGE}


def server_tool(name: str, content: Any, *, shrinks: bool = True, **inputs: Any) -> Case:
    """Return a call of a tool that the provider runs, and its result."""
    kind = "tool_search" if name.startswith("tool_search") else name
    use = {"type": "server_tool_use", "id": "s", "name": name, "input": inputs}
    result = {"type": f"{kind}_tool_result", "tool_use_id": "s", "content": content}
    return Case((use, result), shrinks)


def fetched(source: dict[str, Any]) -> dict[str, Any]:
    document = {"type": "document", "source": source}
    return {"type": "web_fetch_result", "url": "https://a.example/", "content": document}


def ran(kind: str) -> dict[str, Any]:
    return {"type": kind, "stdout": LARGE, "stderr": "no", "return_code": 0, "content": []}


SEARCHED = {"type": "web_search_result", "encrypted_content": LARGE, "title": "t", "url": "u"}
TOOL_USE: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "fetch", "input": {}}


def tool(result: dict[str, Any], **inputs: Any) -> Case:
    answer = {"type": "tool_result", "tool_use_id": "t"}
    return Case((TOOL_USE | {"input": inputs}, answer | result))


VIEWED = {"type": "text_editor_code_execution_view_result", "content": LARGE, "file_type": "text"}
FOUND = {
    "type": "tool_search_tool_search_result",
    "tool_references": [{"type": "tool_reference", "tool_name": LARGE}],
}

# What the model said, and then, if it stands apart, what the user's side answered.
ANTHROPIC: dict[str, Case] = {
    "tool_use": tool({}, body=LARGE),
    "tool_result": tool({"content": LARGE}),
    "tool_result of blocks": tool(
        {"content": [{"type": "text", "text": LARGE}, {"type": "document", "source": PDF}]}
    ),
    "server_tool_use": server_tool(
        "code_execution", ran("code_execution_result") | {"stdout": ""}, shrinks=False, code=LARGE
    ),
    "web_search_tool_result": server_tool("web_search", [SEARCHED], shrinks=False),
    "web_fetch_tool_result": server_tool("web_fetch", fetched(TEXT_SOURCE)),
    "web_fetch_tool_result with a PDF": server_tool("web_fetch", fetched(PDF), shrinks=False),
    "code_execution_tool_result": server_tool("code_execution", ran("code_execution_result")),
    "bash_code_execution_tool_result": server_tool(
        "bash_code_execution", ran("bash_code_execution_result")
    ),
    "text_editor_code_execution_tool_result": server_tool("text_editor_code_execution", VIEWED),
    "tool_search_tool_result": server_tool("tool_search_tool_bm25", FOUND, shrinks=False),
    "text": one("text", text=LARGE),
    "thinking": one("thinking", thinking=LARGE, signature="s"),
    "redacted_thinking": one("redacted_thinking", data=LARGE),
    "container_upload": one("container_upload", file_id=LARGE),
    "document": one("document", source=PDF),
    "image": one("image", source=PDF | {"media_type": "image/png"}),
    "search_result": one(
        "search_result", source="u", title="t", content=[{"type": "text", "text": LARGE}]
    ),
}


def responses_history(items: tuple[dict[str, Any], ...]) -> list[Any]:
    return [
        responses_message("user", "the task"),
        *items,
        responses_message("assistant", "Well."),
        function_call(number=9),
        function_output("short", 9),
        responses_message("user", "Go on."),
    ]


def anthropic_history(blocks: tuple[dict[str, Any], ...]) -> list[Any]:
    answers = [block for block in blocks if block["type"] in {"tool_result", "document", "image"}]
    said = [block for block in blocks if block not in answers]
    return [
        {"role": "user", "content": "the task"},
        {"role": "assistant", "content": [*said, {"type": "text", "text": "Well."}]},
        {"role": "user", "content": answers or "And?"},
        {"role": "assistant", "content": [TOOL_USE | {"id": "z"}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "z", "content": "short"}],
        },
        {"role": "user", "content": "Go on."},
    ]


def shrink(history: list[Any], fmt: Format) -> tuple[list[Any], Report]:
    """Return the history after a reactive rewrite, and its report; all stays paired."""
    before = copy.deepcopy(history)
    rewritten, report = rewrite(history, fmt, 300)
    compacted, _ = compact(history, fmt, 3_000, State(), policy=Policy())
    assert history == before
    assert orphans(rewritten, fmt) == []
    assert orphans(compacted, fmt) == []
    return rewritten, report


@pytest.mark.parametrize("case", RESPONSES.values(), ids=list(RESPONSES))
def test_an_item_of_the_responses_api_shrinks_or_stays_as_it_is(case: Case) -> None:
    history = responses_history(case.items)
    rewritten, report = shrink(history, "openai_responses")
    assert report.smaller is case.shrinks
    assert (len(json.dumps(rewritten)) < len(json.dumps(history)) - 3_000) is case.shrinks
    assert (rewritten == history) is not case.shrinks
    if not case.shrinks and case.items[0]["type"] not in {"message", "reasoning"}:
        assert "which the provider takes only as they are" in report.sentence()


@pytest.mark.parametrize("case", ANTHROPIC.values(), ids=list(ANTHROPIC))
def test_a_block_of_the_messages_api_shrinks_or_stays_as_it_is(case: Case) -> None:
    history = anthropic_history(case.items)
    rewritten, report = shrink(history, "anthropic")
    assert report.smaller is case.shrinks
    assert (rewritten == history) is not case.shrinks


@needs("openai")
@pytest.mark.parametrize("case", RESPONSES.values(), ids=list(RESPONSES))
def test_items_of_the_responses_api_are_of_openais_types_before_and_after(case: Case) -> None:
    module = importlib.import_module("openai.types.responses.response_input_item_param")
    history = responses_history(case.items)
    compacted, _ = compact(history, "openai_responses", 3_000, State(), policy=Policy())
    for messages in (history, shrink(history, "openai_responses")[0], compacted):
        assert [fault(item, module.ResponseInputItemParam) for item in messages] == [""] * len(
            messages
        )


@needs("anthropic")
@pytest.mark.parametrize("case", ANTHROPIC.values(), ids=list(ANTHROPIC))
def test_blocks_of_the_messages_api_are_of_anthropics_types_before_and_after(case: Case) -> None:
    module = importlib.import_module("anthropic.types.message_param")
    history = anthropic_history(case.items)
    compacted, _ = compact(history, "anthropic", 3_000, State(), policy=Policy())
    for messages in (history, shrink(history, "anthropic")[0], compacted):
        assert [fault(message, module.MessageParam) for message in messages] == [""] * len(messages)


def types_of(cases: dict[str, Case]) -> set[str]:
    return {str(item["type"]) for case in cases.values() for item in case.items}


@needs("openai")
def test_every_item_type_that_openais_sdk_defines_has_a_case() -> None:
    module = importlib.import_module("openai.types.responses.response_input_item_param")
    assert tags(module.ResponseInputItemParam) <= types_of(RESPONSES)


@needs("openai")
def test_the_check_of_types_refuses_what_a_rewrite_once_made() -> None:
    module = importlib.import_module("openai.types.responses.response_input_item_param")
    output = {"type": "computer_call_output", "call_id": "c", "output": '{"summary": "gone"}'}
    action = {"type": "local_shell_call", "id": "i", "call_id": "c", "status": "completed"}
    assert fault(output, module.ResponseInputItemParam)
    assert fault(
        action | {"action": {"command": "(9000 characters)"}}, module.ResponseInputItemParam
    )


@needs("anthropic")
def test_every_block_type_that_anthropics_sdk_defines_has_a_case() -> None:
    module = importlib.import_module("anthropic.types.content_block_param")
    assert tags(module.ContentBlockParam) <= types_of(ANTHROPIC)


def gemini(*parts: dict[str, Any]) -> list[Any]:
    calls = [part for part in parts if "Call" in str(part) or "executableCode" in part]
    return [
        {"role": "user", "parts": [{"text": "the task"}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": [part for part in parts if part not in calls]},
        {"role": "model", "parts": [{"functionCall": {"name": "next", "args": {}}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "next", "response": {"r": "ok"}}}],
        },
        {"role": "user", "parts": [{"text": "Go on."}]},
    ]


BLOB = {"inlineData": {"mimeType": "image/png", "data": "QUJD" * 3_000}}
CALL: dict[str, Any] = {"functionCall": {"name": "fetch", "args": {}}}
GEMINI: dict[str, list[Any]] = {
    "functionCall": gemini(
        {"functionCall": {"name": "fetch", "args": {"body": LARGE}}},
        {"functionResponse": {"name": "fetch", "response": {"r": "ok"}}},
    ),
    "functionResponse": gemini(
        CALL, {"functionResponse": {"name": "fetch", "response": {"r": LARGE}}}
    ),
    "functionResponse.parts": gemini(
        CALL,
        {"functionResponse": {"name": "fetch", "response": {"r": "see parts"}, "parts": [BLOB]}},
    ),
    "codeExecutionResult": gemini(
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": LARGE}},
    ),
    "toolResponse": gemini(
        {"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}},
        {"toolResponse": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB", "response": {"r": LARGE}}},
    ),
}


@pytest.mark.parametrize("history", GEMINI.values(), ids=list(GEMINI))
def test_a_part_of_the_gemini_api_shrinks(history: list[Any]) -> None:
    rewritten, report = shrink(history, "gemini")
    assert report.smaller
    assert len(json.dumps(rewritten)) < len(json.dumps(history)) - 3_000


@needs("google.genai")
@pytest.mark.parametrize("history", GEMINI.values(), ids=list(GEMINI))
def test_parts_of_the_gemini_api_are_of_googles_types_before_and_after(history: list[Any]) -> None:
    content: Any = importlib.import_module("google.genai.types").Content
    for messages in (history, shrink(history, "gemini")[0]):
        assert [content(**message).role for message in messages] == [m["role"] for m in messages]
